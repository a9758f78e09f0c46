"""One choice of a Chat Completions answer: its thoughts, text, refusal and media as items, its calls in `chat_calls`.

The wire has no blocks. An item begins with the first delta of its kind and ends when another kind, a call or a signed part
begins:

    {"reasoning_content":"Hm"}  {"reasoning_content":"."}    -> Reasoning "Hm."
    {"content":"It is "}                                     Reasoning done, -> Message "It is "
    {"tool_calls":[…]}                                       Message done, -> FunctionCall
    {"content":"so."}                                        -> a second Message; the call stays open

Thoughts have five names. The first that holds text is taken (`THOUGHTS`); the lists that some servers send beside it are kept
whole for replay, in `Reasoning.native`, their fragments joined as a whole body has them.

Held back: nothing. `native` of a thought and the joined bytes of an audio part are known when the item ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeAlias

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.base64_text import joined_base64
from streamlib_parsers.items import (
    Audio,
    Image,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.chat.calls import Calls

__all__ = ["REASONING_DETAIL_KEYS", "REASONING_KEYS", "ChoiceAssembler", "Details"]

REASONING_KEYS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""Names of the thought, the preferred first: servers that send two of them send the same text in both."""

REASONING_DETAIL_KEYS: Final = ("reasoning_details", "thinking_blocks")
"""Lists that carry a thought for replay: OpenRouter, MiniMax, Vercel; LiteLLM."""

TEXT_OF: Final = {"reasoning.text": "text", "reasoning.summary": "summary", "thinking": "thinking"}
"""Where the elements of those lists hold text. Elements of any other type (`reasoning.encrypted`) are never joined."""

THINKING_KEYS: Final = ("type", "thinking", "summary", "text", "content", "signature")
"""Keys of a thinking part that typed fields hold; the rest (`closed`) is native."""

OPAQUE_REASONING_KEY: Final = "reasoning_opaque"
"""Copilot's sealed thought."""

Kind: TypeAlias = str
TEXT: Final[Kind] = "text"
REASONING: Final[Kind] = "reasoning"
REFUSAL: Final[Kind] = "refusal"
AUDIO: Final[Kind] = "audio"
NONE: Final[Kind] = ""


class Details:
    """The elements of one such list. Fragments of one type and index are one element until it is signed; other keys come late."""

    def __init__(self) -> None:
        self._elements: list[JsonObject] = []
        self._texts: list[list[str]] = []

    def add(self, elements: list[JsonObject]) -> None:
        """What one delta brings: its first element may go on where the last delta ended."""
        for place, element in enumerate(elements):
            if place or not self._goes_on(element):
                self._elements.append({})
                self._texts.append([])
            last = self._elements[-1]
            last.update(
                {
                    name: value
                    for name, value in element.items()
                    if value is not None or name not in last
                }
            )
            self._texts[-1].append(_text_of(element))

    def _goes_on(self, element: JsonObject) -> bool:
        last = self._elements[-1] if self._elements else {}
        alike = str(element.get("type")) in TEXT_OF and all(
            last.get(name) == element.get(name) for name in ("type", "index")
        )
        return alike and not (last.get("signature") and _text_of(element))

    def whole(self) -> list[JsonObject]:
        """The elements as a whole body would have them."""
        joined = zip(self._elements, map("".join, self._texts), strict=True)
        return [
            {**element, TEXT_OF[element["type"]]: text} if text else element
            for element, text in joined
        ]


