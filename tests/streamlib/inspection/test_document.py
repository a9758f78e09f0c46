"""An inspection is one document: it agrees with the parser, and stays readable."""

from __future__ import annotations

import html
import json
import math
from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from struct import pack
from typing import Any

import msgspec
import pytest

from streamlib.inspection import (
    FORMAT,
    Inspection,
    encode,
    inspect,
    inspect_all,
    load,
    render,
    splits,
)
from streamlib.inspection.capture import Capture
from streamlib.inspection.event_text import describe_event
from streamlib.inspection.frames import Step, frame_names
from streamlib.inspection.inspector import SHORTEST_OUTPUT, split_characters
from streamlib.recording import Chunk, RecordedRequest, Recording, load_events, save
from streamlib.recording import load as load_recording
from streamlib.request.report import Change
from streamlib.testing.bench import bodies, responses
from streamlib_parsers import RateLimits, ResponseEvent, parse_body, parser
from streamlib_parsers.framing import Frame
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import is_json_bytes
from tests.support.cases import each_case
from tests.support.shared import ROOT
from tests.support.timing import cpu_seconds

RECORDINGS = ROOT / "tests" / "recordings"
FILES = sorted(path for path in RECORDINGS.glob("*/*") if path.suffix != ".md")
TOOL_CALL = (RECORDINGS / "messages" / "aimock-tool.sse").read_bytes()
SAVED = Path(__file__).with_name("saved")

DEEP = b'{"type":"message_start","x":' + b"[" * 3000 + b"]" * 3000 + b"}"
HOSTILE: tuple[tuple[WireApi, bytes], ...] = (
    ("messages", b""),
    ("messages", b"\n\n\n"),
    ("messages", b"event: \x1b]0;title\x07\ndata: {}\n\n"),
    ("messages", b"data: " + DEEP + b"\n\n"),
    ("chat", b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\ndata: [DONE]\n\n'),
    ("chat", b'data: {"choices":[{"delta":{"content":"</script><!--"}}]}\n\n'),
    ("chat", b'data: {"usage":{"prompt_tokens":' + b"9" * 400 + b"}}\n\n"),
    ("chat", b'data: {"usage":{"prompt_tokens":1e999,"completion_tokens":-1}}\n\n'),
    ("chat", b'{"error":{"message":"<img src=x onerror=alert(1)>"}}'),
    ("responses", b'{"type":"response.completed"}'),
    ("gemini", b'[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},'),
    ("gemini", b'data: {"candidates":[{"finishReason":99999999999}]}\n\n'),
    ("ollama", b'{"message":{"content":"\xff\xfe"}}\n{"done":true'),
    ("converse", b"\x00\x00\x00\x10\x00\x00\x00\x00"),
    ("converse", b"\xff\xff\xff\xff" * 10),
    ("invoke", b"\x00" * 40),
    ("cohere", b"data: [1,2,3]\n\n"),
    ("interactions", b"event: a\ndata: \xf0\x9f\n\n"),
)


def test_frame_of_invoke_is_named_by_its_inner_frame() -> None:
    """Every outer one is a `chunk`."""
    inner = b64encode(b'{"type":"message_start"}').decode()
    frame = Frame("chunk", json.dumps({"bytes": inner}).encode())
    assert frame_names("invoke", [frame]) == "message_start"
    assert frame_names("converse", [frame]) == "chunk"


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"delta": {"role": "assistant"}}, "role"),
        ({"delta": {"content": "Hi"}}, "content"),
        ({"delta": {}, "finish_reason": "stop"}, "finish_reason stop"),
    ],
)
def test_frame_of_chat_is_named_by_what_it_brings(choice: dict[str, Any], name: str) -> None:
    frame = Frame(None, json.dumps({"choices": [choice]}).encode())
    assert frame_names("chat", [frame]) == name


def test_event_of_limits_names_the_request() -> None:
    line = describe_event(RateLimits(request_id="req_7"), "", 80)
    assert "req_7" in line


