"""A response is opened in whatever form somebody has it, or it is said what to do."""

from __future__ import annotations

import contextlib
import gzip
import json
import pprint
import time
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlib
from streamlib.inspection import forms, python_forms, several, text_forms
from streamlib.inspection.capture import Capture, capture_of_part, events_of
from streamlib.inspection.file_parts import UnreadableFile, part_of
from streamlib.inspection.forms import FORMS, open_file
from streamlib.inspection.gathering import objects_in
from streamlib.inspection.http_forms import is_binary
from streamlib.inspection.inspector import inspected, read_capture
from streamlib.inspection.wire_markers import likely_wire
from streamlib.wires.encoders import encode_body
from streamlib_parsers.items import FunctionCall, JsonObject
from streamlib_parsers.response import Response
from tests.support import awkward_captures as awkward
from tests.support.awkward_captures import (
    BODY,
    BODY_CAPTURES,
    CHAT,
    CHAT_CAPTURES,
    EVENT_LOG,
    MESSAGES,
    RESPONSES,
    chunked,
    entry,
    har,
    headers,
    json_line,
    log,
    payloads_of,
)
from tests.support.cases import each_case
from tests.support.inspections import body_of
from tests.support.shared import ROOT

RECORDINGS = sorted(
    path for path in (ROOT / "tests" / "recordings").glob("*/*") if path.suffix != ".md"
)
each_recording = pytest.mark.parametrize(
    "path", RECORDINGS, ids=[f"{path.parent.name}-{path.name}" for path in RECORDINGS]
)
Said = tuple[str, str, str, list[tuple[str, str]]]


def captures_in(data: bytes, wire_api: streamlib.WireApi | None = None) -> list[Capture]:
    return [capture_of_part("x", part, wire_api) for part in open_file(data)]


def said(response: Response) -> Said:
    """What a response says, without ids and metadata, which are not the same in a body."""
    calls = [
        (item.name, item.arguments) for item in response.items if isinstance(item, FunctionCall)
    ]
    return response.status, response.text, response.reasoning, calls


def said_in(data: bytes) -> list[Said]:
    return [said(streamlib.accumulate(events_of(capture))) for capture in captures_in(data)]


# --- what people have ---


@each_case("name", CHAT_CAPTURES)
def test_stream_is_opened_in_every_form(name: str) -> None:
    assert said_in(CHAT_CAPTURES[name]) == said_in(CHAT)
    [capture] = captures_in(CHAT_CAPTURES[name])
    assert capture.wire_api == "chat"
    assert capture.truncation is None


@each_case("name", BODY_CAPTURES)
def test_body_is_opened_in_every_form(name: str) -> None:
    assert said_in(BODY_CAPTURES[name]) == said_in(BODY)


def test_event_log_is_opened() -> None:
    events = streamlib.parse_body("chat", BODY)
    assert said_in(streamlib.recording.dump_events(events)) == said_in(BODY)


def test_cut_event_log_ends_with_its_last_event() -> None:
    """Not with an end that nobody sent."""
    events = streamlib.parse_body("chat", BODY)
    encode = streamlib.encoder("responses")
    written = b"".join(map(encode.feed, events[:-1]))
    [capture] = captures_in(streamlib.recording.dump_events(events)[:-20])
    assert capture.recording.body == written
    assert capture.truncation is not None
    [capture] = captures_in(streamlib.recording.dump_events(events))
    assert capture.recording.body == written + encode.feed(events[-1]) + encode.close()


@each_recording
def test_every_wire_is_opened_in_every_kind_of_text(path: Path) -> None:
    """Compressed, printed by Python, in a log: whatever the wire."""
    body = path.read_bytes()
    expected = said_in(body)
    assert len(expected) == 1
    wire = captures_in(body)[0].wire_api
    assert wire == path.parent.name or path.suffix == ".json"  # an error may be of any wire
    stored = {"gzip": gzip.compress(body), "literal": repr(body).encode()}
    if path.suffix != ".eventstream":
        text = body.decode("utf-8", "surrogateescape")
        stored["string"] = json.dumps(text).encode()
        stored["table"] = awkward.table(text)
    if path.suffix == ".sse":
        payloads = payloads_of(body)
        stored["objects"] = b"\n".join(payloads)
        stored["json log"] = "".join(
            json_line(chunk=json.loads(payload)) for payload in payloads
        ).encode()
        stored["json log of strings"] = "".join(
            json_line(data=payload.decode()) for payload in payloads
        ).encode()
        stored["json list of strings"] = json.dumps([each.decode() for each in payloads]).encode()
        frames = [b"data: " + payload + b"\n\n" for payload in payloads]
        stored["log of literals"] = "".join(log(f"{frame!r}") for frame in frames).encode()
        stored["log of chunks"] = "".join(
            log(f"chunk {body[start : start + 300]!r}") for start in range(0, len(body), 300)
        ).encode()
        stored["log"] = "".join(log(f"got {payload.decode()}") for payload in payloads).encode()
    for form, data in stored.items():
        assert said_in(data) == expected, form
        assert captures_in(data)[0].wire_api == wire, form


