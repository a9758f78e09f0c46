"""Many prompts asked now: a few at a time, at the pace that the provider allows, row by row."""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from io import FileIO
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import msgspec

from streamlib.batch.lines import check_prompts
from streamlib.batch.results import BatchRow
from streamlib.client import Client
from streamlib.client.hooks import AttemptRequest, AttemptResponse
from streamlib.client.retry import NO_RETRY, RetryPolicy
from streamlib.client.setup import check_retry
from streamlib.pipeline import Measure, merge
from streamlib.pipeline.numbers import check_count, check_seconds
from streamlib.request.mistakes import check_callable
from streamlib.request.prompt import Prompt
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.rate_limits import read_rate_limits
from streamlib_parsers.response import Response
from streamlib_parsers.stream_error import StreamError

LONGEST_PAUSE: Final = 60.0
"""Seconds that a rate limit may make all wait: some are reset only the next day, and then the
provider's refusal says more."""

FIRST_ERROR: Final = 400
"""The lowest HTTP status of a refusal."""


class Pause:
    """A time before which nobody asks."""

    def __init__(self, longest: float = LONGEST_PAUSE) -> None:
        self._longest = longest
        self._until = 0.0
        """The end of the pause, by the monotonic clock."""

    @property
    def seconds(self) -> float:
        """Seconds that it still lasts; 0 without a pause."""
        return max(0.0, self._until - time.monotonic())

    async def wait(self) -> None:
        """Waits until it is over."""
        # Others may have made the pause longer meanwhile.
        while (seconds := self.seconds) > 0:  # noqa: ASYNC110
            await anyio.sleep(seconds)

    def extend(self, seconds: float) -> None:
        """Makes all wait for some seconds from now."""
        self._until = max(self._until, time.monotonic() + seconds)

    def obey(self, limits: RateLimits, *, is_refused: bool = False) -> None:
        """Makes all wait where the next request would be refused.

        Args:
            limits: of a response.
            is_refused: whether that response was a refusal, whose ``Retry-After`` counts.
        """
        waits: list[float | None] = [limits.retry_after if is_refused else None]
        for window in (limits.requests, limits.tokens, limits.input_tokens, limits.output_tokens):
            waits.append(_used_up(window))
        for seconds in waits:
            if seconds is not None and 0 < seconds <= self._longest:
                self.extend(seconds)


class Pace:
    """Keeps the requests of clients within the rate limits that the provider's headers report.

        pace = Pace()
        client = Client(on_request=pace.on_request, on_response=pace.on_response)

    Where a window has nothing left, or a refusal names a time to wait, later requests and retries
    to the same model of the same provider wait until then; no deadline counts that. One `Pace` may
    serve several clients, also a `SyncClient`. `map_concurrent` does the same for its own prompts.

    Args:
        longest: seconds that a request waits at most for one limit. One that lasts longer is not
            waited for, and the provider's refusal is raised.
    """

    def __init__(self, longest: float = LONGEST_PAUSE) -> None:
        check_seconds("longest", longest, may_be_zero=True)
        self._longest = longest
        self._pauses: dict[tuple[str | None, ...], Pause] = {}
        """Provider, address and model -> its pause."""

    async def on_request(self, request: AttemptRequest) -> None:
        """Waits until the request may be sent."""
        await self._of(request).wait()

    def on_response(self, response: AttemptResponse) -> None:
        """Reads the limits that the headers of a response report."""
        limits = read_rate_limits(response.headers, datetime.now(UTC))
        self._of(response.request).obey(limits, is_refused=response.status >= FIRST_ERROR)

    def _of(self, request: AttemptRequest) -> Pause:
        key = (request.origin.provider, request.origin.endpoint, request.model)
        return self._pauses.setdefault(key, Pause(self._longest))


def _used_up(window: Window | None) -> float | None:
    """Seconds until a window that has nothing left is reset; None if it has something."""
    if window is None or window.remaining is None or window.remaining > 0:
        return None
    return window.reset_after


# --- the file of rows: a line of JSON each, whenever the process was killed ---