def wire_of(path: Path) -> WireApi:
    wire_api: Any = path.parent.name
    return wire_api


def objects(events: list[ResponseEvent]) -> list[dict[str, Any]]:
    return msgspec.json.decode(msgspec.json.encode(events), type=list[dict[str, Any]])


def events_of(wire_api: WireApi, body: bytes) -> list[ResponseEvent]:
    if is_json_bytes(body):
        return parse_body(wire_api, body, status=200)
    parse = parser(wire_api)
    return parse.feed(body) + parse.close()


def check_columns(inspection: Inspection) -> None:
    body = inspection.body
    assert body is not None
    frames, chunks = inspection.frames, inspection.chunks
    assert sum(chunks.bytes) == len(body) == inspection.facts.bytes
    assert sum(frames.bytes) <= len(body)
    assert sum(frames.events) == len(inspection.events)
    assert len(frames.kind) == len(frames.bytes) == len(frames.events) == inspection.facts.frames
    assert all(0 <= kind < len(frames.kinds) for kind in frames.kind)
    for item in inspection.items:
        assert inspection.events[item.first_event]["type"] == "output_item_added"
        assert inspection.events[item.last_event]["type"] == "output_item_done"
        assert 0 <= item.first_frame <= item.last_frame < len(frames.kind)
    for finding in inspection.findings:
        assert finding.frame is None or 0 <= finding.frame < len(frames.kind)
        assert finding.byte is None or 0 <= finding.byte <= len(body)


@each_case("path", FILES)
def test_inspection_holds_the_parsed_events(path: Path) -> None:
    body = path.read_bytes()
    inspection = inspect(body, wire_of(path))
    assert inspection.events == objects(events_of(wire_of(path), body))
    check_columns(inspection)
    assert all(split.same for split in inspection.splits.results)
    assert load(encode(inspection)) == inspection


@each_case("wire_api, body", HOSTILE)
def test_inspection_is_made_of_any_bytes(wire_api: WireApi, body: bytes) -> None:
    for source in (
        body,
        Recording(500, {"x": "\x1b"}, (Chunk(math.nan, body),), "\x1b[2J", "", ""),
    ):
        inspection = inspect(source, wire_api)
        check_columns(inspection)
        assert load(encode(inspection)) == inspection
        shown = "".join(finding.text + finding.detail for finding in inspection.findings)
        assert "\x1b" not in shown
        json.loads(encode(inspection))


@each_case("length", range(0, len(TOOL_CALL), 97))
def test_inspection_of_a_truncated_response_is_an_error(length: int) -> None:
    inspection = inspect(TOOL_CALL[:length], "messages")
    assert (inspection.outcome.level, inspection.outcome.terminal) == ("error", "failed")
    assert inspection.findings[0].code == "failed"
    cut = [item for item in inspection.items if item.truncated]
    assert [item.status for item in cut] == ["incomplete"] * len(cut)
    opened = [event for event in inspection.events if event["type"] == "output_item_added"]
    assert len(inspection.items) == len(opened)
    check_columns(inspection)


def test_inspection_tells_the_wire_of_the_source() -> None:
    with pytest.raises(ValueError, match="wire_api"):
        inspect(TOOL_CALL)


def recording_of(*chunks: tuple[float, bytes], **fields: Any) -> Recording:
    made = tuple([Chunk(at, data) for at, data in chunks])
    return Recording(200, fields.pop("headers", {}), made, wire_api="messages", **fields)


def test_facts_tell_times_tokens_and_limits() -> None:
    half = TOOL_CALL.index(b"event: content_block_delta")
    late = TOOL_CALL.index(b"event: message_delta")
    inspection = inspect(
        recording_of(
            (0.25, TOOL_CALL[:half]),
            (0.5, TOOL_CALL[half:late]),
            (2.0, TOOL_CALL[late:]),
            headers={"request-id": "req_1", "anthropic-ratelimit-requests-remaining": "7"},
        )
    )
    facts = inspection.facts
    assert (facts.first_byte, facts.first_token, facts.duration) == (0.25, 0.5, 2.0)
    # All arguments were received at once: that is no speed.
    assert facts.tokens_per_second is None
    assert facts.request_id == "req_1"
    assert [(limit.name, limit.remaining) for limit in facts.limits] == [("requests", 7)]
    assert facts.longest_no_bytes is not None
    assert (facts.longest_no_bytes.start, facts.longest_no_bytes.end) == (0.5, 2.0)


