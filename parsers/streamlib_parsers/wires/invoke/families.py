"""Bedrock InvokeModel: the model families, and how they are recognized.

The first payload shows the family; nothing is guessed from the model's name. A family with a wire
API of its own is read by that wire's machine, the others by `TextMachine` and a row of paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from streamlib_parsers.bedrock import at_path
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import decode_any

STOP_REASONS: Final[dict[str, StopReason]] = {
    "FINISH": "stop",
    "COMPLETE": "stop",
    "stop": "stop",
    "stop_sequence": "stop",
    "endoftext": "stop",
    "LENGTH": "length",
    "length": "length",
    "MAX_TOKENS": "length",
    "max_tokens": "length",
    "CONTENT_FILTERED": "content_filter",
    # Bedrock's guardrail, if it replaced the model's response with its own text.
    "INTERVENED": "content_filter",
}
"""Reasons of the text families; the other families have those of their wire."""

BEDROCK: Final = "amazon-bedrock-"
"""Prefix of the keys that Bedrock adds to a model's own payload."""
METRICS: Final = "amazon-bedrock-invocationMetrics"
GUARDRAIL: Final = "amazon-bedrock-guardrailAction"

COUNTS: Final = frozenset(
    {
        "inputTextTokenCount",
        "totalOutputTextTokenCount",
        "prompt_token_count",
        "generation_token_count",
    }
)
"""Keys of the text families' own usage."""


def _unchanged(data: bytes) -> bytes:
    return data


def _with_finish_reason(data: bytes) -> bytes:
    """A Chat payload of Mistral Large, whose `stop_reason` is Chat's `finish_reason`."""
    if b'"stop_reason"' not in data:
        return data
    value = decode_any(data)
    if isinstance(at_path(value, "choices.0"), dict):
        for choice in value["choices"]:
            if isinstance(choice, dict):
                _rename_stop_reason(choice)
    return msgspec.json.encode(value)


def _rename_stop_reason(choice: dict[str, Any]) -> None:
    # Jamba has both keys, and a number (a token id) as its stop_reason.
    if isinstance(choice.get("stop_reason"), str) and not choice.get("finish_reason"):
        choice["finish_reason"] = choice.pop("stop_reason")


class Family(NamedTuple):
    """One family of models. Paths are dotted (`choices.0.text`); the first with a value counts.

    marks: paths in the first payload that identify the family; one with a value is enough.
    wire: the wire API whose machine reads the payloads, after `adapt`; None: `TextMachine`.
    closing: the wire's last event, which Bedrock leaves out because its frames end.
    text: paths of the text. stop: paths of the stop reason; a string there ends the response.
    finished: a key whose value true ends the response too.
    stop_sequence: paths of the matched stop sequence.
    inside: the key of an object whose members count as the payload's own.
    kinds: values of `event_type` whose text is read. ignored_keys: further keys that are read or
    mean nothing; every other key is metadata.
    """

    name: str
    marks: tuple[str, ...]
    wire: str | None = None
    adapt: Callable[[bytes], bytes] = _unchanged
    closing: bytes = b""
    text: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    finished: str | None = None
    stop_sequence: tuple[str, ...] = ()
    inside: str | None = None
    kinds: frozenset[str] = frozenset()
    ignored_keys: frozenset[str] = frozenset()

    def is_unfinished(self, payload: JsonObject) -> bool:
        """Whether a payload says that others follow: a body has no stop reason that is null.

        Payload and body of most families have the same keys.
        """
        if self.finished is not None and payload.get(self.finished) is False:
            return True
        reasons: list[Any] = []
        for path in self.stop:
            holder, _, key = path.rpartition(".")
            owner = at_path(payload, holder) if holder else payload
            if isinstance(owner, dict) and key in owner:
                reasons.append(owner[key])
        return bool(reasons) and all(reason is None for reason in reasons)

    def read_keys(self) -> frozenset[str]:
        """Top-level keys of a payload that are not metadata."""
        keys = {path.partition(".")[0] for path in (*self.text, *self.stop, *self.stop_sequence)}
        for key in (self.finished, self.inside):
            if key is not None:
                keys.add(key)
        return self.ignored_keys | COUNTS | keys


FAMILIES: Final = (
    # Before `claude`, since its payloads have a `type` too.
    Family(
        "claude-2",
        ("completion",),
        text=("completion",),
        stop=("stop_reason",),
        stop_sequence=("stop",),
        ignored_keys=frozenset({"type"}),
    ),
    Family("claude", ("type",), "messages"),
    Family(
        "nova",
        (
            "messageStart",
            "contentBlockStart",
            "contentBlockDelta",
            "messageStop",
            "metadata",
            "output",
        ),
        "converse",
    ),
    # DeepSeek R1. Before `chat`, since its payloads have `choices` too.
    Family(
        "completions",
        ("choices.0.text",),
        text=("choices.0.text",),
        stop=("choices.0.stop_reason", "choices.0.finish_reason"),
        ignored_keys=frozenset({"id", "model"}),
    ),
    # Jamba, Mistral Large, gpt-oss and every other model with Chat Completions.
    Family(
        "chat",
        ("choices",),
        "chat",
        _with_finish_reason,
        b"[DONE]",
        stop=("choices.0.finish_reason", "choices.0.stop_reason"),
    ),
    Family(
        "titan",
        ("outputText", "results"),
        text=("outputText", "results.0.outputText"),
        stop=("completionReason", "results.0.completionReason"),
        ignored_keys=frozenset({"index"}),
    ),
    Family("llama", ("generation",), text=("generation",), stop=("stop_reason",)),
    Family("mistral", ("outputs",), text=("outputs.0.text",), stop=("outputs.0.stop_reason",)),
    Family(
        "cohere",
        ("event_type", "is_finished", "generations", "generation_id", "chat_history"),
        text=("text", "generations.0.text"),
        stop=("finish_reason", "generations.0.finish_reason"),
        finished="is_finished",
        inside="response",
        kinds=frozenset({"text-generation", "stream-start", "stream-end"}),
        ignored_keys=frozenset({"event_type", "chat_history", "prompt"}),
    ),
)
"""In the order they are tried."""

BY_NAME: Final = {family.name: family for family in FAMILIES}


def family_of(payload: JsonObject) -> Family | None:
    """The first family that `payload` has a mark of."""
    for family in FAMILIES:
        for mark in family.marks:
            if at_path(payload, mark) is not None:
                return family
    return None
