"""The web example without a browser: conversations, tabs, and that nobody's answer is stopped."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from streamlib.client.retry import NO_RETRY
from streamlib.testing import Behaviour
from tests.examples.serving import Provider, example, web
from tests.support.shared import ROOT

pytestmark = pytest.mark.usefixtures("asgi_server")

EXAMPLE = ROOT / "examples" / "web"
PAGE = EXAMPLE / "page"
VENDOR = EXAMPLE / "vendor"


class Tab:
    """A tab without a screen."""

    def __init__(self, http: httpx.AsyncClient, url: str, name: str = "c") -> None:
        self.http = http
        self.url = f"{url}/conversations/{name}"
        self.count = 0
        """Entries that it has."""

    async def ask(self, text: str = "hi", **fields: Any) -> httpx.Response:
        return await self.http.post(f"{self.url}/questions", json={"text": text, **fields})

    async def stop(self) -> None:
        await self.http.post(f"{self.url}/stop", json={})

    @asynccontextmanager
    async def entries(self) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The entries behind those that it has, then each that comes.

        By hand: httpx leaves half a dozen generators behind where a stream has no end.
        """
        address = urlsplit(self.url)
        body = json.dumps({"after": self.count})
        request = (
            f"POST {address.path}/events HTTP/1.0\r\nhost: {address.netloc}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
        )
        async with await anyio.connect_tcp("127.0.0.1", address.port or 0) as stream:
            await stream.send(request.encode())
            async with aclosing(self._received(BufferedByteReceiveStream(stream))) as entries:
                yield entries

    async def _received(self, stream: BufferedByteReceiveStream) -> AsyncIterator[dict[str, Any]]:
        head = await stream.receive_until(b"\r\n\r\n", 10_000)
        assert b"content-type: text/event-stream" in head
        while True:
            frame = await stream.receive_until(b"\n\n", 1_000_000)
            # uvicorn with httptools writes sizes of chunks before it, to HTTP/1.0 too.
            _, field, data = frame.partition(b"data: ")
            if field:
                entry = json.loads(data)
                self.count = max(self.count, entry["n"])
                yield entry

    async def read(self, until: str = "turn_ended", count: int = 1) -> list[dict[str, Any]]:
        """The events up to one of a kind, without the greeting."""
        found: list[dict[str, Any]] = []
        with anyio.fail_after(10):
            async with self.entries() as entries:
                async for entry in entries:
                    found.append(entry["event"])
                    if [event["type"] for event in found].count(until) == count:
                        break
        return [event for event in found if event["type"] != "hello"]


@asynccontextmanager
async def opened(
    behaviour: Behaviour | None = None, **options: Any
) -> AsyncIterator[tuple[Tab, Provider]]:
    """A tab of the example, and the provider that its server talks to."""
    async with (
        web(behaviour, **options) as (url, provider),
        httpx.AsyncClient(timeout=10) as http,
    ):
        yield Tab(http, url), provider


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events if event["type"] != "output_text_delta"]


async def test_response_streams_and_enters_the_history() -> None:
    async with opened() as (tab, provider):
        await tab.ask("one")
        first = await tab.read()
        await tab.ask("two")
        await tab.read()
    assert kinds(first) == [
        *("question", "rate_limits", "created", "token_count", "output_item_added"),
        *("output_item_done", "token_count", "completed", "turn_ended"),
    ]
    items = provider.prompts[1].items
    assert [item.text for item in items if item.role == "user"] == ["one", "two"]
    assert len(items) == 3


async def test_tool_is_run_and_the_response_continues() -> None:
    async with opened() as (tab, provider):
        await tab.ask(tools=True, think=True)
        events = await tab.read()
    assert kinds(events).count("completed") == 2
    (output,) = [event for event in events if event["type"] == "function_call_output"]
    assert output["output"] == (
        "Lisbon: 21 °C, a light breeze and sun for the next 3 days. "
        "Good for a long walk by the river with a stop for coffee."
    )
    assert kinds(events).index("completed") < kinds(events).index("function_call_output")
    assert "reasoning_content_delta" in kinds(events)
    assert len(provider.prompts) == 2