def test_short_output_has_no_speed() -> None:
    body = b"".join(bodies.body("messages", (responses.SampleText(["one ", "two"]),)))
    middle = body.index(b"two")
    for wait, is_known in ((SHORTEST_OUTPUT * 0.9, False), (SHORTEST_OUTPUT * 1.1, True)):
        facts = inspect(recording_of((1.0, body[:middle]), (1.0 + wait, body[middle:]))).facts
        assert (facts.tokens_per_second is not None) is is_known


def test_facts_tell_the_speed_of_output() -> None:
    body = b"".join(bodies.body("messages", (responses.SampleText(["one ", "two ", "three"]),)))
    first = body.index(b"one ")
    last = body.index(b"three")
    inspection = inspect(
        recording_of(
            (1.0, body[: first + 99]), (3.0, body[first + 99 : last + 99]), (3.5, body[last + 99 :])
        )
    )
    assert inspection.facts.usage is not None
    tokens = inspection.facts.usage["output_tokens"]
    assert inspection.facts.tokens_per_second == tokens / 2


def test_inspection_holds_the_request_and_its_changes(tmp_path: Path) -> None:
    body = b'{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    changes = (Change("dropped", "/top_k", "the target has no top_k"),)
    request = RecordedRequest({"content-type": "application/json"}, body, changes)
    recording = recording_of((0.1, TOOL_CALL), request=request)
    save(recording, tmp_path / "a.jsonl")
    loaded = load_recording(tmp_path / "a.jsonl")
    assert loaded == recording
    shown = inspect(loaded).request
    assert shown is not None
    assert (shown.model, shown.items, shown.tools, shown.bytes) == ("claude-x", 1, 0, len(body))
    assert shown.changes == changes
    malformed = recording_of((0.1, TOOL_CALL), request=RecordedRequest({}, b"\xff{"))
    unread = inspect(malformed).request
    assert unread is not None
    assert (unread.model, unread.text) == (None, "\ufffd{")


def test_split_characters_are_counted_where_chunks_part_them() -> None:
    body = b"".join(bodies.body("messages", (responses.SampleText(["naïve 日本 😀"]),)))
    place = body.index("日".encode())
    parted = recording_of((0.1, body[: place + 1]), (0.2, body[place + 1 :]))
    assert inspect(parted).split_characters.bytes == (place + 1,)
    whole = recording_of((0.1, body[:place]), (0.2, body[place:]))
    assert inspect(whole).split_characters.count == 0
    frames = b"".join(bodies.body("converse", (responses.SampleText(["naïve 日本 😀"]),)))
    place = frames.index("日".encode())
    each_byte = [(index / 1000, frames[index : index + 1]) for index in range(len(frames))]
    found = inspect(recording_of(*each_byte), "converse").split_characters.bytes
    # The text stands in the response twice at most; checksums that look like text do not count.
    assert {place + 1, place + 2} <= set(found)
    text = ["ï", "日", "本", "😀"]
    inner = sum(len(character.encode()) - 1 for character in text)
    assert len(found) % inner == 0


@pytest.mark.timing
def test_split_characters_of_a_large_message_take_linear_time() -> None:
    def seconds(count: int) -> float:
        # One message of which each chunk ends inside a character.
        text = "日本".encode() * count
        padding = b"x" * (60 * count)  # makes copies of the message slow
        message = pack(">III", 66 * count + 16, 0, 0) + text + padding + bytes(4)
        # It follows an empty message: a slice of all bytes would not be a copy.
        body = bytes(16) + message
        ends = range(16 + 13, 16 + 12 + len(text), 6)
        chunks = [Chunk(0.0, body[start:end]) for start, end in pairwise([0, *ends, len(body)])]
        capture = Capture("", "converse", Recording(200, {}, tuple(chunks)), is_recorded=True)
        steps = [Step(0, 16, "message", []), Step(16, len(body), "message", [])]
        assert split_characters(capture, steps).count == count
        return cpu_seconds(lambda: split_characters(capture, steps), tries=5)

    # Four times as many: about 4 if linear, about 16 if every boundary copies the message.
    assert seconds(8000) < 8 * seconds(2000)


