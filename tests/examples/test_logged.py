"""The web example on a log: two servers show, continue and stop the same conversations."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from streamlib.testing import Behaviour
from tests.examples.serving import Server, example, two_servers
from tests.examples.test_web import Tab, kinds

pytestmark = pytest.mark.usefixtures("asgi_server")

SLOW = Behaviour(pace=0.02)
LONG = "word " * 2000


@pytest.fixture(autouse=True)
def short_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers look often for a log that does not exist yet."""
    example("web/app.py")
    monkeypatch.setattr(sys.modules["logged"], "POLL", 0.02)


@asynccontextmanager
async def tabs(behaviour: Behaviour | None = None) -> AsyncIterator[tuple[Tab, Tab, Server]]:
    """A tab at each of two servers, and the first server."""
    async with (
        two_servers(behaviour) as (first, second),
        httpx.AsyncClient(timeout=10) as http,
    ):
        yield Tab(http, first.url), Tab(http, second.url), first


async def test_both_servers_show_the_same_entries() -> None:
    async with tabs() as (here, there, server):
        assert (await here.ask("one", tools=True, think=True)).json() == {"turn": 0}
        first = await here.read()
        assert (await there.ask("two")).json() == {"turn": 1}
        second = await here.read()
        again = await there.read(count=2)
        for after in range(0, there.count, 5):
            here.count = after
            assert await here.read(count=again[after:].count(again[-1])) == again[after:]
        prompts = server.provider.prompts
    assert again == first + second
    assert kinds(first).count("completed") == 2
    assert [event["type"] for event in first].count("function_call_output") == 1
    # The first turn is in the other server's request, with its call and the output.
    asked = [type(item).__name__ for item in prompts[2].items]
    assert asked.index("FunctionCall") < asked.index("FunctionCallOutput")
    assert [prompts[2].items[index].text for index in (0, -1)] == ["one", "two"]


async def test_stop_on_the_other_server_stops_the_model() -> None:
    async with tabs(SLOW) as (here, there, server):
        await here.ask(LONG)
        await here.read("output_text_delta")
        await there.stop()
        await server.provider.wait_for_disconnect()
        there.count = 0
        shown = await there.read()
        assert (await there.ask("next")).status_code == 200
    assert shown[-1] == {"type": "turn_ended", "reason": "stopped"}
    assert "failed" not in kinds(shown)


async def test_question_while_a_response_runs_is_refused_everywhere() -> None:
    async with tabs(SLOW) as (here, there, _):
        await here.ask(LONG)
        refused = await there.ask("second")
        await there.stop()
        await here.read()
        wrong = await there.ask("third", replaces=7)
        again = await there.ask("again", replaces=0)
    assert [answer.status_code for answer in (refused, wrong, again)] == [409, 409, 200]


async def test_dead_server_is_an_honest_end_on_the_other() -> None:
    async with tabs(SLOW) as (here, there, server):
        await here.ask(LONG)
        await here.read("output_text_delta")
        server.die()
        with anyio.fail_after(5):
            shown = await there.read()
        ended: list[Any] = shown[-2:]
        repeated = await there.ask("again", replaces=0)
        await there.stop()
    assert (ended[0]["type"], ended[0]["error"]["kind"]) == ("failed", "truncated")
    assert ended[0]["error"]["retryable"] is True
    assert ended[1] == {"type": "turn_ended", "reason": "failed"}
    assert "output_text_delta" in [event["type"] for event in shown]
    assert repeated.status_code == 200


async def test_tab_of_a_forgotten_conversation_starts_anew() -> None:
    async with tabs() as (here, _, _):
        for count in (0, 9):
            here.count = count
            async with here.entries() as entries:
                hello = await anext(entries)
            assert hello["event"] == {"type": "hello", "reset": count > 0}
