"""The web example without a browser: its endpoint, and that a disconnect stops the model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from streamlib.client.retry import NO_RETRY
from streamlib.loopback import Behaviour
from tests.examples.serving import web
from tests.support.shared import ROOT

pytestmark = pytest.mark.usefixtures("asgi_server")

PAGE = ROOT / "examples" / "web" / "page"


def ask(text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"conversation": "c", "text": text, **more}


async def events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line:
            yield json.loads(line.removeprefix("data: "))


@asynccontextmanager
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=10) as http:
        yield http


async def answer_to(http: httpx.AsyncClient, url: str, **fields: Any) -> list[dict[str, Any]]:
    async with http.stream("POST", f"{url}/ask", json=ask(**fields)) as response:
        assert (response.status_code, response.headers["content-type"]) == (
            200,
            "text/event-stream",
        )
        return [event async for event in events(response)]


async def leave_at(url: str, kind: str, text: str) -> None:
    """A browser that closes the connection at the first event of a kind."""
    address = urlsplit(url)
    body = json.dumps(ask(text)).encode()
    head = (
        f"POST /ask HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-length: {len(body)}\r\n"
        "content-type: application/json\r\n\r\n"
    )
    async with await anyio.connect_tcp("127.0.0.1", address.port or 0) as stream:
        await stream.send(head.encode() + body)
        received = b""
        with anyio.fail_after(10):
            while f'"type":"{kind}"'.encode() not in received:
                received += await stream.receive()


async def test_response_streams_and_enters_the_history() -> None:
    async with web() as (url, provider), browser() as http:
        first = await answer_to(http, url, text="one")
        await answer_to(http, url, text="two")
    assert [event["type"] for event in first if event["type"] != "output_text_delta"] == [
        *(
            "rate_limits",
            "created",
            "token_count",
            "output_item_added",
            "output_item_done",
            "token_count",
            "completed",
        )
    ]
    assert [item.text for item in provider.prompts[1].items if item.role == "user"] == [
        "one",
        "two",
    ]
    assert len(provider.prompts[1].items) == 3


async def test_tool_is_run_and_the_response_continues() -> None:
    async with web() as (url, provider), browser() as http:
        streamed = await answer_to(http, url, tools=True, think=True)
    kinds = [event["type"] for event in streamed]
    assert kinds.count("completed") == 2
    assert kinds.count("function_call_arguments_delta") >= 1
    (output,) = [event for event in streamed if event["type"] == "function_call_output"]
    assert output["output"] == (
        "Lisbon: 21 °C, a light breeze and sun for the next 3 days. "
        "Good for a long walk by the river with a stop for coffee."
    )
    assert kinds.index("completed") < kinds.index("function_call_output")
    assert "reasoning_content_delta" in kinds
    assert len(provider.prompts) == 2


@pytest.mark.parametrize(
    "behaviour",
    [Behaviour(pace=0.05), Behaviour(fault="stall", at=4)],
    ids=["streaming", "silent"],
)
async def test_disconnect_closes_the_connection_to_the_model(behaviour: Behaviour) -> None:
    async with web(behaviour) as (url, provider):
        await leave_at(url, "output_text_delta", "word " * 200)
        await provider.wait_for_disconnect()
    assert provider.disconnects == 1


async def test_partial_response_stays_in_the_history_after_a_stop() -> None:
    async with web(Behaviour(pace=0.02)) as (url, provider):
        await leave_at(url, "output_text_delta", "word " * 200)
        await provider.wait_for_disconnect()
        await leave_at(url, "created", "and now?")
    items = provider.prompts[-1].items
    assert [item.role for item in items] == ["user", "assistant", "user"]
    assert 0 < len(items[1].text) < 1000


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (Behaviour(fault="truncate", at=5), "truncated"),
        (Behaviour(fault="disconnect", at=5), "truncated"),
        (Behaviour(status=529), "overloaded"),
    ],
)
async def test_failure_is_an_event_and_the_turn_can_be_repeated(
    behaviour: Behaviour, kind: str
) -> None:
    async with web(behaviour, retry=NO_RETRY) as (url, provider), browser() as http:
        streamed = [await answer_to(http, url, text="again") for _ in range(2)]
    assert [events[-1]["error"]["kind"] for events in streamed] == [kind, kind]
    assert all(len(prompt.items) == 1 for prompt in provider.prompts), (
        "a failed turn leaves no trace"
    )


async def test_request_that_cannot_be_sent_is_an_event_too() -> None:
    async with web(model="nobody:model") as (url, _), browser() as http:
        (streamed,), (again,) = [await answer_to(http, url) for _ in range(2)]
        broken = await http.post(
            f"{url}/ask", content=b"{", headers={"content-type": "application/json"}
        )
    assert (streamed["type"], streamed["error"]["kind"]) == ("failed", "invalid_request")
    assert again == streamed
    assert broken.status_code == 400


async def test_requests_of_other_sites_are_refused() -> None:
    async with web() as (url, provider), browser() as http:
        form = await http.post(
            f"{url}/ask", content=json.dumps(ask()), headers={"content-type": "text/plain"}
        )
        renamed = await http.post(f"{url}/ask", json=ask(), headers={"host": "evil.example"})
    assert (form.status_code, renamed.status_code) == (415, 400)
    assert provider.prompts == []


async def test_page_is_served_and_contacts_no_other_host() -> None:
    async with web() as (url, _), browser() as http:
        served = {
            name: await http.get(f"{url}/{name}")
            for name in (
                "",
                "chat.js",
                "view.js",
                "stream.js",
                "markdown.js",
                "style.css",
                "icon.svg",
            )
        }
    assert all(page.status_code == 200 for page in served.values())
    assert "Content-Security-Policy" in served[""].text
    addresses = {
        url for page in served.values() for url in re.findall(r"https?://[\w.]+", page.text)
    }
    assert addresses <= {"http://www.w3.org"}, "of the drawing's name space"
    assert "innerHTML" not in "".join(page.text for page in served.values()), (
        "what a model writes never becomes HTML"
    )


def test_server_side_is_small(anyio_backend: str) -> None:
    source = (ROOT / "examples" / "web" / "app.py").read_text(encoding="utf-8")
    server = source[source.index("class StreamedResponse") : source.index("async def main")]
    code = [
        line
        for line in server.splitlines()
        if line.strip() and not line.lstrip().startswith(("#", '"""'))
    ]
    assert len(code) <= 60