def test_offsets_of_split_characters_are_limited() -> None:
    text = "é" * 1005
    body = b"".join(bodies.body("messages", (responses.SampleText([text]),)))
    each_byte = [(0.1, body[index : index + 1]) for index in range(len(body))]
    found = inspect(recording_of(*each_byte), splits=None).split_characters
    assert found.count >= len(text)
    assert len(found.bytes) == 1000


@pytest.mark.parametrize("limit", ["WORK_BYTES", "WORK_EVENTS"])
def test_splits_share_one_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inspection = inspect(TOOL_CALL, "messages", splits=None)
    one_split = {"WORK_BYTES": len(TOOL_CALL), "WORK_EVENTS": len(inspection.events)}[limit]
    monkeypatch.setattr(splits, limit, 3 * one_split)
    assert len(inspect(TOOL_CALL, "messages").splits.results) == 3


def test_large_bodies_are_split_as_far_as_that_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "WORK_CHUNKS", 1000)
    body = b"".join(bodies.body("messages", (responses.SampleText(["word "] * 100),)))
    inspection = inspect(body, "messages")
    tried = [result.split for result in inspection.splits.results]
    skipped = [split.split for split in inspection.splits.skipped]
    assert "whole" in tried
    assert 1 in skipped
    assert not set(tried) & set(skipped)
    forced = inspect(body, "messages", splits=[7])
    assert 7 in [result.split for result in forced.splits.results]


