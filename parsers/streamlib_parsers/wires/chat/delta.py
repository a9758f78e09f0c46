"""Chunks of Chat Completions that are not of the usual shape: read from dicts, into the same verbs.

    {"choices":[{"delta":{"content":[{"type":"thinking","thinking":[…]}]}}]}                 content as parts
    {"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}                        `message` where `delta` belongs
    {"choices":[{"delta":{"tool_calls":[{"id":3,"function":{"arguments":{"a":1.0}}}]}}]}     an object where text belongs
    {"data":{"choices":[…]},"success":true}                                                 a wrapper
    {"object":"error","message":"…"}                                                        an error under status 200

In one delta, whatever the order of its keys: thought, tools the provider ran, content, refusal, annotations, audio, images, calls.
Arguments that are a JSON value keep their own bytes, so that `1.0` and the order of keys survive. Held back: nothing.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from streamlib_parsers.errors import malformed
from streamlib_parsers.items import CustomToolCall, FunctionCall, JsonObject, Opaque
from streamlib_parsers.json_text import dumps
from streamlib_parsers.wires.chat.calls import MOST_INDEX
from streamlib_parsers.wires.chat.choice import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    REASONING_KEYS,
    ChoiceAssembler,
)

__all__ = [
    "EMPTY",
    "RawArguments",
    "failure_of",
    "index_of",
    "logprobs_of",
    "read_calls",
    "read_delta",
    "unknown_keys",
    "unwrapped",
]

EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
"""What a key may hold that says nothing."""

READERS: Final = (
    ("refusal", ChoiceAssembler.refusal),
    ("annotations", ChoiceAssembler.annotations),
    ("audio", ChoiceAssembler.audio),
    ("images", ChoiceAssembler.images),
)
"""What a delta may hold after its content, in the order in which it is given out."""

NOISE: Final = frozenset({"role", "name", "index", "channel", "token_id", "padding"})
READ: Final = frozenset(
    {
        "content",
        "tool_calls",
        "function_call",
        "executed_tools",
        "extra_content",
        "thought_signature",
        OPAQUE_REASONING_KEY,
    }
)
DELTA_KEYS: Final = (
    NOISE | READ | {*REASONING_KEYS, *REASONING_DETAIL_KEYS, *(key for key, _ in READERS)}
)
"""Keys of a delta that are read, or say nothing. Every other key is metadata."""

THOUGHT_FLAG: Final = {"extra_content": {"google": {"thought": True}}}

CALL_KEYS: Final = frozenset(
    {"index", "id", "type", "function", "custom", "extra_content", "thought_signature"}
)
FUNCTION_KEYS: Final = frozenset({"name", "arguments"})


def failure_of(value: Any) -> Any:
    """What to classify where a chunk is an error, else None."""
    if not isinstance(value, dict):
        return None
    groq, base, kind = value.get("x_groq"), value.get("base_resp"), value.get("type")
    told = value.get("error") or str(value.get("object")).startswith("error") or kind == "error"
    told = told or (isinstance(groq, dict) and groq.get("error"))
    told = told or (isinstance(base, dict) and base.get("status_code") not in (None, 0, "0"))
    if "choices" not in value and (kind is None or "error" in str(kind).lower()):
        told = (
            told
            or value.get("detail")
            or value.get("errors")
            or isinstance(value.get("message"), str)
        )
    return value if told else None


def unwrapped(value: JsonObject) -> JsonObject:
    """The chunk inside `{"data": {…}, "success": true}`."""
    inner = value.get("data")
    return inner if "choices" not in value and isinstance(inner, dict) else value


def index_of(value: Any, what: str) -> int | None:
    """An index; null and a missing one are None, a whole float is its number, anything else is no index."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_INDEX
    ):
        return value
    raise malformed(f"the index of {what} is {str(value)[:50]}")


def logprobs_of(choice: JsonObject) -> list[JsonObject] | None:
    """`logprobs.content`: one object a token. Legacy shapes have none."""
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    return (
        [one for one in tokens if isinstance(one, dict)] or None
        if isinstance(tokens, list)
        else None
    )


def unknown_keys(delta: JsonObject) -> JsonObject:
    """What a delta holds that nothing here reads. LiteLLM repeats its thoughts among them."""
    rest = {key: value for key, value in delta.items() if key not in DELTA_KEYS}
    if google_of(delta)[0] is None and _extra(delta) != THOUGHT_FLAG:
        rest |= _extra(delta)
    repeated = rest.get("provider_specific_fields")
    if isinstance(repeated, dict):
        rest["provider_specific_fields"] = {
            key: value for key, value in repeated.items() if key not in DELTA_KEYS
        }
    return rest


def read_delta(answer: ChoiceAssembler, delta: JsonObject, tokens: list[JsonObject] | None) -> None:
    """Everything but the calls."""
    content = delta.get("content")
    signature, sealed = google_of(delta)
    if signature:
        answer.close_current()
    answer.thought(delta, None if content else tokens)
    if delta.get("executed_tools"):
        answer.executed(delta["executed_tools"])
    if content and sealed and isinstance(content, str):
        answer.reasoning(content, tokens)
    elif content or (content == "" and tokens):
        answer.content(content, tokens)
    for key, read in READERS:
        if delta.get(key):
            read(answer, delta[key])
    if signature:
        answer.sign(signature, _extra(delta))


