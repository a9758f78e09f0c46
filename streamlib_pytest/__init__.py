"""The pytest plugin: fixtures for tests with models, and readable differences of event lists.

    async def test_greeting(streamlib_scripted):
        async with streamlib_scripted(["Hello!"], wire_api="chat") as client: ...

pytest loads this module at its start in every project that has streamlib installed. So it is a
separate package that imports neither streamlib nor an HTTP library before a fixture is used.
``-p no:streamlib`` turns it off.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from streamlib import Client
    from streamlib.testing import ScriptedClient

__all__ = ["streamlib_loopback", "streamlib_replay", "streamlib_scripted"]


@pytest.fixture(scope="session")
def streamlib_scripted() -> Callable[..., AbstractAsyncContextManager[ScriptedClient]]:
    """`streamlib.testing.scripted`: a client whose model follows a script."""
    from streamlib.testing import scripted

    return scripted


@pytest.fixture(scope="session")
def streamlib_loopback() -> Callable[..., AbstractAsyncContextManager[Client]]:
    """`streamlib.testing.loopback`: a client of a local provider, with faults on demand."""
    from streamlib.testing import loopback

    return loopback


@pytest.fixture
def streamlib_replay(
    request: pytest.FixtureRequest,
) -> Callable[..., AbstractAsyncContextManager[Client]]:
    """`streamlib.testing.replay`, with relative file names resolved beside the test's own file."""
    from streamlib.testing import replay

    return partial(replay, folder=request.path.parent)


def pytest_assertrepr_compare(
    config: pytest.Config, op: str, left: object, right: object
) -> list[str] | None:
    """Explains why ``events == expected`` failed: the first difference and its surroundings."""
    # If no event class was ever loaded, the test has no events, and nothing is imported here.
    if op != "==" or "streamlib_parsers.events" not in sys.modules:
        return None
    if not isinstance(left, (list, tuple)) or not isinstance(right, (list, tuple)):
        return None
    from streamlib.testing import event_diff

    if not event_diff.are_event_lists(left, right):
        return None
    if config.get_verbosity(pytest.Config.VERBOSITY_ASSERTIONS) >= 2:
        return event_diff.explain_difference(left, right, context=None, width=1_000)
    return event_diff.explain_difference(left, right)