@each_case(
    "path",
    # Of Gemini this has one frame without an id: it might be the tail of the response before it.
    [path for path in RECORDINGS if path.parts[-2:] != ("gemini", "aimock-tool.sse")],
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_responses_after_one_another_are_a_list(path: Path) -> None:
    body = path.read_bytes()
    between = b"" if path.suffix == ".eventstream" else b"\n"
    assert said_in(between.join([body] * 3)) == said_in(body) * 3


# --- several responses ---


def test_har_gives_a_list_without_pages_and_files() -> None:
    page = entry("<html></html>", "https://chat.example/", mimeType="text/html")
    claude = entry(MESSAGES.decode(), "https://api.anthropic.com/v1/messages")
    captures = captures_in(har(page, entry(CHAT.decode()), page, claude))
    assert [capture.wire_api for capture in captures] == ["chat", "messages"]
    assert not any(capture.is_guessed for capture in captures)
    assert captures[0].recording.url == awkward.URL
    assert "secret" not in repr(captures)


def test_har_shows_a_response_without_its_body() -> None:
    preflight = entry("")
    preflight["request"]["method"] = "OPTIONS"
    whole, empty = captures_in(har(preflight, entry(CHAT.decode()), entry("")))
    assert whole.truncation is None
    assert empty.truncation == "the HAR file lacks its body"
    assert empty.wire_api == "chat"


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("is_base64", [False, True])
def test_har_that_is_cut_gives_what_is_before_the_cut(
    *, is_base64: bool, is_compressed: bool
) -> None:
    """It gave nothing."""
    text = CHAT.decode()
    stored = b64encode(CHAT).decode() if is_base64 else text
    last = entry(stored, **({"encoding": "base64"} if is_base64 else {}))
    data = har(entry(text, "https://chat.example/", mimeType="text/html"), entry(text), last)
    for size in range(len(data) - 3000, len(data) - 100, 97):
        cut = data[:size]
        if is_compressed:
            compressor = zlib.compressobj(wbits=31)
            cut = compressor.compress(cut) + compressor.flush(zlib.Z_SYNC_FLUSH)
        whole, part = captures_in(cut)
        assert (whole.recording.body, whole.truncation) == (CHAT, None)
        body = part.recording.body
        assert CHAT.startswith(body)
        assert len(body) > len(CHAT) - 3000
        assert part.truncation is not None
        assert read_capture(part).response.error is not None or body == CHAT


def remarks_of(captures: list[Capture]) -> list[list[str]]:
    """The codes of what is reported of each response."""
    return [[finding.code for finding in read_capture(capture).findings] for capture in captures]


GEMINI_BODY = encode_body("gemini", streamlib.accumulate(streamlib.parse_body("chat", BODY)))
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"


@pytest.mark.parametrize("inside", ["startedDateTime", "url", "mimeType", "text"])
def test_response_before_a_cut_in_a_har_is_whole(inside: str) -> None:
    """It was called truncated, though it is whole: of Gemini it failed."""
    page = entry("<p>" + "x" * 200, "https://chat.example/", mimeType="text/html")
    data = har(entry(BODY.decode()), entry(GEMINI_BODY.decode(), GEMINI_URL), page)
    captures = captures_in(data[: data.rindex(f'"{inside}"'.encode()) + 20])
    assert remarks_of(captures) == [["complete"], ["complete", "file_truncated"]]
    assert captures[1].truncation is None
    [remark] = captures[1].remarks
    assert remark.text.startswith("behind this response the HAR file is cut or damaged at ")


def test_har_that_is_cut_behind_its_last_response_has_that() -> None:
    data = har(entry(GEMINI_BODY.decode(), GEMINI_URL) | {"timings": {"wait": 1}})
    captures = captures_in(data[: data.index(b'"wait"')])
    assert remarks_of(captures) == [["complete", "file_truncated"]]


def test_damaged_har_gives_what_is_before_the_damage() -> None:
    data = har(*[entry(CHAT.decode())] * 3)
    second = data.index(b'"startedDateTime"', data.index(b'"startedDateTime"') + 1)
    [capture] = captures_in(data[:second] + b"\x00" + data[second:])
    assert capture.recording.body == CHAT
    assert remarks_of([capture]) == [["complete", "file_truncated"]]
    assert remarks_of(captures_in(data + b"\n{")) == [["complete"]] * 2 + [
        ["complete", "file_truncated"]
    ]


@pytest.mark.parametrize(
    ("old", "new"), [(b"1200.5", b"NaN"), (b'"Chrome"', b'"\xff"')], ids=["NaN", "not UTF-8"]
)
def test_har_is_read_wholly_though_its_json_is_not_strict(old: bytes, new: bytes) -> None:
    """The last response was called truncated, wherever that was."""
    captures = captures_in(har(*[entry(CHAT.decode())] * 2).replace(old, new, 1))
    assert remarks_of(captures) == [["complete"]] * 2


@pytest.mark.parametrize("start", ["", "id: 1\n", "retry: 300\n\n", "\ufeff", "data: [1]\n\n"])
@pytest.mark.parametrize("is_encoding_first", [False, True])
def test_har_that_is_cut_in_base64_never_shows_that(start: str, *, is_encoding_first: bool) -> None:
    """Only six beginnings of a body were known, and only whole groups were read."""
    body = start.encode() + CHAT[:900]
    stored = b64encode(body).decode()
    content = {"encoding": "base64", "text": stored}
    last = entry("")
    last["response"]["content"] = dict(sorted(content.items(), reverse=not is_encoding_first))
    data = har(entry(BODY.decode()), last)
    first = data.index(stored.encode())
    for size in range(len(stored) + 2):
        parts = open_file(data[: first + size])
        assert parts[0].body == BODY
        shown = b"".join(part.body for part in parts[1:])
        assert body.removeprefix(b"\xef\xbb\xbf").startswith(shown.removeprefix(b"\xef\xbb\xbf"))
        least = size // 4 * 3 - 3 if is_encoding_first or size >= 24 else 0
        assert len(shown) >= least


def test_har_that_is_cut_in_its_events_has_those_before() -> None:
    data = CHAT_CAPTURES["HAR without a body, with Chrome's events"]
    [whole] = captures_in(data)
    cut = data[: data.rindex(b'"data"') + 12]
    [capture] = captures_in(cut)
    assert capture.recording.chunks == whole.recording.chunks[:-1]
    assert capture.truncation is not None


@pytest.mark.parametrize("length", [0, 900, len(CHAT) - 9])
def test_body_longer_than_its_content_length_is_read(length: int) -> None:
    """It was dropped, and said to be missing."""
    [capture] = captures_in(headers(length) + CHAT)
    assert capture.recording.body == CHAT
    assert capture.truncation is None
    findings = {finding.code: finding for finding in read_capture(capture).findings}
    assert list(findings) == ["complete", "content_length"]
    more = f"{len(CHAT) - length:,} more than its content-length says"
    assert findings["content_length"].text == f"the body has {len(CHAT):,} bytes, {more}"


def test_text_behind_a_body_of_json_is_reported() -> None:
    """As of `curl -i -w`."""
    [capture] = captures_in(headers(len(BODY)) + BODY + b"\n200 0.123 s\n")
    assert capture.recording.body == BODY
    [remark] = capture.remarks
    assert remark.text == (
        f"the body has {len(BODY) + 13:,} bytes, 13 more than its content-length says, "
        "which were not read"
    )
    [capture] = captures_in(headers(len(BODY)) + BODY + b"\n")
    assert capture.remarks == ()


def test_body_of_json_lines_is_read_behind_its_length() -> None:
    """Its first line alone is JSON: the others were left out."""
    head = headers(awkward.OLLAMA.index(b"\n"), "content-type: application/x-ndjson")
    [capture] = captures_in(head + awkward.OLLAMA)
    assert capture.recording.body == awkward.OLLAMA
    assert remarks_of([capture]) == [["complete", "content_length"]]


REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\nx-api-key: plain-secret\r\n"
    b'Cookie: session=secret\r\n\r\n{"model":"m"}'
)


