"""Gemini: the laws on generated streams and on recordings, and what the recordings say."""

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
from tests.support.gemini_streams import JsonObject, array, call, chunk, piece, run, sse, text
from tests.support.partitions import byte_by_byte, cuts, every_single_cut, random_partitions
from tests.support.shared import Recording, each_recording

# ---------------------------------------------------------------- laws, on streams of our own

SIGNATURES = st.sampled_from([{}, {}, {"thoughtSignature": "c2ln"}])
TEXTS = st.text(max_size=8)
PARTS = st.one_of(
    st.builds(lambda said, thought, signed: text(said, **thought, **signed), TEXTS, st.sampled_from([{}, {"thought": True}]), SIGNATURES),
    st.builds(lambda args, more: call("f", args, **more), st.dictionaries(TEXTS, st.integers()),
              st.sampled_from([{}, {"id": "a"}, {"id": "b"}])),
    st.sampled_from([call("g", willContinue=True), call(willContinue=True), call()]),
    st.builds(lambda path, value, more: piece(path, **value, **more), st.sampled_from(["$.a", "$.b", "$.c[0]", "$.c[1]"]),
              st.sampled_from([{"stringValue": "ü\""}, {"stringValue": ""}, {"numberValue": 1.5}, {"boolValue": False}]),
              st.sampled_from([{}, {"willContinue": True}])),
    st.sampled_from([{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}, {"hologram": 1}, {}]),
    st.just({"inlineData": {"mimeType": "image/png", "data": "QUJD"}}),
)  # fmt: skip
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
    """Law 2, and that the snapshots of the accumulator end in what Done says."""
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
def test_any_stream_is_the_same_at_any_cut_and_keeps_its_brackets(
    chunks: list[JsonObject], dress: str, data: st.DataObject
) -> None:
    body = sse(*chunks) if dress == "sse" else array(*chunks)
    whole = run(body)
    assert_brackets(whole)
    assert run(*data.draw(cuts(body))) == whole
    assert run(*byte_by_byte(body, 3)) == whole


@given(STREAMS)
def test_the_quick_reading_and_the_full_one_say_the_same(chunks: list[JsonObject]) -> None:
    """An unknown key at null makes the quick decoder refuse a chunk, and changes nothing."""
    assert run(sse(*({**one, "unknown": None} for one in chunks))) == run(sse(*chunks))


@given(STREAMS, st.data())
def test_a_cut_stream_completes_only_after_a_finish_and_gives_no_half_call(
    chunks: list[JsonObject], data: st.DataObject
) -> None:
    body = sse(*chunks)
    place = data.draw(st.integers(0, len(body)))
    events = run(body[:place])
    assert_brackets(events)
    if isinstance(events[-1], Completed):
        assert b"finishReason" in body[:place]
    for one in accumulate(events).calls:
        assert isinstance(json.loads(one.arguments or "{}"), dict)


@given(st.lists(st.binary(max_size=30) | STREAMS.map(lambda chunks: sse(*chunks)), max_size=4))
def test_hostile_bytes_end_in_one_terminal(pieces: list[bytes]) -> None:
    assert_brackets(run(*pieces))


@given(STREAMS)
def test_the_accumulator_follows_event_by_event(chunks: list[JsonObject]) -> None:
    events = run(sse(*chunks))
    growing = Accumulator()
    for event in events:
        growing.feed(event)
        assert growing.response.items is not None
    assert growing.response == accumulate(events)


# ---------------------------------------------------------------- recordings


def replay(recording: Recording) -> list[ResponseEvent]:
    if recording.path.suffix == ".jsonl":
        one = parser("gemini")
        return [
            *(event for line in recording.payloads for event in one.feed_event(line)),
            *one.close(),
        ]
    if recording.path.suffix == ".json":
        return parse_body("gemini", recording.body, status=recording.meta.get("status"))
    return run(recording.body)


def counts_of(raw: JsonObject) -> tuple[set[int], set[int]]:
    """What the recorded usage can mean: (input totals, output totals)."""
    prompt, tools = raw.get("promptTokenCount", 0), raw.get("toolUsePromptTokenCount", 0)
    said, thought = raw.get("candidatesTokenCount", 0), raw.get("thoughtsTokenCount", 0)
    return {prompt, prompt + tools}, {said, said + thought}


@each_recording("gemini-generatecontent", [".sse", ".json", ".jsonl"])
def test_recordings_say_what_their_facts_say(recording: Recording) -> None:
    facts = recording.expected.get("facts") or {}
    events = replay(recording)
    response = accumulate(events)
    assert_brackets(events)
    if recording.meta.get("status", 200) >= 400 or facts.get("error"):
        assert response.status == "failed"
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
    if (
        b"partialArgs" not in recording.body
    ):  # the facts took each part of a streamed call for a call
        made = [(one.name, json.loads(one.arguments or "{}")) for one in response.calls]
        assert made == [
            (one["name"], one["arguments"]) for one in facts["tool_calls"] if one["name"]
        ]
    if facts["usage"] and response.usage and response.status != "failed":
        allowed_input, allowed_output = counts_of(facts["usage"])
        assert response.usage.input_tokens in {*allowed_input, None}
        assert response.usage.output_tokens in {*allowed_output, None}


@each_recording("gemini-generatecontent", [".sse"])
def test_recordings_are_the_same_at_any_cut(recording: Recording) -> None:
    body = recording.body
    whole = run(body)
    for chunks in (
        byte_by_byte(body, 1 if len(body) < 30_000 else 7),
        *random_partitions(body, 4),
        *every_single_cut(body, at_most=4),
    ):
        assert run(*chunks) == whole


@each_recording("gemini-generatecontent", [".sse"])
def test_recordings_cut_between_events_complete_only_after_a_finish(recording: Recording) -> None:
    body = recording.body
    places = [
        at
        for at, (one, two) in enumerate(pairwise(body), 2)
        if one == two == 0x0A or body[at - 4 : at] == b"\r\n\r\n"
    ]
    for place in places[:-1]:
        ended = isinstance(run(body[:place])[-1], Completed)
        assert ended == (b'"finishReason"' in body[:place])


@each_recording("gemini-generatecontent", [".jsonl"])
def test_streamed_arguments_of_recordings_are_the_object_their_paths_describe(
    recording: Recording,
) -> None:
    """The paths name every leaf: walking the arguments by them finds every value."""
    if b"partialArgs" not in recording.body:
        return
    response = accumulate(replay(recording))
    texts = json.dumps([one.parsed() for one in response.calls], ensure_ascii=False)
    parts = [
        part
        for line in recording.payloads
        for one in json.loads(line)["candidates"]
        for part in one.get("content", {}).get("parts", [])
    ]
    pieces = [
        value for part in parts for value in part.get("functionCall", {}).get("partialArgs", [])
    ]
    assert pieces
    assert all(
        json.dumps(one.get("stringValue", ""), ensure_ascii=False)[1:-1] in texts for one in pieces
    )
