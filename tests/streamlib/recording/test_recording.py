"""Recordings: the same events at any speed and split, and no secret in the file."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import streamlib.recording
from streamlib import Client, Failed, Prompt, RateLimits, StreamError, accumulate
from streamlib.client.retry import NO_RETRY
from streamlib.recording import (
    Chunk,
    Recorder,
    Recording,
    Replay,
    Split,
    append,
    dump,
    dump_events,
    from_body,
    load,
    load_all,
    load_events,
    save,
)
from streamlib.recording.files import kept_headers, parse, read, read_rest
from streamlib.recording.replay import faulty_chunks, random_pieces
from streamlib.testing import MODEL, loopback, replay
from streamlib.transport.deadlines import Deadlines
from streamlib.wires.faults import MALFORMED
from tests.support.cases import each_case
from tests.support.response_bodies import MESSAGE
from tests.support.shared import ROOT

OWN = sorted(
    path
    for path in (ROOT / "tests" / "recordings").glob("*/*")
    if path.suffix in (".sse", ".ndjson", ".eventstream")
)
WIRE: Any = OWN[0].parent.name
"""The folders of the recordings are named after the wires."""

PROMPT = Prompt(input="hello there", reasoning="low")


def bare(events: list[Any]) -> list[Any]:
    """Without what depends on the client's target: origins, generated call ids, and the event of
    the headers."""
    comparable: list[Any] = []
    for event in events:
        if isinstance(event, RateLimits):
            continue
        item = getattr(event, "item", None)
        if item is None:
            comparable.append(event)
            continue
        changes: dict[str, Any] = {"origin": None}
        if getattr(item, "call_id", "").startswith("call_"):
            changes["call_id"] = "c"
        item = msgspec.structs.replace(item, **changes)
        comparable.append(msgspec.structs.replace(event, item=item))
    return comparable


async def events_of(client: Client, **options: Any) -> list[Any]:
    async with client.stream(PROMPT, model=MODEL, **options) as stream:
        return [event async for event in stream]


KEY = "sk-proj-4f9a/8b7c6d5e"


@pytest.mark.parametrize(
    ("written", "url"),
    [
        (KEY, "https://host/v1/chat/completions"),
        (KEY.replace("/", "\\/"), "https://host/v1/chat/completions"),
        (KEY.replace("/", "%2F"), "https://host/v1/chat/completions"),
        ("key-of-the-query", "https://host/v1/models/m:generateContent?key=key-of-the-query"),
        ("pass-of-the-url", "https://me:pass-of-the-url@host/v1/chat/completions"),
    ],
)
async def test_recorder_masks_a_key_that_is_repeated(written: str, url: str) -> None:
    body = f'{{"error":{{"message":"Incorrect API key: {written} \\u00e9"}}}}'.encode()
    # The key is in two chunks.
    middle = body.index(b"key: ") + 9
    chunks = (Chunk(0.0, body[:middle]), Chunk(0.0, body[middle:]))
    replayed = Replay(Recording(401, {}, chunks), speed=0)
    async with Recorder(replayed) as recorder:
        headers = {"authorization": f"Bearer {KEY}"}
        response = await recorder.send("POST", url, headers, b"", Deadlines())
        received = b"".join([chunk async for chunk in response.chunks])
        await response.aclose()
    [recording] = recorder.recordings
    assert received == body
    assert recording.body == body.replace(written.encode(), b"*" * len(written))
    assert [len(chunk.data) for chunk in recording.chunks] == [middle, len(body) - middle]
    assert "pass-of-the-url" not in dump(recording).decode()


async def test_recorded_response_replays_to_the_same_events(tmp_path: Path) -> None:
    async with (
        loopback(chunk=50) as client,
        Recorder() as recorder,
        Client(http=recorder, base_url=client._base_url) as recorded,
    ):
        live = await events_of(recorded)
    save(recorder.recordings[0], tmp_path / "response.jsonl")
    again = load(tmp_path / "response.jsonl")
    assert again.body == recorder.recordings[0].body
    assert [chunk.data for chunk in again.chunks] == [
        chunk.data for chunk in recorder.recordings[0].chunks
    ]
    splits: tuple[Split, ...] = ("recorded", "whole", 1, 7)
    for split in splits:
        async with replay(tmp_path / "response.jsonl", split=split) as client:
            replayed = await events_of(client)
        assert bare(replayed) == bare(live)


def test_event_log_saves_and_loads() -> None:
    events = from_body(OWN[0].read_bytes()).events(WIRE)
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
def test_load_raises_value_error_on_other_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not a recording"):
        load(path)


LINES = dump(Recording(200, {}, (Chunk(0.0, b"a"), Chunk(0.5, b"b")))).splitlines(keepends=True)
"""The first line, one for each chunk, and the end."""
WHOLE = b"".join(LINES)


@each_case(
    "data, problem",
    [
        (b"".join([*LINES[:2], b"{\n", LINES[3]]), "line 3 cannot be read: "),
        (WHOLE + b"".join(LINES[:2]), "it stops before the end of a recording, at line 6"),
        (WHOLE.replace(b'_recording":1', b'_recording":9'), "line 4 cannot be read: version 9 of"),
        (b"data: x\n\n", "it does not begin with streamlib_recording"),
        (b" \n", "it is empty"),
        (b'{"streamlib_history":1}', "it is a saved history (read it with History.load)"),
        (b'{"type":"completed","seq":0}\n', "it is an event log (read it with load_events)"),
        (b'{"type":"fire"}\n', "it does not begin with streamlib_recording"),
        (b'{ "format": "streamlib.inspection/1"}', "it is an inspection document"),
    ],
)
def test_file_that_cannot_be_read_is_explained(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(problem)):
        parse(data)


@each_case(
    "rest, body, reason",
    [
        (LINES[:1], b"", "is truncated at line 5"),
        (LINES[:3], b"ab", "is truncated at line 7"),
        # A last line without its line end was cut in the middle.
        ([*LINES[:2], LINES[2][:9]], b"a", "is truncated at line 7"),
        ([*LINES[:2], LINES[2][:9], b"\n"], b"a", "cannot be read from line 7 on"),
        ([*LINES[:2], b"{}\n", LINES[3]], b"a", "cannot be read from line 7 on"),
        ([*LINES[:2], b"{}\n", LINES[3][:5]], b"a", "cannot be read from line 7 on"),
    ],
)
def test_rest_of_a_damaged_file_is_read(rest: list[bytes], body: bytes, reason: str) -> None:
    data = WHOLE + b"".join(rest)
    complete, _ = read(data)
    assert len(complete) == 1
    found = read_rest(data, complete)
    assert found is not None
    assert (found.recording.body, found.recording.end) == (body, "recording_truncated")
    assert found.reason == f"the recording itself {reason}"
    assert read_rest(WHOLE + LINES[0][:9], complete) is None


def test_load_all_reads_several_recordings(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    both = [from_body(b"one"), from_body(b"two", status=429)]
    for recording in both:
        append(recording, path)
    assert load_all(path) == both
    with pytest.raises(ValueError, match="2 recordings"):
        load(path)


async def test_replay_answers_requests_with_recordings_in_turn(tmp_path: Path) -> None:
    for name in ("chat/aimock-text.sse", "chat/aimock-halves.sse"):
        body = (ROOT / "tests" / "recordings" / name).read_bytes()
        recording = Recording(200, {}, from_body(body).chunks, wire_api="chat")
        append(recording, tmp_path / "a")
    async with replay(tmp_path / "a") as client:
        texts = [(await client.respond("hi", model=MODEL)).text for _ in range(3)]
    assert texts[0] == texts[2] != texts[1]
    assert texts[0] == accumulate(load_all(tmp_path / "a")[0].events()).text


@pytest.mark.parametrize(
    ("url", "wire_api"),
    [
        ("https://api.anthropic.com/v1/messages", "messages"),
        ("https://openrouter.ai/api/v1/chat/completions", "chat"),
        (
            "https://host/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
            "gemini",
        ),
        (
            "https://host/v1/projects/p/publishers/google/models/g:streamGenerateContent?alt=sse",
            "gemini",
        ),
        ("http://localhost:11434/api/chat", "ollama"),
        ("https://host/something/else", None),
    ],
)
async def test_recorder_tells_the_wire_from_the_url(url: str, wire_api: str | None) -> None:
    async with Recorder(Replay(from_body(b"x"))) as recorder:
        response = await recorder.send("POST", url, {}, b"", Deadlines())
        await response.aclose()
    assert recorder.recordings[0].wire_api == wire_api


def test_recorded_headers_contain_no_secret() -> None:
    headers = {
        "Set-Cookie": "s",
        "Authorization": "Bearer sk-canary",
        "x-api-key": "sk-canary",
        "Request-Id": "r",
        "x-ratelimit-limit": "1",
    }
    assert kept_headers(headers) == {"request-id": "r", "x-ratelimit-limit": "1"}


def test_recording_of_a_body_has_the_kept_headers_alone() -> None:
    recording = from_body(b"x", headers={"Set-Cookie": "session=canary", "Retry-After": "3"})
    assert recording.headers == {"retry-after": "3"}
    assert b"canary" not in dump(recording)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (503, b"<html>busy</html>", "overloaded"),
        (401, b"", "authentication"),
        (400, b"no", "invalid_request"),
    ],
)
def test_recorded_error_has_the_kind_of_its_status(status: int, body: bytes, kind: str) -> None:
    recording = from_body(body, status=status)
    failed = recording.events("chat")[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.error.status) == (kind, status)
    assert [row["type"] for row in recording.rows("chat")][-1] == "failed"


def test_what_is_no_recording_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    save(from_body(b"one"), path)
    wrong: Any = [from_body(b"two")]
    for write in (save, append):
        with pytest.raises(TypeError, match="a `Recording` is saved, not"):
            write(wrong, path)
    assert load(path).body == b"one"


@pytest.mark.parametrize(
    ("recordings", "options", "message"),
    [
        (([],), {}, "a replay is of recordings: `Replay(*load_all(…))`, not []"),
        ((), {"speed": "1"}, "speed is a number, not '1'"),
        ((), {"seed": "x"}, "seed is a whole number, not 'x'"),
        ((), {"at": "3"}, "at is a whole number, not '3'"),
        ((), {"failing": 1.5}, "failing is a whole number, not 1.5"),
    ],
)
def test_wrong_argument_of_a_replay_is_refused(
    recordings: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as raised:
        Replay(from_body(b"x"), *recordings, **options)
    assert str(raised.value) == message


@each_case(
    "options",
    [
        {"split": 0},
        {"split": True},
        {"split": 1.5},
        {"split": "half"},
        {"speed": -1},
        {"speed": float("nan")},
        {"at": -1},
        {"failing": -1},
        {"fault": "fire"},
    ],
)
def test_value_that_a_replay_cannot_have_is_refused(options: dict[str, Any]) -> None:
    [name] = options
    with pytest.raises(ValueError, match=name):
        Replay(from_body(b"x"), **options)


async def replayed_chunks(transport: Replay) -> tuple[list[bytes], str | None]:
    """What one request gets, and the error in which it ends."""
    response = await transport.send("POST", "https://host/x", {}, b"", Deadlines())
    received: list[bytes] = []
    try:
        async for data in response.chunks:
            received.append(data)
    except ConnectionError as error:
        return received, str(error)
    return received, None


async def test_each_request_is_split_at_other_offsets() -> None:
    transport = Replay(from_body(MESSAGE), split="random")
    for seed in range(3):
        expected = [piece for piece in random_pieces(MESSAGE, seed) if piece]
        assert await replayed_chunks(transport) == (expected, None)
    assert sorted(map(len, random_pieces(b"abc", 0, most=1)))[1:] == [3]


FRAMES = tuple(Chunk(number / 4, b"data: %d\n\n" % number) for number in range(4))
"""Of nine bytes each."""
BODY = b"".join([chunk.data for chunk in FRAMES])


@each_case(
    "fault, sent, end",
    [
        ("truncate", BODY[:18], None),
        ("disconnect", BODY[:22], "the recording ends here: the connection was reset (fault)"),
        ("malformed", BODY[:18] + MALFORMED + BODY[18:], "the recording ends here: ReadError"),
    ],
)
async def test_fault_comes_after_so_many_events(fault: Any, sent: bytes, end: str | None) -> None:
    recording = Recording(200, {}, FRAMES, end="ReadError", wire_api="chat")
    transport = Replay(recording, fault=fault, at=2, failing=1)
    received, error = await replayed_chunks(transport)
    assert (b"".join(received), error) == (sent, end)
    received, error = await replayed_chunks(transport)
    assert (b"".join(received), error) == (BODY, "the recording ends here: ReadError")


def test_chunks_before_a_fault_keep_their_times() -> None:
    assert faulty_chunks(FRAMES, "chat", "truncate", 2) == list(FRAMES[:2])
    cut = Chunk(0.5, BODY[18:22])
    assert faulty_chunks(FRAMES, "chat", "disconnect", 2) == [*FRAMES[:2], cut]
    inserted = [*FRAMES[:2], Chunk(0.25, MALFORMED), *FRAMES[2:]]
    assert faulty_chunks(FRAMES, "chat", "malformed", 2) == inserted
    assert faulty_chunks(FRAMES, "chat", "malformed", 0) == [Chunk(0.0, MALFORMED), *FRAMES]
    # Without a wire the body is one frame.
    assert faulty_chunks(FRAMES, None, "disconnect", 2) == list(FRAMES[:2])


async def test_truncated_recording_replays_as_truncated() -> None:
    truncated = Recording(
        200,
        {"content-type": "text/event-stream"},
        from_body(OWN[0].read_bytes()[:200]).chunks,
        end="ReadError",
    )
    async with replay(truncated, WIRE, retry=NO_RETRY) as client:
        with pytest.raises(StreamError) as caught:
            await events_of(client)
    assert caught.value.kind == "truncated"


async def test_replay_keeps_the_recorded_pace_at_speed_one() -> None:
    fragments = random_pieces(OWN[0].read_bytes(), 1, 3)
    chunks = [Chunk(0.1 * index, fragment) for index, fragment in enumerate(fragments)]
    slow = Recording(200, {}, tuple(chunks))
    start = anyio.current_time()
    async with replay(slow, WIRE, speed=1.0, errors="event") as client:
        await events_of(client)
    assert anyio.current_time() - start >= slow.chunks[-1].at


@pytest.mark.anyio
async def test_recording_without_a_response_has_the_reason() -> None:
    recording = Recording(0, {}, (), "ConnectError", wire_api="chat")
    failed = recording.events()[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.error.retryable) == ("connection", True)
    assert recording.rows()[-1]["type"] == "failed"
    async with replay(recording, retry=NO_RETRY) as client:
        with pytest.raises(StreamError, match="no response was received") as caught:
            await events_of(client)
    assert str(caught.value).startswith("connection (a recording): no response was received")
    assert "streamlib serve" not in str(caught.value)
    replayed = Replay(recording, from_body(MESSAGE), fault="disconnect", at=0, failing=1)
    async with Client(
        http=replayed, base_url="http://h", wire_api="messages", retry=NO_RETRY, errors="event"
    ) as client:
        statuses = [(await client.respond("hi", MODEL)).status for _ in range(3)]
    assert statuses == ["failed", "failed", "completed"]


def test_rows_hold_every_event_with_its_time() -> None:
    """For a table: ``pandas.DataFrame(recording.rows())``."""
    chunks = (Chunk(0.5, MESSAGE[:400]), Chunk(1.5, MESSAGE[400:]))
    recording = Recording(200, {}, chunks, wire_api="messages")
    rows = recording.rows()
    assert [row["seq"] for row in rows] == [event.seq for event in recording.events()]
    assert "".join([row["text"] or "" for row in rows]) == "Hello there"
    assert [rows[0]["at"], rows[-1]["at"]] == [0.5, 1.5]
    assert rows[-1] == {
        "at": 1.5,
        "chunk": 1,
        "bytes": len(MESSAGE) - 400,
        "seq": len(rows) - 1,
        "type": "completed",
        "index": None,
        "text": None,
    }
    with pytest.raises(ValueError, match="pass `wire_api`"):
        Recording(200, {}, chunks).rows()


def test_a_recording_is_shown_without_its_body() -> None:
    recording = Recording(200, {}, (Chunk(0.25, MESSAGE),), url="http://x/<b>", wire_api="messages")
    for shown in (recording._repr_html_(), recording._repr_markdown_()):
        assert "0.25 s" in shown
        assert "Hello" not in shown
        assert "<b>" not in shown


def test_time_that_is_not_a_float_is_a_named_problem(tmp_path: Path) -> None:
    path = tmp_path / "response.jsonl"
    save(Recording(200, {}, (Chunk(0.5, b"a"),)), path)
    path.write_bytes(path.read_bytes().replace(b"0.5", b"1" + b"0" * 400))
    with pytest.raises(ValueError, match="cannot be read"):
        load(path)


def test_public_names_of_recordings_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in streamlib.recording.__all__:
            assert getattr(streamlib.recording, name) is not None