@pytest.mark.parametrize("blank", [b"", b"\n\n"], ids=["Wireshark", "http -v"])
@pytest.mark.parametrize(
    ("body", "length"),
    [(CHAT, len(CHAT)), (BODY, len(BODY)), (CHAT, None), (BODY, None), (b"no", 2), (BODY, 9)],
    ids=["stream", "body", "stream, no length", "body, no length", "text", "short length"],
)
def test_next_request_is_no_part_of_a_response(
    body: bytes, length: int | None, blank: bytes
) -> None:
    """Its keys were read into the body of the response before it."""
    exchange = REQUEST + blank + headers(length) + body + blank
    for data in (exchange * 2, exchange * 2 + REQUEST, exchange + REQUEST + blank):
        captures = captures_in(data)
        assert len(captures) == data.count(b"HTTP/1.1 200")
        for capture in captures:
            assert capture.recording.body.strip() == body.strip()
            assert capture.recording.url == awkward.URL
            assert (capture.remarks == ()) == (length != 9)
            assert "secret" not in repr(capture)


def test_request_that_is_cut_is_no_part_of_a_response() -> None:
    exchange = REQUEST + headers(len(CHAT)) + CHAT
    for size in range(len(exchange) + 6, len(exchange) + len(REQUEST)):
        [capture] = captures_in((exchange * 2)[:size])
        assert capture.recording.body == CHAT


