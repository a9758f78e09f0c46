"""The stop reason of a response of one choice, compared with its calls.

Chat has several choices and does the same for each (`wires/chat/machine.py`).
"""

from __future__ import annotations

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import StopReason


def reconcile(
    assembler: EventAssembler,
    stop_reason: StopReason,
    native: str | None,
    *,
    call_waits: bool,
) -> StopReason:
    """The stop reason that agrees with the calls.

    An agent loop goes by the stop reason. Servers say `stop` beside a call that waits for its
    result, and announce calls that never come; such a call may be in the text, where a dialect
    finds it.

    Args:
        assembler: knows whether there was any call; emits `Notice("no_tool_call")`.
        stop_reason: what the wire's own value stands for.
        native: that value; None where the wire sent none.
        call_waits: whether a complete call waits for its result.
    """
    if call_waits and (native is None or stop_reason == "stop"):
        return "tool_calls"
    if stop_reason == "tool_calls" and not assembler.has_call:
        assembler.notice("no_tool_call", f"the stop reason is {native}, but no call came")
        return "stop"
    return stop_reason