async def test_reload_and_second_tab_get_the_same_entries() -> None:
    """E6: a reload lost the conversation, and two tabs of one lost a turn."""
    async with opened(Behaviour(pace=0.005)) as (tab, provider):
        other = Tab(tab.http, tab.url.removesuffix("/conversations/c"))
        seen: list[list[dict[str, Any]]] = []

        async def watch() -> None:
            seen.append(await other.read(count=2))

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await tab.ask("one")
            cut = await tab.read("output_text_delta")  # a reload in the middle of the answer
            rest = await tab.read()
            await tab.ask("two")
            rest += await tab.read()
        whole = await Tab(other.http, other.url.removesuffix("/conversations/c")).read(count=2)
    assert seen == [whole]
    assert cut + rest == whole
    assert [event["text"] for event in whole if event["type"] == "question"] == ["one", "two"]
    assert len(provider.prompts[1].items) == 3


async def test_tab_of_an_earlier_server_starts_again() -> None:
    async with opened() as (tab, _):
        await tab.ask()
        await tab.read()
        tab.count = 1000
        async with tab.entries() as entries:
            hello, first = await anext(entries), await anext(entries)
    assert (hello["event"], first["n"]) == ({"type": "hello", "reset": True}, 1)


@pytest.mark.parametrize(
    "behaviour",
    [Behaviour(pace=0.05), Behaviour(fault="stall", at=4)],
    ids=["streaming", "silent"],
)
async def test_stop_of_any_tab_closes_the_connection(behaviour: Behaviour) -> None:
    async with opened(behaviour) as (tab, provider):
        await tab.ask("word " * 200)
        await tab.read("output_text_delta")
        with anyio.fail_after(1):
            await Tab(tab.http, tab.url.removesuffix("/conversations/c")).stop()
            await provider.wait_for_disconnect()
        (end,) = [event for event in await tab.read() if event["type"] == "turn_ended"]
        await tab.ask("and now?")
        await tab.read("created")
        assert (provider.disconnects, end["reason"]) == (1, "stopped")
    items = provider.prompts[-1].items
    assert [item.role for item in items] == ["user", "assistant", "user"]
    assert 0 < len(items[1].text) < 1000


async def test_response_that_no_tab_reads_is_stopped() -> None:
    async with opened(Behaviour(fault="stall", at=4), grace=0.01) as (tab, provider):
        async with anyio.create_task_group() as group:
            group.start_soon(tab.read, "output_text_delta")
            await tab.ask()
        await provider.wait_for_disconnect()
        (end,) = [event for event in await tab.read() if event["type"] == "turn_ended"]
    assert end["reason"] == "stopped"


async def test_second_question_waits_for_the_first_response() -> None:
    async with opened(Behaviour(fault="stall", at=4)) as (tab, provider):
        await tab.ask("one")
        refused = await tab.ask("two")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "invalid_request")
    assert len(provider.prompts) <= 1


async def test_last_question_can_be_asked_again() -> None:
    async with opened() as (tab, provider):
        for fields in ({}, {}, {"replaces": 1}):
            await tab.ask(**fields)
            await tab.read()
        refused = await tab.ask(replaces=0)
    assert [len(prompt.items) for prompt in provider.prompts] == [1, 3, 3]
    assert refused.status_code == 409


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (Behaviour(fault="truncate", at=5), "truncated"),
        (Behaviour(fault="disconnect", at=5), "truncated"),
        (Behaviour(status=529), "overloaded"),
    ],
)
async def test_failure_is_an_event_and_leaves_no_trace(behaviour: Behaviour, kind: str) -> None:
    async with opened(behaviour, retry=NO_RETRY) as (tab, provider):
        for _ in range(2):
            await tab.ask()
            events = await tab.read()
            failed, end = events[-2:]
            assert (failed["error"]["kind"], failed["error"]["retryable"]) == (kind, True)
            assert end["reason"] == "failed"
    assert all(len(prompt.items) == 1 for prompt in provider.prompts)


