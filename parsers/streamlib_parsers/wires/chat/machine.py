"""OpenAI Chat Completions and its many variants: chunks of choices, `data: [DONE]` at the end.

The wire, by OpenAI's schema and recordings of some thirty servers that claim it:

    {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}
                                                               -> Created
    {…"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}
                                                               -> OutputItemAdded, OutputTextDelta
    {…"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{…}}]}}]}
                                                               `calls.py`
    {…"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
                                                               the choice is complete
    {…"choices":[],"usage":{…}}                                -> TokenCount
    [DONE]                                                     -> items done, Completed

The variants add other names for reasoning, usage anywhere, `message` for `delta`, wrappers, and
errors with status 200; they leave out `[DONE]`, `index`, `finish_reason`.

A chunk takes one of two paths; both lead to the same calls of the assembler: one of the usual shape
is decoded into structs (`chunks.py`), any other is read from a dict (`delta.py`).

Buffered: the end of every item that may still grow (see `calls.py` and `choice.py`), and
`Completed` until `[DONE]` or the end of input: usage follows the finish, and from some servers
content does too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import (
    ParseFailure,
    generation_failed,
    limit_exceeded,
    malformed,
    truncated,
)
from streamlib_parsers.events import FinishedChoice, StopReason

# `framing` is the name that every wire gives its framing.
from streamlib_parsers.framing.sse import SSEFraming as framing  # noqa: N813
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any
from streamlib_parsers.usage import overlay
from streamlib_parsers.wires.chat.calls import MAX_INDEX
from streamlib_parsers.wires.chat.choice import REASONING, REFUSAL, ChoiceAssembler
from streamlib_parsers.wires.chat.chunks import (
    REPORTED,
    Choice,
    Chunk,
    Delta,
    ToolCall,
    decode_chunk,
)
from streamlib_parsers.wires.chat.delta import (
    EMPTY,
    failure_of,
    index_of,
    logprobs_of,
    read_calls,
    read_delta,
    unknown_keys,
    unwrapped,
)
from streamlib_parsers.wires.chat.raw_arguments import RawArguments
from streamlib_parsers.wires.chat.token_counts import contradictions, usage

__all__ = ["CHUNK_KEYS", "FAILURE_REASONS", "STOP_REASONS", "Machine", "body_frames", "framing"]

STOP_REASONS: Final[dict[str, StopReason]] = {
    "stop": "stop",
    # Names of end tokens, and the reasons of other wires that a proxy did not translate.
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",  # of the older `function_call`
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral: the context window is full
    "content_filter": "content_filter",
    "sensitive": "content_filter",  # Zhipu
    "safety": "content_filter",
    "refusal": "refusal",
    "repetition_truncation": "other",
}
"""By lower-case `finish_reason`. Any other reason is `other` too, with a Notice."""

FAILURE_REASONS: Final = frozenset(
    {
        "error",  # Mistral, OpenRouter
        "abort",  # vLLM, SGLang: the request was aborted inside the server
        "network_error",  # Z.ai
        "insufficient_system_resource",  # DeepSeek
        "timeout",
    }
)
"""Lower-case `finish_reason`s of a generation that failed: it must not end as `Completed`."""

KNOWN_REASONS: Final = FAILURE_REASONS.union(STOP_REASONS)

BODY_EVENT: Final = "chat.completion"
"""Event name under which `body_frames` passes a complete body. No server names its events so."""

DONE: Final = b"[done]"

CHUNK_OBJECT: Final = "chat.completion.chunk"
"""The `object` of a chunk of a stream."""

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

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        self._choices: dict[int, ChoiceAssembler] = {}
        """Every choice seen, by its index. One that has finished stays: `Completed` has the reasons
        of all."""
        self._usage: JsonObject = {}
        """The usage objects of all chunks, merged; later keys replace earlier ones."""
        self._constants: tuple[str | None, ...] = (None, None, None)
        """`system_fingerprint`, `service_tier` and `provider` of the last typed chunk.

        Servers repeat them in every chunk: only a change is reported.
        """
        self._is_dated = False
        """Whether a chunk had a `created` time. It is emitted once: every chunk repeats it."""
        self._is_body = False
        """Whether a complete body is read, not a stream; set by its event name."""
        self._identified = False
        """Whether id and model are known, so that later ones are ignored."""
        assembler.before_close = self._flush

    @property
    def complete(self) -> bool:
        """Whether every choice seen has its `finish_reason`."""
        if not self._choices:
            return False
        return all(choice.finish is not None for choice in self._choices.values())

    def frame(self, event: str | None, data: bytes) -> None:
        """Read one event."""
        if event is not None and self._handle_named_event(event, data):
            return
        if data == b"[DONE]":
            self._on_done()
            return
        try:
            chunk = decode_chunk(data)
        except DECODE_ERRORS:
            # Any other shape, a lone surrogate, or no JSON at all.
            self._read_untyped(event, data)
            return
        if self._is_dated or not chunk.created or _is_plain(chunk):
            self._read_typed(chunk)
        else:
            # All metadata of a first chunk that brings more than text is one event.
            self._read_untyped(event, data)

    # --- the usual shape ---

    def _read_typed(self, chunk: Chunk) -> None:
        if not self._identified:
            self._identify(chunk.id, chunk.model)
        if not self._is_dated and chunk.created:
            self._is_dated = True
            self._assembler.metadata({"created": chunk.created})
        if (chunk.system_fingerprint, chunk.service_tier, chunk.provider) != self._constants:
            self._on_constants(chunk)
        for choice in chunk.choices:
            self._read_typed_choice(choice)
        if chunk.usage:
            self._usage = overlay(self._usage, chunk.usage)
            self._assembler.usage(usage(self._usage))

    def _read_typed_choice(self, typed: Choice) -> None:
        choice = self._choices.get(typed.index) or self._add_choice(typed.index)
        delta = typed.delta
        # Both names of the reasoning carry the same text (X2), so one is read.
        if delta.reasoning_details:
            choice.read_reasoning(_reasoning_of(delta))
        elif delta.reasoning_content:
            choice.append_reasoning(delta.reasoning_content)
        elif delta.reasoning:
            choice.append_named_reasoning(delta.reasoning, "reasoning")
        if delta.content:
            choice.append_text(delta.content)
        if delta.tool_calls:
            self._on_calls(choice, delta.tool_calls)
        if typed.content_filter_results is not None or typed.native_finish_reason is not None:
            prefix = f"choices[{typed.index}]." if typed.index else ""
            self._metadata({prefix + name: getattr(typed, name) for name in REPORTED})
        if typed.finish_reason:
            self._on_finish(choice, typed.finish_reason)

    def _add_choice(self, index: int) -> ChoiceAssembler:
        if not 0 <= index <= MAX_INDEX:
            raise malformed(f"the index of a choice is {index}")
        # A choice without content opens no item, so the assembler cannot count it.
        limit = self._assembler.limits.items
        if len(self._choices) >= limit:
            raise limit_exceeded("items", limit)
        choice = ChoiceAssembler(self._assembler, index)
        self._choices[index] = choice
        return choice

    def _on_constants(self, chunk: Chunk) -> None:
        self._constants = (chunk.system_fingerprint, chunk.service_tier, chunk.provider)
        names = ("system_fingerprint", "service_tier", "provider")
        named = zip(names, self._constants, strict=True)
        self._assembler.metadata({name: value for name, value in named if value})

    def _identify(self, response_id: Any, model: Any) -> None:
        """Take the first id and model that are not empty.

        Later ones (another model as fallback, Copilot's own id per chunk) change nothing.
        """
        if not isinstance(response_id, str):
            response_id = None
        if not isinstance(model, str):
            model = None
        # One of both may come later: Azure's first chunk has neither (X8).
        self._assembler.identify(response_id, model)
        self._identified = bool(self._assembler.response_id and self._assembler.model)

    def _on_calls(self, choice: ChoiceAssembler, calls: list[ToolCall]) -> None:
        for call in calls:
            function = call.function
            item = choice.calls.running.get(call.index)
            if function is None:
                choice.calls.add(call.index, call.id, None, None)
            elif item is None or call.id or function.name:
                choice.calls.add(call.index, call.id, function.name, function.arguments)
            elif function.arguments:
                # Only text, for a call that buffers nothing: `add` would do the same.
                self._assembler.arguments(item, function.arguments)

    def _on_finish(self, choice: ChoiceAssembler, reason: Any) -> None:
        """Take the first reason: servers repeat it in later chunks."""
        if choice.finish is None:
            choice.finish = str(reason)  # a number is kept as its text
            if choice.finish.lower() not in KNOWN_REASONS:
                self._assembler.notice("unknown_finish_reason", choice.finish)

    # --- any other shape ---

    def _handle_named_event(self, event: str, data: bytes) -> bool:
        """Handle an event that has a name. Returns whether nothing is left to be read."""
        if event == "error":
            raise ParseFailure(classify(None, data))
        if event == BODY_EVENT:
            self._is_body = True
        # Keep-alive of proxies; a ping without this name has it as its `type`.
        return event == "ping"

    def _read_untyped(self, event: str | None, data: bytes) -> None:
        text = data.strip()
        if text[:7].lower() == DONE:  # some servers pad it or write it in lower case (X23)
            self._on_done()
            return
        if not text:
            return
        value, data = self._assembler.decode(data)
        # Google's compatible endpoint sends an error as a list of one object.
        if isinstance(value, list) and value and failure_of(value[0]) is not None:
            raise ParseFailure(classify(None, value))
        if not isinstance(value, dict):
            raise malformed("a chunk is not a JSON object", data)
        value = unwrapped(value)
        failure = failure_of(value)
        if failure is not None:
            self._count(value)  # some servers report usage with the error
            raise ParseFailure(classify(None, failure))
        # "message" is what an SSE event without a name is called; some servers write it.
        kind = value.get("type") if event in {None, "message"} else event
        if "choices" not in value and isinstance(kind, str):
            self._on_unknown(kind, value)
        else:
            self._on_chunk(value, data)

    def _on_unknown(self, kind: str, value: JsonObject) -> None:
        if kind != "ping":
            self._assembler.passthrough(kind, value)
            self._count(value)

    def _on_chunk(self, value: JsonObject, data: bytes) -> None:
        choices: Any = value.get("choices")
        if choices is not None and not isinstance(choices, list):
            raise malformed("the choices of a chunk are not a list", data)
        if not self._identified:
            self._identify(value.get("id"), value.get("model"))
        envelope = {key: member for key, member in value.items() if key not in CHUNK_KEYS}
        if not self._is_dated and value.get("created"):
            self._is_dated = True
            envelope["created"] = value["created"]
        self._metadata(envelope)
        # It may have changed them: the next typed chunk reports its own again.
        self._constants = ()
        raw = RawArguments(data)
        for position, choice in enumerate(choices or []):
            if not isinstance(choice, dict):
                raise malformed("a choice is not an object", data)
            self._on_choice(choice, raw, position)
        self._count(value)

    def _on_choice(self, value: JsonObject, raw: RawArguments, position: int) -> None:
        if value.get("error"):
            raise ParseFailure(classify(None, {"error": value["error"]}))
        index = index_of(value.get("index"), "a choice") or 0  # no index: the only choice (X29)
        choice = self._choices.get(index) or self._add_choice(index)
        key = self._delta_key_of(value)
        delta: Any = value.get(key) or {}  # null or missing in the last chunk of some servers (X38)
        if not isinstance(delta, dict):
            raise malformed(f"the {key} of a choice is not an object")
        unknown: JsonObject = {}
        if not value.keys() <= CHOICE_KEYS:
            unknown = {key: member for key, member in value.items() if key not in CHOICE_KEYS}
        if delta:
            read_delta(choice, delta, logprobs_of(value), logprobs_of(value, "refusal"))
            read_calls(choice, delta, raw, position, key)
            unknown |= unknown_keys(delta)
        if index != 0:
            unknown = {f"choices[{index}].{key}": member for key, member in unknown.items()}
        self._metadata(unknown)
        if value.get("finish_reason") not in EMPTY:
            self._on_finish(choice, value["finish_reason"])

    def _delta_key_of(self, choice: JsonObject) -> str:
        """The key of a choice that holds its delta.

        Some servers send the complete `message` so far beside each delta. It is read only in a
        body, where the first chunk has no delta, and where a choice has no key `delta` at all.
        """
        if self._is_body or not (choice.get("delta") or self._assembler.item_count):
            return "message" if choice.get("message") else "delta"
        return "delta" if "delta" in choice else "message"

    # --- the envelope ---

    def _metadata(self, values: JsonObject) -> None:
        if not values:
            return
        groq = values.get("x_groq")
        if isinstance(groq, dict):  # its usage is counted
            values["x_groq"] = {key: value for key, value in groq.items() if key != "usage"}
        values = {key: value for key, value in values.items() if value not in EMPTY}
        if values:
            self._assembler.metadata(values)

    def _count(self, value: JsonObject) -> None:
        """Read usage, wherever it is.

        A later report replaces the keys that it has. Within a chunk Groq's counts as the earliest,
        then those of the choices, and the chunk's own as the latest.
        """
        holders: list[Any] = [value.get("x_groq")]
        choices = value.get("choices")
        if isinstance(choices, list):
            holders += choices
        holders.append(value)

        counted = False
        for holder in holders:
            report = holder.get("usage") if isinstance(holder, dict) else None
            if report and isinstance(report, dict):
                self._usage = overlay(self._usage, report)
                counted = True
        if counted:
            self._assembler.usage(usage(self._usage))

    # --- the end ---

    def end(self) -> None:
        """End of input: complete only if every choice seen has finished."""
        if not self.complete:
            raise truncated("the stream ended before a finish_reason and before [DONE]")
        self._complete(inferred=True)

    def _on_done(self) -> None:
        # `[DONE]` without content proves no end: a proxy whose upstream failed may send it alone.
        # A server that uses `BODY_EVENT` itself may send no choice at all.
        has_content = self.complete or self._is_body or self._assembler.item_count > 0
        if not self._choices or not has_content:
            raise truncated("[DONE] came before any content")
        self._complete(inferred=False)

    def _complete(self, *, inferred: bool) -> None:
        for choice in self._choices.values():
            reason = choice.finish or ""
            if reason.lower() in FAILURE_REASONS:
                raise generation_failed(reason)
        if not inferred and not self.complete and not self._is_body:
            self._assembler.note_inferred_end("[DONE] came without a finish_reason")
        for choice in self._choices.values():
            choice.end()
        # The last report only: servers that count in every chunk contradict themselves on the way.
        if self._assembler.last_usage is not None:
            for detail in contradictions(self._assembler.last_usage):
                self._assembler.notice("inconsistent_usage", detail)
        if inferred:
            self._assembler.note_inferred_end("no [DONE] came: usage or a tail may be missing")
        finished = [self._finished_choice(self._choices[index]) for index in sorted(self._choices)]
        first = finished[0]
        self._assembler.complete(first.stop_reason, first.native_stop_reason, None, finished)

    def _finished_choice(self, choice: ChoiceAssembler) -> FinishedChoice:
        native = choice.finish
        reason: StopReason = STOP_REASONS.get((native or "").lower(), "other")
        # Servers that do not know the reason `tool_calls` send `stop`, or none in a body (T22).
        if choice.calls.completed and (native is None or reason == "stop"):
            reason = "tool_calls"
        # Reasoning before a refusal is not an output of its own; text or a tool result is.
        elif reason == "stop" and choice.kinds - {REASONING} == {REFUSAL}:
            reason = "refusal"
        elif reason == "tool_calls" and not choice.calls.started:
            # The call may be in the text, where a dialect finds it. If none does, a loop that goes
            # by the stop reason must not send the same request again.
            reason = "stop"
            self._assembler.notice(
                "no_tool_call", f"the finish_reason is {native}, but no call came"
            )
        return FinishedChoice(choice.index, reason, native)

    def _flush(self) -> None:
        """Called before any end: what is buffered belongs to the partial response too."""
        with suppress(ParseFailure):  # a limit may be exceeded while the stream is already failing
            for choice in self._choices.values():
                choice.flush()
                choice.calls.flush()


def _is_plain(chunk: Chunk) -> bool:
    """Whether a chunk brings text and calls alone."""
    if chunk.usage is not None:
        return False
    for choice in chunk.choices:
        if choice.delta.reasoning_details is not None:
            return False
        if choice.content_filter_results is not None or choice.native_finish_reason is not None:
            return False
    return True


def _reasoning_of(delta: Delta) -> JsonObject:
    """The keys of a delta that hold reasoning."""
    return {
        "reasoning_content": delta.reasoning_content,
        "reasoning": delta.reasoning,
        "reasoning_details": delta.reasoning_details,
    }


# --- complete bodies ---


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A complete chat.completion as the only chunk of its stream.

    It is complete even if no choice has a `finish_reason`. A chunk in place of a body is not: it
    remains a chunk of a stream, which ends behind it.
    """
    value = decode_any(body)
    completion = unwrapped(value) if isinstance(value, dict) else {}
    choices = completion.get("choices")
    if not (isinstance(choices, list) and choices and all(map(_is_choice, choices))):
        raise malformed("the body is not a chat.completion", body)
    if completion.get("object") == CHUNK_OBJECT or any(map(_is_of_chunk, choices)):
        yield None, body
    else:
        yield BODY_EVENT, body
        yield None, DONE


def _is_of_chunk(choice: JsonObject) -> bool:
    # Some servers send an empty delta beside the message of a body.
    return isinstance(choice.get("delta"), dict) and not choice.get("message")


def _is_choice(choice: Any) -> bool:
    if not isinstance(choice, dict):
        return False
    if any(isinstance(choice.get(key), dict) for key in ("message", "delta", "error")):
        return True
    # Azure leaves out the message of a choice that its filter removed. A choice with `text` is of
    # the older Completions API.
    return isinstance(choice.get("finish_reason"), str) and "text" not in choice