@pytest.mark.parametrize("size", [0, -1, True])
def test_splits_are_at_least_one_byte(size: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        inspect(TOOL_CALL, "messages", splits=iter([7, size]))


def test_split_as_recorded_has_the_chunks_of_the_recording() -> None:
    recording = recording_of((0.1, TOOL_CALL[:300]), (0.2, TOOL_CALL[300:]))
    capture = Capture("", "messages", recording, is_recorded=True)
    assert list(splits._chunks(capture, "recorded")) == [TOOL_CALL[:300], TOOL_CALL[300:]]
    assert list(splits._chunks(capture, "whole")) == [TOOL_CALL]


def test_splits_name_the_first_event_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks_of = splits._chunks

    def without_the_last(capture: Capture, split: int | str) -> list[bytes]:
        return list(chunks_of(capture, split))[:-1]

    monkeypatch.setattr(splits, "_chunks", without_the_last)
    results = inspect(TOOL_CALL, "messages").splits.results
    assert [result.first_difference for result in results if result.split == "whole"] == [0]
    assert not any(result.same for result in results)
    parse = parser("messages")
    events = [*parse.feed(TOOL_CALL), *parse.close()]
    assert splits._first_difference(events, events[:-1]) == len(events) - 1
    assert splits._first_difference(events, [*events[:4], events[3], *events[5:]]) == 4


# --- the format ---


def test_load_reads_version_1() -> None:
    data = (SAVED / "inspection-1.json").read_bytes()
    inspection = load(data)
    assert inspection.format == FORMAT == "streamlib.inspection/1"
    assert inspection.outcome.text == "failed (truncated)"
    assert inspection.body == TOOL_CALL[:760]
    assert [item.label for item in inspection.items] == ["function_call get_weather"]
    check_columns(inspection)
    again = inspect(
        recording_of((0.25, TOOL_CALL[:500]), (1.5, TOOL_CALL[500:760]), end="ReadError"),
        name="truncated.jsonl",
    )
    # Its text was `not received: message_stop` then: texts are for people.
    findings = [
        msgspec.structs.replace(finding, text="not received: message_stop")
        if finding.code == "not_received"
        else finding
        for finding in again.findings
    ]
    again = msgspec.structs.replace(again, made_by=inspection.made_by, findings=tuple(findings))
    # The call was named a message then.
    again = load(encode(again).replace(b"ended inside a call", b"ended inside a message"))
    assert again == inspection


def test_load_ignores_keys_that_it_does_not_know() -> None:
    document = json.loads((SAVED / "inspection-1.json").read_bytes())
    expected = load(json.dumps(document))

    def extend(value: Any) -> None:
        if isinstance(value, dict):
            for inner in list(value.values()):
                extend(inner)
            value["a_key_of_tomorrow"] = {"deep": [1]}
        elif isinstance(value, list):
            for inner in value:
                extend(inner)

    for key in ("source", "outcome", "findings", "facts", "silences", "items", "splits"):
        extend(document[key])
    document["a_key_of_tomorrow"] = 1
    document["facts"]["events"].pop("a_key_of_tomorrow")
    document["facts"]["usage"].pop("a_key_of_tomorrow")
    document["source"]["headers"].pop("a_key_of_tomorrow")
    document["outcome"]["error"].pop("a_key_of_tomorrow")
    assert load(json.dumps(document)) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"{}",
        b'{"format":"streamlib.inspection/2"}',
        b"\xff",
        b'{"format":"streamlib.inspection/1"}',
    ],
)
def test_load_refuses_what_is_no_inspection(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an inspection"):
        load(data)


def test_events_of_a_document_are_an_event_log() -> None:
    inspection = inspect(TOOL_CALL, "messages")
    log = b"\n".join(msgspec.json.encode(event) for event in inspection.events)
    assert load_events(log) == events_of("messages", TOOL_CALL)


@pytest.mark.timing
def test_inspection_takes_time_in_proportion_to_the_frames() -> None:
    def seconds(count: int) -> float:
        body = b"".join(bodies.body("messages", (responses.SampleText(["some words "] * count),)))
        chunks = [
            (index * 0.01, body[at : at + 150]) for index, at in enumerate(range(0, len(body), 150))
        ]
        recording = recording_of(*chunks)
        return cpu_seconds(lambda: encode(inspect(recording)), tries=2)

    assert seconds(800) < 2.6 * seconds(400)


# --- in a notebook ---


def test_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    body = TOOL_CALL.replace(b"get_weather", b"</iframe><script>hit()</script>")
    inspection = inspect(body, "messages", name='"><script>')
    shown = inspection._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" ')
    inside = shown.partition('srcdoc="')[2].removesuffix('"></iframe>')
    assert not {'"', "<", ">"} & set(inside)
    assert html.unescape(inside) == render([inspection])
    assert repr(inspection).startswith("Inspection('\"><script>', 'completed (tool_calls)', ")


def test_detail_of_a_finding_holds_no_key() -> None:
    body = b'data: {"id":"c","choices":[]}\n\ndata: {"error":"no sk-proj-4f9a8b7c6d5e4f3a2b1c'
    details = [finding.detail for finding in inspect(body, "chat").findings]
    assert [detail for detail in details if "***" in detail]
    assert not [detail for detail in details if "4f9a" in detail]


@pytest.mark.parametrize("data", [b"", b" \n", b"nothing of that kind\n"])
def test_file_without_a_response_is_read_as_a_named_wire(data: bytes) -> None:
    """As `streamlib inspect` does."""
    assert inspect_all(data) == []
    [inspection] = inspect_all(data, "chat", name="x")
    assert inspection.outcome.text == "failed (malformed)"
    assert (inspection.source.name, inspection.source.guessed) == ("x", False)


def test_path_of_a_file_is_no_source() -> None:
    path: Any = "response.sse"
    with pytest.raises(TypeError, match="a `Recording` or bytes are inspected, not a str"):
        inspect(path, "chat")
    with pytest.raises(TypeError, match="the bytes of a file are inspected, not a str"):
        inspect_all(path)