async def test_request_that_cannot_be_sent_is_an_event_too() -> None:
    async with opened(model="nobody:model") as (tab, _):
        for _ in range(2):
            await tab.ask()
            _, failed, end = await tab.read()
            assert (failed["error"]["kind"], end["reason"]) == ("invalid_request", "failed")


async def test_framework_pages_run_a_call_after_its_approval() -> None:
    async with opened() as (tab, provider):
        root = tab.url.removesuffix("/conversations/c")
        asked = [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]
        first = await tab.http.post(f"{root}/api/chat", json={"id": "c", "messages": asked})
        (call,) = provider.prompts[0].tools
        part = {
            "type": "dynamic-tool",
            "toolName": call.name,
            "toolCallId": "x",
            "state": "approval-responded",
            "input": {"city": "Rome"},
            "approval": {"id": "x", "approved": True},
        }
        approved = [*asked, {"id": "a", "role": "assistant", "parts": [part]}]
        second = await tab.http.post(f"{root}/api/chat", json={"id": "c", "messages": approved})
        message = {"id": "u", "role": "user", "content": "hi"}
        body = {"threadId": "t", "runId": "r", "messages": [message], "tools": [], "context": []}
        agui = await tab.http.post(f"{root}/api/agui", json=body)
        form = await tab.http.post(f"{root}/api/chat", content=b"{}")
    assert '"tool-approval-request"' in first.text
    assert "Booked" not in first.text
    assert '"output":"Booked: 3 days in Rome."' in second.text
    assert '"interrupt"' in agui.text
    assert form.status_code == 415


async def test_requests_of_other_sites_are_refused() -> None:
    async with opened() as (tab, provider):
        url = f"{tab.url}/questions"
        body = b'{"text": "hi"}'
        form = await tab.http.post(url, content=body, headers={"content-type": "text/plain"})
        renamed = await tab.http.post(url, json={"text": "hi"}, headers={"host": "evil.example"})
        typed = {"content-type": "application/json"}
        broken = await tab.http.post(url, content=b"{", headers=typed)
    assert [form.status_code, renamed.status_code, broken.status_code] == [415, 400, 400]
    assert provider.prompts == []


async def test_pages_are_served_and_contact_no_other_host() -> None:
    own = [path.name for path in PAGE.iterdir()]
    vendored = [
        path.name.removesuffix(".gz") for path in VENDOR.glob("*.js*") if path.suffix != ".json"
    ]
    async with opened() as (tab, _):
        root = tab.url.removesuffix("conversations/c")
        pages = {name: await tab.http.get(f"{root}{name}") for name in ["", *own]}
        files = [await tab.http.get(f"{root}vendor/{name}") for name in vendored]
        outside = await tab.http.get(f"{root}vendor/..%2Fapp.py")
    assert all(page.status_code == 200 for page in [*pages.values(), *files])
    assert all(file.headers["content-type"].startswith("text/javascript") for file in files)
    assert outside.status_code == 404
    for name, page in pages.items():
        if name.endswith(".html"):
            assert "Content-Security-Policy" in page.text
        addresses = set(re.findall(r"https?://[\w.]+", page.text))
        assert addresses <= {"http://www.w3.org"}, "of the drawing's name space"
        assert "innerHTML" not in page.text, "what a model writes never becomes HTML unchecked"


@pytest.mark.anyio
async def test_one_open_tab_does_not_keep_every_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The oldest was looked at alone: while somebody read it, none was forgotten."""
    module = example("web/conversations.py")
    monkeypatch.setattr(module, "MOST_CONVERSATIONS", 3)
    conversations = module.Conversations()
    read, written = conversations.get("read"), conversations.get("written")
    read.readers = 1
    written.turn = anyio.CancelScope()
    for number in range(10):
        conversations.get(f"c{number}")
    assert list(conversations._all) == ["read", "written", "c9"]
