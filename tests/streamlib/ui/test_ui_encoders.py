"""Encoders for screens: any stream keeps the protocols' rules, nothing is lost without a word, a cut one never looks whole."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from streamlib import encode_body, encoder
from streamlib.pipeline import coalesce, through
from streamlib.recording import load_events
from streamlib.ui.ui_parts import source
from streamlib.ui.vercel import FINISH_REASONS, HEADERS
from streamlib.wires.encoders import encode_all, error_body
from streamlib_parsers import (
    Audio,
    Completed,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Image,
    Message,
    Opaque,
    Origin,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    Refusal,
    Response,
    ResponseEvent,
    ServerToolCall,
    ServerToolResult,
    Text,
    Usage,
    accumulate,
)
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import RateLimits, StopReason, Window
from streamlib_parsers.limits import LIMITS
from tests.support.shared import WIRES, recordings
from tests.support.ui_streams import legal_events, payloads, read_agui, read_vercel
from tests.support.wires import parsed

READERS = {"vercel": read_vercel, "agui": read_agui}
each_protocol = pytest.mark.parametrize("protocol", READERS)


def made(*steps: Any, stop: StopReason = "stop", usage: Usage | None = None) -> list[ResponseEvent]:
    """A stream of whole items; the last step may be an `ErrorInfo`."""
    assembly = EventAssembler(LIMITS, Origin("messages"))
    assembly.identify("resp_1", "m")
    for item in steps:
        if isinstance(item, ErrorInfo):
            assembly.fail(item)
            return assembly.take()
        say(assembly, item)
    if usage is not None:
        assembly.usage(usage)
    assembly.complete(stop)
    return assembly.take()


def say(assembly: EventAssembler, item: Any) -> None:
    empty = {
        Message: {"content": ()},
        Reasoning: {"content": "", "summary": ()},
        FunctionCall: {"arguments": ""},
    }.get(type(item), {})
    opened = assembly.open(msgspec.structs.replace(item, **empty))
    opened.free_text = isinstance(item, ServerToolCall)
    for n, paragraph in enumerate(getattr(item, "summary", ())):
        assembly.summary(opened, paragraph, n)
    if isinstance(item, Reasoning):
        assembly.reasoning(opened, item.content)
    for n, part in enumerate(item.content if isinstance(item, Message) else ()):
        if isinstance(part, Text):
            assembly.text(opened, part.text, n)
            for annotation in part.annotations:
                assembly.annotation(opened, annotation, n)
        elif isinstance(part, Refusal):
            assembly.refusal(opened, part.refusal, n)
        else:
            assembly.media(opened, n, part.media_type, part.data, getattr(part, "transcript", None))
    if isinstance(item, FunctionCall):
        assembly.arguments(opened, item.arguments)
    assembly.close(opened, item.status)


def parts(*steps: Any, version: Any = 6, **options: Any) -> list[dict[str, Any]]:
    return read_vercel(encode_all("vercel", made(*steps, **options), version=version))


def run(*steps: Any, **options: Any) -> list[dict[str, Any]]:
    return read_agui(encode_all("agui", made(*steps, **options), thread_id="t", run_id="r"))


def named(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in part.items() if key != "type"}
        for part in found
        if part["type"] == kind
    ]


# --- both ---


@each_protocol
@given(events=legal_events())
def test_every_legal_stream_keeps_the_rules_of_the_protocol(
    protocol: str, events: list[ResponseEvent]
) -> None:
    READERS[protocol](encode_all(protocol, events))


@each_protocol
@given(events=legal_events())
def test_the_text_on_the_screen_is_the_text_of_the_answer(
    protocol: str, events: list[ResponseEvent]
) -> None:
    shown = READERS[protocol](encode_all(protocol, events))
    texts = [
        part.get("delta", "")
        for part in shown
        if part["type"] in ("text-delta", "TEXT_MESSAGE_CONTENT")
    ]
    spoken = sorted(
        "".join(words(item))
        for item in accumulate(events).items
        if isinstance(item, Message) and item.role == "assistant"
    )
    assert sorted("".join(texts)) == sorted("".join(spoken))


def words(item: Message) -> list[str]:
    return [
        getattr(part, "text", None)
        or getattr(part, "refusal", None)
        or getattr(part, "transcript", None)
        or ""
        for part in item.content
    ]


@each_protocol
@given(events=legal_events())
def test_coalescing_before_changes_nothing_but_the_number_of_deltas(
    protocol: str, events: list[ResponseEvent]
) -> None:
    joined = through(events, coalesce(float("inf")))
    kinds = (OutputTextDelta, ReasoningContentDelta, FunctionCallArgumentsDelta)
    assert sum(isinstance(event, kinds) for event in joined) <= sum(
        isinstance(event, kinds) for event in events
    )
    assert said(READERS[protocol](encode_all(protocol, joined))) == said(
        READERS[protocol](encode_all(protocol, events))
    )


def said(shown: list[dict[str, Any]]) -> dict[Any, str]:
    found: dict[Any, str] = {}
    for part in shown:
        delta = part.get("delta", part.get("inputTextDelta"))
        if delta is not None:
            key = (part["type"], part.get("id") or part.get("toolCallId") or part.get("messageId"))
            found[key] = found.get(key, "") + delta
    return found


@each_protocol
@pytest.mark.parametrize("folder", WIRES)
def test_every_recording_keeps_the_rules_of_the_protocol(protocol: str, folder: str) -> None:
    found = [*recordings(folder), *recordings(folder, [".json"])]
    if not found:
        pytest.skip("shared test data is absent: the corpus")
    for recording in found:
        READERS[protocol](encode_all(protocol, parsed(recording)))


@each_protocol
def test_a_stream_that_was_left_never_looks_whole(protocol: str) -> None:
    encode = encoder(protocol)
    body = (
        b"".join(encode.feed(event) for event in made(Message("assistant", (Text("half"),)))[:-2])
        + encode.close()
    )
    assert b"truncated" in body
    assert b"finish" not in body.lower()


@each_protocol
@pytest.mark.parametrize("kind", ["truncated", "rate_limited", "server_error"])
def test_a_failure_is_an_error_after_what_came_before_it(protocol: str, kind: Any) -> None:
    body = encode_all(
        protocol, made(Message("assistant", (Text("half"),)), ErrorInfo(kind, "no more"))
    )
    shown = READERS[protocol](body)
    last = shown[-1]
    assert (
        last.get("errorText") or f"{last.get('code')}: {last.get('message')}"
    ) == f"{kind}: no more"
    assert "half" in json.dumps(shown)
    assert error_body(protocol, ErrorInfo(kind, "no more")) == last


@each_protocol
def test_calls_with_one_id_or_none_stay_apart(protocol: str) -> None:
    calls = [FunctionCall(name, "f", "{}") for name in ("same", "same", "", "")]
    shown = READERS[protocol](encode_all(protocol, made(*calls, stop="tool_calls")))
    ids = [
        part["toolCallId"]
        for part in shown
        if part["type"] in ("tool-input-start", "TOOL_CALL_START")
    ]
    assert len(set(ids)) == 4
    assert ids[0] == "same"
    assert all(ids)


@each_protocol
def test_other_answers_and_earlier_turns_are_left_out_and_reported(protocol: str) -> None:
    encode = encoder(protocol)
    events = made(
        Message("assistant", (Text("elsewhere"),), choice=1),
        Message("user", (Text("earlier"),)),
        Message("assistant", (Text("this"),)),
    )
    body = b"".join(encode.feed(event) for event in events) + encode.close()
    assert b"this" in body
    assert b"elsewhere" not in body
    assert b"earlier" not in body
    assert {change.path for change in encode.report} == {"/choices", "/items/user"}


@each_protocol
def test_no_key_or_header_of_the_provider_is_shown(protocol: str) -> None:
    events: list[ResponseEvent] = [
        RateLimits(requests=Window(10, 9), raw={"x-organization": "acme"}),
        *made(usage=Usage(1, 2, raw={"org": "acme"})),
    ]
    body = encode_all(protocol, events)
    assert b"acme" not in body
    assert b"remaining" in body


# --- Vercel ---


def test_a_text_a_thought_and_a_call_as_parts() -> None:
    found = parts(
        Reasoning("hm"),
        Message("assistant", (Text("hi"),)),
        FunctionCall("c", "f", '{"a": 1.0}'),
        stop="tool_calls",
    )
    assert [part["type"] for part in found] == [
        *(
            "start",
            "start-step",
            "reasoning-start",
            "reasoning-delta",
            "reasoning-end",
            "text-start",
            "text-delta",
            "text-end",
        ),
        *("tool-input-start", "tool-input-delta", "tool-input-available", "finish-step", "finish"),
    ]
    assert named(found, "start") == [{"messageId": "resp_1"}]
    assert named(found, "tool-input-available") == [
        {"toolCallId": "c", "toolName": "f", "dynamic": True, "input": {"a": 1.0}}
    ]


def test_paragraphs_of_a_summary_are_set_apart() -> None:
    found = parts(Reasoning("content", ("one", "two")))
    assert (
        "".join(part["delta"] for part in named(found, "reasoning-delta"))
        == "one\n\ntwo\n\ncontent"
    )


def test_a_message_without_words_is_no_empty_text() -> None:
    assert not named(parts(Message("assistant", signature="sig")), "text-start")


def test_a_cut_call_is_an_error_and_never_available() -> None:
    found = parts(FunctionCall("c", "f", '{"a', status="incomplete"), stop="length")
    (fault,) = named(found, "tool-input-error")
    assert (fault["input"], bool(fault["errorText"])) == ('{"a', True)
    whole = parts(FunctionCall("c", "f", "{}", status="incomplete"), stop="length")
    assert "truncated" in named(whole, "tool-input-error")[0]["errorText"]
    assert not named(found, "tool-input-available") + named(whole, "tool-input-available")


def test_free_text_of_a_call_is_said_to_be_text() -> None:
    found = parts(CustomToolCall("c", "patch", "*** begin"), stop="tool_calls")
    assert named(found, "tool-input-start")[0]["inputEncoding"] == "text"
    assert named(found, "tool-input-available")[0]["input"] == "*** begin"


def test_what_the_provider_ran_itself_has_an_output() -> None:
    code = ServerToolCall("a", "code", "print(1)", native={"outputs": [{"logs": "1"}]})
    found = parts(
        code,
        ServerToolCall("b", "search", "{}"),
        ServerToolResult("b", "search", ["x"]),
        ServerToolCall("c", "search", "{}"),
    )
    outputs = {part["toolCallId"]: part["output"] for part in named(found, "tool-output-available")}
    assert outputs == {"a": {"outputs": [{"logs": "1"}]}, "b": ["x"], "c": None}
    assert named(found, "tool-input-available")[0]["input"] == "print(1)"
    assert all(part["providerExecuted"] for part in named(found, "tool-input-available"))
    paused = parts(ServerToolCall("c", "search", "{}"), stop="pause")
    assert not named(paused, "tool-output-available"), "it still runs"


def test_files_and_what_is_said_in_them() -> None:
    found = parts(
        Message(
            "assistant",
            (Image(data="aGk=", media_type="image/webp"), Audio(data="aGk=", transcript="hello")),
        )
    )
    assert [part["url"].split(",")[0] for part in named(found, "file")] == [
        "data:image/webp;base64",
        "data:audio/wav;base64",
    ]
    assert named(found, "text-delta") == [{"id": "0", "delta": "hello"}]


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        ({"type": "url_citation", "url": "https://a/", "title": "A"}, ("https://a/", "A", None)),
        (
            {"type": "url_citation", "url_citation": {"url": "https://a/"}},
            ("https://a/", None, None),
        ),
        (
            {"type": "search_result_location", "source": "https://a/", "title": "A"},
            ("https://a/", "A", None),
        ),
        ({"type": "char_location", "document_title": "facts.txt"}, (None, "facts.txt", None)),
        (
            {"type": "file_citation", "file_id": "file-1", "filename": "ai.pdf"},
            (None, "ai.pdf", "ai.pdf"),
        ),
        ({"location": {"web": {"url": "https://a/"}}, "title": "A"}, ("https://a/", "A", None)),
        ({"location": {"documentPage": {"start": 1}}, "title": "my-pdf"}, (None, "my-pdf", None)),
        ({"url": "javascript:alert(1)"}, None),
        ({"type": "unknown"}, None),
    ],
)
def test_a_citation_names_a_page_or_a_document(annotation: dict[str, Any], found: Any) -> None:
    assert source(annotation) == found


def test_sources_are_parts() -> None:
    text = Text("x", ({"url": "https://a/", "title": "A"}, {"filename": "a.pdf"}, {"nothing": 1}))
    encode = encoder("vercel")
    found = read_vercel(
        b"".join(encode.feed(event) for event in made(Message("assistant", (text,))))
        + encode.close()
    )
    assert [(part["url"], part["title"]) for part in named(found, "source-url")] == [
        ("https://a/", "A")
    ]
    assert [(part["filename"], part["title"]) for part in named(found, "source-document")] == [
        ("a.pdf", "a.pdf")
    ]
    assert [change.path for change in encode.report] == ["/annotations"]


def test_usage_has_the_shape_of_the_sdk_and_unknown_stays_unknown() -> None:
    usage = Usage(100, 20, cache_read_input_tokens=80, reasoning_output_tokens=5)
    (end,) = named(parts(usage=usage), "finish")
    assert end["messageMetadata"]["usage"] == {
        "inputTokens": 100,
        "outputTokens": 20,
        "totalTokens": 120,
        "inputTokenDetails": {"noCacheTokens": 20, "cacheReadTokens": 80},
        "outputTokenDetails": {"textTokens": 15, "reasoningTokens": 5},
    }
    (bare,) = named(parts(usage=Usage(1, None)), "finish")
    assert bare["messageMetadata"]["usage"] == {
        "inputTokens": 1,
        "inputTokenDetails": {},
        "outputTokenDetails": {},
    }
    assert named(parts(usage=usage), "message-metadata") == [
        {"messageMetadata": {"usage": end["messageMetadata"]["usage"]}}
    ]


def test_a_step_can_go_on_with_a_message_of_an_earlier_one() -> None:
    found = read_vercel(encode_all("vercel", made(), message_id="msg_of_the_page"))
    assert named(found, "start") == [{"messageId": "msg_of_the_page"}]


def test_a_cancelled_stream_is_an_abort() -> None:
    assert named(parts(ErrorInfo("cancelled", "closed by the user")), "abort") == [
        {"reason": "closed by the user"}
    ]
    assert run(ErrorInfo("cancelled", "closed by the user"))[-1]["outcome"] == {"type": "cancelled"}


def test_every_stop_reason_has_a_word() -> None:
    assert set(FINISH_REASONS) == set(StopReason.__args__)  # type: ignore[attr-defined]
    assert HEADERS["x-vercel-ai-ui-message-stream"] == "v1"


def test_version_7_shows_what_nobody_knows() -> None:
    opaque = Opaque("new_kind", {"type": "new_kind", "x": 1})
    assert named(parts(opaque, version=7), "custom") == [
        {
            "kind": "messages.new_kind",
            "providerMetadata": {"messages": {"type": "new_kind", "x": 1}},
        }
    ]
    assert not named(parts(opaque), "custom")


# --- AG-UI ---


def test_calls_hang_on_the_message_before_them() -> None:
    found = run(
        Message("assistant", (Text("so"),)),
        FunctionCall("a", "f", "{}"),
        FunctionCall("b", "f", "{}"),
        stop="tool_calls",
    )
    assert [event["parentMessageId"] for event in named(found, "TOOL_CALL_START")] == ["r-0", "r-0"]
    alone = run(
        Reasoning("hm"),
        FunctionCall("a", "f", "{}"),
        FunctionCall("b", "f", "{}"),
        stop="tool_calls",
    )
    assert [event["parentMessageId"] for event in named(alone, "TOOL_CALL_START")] == ["r-1", "r-1"]
    late = run(
        Message("assistant", (Text("so"),)),
        Reasoning("hm"),
        FunctionCall("a", "f", "{}"),
        stop="tool_calls",
    )
    assert [event["parentMessageId"] for event in named(late, "TOOL_CALL_START")] == ["r-2"], (
        "nothing is moved before the thought"
    )


def test_only_whole_calls_are_pending() -> None:
    cut = FunctionCall("b", "f", '{"a', status="incomplete")
    found = run(
        FunctionCall("a", "f", "{}"), cut, ServerToolCall("c", "search", "{}"), stop="tool_calls"
    )
    assert found[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["a"]}
    results = {event["toolCallId"]: event["content"] for event in named(found, "TOOL_CALL_RESULT")}
    assert set(results) == {"b", "c"}
    assert "truncated" in results["b"]


def test_what_the_provider_ran_itself_is_answered_once() -> None:
    found = run(
        ServerToolCall("a", "search", "{}"),
        ServerToolResult("a", "search", ["x"]),
        ServerToolCall("b", "search", "{}"),
    )
    assert [
        (event["toolCallId"], event["content"]) for event in named(found, "TOOL_CALL_RESULT")
    ] == [("a", '["x"]'), ("b", "")]
    assert not named(run(ServerToolCall("a", "search", "{}"), stop="pause"), "TOOL_CALL_RESULT"), (
        "it still runs"
    )


def test_what_is_signed_or_sealed_rides_in_its_slot() -> None:
    found = run(
        Reasoning("hm", signature="s1"),
        Reasoning(encrypted_content="s2"),
        Message("assistant", signature="s3"),
        FunctionCall("c", "f", "{}", signature="s4"),
    )
    sealed = [
        (event["subtype"], event["entityId"], event["encryptedValue"])
        for event in named(found, "REASONING_ENCRYPTED_VALUE")
    ]
    assert sealed == [
        ("message", "r-0", "s1"),
        ("message", "r-1", "s2"),
        ("message", "r-2", "s3"),
        ("tool-call", "c", "s4"),
    ]
    assert named(found, "TEXT_MESSAGE_START") == [{"messageId": "r-2", "role": "assistant"}], (
        "there is a message to keep it"
    )


def test_ids_come_from_the_run_else_from_the_response() -> None:
    text = made(Message("assistant", (Text("hi"),)))
    assert (
        named(read_agui(encode_all("agui", text, run_id="r")), "TEXT_MESSAGE_START")[0]["messageId"]
        == "r-0"
    )
    assert (
        named(read_agui(encode_all("agui", text)), "TEXT_MESSAGE_START")[0]["messageId"]
        == "resp_1-0"
    )


def test_usage_counts_parts_of_totals() -> None:
    found = run(usage=Usage(100, 20, cache_read_input_tokens=80, reasoning_output_tokens=5))
    assert found[-1]["usage"] == [
        {
            "model": "m",
            "inputTokens": 100,
            "outputTokens": 20,
            "totalTokens": 120,
            "reasoningTokens": 5,
            "cachedInputTokens": 80,
        }
    ]
    assert found[0] == {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "r",
        "protocolVersion": "1.0",
    }


def test_what_the_protocol_has_no_event_for_is_custom() -> None:
    text = Text("x", ({"url": "https://a/"},))
    found = run(
        Message("assistant", (text, Image(data="aGk=", media_type="image/png"))), usage=Usage(1, 2)
    )
    assert [event["name"] for event in named(found, "CUSTOM")] == ["annotation", "media", "usage"]


# --- whole bodies ---


def test_a_whole_body_is_the_message_that_the_stream_makes() -> None:
    items = (
        Reasoning("b", ("a",)),
        Message("assistant", (Text("hi"), Refusal(" no"))),
        FunctionCall("c", "f", '{"n": 1}'),
        FunctionCall("c", "f", '{"n', status="incomplete"),
        ServerToolCall("s", "search", "{}"),
        ServerToolResult("s", "search", ["x"]),
        Message("assistant", choice=1),
    )
    body = json.loads(
        encode_body("vercel", Response("resp_1", "m", items=items, usage=Usage(1, 2)))
    )
    assert [part["type"] for part in body["parts"]] == [
        "step-start",
        "reasoning",
        "text",
        *["dynamic-tool"] * 3,
    ]
    assert [part.get("text") for part in body["parts"][1:3]] == ["a\n\nb", "hi no"]
    assert [part["state"] for part in body["parts"][3:]] == [
        "input-available",
        "output-error",
        "output-available",
    ]
    assert (body["id"], body["role"], body["metadata"]["model"]) == ("resp_1", "assistant", "m")
    messages = json.loads(encode_body("agui", Response("resp_1", "m", items=items)))
    assert [message["role"] for message in messages] == [
        "reasoning",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert [call["id"] for call in messages[1]["toolCalls"]] == ["c", "c-3"]


def test_a_whole_body_gives_its_files_and_what_is_sealed() -> None:
    items = (
        Message("assistant", (Image(data="aGk="),), signature="s"),
        Reasoning(encrypted_content="e"),
    )
    assert (
        json.loads(encode_body("vercel", Response(items=items)))["parts"][1]["url"]
        == "data:image/png;base64,aGk="
    )
    assert [
        m["encryptedValue"] for m in json.loads(encode_body("agui", Response(items=items)))
    ] == ["s", "e"]


# --- JSON lines ---


@given(events=legal_events())
def test_json_lines_lose_nothing(events: list[ResponseEvent]) -> None:
    body = encode_all("jsonl", events)
    assert load_events(body) == events
    assert body.count(b"\n") == len(events)


@pytest.mark.parametrize("folder", WIRES)
def test_json_lines_lose_nothing_of_a_recording(folder: str) -> None:
    for recording in recordings(folder):
        events = parsed(recording)
        assert load_events(encode_all("jsonl", events)) == events


def test_a_failure_and_a_body_are_json() -> None:
    error = ErrorInfo("overloaded", "later", retryable=True)
    assert msgspec.convert(error_body("jsonl", error), Failed) == Failed(error)
    assert isinstance(made()[-1], Completed)
    assert (
        msgspec.json.decode(encode_body("jsonl", accumulate(made())), type=Response).response_id
        == "resp_1"
    )


def test_a_line_is_a_frame_of_server_sent_events() -> None:
    lines = encode_all("jsonl", made(Message("assistant", (Text("a\nb\u2028c"),))))
    frames = b"".join(b"data: " + line + b"\n\n" for line in lines.splitlines())
    assert [payload["type"] for payload in payloads(frames)][-1] == "completed"