class RowFile:
    """One row for each prompt.

    Args:
        path: where it is, or will be; None: rows are not kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(BatchRow)
        self._file: FileIO | None = None

    def load(self, digests: Mapping[str, str]) -> dict[str, BatchRow]:
        """The rows that are done. The file is written anew without the others.

        Args:
            digests: id -> what tells its request from another one.

        Raises:
            ValueError: a row is of another run, or is none, or an id has two.
            OSError: the file cannot be read or written.
        """
        path = self._path
        if path is None:
            return {}
        lines: dict[str, bytes] = {}
        rows: dict[str, BatchRow] = {}
        data = path.read_bytes() if path.exists() else b""
        # What follows the last end of a line was being written when the process was killed.
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            row_id, row = self._row(line, f"{path.name}, line {number}", digests)
            if row_id in rows:
                raise ValueError(f"{path.name}, line {number}: {row_id!r} has a row already")
            if row.error is None:
                rows[row_id], lines[row_id] = row, line + b"\n"
        content = b"".join(lines.values())
        if content != data:
            temporary = path.with_name(path.name + ".part")
            temporary.write_bytes(content)
            temporary.replace(path)
        self._file = path.open("ab", buffering=0)
        return rows

    def _row(self, line: bytes, line_name: str, digests: Mapping[str, str]) -> tuple[str, BatchRow]:
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
        return row.id, row

    def write(self, row: BatchRow) -> None:
        """Appends a row, in one write: a killed process leaves a whole line or a part of one.

        Raises:
            OSError: it cannot be written; the file ends with the row before it.
        """
        if self._file is None:
            return
        end = self._file.seek(0, os.SEEK_END)
        left = msgspec.json.encode(row) + b"\n"
        try:
            while left:  # of a disk that is full, a part is written without an exception
                left = left[self._file.write(left) :]
        except OSError:
            # Else the next row would follow in the middle of its line.
            with suppress(OSError):
                self._file.truncate(end)
            raise

    def close(self, last: Iterable[BatchRow] = ()) -> None:
        """Closes the file, after some last rows.

        Raises:
            OSError: one of them cannot be written.
        """
        if self._file is None:
            return
        with self._file:
            for row in last:
                self.write(row)


RETRY: Final = RetryPolicy(retries=5, cap=60.0, retry_after_cap=3600.0)
"""How often a prompt is asked again: more patiently than for somebody who waits."""

PROGRESS_SECONDS: Final = 2.0
"""Time between two lines of progress."""

Question: TypeAlias = Prompt | str | Sequence[ResponseItem]


async def map_concurrent(
    prompts: Mapping[str, Question],
    model: str | list[str],
    *,
    client: Client,
    out: str | os.PathLike[str] | None = None,
    limit: int = 20,
    retry: RetryPolicy = RETRY,
    price: Callable[[Response], float | Decimal | None] | None = None,
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
        retry: when one that failed is asked again. A refusal for the rate is no failure as long as
            other prompts are answered.
        price: what a response costs, in any currency; None: not known.
        progress: called with a line of text when a row has come and the last line is two seconds
            old, and at the end. None: to stderr.
        stop_after: how many may fail before the rest is not asked; None: all are.

    Raises:
        TypeError: an argument is of the wrong kind, or `price` returned no number.
        ValueError: the file has rows of another run: other prompts, or another model; `limit` or
            `stop_after` is less than 1; or a prompt cannot be written as JSON.
        OSError: the file cannot be read or written.
    """
    check_prompts(prompts)
    check_count("limit", limit)
    if stop_after is not None:
        check_count("stop_after", stop_after)
    check_retry(retry)
    check_callable("price", price, "a function of a `Response`")
    check_callable("progress", progress, "a function of a line of text")
    _check_client(client)
    digests = _digests(prompts, model)
    file = RowFile(None if out is None else Path(out))
    rows = file.load(digests)
    run = _SharedRun(client, model, retry)
    board = _Progress(len(prompts), rows, progress or _to_stderr)
    # One queue for all workers: each takes the next prompt when it is free.
    waiting = deque(row_id for row_id in prompts if row_id not in rows)
    workers: dict[int, Any] = {}
    for number in range(min(limit, len(prompts) - len(rows))):
        workers[number] = _answered(run, waiting, prompts, digests)
    # Of rows in place of events. One ahead: a worker asks its next prompt when its row is written.
    rows_in_turn: Any = merge(workers, ahead=1)
    try:
        async with rows_in_turn:
            try:
                async for _, merged_row in rows_in_turn:
                    row: BatchRow = merged_row
                    del run.unread[str(row.id)]
                    try:
                        row = _priced(row, price)
                    finally:  # what was paid for is written, whatever the price says
                        file.write(row)
                    board.add(row)
                    if stop_after is not None and board.failed >= stop_after:
                        break
                    board.show_now_and_then(run.pause)
            finally:
                waiting.clear()  # whoever is free now asks nothing more
    finally:
        # They came while the run ended, and are paid for, too.
        for row in run.unread.values():
            board.add(row)
        file.close(run.unread.values())
    board.show()
    return [rows[row_id] for row_id in prompts if row_id in rows]


def _check_client(client: Client) -> None:
    """Raises:
    TypeError: it is none, or a `SyncClient`.
    """
    if not hasattr(client, "aclose"):
        raise TypeError(f"client is a `Client`, not a {type(client).__name__}")