def test_each_response_has_the_address_of_its_request() -> None:
    claude = REQUEST.replace(b"/v1/chat/completions", b"/v1/messages")
    body = headers(len(MESSAGES)) + MESSAGES
    first, second = captures_in(REQUEST + headers(len(CHAT)) + CHAT + claude + body)
    assert (first.recording.wire_api, second.recording.wire_api) == ("chat", "messages")


def test_har_with_events_of_chrome_has_their_times() -> None:
    [capture] = captures_in(CHAT_CAPTURES["HAR without a body, with Chrome's events"])
    assert capture.is_recorded
    assert [round(chunk.at, 1) for chunk in capture.recording.chunks[:3]] == [0.1, 0.2, 0.3]


def test_curl_gives_the_status_and_each_of_two_responses() -> None:
    error = b'{"error":{"message":"slow down","type":"rate_limit_error"}}'
    refused = b"HTTP/2 429 \r\nretry-after: 7\r\nset-cookie: s=secret\r\n\r\n" + error
    first, second = captures_in(refused + headers() + CHAT)
    assert first.recording.status == 429
    assert first.recording.headers == {"retry-after": "7"}
    assert second.recording.status == 200
    [failed] = [event for event in events_of(first) if isinstance(event, streamlib.Failed)]
    assert (failed.error.kind, failed.error.retry_after) == ("rate_limited", 7.0)


def test_second_stream_is_found_behind_a_truncated_one() -> None:
    """The first was cut inside a frame, without a line end: the second begins on its line."""
    first, second = captures_in(MESSAGES[:2000] + MESSAGES)
    assert first.recording.body == MESSAGES[:2000]
    assert second.recording.body == MESSAGES


def test_streams_of_chat_are_separated_by_their_ids() -> None:
    without_done = CHAT.replace(b"data: [DONE]\n\n", b"")
    one, other = (without_done.replace(b"chatcmpl-", b"chatcmpl-%d" % n) for n in (1, 2))
    assert said_in(one + other) == said_in(without_done) * 2


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("lead", [0, 2, 999])
def test_mixed_streams_are_separated_by_their_ids(lead: int, is_log: bool) -> None:
    """A program asked twice at once, and its log has the frames as they came. The second stream
    begins some frames after the first, or stands inside it, or behind it."""
    one, other = (CHAT.replace(b"chatcmpl-", b"chatcmpl-%d" % n) for n in (1, 2))
    firsts, others = (stream.split(b"\n\n")[:-1] for stream in (one, other))
    frames = firsts[:lead]
    for number in range(max(len(firsts) - lead, len(others))):
        frames += firsts[lead + number :][:1] + others[number : number + 1]
    if lead == 2:
        # The whole of the second between two frames of the first.
        frames = firsts[:lead] + others + firsts[lead:]
    prefix, end = (b"10:00 [http-1] ", b"\n") if is_log else (b"", b"\n\n")
    captures = captures_in(b"".join(prefix + frame + end for frame in frames))
    assert [capture.recording.body for capture in captures] == [one, other]


@pytest.mark.parametrize("end", [",]", ", ]\n"])
def test_comma_behind_the_last_string_of_a_list(end: str) -> None:
    text = json.dumps([CHAT[:99].decode(), CHAT[99:].decode()])
    assert said_in(text[:-1].encode() + end.encode()) == said_in(CHAT)


def test_one_frame_whose_text_has_lines_is_a_stream() -> None:
    """It looked like a line with escaped line ends, which was opened again and again."""
    chunk = json.dumps({"choices": [{"index": 0, "delta": {"content": "a\n\nb"}}]})
    frame = f"data: {chunk}\n\n"
    for data in (frame, frame[:-5], log(f"{frame.encode()!r}")):
        assert [text for _, text, _, _ in said_in(data.encode())] in (["a\n\nb"], [""])


