"""Gemini generateContent (Developer API and Vertex AI): whole `GenerateContentResponse` objects that each bring a few more parts.

What the wire promises (googleapis' generative_service.proto and content.proto, google-genai 3.4 types):

    data: {"candidates":[{"content":{"parts":[{"text":"I think","thought":true}]},"index":0}],"usageMetadata":{…},"responseId":"r"}
    data: {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}                          parts are increments
    data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"…"}]}}]}    a call comes whole
    data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"…"}]},"finishReason":"STOP"}]}

The same objects come as one JSON array without `alt=sse`. There are no event names, no index of parts and no terminal: the end of input
is the end, and it is complete only if every candidate seen had a `finishReason` other than CONTINUATION (the last one counts), or the
prompt was blocked. `Completed` therefore waits for the end of input.

Unsigned text and thoughts of one kind run together; another kind of part ends them. A part with a `thoughtSignature`, or with a key beside
its data, is an item of its own, and no text is ever added to it. Function calls stay open to the end, because a part with the id of an
earlier call repeats it; a call without an id is always a new one. Vertex may stream a call's arguments (`partialArgs`): they are given
out as the JSON text they stand for. Held back: half an emoji, and what a streamed call adds out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta, Raw, Struct, to_builtins

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.events import FinishedChoice, StopReason
from streamlib_parsers.framing.sse_or_json import SSEOrJsonFraming as framing  # noqa: N813  # the name every wire gives its framing
from streamlib_parsers.items import (
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import SurrogateJoiner, decode_any, mark_surrogates
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.gemini.calls import Calls
from streamlib_parsers.wires.gemini.parts import (
    NULL,
    Index,
    Object,
    arguments_of,
    as_object,
    as_objects,
    as_string,
    as_value,
    index_of,
    is_true,
    media_of,
    optional,
    present,
    reason_of,
    rest,
    state,
)
from streamlib_parsers.wires.gemini.token_counts import (
    Counts,
    as_counts,
    counts_told,
    merged,
    usage,
)

__all__ = [
    "BLOCK_NUMBERS",
    "FINISH_NUMBERS",
    "FINISH_NUMBERS_VERTEX",
    "STOP_REASONS",
    "Machine",
    "body_frames",
    "framing",
    "usage",
]

STOP_REASONS: Final[dict[str, StopReason]] = {
    "STOP": "stop",  # "tool_calls" where the candidate has a whole call
    "FUNCTION_CALL": "stop",  # likewise; not Google's word, but one that servers speaking this wire have been recorded with
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}
CONTINUATION: Final = "CONTINUATION"
"""Not an end: the answer goes on in another request, with the `continuationToken` of the metadata."""

FINISH_NUMBERS: Final[dict[int, str]] = {
    0: "FINISH_REASON_UNSPECIFIED",
    1: "STOP",
    2: "MAX_TOKENS",
    3: "SAFETY",
    4: "RECITATION",
    5: "OTHER",
    6: "LANGUAGE",
    7: "BLOCKLIST",
    8: "PROHIBITED_CONTENT",
    9: "SPII",
    10: "MALFORMED_FUNCTION_CALL",
    11: "IMAGE_SAFETY",
    12: "UNEXPECTED_TOOL_CALL",
    13: "TOO_MANY_TOOL_CALLS",
    14: "IMAGE_PROHIBITED_CONTENT",
    15: "IMAGE_OTHER",
    16: "NO_IMAGE",
    17: "IMAGE_RECITATION",
}
"""Numbers of google.ai.generativelanguage.v1beta; clients that ask for integer enums get them."""
FINISH_NUMBERS_VERTEX: Final[dict[int, str]] = {
    **{number: FINISH_NUMBERS[number] for number in range(6)},
    6: "BLOCKLIST",
    7: "PROHIBITED_CONTENT",
    8: "SPII",
    9: "MALFORMED_FUNCTION_CALL",
    10: "MODEL_ARMOR",
}
"""Numbers of google.cloud.aiplatform.v1beta1, which differ. Only Vertex sends `createTime` and `trafficType`: they tell."""
BLOCK_NUMBERS: Final[dict[int, str]] = {
    1: "SAFETY",
    2: "OTHER",
    3: "BLOCKLIST",
    4: "PROHIBITED_CONTENT",
    5: "IMAGE_SAFETY",
}

# --- chunks: the hot shape, and everything else ---


class TextPart(Struct, gc=False, forbid_unknown_fields=True):
    """The part that most chunks consist of."""

    text: str
    thought: bool = False


class TextContent(Struct, gc=False, forbid_unknown_fields=True):
    """Content of text parts."""

    parts: list[TextPart]
    role: str | None = None


class TextCandidate(Struct, gc=False, forbid_unknown_fields=True):
    """A candidate that only goes on."""

    content: TextContent
    index: Index = 0


class TextChunk(Struct, gc=False, forbid_unknown_fields=True):
    """A chunk that brings text and counts, and nothing else. Any other key makes the decoder refuse it: then `_chunk` reads it."""

    candidates: Annotated[list[TextCandidate], Meta(min_length=1, max_length=1)]
    usageMetadata: Counts | None = None  # noqa: N815  # the wire's names
    modelVersion: str | None = None  # noqa: N815
    responseId: str | None = None  # noqa: N815
    createTime: str | None = None  # noqa: N815


_decode_text: Final = msgspec.json.Decoder(TextChunk).decode

_END_OF_BODY: Final = "the body is whole"
"""The frame that `body_frames` ends with; told apart by identity, so that no stream can say it."""


class Candidate:
    """One answer.

    said: the text or thought that may go on. pending: ids of provider-run calls that have no result yet. reason: the last finishReason.
    """

    __slots__ = ("calls", "index", "pending", "reason", "text_item")

    def __init__(self, assembly: EventAssembler, index: int) -> None:
        self.index = index
        self.text_item: OpenItem | None = None
        self.calls = Calls(assembly, index)
        self.pending: dict[str, None] = {}
        self.reason: str | int | None = None


class Machine:
    """Reads the chunks of one stream."""

    def __init__(self, assembly: EventAssembler) -> None:
        self._assembly = assembly
        self._candidates: dict[int, Candidate] = {}
        self._usage: dict[str, Any] = {}
        self._counts: Counts | None = None
        self._create_time: str | None = None
        self._blocked: str | None = None
        self._is_body = False

    @property
    def complete(self) -> bool:
        """Every candidate seen has an end, or the prompt was blocked. A later chunk may still add to the answer."""
        ended = [self._ended(candidate) for candidate in self._candidates.values()]
        return all(ended) if ended else bool(self._blocked or self._is_body)

    def frame(self, event: str | None, data: bytes) -> None:
        """One chunk."""
        try:
            chunk = _decode_text(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._read_untyped(event, data)
        else:
            self._text_chunk(chunk)

    def end(self) -> None:
        """Complete only if every candidate has a finishReason, or the prompt was blocked."""
        if not self.complete:
            reasons = [
                self._name(candidate)
                for candidate in self._candidates.values()
                if candidate.reason is not None
            ]
            raise truncated(
                "the stream ended before a finishReason",
                {"finish_reasons": reasons} if reasons else None,
            )
        self._close_items()
        candidates = [candidate for _, candidate in sorted(self._candidates.items())] or [
            Candidate(self._assembly, 0)
        ]
        ends = [self._finished_choice(candidate) for candidate in candidates]
        self._assembly.complete(ends[0].stop_reason, ends[0].native_stop_reason, None, ends)

    # --- chunks ---

    def _text_chunk(self, chunk: TextChunk) -> None:
        assembly, counts = self._assembly, chunk.usageMetadata
        if assembly.response_id is None or assembly.model is None:
            assembly.identify(chunk.responseId, chunk.modelVersion)
        candidate = chunk.candidates[0]
        known = self._candidates.get(candidate.index) or self._begin(candidate.index)
        for part in candidate.content.parts:
            self._append_text(known, part.text, Reasoning if part.thought else Message)
        if chunk.createTime is not None and chunk.createTime != self._create_time:
            self._envelope({"createTime": chunk.createTime})
        if counts is not None and counts != self._counts:
            self._counts = counts
            self._emit_usage(to_builtins(counts), counts)

    def _read_untyped(self, event: str | None, data: bytes) -> None:
        if event is _END_OF_BODY:
            self._is_body = True
        elif data.strip().lower() != b"[done]":
            fixed = mark_surrogates(data)
            if fixed is not None:
                self._assembly.surrogates = self._assembly.surrogates or SurrogateJoiner()
            self._read(fixed or data)

    def _read(self, data: bytes) -> None:
        try:
            for chunk in as_objects(data) if data.lstrip().startswith(b"[") else (as_object(data),):
                self._chunk(present(chunk))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise malformed(f"not a GenerateContentResponse: {error}", data) from None

    def _chunk(self, chunk: Object) -> None:
        """A chunk of any shape, key by key."""
        if "error" in chunk:
            raise ParseFailure(
                classify(None, {key: as_value(value) for key, value in chunk.items()})
            )
        self._assembly.identify(optional(chunk, "responseId"), optional(chunk, "modelVersion"))
        for position, candidate in enumerate(as_objects(chunk.get("candidates", b"[]"))):
            self._candidate(position, present(candidate))
        if "promptFeedback" in chunk:
            self._feedback(as_object(chunk["promptFeedback"]))
        self._envelope({key: as_value(value) for key, value in chunk.items() if key not in TYPED})
        if "usageMetadata" in chunk:
            self._count(chunk["usageMetadata"])

    def _candidate(self, position: int, values: Object) -> None:
        index = index_of(values.get("index", Raw(b"%d" % position)))
        candidate = self._candidates.get(index) or self._begin(index)
        content = as_object(values.get("content", b"{}"))
        parts = content.get("parts", NULL)
        for part in as_objects(parts) if parts != NULL else ():
            self._part(candidate, present(part))
        candidate.reason = reason_of(values, "finishReason") or candidate.reason
        prefix = f"candidates[{index}]." if index else ""
        said = {
            key: value
            for key, value in values.items()
            if key not in {"index", "content", "finishReason"}
        }
        said |= {
            f"content.{key}": value
            for key, value in content.items()
            if key not in {"role", "parts"}
        }
        self._assembly.metadata({prefix + key: as_value(value) for key, value in said.items()})

    def _begin(self, index: int) -> Candidate:
        candidate = self._candidates[index] = Candidate(self._assembly, index)
        return candidate

    def _part(self, candidate: Candidate, part: Object) -> None:
        kind = next((key for key in part if key in self.PARTS), None)
        if kind is not None:
            self.PARTS[kind](self, candidate, part, kind)
        elif part:
            self._unknown(candidate, part)

    # --- the envelope ---

    def _feedback(self, feedback: Object) -> None:
        reason = reason_of(feedback, "blockReason") or self._blocked
        self._blocked = (
            BLOCK_NUMBERS.get(reason, str(reason)) if isinstance(reason, int) else reason
        )

    def _envelope(self, values: dict[str, Any]) -> None:
        self._create_time = values.get("createTime", self._create_time)
        self._assembly.metadata(values)

    def _count(self, raw: Raw) -> None:
        try:
            newer = as_counts(raw)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._assembly.passthrough("usageMetadata", decode_any(bytes(raw)))
            return
        self._counts = None
        self._emit_usage({key: value for key, value in newer.items() if value is not None}, None)

    def _emit_usage(self, newer: dict[str, Any], counts: Counts | None) -> None:
        """The usage so far, with `newer` over it; `counts` is the same decoded, where its shape is the usual."""
        self._usage = merged(self._usage, newer)
        told = (
            counts_told(counts, newer)
            if counts is not None and self._usage is newer
            else usage(self._usage)
        )
        self._assembly.usage(told)

    # --- text ---

    def _append_text(
        self, candidate: Candidate, text: str, kind: type[Message | Reasoning]
    ) -> None:
        """Text that may run on; an empty one says nothing."""
        if not text:
            return
        item = candidate.text_item
        if item is None or type(item.item) is not kind:
            self._close_text(candidate)
            begun = (
                Message("assistant", choice=candidate.index)
                if kind is Message
                else Reasoning(choice=candidate.index)
            )
            item = candidate.text_item = self._assembly.open(begun)
        (self._assembly.text if kind is Message else self._assembly.reasoning)(item, text)

    def _add(self, item: OpenItem, text: str) -> None:
        if type(item.item) is Message:
            self._assembly.text(item, text)
        else:
            self._assembly.reasoning(item, text)

    def _close_text(self, candidate: Candidate) -> None:
        if candidate.text_item is not None:
            self._assembly.close(candidate.text_item)
            candidate.text_item = None

    def _open(self, candidate: Candidate, item: ResponseItem) -> OpenItem:
        """An item that ends the text before it."""
        self._close_text(candidate)
        return self._assembly.open(msgspec.structs.replace(item, choice=candidate.index))

    # --- one method a kind of part ---

    def _text_part(self, candidate: Candidate, part: Object, kind: str) -> None:
        """Signed text, or text with a key beside it, stands alone; all other text runs on."""
        text, thought = as_string(part["text"]), is_true(part, "thought")
        fields = state(part, kind, "thought")
        if not fields:
            self._append_text(candidate, text, Reasoning if thought else Message)
            return
        item = self._open(
            candidate, Reasoning(**fields) if thought else Message("assistant", **fields)
        )
        if not thought:
            item.part(0)
        self._add(item, text)
        self._assembly.close(item)

    def _call_part(self, candidate: Candidate, part: Object, kind: str) -> None:
        self._close_text(candidate)
        candidate.calls.take(part)

    def _media_part(self, candidate: Candidate, part: Object, kind: str) -> None:
        """Bytes or the address of a file. A sketch made while thinking is no answer: it stays as it came."""
        if is_true(part, "thought"):
            self._unknown(candidate, part)
            return
        blob = present(as_object(part[kind]))
        media = media_of(blob)
        fields = state(
            part, kind, "thought", inner=rest(blob, "mimeType", "data", "fileUri", "displayName")
        )
        item = self._open(candidate, Message("assistant", () if media.data else (media,), **fields))
        if media.data:
            self._assembly.media(item, 0, media.media_type, media.data)
            item.fields["content"] = (media,)
        self._assembly.close(item)

    def _code_part(self, candidate: Candidate, part: Object, kind: str) -> None:
        code = present(as_object(part[kind]))
        arguments = msgspec.json.encode(
            {key: value for key, value in code.items() if key != "id"}
        ).decode("utf-8", "replace")
        self._server_call(
            candidate,
            optional(code, "id"),
            "code_execution",
            arguments,
            state(part, kind, named=True),
        )

    def _tool_call_part(self, candidate: Candidate, part: Object, kind: str) -> None:
        call = present(as_object(part[kind]))
        fields = state(part, kind, inner=rest(call, "id", "toolType", "args"), named=True)
        self._server_call(
            candidate,
            optional(call, "id"),
            optional(call, "toolType") or "",
            arguments_of(call),
            fields,
        )

    def _server_call(
        self,
        candidate: Candidate,
        given: str | None,
        name: str,
        arguments: str,
        fields: dict[str, Any],
    ) -> None:
        call_id = given or self._assembly.new_call_id()
        candidate.pending[call_id] = None
        item = self._open(candidate, ServerToolCall(call_id, name, id=given or None, **fields))
        self._assembly.arguments(item, arguments)
        self._assembly.close(item)

    def _code_result_part(self, candidate: Candidate, part: Object, kind: str) -> None:
        result = present(as_object(part[kind]))
        self._server_result(
            candidate,
            optional(result, "id"),
            "code_execution",
            rest(result, "id") or {},
            state(part, kind, named=True),
        )

    def _tool_response_part(self, candidate: Candidate, part: Object, kind: str) -> None:
        result = present(as_object(part[kind]))
        fields = state(part, kind, inner=rest(result, "id", "toolType", "response"), named=True)
        output = as_value(result.get("response", NULL))
        self._server_result(
            candidate, optional(result, "id"), optional(result, "toolType") or "", output, fields
        )

    def _server_result(
        self,
        candidate: Candidate,
        given: str | None,
        name: str,
        output: Any,
        fields: dict[str, Any],
    ) -> None:
        """A result without an id answers the oldest call that has none yet (models before Gemini 3)."""
        call_id = given or next(iter(candidate.pending), None) or self._assembly.new_call_id()
        candidate.pending.pop(call_id, None)
        self._assembly.close(
            self._open(
                candidate, ServerToolResult(call_id, name, output, id=given or None, **fields)
            )
        )

    def _unknown(self, candidate: Candidate, part: Object) -> None:
        """A part as it came, its signature too."""
        payload = {key: as_value(value) for key, value in part.items()}
        kind = next(
            (key for key in payload if key not in {"thought", "thoughtSignature"}),
            "thoughtSignature",
        )
        self._assembly.close(self._open(candidate, Opaque(kind, payload)))

    # --- the end ---

    def _close_items(self) -> None:
        for candidate in self._candidates.values():
            candidate.calls.stop(by_itself=self._finished_choice(candidate).stop_reason == "stop")
        for item in self._assembly.open_items:
            if not self._candidates[item.item.choice].calls.close(item):
                self._assembly.close(item)

    def _ended(self, candidate: Candidate) -> bool:
        return (
            self._name(candidate) != CONTINUATION
            if candidate.reason is not None
            else bool(self._blocked or self._is_body)
        )

    def _name(self, candidate: Candidate) -> str | None:
        reason = candidate.reason
        if not isinstance(reason, int):
            return reason
        vertex = self._create_time is not None or "trafficType" in self._usage
        return (FINISH_NUMBERS_VERTEX if vertex else FINISH_NUMBERS).get(reason, str(reason))

    def _finished_choice(self, candidate: Candidate) -> FinishedChoice:
        name = self._name(candidate)
        if name is None and self._blocked:
            return FinishedChoice(candidate.index, "content_filter", self._blocked)
        stop_reason = STOP_REASONS.get(name or "", "other")
        return FinishedChoice(
            candidate.index,
            "tool_calls" if stop_reason == "stop" and candidate.calls.any_whole else stop_reason,
            name,
        )

    PARTS: ClassVar[dict[str, Callable[[Machine, Candidate, Object, str], None]]] = {
        "text": _text_part,
        "functionCall": _call_part,
        "inlineData": _media_part,
        "fileData": _media_part,
        "executableCode": _code_part,
        "codeExecutionResult": _code_result_part,
        "toolCall": _tool_call_part,
        "toolResponse": _tool_response_part,
    }
    """What a part can hold, by its key. A part with none of them is an Opaque."""


TYPED: Final = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId"})
RESPONSE_KEYS: Final = frozenset(
    {"candidates", "promptFeedback", "responseId", "modelVersion", "error"}
)
"""A body with none of them is no GenerateContentResponse."""

# --- whole bodies ---


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A whole response, or an array of a stream's chunks; error bodies likewise. A whole response needs no finishReason."""
    value = decode_any(body)
    chunks = value if isinstance(value, list) else [value]
    if not chunks or not all(
        isinstance(chunk, dict) and chunk.keys() & RESPONSE_KEYS for chunk in chunks
    ):
        raise malformed("the body is not a GenerateContentResponse", body)
    yield None, body
    if not isinstance(value, list):
        yield _END_OF_BODY, b""
