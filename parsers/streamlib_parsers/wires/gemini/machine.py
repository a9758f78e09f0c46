"""Gemini generateContent (Developer API and Vertex AI): each message brings a few more parts.

The wire, by Google's generative_service.proto and content.proto, and google-genai 3.4's types:

    data: {"candidates":[{"content":{"parts":[{"text":"I think","thought":true}]},"index":0}],
           "usageMetadata":{…},"responseId":"r"}
    data: {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}          parts are increments
    data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}},
           "thoughtSignature":"…"}]}}]}                                    a call comes complete
    data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"…"}]},
           "finishReason":"STOP"}]}

Each message is a complete `GenerateContentResponse`; without `alt=sse` they are the elements of one
JSON array. There are no event names, no index of parts and no terminal message: at the end of input
the response is complete only if the last `finishReason` of every candidate seen is another than
CONTINUATION, or the prompt was blocked. `Completed` therefore waits for the end of input.

`candidate.py` decides which parts become one item. Function calls stay open to the end, because a
part with the id of an earlier call repeats it; a call without an id is always a new one. Vertex may
stream a call's arguments (`partialArgs`), which are emitted as the JSON text they stand for.
Buffered: half a surrogate pair, and what a streamed call adds out of order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Raw
from msgspec.json import encode

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, generation_failed, malformed, truncated
from streamlib_parsers.events import FinishedChoice, StopReason

# `framing` is the name that every wire gives its framing.
from streamlib_parsers.framing.sse_or_json import SSEOrJsonFraming as framing  # noqa: N813
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any
from streamlib_parsers.wires.gemini.candidate import Candidate
from streamlib_parsers.wires.gemini.chunks import Chunk, decode_chunk
from streamlib_parsers.wires.gemini.parts import (
    NULL,
    Object,
    as_object,
    as_objects,
    as_value,
    index_of,
    optional,
    present,
    reason_of,
)
from streamlib_parsers.wires.gemini.stop_reasons import (
    BLOCK_NUMBERS,
    CONTINUATION,
    FAILURE_REASONS,
    FINISH_NUMBERS,
    FINISH_NUMBERS_VERTEX,
    STOP_REASONS,
)
from streamlib_parsers.wires.gemini.token_counts import Reports, as_report

__all__ = ["Machine", "body_frames", "framing"]

_END_OF_BODY: Final = "end of body"
"""The frame that `body_frames` ends with; recognised by identity, so that no stream can send it."""

CHUNK_KEYS: Final = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId"})
"""Keys of a chunk that are read. Every other key is metadata."""

CANDIDATE_KEYS: Final = frozenset({"index", "content", "finishReason"})
REPORTED: Final = ("finishMessage", "groundingMetadata")
"""Keys of a candidate that are metadata, and sent often."""

CONTENT_KEYS: Final = frozenset({"role", "parts"})

RESPONSE_KEYS: Final = frozenset(
    {"candidates", "promptFeedback", "responseId", "modelVersion", "error"}
)
"""A body with none of them is not a GenerateContentResponse."""


class Machine:
    """Reads the chunks of one stream."""

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        self._candidates: dict[int, Candidate] = {}
        """Every candidate seen, by its index, of which there are few (`Index`). One that has ended
        stays: `Completed` has the reasons of all."""
        self._reports = Reports()
        """The usage reports of all chunks."""
        self._identified = False
        """Whether id and model are known, so that later ones are ignored."""
        self._create_time: str | None = None
        """The last `createTime`, which only Vertex sends; one that is repeated is not reported
        again."""
        self._blocked: str | None = None
        """The last `promptFeedback.blockReason`, by name."""
        self._is_body = False
        """A complete body was read; set at its end."""

    @property
    def complete(self) -> bool:
        """Whether every candidate seen has ended, or the prompt was blocked.

        A later chunk may still add to the response.
        """
        if not self._candidates:
            return self._is_body or bool(self._blocked)
        for candidate in self._candidates.values():
            if not self._has_ended(candidate):
                return False
        return True

    def frame(self, event: str | None, data: bytes) -> None:
        """Read one chunk."""
        try:
            chunk = decode_chunk(data)
        except DECODE_ERRORS:
            # A chunk with any other key, the end of a body, or no JSON at all.
            self._read_untyped(event, data)
            return
        try:
            self._read_typed(chunk)
        except DECODE_ERRORS as error:
            raise malformed(f"not a GenerateContentResponse: {error}", data) from None

    # --- chunks ---

    def _ends_before(self, response_id: str | None) -> bool:
        """Completes the response where a chunk of another one follows, which is not read.

        Two captures in one file; a chunk with another id amid a response still belongs to it.
        """
        known_id = self._assembler.response_id
        if not response_id or not known_id or response_id == known_id or not self.complete:
            return False
        self._assembler.notice(
            "second_response", "a chunk with another responseId follows: not read"
        )
        self.end()
        return True

    def _read_typed(self, chunk: Chunk) -> None:
        """Read a chunk of the usual shape."""
        assembler = self._assembler
        is_other = chunk.responseId != assembler.response_id
        if is_other and self._ends_before(chunk.responseId):
            return
        if not self._identified:
            assembler.identify(chunk.responseId, chunk.modelVersion)
            self._identified = bool(assembler.response_id and assembler.model)
        typed = chunk.candidates[0]
        candidate = self._candidates.get(typed.index) or self._add_candidate(typed.index)
        if typed.content is not None:
            for part in typed.content.parts or ():
                if not candidate.read(part):
                    # Before its values are decoded one by one.
                    raw = assembler.mark_surrogates(encode(part))
                    candidate.read_part(present(as_object(raw)))
        # 0 and "" mean none: serialisers write them for an enum that is not set.
        candidate.reason = typed.finishReason or candidate.reason
        if typed.finishMessage is not None or typed.groundingMetadata is not None:
            prefix = f"candidates[{typed.index}]." if typed.index else ""
            metadata = {prefix + name: getattr(typed, name) for name in REPORTED}
            self._assembler.other_metadata(metadata, frozenset())
        if chunk.createTime is not None and chunk.createTime != self._create_time:
            self._read_envelope({"createTime": chunk.createTime})
        if chunk.usageMetadata is not None:
            assembler.usage(self._reports.read(chunk.usageMetadata))

    def _read_untyped(self, event: str | None, data: bytes) -> None:
        if event is _END_OF_BODY:
            self._is_body = True
        elif data.strip().lower() != b"[done]":  # some proxies add it
            # Before any part is read: their values are decoded one by one.
            self._read_json(self._assembler.mark_surrogates(data))

    def _read_json(self, data: bytes) -> None:
        try:
            # A body may be an array of chunks, and errors come in a list of one.
            if data.lstrip().startswith(b"["):
                for chunk in as_objects(data):
                    self._read_chunk(present(chunk))
                    if self._assembler.ended:
                        return
            else:
                self._read_chunk(present(as_object(data)))
        except DECODE_ERRORS as error:
            raise malformed(f"not a GenerateContentResponse: {error}", data) from None

    def _read_chunk(self, chunk: Object) -> None:
        """Read a chunk of any shape, key by key."""
        if "error" in chunk:
            error = {key: as_value(value) for key, value in chunk.items()}
            raise ParseFailure(classify(None, error))
        response_id = optional(chunk, "responseId")
        if self._ends_before(response_id):
            return
        # Before the candidates, whose first item would emit `Created` without an id.
        self._assembler.identify(response_id, optional(chunk, "modelVersion"))
        for position, candidate in enumerate(as_objects(chunk.get("candidates", b"[]"))):
            self._read_candidate(position, present(candidate))
        if "promptFeedback" in chunk:
            self._read_feedback(as_object(chunk["promptFeedback"]))
        self._read_envelope(
            {key: as_value(value) for key, value in chunk.items() if key not in CHUNK_KEYS}
        )
        if "usageMetadata" in chunk:
            self._read_counts(chunk["usageMetadata"])

    def _read_candidate(self, position: int, values: Object) -> None:
        # The wire leaves out zeros, so candidate 0 has no index; mock servers leave out every one.
        index = index_of(values.get("index", Raw(b"%d" % position)))
        candidate = self._candidates.get(index) or self._add_candidate(index)
        content = as_object(values.get("content", b"{}"))
        parts = content.get("parts", NULL)
        if parts != NULL:
            for part in as_objects(parts):
                candidate.read_part(present(part))
        candidate.reason = reason_of(values, "finishReason") or candidate.reason

        prefix = f"candidates[{index}]." if index else ""
        metadata: dict[str, Any] = {}
        for key, value in values.items():
            if key not in CANDIDATE_KEYS:
                metadata[prefix + key] = as_value(value)
        for key, value in content.items():
            if key not in CONTENT_KEYS:
                metadata[f"{prefix}content.{key}"] = as_value(value)
        self._assembler.metadata(metadata)

    def _add_candidate(self, index: int) -> Candidate:
        candidate = Candidate(self._assembler, index)
        self._candidates[index] = candidate
        return candidate

    # --- the envelope ---

    def _read_feedback(self, feedback: Object) -> None:
        reason = reason_of(feedback, "blockReason")
        if not reason:
            return
        if isinstance(reason, int):
            reason = BLOCK_NUMBERS.get(reason, str(reason))
        self._blocked = reason

    def _read_envelope(self, values: dict[str, Any]) -> None:
        create_time = values.get("createTime")
        if isinstance(create_time, str):
            self._create_time = create_time
        self._assembler.metadata(values)

    def _read_counts(self, raw: Raw) -> None:
        try:
            report = as_report(raw)
        except DECODE_ERRORS:
            # A usage of a wrong shape must not cost the response.
            self._assembler.passthrough("usageMetadata", decode_any(bytes(raw)))
            return
        self._assembler.usage(self._reports.read(report))

    # --- the end ---

    def end(self) -> None:
        """End of input: complete only if every candidate has ended, or the prompt was blocked."""
        if not self.complete:
            raise self._truncated_error()
        for candidate in self._candidates.values():
            self._check_reason(self._reason_name(candidate))
        self._close_items()
        if not self._candidates:  # a blocked prompt has none
            self._add_candidate(0)
        finished = [
            self._finished_choice(self._candidates[index]) for index in sorted(self._candidates)
        ]
        first = finished[0]
        self._assembler.complete(first.stop_reason, first.native_stop_reason, None, finished)

    def _check_reason(self, reason: str | None) -> None:
        """Reports an unknown finish reason.

        Raises:
            ParseFailure: the reason means that the generation failed.
        """
        if reason is None or reason in STOP_REASONS:
            return
        if reason in FAILURE_REASONS:
            raise generation_failed(reason)
        self._assembler.notice("unknown_finish_reason", reason)

    def _truncated_error(self) -> ParseFailure:
        reasons = [
            self._reason_name(candidate)
            for candidate in self._candidates.values()
            if candidate.reason is not None
        ]
        detail = {"finish_reasons": reasons} if reasons else None
        return truncated("the stream ended before a finishReason", detail)

    def _close_items(self) -> None:
        for candidate in self._candidates.values():
            if candidate.calls.is_streaming:
                by_model = self._finished_choice(candidate).stop_reason == "stop"
                candidate.calls.stop(by_model=by_model)
        # In order of start, over all candidates: text that is still open is among them.
        for item in self._assembler.open_items:
            calls = self._candidates[item.item.choice].calls
            if not calls.close(item):
                self._assembler.close(item)

    def _has_ended(self, candidate: Candidate) -> bool:
        if candidate.reason is None:
            return self._is_body or bool(self._blocked)
        return self._reason_name(candidate) != CONTINUATION

    def _reason_name(self, candidate: Candidate) -> str | None:
        reason = candidate.reason
        if not isinstance(reason, int):
            return reason
        is_vertex = self._create_time is not None or "trafficType" in self._reports.merged
        names = FINISH_NUMBERS_VERTEX if is_vertex else FINISH_NUMBERS
        return names.get(reason, str(reason))

    def _finished_choice(self, candidate: Candidate) -> FinishedChoice:
        name = self._reason_name(candidate)
        # A blocked prompt has no candidate with a reason of its own.
        if name is None and self._blocked:
            return FinishedChoice(candidate.index, "content_filter", self._blocked)
        reason: StopReason = STOP_REASONS.get(name or "", "other")
        if reason == "stop" and candidate.calls.any_completed:
            reason = "tool_calls"
        return FinishedChoice(candidate.index, reason, name)


# --- complete bodies ---


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """The chunks of a body: a complete response, an array of a stream's chunks, or an error.

    A complete response needs no `finishReason`.
    """
    value = decode_any(body)
    chunks = value if isinstance(value, list) else [value]
    if not chunks or not all(map(_is_response, chunks)):
        raise malformed("the body is not a GenerateContentResponse", body)
    yield None, body
    if not isinstance(value, list):
        yield _END_OF_BODY, b""


def _is_response(value: Any) -> bool:
    return isinstance(value, dict) and not RESPONSE_KEYS.isdisjoint(value)
