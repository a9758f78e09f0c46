"""`streamlib log URL [ID]`: lists the logs of an engine, or shows one: header, readers, tail."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
import msgspec

from streamlib.cli.arguments import CommandError
from streamlib.cli.numbers import integer
from streamlib.cli.tables import terminal_width
from streamlib.display.safe_text import one_line
from streamlib.inspection.event_text import describe_event, shorten
from streamlib_parsers import Failed, RunEvent

if TYPE_CHECKING:
    from streamlib.durable import Engine, Log
    from streamlib.durable.rules import LogState

DESCRIPTION: Final = """\
Shows the logs that an engine keeps, or one of them: its head, who follows it,
and its last events. Looking changes nothing; with --follow it is a reader like
any other, and ends a log whose writer is gone."""

EXAMPLES: Final = """examples:
  # every log
  streamlib log redis://host:6379
  # one of them, and what comes, until its response ends
  streamlib log sqlite:///responses.db chat-7 --follow
  # stop its model, whichever host writes it
  streamlib log redis://host:6379 chat-7 --stop

exit code: 0 success, 1 there is no such log, the engine does not answer, or the
           followed response failed, 2 usage error
"""

MOST_LOGS: Final = 1000
"""Limit of logs that are listed."""

WIDTH: Final = 120
"""Columns of a line if the output is not a terminal."""

_DELTA_TEXT: Final = "delta"


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument("url", metavar="URL", help="the engine: sqlite:///file, redis://host …")
    command.add_argument("id", metavar="ID", nargs="?", help="one log (default: list all)")
    command.add_argument(
        "--tail",
        type=integer(0, "events"),
        default=10,
        metavar="N",
        help="show the last N events (default 10)",
    )
    command.add_argument(
        "--follow", action="store_true", help="show new events until the response ends"
    )
    command.add_argument(
        "--stop",
        nargs="?",
        const="user",
        metavar="REASON",
        help="stop the response (default reason: user)",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object a log")


def run(arguments: argparse.Namespace) -> int:
    """Shows the logs, or one."""
    from streamlib.durable import LogError

    try:
        return anyio.run(_run, arguments)
    except (CommandError, LogError) as error:
        # No message repeats the URL, which may have a password.
        sys.stderr.write(f"{one_line(str(error))}\n")
        return getattr(error, "code", 1)


async def _run(arguments: argparse.Namespace) -> int:
    if arguments.id is None:
        if arguments.follow or arguments.stop:
            raise CommandError("--follow and --stop need the ID of a log", 2)
        async with _engine(arguments.url) as engine:
            await _list(engine, as_json=arguments.json)
        return 0
    async with _engine(arguments.url) as engine:
        return await _show(engine, arguments)


@asynccontextmanager
async def _engine(url: str) -> AsyncGenerator[Engine]:
    """The connected engine of a URL.

    Raises:
        CommandError: the URL names no engine that a second process can read.
    """
    from streamlib.durable.log import engine_of

    try:
        engine = engine_of(url)
    except ValueError as error:
        raise CommandError(str(error), 2) from None
    parts = urlsplit(url)
    if parts.scheme == "memory":
        raise CommandError("a log in memory is seen by its own process only", 2)
    # Connecting would create a missing file.
    file = anyio.Path(parts.path.removeprefix("/"))
    if parts.scheme == "sqlite" and not await file.exists():
        raise CommandError(f"{file}: No such file")
    await engine.connect()
    try:
        yield engine
    finally:
        await engine.aclose()


# --- all logs ---


async def _list(engine: Engine, *, as_json: bool) -> None:
    from streamlib.durable.records import Overview

    if not isinstance(engine, Overview):
        raise CommandError("this engine does not list its logs: name one")
    ids = await engine.log_ids(MOST_LOGS + 1)
    shown = 0
    for log_id in ids[:MOST_LOGS]:
        head = await _head(engine, log_id)
        if head is None:
            continue
        shown += 1
        if as_json:
            _write_json(head)
        else:
            state = f"{one_line(log_id)}  {head['state']}  {head['events']:,} events"
            print(f"{state}  {head['bytes']:,} bytes  {head['writer']}")
    more = ""
    if len(ids) > MOST_LOGS:
        more = ", and there are more"
    print(f"logs: {shown}{more}. {engine.durability}", file=sys.stderr)


async def _head(engine: Engine, log_id: str) -> dict[str, Any] | None:
    """The facts of a log, as JSON; None if it no longer exists."""
    from streamlib.durable.records import START, LogCursor, Overview

    state, now, _ = await engine.read(log_id, START, 0)
    if state is None or state.gone:
        return None
    followers: int | None = None
    if isinstance(engine, Overview):
        followers = await engine.followers(log_id)
    meta: Any = None
    if state.meta:
        meta = msgspec.json.decode(state.meta)
    return {
        "id": log_id,
        "state": _state_name(state),
        "cursor": str(LogCursor(state.epoch, state.last)),
        "events": state.last,
        "bytes": state.size,
        "epoch": state.epoch,
        "writer": _writer(state, now),
        "reason": state.stop or None,
        "followers": followers,
        "meta": meta,
    }


def _state_name(state: LogState) -> str:
    if state.closed:
        return "closed"
    if state.stop:
        return "stopping"
    return "open"


def _writer(state: LogState, now: int) -> str:
    if state.closed:
        return "ended"
    if now >= state.lease_until:
        return "silent"  # the next reader ends the log
    if not state.owner:
        return "awaited"
    return "alive"


def _write_json(value: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    # Whoever reads a pipe sees it before the next event comes.
    sys.stdout.flush()


# --- one log ---


async def _show(engine: Engine, arguments: argparse.Namespace) -> int:
    from streamlib.durable import open_log

    log_id: str = arguments.id
    head = await _head(engine, log_id)
    if head is None:
        raise CommandError(f"there is no log {log_id!r}")
    async with open_log(engine) as log:
        if arguments.stop:
            await log.stop(log_id, arguments.stop)
            head = await _head(engine, log_id) or head
        tail = await _tail(engine, log_id, head["events"], arguments.tail)
        if arguments.json:
            events = [{"cursor": cursor, "event": event} for cursor, event in tail]
            _write_json({**head, "tail": events})
        else:
            _print_head(head)
            for cursor, event in tail:
                _print_event(cursor, event)
        if not arguments.follow:
            return 0
        last = await _follow(log, log_id, tail, head["cursor"], as_json=arguments.json)
    if isinstance(last, Failed):
        text = f"the response failed ({last.error.kind}): {last.error.message}"
        sys.stderr.write(f"{one_line(text)}\n")
        return 1
    return 0


async def _follow(
    log: Log,
    log_id: str,
    tail: list[tuple[str, RunEvent]],
    cursor: str,
    *,
    as_json: bool,
) -> RunEvent | None:
    """Shows the events after those already shown; returns the last event of both."""
    last: RunEvent | None = None
    if tail:
        cursor, last = tail[-1]
    async for entry in log.read(log_id, after=cursor):
        last = entry.event
        if as_json:
            _write_json({"cursor": entry.cursor, "event": last})
        else:
            _print_event(entry.cursor, last)
    return last


async def _tail(engine: Engine, log_id: str, events: int, most: int) -> list[tuple[str, RunEvent]]:
    """The last events, each with its cursor. Reading them does not count as a reader."""
    from streamlib.durable.records import LogCursor
    from streamlib.durable.settings import READ_RECORDS

    entries: deque[tuple[str, RunEvent]] = deque(maxlen=most)
    after = LogCursor(1, max(0, events - most))
    while True:
        _, _, records = await engine.read(log_id, after, READ_RECORDS)
        for record in records:
            after = LogCursor(record.epoch, record.last)
            for offset, event in enumerate(record.events()):
                entries.append((str(LogCursor(record.epoch, record.first + offset)), event))
        if len(records) < READ_RECORDS:
            return list(entries)


def _print_head(head: dict[str, Any]) -> None:
    state = head["state"]
    if head["reason"] is not None:
        state += f", stopped: {head['reason']}"
    print(one_line(f"{head['id']}: {state}"))
    print(f"  cursor {head['cursor']} · {head['events']:,} events · {head['bytes']:,} bytes")
    readers = "who follows it is not known"
    if head["followers"] is not None:
        readers = f"processes that follow: {head['followers']}"
    print(f"  writer {head['writer']} · {readers}")
    if head["meta"]:
        meta = one_line(f"meta {msgspec.json.encode(head['meta']).decode()}")
        print(f"  {shorten(meta, terminal_width(WIDTH) - 2)}")
    print(flush=True)


def _print_event(cursor: str, event: RunEvent) -> None:
    text = getattr(event, _DELTA_TEXT, "")
    print(f"  {cursor:>9}  {describe_event(event, text, terminal_width(WIDTH) - 13)}", flush=True)
