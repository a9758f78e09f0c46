"""A request of any wire as a `Prompt`: each wire's `decode` is the inverse of its `build`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.prompt import Prompt
from streamlib_parsers.items import ResponseItem, WireApi
from streamlib_parsers.protocol import WIRE_APIS
from streamlib_parsers.stream_error import invalid_request

MALFORMED: Final = (
    msgspec.DecodeError,
    UnicodeError,
    RecursionError,
    TypeError,
    AttributeError,
    ValueError,
)
"""Exceptions that a decoder raises on a value of the wrong type."""
INTEGERS: Final = ("max_output_tokens", "top_k", "seed", "n", "logprobs")
"""Fields of `Prompt` that take integers; clients write them as 5.0, too."""

PYTHONS_WORDS: Final = (
    "object has no",
    "object is not",
    "object does not",
    "object of type",
    "object cannot",
    "indices must be",
    "unhashable type",
    "not supported between",
    "unsupported operand",
    "can only concatenate",
    "unpack",
    "argument",
    "expected str",
    "must be str",
)
"""Words of Python's errors where a value has the wrong type; errors of decoders have none."""

OUR_NAME: Final = re.compile(rf"({'|'.join(Prompt.__struct_fields__)})(?= )")
"""A field of `Prompt` at the start of an error of its own."""

POSITION: Final = re.compile(r" - at `\$[^`]*`$")
"""Where a value is in `Prompt`, at the end of an error of msgspec."""

ITEM: Final = re.compile(r" - at `\$(\[\d+\])(?=[^`]*`$)")
"""Where it begins with the number of an item."""

ENTRY: Final = re.compile(r"\w+\[\d+\]")
"""The path of a message."""

SHOWN: Final = 150
"""Characters of a long reason at both of its ends: a client may write anything in it."""

TRIED_KEYS: Final = {dict: 100, list: 1_000}
"""Most keys of an object, and entries of a list, that are tried to name the wrong one."""

TRIED_DEPTH: Final = 6
"""How far inside the body the wrong key is looked for."""

CONVERSATION: Final = frozenset({"messages", "contents", "input"})
"""Keys of the conversation, which a wire's body must have."""

CHECKED_ITEMS: Final = 1_000
"""Number of items whose types are checked in one call."""


def parse_request(
    wire_api: WireApi,
    body: bytes,
    *,
    headers: Mapping[str, str] | None = None,
    path: str | None = None,
) -> Prompt:
    """The prompt of a request of this wire, with `.model` and `.stream`.

    Args:
        wire_api: the wire of the request.
        body: the body, as received.
        headers: the request's headers: Bedrock has the service tier there, Anthropic the betas
            (`Prompt.headers`).
        path: the request's path: Gemini and Bedrock name the model there.

    Raises:
        StreamError: `invalid_request`, on anything that is not such a request.
        ValueError: `wire_api` is unknown.
    """
    if wire_api not in WIRE_APIS:
        raise ValueError(f"unknown wire API {wire_api!r}; one of {', '.join(WIRE_APIS)}")
    # by name at run time: the decoders of other wires are not loaded
    module: Any = importlib.import_module(f"streamlib.wires.{wire_api}.decode")
    try:
        return _checked(module.decode(body, headers or {}, path or ""), wire_api)
    except (KeyError, *MALFORMED) as error:
        reason = _reason(error, _wrong_key(module, body, path or "", error))
        if len(reason) > 2 * SHOWN:
            # what is wrong comes first, and where it is last
            reason = f"{reason[:SHOWN]}…{reason[-SHOWN:]}"
        raise invalid_request(f"not a request of {wire_api}: {reason}") from None


def _reason(error: Exception, key: str) -> str:
    """Why a body is refused, with its own names.

    Args:
        error: what its decoder, or `Prompt`, has against it.
        key: the key of the body that has the wrong value, "" where that is not known.
    """
    reason = str(error)
    if isinstance(error, KeyError):
        reason = f"{reason} is missing or unknown"
    elif _is_pythons(error):
        return f"{key or 'a key'} has a value of the wrong type"
    if OUR_NAME.match(reason):
        return OUR_NAME.sub(key or "a key", reason, count=1)
    if not key or reason.startswith(key):
        return reason
    item = ITEM.search(reason)
    if item is not None and ENTRY.fullmatch(key):
        return ITEM.sub(f" - at `{key}", reason)
    if item is not None and "[" not in key:
        return ITEM.sub(f" - at `{key}{item[1]}", reason)
    return f"{POSITION.sub('', reason)} in {key}"