def test_frame_of_several_lines_of_data_stays_one() -> None:
    """It has no blank lines to lose: between its lines there were none."""
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}
    lines = json.dumps(chunk, indent=1).splitlines()
    data = "".join(f"data: {line}\n" for line in lines).encode()
    assert [text for _, text, _, _ in said_in(data + b"\n")] == ["Hel"]


def test_list_of_gemini_is_a_response_by_its_first_frame() -> None:
    """Even where that is cut; a list with anything else in front of its frames is a log."""
    frame = json.dumps({"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]})
    for data, opened_from in ((f"[{frame[:-2]}", ()), (f'[{{"x": 1}}, {frame}]', ("JSON",))):
        [capture] = captures_in(data.encode())
        assert (capture.wire_api, capture.forms) == ("gemini", opened_from)


def test_literals_behind_other_words_are_other_responses() -> None:
    ids = [f"chatcmpl-{name}" for name in "ab"]
    chunks = [
        [f'data: {{"id":"{each}","choices":[{{"delta":{{"content":"{n} "}}}}]}}\n\n' for n in "12"]
        for each in ids
    ]
    lines = [
        log(f"{name}: {chunks[place][n].encode()!r}")
        for n in range(2)
        for place, name in enumerate(("writer", "critic"))
    ]
    assert [text for _, text, _, _ in said_in("".join(lines).encode())] == ["1 2 ", "1 2 "]


def test_end_mark_in_a_log_ends_a_response_of_chat() -> None:
    """Servers that give no ids, or no role, end a response by it alone."""
    payloads = [
        json.dumps({"choices": [{"index": 0, "delta": {"content": f"{n} "}}]}) for n in range(4)
    ]
    payloads[2:2] = ["[DONE]"]
    for shown in (
        [log(f"chunk {each!r}") for each in payloads],
        [log(f"chunk {each.encode()!r}") for each in payloads],
        [json_line(msg=each) for each in payloads],
        [json_line(msg=f"got {each}") for each in payloads],
        [log(f"got {each}") for each in payloads],
    ):
        texts = [text for _, text, _, _ in said_in("".join(shown).encode())]
        assert texts == ["0 1 ", "2 3 "], shown


def test_chunks_of_two_wires_in_a_log_are_two_responses() -> None:
    events = [event + b"\n\n" for stream in (MESSAGES, CHAT) for event in stream.split(b"\n\n")]
    for shown in (
        [log(f"chunk {event!r}") for event in events],
        [json_line(msg=event.decode()) for event in events],
    ):
        captures = captures_in("".join(shown).encode())
        assert [capture.wire_api for capture in captures] == ["messages", "chat"]
        assert said_in("".join(shown).encode()) == said_in(MESSAGES) + said_in(CHAT)


def test_each_printed_dict_of_a_log_is_found() -> None:
    """Whatever else its line has, on as many lines as it was printed, and beside JSON."""
    bodies = [json.loads(BODY) | {"id": f"c{number}"} for number in range(4)]
    data = (
        log("sending {'key': b'x', 'options': {1, 2}} (don't wait)")
        + log(f"got {bodies[0]!r} in {{'seconds': 1}}")
        + log(f"got {json.dumps(bodies[1])}")
        + log(f"got\n{pprint.pformat(bodies[2])}")
        + log(f"got {bodies[3]!r}")
    )
    assert said_in(data.encode()) == said_in(BODY) * 4


@each_case(
    "written", ["{'id': b'x'}", "{'id': {1, 2}}", "{('a', 'b'): 1}", "{'a': ...}", "{'a': 1j}"]
)
def test_printed_value_that_json_has_not_is_no_response(written: str) -> None:
    assert open_file(written.encode()) == []


def test_list_of_chunks_may_be_cut_anywhere() -> None:
    chunks = [CHAT[start : start + 40].decode() for start in range(0, len(CHAT), 40)]
    text = json.dumps(chunks).encode()
    for length in range(len(text) // 2, len(text) // 2 + 60):
        [capture] = captures_in(text[:length])
        assert CHAT.startswith(capture.recording.body)
        assert len(capture.recording.body) > len(CHAT) // 3


@pytest.mark.parametrize(
    "chunk",
    [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hel"}}]},
        {"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]},
        {"message": {"role": "assistant", "content": "Hel"}, "done": False},
    ],
)
def test_chunk_alone_is_truncated(chunk: JsonObject) -> None:
    alone = json.dumps(chunk)
    for data in (alone, json_line(msg=alone), json.dumps([alone]), log(f"got {alone}")):
        [(status, text, _, _)] = said_in(data.encode())
        assert (status, text) == ("failed", "Hel"), data


@pytest.mark.parametrize("indent", [None, 2])
def test_body_alone_is_complete_however_it_is_printed(indent: int | None) -> None:
    message = {"role": "assistant", "content": "Hi"}
    candidate = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
    for body in (
        {"choices": [{"index": 0, "message": message}]},
        {"candidates": [candidate]},
        {"message": message, "done": True, "done_reason": "stop"},
    ):
        [(status, text, _, _)] = said_in(json.dumps(body, indent=indent).encode())
        assert (status, text) == ("completed", "Hi"), body


def test_ids_that_change_with_each_chunk_make_one_response() -> None:
    chunks = [
        json.dumps({"id": f"c{n}", "choices": [{"delta": {"content": f"{n} "}, "index": 0}]})
        for n in range(5)
    ]
    stream = "".join(f"data: {chunk}\n\n" for chunk in chunks).encode()
    assert len(open_file(stream + b"data: [DONE]\n\n")) == 1


def test_log_of_two_wires_gives_each_its_own() -> None:
    lines = [json_line(body=CHAT.decode()), json_line(body=RESPONSES.decode())]
    captures = captures_in("".join(lines).encode())
    assert [capture.wire_api for capture in captures] == ["chat", "responses"]


def test_request_in_a_log_is_no_response() -> None:
    sent = {"messages": [{"role": "assistant", "content": "x"}], "model": "m"}
    data = json_line(request=sent, request_body=json.dumps(sent), response=json.loads(BODY))
    assert said_in(data.encode()) == said_in(BODY)


def test_error_inside_a_log_stays_in_its_stream() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    frames = [*map(json.loads, payloads_of(MESSAGES)[:8]), error]
    data = "".join(json_line(event=frame) for frame in frames).encode()
    [capture] = captures_in(data)
    [failed] = [event for event in events_of(capture) if isinstance(event, streamlib.Failed)]
    assert failed.error.kind == "overloaded"


# --- what is missing ---


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(CHAT)[:-200], "the compressed data (gzip) is not whole: it is truncated"),
        (zlib.compress(CHAT)[:-9], "the compressed data (deflate) is not whole: it is truncated"),
        (chunked(CHAT)[:-30], "its last chunk is not complete"),
        (headers(len(CHAT) + 5) + CHAT, "bytes of the body the file has"),
        (repr(CHAT)[:-1].encode(), "its Python literal has no end"),
        (b"\n".join(payloads_of(CHAT))[:-20], "characters are no complete JSON"),
    ],
    ids=["gzip", "zlib", "chunks", "length", "literal", "objects"],
)
def test_what_a_form_lacks_is_a_finding(data: bytes, reason: str) -> None:
    [capture] = captures_in(data)
    reading = read_capture(capture)
    texts = [finding.text for finding in reading.findings if finding.code == "recording_truncated"]
    assert len(texts) == 1
    assert reason in texts[0]


LINE = json_line(body=MESSAGES.decode())


@each_case(
    "data, count",
    [
        (BODY[:200], 1),
        (json.dumps(json.loads(BODY), indent=2).encode()[:500], 1),
        (log(f"response {BODY.decode()[:300]}").encode(), 1),
        (LINE[:3000].encode(), 1),
        ((LINE + LINE)[:-300].encode(), 2),
        (json.dumps([MESSAGES.decode()] * 2)[:-300].encode(), 2),
        (repr(MESSAGES)[:2500].encode(), 1),
        (MESSAGES + MESSAGES[:2500], 2),
        (EVENT_LOG[:-20], 1),
    ],
)
def test_cut_capture_shows_what_is_left(data: bytes, count: int) -> None:
    captures = captures_in(data)
    assert len(captures) == count
    *complete, cut = [read_capture(capture) for capture in captures]
    assert {reading.response.status for reading in complete} <= {"completed"}
    assert cut.response.error is not None
    assert cut.response.error.kind == "truncated"
    if MESSAGES[:20] in data.replace(b"\\", b""):
        assert cut.response.items


@each_case(
    "data, message",
    [
        (har(entry("")), "export it with content"),
        (har(), "a HAR file without entries"),
        (b'{"log":{"entries":null}}', "a HAR file without entries"),
        (b'{"log":{"version":"1.2"}}', "a HAR file without entries"),
        (b'{"lo g":{}}', "a HAR file without entries"),
        (har(entry(CHAT.decode()))[:200], "no response is before that: export it again"),
        (b"\x1f\x8b\x08\x00garbage", "the compressed data (gzip) is not whole"),
        (b"\xd4\xc3\xb2\xa1" + bytes(90), "in Wireshark, follow the HTTP stream"),
        (b"PK\x03\x04" + bytes(90), "unpack it"),
        (b"8823:9:websocket;0:~8:response;90:content,", "mitmdump -nr FILE"),
        (b"00000000: 6461 7461 3a20 7b22 6964 223a 2263 6861  data: {\n", "xxd -r"),
        (b"ChatCompletion(id='c', choices=[Choice(index=0)])", "model_dump_json()"),
        (b'{"streamlib_history":1}\n', "a saved history (read it with History.load)"),
        (b'{"streamlib_recording":1,"me', "it starts as a streamlib recording, but"),
    ],
)
def test_error_names_what_to_do_with_another_file(data: bytes, message: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        open_file(data)
    assert message in str(caught.value)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "brotli", None)
    with pytest.raises(UnreadableFile, match=r"no text; .*pip install 'streamlib\[br\]'"):
        open_file(CHAT_CAPTURES["Brotli"])


def test_first_thousand_bytes_tell_a_binary_file() -> None:
    assert is_binary(b"x" * 999 + b"\0")
    assert not is_binary(b"x" * 1000 + b"\0")


@pytest.mark.parametrize("data", [b"hello\n", b"\x00\x01\x02", b"[1, 2]", b'{"a": 1}', b"{" * 99])
def test_anything_else_holds_no_response(data: bytes) -> None:
    assert open_file(data) == []


# --- pages ---

PAGE = (
    b"<!DOCTYPE html><html><head><title> 502 Bad\n Gateway</title>"
    b'<link rel="canonical" href="https://proxy.example/login?next=%2Fv1"></head></html>'
)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (PAGE, '"502 Bad Gateway", https://proxy.example/login'),
        (b"HTTP/1.1 502 Bad Gateway\r\nserver: x\r\n\r\n" + PAGE, '"502 Bad Gateway", https://'),
        (har(entry(PAGE.decode(), mimeType="text/html")), f'"502 Bad Gateway", {awkward.URL}'),
        (b"<html><body>no</body></html>", ""),
    ],
    ids=["page", "curl -i", "HAR", "nothing known"],
)
def test_page_is_named_by_title_and_address(data: bytes, words: str) -> None:
    [capture] = captures_in(data)
    first = read_capture(capture).findings[0]
    assert first.code == "html_page"
    assert words in first.detail


