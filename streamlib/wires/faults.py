"""What can go wrong with a body: shared by the loopback provider and by replayed recordings."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from streamlib.request.mistakes import check_kind

Fault: TypeAlias = Literal["truncate", "disconnect", "malformed", "stall"]
"""In order: the body ends cleanly but too early; the connection is lost inside a frame; bytes that
are not the wire's are inserted; nothing more comes."""

MALFORMED: Final = b'data: {"broken\n\n'
"""Bytes that are malformed on every wire: neither JSON of an SSE event, nor a line or frame."""


def check_fault(fault: str | None, after: int, failing: int | None) -> None:
    """Checks the options of a fault where they are passed.

    Raises:
        TypeError: a number is none.
        ValueError: an option has a value that is not allowed.
    """
    check_kind("at", after, int, "a whole number")
    check_kind("failing", failing, int, "a whole number")
    if fault is not None and fault not in get_args(Fault):
        raise ValueError(f"no fault {fault!r}; one of {', '.join(get_args(Fault))}")
    if after < 0:
        raise ValueError(f"at is how many chunks come before the fault, 0 or more: not {after}")
    if failing is not None and failing < 0:
        raise ValueError(f"failing is how many requests fail, 0 or more: not {failing}")


def fault_index(count: int, after: int) -> int:
    """Index of the chunk before which the fault comes.

    A body of at most `after` chunks has it in its middle, not at its end: after the last chunk, or
    before an end mark like ``[DONE]``, nothing would be missing.

    Args:
        count: number of chunks of the body.
        after: number of chunks that should come before the fault.
    """
    if after < count:
        return after
    return max(0, (count - 1) // 2)
