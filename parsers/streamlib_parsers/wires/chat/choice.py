"""One choice of a Chat Completions response: its items; its calls are in `calls.py`.

The wire has no blocks. An item starts with the first delta of its kind and ends when another kind,
a call or a signed part starts:

    {"reasoning_content":"Hm"}  {"reasoning_content":"."}    -> Reasoning "Hm."
    {"content":"It is "}                                     Reasoning done, -> Message "It is "
    {"tool_calls":[…]}                                       Message done, -> FunctionCall
    {"content":"so."}                                        -> another Message; the call stays open

Reasoning has five names. The first that holds text is taken (`REASONING_KEYS`); the lists that some
servers send beside it are kept for replay in `Reasoning.native` (`reasoning_details.py`).

Buffered: nothing. `native` of a reasoning item and the joined bytes of an audio part are known when
the item ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.base64_text import joined_base64
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    Audio,
    Document,
    Image,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import string_at
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.chat.calls import Calls
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    REASONING_KEYS,
    RECEIVED_KEY,
    ReasoningDetails,
    text_of_detail,
)

__all__ = ["NONE", "REASONING", "REFUSAL", "TEXT", "ChoiceAssembler"]

Kind: TypeAlias = Literal["", "text", "reasoning", "refusal", "audio"]
TEXT: Final = "text"
REASONING: Final = "reasoning"
REFUSAL: Final = "refusal"
AUDIO: Final = "audio"
NONE: Final = ""

REFERENCES: Final = ("reference", "tool_reference")
"""Types of Mistral's references, which may be in reasoning too."""

REFERENCES_KEY: Final = "references"
"""Key in `native` of reasoning for the references in it."""

DOCUMENT_BY_URL: Final = {"type": "document_url"}
"""`native` of a document that was a `document_url` part."""

THINKING_TEXT_KEYS: Final = ("thinking", "summary", "text", "content")
"""Keys of a reasoning part's text; the first that is not empty is taken."""

THINKING_KEYS: Final = ("type", "signature", *THINKING_TEXT_KEYS)
"""Keys of a reasoning part that typed fields hold; the rest (`closed`) is native."""


