"""Recordings: the same events at any speed and split, and nothing secret in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from streamlib import Client, Prompt, RateLimits, StreamError
from streamlib.client.retry import NO_RETRY
from streamlib.recording import (
    Chunk,
    Recorder,
    Recording,
    Replay,
    append,
    dump_events,
    from_body,
    kept_headers,
    load,
    load_all,
    load_events,
    random_pieces,
    save,
)
from streamlib.testing import MODEL, loopback, replay
from streamlib.transport.deadlines import Deadlines
from tests.support.shared import ROOT

OWN = sorted(
    path
    for path in (ROOT / "tests" / "recordings").glob("*/*")
    if path.suffix in (".sse", ".ndjson", ".eventstream")
)
BODIES = {path: path.read_bytes() for path in OWN}
PROMPT = Prompt(input="hello there", reasoning="low")


def bare(events: list[Any]) -> list[Any]:
    """Without what depends on where a client points: origins, call ids that it generated, and the headers' event."""
    found = []
    for event in events:
        item = getattr(event, "item", None)
        if item is not None:
            changes = {"call_id": "c"} if getattr(item, "call_id", "").startswith("call_") else {}
            event = msgspec.structs.replace(  # noqa: PLW2901
                event, item=msgspec.structs.replace(item, origin=None, **changes)
            )
        found += [] if isinstance(event, RateLimits) else [event]
    return found


async def events_of(client: Client, **options: Any) -> list[Any]:
    async with client.stream(PROMPT, model=MODEL, **options) as stream:
        return [event async for event in stream]


async def test_an_answer_recorded_from_a_server_replays_to_the_same_events(tmp_path: Path) -> None:
    async with (
        loopback(chunk=50) as client,
        Recorder() as recorder,
        Client(http=recorder, base_url=client._base_url) as recorded,
    ):
        live = await events_of(recorded)
    save(recorder.recordings[0], tmp_path / "answer.jsonl")
    again = load(tmp_path / "answer.jsonl")
    assert again.body == recorder.recordings[0].body
    assert [chunk.data for chunk in again.chunks] == [
        chunk.data for chunk in recorder.recordings[0].chunks
    ]
    for split in ("recorded", "whole", 1, 7):
        async with replay(tmp_path / "answer.jsonl", split=split) as client:  # type: ignore[arg-type]
            replayed = await events_of(client)
        assert bare(replayed) == bare(live)


def test_the_event_log_saves_and_loads() -> None:
    events = from_body(OWN[0].read_bytes()).events(OWN[0].parent.name)  # type: ignore[arg-type]
    assert load_events(dump_events(events)) == events
    assert [event.seq for event in load_events(dump_events(events))] == [
        event.seq for event in events
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"streamlib_recording":9}\n{"end":null}',
        b"\xff",
        b"[]\n[]",
        b'{"end":null}',
        b'{"streamlib_recording":1,"end":null}',
    ],
)
def test_any_other_file_is_a_value_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not a recording"):
        load(path)


def test_a_file_of_several_recordings_keeps_them_apart(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    both = [from_body(b"one"), from_body(b"two", status=429)]
    for one in both:
        append(one, path)
    assert load_all(path) == both
    with pytest.raises(ValueError, match="2 recordings"):
        load(path)


async def test_a_file_of_several_answers_one_request_with_each(tmp_path: Path) -> None:
    for name in ("chat/aimock-text.sse", "chat/aimock-halves.sse"):
        append(
            Recording(
                200,
                {},
                from_body((ROOT / "tests" / "recordings" / name).read_bytes()).chunks,
                wire_api="chat",
            ),
            tmp_path / "a",
        )
    async with replay(tmp_path / "a") as client:
        texts = [(await client.respond("hi", model=MODEL)).text for _ in range(3)]
    assert texts[0] == texts[2] != texts[1]


@pytest.mark.parametrize(
    ("url", "wire_api"),
    [
        ("https://api.anthropic.com/v1/messages", "messages"),
        ("https://openrouter.ai/api/v1/chat/completions", "chat"),
        (
            "https://host/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent?alt=sse",
            "gemini",
        ),
        ("http://localhost:11434/api/chat", "ollama"),
        ("https://host/something/else", None),
    ],
)
async def test_a_recording_knows_its_wire_by_its_address(url: str, wire_api: str | None) -> None:
    async with Recorder(Replay(from_body(b"x"))) as recorder:
        answer = await recorder.send("POST", url, {}, b"", Deadlines())
        await answer.aclose()
    assert recorder.recordings[0].wire_api == wire_api


def test_nothing_secret_is_kept_of_the_headers() -> None:
    headers = {
        "Set-Cookie": "s",
        "Authorization": "Bearer sk-canary",
        "x-api-key": "sk-canary",
        "Request-Id": "r",
        "x-ratelimit-limit": "1",
    }
    assert kept_headers(headers) == {"request-id": "r", "x-ratelimit-limit": "1"}


async def test_a_cut_recording_is_cut_again_when_it_is_replayed() -> None:
    cut = Recording(
        200,
        {"content-type": "text/event-stream"},
        from_body(OWN[0].read_bytes()[:200]).chunks,
        end="ReadError",
    )
    async with replay(cut, OWN[0].parent.name, retry=NO_RETRY) as client:  # type: ignore[arg-type]
        with pytest.raises(StreamError) as caught:
            await events_of(client)
    assert caught.value.kind == "truncated"


async def test_the_recorded_pace_is_kept_when_asked_for() -> None:
    slow = Recording(
        200,
        {},
        tuple(
            Chunk(0.1 * n, piece)
            for n, piece in enumerate(random_pieces(OWN[0].read_bytes(), 1, 3))
        ),
    )
    began = anyio.current_time()
    async with replay(slow, OWN[0].parent.name, speed=1.0, errors="event") as client:  # type: ignore[arg-type]
        await events_of(client)
    assert anyio.current_time() - began >= slow.chunks[-1].at
