"""The gateway's page in headless Chromium: light and dark, on a desktop and on a phone."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest

from lab.real.ui_readers import HOME, absence, chromium
from streamlib.client.retry import NO_RETRY
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from streamlib.testing import Behaviour, running
from tests.real.conftest import ABSENT
from tests.support.asgi_servers import serving_app

pytestmark = [pytest.mark.real]

SCRIPT: Final = Path(__file__).with_name("gateway_page.mjs")
TOKEN: Final = "a-token-that-no-page-shows"
STREAMS: Final = 4
LONG: Final = "Tell me everything about streams. " * 40
LOOKS: Final = [("light", False), ("dark", False), ("light", True), ("dark", True)]
each_look = pytest.mark.parametrize(("scheme", "phone"), LOOKS)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the screenshots go: STREAMLIB_PICTURES keeps them."""
    folder = os.environ.get("STREAMLIB_PICTURES")
    return Path(folder) if folder else tmp_path_factory.mktemp("pictures")


@cache
def seen(pictures: Path, scheme: str, phone: bool) -> dict[str, Any]:
    """What one visit saw; each look is visited once."""
    why = absence() or (None if chromium() else "there is no chromium")
    if why is not None:
        pytest.skip(f"{ABSENT}: browser, {why}")
    found: dict[str, Any] = anyio.run(_visit, pictures, scheme, phone)
    return found


async def _visit(pictures: Path, scheme: str, phone: bool) -> dict[str, Any]:
    async with (
        running(Behaviour(pace=0.06)) as model,
        running(Behaviour(status=503)) as broken,
    ):
        rules = [
            RouteRule("claude-*", "custom:*", wire_api="chat", base_url=f"{model}/v1"),
            RouteRule("*", "custom:gone", wire_api="messages", base_url=broken),
        ]
        app = gateway(Gateway(RouteTable(rules), client={"retry": NO_RETRY}), token=TOKEN)
        async with serving_app(app) as server, anyio.create_task_group() as group:
            for number in range(STREAMS):
                group.start_soon(_stream, server.url, f"claude-sonnet-{number}")
            for _ in range(2):
                await _ask(server.url, {"model": "gpt-5", "seed": 3, "logprobs": True})
            settings = {"url": server.url, "token": TOKEN, "streams": STREAMS}
            settings |= {"scheme": scheme, "phone": phone}
            command = ["node", str(SCRIPT), str(HOME), chromium() or "", str(pictures)]
            with anyio.fail_after(90):
                done = await anyio.run_process(
                    command, input=json.dumps(settings).encode(), check=False
                )
            group.cancel_scope.cancel()
        assert done.returncode == 0, done.stderr.decode()
        return dict(json.loads(done.stdout))


async def _stream(url: str, model: str) -> None:
    while True:
        await _ask(url, {"model": model, "stream": True})


async def _ask(url: str, fields: dict[str, Any]) -> None:
    body = {"messages": [{"role": "user", "content": LONG}], "max_tokens": 9000, **fields}
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(timeout=60) as client:
        await client.post(f"{url}/v1/chat/completions", json=body, headers=headers)


@each_look
def test_page_shows_streams_and_errors(pictures: Path, scheme: str, phone: bool) -> None:
    page = seen(pictures, scheme, phone)
    assert len(page["rows"]) == STREAMS
    for row in page["rows"]:
        assert "chat" in row[0]
        assert row[1].startswith("claude-sonnet-")
        assert "custom:claude-sonnet-" in row[1]
        assert float(row[2]) > 1, "tokens/s"
        assert row[4].endswith("s"), "first token"
        assert row[5].endswith("ms"), "longest gap"
    assert page["totals"]["failed"] == "2"
    assert all("overloaded" in error for error in page["errors"])
    assert all("lost in translation" in error for error in page["errors"])
    assert all("dropped /seed" in error for error in page["errors"])
    assert page["state"] == ["Live."]


@each_look
def test_page_is_quiet_legible_and_fits(pictures: Path, scheme: str, phone: bool) -> None:
    page = seen(pictures, scheme, phone)
    assert (page["complaints"], page["foreign"]) == ([], [])
    assert (page["faint"], page["wide"]) == ([], [])
    assert len(list(pictures.glob(f"gateway-*-{scheme}{'-phone' if phone else ''}.png"))) == 3


@each_look
def test_page_keeps_the_token_to_itself(pictures: Path, scheme: str, phone: bool) -> None:
    page = seen(pictures, scheme, phone)
    assert page["form"] == {
        "focused": "token",
        "type": "password",
        "label": ["The gateway's token"],
    }
    assert page["mistaken"] == ["That is not the token."]
    assert [url for url in page["urls"] if TOKEN in url] == []
    cookie = {"name": "streamlib_gateway", "httpOnly": True, "sameSite": "Strict", "shows": False}
    assert (page["cookies"], page["readable"]) == ([cookie], "")
    assert page["left"] == 0


@each_look
def test_page_is_used_by_keyboard(pictures: Path, scheme: str, phone: bool) -> None:
    page = seen(pictures, scheme, phone)
    assert (page["first"], page["second"]) == ("pause", "Sign out")
    assert page["paused"] == {"state": ["Paused."], "pressed": "true", "same": True}