class ChoiceAssembler:
    """One choice while it is read."""

    __slots__ = (
        "_assembler",
        "_details",
        "_executed",
        "_native",
        "_references",
        "calls",
        "finish",
        "index",
        "item",
        "kind",
        "kinds",
        "part",
    )

    item: OpenItem
    """The newest item; open, and set at all, only while `kind` is not `NONE`."""

    def __init__(self, assembler: EventAssembler, index: int) -> None:
        self._assembler = assembler
        self.index = index
        self.calls = Calls(assembler, index, self.close_current)
        self.finish: str | None = None
        """The wire's `finish_reason`; None until it is received."""
        self.kinds: set[str] = set()
        """Every kind of item opened so far."""
        self.kind: Kind = NONE
        """Kind of the open item; `NONE` while none is open."""
        self.part = 0
        """Content index that text is appended to; +1 after each reference, 0 for a new item."""
        self._native: JsonObject = {}
        """Keys for `native` of the open item; emptied when an item is opened."""
        self._details: dict[str, ReasoningDetails] = defaultdict(ReasoningDetails)
        """Lists for `native` of the open item; emptied when an item is opened."""
        self._references: list[JsonObject] = []
        """Mistral's references in the open reasoning; emptied when an item is opened."""
        self._executed: dict[int | str, str] = {}
        """Generated call ids of the tools that the provider ran, by their index or type."""

    # --- items ---

    def open_item(self, kind: Kind) -> OpenItem:
        """The open item of `kind`; an item of another kind is closed first."""
        if self.kind != kind:
            self.close_current()
            if kind == REASONING:
                self.item = self._assembler.open(Reasoning(choice=self.index))
            else:
                self.item = self._assembler.open(Message("assistant", choice=self.index))
            self.kind = kind
            self.part = 0
            self._native = {}
            self._details.clear()
            self._references = []
            self.kinds.add(kind)
        return self.item

    def close_current(self, signature: str | None = None) -> None:
        """Close the open item, if any."""
        if self.kind:
            self.flush()
            if signature:
                self.item.fields["signature"] = signature
            self.kind = NONE
            self._assembler.close(self.item)

    def add_complete(self, item: ResponseItem) -> None:
        """Add an item that has no deltas."""
        self.close_current()
        self.kinds.add(type(item).__name__)
        self._assembler.close(self._assembler.open(item))

    def flush(self) -> None:
        """Set the fields of the open item that are only known at its end. May be called twice."""
        if self.kind == AUDIO:
            self._flush_audio()
        elif self._native or self._details or self._references:
            native = dict(self._native)
            if self._details or OPAQUE_REASONING_KEY in native:
                # The server reads those back, not the text.
                native.pop(RECEIVED_KEY, None)
            if self._references:
                native[REFERENCES_KEY] = list(self._references)
            signatures: list[str] = []
            for key, details in self._details.items():
                elements = details.joined()
                native[key] = elements
                signatures += [string_at(element, "signature") for element in elements]
            self.item.fields["native"] = native
            signatures = list(filter(None, signatures))
            # With more than one, no single signature covers the text of the item.
            if len(signatures) == 1:
                self.item.fields["signature"] = signatures[0]

    def end(self) -> None:
        """Close every item: the response is over."""
        self.close_current()
        self.calls.close()

    # --- text and reasoning ---

    def append_text(self, delta: str, logprobs: list[JsonObject] | None = None) -> None:
        """Append output text."""
        # No call to `open_item` for an item that is open: this runs for nearly every chunk.
        item = self.item if self.kind == TEXT else self.open_item(TEXT)
        self._assembler.text(item, delta, self.part, logprobs)

    def append_reasoning(self, delta: str, logprobs: list[JsonObject] | None = None) -> None:
        """Append reasoning text."""
        item = self.item if self.kind == REASONING else self.open_item(REASONING)
        self._assembler.reasoning(item, delta, 0, logprobs)

    def append_named_reasoning(self, delta: str, key: str) -> None:
        """Append reasoning text that came by another name than the preferred one."""
        self.append_reasoning(delta)
        self._native[RECEIVED_KEY] = key

    def read_reasoning(self, delta: JsonObject, logprobs: list[JsonObject] | None = None) -> None:
        """Read the reasoning of one delta, under whatever name."""
        text: str | None = None
        received_key = REASONING_KEYS[0]
        unreadable: Any = None
        for key in REASONING_KEYS:
            value = delta.get(key)
            if value and isinstance(value, str):
                text, received_key = value, key
                break
            if unreadable is None and value:
                unreadable = value

        details = _reasoning_details_of(delta)
        if text is None and details:
            first_list = next(iter(details.values()))
            text = "".join(map(text_of_detail, first_list))

        opaque = delta.get(OPAQUE_REASONING_KEY)
        if text is not None or opaque:
            item = self.open_item(REASONING)
            # Without text the log probabilities are not those of the reasoning.
            self._assembler.reasoning(item, text or "", 0, logprobs if text else None)
            if received_key != REASONING_KEYS[0]:
                self._native[RECEIVED_KEY] = received_key
            if opaque:
                self._native[OPAQUE_REASONING_KEY] = opaque
            for key, elements in details.items():
                self._details[key].add(elements)
        if text is None and unreadable is not None:
            self.report_unexpected("reasoning", unreadable)

    def sign(self, signature: str, native: JsonObject) -> None:
        """Sign what the delta brought, which is an item of its own; empty if it brought nothing."""
        if self.kind != REASONING:
            self.open_item(TEXT)
        self._native.update(native)
        self.close_current(signature)

    # --- content ---

    def read_content(self, value: Any, logprobs: list[JsonObject] | None = None) -> None:
        """Read `content`: text, or a list of parts (Mistral, Databricks)."""
        if isinstance(value, str):
            self.append_text(value, logprobs)
        elif isinstance(value, list):
            for part in value:
                self._read_part(part)
        elif isinstance(value, dict):
            self._read_part(value)
        else:
            self.report_unexpected("content", value)

    def _read_part(self, part: Any) -> None:
        if isinstance(part, str):
            self.append_text(part)
            return
        if not isinstance(part, dict):
            self.report_unexpected("content", part)
            return
        kind = str(part.get("type") or "text")
        read = PARTS.get(kind)
        if read is None:  # kept, so that it can be sent back
            self.add_complete(Opaque(kind=kind, payload=part, choice=self.index))
        else:
            read(self, part)

    def _read_text_part(self, part: JsonObject) -> None:
        text = string_at(part, "text")
        if text:
            self.append_text(text)
        self.read_annotations(part.get("annotations") or part.get("citations"))

    def _read_reference_part(self, part: JsonObject) -> None:
        """Annotate the text before the reference.

        Mistral puts the sources, and what its tools found (`tool_reference`), between two
        fragments of text: the next fragment is a part of its own.
        """
        self.read_annotations([part])
        self.part += 1

    def _read_thinking_part(self, part: JsonObject) -> None:
        """Read `thinking` (Mistral, Anthropic's shape) or `reasoning` (Databricks).

        The value is a text, or a list of parts that have one.
        """
        value: Any = ""
        for key in THINKING_TEXT_KEYS:
            if part.get(key):
                value = part[key]
                break
        fragments = value if isinstance(value, list) else [{"text": value}]

        # Opened even without text: a signature alone must be sent back too.
        item = self.open_item(REASONING)
        signature = part.get("signature")
        for fragment in fragments:
            if isinstance(fragment, dict) and isinstance(fragment.get("text"), str):
                self._assembler.reasoning(item, fragment["text"])
                signature = fragment.get("signature") or signature
            elif isinstance(fragment, dict) and fragment.get("type") in REFERENCES:
                # For the replay: the number of characters of reasoning before the reference.
                entry = {"position": len(item.text()), "reference": fragment}
                self._references.append(entry)
            else:
                self._assembler.passthrough("content.thinking", fragment)

        self._native.update(_without(part, THINKING_KEYS))
        if isinstance(signature, str):
            self.close_current(signature)

    def read_refusal(self, value: Any, logprobs: list[JsonObject] | None = None) -> None:
        """Read `refusal`: text with which the model declines."""
        text = value.get("refusal") if isinstance(value, dict) else value
        if isinstance(text, str):
            self._assembler.refusal(self.open_item(REFUSAL), text, logprobs=logprobs)
        else:
            self.report_unexpected("refusal", value)

    def read_annotations(self, value: Any) -> None:
        """Read `annotations`: citations of the text."""
        for annotation in _as_list(value):
            if isinstance(annotation, dict):
                self._assembler.annotation(self.open_item(TEXT), annotation, self.part)
            else:
                self.report_unexpected("annotations", annotation)

    # --- audio and images ---

    def read_audio(self, value: Any) -> None:
        """Read `audio`: base64 fragments, a transcript, and the id under which to send it back."""
        if not isinstance(value, dict):
            self.report_unexpected("audio", value)
            return
        if not any(value.values()):  # a skeleton of nulls starts no item
            return
        item = self.open_item(AUDIO)
        # Empty values must not replace those of an earlier chunk.
        for key, member in _without(value, ("data", "transcript")).items():
            if member or (member is not None and key not in self._native):
                self._native[key] = member
        data = string_at(value, "data")
        transcript = string_at(value, "transcript")
        if data or transcript:
            self._assembler.media(item, 0, None, data or None, transcript or None)

    def _flush_audio(self) -> None:
        part = self.item.part(0)
        native = dict(self._native)
        audio_id = native.pop("id", None)
        # Replaces the part made of deltas: fragments may each end in padding of their own, and the
        # id belongs to the part.
        self.item.fields["content"] = (
            unchecked(Audio)(
                data=joined_base64(part.other("data")) or None,
                name=audio_id if isinstance(audio_id, str) else None,
                transcript="".join(part.other("transcript")) or None,
            ),
        )
        if native:
            self.item.fields["native"] = {"audio": native}

    def read_images(self, value: Any) -> None:
        """Read `images` (OpenRouter), each as a message of its own."""
        for image in _as_list(value):
            if isinstance(image, dict):
                self._read_image(image)
            else:
                self._read_image({"image_url": image})

    def _read_document(self, part: JsonObject) -> None:
        """Read `document_url` (Mistral): a document by its address."""
        url = part.get("document_url")
        if not isinstance(url, str):
            self.report_unexpected("content", part)
            return
        name = string_at(part, "document_name") or None
        document = unchecked(Document)(url=url, name=name, native=dict(DOCUMENT_BY_URL))
        self.add_complete(Message("assistant", (document,), choice=self.index))

    def _read_image(self, part: JsonObject) -> None:
        image_url = part.get("image_url")
        url = image_url.get("url") if isinstance(image_url, dict) else image_url
        if not isinstance(url, str):
            self.report_unexpected("images", part)
            return
        prefix, comma, data = url.partition(",")
        if not (comma and prefix.startswith("data:") and prefix.endswith(";base64")):
            message = Message("assistant", (unchecked(Image)(url=url),), choice=self.index)
            self.add_complete(message)
            return
        media_type = prefix.removeprefix("data:").removesuffix(";base64")
        self.close_current()
        # Its data goes into a delta, as in every wire, not into the skeleton of the item.
        self.kinds.add("Image")
        item = self._assembler.open(Message("assistant", choice=self.index))
        self._assembler.media(item, 0, media_type or "image/png", data)
        self._assembler.close(item)

    # --- tools that the provider ran ---

    def read_executed_tools(self, value: Any) -> None:
        """Read `executed_tools` (Groq): sent when a tool starts, and again with its output."""
        for tool in _as_list(value):
            if isinstance(tool, dict):
                self._read_executed_tool(tool)
            else:
                self.report_unexpected("executed_tools", tool)

    def _read_executed_tool(self, tool: JsonObject) -> None:
        kind = string_at(tool, "type")
        # The wire has no call id for them: the index pairs a tool with its output.
        key: Any = tool.get("index", kind)
        if not isinstance(key, (int, str)):
            key = kind
        call_id = self._executed.get(key)
        if call_id is None:  # the first time that this tool is sent
            self.close_current()
            call_id = self._assembler.new_call_id()
            self._executed[key] = call_id
            native = {"type": kind}
            call = ServerToolCall(call_id=call_id, name=kind, choice=self.index, native=native)
            item = self._assembler.open(call)
            self._assembler.arguments(item, string_at(tool, "arguments"))
            self._assembler.close(item)
        if tool.get("output") is not None:
            result = ServerToolResult(
                call_id=call_id,
                name=kind,
                output=tool["output"],
                choice=self.index,
                native=_without(tool, ("index", "arguments", "output")),
            )
            self.add_complete(result)

    def report_unexpected(self, key: str, value: Any) -> None:
        """Pass on a value that no delta can be made of.

        It may be missing from the open item, which therefore ends incomplete.
        """
        # A Passthrough keeps the value, and its position in the stream.
        self._assembler.passthrough(f"delta.{key}", value)
        if self.kind:
            self._assembler.mark_incomplete(self.item, f"{key}: {type(value).__name__}")


