"""Many prompts asked now: a few at a time, at the pace that the provider allows, row by row."""

from __future__ import annotations

import hashlib
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from streamlib.batch.results import BatchRow
from streamlib.client import Client
from streamlib.client.retry import NO_RETRY, RetryPolicy
from streamlib.pipeline import Measure
from streamlib.request.prompt import Prompt
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.response import Response
from streamlib_parsers.stream_error import StreamError

RETRY: Final = RetryPolicy(retries=5, cap=60.0)
"""How often a prompt is asked again: more patiently than for somebody who waits."""

PROGRESS_SECONDS: Final = 2.0
"""Time between two lines of progress."""

LONGEST_PAUSE: Final = 60.0
"""Seconds that a window of a rate limit may make all wait: some are reset only the next day, and
then the provider's refusal says more."""


async def map_concurrent(
    prompts: Mapping[str, Prompt | str | Sequence[ResponseItem]],
    model: str | list[str],
    *,
    client: Client,
    out: str | os.PathLike[str] | None = None,
    limit: int = 20,
    retry: RetryPolicy = RETRY,
    price: Callable[[Response], float] | None = None,
    progress: Callable[[str], object] | None = None,
    stop_after: int | None = None,
) -> list[BatchRow]:
    """Asks many prompts, at most `limit` at once; returns a row for each, in their order.

    When the provider says that a limit is used up, all wait until it is reset, or as long as its
    `Retry-After` says. With `out`, a row is written as soon as it is there: a second run, also
    after a kill, asks only what has no row, or one that failed.

    Args:
        prompts: id -> prompt.
        model: as in `Client.stream`; of a list, the next one serves where one fails.
        client: asks; it stays the caller's to close.
        out: a file of rows, a JSON object a line.
        limit: prompts that are asked at the same time.
        retry: when one that failed is asked again.
        price: what a response costs, in any currency.
        progress: called with a line of text every two seconds, and at the end. None: to stderr.
        stop_after: how many may fail before the rest is not asked; None: all are.

    Raises:
        ValueError: the file has rows of another run: other prompts, or another model.
        OSError: the file cannot be read or written.
    """
    if limit < 1:
        raise ValueError(f"limit is a number of prompts from 1, not {limit}")
    digests = {row_id: _digest(prompt, model) for row_id, prompt in prompts.items()}
    rows: dict[str, BatchRow] = {}
    file: _RowFile | None = None
    if out is not None:
        file = _RowFile(Path(out))
        rows = file.load(digests)
    run = _SharedRun(
        client, model, retry, price, progress or _to_stderr, stop_after, len(prompts), rows
    )
    waiting = [row_id for row_id in prompts if row_id not in rows]
    room = anyio.CapacityLimiter(limit)
    try:
        async with anyio.create_task_group() as group:
            for row_id in waiting:
                # Taken here, so that there are no more tasks than prompts being asked.
                await room.acquire_on_behalf_of(row_id)
                if run.is_stopped:
                    break
                group.start_soon(_ask, run, room, file, row_id, prompts[row_id], digests[row_id])
    except ExceptionGroup as crashes:
        raise crashes.exceptions[0] from None
    finally:
        if file is not None:
            file.close()
    run.show(is_last=True)
    return [run.rows[row_id] for row_id in prompts if row_id in run.rows]


async def _ask(
    run: _SharedRun,
    room: anyio.CapacityLimiter,
    file: _RowFile | None,
    row_id: str,
    prompt: Prompt | str | Sequence[ResponseItem],
    digest: str,
) -> None:
    """Asks one prompt until it has a row."""
    try:
        row = await run.row(row_id, prompt, digest)
        if file is not None:
            file.write(row)
        run.add(row)
    finally:
        room.release_on_behalf_of(row_id)


