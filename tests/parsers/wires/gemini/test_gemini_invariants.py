"""Gemini: the invariants on generated streams and on recordings, and the facts of recordings."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    Accumulator,
    Completed,
    Failed,
    FunctionCall,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    ResponseEvent,
    ServerToolCall,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.wires.gemini import FINISH_NUMBERS
from streamlib_parsers.wires.gemini.stop_reasons import FAILURE_REASONS
from tests.support.cases import each_case
from tests.support.gemini_streams import (
    JsonObject,
    array,
    call,
    chunk,
    partial_part,
    run,
    sse,
    text,
)
from tests.support.partitions import byte_by_byte, every_single_split, partitions, random_partitions
from tests.support.shared import Recording, each_recording

# --- invariants, on generated streams ---

SIGNATURES = st.sampled_from([{}, {}, {"thoughtSignature": "c2ln"}])
TEXTS = st.text(max_size=8)
PARTS = st.one_of(
    st.builds(
        lambda value, kind, signed: text(value, **kind, **signed),
        TEXTS,
        st.sampled_from([{}, {"thought": True}]),
        SIGNATURES,
    ),
    st.builds(
        lambda args, more: call("f", args, **more),
        st.dictionaries(TEXTS, st.integers()),
        st.sampled_from([{}, {"id": "a"}, {"id": "b"}]),
    ),
    st.sampled_from([call("g", willContinue=True), call(willContinue=True), call()]),
    st.builds(
        lambda path, value, more: partial_part(path, **value, **more),
        st.sampled_from(["$.a", "$.b", "$.c[0]", "$.c[1]"]),
        st.sampled_from(
            [{"stringValue": 'ü"'}, {"stringValue": ""}, {"numberValue": 1.5}, {"boolValue": False}]
        ),
        st.sampled_from([{}, {"willContinue": True}]),
    ),
    st.sampled_from(
        [
            {"executableCode": {"code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK"}, "text": None},
            {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH", "args": {"q": 1.0}, "x": 0}},
            {"toolResponse": {"id": "t", "response": {}}, "thoughtSignature": "c2ln"},
            {"text": "a", "executableCode": None, "functionCall": None, "toolCall": None},
            {"hologram": 1},
            {},
        ]
    ),
    st.just({"inlineData": {"mimeType": "image/png", "data": "QUJD"}}),
)
CHUNKS = st.builds(
    lambda parts, finish, index, beside: chunk(*parts, finish=finish, index=index, **beside),
    st.lists(PARTS, max_size=3),
    st.sampled_from([None, None, None, "STOP", "MAX_TOKENS", "CONTINUATION", 1]),
    st.sampled_from([None, 0, 0, 1]),
    st.sampled_from(
        [
            {},
            {"usageMetadata": {"promptTokenCount": 1}},
            {"usageMetadata": {"promptTokenCount": 2, "trafficType": 1}},
            {"createTime": "t"},
        ]
    ),
)
STREAMS = st.lists(CHUNKS, max_size=6)


def assert_brackets(events: list[ResponseEvent]) -> None:
    """Invariant 2: brackets, and the joined deltas equal the final text."""
    assert [event.seq for event in events] == list(range(len(events)))
    still_open: set[int] = set()
    joined: dict[int, str] = {}
    replaced = {
        event.index
        for event in events
        if isinstance(event, Notice) and event.code == "text_replaced"
    }
    for event in events:
        index = getattr(event, "index", None)
        if isinstance(event, OutputItemAdded):
            assert event.index == len(joined)
            still_open.add(event.index)
            joined[event.index] = ""
        elif isinstance(event, OutputItemDone):
            still_open.remove(event.index)
            final = (
                event.item.arguments
                if isinstance(event.item, (FunctionCall, ServerToolCall))
                else getattr(event.item, "text", "")
            )
            assert joined[event.index] == final or event.index in replaced
        elif type(event).__name__.endswith("Delta"):
            assert index in still_open
            joined[event.index] += getattr(event, "delta", "")
    assert not still_open
    assert sum(isinstance(event, (Completed, Failed)) for event in events) == 1
    assert isinstance(events[-1], (Completed, Failed))


@given(STREAMS, st.sampled_from(["sse", "array"]), st.data())
def test_generated_stream_is_equal_for_any_partition(
    chunks: list[JsonObject], form: str, data: st.DataObject
) -> None:
    body = sse(*chunks) if form == "sse" else array(*chunks)
    expected = run(body)
    assert_brackets(expected)
    assert run(*data.draw(partitions(body))) == expected
    assert run(*byte_by_byte(body, 3)) == expected


@given(STREAMS)
def test_fast_and_full_reading_emit_equal_events(chunks: list[JsonObject]) -> None:
    """An unknown key of null makes the fast decoder reject a chunk, and changes nothing."""
    assert run(sse(*({**item, "unknown": None} for item in chunks))) == run(sse(*chunks))


@each_case("half", [b"\\ud83d", b"\xff"])
@each_case(
    "part",
    [
        b'{"executableCode":{"code":"%s"}}',
        b'{"codeExecutionResult":{"output":"%s","%s":1}}',
        b'{"toolCall":{"toolType":"%s","args":{"a":"%s"}}}',
        b'{"toolResponse":{"response":{"a":["%s"]}}}',
        b'{"functionCall":{"name":"f%s"}}',
        b'{"text":"%s","thoughtSignature":"c2ln"}',
    ],
)
def test_fast_and_full_reading_repair_equal_text(part: bytes, half: bytes) -> None:
    part = part.replace(b"%s", half)
    fast = b'data: {"candidates":[{"content":{"parts":[%s]},"finishReason":"STOP"}]}\n\n' % part
    full = fast.replace(b'{"candidates"', b'{"unknown":null,"candidates"')
    assert isinstance(run(fast)[-1], Completed)
    assert run(fast) == run(full)


@given(STREAMS, st.data())
def test_truncated_stream_completes_only_after_a_finish_reason(
    chunks: list[JsonObject], data: st.DataObject
) -> None:
    body = sse(*chunks)
    offset = data.draw(st.integers(0, len(body)))
    events = run(body[:offset])
    assert_brackets(events)
    if isinstance(events[-1], Completed):
        assert b"finishReason" in body[:offset]
    for made in accumulate(events).calls:
        assert isinstance(json.loads(made.arguments or "{}"), dict)


@given(st.lists(st.binary(max_size=30) | STREAMS.map(lambda chunks: sse(*chunks)), max_size=4))
def test_hostile_bytes_end_in_one_terminal_event(chunks: list[bytes]) -> None:
    assert_brackets(run(*chunks))


@given(STREAMS)
def test_accumulator_follows_event_by_event(chunks: list[JsonObject]) -> None:
    events = run(sse(*chunks))
    accumulator = Accumulator()
    for event in events:
        accumulator.feed(event)
        assert accumulator.response.items is not None
    assert accumulator.response == accumulate(events)


# --- recordings ---


def replay(recording: Recording) -> list[ResponseEvent]:
    if recording.path.suffix == ".jsonl":
        line_parser = parser("gemini")
        return [
            *(event for line in recording.payloads for event in line_parser.feed_event(line)),
            *line_parser.close(),
        ]
    if recording.path.suffix == ".json":
        return parse_body("gemini", recording.body, status=recording.meta.get("status"))
    return run(recording.body)


def counts_of(raw: JsonObject) -> tuple[set[int], set[int]]:
    """What the recorded usage can mean: (input totals, output totals)."""
    prompt = raw.get("promptTokenCount", 0)
    tools = raw.get("toolUsePromptTokenCount", 0)
    candidates = raw.get("candidatesTokenCount", 0)
    reasoning = raw.get("thoughtsTokenCount", 0)
    return {prompt, prompt + tools}, {candidates, candidates + reasoning}


@each_recording("gemini-generatecontent", [".sse", ".json", ".jsonl"])
def test_recording_agrees_with_its_facts(recording: Recording) -> None:
    facts = recording.expected.get("facts") or {}
    events = replay(recording)
    response = accumulate(events)
    assert_brackets(events)
    if recording.meta.get("status", 200) >= 400 or facts.get("error"):
        assert response.status == "failed"
        return
    if facts["stop_reason"] in FAILURE_REASONS:
        # The facts were written before such an end was an error.
        assert response.error is not None
        assert (response.error.kind, response.error.code) == (
            "generation_failed",
            facts["stop_reason"],
        )
        return
    assert "".join(response.text.split()) == "".join((facts["text"] or "").split())
    assert "".join(response.reasoning.split()) == "".join((facts["reasoning"] or "").split())
    if facts["stop_reason"]:
        assert response.status != "failed"
        assert response.native_stop_reason in {
            facts["stop_reason"],
            FINISH_NUMBERS.get(facts["stop_reason"]),
        }
    for fact, value in (("response_id", response.response_id), ("model", response.model)):
        assert not facts[fact] or facts[fact] == value
    # The facts took each part of a streamed call for a call.
    if b"partialArgs" not in recording.body:
        calls = [(made.name, json.loads(made.arguments or "{}")) for made in response.calls]
        expected = [
            (fact["name"], fact["arguments"]) for fact in facts["tool_calls"] if fact["name"]
        ]
        assert calls == expected
    if facts["usage"] and response.usage and response.status != "failed":
        allowed_input, allowed_output = counts_of(facts["usage"])
        assert response.usage.input_tokens in {*allowed_input, None}
        assert response.usage.output_tokens in {*allowed_output, None}


@each_recording("gemini-generatecontent", [".sse"])
def test_recording_is_equal_for_any_partition(recording: Recording) -> None:
    body = recording.body
    expected = run(body)
    for chunks in (
        byte_by_byte(body, 1 if len(body) < 30_000 else 7),
        *random_partitions(body, 4),
        *every_single_split(body, at_most=4),
    ):
        assert run(*chunks) == expected


@each_recording("gemini-generatecontent", [".sse"])
def test_truncated_recording_completes_only_after_a_finish(recording: Recording) -> None:
    body = recording.body
    offsets = [
        offset
        for offset, (first, second) in enumerate(pairwise(body), 2)
        if first == second == 0x0A or body[offset - 4 : offset] == b"\r\n\r\n"
    ]
    for offset in offsets[:-1]:
        ended = isinstance(run(body[:offset])[-1], Completed)
        assert ended == (b'"finishReason"' in body[:offset])


@each_recording("gemini-generatecontent", [".jsonl"])
def test_streamed_arguments_of_recordings_hold_every_value(
    recording: Recording,
) -> None:
    """The paths name every leaf: walking the arguments by them finds every value."""
    if b"partialArgs" not in recording.body:
        return
    response = accumulate(replay(recording))
    texts = json.dumps([made.parsed() for made in response.calls], ensure_ascii=False)
    parts = [
        part
        for line in recording.payloads
        for candidate in json.loads(line)["candidates"]
        for part in candidate.get("content", {}).get("parts", [])
    ]
    partials = [
        partial for part in parts for partial in part.get("functionCall", {}).get("partialArgs", [])
    ]
    assert partials
    for partial in partials:
        value = partial.get("stringValue", "")
        assert json.dumps(value, ensure_ascii=False)[1:-1] in texts
