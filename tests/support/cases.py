"""Runs many small cases in one test instead of in one test each.

pytest takes 2 to 3 ms of CPU for a test, in the worker and in the process that the workers report
to: more than most cases of a table of hundreds take. Every case runs, whatever the others do, and
the failure names those that failed.

    @each_case("text, expected", [("1", 1), ("one", None)])
    def test_number_is_read(text: str, expected: int | None) -> None: ...

Fixtures are shared by the cases of a test. Tables of a few cases stay with
`pytest.mark.parametrize`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import anyio
import pytest

SHOWN: Final = 20
"""Maximum number of failures that are shown in full."""

Test = Callable[..., Any]
Case = tuple[str, Mapping[str, Any]]
"""Name and arguments of a case."""


class Failures:
    """The failures of the cases of one test."""

    def __init__(self) -> None:
        self._count = 0
        self._failures: list[BaseException] = []

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """Records a failure inside the block, with the name of its case."""
        self._count += 1
        try:
            yield
        except pytest.skip.Exception as skip:
            self._keep(name, AssertionError(f"a case cannot skip its test: {skip}"))
        except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - a test may raise any
            self._keep(name, failure)

    def _keep(self, name: str, failure: BaseException) -> None:
        failure.add_note(f"case: {name}")
        self._failures.append(failure)

    def report(self) -> None:
        """Fails if a case failed, or if there was no case."""
        assert self._count, "no case"
        if len(self._failures) == 1:
            raise self._failures[0]
        if self._failures:
            summary = f"{len(self._failures)} of {self._count} cases"
            raise BaseExceptionGroup(summary, self._failures[:SHOWN])


def each_case(
    names: str,
    values: Iterable[Any],
    ids: Callable[[Any], object] | None = None,
    at_once: int = 1,
) -> Callable[[Test], Test]:
    """Runs a test for each value, in one test; written as `pytest.mark.parametrize` is.

    Args:
        names: names of the test's parameters, with commas between them.
        values: a value for each case, or a tuple of them if there are several names.
        ids: names a case by its value; otherwise its arguments name it.
        at_once: cases of an async test that run at the same time, where they wait most of it.
    """
    parameters = [name.strip() for name in names.split(",")]
    listed = list(values)

    def cases() -> Iterator[Case]:
        for value in listed:
            row: Sequence[Any] = value if len(parameters) > 1 else (value,)
            arguments = dict(zip(parameters, row, strict=True))
            name = arguments if ids is None else ids(value)
            yield str(name), arguments

    return in_one_test(parameters, cases, at_once)


def in_one_test(
    parameters: Sequence[str], cases: Callable[[], Iterable[Case]], at_once: int = 1
) -> Callable[[Test], Test]:
    """Gives a test the arguments of each case, in one test.

    Args:
        parameters: names of the test's parameters that the cases have; the others are fixtures.
        cases: called when the test runs.
        at_once: cases of an async test that run at the same time.
    """

    def decorate(test: Test) -> Test:
        assert at_once == 1 or inspect.iscoroutinefunction(test)
        assert not hasattr(test, "hypothesis"), "a case would not be drawn anew"

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures = Failures()
            for name, arguments in cases():
                with failures.case(name):
                    test(**fixtures, **arguments)
            failures.report()

        @functools.wraps(test)
        async def run_async(**fixtures: Any) -> None:
            failures = Failures()
            limiter = anyio.CapacityLimiter(at_once)

            async def run_case(name: str, arguments: Mapping[str, Any]) -> None:
                async with limiter:
                    with failures.case(name):
                        await test(**fixtures, **arguments)

            if at_once == 1:
                for case in cases():
                    await run_case(*case)
            else:
                async with anyio.create_task_group() as group:
                    for case in cases():
                        group.start_soon(run_case, *case)
            failures.report()

        wrapper: Any = run_async if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        fixtures = [value for name, value in signature.parameters.items() if name not in parameters]
        assert len(fixtures) + len(parameters) == len(signature.parameters)
        wrapper.__signature__ = signature.replace(parameters=fixtures)
        return wrapper  # type: ignore[no-any-return]

    return decorate