PARTS: Final[dict[str, Callable[[ChoiceAssembler, JsonObject], None]]] = {
    "text": ChoiceAssembler._read_text_part,
    "output_text": ChoiceAssembler._read_text_part,
    "thinking": ChoiceAssembler._read_thinking_part,
    "reasoning": ChoiceAssembler._read_thinking_part,
    "reference": ChoiceAssembler._read_reference_part,
    "tool_reference": ChoiceAssembler._read_reference_part,
    "document_url": ChoiceAssembler._read_document,
    "refusal": ChoiceAssembler.read_refusal,
    "image_url": ChoiceAssembler._read_image,
}
"""Readers of the parts of a content list, by type. A part of any other type is an `Opaque`."""


def _reasoning_details_of(delta: JsonObject) -> dict[str, list[JsonObject]]:
    """The lists for replay in a delta, by key, without empty ones."""
    details: dict[str, list[JsonObject]] = {}
    for key in REASONING_DETAIL_KEYS:
        if delta.get(key):
            elements = [element for element in _as_list(delta[key]) if isinstance(element, dict)]
            if elements:
                details[key] = elements
    return details


def _without(values: JsonObject, keys: Sequence[str]) -> JsonObject:
    return {key: value for key, value in values.items() if key not in keys}


def _as_list(value: Any) -> list[Any]:
    """A list as it is, nothing for an empty value, else a list of the one value."""
    if isinstance(value, list):
        return value
    if value:
        return [value]
    return []
