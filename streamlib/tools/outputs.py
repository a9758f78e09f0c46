"""What a function returned, as the output item of its call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, TypeGuard, cast

import msgspec
from msgspec.structs import replace

from streamlib_parsers.item_base import Part
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    BUILT_IN_OUTPUTS,
    CallOutput,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Output,
    PendingCall,
    Text,
)

OUTPUT_KINDS: Final[dict[type, type]] = {
    FunctionCall: FunctionCallOutput,
    CustomToolCall: CustomToolCallOutput,
    **dict(zip(BUILT_IN_CALLS, BUILT_IN_OUTPUTS, strict=True)),
}
"""Kind of call -> the kind of its output."""

CALLS: Final = (FunctionCall, CustomToolCall, *BUILT_IN_CALLS)
"""The classes of calls, for `isinstance`."""


def as_output(call: PendingCall, result: Any) -> CallOutput:
    """The output item of a call.

    Args:
        call: the call.
        result: an output item of the call; for calls of functions also a text, content parts, or
            any value that is written as JSON.

    Raises:
        TypeError: the result is none of these.
    """
    kind = OUTPUT_KINDS[type(call)]
    if isinstance(result, kind):
        output = cast(CallOutput, result)
        if output.call_id != call.call_id:
            raise TypeError(f"the output is that of another call, {output.call_id!r}")
        return output
    if isinstance(call, (FunctionCall, CustomToolCall)):
        return call.output(as_content(result))
    raise TypeError(f"a {type(call).__name__} is answered by its own output, not {result!r:.100}")


def as_content(result: Any) -> Output:
    """A value as text or content parts, of valid Unicode: names of files need not be.

    Raises:
        TypeError: it cannot be written as JSON.
    """
    if isinstance(result, str):
        return scrub_text(result)
    if isinstance(result, Part):
        return (_valid_part(cast(ContentPart, result)),)
    if _are_parts(result):
        return [_valid_part(part) for part in result]
    try:
        return msgspec.json.encode(result, enc_hook=_dumped).decode()
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(result, enc_hook=_dumped)
        return scrub_text(json.dumps(plain, ensure_ascii=False))


def scrub_text(text: str) -> str:
    """A text with U+FFFD for halves of surrogate pairs, which no request can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _valid_part(part: ContentPart) -> ContentPart:
    if isinstance(part, Text):
        return replace(part, text=scrub_text(part.text))
    return part


def _are_parts(result: Any) -> TypeGuard[Sequence[ContentPart]]:
    if not isinstance(result, (list, tuple)) or not result:
        return False
    return all(isinstance(element, Part) for element in result)


def _dumped(value: Any) -> Any:
    """What msgspec does not know: models of pydantic."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
    return dump(mode="json")
