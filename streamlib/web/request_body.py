"""The JSON of a request body that a browser sent: limits, and values of the expected types.

A browser may send anything. Whatever is wrong raises `UIRequestError`, and what passes has bounded
size, count and depth, valid text, and numbers that JSON can hold again.
"""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject
from streamlib_parsers.stream_error import StreamError


class UIRequestError(StreamError):
    """A request body is not one of the protocol. The message names the position and the reason.

    It quotes nothing of the body, so that it can be sent back. Kind `invalid_request`, or
    `request_too_large` where a limit was exceeded.
    """

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        if too_large:
            super().__init__(ErrorInfo("request_too_large", message, status=413, code="ui_request"))
        else:
            super().__init__(ErrorInfo("invalid_request", message, status=400, code="ui_request"))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, which would call the class with the arguments of its base."""
        too_large = self.info.kind == "request_too_large"
        return partial(type(self), too_large=too_large), (self.info.message,)


StructT = TypeVar("StructT", bound=Struct)

INTEGER_LIMIT: Final = 1 << 63
"""Integers from here on become floats, as in JavaScript: encoders take 64 bits only."""


RequestBody: TypeAlias = bytes | bytearray | str | JsonObject
"""A body as a framework has it: bytes, their text, or the JSON object in them."""


class UIRequestLimits(Struct, frozen=True, kw_only=True):
    """Limits of a request body; a body that exceeds one is refused.

    Attributes:
        body_bytes: the size of the body, with the files in it; for a dict, the length of its texts.
        messages: the number of messages.
        values: the number of JSON values: objects, lists, texts and numbers.
        depth: how deep they may be nested.
        tools: the number of tools that a page may offer.
    """

    body_bytes: int = 32 << 20
    messages: int = 10_000
    values: int = 500_000
    depth: int = 100
    tools: int = 256


DEFAULT_LIMITS: Final = UIRequestLimits()


def read_body(body: RequestBody, limits: UIRequestLimits) -> JsonObject:
    """The body as a JSON object of its own.

    Raises:
        UIRequestError: it is not a JSON object, or exceeds a limit.
        TypeError: the argument is neither bytes nor a dict.
    """
    value: Any = body
    if isinstance(value, (bytes, bytearray, str)):
        if len(value) > limits.body_bytes:
            _exceeded("body_bytes", limits.body_bytes)
        if isinstance(value, str):
            # A lone surrogate stays until the text is read.
            value = value.encode("utf-8", "surrogatepass")
        _check_count(bytes(value), limits.values)
        value = _decoded(value)
    elif not isinstance(value, dict):
        raise TypeError(f"a body is bytes or a dict, not a {type(value).__name__}")
    copied = _Copier(limits).copied(value, 0)
    if not isinstance(copied, dict):
        raise UIRequestError("the body is not a JSON object")
    return copied


def _check_count(body: bytes, limit: int) -> None:
    """Refuses a body of far too many values before they are made: an empty list takes 20 times the
    memory of its two bytes."""
    if _count(body) <= limit and body.count(b'"') <= 4 * limit:
        return
    # Counted again without the contents of texts, which may hold long lists in another format.
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Each value may be a text, and have a key.
    if unescaped.count(b'"') > 4 * limit:
        _exceeded("values", limit)
    outside = b"".join(unescaped.split(b'"')[::2])
    # Empty lists and objects count twice here; `_Copier` counts exactly.
    if _count(outside) > 2 * limit:
        _exceeded("values", limit)


def _count(body: bytes) -> int:
    """The maximum number of values in a JSON text whose texts contain none of these characters."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _decoded(body: bytes | bytearray) -> Any:
    try:
        text = body.decode("utf-8-sig", "surrogatepass")
        return json.loads(text, parse_constant=_refuse_constant)
    except UIRequestError:
        raise
    except UnicodeDecodeError:
        raise UIRequestError("the body is not UTF-8") from None
    except RecursionError:
        raise UIRequestError("the body is nested too deeply", too_large=True) from None
    except ValueError as error:
        # The message of `JSONDecodeError` has a position, but nothing of the body.
        reason = str(error) if isinstance(error, json.JSONDecodeError) else "a number is too long"
        raise UIRequestError(f"the body is not JSON: {reason}") from None


def _refuse_constant(_name: str) -> NoReturn:
    raise UIRequestError("the body is not JSON: NaN and Infinity are not numbers")


def _exceeded(name: str, limit: int) -> NoReturn:
    raise UIRequestError(f"the body exceeds {name}, its limit of {limit}", too_large=True)


class _Copier:
    """Copies JSON values while it counts them."""

    def __init__(self, limits: UIRequestLimits) -> None:
        self._limits = limits
        self._values = 0
        """Values so far."""
        self._characters = 0
        """Characters of all texts so far."""

    def copied(self, value: Any, depth: int) -> Any:
        """A copy of a value with valid text and numbers."""
        self._values += 1
        if self._values > self._limits.values:
            _exceeded("values", self._limits.values)
        if depth > self._limits.depth:
            _exceeded("depth", self._limits.depth)
        # `bool` is an `int`: it comes first.
        if value is None or isinstance(value, bool):
            return value
        match value:
            case str():
                return self._text(value)
            case int():
                return _number(value)
            case float():
                if math.isfinite(value):
                    return value
                raise UIRequestError("the body is not JSON: a number is not finite")
            case list():
                return [self.copied(element, depth + 1) for element in value]
            case dict():
                return self._object(value, depth)
            case _:
                kind = type(value).__name__
                raise UIRequestError(f"the body is not JSON: it holds a {kind}")

    def _object(self, value: dict[Any, Any], depth: int) -> JsonObject:
        copy: JsonObject = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                raise UIRequestError("the body is not JSON: a key is not a text")
            copy[self._text(key)] = self.copied(inner, depth + 1)
        return copy

    def _text(self, text: str) -> str:
        self._characters += len(text)
        if self._characters > self._limits.body_bytes:
            _exceeded("body_bytes", self._limits.body_bytes)
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            # Half of a surrogate pair that JavaScript split: it cannot be sent on.
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text


def _number(value: int) -> int | float:
    if -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        return value
    try:
        return float(value)
    except OverflowError:
        raise UIRequestError("the body is not JSON: a number is too large") from None


def read_struct(value: Any, expected: type[StructT], path: str) -> StructT:
    """A value as a struct; keys that the struct lacks are ignored.

    Args:
        value: a JSON value.
        expected: the struct's class.
        path: JSON pointer of the value, for the error.

    Raises:
        UIRequestError: the value has other types.
    """
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        reason, _, inner = str(error).partition(" - at `$")
        # msgspec's `.parts[0].text` as a pointer.
        inner = inner.removesuffix("`").replace("[", "/").replace("]", "").replace(".", "/")
        raise UIRequestError(f"{path}{inner or '/'}: {reason}") from None


def json_text(value: Any) -> str:
    """A JSON value as compact text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