class _SharedRun:
    """What the prompts of a run share: the pace, and how far it is."""

    def __init__(
        self,
        client: Client,
        model: str | list[str],
        retry: RetryPolicy,
        price: Callable[[Response], float] | None,
        progress: Callable[[str], object],
        stop_after: int | None,
        total: int,
        rows: dict[str, BatchRow],
    ) -> None:
        self.rows = rows
        self._client = client
        self._model: Any = model
        self._retry = retry
        self._price = price
        self._progress = progress
        self._stop_after = stop_after
        self._total = total
        self._paused_until = 0.0
        """No request is sent before this time, by the loop's clock."""
        self._shown = anyio.current_time()
        """When the last line of progress was shown."""
        self._failed = 0
        """Rows with an error."""

    @property
    def is_stopped(self) -> bool:
        """Whether so many failed that the rest is not asked."""
        return self._stop_after is not None and self._failed >= self._stop_after

    async def row(
        self, row_id: str, prompt: Prompt | str | Sequence[ResponseItem], digest: str
    ) -> BatchRow:
        """The row of one prompt, asked again where that may help."""
        attempt, waited = 0, 0.0
        while True:
            await self._pause()
            try:
                response, times = await self._respond(prompt)
            except StreamError as failure:  # the request cannot be built
                return BatchRow(row_id, error=failure.info, request=digest)
            error = response.error
            if error is None:
                break
            delay = self._retry.wait(error, attempt, waited, random.random())  # noqa: S311
            if delay is None:
                return BatchRow(row_id, response, error, request=digest, times=times)
            if error.kind == "rate_limited":
                self._pause_all(delay)  # the others would be refused, too
            else:
                await anyio.sleep(delay)
            attempt, waited = attempt + 1, waited + delay
        price = None if self._price is None else self._price(response)
        return BatchRow(row_id, response, request=digest, times=times, price=price)

    async def _respond(
        self, prompt: Prompt | str | Sequence[ResponseItem]
    ) -> tuple[Response, dict[str, float | int | None]]:
        measure = Measure()
        stream = self._client.stream(prompt, self._model, errors="event", retry=NO_RETRY)
        async with stream.pipe(measure) as events:
            async for event in events:
                if isinstance(event, RateLimits):
                    self._obey(event)
        return events.response, events.of(measure).row()

    async def _pause(self) -> None:
        # Others may have made the pause longer meanwhile.
        while (seconds := self._paused_until - anyio.current_time()) > 0:  # noqa: ASYNC110
            await anyio.sleep(seconds)

    def _pause_all(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, anyio.current_time() + seconds)

    def _obey(self, limits: RateLimits) -> None:
        """Pauses where the next request would be refused."""
        windows = (limits.requests, limits.tokens, limits.input_tokens, limits.output_tokens)
        for window in windows:
            seconds = _used_up(window)
            if seconds is not None and seconds <= LONGEST_PAUSE:
                self._pause_all(seconds)

    def add(self, row: BatchRow) -> None:
        """Takes a row that is done."""
        self.rows[str(row.id)] = row
        if row.error is not None:
            self._failed += 1
        if anyio.current_time() - self._shown >= PROGRESS_SECONDS:
            self.show()

    def show(self, *, is_last: bool = False) -> None:
        """Shows how far the run is, as a line of text."""
        self._shown = anyio.current_time()
        parts = [f"{len(self.rows)} of {self._total}"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if self._price is not None:
            parts.append(f"price {sum(row.price or 0.0 for row in self.rows.values()):.4f}")
        pause = self._paused_until - self._shown
        if pause > 0 and not is_last:
            parts.append(f"waiting {pause:.0f} s for a rate limit")
        self._progress(", ".join(parts))


def _used_up(window: Window | None) -> float | None:
    """Seconds until a window that has nothing left is reset; None if it has something."""
    if window is None or window.remaining is None or window.remaining > 0:
        return None
    return window.reset_after


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")


def _digest(prompt: Prompt | str | Sequence[ResponseItem], model: str | list[str]) -> str:
    """What tells a request from another one: of the prompt and the model."""
    wanted = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
    data = msgspec.json.encode([wanted, model], order="deterministic")
    return hashlib.sha256(data).hexdigest()[:16]


class _RowFile:
    """The file of rows: one row for each prompt, whenever the process was killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(BatchRow)
        self._file: Any = None

    def load(self, digests: Mapping[str, str]) -> dict[str, BatchRow]:
        """The rows that are done. The file is written anew without the others.

        Raises:
            ValueError: a row is of another run, or is none.
        """
        rows: dict[str, BatchRow] = {}
        lines: list[bytes] = []
        data = self._path.read_bytes() if self._path.exists() else b""
        # What follows the last end of a line was being written when the process was killed.
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            row = self._row(line, number, digests)
            if row.error is None and row.id not in rows:
                rows[str(row.id)] = row
                lines.append(line + b"\n")
        if b"".join(lines) != data:
            temporary = self._path.with_name(self._path.name + ".part")
            temporary.write_bytes(b"".join(lines))
            temporary.replace(self._path)
        self._file = self._path.open("ab", buffering=0)
        return rows

    def _row(self, line: bytes, number: int, digests: Mapping[str, str]) -> BatchRow:
        line_name = f"{self._path.name}, line {number}"
        try:
            row = self._decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ValueError(f"{line_name}: this is no row: {error}") from None
        if row.id is None or row.id not in digests:
            raise ValueError(f"{line_name}: {row.id!r} is none of the prompts: give another file")
        if row.request != digests[row.id]:
            raise ValueError(
                f"{line_name}: {row.id!r} was asked with another prompt or model: give another file"
            )
        return row

    def write(self, row: BatchRow) -> None:
        """Appends a row, in one write: a killed process leaves a whole line or a part of one."""
        self._file.write(msgspec.json.encode(row) + b"\n")

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
