"""OpenAI Responses: named SSE events (or WebSocket messages), items by output_index. Items themselves: `responses_items`.

What the wire promises (event types of OpenAI's Python SDK 3.54; docs/wires/responses.md lists all of them):

    response.created, response.in_progress       id, model, the request's echo   -> Created, ResponseMetadata
      response.output_item.added              0  {"type":"message",…}            -> OutputItemAdded
      response.content_part.added             0
      response.output_text.delta              0  "Hi"                            -> OutputTextDelta
      response.output_text.done               0  the part whole                  -> the tail that no delta brought
      response.output_item.done               0  the item whole, authoritative   -> OutputItemDone
    response.completed                           usage, all items once more      -> Completed, at once

`.done` means done, whatever the item's `status` says. An event belongs to the item with its output_index (Copilot changes every id
in every event), else with its item_id (llama.cpp sends no index), else to the item that began last. Items that the last event
alone tells of are given there, compared by place and type. A text that a delta has brought is never given again.

Held back: half an emoji; a call that was added without a name, until its `.done`; arguments that are a JSON value (`action`),
until their `.done`. `error` ends the stream at once: the `response.failed` that usually follows says the same, a WebSocket
sends none, and waiting for it would turn a known error into a stall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from streamlib_parsers.assembler import Emit, EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.framing.sse import SSEFraming as framing  # noqa: N813  # the name every wire gives its framing
from streamlib_parsers.items import CustomToolCall, FunctionCall, Message, Reasoning, ServerToolCall
from streamlib_parsers.json_text import SurrogateJoiner, decode_any, mark_surrogates
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.rate_limits import read_in_band
from streamlib_parsers.usage import Usage, count, overlay
from streamlib_parsers.wires.responses.events import (
    AUDIO,
    END,
    KEEPALIVES,
    PART,
    PARTS,
    PASSED_THROUGH,
    PROGRESS,
    RESPONSE,
    STATUS_RANK,
    TEXT_DONE_FIELDS,
    TYPED_KEYS,
    UNANSWERED,
    ArgumentsDelta,
    CodeDelta,
    CustomInputDelta,
    Delta,
    End,
    ItemAdded,
    ItemDone,
    ItemEvent,
    McpArgumentsDelta,
    OutputOf,
    ReasoningTextDelta,
    RefusalDelta,
    SummaryDelta,
    TextDelta,
    decode,
    index_of,
    name_of,
    response_items,
    word,
)
from streamlib_parsers.wires.responses.output import OutputItems

__all__ = ["EVENT_KINDS", "Machine", "body_frames", "framing", "usage"]

GROWING: Final = (Message, Reasoning, FunctionCall, CustomToolCall, ServerToolCall)
CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall)


class Machine:
    """Reads the events of one response."""

    def __init__(self, assembly: EventAssembler) -> None:
        self.complete = False
        self._assembly = assembly
        self._output = OutputItems(assembly)
        self._slots = self._output.slots
        self._by_index = self._slots.by_index
        self._announced: dict[int, int] = {}
        self._part_positions: dict[int, dict[int, int]] = {}
        self._reported_keys: set[str] = set()
        self._usage: dict[str, Any] = {}
        self._status: str | None = None

    def frame(self, event: str | None, data: bytes) -> None:
        """One event."""
        try:
            message = decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._read_slow(event, data)
        else:
            FAST_HANDLERS[type(message)](self, message, data)

    def end(self) -> None:
        """Complete only by `response.completed` or `response.incomplete`, and then at once."""
        raise truncated(
            "the stream ended before response.completed",
            {"status": self._status} if self._status else None,
        )

    # --- items ---

    def _on_added(self, message: ItemAdded, data: bytes) -> None:
        self._output.added(message, data)

    def _on_done(self, message: ItemDone, data: bytes) -> None:
        self._output.done(message, data)

    # --- deltas ---

    def _on_text(self, message: TextDelta, data: bytes) -> None:
        item = self._by_index.get(message.output_index)
        if item is None or type(item.item) is not Message:
            item = self._item_for_delta(message, (Message,), Message("assistant"), data)
        if item is not None:
            part, logprobs = message.content_index, message.logprobs
            if self._part_positions or part not in item.parts:
                part = self._part(item, part)
            self._assembly.text(item, message.delta, part, _tokens(logprobs) if logprobs else None)

    def _on_arguments(self, message: ArgumentsDelta, data: bytes) -> None:
        item = self._by_index.get(message.output_index)
        if item is None or type(item.item) not in CALLS:
            item = self._item_for_delta(message, CALLS, None, data)
        if item is not None:
            self._assembly.arguments(item, message.delta)

    def _on_summary(self, message: SummaryDelta, data: bytes) -> None:
        item = self._by_index.get(message.output_index)
        if item is None or type(item.item) is not Reasoning:
            item = self._item_for_delta(message, (Reasoning,), Reasoning(), data)
        if item is not None:
            self._assembly.summary(item, message.delta, message.summary_index)

    def _on_reasoning(self, message: ReasoningTextDelta, data: bytes) -> None:
        """vLLM until 2026 counts content_index up with every delta: the part is the one that was last announced."""
        item = self._item_for_delta(message, (Reasoning,), Reasoning(), data)
        if item is not None:
            self._assembly.reasoning(item, message.delta, self._announced.get(item.index, 0))

    def _on_refusal(self, message: RefusalDelta, data: bytes) -> None:
        item = self._item_for_delta(message, (Message,), Message("assistant"), data)
        if item is not None:
            self._assembly.refusal(item, message.delta, self._part(item, message.content_index))

    def _part(self, item: OpenItem, wire_index: int) -> int:
        """The part's place in `item.content`, counted as parts come: vLLM begins messages with content_index 1."""
        places = self._part_positions.get(item.index)
        if places is None:
            if wire_index in item.parts or wire_index == len(item.parts):
                return wire_index
            places = self._part_positions[item.index] = {place: place for place in item.parts}
        return places.setdefault(wire_index, len(places))

    def _item_for_delta(
        self,
        message: Delta,
        kinds: tuple[type, ...],
        begin: Message | Reasoning | None,
        data: bytes,
    ) -> OpenItem | None:
        """The item that takes this delta. Where there is none the delta is passed through; a typed item of another kind is spoiled."""
        found = self._slots.find(message.output_index, message.item_id)
        if found is None and begin is not None:
            found = self._output.placeholder(begin, message)
        if found is not None and type(found.item) in kinds:
            return found
        kind = name_of(message)
        self._assembly.passthrough(kind, decode_any(data))
        if (
            found is not None
            and type(found.item) in GROWING
            and self._slots.is_addressed(message.output_index, message.item_id)
        ):
            self._assembly.mark_incomplete(found, f"{kind} on {type(found.item).__name__}")
        return None

    # --- what the decoder of the frequent kinds refused ---

    def _read_slow(self, event: str | None, data: bytes) -> None:
        if data.lstrip()[:6].upper() == b"[DONE]":
            return
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            data = mark_surrogates(data) or data
            value = decode_any(data)
            self._assembly.surrogates = self._assembly.surrogates or SurrogateJoiner()
        if not isinstance(value, dict):
            raise malformed("an event is not a JSON object", data)
        kind = value.get("type") or event
        kind = kind if isinstance(kind, str) else ""
        if kind in EVENTS:
            EVENTS[kind](self, kind, value, data)
        elif kind in FAST_KINDS:
            self._apply_lenient(kind, value, data)
        elif value.get("error") and not kind.startswith("response."):
            raise ParseFailure(classify(None, value))
        else:
            self._assembly.passthrough(kind, value)

    def _apply_lenient(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """A frequent kind in an unusual dress: repaired text, a float index, a null, its type only in the event line."""
        if "delta" in value and not isinstance(value["delta"], str):
            self._assembly.passthrough(kind, value)
            return
        fields: dict[str, Any] = {
            key: raw
            for key, raw in msgspec.json.decode(data, type=dict[str, Raw]).items()
            if value[key] is not None
        }
        whole = {
            key: int(one)
            for key, one in value.items()
            if isinstance(one, float) and one.is_integer()
        }
        try:
            message = decode(msgspec.json.encode({**fields, **whole, "type": kind}))
        except msgspec.ValidationError as error:
            raise malformed(f"{kind}: {error}", data) from None
        FAST_HANDLERS[type(message)](self, message, data)

    # --- parts, and texts that are whole ---

    def _find(self, value: dict[str, Any]) -> OpenItem | None:
        return self._slots.find(index_of(value, "output_index"), word(value.get("item_id")))

    def _on_part(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        part = value.get("part")
        verb, field = (
            PARTS.get(word(part.get("type")) or "", ("", ""))
            if isinstance(part, dict)
            else ("", "")
        )
        item = self._find(value)
        if (
            not isinstance(part, dict)
            or not verb
            or item is None
            or type(item.item) not in TEXT_FIELDS[verb].kinds
        ):
            self._pass_unmatched(kind, value)
            return
        if verb == "reasoning":
            self._announced[item.index] = self._part(item, index_of(value, "content_index") or 0)
        self._tail(item, verb, value, part.get(field))
        self._slots.slot(item).finished |= kind.endswith(".done")

    def _on_whole(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        verb, field = TEXT_DONE_FIELDS[kind]
        item = self._find(value)
        if item is None or type(item.item) not in TEXT_FIELDS[verb].kinds:
            self._pass_unmatched(kind, value)
            return
        self._tail(item, verb, value, value.get(field))
        self._slots.slot(item).finished = True

    def _tail(self, item: OpenItem, verb: str, value: dict[str, Any], whole: Any) -> None:
        """Gives what no delta brought. Where `whole` does not continue them, the item's own `.done` decides."""
        if not isinstance(whole, str) or self._assembly.surrogates is not None:
            return
        part = self._place(item, verb, value)
        fragments = TEXT_FIELDS[verb].fragments(item, part)
        said = "".join(fragments)
        fragments[:] = [said] if said else []  # joined once, however often it is asked for
        if len(whole) > len(said) and whole.startswith(said):
            TEXT_FIELDS[verb].emit(self._assembly, item, whole[len(said) :], part)

    def _place(self, item: OpenItem, verb: str, value: dict[str, Any]) -> int:
        if verb == "reasoning":
            return self._announced.get(item.index, 0)
        if verb == "summary":
            return index_of(value, "summary_index") or 0
        return self._part(item, index_of(value, "content_index") or 0) if verb != "arguments" else 0

    def _pass_unmatched(self, kind: str, value: dict[str, Any]) -> None:
        """About an item that is done, or about none: a `.done` tells nothing new, everything else is passed through."""
        done = self._slots.is_done(index_of(value, "output_index"), word(value.get("item_id")))
        if not (done and kind.endswith(".done")):
            self._assembly.passthrough(kind, value)

    def _on_annotation(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        item, annotation = self._find(value), value.get("annotation")
        if item is None or type(item.item) is not Message or not isinstance(annotation, dict):
            self._assembly.passthrough(kind, value)
        else:
            self._assembly.annotation(
                item, annotation, self._part(item, index_of(value, "content_index") or 0)
            )

    # --- hosted tools, images, audio ---

    def _on_progress(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        item = self._find(value)
        if item is None:
            self._assembly.passthrough(kind, value)
        else:
            self._assembly.progress(item, kind.rsplit(".", 1)[1])

    def _on_image(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """Every partial image is a whole one; the next replaces it, so none is kept."""
        item, image = self._find(value), value.get("partial_image_b64")
        if item is None or type(item.item) is not ServerToolCall or not isinstance(image, str):
            self._assembly.passthrough(kind, value)
            return
        self._assembly.media(
            item,
            index_of(value, "partial_image_index") or 0,
            f"image/{value.get('output_format') or 'png'}",
            image,
        )
        item.parts.clear()

    def _on_audio(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """These events name no item: they are the newest message's."""
        item, delta = self._find(value), value.get("delta")
        if item is None or type(item.item) is not Message:
            item = self._output.placeholder(Message("assistant"), ItemEvent())
        if item is not None and kind.endswith(".done"):
            self._slots.slot(item).finished = True
        elif item is not None and isinstance(delta, str):
            said = {"transcript" if "transcript" in kind else "data": delta}
            self._assembly.media(
                item, self._part(item, index_of(value, "content_index") or 0), None, **said
            )
        else:
            self._assembly.passthrough(kind, value)

    def _on_passed(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        self._assembly.passthrough(kind, value)

    # --- the response ---

    def _on_response(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        response = value.get("response")
        if isinstance(response, dict):
            self._envelope(value, response)
        else:
            self._assembly.passthrough(kind, value)

    def _envelope(self, value: dict[str, Any], response: dict[str, Any]) -> None:
        self._assembly.identify(word(response.get("id")), word(response.get("model")))
        self._status = word(response.get("status")) or self._status
        beside = {
            key: one
            for key, one in value.items()
            if key not in ("type", "response", "sequence_number")
        }
        self._metadata(
            {key: one for key, one in response.items() if key not in TYPED_KEYS} | beside
        )
        raw = response.get("usage")
        if isinstance(raw, dict):
            self._usage = overlay(self._usage, raw)
            self._assembly.usage(usage(self._usage))

    def _metadata(self, values: dict[str, Any]) -> None:
        """Only what says something: nothing that is null or empty, unless it said more before."""
        telling = {
            key: one
            for key, one in values.items()
            if key in self._reported_keys or one not in (None, "", [], {})
        }
        self._reported_keys.update(telling)
        self._assembly.metadata(telling)

    def _on_metadata(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """The ChatGPT backend's own: `metadata` holds keys beside those of the response."""
        inner = value.get("metadata")
        headers = {"headers": value["headers"]} if "headers" in value else {}
        self._metadata({**(inner if isinstance(inner, dict) else {}), **headers})

    def _on_rate_limits(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        limits = read_in_band(value)
        if limits is None:
            self._assembly.passthrough(kind, value)
        else:
            self._assembly.rate_limits(limits)

    def _on_keepalive(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """Liveness, not progress."""

    def _on_error(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        status = value.get("status") or value.get("status_code")
        raise ParseFailure(classify(status if isinstance(status, int) else None, value))

    def _on_end(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """The event decides; the response's own `status` only where it is worse (`incomplete` in `response.completed`)."""
        response = value["response"] if isinstance(value.get("response"), dict) else {}
        said, ended = response.get("status"), kind.removeprefix("response.")
        worse = (
            said in STATUS_RANK
            and ended in STATUS_RANK
            and STATUS_RANK.index(said) > STATUS_RANK.index(ended)
        )
        self._envelope(value, response)
        self._finish(str(said) if worse else ended, response, response_items(data, End))

    def _on_body(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """A whole body. A status that is none of the wire's is an end too: the body is whole."""
        self._envelope({}, value)
        status = word(value.get("status")) or ("failed" if value.get("error") else "")
        self._finish(status, value, response_items(data, OutputOf))

    def _finish(self, status: str, response: dict[str, Any], items: list[Raw]) -> None:
        self._output.add_missing_items(items, whole=status not in (*STATUS_RANK[1:], *UNANSWERED))
        self._assembly.response_id = (
            word(response.get("id")) or self._assembly.response_id
        )  # Copilot: another one in every event
        if status == "failed":
            raise ParseFailure(
                classify(
                    None,
                    {
                        "error": response.get("error")
                        or {"message": "the response failed, no reason given"}
                    },
                )
            )
        if status in UNANSWERED:
            raise truncated(f"the response is {status}", {"status": status})
        self.complete = True
        self._assembly.complete(
            *self._output.stop_reason(status, response.get("incomplete_details"))
        )


# --- tables ---

FAST_HANDLERS: Final[dict[type[ItemEvent], Callable[..., None]]] = {
    TextDelta: Machine._on_text,
    ArgumentsDelta: Machine._on_arguments,
    SummaryDelta: Machine._on_summary,
    ReasoningTextDelta: Machine._on_reasoning,
    RefusalDelta: Machine._on_refusal,
    CustomInputDelta: Machine._on_arguments,
    CodeDelta: Machine._on_arguments,
    McpArgumentsDelta: Machine._on_arguments,
    ItemAdded: Machine._on_added,
    ItemDone: Machine._on_done,
}
FAST_KINDS: Final = frozenset(name_of(kind) for kind in FAST_HANDLERS)


def _tokens(logprobs: Any) -> list[dict[str, Any]] | None:
    """One object a token; anything else is none."""
    return (
        logprobs
        if isinstance(logprobs, list) and all(isinstance(token, dict) for token in logprobs)
        else None
    )


def _part_fragments(item: OpenItem, part: int) -> list[str]:
    return item.part(part).fragments


def _refused_fragments(item: OpenItem, part: int) -> list[str]:
    return item.part(part).refusal_fragments


def _summary_fragments(item: OpenItem, part: int) -> list[str]:
    return item.summary.setdefault(part, [])


def _argument_fragments(item: OpenItem, part: int) -> list[str]:
    return item.arguments


def _emit_arguments(assembly: EventAssembler, item: OpenItem, delta: str, part: int) -> None:
    assembly.arguments(item, delta)


class TextField(NamedTuple):
    """How one kind of text grows, in which items, and where its fragments are."""

    kinds: tuple[type, ...]
    emit: Emit
    fragments: Callable[[OpenItem, int], list[str]]


TEXT_FIELDS: Final[dict[str, TextField]] = {
    "text": TextField((Message,), EventAssembler.text, _part_fragments),
    "refusal": TextField((Message,), EventAssembler.refusal, _refused_fragments),
    "reasoning": TextField((Reasoning,), EventAssembler.reasoning, _part_fragments),
    "summary": TextField((Reasoning,), EventAssembler.summary, _summary_fragments),
    "arguments": TextField(CALLS, _emit_arguments, _argument_fragments),
}


EVENTS: Final[dict[str, Callable[[Machine, str, dict[str, Any], bytes], None]]] = {
    **dict.fromkeys(RESPONSE, Machine._on_response),
    **dict.fromkeys(END, Machine._on_end),
    "body": Machine._on_body,
    "error": Machine._on_error,
    **dict.fromkeys(PART, Machine._on_part),
    **dict.fromkeys(TEXT_DONE_FIELDS, Machine._on_whole),
    "response.output_text.annotation.added": Machine._on_annotation,
    **dict.fromkeys(PROGRESS, Machine._on_progress),
    "response.image_generation_call.partial_image": Machine._on_image,
    **dict.fromkeys(AUDIO, Machine._on_audio),
    **dict.fromkeys(PASSED_THROUGH, Machine._on_passed),
    "response.metadata": Machine._on_metadata,
    "codex.rate_limits": Machine._on_rate_limits,
    **dict.fromkeys(KEEPALIVES, Machine._on_keepalive),
}
"""Every kind that is not frequent, by name."""

EVENT_KINDS: Final = FAST_KINDS | frozenset(EVENTS)


def usage(raw: dict[str, Any]) -> Usage:
    """OpenAI counts inclusively already: input with cache reads and writes, output with reasoning."""
    return Usage(
        input_tokens=count(raw, "input_tokens", "prompt_tokens"),
        output_tokens=count(raw, "output_tokens", "completion_tokens"),
        cache_read_input_tokens=count(raw, "input_tokens_details.cached_tokens"),
        cache_write_input_tokens=count(raw, "input_tokens_details.cache_write_tokens"),
        reasoning_output_tokens=count(raw, "output_tokens_details.reasoning_tokens"),
        input_modalities=_modalities(raw, "input_tokens_details"),
        output_modalities=_modalities(raw, "output_tokens_details"),
        raw=raw,
    )


def _modalities(raw: dict[str, Any], details: str) -> dict[str, int]:
    told = ((kind, count(raw, f"{details}.{kind}_tokens")) for kind in ("text", "image", "audio"))
    return {kind: number for kind, number in told if number is not None}


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A whole response as one frame, `body`; an error that looks like the stream's event as that event."""
    value = decode_any(body)
    if not isinstance(value, dict) or (value.get("type") != "error" and "output" not in value):
        raise malformed("the body is not a Response", body)
    yield "body", body