# --- what follows a bad frame ---


def test_frames_after_a_bad_one_are_shown() -> None:
    """L6: of 6,845 bytes 6,474 had no row."""
    frames = RESPONSES.split(b"\n\n")
    frames[2] = b"event: response.output_item.added\ndata: {oops"
    body = b"\n\n".join(frames)
    capture = Capture("x", "responses", part_of(body).recording, is_recorded=False)
    inspection = inspected(read_capture(capture), None)
    assert sum(inspection.frames.bytes) == len(body)
    kinds = [inspection.frames.kinds[kind] for kind in inspection.frames.kind]
    assert kinds[-1] == "response.completed"
    assert inspection.frames.events[3:] == [0] * (len(kinds) - 3)
    assert "unread_bytes" in [finding.code for finding in inspection.findings]


# --- limits ---

JSON_TEXT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "done", "choices", "error", "body", "id", "candidates", ""]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode())
PIECES = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"\r\n\r\n",
        b"data: {",
        b"}\n\n",
        b'{"log":{"entries":[',
        b"b'",
        b"\\x22",
        b'{\\"',
        b"\x1f\x8b",
        b"x\x9c",
        b"\xff\xfe",
        b"<< 200\n",
        b"5\r\nhello\r\n",
        b"< HTTP/2 200\n",
        b"```\n",
        b"<html><title>",
        b'"type":"message_start"',
        b'{"done":true,"response":1}\n',
        b"\x00\x00\x00\x10:event-type\x07",
        b'{"type":"failed","error":{"kind":"other","message":""},"seq":0}\n',
    ]
)