def parse_settings(
    wire_api: WireApi, body: bytes, *, headers: Mapping[str, str], path: str
) -> Prompt:
    """What a request asks for, without its conversation: its length costs next to nothing.

    Args:
        wire_api: as of `parse_request`, like the others.
        body: the body.
        headers: the request's headers.
        path: the request's path.

    Raises:
        StreamError: `invalid_request`, where the body is not one of its wire.
    """
    try:
        fields = msgspec.json.decode(body, type=dict[str, Raw])
    except MALFORMED as error:
        raise invalid_request(f"not a request of {wire_api}: {error}") from None
    settings = msgspec.json.encode({**fields, **_no_conversation(fields)})
    return parse_request(wire_api, settings, headers=headers, path=path)


def _no_conversation(fields: Mapping[str, Raw]) -> dict[str, Raw]:
    """The keys of the conversation that a body has, with nothing in them."""
    return dict.fromkeys(CONVERSATION.intersection(fields), Raw(b"[]"))


def _is_pythons(error: Exception) -> bool:
    """Whether an error is in Python's own words, which say nothing to who sent the request."""
    if not isinstance(error, (AttributeError, TypeError)):
        return False
    message = str(error)
    return any(part in message for part in PYTHONS_WORDS)


def _wrong_key(module: Any, body: bytes, path: str, error: Exception) -> str:
    """The key of the body that a decoder failed on: without the others it fails alike.

    With all keys around it, as far inside as one alone is the reason; "" where none is known.
    """
    members = _members(body)
    if not isinstance(members, dict):
        return "the body" if isinstance(error, msgspec.ValidationError) else ""
    needed = {key: value for key, value in members.items() if key == "anthropic_version"}
    needed.update(_no_conversation(members))

    def fails(keys: Sequence[str | int], value: Any) -> bool:
        for key in reversed(keys):
            value = [value] if isinstance(key, int) else {key: value}
        try:
            _checked(module.decode(msgspec.json.encode(needed | value), {}, path), "chat")
        except (KeyError, *MALFORMED) as again:
            # what follows repeats the value
            return str(again).partition(" not ")[0] == str(error).partition(" not ")[0]
        return False

    keys: list[str | int] = []
    while len(keys) < TRIED_DEPTH and len(members) <= TRIED_KEYS[type(members)]:
        inside = members.items() if isinstance(members, dict) else enumerate(members)
        # what is missing is missing in an empty object, too
        is_whole = isinstance(members, list) and OUR_NAME.match(str(error)) is not None
        if is_whole or fails(keys, type(members)()):
            break
        for key, value in inside:
            if fails([*keys, key], value) and _may_explain(value, error):
                break
        else:
            break
        keys.append(key)
        members = _members(value)
    return _path(keys)


def _may_explain(value: Raw, error: Exception) -> bool:
    """Whether a value may be the reason: a key is not missing in a text."""
    if not isinstance(error, KeyError) or _members(value):
        return True
    return bool(msgspec.json.decode(value) == error.args[0])


def _members(raw: bytes | Raw) -> dict[str, Raw] | list[Raw]:
    """The fields of an object, or the entries of a list; none of anything else."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw] | list[Raw])
    except MALFORMED:
        return []


def _path(keys: Sequence[str | int]) -> str:
    """The keys as a path: `messages[1].content`."""
    parts = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys]
    return "".join(parts).removeprefix(".")


def _checked(prompt: Prompt, wire_api: WireApi) -> Prompt:
    """The prompt with the types of its fields checked.

    A client may write anything in place of a text or a number, and builders rely on the types.
    """
    integers: dict[str, int] = {}
    for name in INTEGERS:
        value = getattr(prompt, name)
        # a fraction stays, and fails in the check of types
        if isinstance(value, float) and value.is_integer():
            integers[name] = int(value)
    # Also without fields of its own: what a request leaves out has a default of its wire.
    prompt = msgspec.structs.replace(prompt, extra_wire=wire_api, **integers)
    # builders check the schemas
    tools = [msgspec.structs.replace(tool, schema=None) for tool in prompt.tools]
    settings = msgspec.structs.replace(prompt, input=(), tools=tools)
    # called for its errors only; it checks the tools too
    msgspec.convert(msgspec.to_builtins(settings), Prompt)
    # in slices, since a long call would block the other tasks of the event loop
    for start in range(0, len(prompt.items), CHECKED_ITEMS):
        items = prompt.items[start : start + CHECKED_ITEMS]
        msgspec.convert(msgspec.to_builtins(items), list[ResponseItem])
    return prompt
