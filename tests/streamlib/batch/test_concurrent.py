"""Many prompts at once: bounded, paced by the provider, every row once."""

from __future__ import annotations

import errno
import json
from decimal import Decimal
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from lab.killed_runs import kill_at_random
from streamlib import ErrorInfo, Response
from streamlib.batch import map_concurrent, read_batch
from streamlib.client.retry import RetryPolicy
from streamlib.testing import MODEL, TurnLike, loopback, scripted
from tests.support.clients import make_client
from tests.support.gateways import Upstream, error_response, stream_response
from tests.support.messages_frames import end, start

pytestmark = pytest.mark.anyio

PROMPTS = {f"case-{number}": f"What is {number}?" for number in range(12)}
BUSY = ErrorInfo("rate_limited", "slow down", retryable=True, retry_after=0.05)
BROKEN = ErrorInfo("server_error", "oh", retryable=True)
QUICK = RetryPolicy(retries=2, base=0.01)
NEVER = RetryPolicy(retries=0)


def silent(line: str) -> None:
    """Shows no progress."""


def written(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


async def test_every_prompt_has_a_row_in_its_order() -> None:
    shown: list[str] = []
    async with loopback() as client:
        rows = await map_concurrent(
            PROMPTS, MODEL, client=client, limit=3, progress=shown.append, price=lambda _: 0.5
        )
    assert [row.id for row in rows] == list(PROMPTS)
    assert all(row.response is not None and row.response.status == "completed" for row in rows)
    assert all(row.times["first_token"] is not None for row in rows)
    assert shown[-1] == "12 of 12, price 6.0000"


async def test_no_more_than_the_limit_are_asked_at_once() -> None:
    open_now, most = 0, 0

    async def opened(request: Any) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)

    def price(response: Response) -> float:
        nonlocal open_now
        open_now -= 1
        return 0.0

    async with loopback(pace=0.002, client={"on_request": opened}) as client:
        await map_concurrent(PROMPTS, MODEL, client=client, limit=4, price=price, progress=silent)
    assert most == 4


async def test_refusal_makes_all_wait_and_is_asked_again() -> None:
    turns: list[TurnLike] = ["a", "b", BUSY, BUSY, *["c"] * 12]
    async with scripted(turns) as client:
        rows = await map_concurrent(
            PROMPTS, MODEL, client=client, limit=2, retry=QUICK, progress=silent
        )
    assert len(client.requests) == 14
    assert [row.error for row in rows] == [None] * 12


async def test_prompts_that_wait_their_turn_do_not_fail() -> None:
    """A provider that answers one of four at a time refused some prompts for good."""
    turns: list[TurnLike] = [BUSY, BUSY, BUSY, "a"] * 12
    quick = RetryPolicy(retries=3, base=0.01)
    async with scripted(turns) as client:
        rows = await map_concurrent(
            PROMPTS, MODEL, client=client, limit=4, retry=quick, progress=silent
        )
    assert [row.error for row in rows] == [None] * 12


async def test_refusals_alone_end_in_rows_with_errors() -> None:
    async with scripted([BUSY] * 12) as client:
        rows = await map_concurrent(
            {"a": "x", "b": "y"}, MODEL, client=client, retry=QUICK, progress=silent
        )
    assert [row.error is not None and row.error.kind for row in rows] == ["rate_limited"] * 2
    assert len(client.requests) == 6


async def test_prompt_is_asked_six_times_by_default() -> None:
    broken = msgspec.structs.replace(BROKEN, retry_after=0.001)
    async with scripted([broken] * 9) as client:
        [row] = await map_concurrent({"a": "x"}, MODEL, client=client, progress=silent)
    assert row.error is not None
    assert len(client.requests) == 6


async def test_failure_without_a_limit_makes_nobody_wait() -> None:
    """Only a refusal for the rate says that the others would be refused, too."""
    broken = msgspec.structs.replace(BROKEN, retry_after=60.0)
    answered: list[Response] = []
    async with scripted([broken, *["a"] * 11]) as client:
        with anyio.move_on_after(5) as scope:

            def price(response: Response) -> None:
                answered.append(response)
                if len(answered) == 11:
                    scope.cancel()

            await map_concurrent(
                PROMPTS, MODEL, client=client, limit=2, price=price, progress=silent
            )
    assert len(answered) == 11


async def test_rows_of_a_run_are_read_by_read_batch(tmp_path: Path) -> None:
    """A failure, too, and what a killed run has left at the end."""
    out = tmp_path / "rows.jsonl"
    async with scripted(["a", BROKEN, "c"]) as client:
        prompts = {row_id: row_id for row_id in ("1", "2", "3")}
        rows = await map_concurrent(
            prompts, MODEL, client=client, limit=1, out=out, retry=NEVER, progress=silent
        )
    *read, cut = read_batch(out.read_bytes() + b'{"id":"4","response":{"resp')
    assert [msgspec.structs.replace(row, line=None) for row in read] == rows
    assert [row.line for row in read] == [1, 2, 3]
    assert cut.id is None
    assert cut.error is not None
    assert "line 4: no JSON" in cut.error.message


