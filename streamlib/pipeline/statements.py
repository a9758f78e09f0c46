"""Statements that cannot read a stream: `await`, `for` and `with` of one with an event loop.

Python's own error names a protocol that is missing, not the statement to write. The types of the
methods are those of no such protocol, so that type checkers refuse these statements as before.
"""

from __future__ import annotations

from typing import Final, Never

from streamlib_parsers.native_class import mypyc_attr

ASYNC: Final = (
    "write `async with Client() as client`, `async with client.stream(…) as stream` and "
    "`async for event in stream`; `await client.respond(…)` gives the whole response, and "
    "`SyncClient` does without async and await"
)
SYNC: Final = "write `with …` and `for …`, without async and await"


def refuse(value: object, statement: str, meant: str) -> Never:
    """Raises the error of a statement, or of several that Python does not tell apart.

    Raises:
        TypeError: it has the class, the statement and what to write.
    """
    raise TypeError(f"a {type(value).__name__} is not used with {statement}: {meant}")


def check_async(operator: str, source: object) -> None:
    """Refuses what an operator cannot read with tasks of its own.

    Raises:
        TypeError: `source` is a stream without an event loop, or no stream.
    """
    if not hasattr(source, "__aiter__"):
        raise TypeError(
            f"{operator} reads in tasks, so it takes streams of `Client`, not a "
            f"{type(source).__name__}"
        )


@mypyc_attr(allow_interpreted_subclasses=True)
class AsyncOnly:
    """What is used with an event loop, and says so."""

    def __await__(self) -> object:
        refuse(self, "`await`", ASYNC)

    # And no ``__iter__``, with which it would pass for an iterable.
    def __getitem__(self, index: Never) -> object:
        refuse(self, "`for`, `in` or an index", ASYNC)

    def __enter__(self) -> object:
        refuse(self, "`with`", ASYNC)

    def __exit__(self) -> None:  # noqa: PLE0302  # so that type checkers refuse `with`
        """Python looks for it before it calls the other."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SyncOnly:
    """What is used without an event loop, and says so."""

    def __await__(self) -> object:
        refuse(self, "`await`", SYNC)

    def __aenter__(self) -> object:
        refuse(self, "`async with`", SYNC)

    def __aexit__(self) -> None:  # noqa: PLE0302  # so that type checkers refuse it
        """Python looks for it before it calls the other."""