class ChoiceAssembler:
    """One choice while it grows."""

    __slots__ = (
        "_assembly",
        "_details",
        "_native",
        "_ran",
        "calls",
        "finish",
        "index",
        "item",
        "kind",
        "kinds",
        "part",
    )

    item: OpenItem

    def __init__(self, assembly: EventAssembler, index: int) -> None:
        self._assembly = assembly
        self.index = index
        self.calls = Calls(assembly, index, self.close_current)
        self.finish: str | None = None
        """The wire's own word for why it ended; None until it came."""
        self.kinds: set[Kind] = set()
        """What the choice has said so far."""
        self.kind = NONE
        self.part = 0
        self._native: dict[str, Any] = {}
        self._details: dict[str, Details] = {}
        self._ran: dict[Any, str] = {}

    # --- items ---

    def begin(self, kind: Kind) -> OpenItem:
        """The open item of a kind; whatever else is open ends."""
        if self.kind is not kind:
            self.close_current()
            item: ResponseItem = (
                Reasoning(choice=self.index)
                if kind is REASONING
                else Message("assistant", choice=self.index)
            )
            self.item = self._assembly.open(item)
            self.kind, self.part, self._native, self._details = kind, 0, {}, {}
            self.kinds.add(kind)
        return self.item

    def close_current(self, signature: str | None = None) -> None:
        """Ends the open item."""
        if self.kind:
            self.flush()
            if signature:
                self.item.fields["signature"] = signature
            self.kind = NONE
            self._assembly.close(self.item)

    def whole(self, item: ResponseItem) -> None:
        """An item that has no deltas."""
        self.close_current()
        self.kinds.add(type(item).__name__)
        self._assembly.close(self._assembly.open(item))

    def flush(self) -> None:
        """Fields of the open item that are only known at its end. May come twice."""
        if self.kind is AUDIO:
            self._flush_audio()
        elif self._native or self._details:
            details = {key: elements.whole() for key, elements in self._details.items()}
            self.item.fields["native"] = {**self._native, **details}
            signatures = [
                signature
                for ones in details.values()
                for one in ones
                if (signature := _string(one, "signature"))
            ]
            if len(signatures) == 1:
                self.item.fields["signature"] = signatures[0]

    def end(self) -> None:
        """The answer is over: every item ends."""
        self.close_current()
        self.calls.close()

    # --- text and thoughts ---

    def text(self, delta: str, logprobs: list[JsonObject] | None = None) -> None:
        """Text of the answer."""
        item = self.item if self.kind is TEXT else self.begin(TEXT)
        self._assembly.text(item, delta, self.part, logprobs)

    def reasoning(self, delta: str, logprobs: list[JsonObject] | None = None) -> None:
        """A thought."""
        item = self.item if self.kind is REASONING else self.begin(REASONING)
        self._assembly.reasoning(item, delta, 0, logprobs)

    def thought(self, delta: JsonObject, logprobs: list[JsonObject] | None = None) -> None:
        """The thought of one delta, under whatever name."""
        given = [delta[name] for name in REASONING_KEYS if delta.get(name)]
        lists = {
            name: [one for one in _list(delta.get(name)) if isinstance(one, dict)]
            for name in REASONING_DETAIL_KEYS
        }
        texts = [one for one in given if isinstance(one, str)] + [
            "".join(map(_text_of, ones)) for ones in lists.values() if ones
        ]
        if texts or delta.get(OPAQUE_REASONING_KEY):
            text = texts[0] if texts else ""
            self._assembly.reasoning(self.begin(REASONING), text, 0, logprobs if text else None)
            self._native.update(
                {OPAQUE_REASONING_KEY: delta[OPAQUE_REASONING_KEY]}
                if delta.get(OPAQUE_REASONING_KEY)
                else {}
            )
        for name in (name for name, ones in lists.items() if ones):
            self._details.setdefault(name, Details()).add(lists[name])
        if given and not texts:
            self.report_unexpected("reasoning", given[0])

    def sign(self, signature: str, native: JsonObject) -> None:
        """Signs what the delta brought: an item of its own, empty where it brought nothing."""
        if self.kind is not REASONING:
            self.begin(TEXT)
        self._native.update(native)
        self.close_current(signature)

    # --- what else a delta may hold ---

    def content(self, value: Any, logprobs: list[JsonObject] | None = None) -> None:
        """`content`: text, or parts (Mistral, Databricks)."""
        if isinstance(value, str):
            self.text(value, logprobs)
        elif isinstance(value, (list, dict)):
            for part in value if isinstance(value, list) else [value]:
                self._content_part(part)
        else:
            self.report_unexpected("content", value)

    def _content_part(self, part: Any) -> None:
        if isinstance(part, str):
            self.text(part)
        elif not isinstance(part, dict):
            self.report_unexpected("content", part)
        else:
            kind = str(part.get("type") or "text")
            read = self.PARTS.get(kind)
            if read is None:
                self.whole(Opaque(kind=kind, payload=part, choice=self.index))
            else:
                read(self, part)

    def _text_part(self, part: JsonObject) -> None:
        if _string(part, "text"):
            self.text(part["text"])
        self.annotations(part.get("annotations") or part.get("citations") or ())

    def _reference_part(self, part: JsonObject) -> None:
        """Mistral puts the sources between two pieces of text: they stand on the piece before, and the next piece is a part of its own."""
        self.annotations([part])
        self.part += 1

    def _thinking_part(self, part: JsonObject) -> None:
        """`thinking` (Mistral, Anthropic's shape) and `reasoning` (Databricks): a text, or a list of parts that have one."""
        given: Any = next(
            (part[key] for key in ("thinking", "summary", "text", "content") if part.get(key)), ""
        )
        item = self.begin(REASONING)
        signature = part.get("signature")
        for one in given if isinstance(given, list) else [{"text": given}]:
            if isinstance(one, dict) and isinstance(one.get("text"), str):
                self._assembly.reasoning(item, one["text"])
                signature = one.get("signature") or signature
            else:
                self._assembly.passthrough("content.thinking", one)
        self._native.update({key: value for key, value in part.items() if key not in THINKING_KEYS})
        if isinstance(signature, str):
            self.close_current(signature)

    def refusal(self, value: Any) -> None:
        """`refusal`: words with which the model declines."""
        text = value.get("refusal") if isinstance(value, dict) else value
        if isinstance(text, str):
            self._assembly.refusal(self.begin(REFUSAL), text)
        else:
            self.report_unexpected("refusal", value)

    def annotations(self, value: Any) -> None:
        """`annotations`: citations of the text."""
        for annotation in _list(value):
            if isinstance(annotation, dict):
                self._assembly.annotation(self.begin(TEXT), annotation, self.part)
            else:
                self.report_unexpected("annotations", annotation)

    def audio(self, value: Any) -> None:
        """`audio`: base64 text in pieces, what is said in it, and the id under which it can be sent back."""
        if not isinstance(value, dict):
            self.report_unexpected("audio", value)
        elif any(value.values()):
            item = self.begin(AUDIO)
            self._native.update(
                {
                    key: one
                    for key, one in value.items()
                    if one and key not in {"data", "transcript"}
                }
            )
            data, transcript = _string(value, "data"), _string(value, "transcript")
            if data or transcript:
                self._assembly.media(item, 0, None, data or None, transcript or None)

    def _flush_audio(self) -> None:
        part, rest = self.item.part(0), dict(self._native)
        name = rest.pop("id", None)
        data, said = joined_base64(part.data) or None, "".join(part.transcript_fragments) or None
        self.item.fields["content"] = (
            Audio(data=data, name=name if isinstance(name, str) else None, transcript=said),
        )
        if rest:
            self.item.fields["native"] = {"audio": rest}

    def images(self, value: Any) -> None:
        """`images` (OpenRouter), each a message of its own."""
        for image in _list(value):
            self._image(image if isinstance(image, dict) else {"image_url": image})

    def _image(self, part: JsonObject) -> None:
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, dict) else given
        if not isinstance(url, str):
            self.report_unexpected("images", part)
            return
        head, comma, data = url.partition(",")
        if not (comma and head.startswith("data:") and head.endswith(";base64")):
            self.whole(Message("assistant", (Image(url=url),), choice=self.index))
            return
        self.close_current()
        self.kinds.add("Image")
        item = self._assembly.open(Message("assistant", choice=self.index))
        self._assembly.media(item, 0, head[5:-7] or "image/png", data)
        self._assembly.close(item)

    def executed(self, value: Any) -> None:
        """`executed_tools` (Groq): a tool the provider ran, told again with its output when it ended."""
        for tool in _list(value):
            if isinstance(tool, dict):
                self._executed(tool)
            else:
                self.report_unexpected("executed_tools", tool)

    def _executed(self, tool: JsonObject) -> None:
        kind, key = _string(tool, "type"), tool.get("index", _string(tool, "type"))
        key = key if isinstance(key, (int, str)) else kind
        call_id = self._ran.get(key)
        if call_id is None:
            self.close_current()
            call_id = self._ran[key] = self._assembly.new_call_id()
            item = self._assembly.open(
                ServerToolCall(call_id=call_id, name=kind, choice=self.index, native={"type": kind})
            )
            self._assembly.arguments(item, _string(tool, "arguments"))
            self._assembly.close(item)
        if tool.get("output") is not None:
            rest = {
                name: one
                for name, one in tool.items()
                if name not in {"index", "arguments", "output"}
            }
            self.whole(
                ServerToolResult(
                    call_id=call_id,
                    name=kind,
                    output=tool["output"],
                    choice=self.index,
                    native=rest,
                )
            )

    def report_unexpected(self, key: str, value: Any) -> None:
        """What no delta can be made of: told in its place, and the open item is not trusted to be whole."""
        self._assembly.passthrough(f"delta.{key}", value)
        if self.kind:
            self._assembly.mark_incomplete(self.item, f"{key}: {type(value).__name__}")

    PARTS: ClassVar[dict[str, Callable[[ChoiceAssembler, JsonObject], None]]] = {
        "text": _text_part,
        "output_text": _text_part,
        "thinking": _thinking_part,
        "reasoning": _thinking_part,
        "reference": _reference_part,
        "refusal": refusal,
        "image_url": _image,
    }
    """The parts of a content list, by type. Every other type is an Opaque."""


def _text_of(element: JsonObject) -> str:
    """The text of one element of a list of `DETAILS`."""
    kind = element.get("type")
    return _string(element, TEXT_OF[kind]) if isinstance(kind, str) and kind in TEXT_OF else ""


def _string(values: JsonObject, key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []
