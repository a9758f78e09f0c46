"""OpenAI Chat Completions and its many dialects: chunks of choices, `data: [DONE]` at the end.

What the wire promises (OpenAI's schema; recordings of some thirty servers that claim it):

    {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}     -> Created
    {…"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}                      -> OutputItemAdded, OutputTextDelta
    {…"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{…}}]}}]}  `chat_calls`
    {…"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}                            the choice is whole
    {…"choices":[],"usage":{…}}                                                                   -> TokenCount
    [DONE]                                                                                        -> items done, Completed

The dialects add other names for the thought, usage anywhere, `message` for `delta`, wrappers, errors under status 200; they leave
out `[DONE]`, `index`, `finish_reason`. Three ways lead to the same verbs: a chunk like the one before but for its text is not even
decoded whole, one of the usual shape is decoded into structs (`chat_usual`), any other is read from a dict (`chat_delta`).

Held back: the end of every item that may still grow (see `chat_calls` and `chat_answer`), and `Completed` until `[DONE]` or the
end of input: usage comes after the finish, and so does content, from some servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, limit_exceeded, malformed, truncated
from streamlib_parsers.events import FinishedChoice, StopReason
from streamlib_parsers.framing.sse import SSEFraming as framing  # noqa: N813  # the name every wire gives its framing
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import SurrogateJoiner, decode_any, mark_surrogates
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage, count, overlay, total
from streamlib_parsers.wires.chat.calls import MOST_INDEX
from streamlib_parsers.wires.chat.choice import REASONING, REFUSAL, TEXT, ChoiceAssembler
from streamlib_parsers.wires.chat.delta import (
    EMPTY,
    RawArguments,
    failure_of,
    index_of,
    logprobs_of,
    read_calls,
    read_delta,
    unknown_keys,
    unwrapped,
)
from streamlib_parsers.wires.chat.fast_path import (
    Choice,
    Chunk,
    LearnBackoff,
    Template,
    ToolCall,
    decode_chunk,
    decode_text,
    template,
    text_key_of,
    unpadded,
)

__all__ = ["STOP_REASONS", "Machine", "body_frames", "framing", "usage"]

STOP_REASONS: Final[dict[str, StopReason]] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
    "error": "other",
    "abort": "other",
    "network_error": "other",
    "insufficient_system_resource": "other",
    "repetition_truncation": "other",
}
"""In small letters. A word that is not here is `other` too, with a Notice."""

BODY_EVENT: Final = "chat.completion"
"""The event name under which `body_frames` hands a whole body over. No server names its events so."""

DONE: Final = b"[done]"

CHUNK_KEYS: Final = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "obfuscation", "p"}
)
"""Keys of a chunk that are read, or padding. Every other key is metadata."""

CHOICE_KEYS: Final = frozenset(
    {"index", "delta", "message", "finish_reason", "usage", "logprobs", "text", "error"}
)
"""Keys of a choice that are read, or repeat the delta (`text`). Every other key is metadata."""


class Machine:
    """Reads the chunks of one stream."""

    def __init__(self, assembly: EventAssembler) -> None:
        self._assembly = assembly
        self._choices: dict[int, ChoiceAssembler] = {}
        self._usage: dict[str, Any] = {}
        self._constants: tuple[str | None, ...] = (None, None, None)
        self._is_body = False
        self._named = False
        self._template: Template | None = None
        self._patience = LearnBackoff()
        self._learned = 0
        assembly.before_close = self._flush

    @property
    def complete(self) -> bool:
        """Every choice seen has its finish_reason."""
        return bool(self._choices) and all(
            answer.finish is not None for answer in self._choices.values()
        )

    def frame(self, event: str | None, data: bytes) -> None:
        """One event."""
        if self._template is not None and event is None:
            head, tail, start, stop, say, item, padded = self._template
            bare = unpadded(data) if padded else data
            if bare.startswith(head) and bare.endswith(tail):
                try:
                    text = decode_text(bare[start:stop])
                except (msgspec.DecodeError, UnicodeError):
                    pass  # the gap holds more than one string
                else:
                    say(item, text)
                    return
        self._read(event, data)

    def _read(self, event: str | None, data: bytes) -> None:
        """An event that no template fits."""
        if self._template is not None:
            self._template = None
            self._patience.missed(self._assembly.event_count - self._learned)
        if event is not None and self._handle_named_event(event, data):
            return
        try:
            chunk = decode_chunk(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._read_untyped(event, data)
        else:
            self._read_typed(chunk)
            if self._patience.ready():
                self._learn(chunk, data)

    def _learn(self, chunk: Chunk, data: bytes) -> None:
        """Makes a template of a chunk that brought one text and nothing else."""
        key = text_key_of(chunk)
        target = self._target_of(chunk.choices[0], key) if key else None
        if target is not None:
            self._template = template(data, chunk, key, *target)
            self._learned = self._assembly.event_count

    def _target_of(
        self, choice: Choice, key: str
    ) -> tuple[Callable[[OpenItem, str], None], OpenItem] | None:
        """What is done with the text of a chunk that was just read, and the item it went to."""
        answer = self._choices[choice.index]
        if key == "arguments":
            item = answer.calls.running.get(
                choice.delta.tool_calls[0].index if choice.delta.tool_calls else None
            )
            return (self._assembly.arguments, item) if item else None
        say, kind = (
            (self._assembly.text, TEXT)
            if key == "content"
            else (self._assembly.reasoning, REASONING)
        )
        return (say, answer.item) if answer.kind is kind and not answer.part else None

    # --- the usual shape ---

    def _read_typed(self, chunk: Chunk) -> None:
        if not self._named:
            self._identify(chunk.id, chunk.model)
        if (chunk.system_fingerprint, chunk.service_tier, chunk.provider) != self._constants:
            self._on_constants(chunk)
        for choice in chunk.choices:
            answer = self._choices.get(choice.index) or self._begin(choice.index)
            delta = choice.delta
            thought = delta.reasoning_content or delta.reasoning
            if thought:
                answer.reasoning(thought)
            if delta.content:
                answer.text(delta.content)
            if delta.tool_calls:
                self._on_calls(answer, delta.tool_calls)
            if choice.finish_reason:
                self._on_finish(answer, choice.finish_reason)

    def end(self) -> None:
        """Complete only if every choice seen has finished."""
        if not self.complete:
            raise truncated("the stream ended before a finish_reason and before [DONE]")
        self._complete(inferred=True)

    def _begin(self, index: int) -> ChoiceAssembler:
        if not 0 <= index <= MOST_INDEX:
            raise malformed(f"the index of a choice is {index}")
        ceiling = self._assembly.limits.items
        if len(self._choices) >= ceiling:
            raise limit_exceeded("items", ceiling)
        answer = self._choices[index] = ChoiceAssembler(self._assembly, index)
        return answer

    def _on_constants(self, chunk: Chunk) -> None:
        self._constants = (chunk.system_fingerprint, chunk.service_tier, chunk.provider)
        names = ("system_fingerprint", "service_tier", "provider")
        self._assembly.metadata(
            {name: value for name, value in zip(names, self._constants, strict=True) if value}
        )

    def _identify(self, response_id: Any, model: Any) -> None:
        """The first id and model that are not empty; later ones (a fallback, Copilot's own per chunk) change nothing."""
        self._assembly.identify(
            response_id if isinstance(response_id, str) else None,
            model if isinstance(model, str) else None,
        )
        self._named = bool(self._assembly.response_id and self._assembly.model)

    def _on_calls(self, answer: ChoiceAssembler, calls: list[ToolCall]) -> None:
        for call in calls:
            function = call.function
            item = answer.calls.running.get(call.index)
            if function is None:
                answer.calls.add(call.index, call.id, None, None)
            elif item is None or call.id or function.name:
                answer.calls.add(call.index, call.id, function.name, function.arguments)
            elif function.arguments:
                self._assembly.arguments(item, function.arguments)

    def _on_finish(self, answer: ChoiceAssembler, reason: Any) -> None:
        """The first word wins: servers say it again in later chunks."""
        if answer.finish is None:
            answer.finish = str(reason)
            if answer.finish.lower() not in STOP_REASONS:
                self._assembly.notice("unknown_finish_reason", answer.finish)

    # --- any other shape ---

    def _handle_named_event(self, event: str, data: bytes) -> bool:
        """Events that have a name: whether nothing is left to be read."""
        if event == "error":
            raise ParseFailure(classify(None, data))
        if event == BODY_EVENT:
            self._is_body = True
        return event == "ping"

    def _read_untyped(self, event: str | None, data: bytes) -> None:
        text = data.strip()
        if text.lower() == DONE:
            self._on_done()
        elif text:
            fixed = mark_surrogates(data)
            if fixed is not None:
                self._assembly.surrogates = self._assembly.surrogates or SurrogateJoiner()
            self._on_value(event, fixed or data)

    def _on_value(self, event: str | None, data: bytes) -> None:
        value: Any = decode_any(data)
        if isinstance(value, list) and value and failure_of(value[0]) is not None:
            raise ParseFailure(classify(None, value))
        if not isinstance(value, dict):
            raise malformed("a chunk is not a JSON object", data)
        value = unwrapped(value)
        failure = failure_of(value)
        if failure is not None:
            self._count(value)
            raise ParseFailure(classify(None, failure))
        kind = value.get("type") if event in {None, "message"} else event
        if "choices" not in value and isinstance(kind, str):
            self._on_unknown(kind, value)
        else:
            self._on_chunk(value, data)

    def _on_unknown(self, kind: str, value: JsonObject) -> None:
        if kind != "ping":
            self._assembly.passthrough(kind, value)
            self._count(value)

    def _on_chunk(self, value: JsonObject, data: bytes) -> None:
        choices: Any = value.get("choices")
        if choices is not None and not isinstance(choices, list):
            raise malformed("the choices of a chunk are no list", data)
        self._identify(value.get("id"), value.get("model"))
        self._metadata({key: one for key, one in value.items() if key not in CHUNK_KEYS})
        own = RawArguments(data)
        for place, choice in enumerate(choices or []):
            if not isinstance(choice, dict):
                raise malformed("a choice is not an object", data)
            self._on_choice(choice, own, place)
        self._count(value)

    def _on_choice(self, choice: JsonObject, own: RawArguments, place: int) -> None:
        if choice.get("error"):
            raise ParseFailure(classify(None, {"error": choice["error"]}))
        index = index_of(choice.get("index"), "a choice") or 0
        answer = self._choices.get(index) or self._begin(index)
        key = self._key_of(choice)
        delta: Any = choice.get(key) or {}
        if not isinstance(delta, dict):
            raise malformed(f"the {key} of a choice is not an object")
        read_delta(answer, delta, logprobs_of(choice))
        read_calls(answer, delta, own, place, key)
        rest = {key: one for key, one in choice.items() if key not in CHOICE_KEYS} | unknown_keys(
            delta
        )
        self._metadata(
            {key if index == 0 else f"choices[{index}].{key}": one for key, one in rest.items()}
        )
        if choice.get("finish_reason") not in EMPTY:
            self._on_finish(answer, choice["finish_reason"])

    def _key_of(self, choice: JsonObject) -> str:
        """Where a choice says something. Some servers send the whole `message` so far beside each delta."""
        if self._is_body or not (choice.get("delta") or self._assembly.item_count):
            return "message" if choice.get("message") else "delta"
        return "delta" if "delta" in choice else "message"

    # --- the envelope ---

    def _metadata(self, values: JsonObject) -> None:
        groq = values.get("x_groq")
        if isinstance(groq, dict):
            values["x_groq"] = {key: value for key, value in groq.items() if key != "usage"}
        values = {key: value for key, value in values.items() if value not in EMPTY}
        if values:
            self._assembly.metadata(values)

    def _count(self, value: JsonObject) -> None:
        """Usage, wherever it is: each report replaces the one before, and that of the chunk those inside it."""
        choices, groq = value.get("choices"), value.get("x_groq")
        inside = [
            one.get("usage")
            for one in (choices if isinstance(choices, list) else ())
            if isinstance(one, dict)
        ]
        reports = [
            groq.get("usage") if isinstance(groq, dict) else None,
            *inside,
            value.get("usage"),
        ]
        told = [report for report in reports if isinstance(report, dict) and report]
        for report in told:
            self._usage = overlay(self._usage, report)
        if told:
            self._assembly.usage(usage(self._usage))

    # --- the end ---

    def _on_done(self) -> None:
        if not (self.complete or self._is_body or self._assembly.item_count):
            raise truncated("[DONE] came before any content")
        self._complete(inferred=False)

    def _complete(self, *, inferred: bool) -> None:
        for answer in self._choices.values():
            answer.end()
        if self._assembly.last_usage is not None:
            for detail in contradictions(self._assembly.last_usage):
                self._assembly.notice("inconsistent_usage", detail)
        if inferred:
            self._assembly.note_inferred_end("no [DONE] came: usage or a tail may be missing")
        ends = tuple(self._ended(answer) for _, answer in sorted(self._choices.items()))
        self._assembly.complete(ends[0].stop_reason, ends[0].native_stop_reason, None, ends)

    def _ended(self, answer: ChoiceAssembler) -> FinishedChoice:
        word, calls = answer.finish, answer.calls
        reason = STOP_REASONS.get((word or "").lower(), "other")
        if calls.whole and (word is None or reason == "stop"):
            reason = "tool_calls"
        elif reason == "stop" and answer.kinds - {REASONING} == {REFUSAL}:
            reason = "refusal"
        elif reason == "tool_calls" and not calls.begun:
            self._assembly.notice("no_tool_call", f"the finish_reason is {word}, but no call came")
        return FinishedChoice(answer.index, reason, word)

    def _flush(self) -> None:
        """Before the end of whatever kind: what is held back is part of the partial answer too."""
        with suppress(ParseFailure):
            for answer in self._choices.values():
                answer.flush()
                answer.calls.flush()


# --- usage ---

CACHE_READS: Final = (
    "prompt_tokens_details.cached_tokens",
    "prompt_token_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "num_cached_tokens",
    "input_tokens_details.cached_tokens",
    "cache_read_input_tokens",
)
CACHE_WRITES: Final = (
    "prompt_tokens_details.cache_write_tokens",
    "prompt_tokens_details.cache_creation_input_tokens",
    "cache_creation_input_tokens",
)
THOUGHT_TOKENS: Final = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "reasoning_tokens",
)
MODALITIES: Final = ("text", "image", "audio", "video")


def usage(raw: JsonObject) -> Usage:
    """`prompt_tokens` includes what was cached, `completion_tokens` the thoughts; xAI leaves thoughts out, which its total betrays."""
    read, written = (
        count(raw, "prompt_tokens", "input_tokens"),
        count(raw, "completion_tokens", "output_tokens"),
    )
    thought = count(raw, *THOUGHT_TOKENS)
    apart = (
        bool(thought)
        and None not in {read, written}
        and count(raw, "total_tokens") == total(read, written, thought)
    )
    return Usage(
        input_tokens=read,
        output_tokens=total(written, thought) if apart else written,
        cache_read_input_tokens=count(raw, *CACHE_READS),
        cache_write_input_tokens=count(raw, *CACHE_WRITES),
        reasoning_output_tokens=thought,
        cache_write_5m_input_tokens=count(raw, "cache_creation.ephemeral_5m_input_tokens"),
        cache_write_1h_input_tokens=count(raw, "cache_creation.ephemeral_1h_input_tokens"),
        cache_write_24h_input_tokens=count(raw, "cache_creation.ephemeral_24h_input_tokens"),
        input_modalities=_modalities(raw, "prompt_tokens_details", "input_tokens_details"),
        output_modalities=_modalities(raw, "completion_tokens_details", "output_tokens_details"),
        raw=raw,
    )