@given(st.lists(PIECES | JSON_TEXT | st.binary(max_size=9), max_size=12).map(b"".join))
def test_any_bytes_are_opened_or_refused(data: bytes) -> None:
    try:
        captures = captures_in(data)
    except UnreadableFile:
        return
    for capture in captures:
        inspected(read_capture(capture), None)


def test_bomb_is_refused_before_it_expands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms.http_forms, "FILE_BYTES", 1 << 20)
    bomb = gzip.compress(b"data: x\n\n" * (1 << 20))
    [capture] = captures_in(bomb)
    assert len(capture.recording.body) <= 1 << 20
    assert capture.truncation is not None
    assert "longer than" in capture.truncation
    monkeypatch.setattr(forms, "OPENED_BYTES", 1 << 20)
    with pytest.raises(UnreadableFile, match="bytes when opened"):
        open_file(gzip.compress(gzip.compress(CHAT * 400)))


def test_file_opens_into_a_limited_number_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "OPENED_PARTS", 3)
    data = har(*[entry(CHAT.decode())] * 3)
    assert len(open_file(data)) == 3
    monkeypatch.setattr(forms, "OPENED_PARTS", 2)
    with pytest.raises(UnreadableFile, match="more than 2 responses"):
        open_file(data)


def test_forms_inside_one_another_have_a_limit() -> None:
    data = CHAT
    for _ in range(20):
        data = gzip.compress(data)
    with pytest.raises(UnreadableFile, match="inside one another"):
        open_file(data)
    data = CHAT
    for _ in range(forms.DEPTH):
        data = gzip.compress(data)
    assert said_in(data) == said_in(CHAT)


