"""`parse_ui_request`, judged by the clients that send its bodies: `ai` 6 and 7, `@ag-ui/client`.

A client reads the encoder's stream, its user does something, and the body of its next request is
parsed: only what a report names may be lost.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import pytest

from lab.real.ui_readers import HERE, HOME, absence
from streamlib import RunEvent, accumulate, encode_all, encoder
from streamlib.request.prompt import Prompt
from streamlib.testing import echo_response
from streamlib.web import parse_ui_request
from streamlib_parsers import Completed, FunctionCall, Message
from tests.real.conftest import ABSENT
from tests.support.runs import SCENARIOS, random_run
from tests.support.shared import BODIES, PAYLOADS, STREAMS, WIRES, Recording, recordings
from tests.support.ui_pages import agui_page, vercel_page
from tests.support.ui_requests import PNG
from tests.support.ui_round_trips import (
    TOOLS,
    Trip,
    encoded,
    sent_items,
    units,
    unnamed_losses,
)
from tests.support.ui_streams import payloads
from tests.support.wires import parsed

pytestmark = pytest.mark.real

CLIENTS: Final = {"vercel6": "vercel", "vercel7": "vercel", "agui": "agui"}
SEND: Final = {"do": "send", "text": "hi"}
MORE: Final = {"do": "send", "text": "go on"}
FIGURES: Final[Counter[str]] = Counter()

each_client = pytest.mark.parametrize("client", CLIENTS)
each_folder = pytest.mark.parametrize("folder", WIRES)


class Clients:
    """The clients, running in one Node process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def bodies(self, client: str, streams: Sequence[bytes], *actions: Any, **options: Any) -> Any:
        """The bodies of the requests that a client sends: see `readers/ask.mjs`."""
        asked = {"client": client, "streams": [base64.b64encode(one).decode() for one in streams]}
        line = json.dumps({**asked, "actions": actions, **options}).encode() + b"\n"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        assert len(told["bodies"]) == len(actions), told["errors"]
        return [body.encode() for body in told["bodies"]]


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    why = absence()
    if why is not None:
        pytest.skip(f"{ABSENT}: UI clients, {why}")
    command = ("node", str(HERE / "ask.mjs"), str(HOME))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Clients(process)
        assert process.stdin is not None
        process.stdin.close()


def interrupts(stream: bytes) -> list[str]:
    """The ids of what an AG-UI run waits for."""
    for event in payloads(stream):
        if isinstance(event, dict) and event["type"] == "RUN_FINISHED":
            return [one["id"] for one in event.get("outcome", {}).get("interrupts", ())]
    return []


def second_body(clients: Clients, client: str, stream: bytes) -> bytes:
    """The body of the request after a response."""
    answers = [
        {"interruptId": one, "status": "resolved", "payload": {"approved": True}}
        for one in interrupts(stream)
    ]
    more = {**MORE, "resume": answers} if answers else MORE
    first, second = clients.bodies(client, [stream], SEND, more)
    assert len(json.loads(first)["messages"]) == 1
    assert isinstance(second, bytes)
    return second


def check(clients: Clients, client: str, run: Sequence[RunEvent], name: str) -> None:
    """Sends a run through a client, and counts what came back."""
    protocol = CLIENTS[client]
    stream, report = encoded(protocol, run)
    body = second_body(clients, client, stream)
    asked = parse_ui_request(protocol, body, tools=TOOLS)  # type: ignore[arg-type]
    trip = Trip(asked, report)
    assert unnamed_losses(run, trip) == [], name
    messages = json.loads(body)["messages"]
    ours = [vercel_page(stream)] if protocol == "vercel" else agui_page(stream)
    theirs = [message for message in messages if message["role"] != "user"]
    assert _comparable(ours) == _comparable(theirs), name
    FIGURES[f"{client} trips"] += 1
    for kind, _ in units(sent_items(run)) - units(asked.history):
        FIGURES[f"{client} lost and named: {kind}"] += 1


def _comparable(messages: list[dict[str, Any]]) -> Any:
    """What both pages have to agree in: parts and their states, or messages."""
    if not messages or "parts" not in messages[0]:
        return [
            {key: message.get(key) for key in ("role", "content", "toolCalls", "encryptedValue")}
            for message in messages
        ]
    return [
        {key: part.get(key) for key in ("type", "text", "toolCallId", "input", "output", "url")}
        | {"state": part.get("state")}
        for part in messages[0]["parts"]
        if not part["type"].startswith(("data-", "source-"))
    ]


@each_client
def test_runs_come_back_through_a_client(clients: Clients, client: str) -> None:
    runs = dict(SCENARIOS)
    for seed in range(100):
        runs[f"seed {seed}"] = random_run(seed)
    for name, run in runs.items():
        check(clients, client, run, name)


