"""Chat Completions chunks of any other shape than the usual one, read from dicts.

    {"choices":[{"delta":{"content":[{"type":"thinking","thinking":[…]}]}}]}       content as parts
    {"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}              no `delta`
    {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":1.0}}}]}}]}  object for text
    {"data":{"choices":[…]},"success":true}                                        a wrapper
    {"object":"error","message":"…"}                                               an error

Whatever the order of the keys, one delta is read as: reasoning, tools that the provider ran,
content, refusal, annotations, audio, images, calls. Arguments that are a JSON value keep their
bytes, so that `1.0` and the order of keys survive. Buffered: nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib_parsers.errors import malformed
from streamlib_parsers.items import CustomToolCall, FunctionCall, JsonObject, Opaque
from streamlib_parsers.wires.chat.calls import MAX_INDEX, CallKind
from streamlib_parsers.wires.chat.choice import ChoiceAssembler
from streamlib_parsers.wires.chat.raw_arguments import LEGACY_CALL, Path, RawArguments
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    REASONING_KEYS,
)

__all__ = [
    "EMPTY",
    "failure_of",
    "index_of",
    "logprobs_of",
    "read_calls",
    "read_delta",
    "unknown_keys",
    "unwrapped",
]

EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
"""Values that carry no information, whatever the key."""

READERS: Final[tuple[tuple[str, Callable[[ChoiceAssembler, Any], None]], ...]] = (
    ("annotations", ChoiceAssembler.read_annotations),
    ("audio", ChoiceAssembler.read_audio),
    ("images", ChoiceAssembler.read_images),
)
"""Keys of a delta that are read after its content and refusal, in the order in which they are
emitted."""

NOISE: Final = frozenset({"role", "name", "index", "channel", "token_id", "padding"})
"""Keys of a delta that are ignored."""

ALL_REASONING_KEYS: Final = frozenset(
    {OPAQUE_REASONING_KEY, *REASONING_KEYS, *REASONING_DETAIL_KEYS}
)

READ: Final = ALL_REASONING_KEYS.union(
    (
        "content",
        "refusal",
        "tool_calls",
        "function_call",
        "executed_tools",
        "extra_content",
        "thought_signature",
    ),
    dict(READERS),
)

DELTA_KEYS: Final = NOISE | READ
"""Keys of a delta that are read or ignored. Every other key is metadata."""

REASONING_FLAG: Final = {"extra_content": {"google": {"thought": True}}}
"""How Gemini's compatible endpoint marks reasoning, if the mark is alone in its object."""

CALL_KEYS: Final = frozenset(
    {"index", "id", "type", "function", "custom", "extra_content", "thought_signature"}
)
"""Keys of an entry of `tool_calls` that have a field; every other key is native."""

FUNCTION_KEYS: Final = frozenset({"name", "arguments", "input"})
"""Keys of `function` and `custom` that have a field; every other key is native."""


def failure_of(value: Any) -> Any:
    """The part of a chunk to classify if the chunk is an error, else None."""
    if isinstance(value, dict) and _is_failure(value):
        return value
    return None


def _is_failure(chunk: JsonObject) -> bool:
    kind = chunk.get("type")
    if chunk.get("error") or kind == "error":
        return True
    if str(chunk.get("object")).startswith("error"):  # vLLM, with status 200 (X26)
        return True
    groq = chunk.get("x_groq")
    if isinstance(groq, dict) and groq.get("error"):
        return True
    base = chunk.get("base_resp")  # MiniMax; status 0 is success
    if isinstance(base, dict) and base.get("status_code") not in (None, 0, "0"):
        return True
    if "choices" in chunk or not (kind is None or "error" in str(kind).lower()):
        return False
    # A chunk that only has a message is an error body; with a `type`, it is an event of that kind.
    return bool(chunk.get("detail") or chunk.get("errors") or isinstance(chunk.get("message"), str))


def unwrapped(value: JsonObject) -> JsonObject:
    """The chunk inside `{"data": {…}, "success": true}`, else `value` itself."""
    inner = value.get("data")
    if "choices" not in value and isinstance(inner, dict):
        return inner
    return value


def index_of(value: Any, name: str) -> int | None:
    """The index that `value` is; None for null.

    Args:
        value: wire value; a float without a fraction counts as its integer.
        name: the object that has the index, for the error message.

    Raises:
        ParseFailure: `value` is neither null nor an index of at most `MAX_INDEX` (`malformed`).
    """
    if value is None:
        return None
    index = value
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    # `True` is an `int` for Python, not for JSON.
    if isinstance(index, int) and not isinstance(index, bool) and 0 <= index <= MAX_INDEX:
        return index
    raise malformed(f"the index of {name} is {str(index)[:50]}")


def logprobs_of(choice: JsonObject, text: str = "content") -> list[JsonObject] | None:
    """The objects of ``choices[].logprobs``, one a token; None for legacy shapes.

    Args:
        choice: the choice.
        text: the text whose tokens are returned: `content` or `refusal`.
    """
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return None
    tokens = logprobs.get(text)
    if not isinstance(tokens, list):
        return None
    return [token for token in tokens if isinstance(token, dict)] or None


def unknown_keys(delta: JsonObject) -> JsonObject:
    """The keys of a delta that nothing here reads."""
    unknown: JsonObject = {}
    if not delta.keys() <= DELTA_KEYS:
        unknown = {key: value for key, value in delta.items() if key not in DELTA_KEYS}
    if "extra_content" in delta and google_of(delta)[0] is None:
        # With a signature, `extra_content` is kept in the signed item.
        extra = _extra_content(delta)
        if extra != REASONING_FLAG:
            unknown |= extra
    repeated = unknown.get("provider_specific_fields")
    if isinstance(repeated, dict):  # LiteLLM repeats the reasoning in it
        unknown["provider_specific_fields"] = {
            key: value for key, value in repeated.items() if key not in DELTA_KEYS
        }
    return unknown