def google_of(value: JsonObject) -> tuple[str | None, bool]:
    """Gemini's signature of a delta or call, and whether Gemini says that the delta is a thought: on a signed answer it says so too."""
    extra = value.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    google = google if isinstance(google, dict) else {}
    signature = google.get("thought_signature") or value.get("thought_signature")
    signature = signature if isinstance(signature, str) else None
    return signature, signature is None and google.get("thought") is True


def _extra(value: JsonObject) -> JsonObject:
    """`extra_content` as native, less the signature, which has a field of its own."""
    extra = value.get("extra_content")
    if not isinstance(extra, dict):
        return {}
    google = extra.get("google")
    if isinstance(google, dict):
        extra = {
            **extra,
            "google": {key: one for key, one in google.items() if key != "thought_signature"},
        }
    extra = {key: one for key, one in extra.items() if one not in EMPTY}
    return {"extra_content": extra} if extra else {}


# --- calls ---


def read_calls(
    answer: ChoiceAssembler, delta: JsonObject, own: RawArguments, place: int, key: str
) -> None:
    """`tool_calls`, else the older `function_call`. `place` and `key`: where the delta lies in its chunk."""
    calls, legacy = delta.get("tool_calls"), delta.get("function_call")
    if isinstance(calls, list):
        for number, call in enumerate(calls):
            _read_call(answer, call, own, (place, key, number))
    elif calls:
        answer.report_unexpected("tool_calls", calls)
    if not calls and isinstance(legacy, dict):
        _read_call(answer, {"index": 0, "function": legacy}, own, (place, key, -1))


def _read_call(answer: ChoiceAssembler, call: Any, own: RawArguments, path: Path) -> None:
    kind = _kind_of(call) if isinstance(call, dict) else None
    if kind is None:
        _read_unknown_call(answer, call)
        return
    custom = kind is CustomToolCall
    body = call.get("custom" if custom else "function") or {}
    given = body.get("input" if custom else "arguments")
    fixed = given is not None and not isinstance(given, str)
    slot = answer.calls.add(
        index_of(call.get("index"), "a tool call"),
        _id_of(call.get("id")),
        body.get("name") if isinstance(body.get("name"), str) else None,
        own.arguments(path, given) if fixed else given,
        kind,
        fixed=fixed,
    )
    if slot is not None:
        slot.set_fields(**_deferred_fields(call, body))


def _read_unknown_call(answer: ChoiceAssembler, call: Any) -> None:
    if isinstance(call, dict):
        answer.whole(Opaque(kind=str(call.get("type")), payload=call, choice=answer.index))
    else:
        answer.report_unexpected("tool_calls", call)


def _kind_of(call: JsonObject) -> type[FunctionCall] | type[CustomToolCall] | None:
    """What an entry of `tool_calls` is; None for a kind this version does not know."""
    function, custom, kind = call.get("function"), call.get("custom"), call.get("type")
    if isinstance(custom, dict) and (kind == "custom" or not isinstance(function, dict)):
        return CustomToolCall
    return (
        FunctionCall
        if isinstance(function, dict) or (function is None and kind in (None, "", "function"))
        else None
    )


def _id_of(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _deferred_fields(call: JsonObject, body: JsonObject) -> JsonObject:
    """`signature` and `native` of a call, as far as this entry tells them."""
    native = {
        key: value for key, value in call.items() if key not in CALL_KEYS and value not in EMPTY
    }
    if call.get("type") not in (None, "", "function", "custom"):
        native["type"] = call["type"]
    rest = {
        key: value
        for key, value in body.items()
        if key not in {*FUNCTION_KEYS, "input"} and value not in EMPTY
    }
    native |= _extra(call) | ({"function": rest} if rest else {})
    return {"signature": google_of(call)[0], "native": native}


# --- the bytes of arguments that are a JSON value ---

Path: TypeAlias = tuple[int, str, int]
"""Place of the choice, `delta` or `message`, place of the call (-1: function_call)."""


class _Function(Struct, gc=False):
    arguments: Raw = Raw(b"null")


class _Call(Struct, gc=False):
    function: _Function | None = None
    custom: dict[str, Raw] | None = None


class _Said(Struct, gc=False):
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None


class _Choice(Struct, gc=False):
    delta: _Said | None = None
    message: _Said | None = None


class _Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    data: _Chunk | None = None


class RawArguments:
    """Finds arguments in the bytes of a chunk; they are decoded once, when first asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._choices: list[_Choice] | None = None

    def arguments(self, path: Path, value: Any) -> str:
        """The value at `path` as it was sent; written anew where the chunk is too odd to be searched."""
        try:
            return self._at(path)
        except (msgspec.DecodeError, UnicodeError, RecursionError, LookupError, AttributeError):
            return dumps(value)

    def _at(self, path: Path) -> str:
        if self._choices is None:
            chunk = msgspec.json.decode(self._data, type=_Chunk)
            self._choices = chunk.choices or (chunk.data.choices if chunk.data else None) or []
        place, key, number = path
        said = getattr(self._choices[place], key)
        function = said.function_call if number < 0 else said.tool_calls[number].function
        return bytes(function.arguments).decode()