async def _answered(
    run: _SharedRun,
    waiting: deque[str],
    prompts: Mapping[str, Question],
    digests: Mapping[str, str],
) -> AsyncGenerator[BatchRow]:
    """The rows of one prompt after another, as long as there are any."""
    while waiting:
        row_id = waiting.popleft()
        run.unread[row_id] = await run.row(row_id, prompts[row_id], digests[row_id])
        yield run.unread[row_id]


class _SharedRun:
    """What the prompts of a run share: the client, and its pace."""

    def __init__(self, client: Client, model: str | list[str], retry: RetryPolicy) -> None:
        self._client = client
        self._model: Any = model
        self._retry = retry
        self._pause = Pause()
        """No request is sent before its end."""
        self._answered = 0
        """Responses without an error."""
        self.unread: dict[str, BatchRow] = {}
        """Rows that are there, and were not taken yet, by their ids."""

    async def row(self, row_id: str, prompt: Question, digest: str) -> BatchRow:
        """The row of one prompt, asked again where that may help."""
        attempt, waited, answered = 0, 0.0, self._answered
        while True:
            await self._pause.wait()
            try:
                response, times = await self._respond(prompt)
            except StreamError as failure:  # the request cannot be built
                return BatchRow(row_id, error=failure.info, request=digest)
            error = response.error
            if error is None:
                self._answered += 1
                return BatchRow(row_id, response, request=digest, times=times)
            is_limited = error.kind == "rate_limited"
            if is_limited and self._answered > answered:
                attempt, answered = 0, self._answered  # it is only not its turn yet
            delay = self._retry.wait(error, attempt, waited, random.random())  # noqa: S311
            if delay is None:
                return BatchRow(row_id, response, error, request=digest, times=times)
            if is_limited:
                self._pause.extend(delay)  # the others would be refused, too
            else:
                await anyio.sleep(delay)
            attempt, waited = attempt + 1, waited + delay

    async def _respond(self, prompt: Question) -> tuple[Response, dict[str, float | int | None]]:
        measure = Measure()
        stream = self._client.stream(prompt, self._model, errors="event", retry=NO_RETRY)
        async with stream.pipe(measure) as events:
            async for event in events:
                if isinstance(event, RateLimits):
                    self._pause.obey(event)
        return events.response, events.of(measure).row()

    @property
    def pause(self) -> float:
        """Seconds until the next request may be sent."""
        return self._pause.seconds


class _Progress:
    """How far a run is, as lines of text."""

    def __init__(
        self, total: int, rows: dict[str, BatchRow], show_line: Callable[[str], object]
    ) -> None:
        self.failed = 0
        self._total = total
        self._rows = rows
        self._show_line = show_line
        self._shown = anyio.current_time()
        """When the last line was shown."""

    def add(self, row: BatchRow) -> None:
        """Takes a row that is done."""
        self._rows[str(row.id)] = row
        if row.error is not None:
            self.failed += 1

    def show_now_and_then(self, pause: float) -> None:
        """Shows a line where the last one is old."""
        if anyio.current_time() - self._shown >= PROGRESS_SECONDS:
            self.show(pause)

    def show(self, pause: float = 0.0) -> None:
        """Shows how far the run is, and whether it waits."""
        self._shown = anyio.current_time()
        parts = [f"{len(self._rows)} of {self._total}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        prices = [row.price for row in self._rows.values() if row.price is not None]
        if prices:
            parts.append(f"price {sum(prices):.4f}")
        if pause > 0:
            parts.append(f"waiting {pause:.0f} s for a rate limit")
        self._show_line(", ".join(parts))


def _priced(row: BatchRow, price: Callable[[Response], float | Decimal | None] | None) -> BatchRow:
    if price is None or row.response is None or row.error is not None:
        return row
    cost: Any = price(row.response)
    if cost is None:  # of a model that it does not know
        return row
    if not isinstance(cost, (int, float, Decimal)):
        raise TypeError(f"price returned {cost!r:.100}, which is no number")
    return msgspec.structs.replace(row, price=float(cost))  # a Decimal is a text in JSON


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")


def _digests(prompts: Mapping[str, Question], model: str | list[str]) -> dict[str, str]:
    """Id -> what tells its request from another one: of the prompt and the model."""
    digests: dict[str, str] = {}
    for row_id, prompt in prompts.items():
        wanted = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
        try:
            data = msgspec.json.encode([wanted, model], order="deterministic")
        except (ValueError, OverflowError) as error:
            raise ValueError(f"the prompt {row_id!r} cannot be written as JSON: {error}") from None
        digests[row_id] = hashlib.sha256(data).hexdigest()[:16]
    return digests