async def test_price_that_fails_loses_no_row(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"

    def price(response: Response) -> float:
        raise LookupError(response.model)

    async with scripted(["a"] * 12) as client:
        with pytest.raises(LookupError):
            await map_concurrent(
                PROMPTS, MODEL, client=client, out=out, limit=1, price=price, progress=silent
            )
    assert written(out) == ["case-0"]


async def test_run_that_ends_writes_all_rows_that_came(tmp_path: Path) -> None:
    """Rows that came while the first was taken were lost: the next run paid for them again."""
    out = tmp_path / "rows.jsonl"
    upstream = Upstream(stream_response("messages", start(), end()))

    def price(response: Response) -> float:
        raise LookupError(response.model)

    async with make_client("http://faulty", upstream) as client:
        run = partial(map_concurrent, PROMPTS, "faulty:m", client=client, out=out, limit=6)
        with pytest.raises(LookupError):
            await run(price=price, progress=silent)
        assert len(written(out)) == 6
        upstream.requests.clear()
        rows = await run(progress=silent)
    assert len(upstream.requests) == 6
    assert len(rows) == 12


async def test_rest_that_failed_meanwhile_has_rows() -> None:
    upstream = Upstream(error_response("messages", 401, ErrorInfo("authentication", "no")))
    async with make_client("http://faulty", upstream) as client:
        rows = await map_concurrent(
            PROMPTS, "faulty:m", client=client, limit=3, stop_after=1, progress=silent
        )
    assert len(rows) == 3


async def test_failure_is_a_row_and_the_rest_goes_on() -> None:
    turns: list[TurnLike] = [*[BROKEN] * 3, *["c"] * 12]
    async with scripted(turns) as client:
        rows = await map_concurrent(
            PROMPTS, MODEL, client=client, limit=1, retry=QUICK, progress=silent
        )
    assert rows[0].error is not None
    assert rows[0].error.kind == "server_error"
    assert [row.error for row in rows[1:]] == [None] * 11


async def test_request_that_cannot_be_built_is_a_row() -> None:
    async with scripted(["a"]) as client:
        [row] = await map_concurrent({"a": "x"}, "nobody:m", client=client, progress=silent)
    assert row.error is not None
    assert row.error.kind == "invalid_request"


async def test_rest_is_not_asked_after_so_many_failures() -> None:
    turns: list[TurnLike] = [ErrorInfo("authentication", "no")]
    async with scripted(turns * 12) as client:
        rows = await map_concurrent(
            PROMPTS, MODEL, client=client, limit=1, stop_after=2, progress=silent
        )
    assert len(rows) == len(client.requests) == 2


async def test_second_run_asks_only_what_has_no_row(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    turns: list[TurnLike] = [*["a"] * 5, *[BROKEN] * 3, *["b"] * 12]
    async with scripted(turns) as client:
        first = await map_concurrent(
            PROMPTS, MODEL, client=client, out=out, limit=1, retry=QUICK, progress=silent
        )
        assert sum(row.error is not None for row in first) == 1
        asked = len(client.requests)
        # The row that failed leaves the file, and so does a line that was cut.
        with out.open("a") as file:
            file.write('{"id": "case-3", "respo')
        again = await map_concurrent(
            PROMPTS, MODEL, client=client, out=out, limit=1, progress=silent
        )
        assert len(client.requests) == asked + 1
        assert sorted(written(out)) == sorted(PROMPTS)
        third = await map_concurrent(PROMPTS, MODEL, client=client, out=out, progress=silent)
        assert len(client.requests) == asked + 1
    assert [row.error for row in again] == [None] * 12
    assert third == again


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "other", "request": "x"}', "line 2: 'other' is none of the prompts"),
        ('{"id": "case-1", "request": "x"}', "line 2: 'case-1' was asked with another prompt"),
        ('{"case": 1}', "line 2: this is no row"),
        ("[]", "line 2: this is no row"),
    ],
    ids=["id", "digest", "object", "list"],
)
async def test_file_of_another_run_is_refused(tmp_path: Path, line: str, message: str) -> None:
    out = tmp_path / "rows.jsonl"
    async with scripted(["a"] * 2) as client:
        one = {"case-0": PROMPTS["case-0"]}
        await map_concurrent(one, MODEL, client=client, out=out, progress=silent)
        before = out.read_text()
        out.write_text(before + line + "\n")
        with pytest.raises(ValueError, match=message):
            await map_concurrent(PROMPTS, MODEL, client=client, out=out, progress=silent)
        # Nothing was asked, and the file is as it was.
        assert len(client.requests) == 1
    assert out.read_text() == before + line + "\n"


async def test_file_with_two_rows_of_an_id_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    one = {"case-0": PROMPTS["case-0"]}
    async with scripted(["a"]) as client:
        await map_concurrent(one, MODEL, client=client, out=out, progress=silent)
        out.write_text(out.read_text() * 2)
        with pytest.raises(ValueError, match="line 2: 'case-0' has a row already"):
            await map_concurrent(one, MODEL, client=client, out=out, progress=silent)