def _modalities(raw: JsonObject, *details: str) -> dict[str, int]:
    counts = {
        kind: count(raw, *(f"{name}.{kind}_tokens" for name in details)) for kind in MODALITIES
    }
    return {kind: number for kind, number in counts.items() if number is not None}


def contradictions(told: Usage) -> Iterator[str]:
    """Where a provider's own numbers disagree. They are given as told, never clamped."""
    read, written, whole = told.input_tokens, told.output_tokens, count(told.raw, "total_tokens")
    if read is not None and (told.cache_read_input_tokens or 0) > read:
        yield f"{told.cache_read_input_tokens} tokens read from a cache, of {read}"
    if written is not None and (told.reasoning_output_tokens or 0) > written:
        yield f"{told.reasoning_output_tokens} tokens of thought, of {written}"
    if read is not None and written is not None and whole not in {None, read + written}:
        yield f"{whole} tokens in total, but {read} and {written}"


# --- whole bodies ---


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A whole chat.completion as the one chunk of its stream: it is complete even where no choice says why it ended."""
    value = decode_any(body)
    choices = unwrapped(value).get("choices") if isinstance(value, dict) else None
    if not (isinstance(choices, list) and choices and all(map(_is_choice, choices))):
        raise malformed("the body is not a chat.completion", body)
    yield BODY_EVENT, body
    yield None, DONE


def _is_choice(choice: Any) -> bool:
    return isinstance(choice, dict) and any(
        isinstance(choice.get(key), dict) for key in ("message", "delta", "error")
    )
