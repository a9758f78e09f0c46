"""What a function returned, as the output item of its call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeGuard, cast

import msgspec

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
)

OUTPUT_KINDS: Final[dict[type, type]] = {
    FunctionCall: FunctionCallOutput,
    CustomToolCall: CustomToolCallOutput,
    **dict(zip(BUILT_IN_CALLS, BUILT_IN_OUTPUTS, strict=True)),
}
"""Kind of call -> the kind of its output."""


def as_output(call: PendingCall, result: Any) -> CallOutput:
    """The output item of a call.

    Args:
        call: The call.
        result: An output item of the call; for calls of functions also a text, content parts, or
            any value that is written as JSON.

    Raises:
        TypeError: The result is none of these.
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
    """A value as text or content parts.

    Raises:
        TypeError: it cannot be written as JSON.
    """
    if isinstance(result, str):
        return result
    if isinstance(result, Part):
        return (cast(ContentPart, result),)
    if _are_parts(result):
        return result
    return msgspec.json.encode(result, enc_hook=_dumped).decode()


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
