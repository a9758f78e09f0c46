"""Chat Completions: the bytes of arguments that are a JSON value, found in their chunk."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from streamlib_parsers.json_text import dumps

LEGACY_CALL: Final = -1
"""Position of `function_call`, which is in no list."""

Path: TypeAlias = tuple[int, str, int]
"""Position of the choice, `delta` or `message`, position of the call."""


# Unknown keys are allowed, and everything but the arguments is skipped without being decoded.
class _Function(Struct, gc=False):
    arguments: Raw = Raw(b"null")


class _Call(Struct, gc=False):
    function: _Function | None = None
    custom: dict[str, Raw] | None = None


class _Delta(Struct, gc=False):
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None


class _Choice(Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None


class _Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    data: _Chunk | None = None


class RawArguments:
    """Finds arguments in the bytes of a chunk."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._choices: list[_Choice] | None = None
        """The decoded choices; decoded once, at the first use."""

    def arguments(self, path: Path, value: Any) -> str:
        """The bytes at `path` as text; `value` encoded again if they cannot be found."""
        try:
            return self._bytes_at(path).decode()
        except (msgspec.DecodeError, UnicodeError, RecursionError, LookupError, AttributeError):
            # The chunk has another shape than these structs: only the original bytes are lost.
            return dumps(value)

    def _bytes_at(self, path: Path) -> bytes:
        if self._choices is None:
            self._choices = self._decode_choices()
        position, key, number = path
        delta = getattr(self._choices[position], key)
        if number == LEGACY_CALL:
            return bytes(delta.function_call.arguments)
        return bytes(delta.tool_calls[number].function.arguments)

    def _decode_choices(self) -> list[_Choice]:
        chunk = msgspec.json.decode(self._data, type=_Chunk)
        if chunk.choices:
            return chunk.choices
        if chunk.data is not None:
            return chunk.data.choices or []
        return []
