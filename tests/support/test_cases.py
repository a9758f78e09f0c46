"""Cases that share one test: each runs, each failure is named, and none can hide another."""

from __future__ import annotations

import inspect

import anyio
import anyio.lowlevel
import pytest

from tests.support.cases import each_case, in_one_test


def test_every_case_runs_and_each_failure_is_named() -> None:
    seen: list[int] = []

    @each_case("number, expected", [(1, 1), (2, 0), (3, 0)], ids=lambda row: f"row {row[0]}")
    def check(number: int, expected: int) -> None:
        seen.append(number)
        assert number == expected

    with pytest.raises(ExceptionGroup, match="2 of 3 cases") as caught:
        check()
    assert seen == [1, 2, 3]
    names = [failure.__notes__ for failure in caught.value.exceptions]
    assert names == [["case: row 2"], ["case: row 3"]]


def test_one_failure_is_raised_as_it_is() -> None:
    @each_case("number", [1, 2])
    def check(number: int) -> None:
        assert number == 1

    with pytest.raises(AssertionError) as caught:
        check()
    assert caught.value.__notes__ == ["case: {'number': 2}"]


def test_a_case_that_skips_is_a_failure() -> None:
    @each_case("number", [1, 2])
    def check(number: int) -> None:
        if number == 1:
            pytest.skip("nothing to see")

    with pytest.raises(AssertionError, match="nothing to see") as caught:
        check()
    assert caught.value.__notes__ == ["case: {'number': 1}"]


def test_a_test_without_cases_fails() -> None:
    @in_one_test(["number"], list)
    def check(number: int) -> None:
        raise AssertionError(number)

    with pytest.raises(AssertionError, match="no case"):
        check()


def test_fixtures_are_those_that_no_case_has() -> None:
    @each_case("number", iter([1]))
    def check(number: int, tmp_path: str) -> None:
        assert (number, tmp_path) == (1, "folder")

    assert list(inspect.signature(check).parameters) == ["tmp_path"]
    check(tmp_path="folder")
    check(tmp_path="folder")


async def test_cases_of_an_async_test_are_awaited() -> None:
    seen: list[int] = []

    @each_case("number", [1, 2])
    async def check(number: int) -> None:
        seen.append(number)

    await check()
    assert seen == [1, 2]


async def test_cases_at_once_run_together_and_fail_alone() -> None:
    running: list[int] = []
    most: list[int] = []

    @each_case("number", range(6), at_once=3)
    async def check(number: int) -> None:
        running.append(number)
        most.append(len(running))
        await anyio.lowlevel.checkpoint()
        running.remove(number)
        assert number != 2

    with pytest.raises(AssertionError) as caught:
        await check()
    assert caught.value.__notes__ == ["case: {'number': 2}"]
    assert (len(most), max(most)) == (6, 3)
