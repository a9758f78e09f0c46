"""The encoders for screens, judged by the code that front ends run: `ai` 6 and 7,
`@ag-ui/client`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from lab.real.ui_readers import Readers, absence, running
from streamlib import encode_body
from streamlib.client.stream import CANCELLED
from streamlib.pipeline import coalesce, through
from streamlib.request.prompt import Prompt
from streamlib.testing import echo_response
from streamlib.web.agui.events import FILTERED
from streamlib.wires.encoders import encode_all
from streamlib_parsers import (
    Completed,
    Created,
    Failed,
    Response,
    ResponseEvent,
    accumulate,
    parser,
)
from streamlib_parsers.items import ToolSpec
from tests.real.conftest import ABSENT
from tests.support.shared import BODIES, PAYLOADS, STREAMS, WIRES, Recording, recordings
from tests.support.ui_streams import legal_events
from tests.support.wires import parsed

pytestmark = pytest.mark.real

READERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "vercel6": ("vercel", {}),
    "vercel7": ("vercel", {"version": 7}),
    "agui": ("agui", {"thread_id": "t"}),
}
TOOLS: Final = (
    ToolSpec("weather", schema={"type": "object", "properties": {"city": {"type": "string"}}}),
)
FIGURES: Final[Counter[str]] = Counter()

each_reader = pytest.mark.parametrize("reader", READERS)
each_folder = pytest.mark.parametrize("folder", WIRES)


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    why = absence()
    if why is not None:
        pytest.skip(f"{ABSENT}: UI readers, {why}")
    with running() as found:
        yield found


def encoded(reader: str, events: list[ResponseEvent]) -> bytes:
    protocol, options = READERS[reader]
    return encode_all(protocol, events, **options)


@cache
def corpus(folder: str) -> list[tuple[Recording, list[ResponseEvent]]]:
    """Every recording of a wire, with its events, headers and all."""
    found = [one for suffixes in (STREAMS, PAYLOADS, BODIES) for one in _of(folder, suffixes)]
    if not found:
        pytest.skip("shared test data is absent: the corpus")
    return [(one, _events(one)) for one in found]


def _of(folder: str, suffixes: tuple[str, ...]) -> list[Recording]:
    try:
        return recordings(folder, suffixes)
    except AssertionError:  # this wire has none of the kind
        return []


def _events(recording: Recording) -> list[ResponseEvent]:
    headers = recording.meta.get("response_headers")
    if recording.path.suffix not in STREAMS or not headers:
        return parsed(recording)
    p = parser(recording.wire, headers=dict(headers))  # type: ignore[arg-type]
    return [*p.feed(recording.body), *p.close()]


@each_reader
@each_folder
def test_every_recording_that_completes_is_accepted(
    readers: Readers, reader: str, folder: str
) -> None:
    refused: dict[str, list[Any]] = {}
    for recording, events in corpus(folder):
        if isinstance(events[-1], Completed):
            verdict = readers.read(reader, encoded(reader, events))
            FIGURES[
                f"{reader} {'bodies' if recording.path.suffix in BODIES else 'streams'}"
            ] += not verdict["refused"]
            said = list(verdict["errors"])
            if reader == "agui" and events[-1].stop_reason == "content_filter":
                # The protocol has no other way to say that the text is not all of it.
                said.remove(f"{FILTERED.kind}: {FILTERED.message}")
            if verdict["refused"] or said:
                refused[recording.path.name] = [verdict["refused"], said]
    assert not refused


@each_reader
@each_folder
def test_the_error_of_every_recording_that_fails_is_accepted(
    readers: Readers, reader: str, folder: str
) -> None:
    for recording, events in corpus(folder):
        last = events[-1]
        if isinstance(last, Failed):
            verdict = readers.read(reader, encoded(reader, events))
            assert (verdict["refused"], verdict["errors"]) == (
                [],
                [f"{last.error.kind}: {last.error.message}"],
            ), recording.path.name
            FIGURES[f"{reader} failures"] += 1


@pytest.mark.parametrize(("reader", "protocol"), [("vercel6", "vercel"), ("agui", "agui")])
@each_folder
def test_a_reader_ends_with_the_message_of_encode_body(
    readers: Readers, reader: str, protocol: str, folder: str
) -> None:
    for recording, events in corpus(folder):
        if isinstance(events[-1], Completed):
            shown = readers.read(reader, encode_all(protocol, events))["messages"]
            assert comparable(protocol, shown) == comparable(
                protocol, json.loads(encode_body(protocol, named(events)))
            ), recording.path.name
            FIGURES[f"{reader} equal to the body"] += 1


def named(events: list[ResponseEvent]) -> Response:
    """The response under the id that it began with (Copilot ends with another, Cohere names it only
    at the end)."""
    return msgspec.structs.replace(
        accumulate(events),
        response_id=next(
            (event.response_id for event in events if isinstance(event, Created)), None
        ),
    )


def comparable(protocol: str, found: Any) -> Any:
    """Messages with sources last, since one may come before its text; ids by the order in which
    they come, since other choices have some too."""
    messages = found if isinstance(found, list) else [found]
    if protocol == "vercel":
        parts = [
            {key: value for key, value in part.items() if key != "sourceId"}
            for message in messages
            for part in message["parts"]
        ]
        parts.sort(key=lambda part: part["type"].startswith("source-"))
        text = json.dumps(
            [[message.get("metadata") for message in messages if message.get("metadata")], parts]
        )
        names = [part["id"] for part in parts if part["type"] == "reasoning"]
    else:
        text = json.dumps(messages, sort_keys=True)
        names = [message["id"] for message in messages]
    for n, name in enumerate(names):
        text = text.replace(f'"id": {json.dumps(name)}', f'"id": {n}', 1)
    return [one for one in json.loads(text) if one not in ([], [{"type": "step-start"}])]


@each_reader
@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(events=legal_events())
def test_every_legal_stream_is_accepted(
    readers: Readers, reader: str, events: list[ResponseEvent]
) -> None:
    """Overlapping items, calls of one name or none, several choices, refusals, media, cut calls,
    every kind of end."""
    verdict = readers.read(reader, encoded(reader, events), chunk=17)
    last = events[-1]
    failed = isinstance(last, Failed) and last.error.kind != "cancelled"
    assert verdict["refused"] == []
    assert bool(verdict["errors"]) is failed


@each_reader
@pytest.mark.parametrize("chunk", [1, 7, 100_000])
def test_reasoning_text_and_a_call_arrive_in_any_partition(
    readers: Readers, reader: str, chunk: int
) -> None:
    events = echo_response(Prompt("Weather?", tools=TOOLS, reasoning="low"))
    for stream in (events, through(events, coalesce(float("inf")))):
        verdict = readers.read(reader, encoded(reader, stream), chunk=chunk)
        assert verdict["refused"] == []
        told = json.dumps(verdict["messages"])
        assert all(words in told for words in ("I keep it short", "I will ask weather.", "city"))


@pytest.mark.parametrize("reader", ["vercel6", "vercel7"])
def test_use_chat_ends_ready_with_the_reason_and_sees_the_limits(
    readers: Readers, reader: str
) -> None:
    prompt = Prompt("Weather?", tools=TOOLS)
    p = parser("messages", headers={"anthropic-ratelimit-requests-remaining": "9"})
    events = [*p.feed(encode_all("messages", echo_response(prompt))), *p.close()]
    chat = readers.read(reader, encoded(reader, events))["chat"]
    assert (chat["status"], chat["finishReason"], chat["data"]) == (
        "ready",
        "tool-calls",
        ["data-rate-limits"],
    )


@pytest.mark.parametrize("reader", ["vercel6", "vercel7"])
def test_use_chat_shows_an_error_and_tells_a_stop_from_it(readers: Readers, reader: str) -> None:
    half = echo_response(Prompt("hi"))[:6]
    failed = readers.read(reader, encoded(reader, half))["chat"]
    assert (failed["status"], failed["isError"], failed["error"]) == (
        "error",
        True,
        "truncated: the stream was closed before its end",
    )
    stopped = readers.read(reader, encoded(reader, [*half, *_cancelled()]))
    assert (stopped["refused"], stopped["errors"]) == ([], [])
    assert (stopped["chat"]["status"], stopped["chat"]["isError"]) == ("ready", False)


def _cancelled() -> list[ResponseEvent]:
    return [Failed(CANCELLED)]


def test_ag_ui_knows_which_calls_it_has_to_answer(readers: Readers) -> None:
    verdict = readers.read("agui", encoded("agui", echo_response(Prompt("Weather?", tools=TOOLS))))
    (call,) = verdict["messages"][-1]["toolCalls"]
    assert (verdict["outcome"], verdict["pending"]) == ("success", [call["id"]])
    assert verdict["messages"][-1]["content"] == "I will ask weather.", (
        "call and text are one message, as providers want them back"
    )
    assert readers.read("agui", encoded("agui", _cancelled()))["outcome"] == "cancelled"


@pytest.mark.parametrize(
    ("reader", "body"),
    [
        ("vercel6", b'data: {"type":"text-delta","id":"0","delta":"x"}\n\ndata: [DONE]\n\n'),
        ("vercel7", b'data: {"type":"start"}\n\ndata: {"type":"unheard-of"}\n\ndata: [DONE]\n\n'),
        (
            "agui",
            (
                b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n'
                b'data: {"type":"TEXT_MESSAGE_END","messageId":"m"}\n\n'
            ),
        ),
        (
            "agui",
            (
                b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r","unheard":1}\n\n'
                b'data: {"type":"RUN_FINISHED"}\n\n'
            ),
        ),
    ],
)
def test_these_readers_do_refuse(readers: Readers, reader: str, body: bytes) -> None:
    assert readers.read(reader, body)["refused"]


def test_every_reader_has_read_as_much_as_the_others(
    readers: Readers, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader that was asked less would look as good. The numbers are printed: they count what the
    tests above have read."""
    if not FIGURES:
        pytest.skip(
            "counts what the other tests of this file read: none of them ran, or there is no corpus"
        )
    with capsys.disabled():
        sys.stdout.write(
            "\nUI readers accepted: "
            + ", ".join(f"{name} {number}" for name, number in sorted(FIGURES.items()))
            + "\n"
        )
    for kind in ("streams", "bodies", "failures"):
        read = {FIGURES[f"{reader} {kind}"] for reader in READERS}
        assert len(read) == 1, kind
        assert min(read) > 0, kind