@pytest.mark.parametrize("is_list", [False, True])
def test_body_is_looked_for_in_eight_levels_of_a_log(is_list: bool) -> None:
    value: Any = json.loads(BODY)
    for _ in range(7):
        value = [value] if is_list else {"inner": value}
    for entry_value, count in (({"a": value}, 1), ({"b": {"a": value}}, 0)):
        opened = text_forms.open_json(part_of(json.dumps(entry_value).encode()))
        assert len(opened) == count


def test_printed_dict_is_opened_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = repr(json.loads(BODY)).encode()
    monkeypatch.setattr(python_forms, "_DICT_CHARACTERS", len(data))
    assert said_in(data) == said_in(BODY)
    monkeypatch.setattr(python_forms, "_DICT_CHARACTERS", len(data) - 1)
    assert "Python dict" not in [form for part in open_file(data) for form in part.forms]


HOSTILE_UNITS = (
    *("{", '{"a":', '{"a":[1,', '{"a":"', "[[", "[{'a':", "'", "'[ ", "b'data:", "\\", '{\\"'),
    *("```\n", "```x\n", "<< 200\n", " HTTP/1.1 200 ", "< HTTP/2 200\n1 ", "a" * 24 + " " * 5000),
    *("data: {}\n", '{"done":true}\n', "<link rel=canonical", "\\n  ", "5\r\n", "] [", "id:1\n"),
)


@pytest.mark.parametrize("unit", HOSTILE_UNITS)
def test_hostile_text_costs_time_in_proportion(unit: str) -> None:
    """The square of its length would cost a quarter of a minute and more."""
    text = unit * (25_000 // len(unit))
    start = time.process_time()
    for found in objects_in(text):
        assert text[found.start] == "{"
    prefix = "<html>" if unit.startswith("<link") else "x "
    for data in (text, f"{prefix}{text}'"):
        with contextlib.suppress(UnreadableFile):
            captures_in(data.encode())
    assert time.process_time() - start < 2.5


def test_errors_of_many_lines_cost_time_in_proportion() -> None:
    """Each error of `json` counts the lines before it: twenty seconds, were it the whole text."""
    start = time.process_time()
    assert open_file(b'{x {"y\n' * 30_000) == []
    assert time.process_time() - start < 5


@pytest.mark.parametrize("characters", [4000, 4096, 70_000])
def test_object_is_found_behind_a_number_too_long(characters: int) -> None:
    text = '{"a":' + "1" * 5000 + '}\n{"b":"' + "x" * characters + '"}'
    [found] = objects_in(text)
    assert found.value == {"b": "x" * characters}
    assert found.end == len(text)


def test_several_streams_are_found_in_one_pass() -> None:
    body = body_of("chat/aimock-tool.sse")
    assert len(several.starts_of_responses("chat", body * 300)) == 300


def test_markers_know_each_wire() -> None:
    for wire in streamlib.WIRE_APIS:
        if wire == "invoke":
            continue
        body = streamlib.encode_body(wire, streamlib.accumulate(streamlib.parse_body("chat", BODY)))
        assert likely_wire(body) == wire


def test_every_form_has_a_name_of_its_own() -> None:
    names = [form.name for form in FORMS]
    assert len(set(names)) == len(names)