@cache
def corpus(folder: str) -> list[tuple[Recording, list[Any]]]:
    found: list[Recording] = []
    for suffixes in (STREAMS, PAYLOADS, BODIES):
        try:
            found += recordings(folder, suffixes)
        except AssertionError:  # this wire has none of the kind
            continue
    if not found:
        pytest.skip("shared test data is absent: the corpus")
    return [(one, parsed(one)) for one in found]


@each_client
@each_folder
def test_recordings_come_back_through_a_client(clients: Clients, client: str, folder: str) -> None:
    for recording, events in corpus(folder):
        if not isinstance(events[-1], Completed):
            continue
        run = events
        protocol: Any = CLIENTS[client]
        stream, report = encoded(protocol, run)
        body = second_body(clients, client, stream)
        # The names of their tools are anything: all are taken.
        asked = parse_ui_request(protocol, body, tools=None)
        # So that those of providers, which AG-UI does not mark, come back as calls of functions.
        changed = {"approval"}
        if protocol == "agui":
            changed = {"approval", "server call", "server result"}
        lost = [loss for loss in unnamed_losses(run, Trip(asked, report)) if loss[0] not in changed]
        assert lost == [], recording.path.name
        FIGURES[f"{client} recordings"] += 1


@each_client
def test_the_user_answers_a_call_of_the_page(clients: Clients, client: str) -> None:
    events = echo_response(Prompt("Weather?", tools=TOOLS[1:2], reasoning="low"))
    (call,) = accumulate(events).function_calls
    protocol: Any = CLIENTS[client]
    stream = encode_all(protocol, events)
    tools = [{"name": "weather", "description": "d", "parameters": {"type": "object"}}]
    for output in ({"output": "21"}, {"error": "no"}):
        act = {"do": "output", "id": call.call_id, "tool": "weather", **output}
        bodies = clients.bodies(client, [stream], SEND, act, tools=tools)
        asked = parse_ui_request(protocol, bodies[1], tools=["weather"])
        answered = asked.history[-1]
        expected = call.output(output.get("output", "no"), is_error="error" in output)
        assert answered == expected
        if protocol == "vercel":
            assert asked.continues is not None
            assert asked.continues.encode() in asked.encoder().close()
    FIGURES[f"{client} answered calls"] += 2


@pytest.mark.parametrize("client", ["vercel6", "vercel7"])
def test_the_user_decides_about_a_call(clients: Clients, client: str) -> None:
    events = echo_response(Prompt("Weather?", tools=TOOLS[1:2]))
    (call,) = accumulate(events).function_calls
    encode = encoder("vercel", run=True, approval_tools=["weather"])
    stream = b"".join(map(encode.feed, events)) + encode.close()
    for approved in (True, False):
        act = {"do": "approve", "id": call.call_id, "approved": approved, "reason": "because"}
        body = clients.bodies(client, [stream], SEND, act)[1]
        asked = parse_ui_request("vercel", body, tools=["weather"])
        (decision,) = asked.approvals
        assert (decision.call_id, decision.approved, decision.reason) == (
            call.call_id,
            approved,
            "because",
        )
        waits = isinstance(asked.history[-1], FunctionCall)
        assert waits is approved
    FIGURES[f"{client} decisions"] += 2


@pytest.mark.parametrize("client", ["vercel6", "vercel7"])
def test_files_and_a_response_made_again(clients: Clients, client: str) -> None:
    stream, _ = encoded("vercel", echo_response(Prompt("hi")))
    file = {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": PNG}
    send = {"do": "send", "text": "see", "files": [file]}
    first, again = clients.bodies(client, [stream], send, {"do": "regenerate"})
    for body, trigger in ((first, "submit-message"), (again, "regenerate-message")):
        asked = parse_ui_request("vercel", body)
        assert (asked.trigger, asked.chat_id, asked.extra) == (trigger, "chat-1", {"own": 1})
        (message,) = asked.history
        assert isinstance(message, Message)
        assert [type(part).__name__ for part in message.content] == ["Image", "Text"]


def test_every_client_made_as_many_trips(
    clients: Clients, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers are printed: they count what the tests above have sent."""
    if not FIGURES:
        pytest.skip("counts what the other tests of this file sent: none of them ran")
    with capsys.disabled():
        lines = [f"{name} {number}" for name, number in sorted(FIGURES.items())]
        sys.stdout.write("\nUI clients: " + ", ".join(lines) + "\n")
    assert len({FIGURES[f"{client} trips"] for client in CLIENTS}) == 1