def read_delta(
    choice: ChoiceAssembler,
    delta: JsonObject,
    logprobs: list[JsonObject] | None,
    refusal_logprobs: list[JsonObject] | None = None,
) -> None:
    """Read everything but the calls."""
    content = delta.get("content")
    signature, is_reasoning = google_of(delta)
    if signature:  # it signs this delta only, not the text before it
        choice.close_current()
    # Log probabilities are those of the content, or of the reasoning where there is no content.
    if not ALL_REASONING_KEYS.isdisjoint(delta):
        choice.read_reasoning(delta, None if content else logprobs)
    if delta.get("executed_tools"):
        choice.read_executed_tools(delta["executed_tools"])
    if content and is_reasoning and isinstance(content, str):
        choice.append_reasoning(content, logprobs)
    elif content or (content == "" and logprobs):  # a token may have no text of its own
        choice.read_content(content, logprobs)
    refusal = delta.get("refusal")
    if refusal or (refusal == "" and refusal_logprobs):
        choice.read_refusal(refusal, refusal_logprobs)
    for key, read in READERS:
        if delta.get(key):
            read(choice, delta[key])
    if signature:
        choice.sign(signature, _extra_content(delta))


def google_of(value: JsonObject) -> tuple[str | None, bool]:
    """Gemini's signature of a delta or call, and whether Gemini marks the delta as reasoning.

    Gemini marks signed output text as reasoning too, so the mark counts only without a signature.
    """
    extra = value.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    if not isinstance(google, dict):
        google = {}
    signature = google.get("thought_signature") or value.get("thought_signature")
    if isinstance(signature, str):
        return signature, False
    return None, google.get("thought") is True


def _extra_content(value: JsonObject) -> JsonObject:
    """`extra_content` as native, without the signature, which has a field of its own."""
    extra = value.get("extra_content")
    if not isinstance(extra, dict):
        return {}
    rest = dict(extra)
    google = extra.get("google")
    if isinstance(google, dict):
        rest["google"] = {key: value for key, value in google.items() if key != "thought_signature"}
    rest = {key: member for key, member in rest.items() if member not in EMPTY}
    if not rest:
        return {}
    return {"extra_content": rest}


# --- calls ---


def read_calls(
    choice: ChoiceAssembler, delta: JsonObject, raw: RawArguments, position: int, key: str
) -> None:
    """Read `tool_calls`, else the older `function_call`.

    Args:
        choice: receives the calls.
        delta: object that holds them.
        raw: the bytes of the chunk.
        position: position of the choice in its chunk.
        key: key of `delta` in the choice.
    """
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        for number, call in enumerate(calls):
            _read_call(choice, call, raw, (position, key, number))
    elif calls:
        choice.report_unexpected("tool_calls", calls)
    # The older form, for one call; not read beside `tool_calls`.
    legacy = delta.get("function_call")
    if not calls and isinstance(legacy, dict):
        call = {"index": 0, "function": legacy}
        _read_call(choice, call, raw, (position, key, LEGACY_CALL))


def _read_call(choice: ChoiceAssembler, call: Any, raw: RawArguments, path: Path) -> None:
    if not isinstance(call, dict):
        choice.report_unexpected("tool_calls", call)
        return
    kind = _kind_of(call)
    if kind is None:
        opaque = Opaque(kind=str(call.get("type")), payload=call, choice=choice.index)
        choice.add_complete(opaque)
        return
    if kind is CustomToolCall:
        body = call.get("custom") or {}
        arguments = body.get("input")
    else:
        body = call.get("function") or {}
        arguments = body.get("arguments")
    is_json_value = arguments is not None and not isinstance(arguments, str)
    if is_json_value:  # (T9)
        arguments = raw.arguments(path, arguments)
    name = body.get("name")
    state = choice.calls.add(
        index_of(call.get("index"), "a tool call"),
        _id_of(call.get("id")),
        name if isinstance(name, str) else None,
        arguments,
        kind,
        is_json_value=is_json_value,
    )
    if state is not None:
        # Set after `add`: an entry may start the call that it describes.
        state.set_fields(signature=google_of(call)[0], native=_native_of(call, body))


def _kind_of(call: JsonObject) -> CallKind | None:
    """The class of an entry of `tool_calls`; None for a kind that this version does not know."""
    function = call.get("function")
    kind = call.get("type")
    is_custom = isinstance(call.get("custom"), dict)
    if isinstance(function, dict):
        # Some servers fill both keys: then the type decides.
        return CustomToolCall if is_custom and kind == "custom" else FunctionCall
    if is_custom:
        return CustomToolCall
    # Later fragments may lack both, and some servers never send a type (T17).
    if function is None and kind in (None, "", "function"):
        return FunctionCall
    return None


def _id_of(value: Any) -> str | None:
    """The id of a call as text; some servers send a number."""
    if isinstance(value, int) and not isinstance(value, bool):  # (T24)
        return str(value)
    if isinstance(value, str) and value:
        return value
    return None


def _native_of(call: JsonObject, body: JsonObject) -> JsonObject:
    """Keys of an entry of `tool_calls`, and of its `function`, that have no field."""
    native = {
        key: value for key, value in call.items() if key not in CALL_KEYS and value is not None
    }
    if call.get("type") not in (None, "", "function", "custom"):
        native["type"] = call["type"]
    native |= _extra_content(call)
    inner = {
        key: value for key, value in body.items() if key not in FUNCTION_KEYS and value is not None
    }
    if inner:
        native["custom" if "custom" in call else "function"] = inner
    return native