async def test_file_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    async with scripted(["a"] * 12) as client:
        with pytest.raises(OSError, match="directory"):
            await map_concurrent(PROMPTS, MODEL, client=client, out=tmp_path, progress=silent)


@pytest.mark.parametrize("is_full", [False, True])
async def test_line_that_is_written_in_parts_is_whole_or_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    """A disk that is full writes a part of a line, and the next row followed in its middle."""
    out = tmp_path / "rows.jsonl"

    def open_slowly(path: Path, *_: object, **__: object) -> SlowDisk:
        return SlowDisk(path, is_full)

    async with scripted(["a"] * 12) as client:
        run = partial(map_concurrent, PROMPTS, MODEL, client=client, out=out, progress=silent)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "open", open_slowly)
            if is_full:
                with pytest.raises(OSError, match="No space"):
                    await run()
            else:
                await run()
    assert sorted(written(out)) == sorted([] if is_full else PROMPTS)


class SlowDisk(FileIO):
    """A file that writes some bytes at a time, and then has no space if it is full."""

    def __init__(self, path: Path, is_full: bool) -> None:
        super().__init__(path, "a")
        self._is_full = is_full
        self._written = 0

    def write(self, data: Any) -> int:
        """Writes some of the bytes."""
        if self._is_full and self._written:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._written += 1
        return super().write(data[:40])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit is a whole number from 1, not 0"),
        ({"limit": "3"}, "limit is a whole number from 1, not '3'"),
        ({"stop_after": 0}, "stop_after is a whole number from 1, not 0"),
        ({"retry": 3}, "retry is `RetryPolicy(…)`, such as RetryPolicy(retries=3), not 3"),
        ({"price": 0.5}, "price is a function of a `Response`, not 0.5"),
        ({"progress": "x"}, "progress is a function of a line of text, not 'x'"),
        ({"client": "x"}, "client is a `Client`, not a str"),
        ({"prompts": ["Hi"]}, "prompts is a dict of ids and prompts, not ['Hi']"),
        ({"prompts": {1: "Hi"}}, "the id of a prompt is a text, not 1"),
        ({"prompts": {"\ud800": "Hi"}}, "the id '\\ud800' is no valid Unicode"),
        ({"prompts": {"a": "\ud800"}}, "the prompt 'a' cannot be written as JSON: "),
    ],
)
async def test_wrong_argument_is_refused_before_a_request(
    options: dict[str, Any], message: str
) -> None:
    async with scripted(["a"]) as client:
        given: dict[str, Any] = {"prompts": {"a": "Hi"}, "client": client, "progress": silent}
        given.update(options)
        with pytest.raises((TypeError, ValueError)) as raised:
            await map_concurrent(model=MODEL, **given)
        assert not client.requests
    assert str(raised.value).startswith(message)


async def test_price_may_be_decimal_or_unknown(tmp_path: Path) -> None:
    """As text in JSON it made the file one that no second run could read."""
    out = tmp_path / "rows.jsonl"
    prices = iter([Decimal("0.25"), None])
    async with scripted(["a", "b"]) as client:
        run = partial(map_concurrent, {"a": "Hi", "b": "Ho"}, MODEL, client=client, out=out)
        rows = await run(limit=1, price=lambda _: next(prices), progress=silent)
        assert await run(progress=silent) == rows
    assert [row.price for row in rows] == [0.25, None]


async def test_price_that_is_no_number_loses_no_row(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    wrong: Any = lambda _: "0.25"  # noqa: E731
    async with scripted(["a"]) as client:
        run = partial(map_concurrent, {"a": "Hi"}, MODEL, client=client, out=out, progress=silent)
        with pytest.raises(TypeError, match="which is no number"):
            await run(price=wrong)
        (row,) = await run()
    assert row.response is not None


async def test_list_of_models_falls_back() -> None:
    async with scripted([ErrorInfo("overloaded", "no", retryable=True), "yes"]) as client:
        [row] = await map_concurrent(
            {"a": "x"}, [MODEL, MODEL], client=client, progress=silent, limit=1
        )
    assert row.response is not None
    assert row.response.text == "yes"


async def test_limit_in_the_headers_makes_all_wait() -> None:
    headers = {
        "x-ratelimit-limit-requests": "1",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "100ms",
    }
    began = anyio.current_time()
    async with loopback("chat", headers=headers) as client:
        prompts = {"a": "x", "b": "y", "c": "z"}
        await map_concurrent(prompts, MODEL, client=client, limit=1, progress=silent)
    assert anyio.current_time() - began >= 0.2


def test_killed_run_has_every_row_once(tmp_path: Path) -> None:
    """The short form of `python -m lab.killed_runs`."""
    _, rows = kill_at_random(tmp_path / "rows.jsonl", kills=2, seed=3)
    assert sorted(str(row.id) for row in rows) == sorted(f"case-{n}" for n in range(30))
    assert all(row.error is None for row in rows)
