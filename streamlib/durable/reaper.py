"""Ends a log whose writer died. Any reader may do it; the epoch ensures that it happens once."""

from __future__ import annotations

import secrets
from typing import Final

from streamlib.durable.records import START, Engine, LogCursor, LogError, encode_event, endings
from streamlib.durable.rules import Append, Open, Result
from streamlib.durable.settings import READ_RECORDS, Settings
from streamlib_parsers.errors import ErrorInfo

WRITER_LOST: Final = ErrorInfo(
    "truncated",
    "the process that wrote this response is gone; what it had received is here",
    retryable=True,
    code="writer_lost",
)


def stopped(reason: str) -> ErrorInfo:
    """The error of a response that was stopped by `Log.stop`."""
    return ErrorInfo("cancelled", f"stopped: {reason}", code=reason)


async def end_abandoned(engine: Engine, log_id: str, settings: Settings) -> None:
    """Takes the log over and appends its end. Does nothing if its writer is active again.

    Raises:
        LogError: the engine does not respond.
    """
    owner = secrets.token_hex(8)
    taken = await engine.ask(log_id, Open(owner, settings.lease_ms))
    if taken.status != "ok":
        return  # its writer is active again, or another reader was first
    await append_endings(engine, log_id, settings, owner, taken)


async def append_endings(
    engine: Engine, log_id: str, settings: Settings, owner: str, taken: Result
) -> None:
    """Appends the events that end a log which this owner took over.

    Raises:
        LogError: the engine does not respond.
    """
    lines = await read_lines(engine, log_id)
    error = WRITER_LOST
    if taken.stop:
        error = stopped(taken.stop)
    ends = [encode_event(event) for event in endings(lines, error)]
    data = b"".join(ends)
    record = Append(
        owner,
        taken.epoch,
        taken.last + 1,
        taken.last + len(ends),
        size=len(data),
        lease_ms=settings.lease_ms,
        closes=True,
        keep_ms=int(settings.keep * 1000),
        max_bytes=settings.max_bytes,
    )
    # The result does not matter: if this fails, another reader ends the log.
    await engine.ask(log_id, record, data)


async def read_lines(engine: Engine, log_id: str) -> list[bytes]:
    """The lines of every record of a log, up to one that cannot be read."""
    lines: list[bytes] = []
    after: LogCursor = START
    while True:
        try:
            _, _, records = await engine.read(log_id, after, READ_RECORDS)
        except LogError as error:
            if error.kind != "unreadable":
                raise
            return lines
        for record in records:
            lines.append(record.lines)
            after = LogCursor(record.epoch, record.last)
        if len(records) < READ_RECORDS:
            return lines
