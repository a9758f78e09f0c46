"""The UI encoders: every stream keeps the protocol, and every loss is reported.

A truncated stream never looks complete.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from streamlib import encode_body, encoder
from streamlib.pipeline import coalesce, through
from streamlib.recording import load_events
from streamlib.web.ui_parts import source
from streamlib.web.vercel.encode import FINISH_REASONS, HEADERS
from streamlib.wires.encoders import encode_all, error_body
from streamlib_parsers import (
    ApprovalRequest,
    Audio,
    Completed,
    Created,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Image,
    Message,
    Opaque,
    Origin,
    OutputItemAdded,
    OutputItemDone,
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
from tests.support.cases import each_case
from tests.support.shared import WIRES, recordings
from tests.support.thorough import some
from tests.support.ui_streams import legal_events, payloads, read_agui, read_vercel
from tests.support.wires import parsed

READERS = {"vercel": read_vercel, "agui": read_agui}
each_protocol = pytest.mark.parametrize("protocol", READERS)


def made(*steps: Any, stop: StopReason = "stop", usage: Usage | None = None) -> list[ResponseEvent]:
    """Returns a stream of complete items; the last step may be an `ErrorInfo`."""
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


def named(parts: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in part.items() if key != "type"}
        for part in parts
        if part["type"] == kind
    ]


# --- both ---


@each_protocol
@given(events=legal_events())
def test_generated_stream_keeps_the_protocol(protocol: str, events: list[ResponseEvent]) -> None:
    READERS[protocol](encode_all(protocol, events))


@each_protocol
@given(events=legal_events())
def test_shown_text_is_the_text_of_the_response(protocol: str, events: list[ResponseEvent]) -> None:
    shown = READERS[protocol](encode_all(protocol, events))
    texts = [
        part.get("delta", "")
        for part in shown
        if part["type"] in ("text-delta", "TEXT_MESSAGE_CONTENT")
    ]
    transcripts = sorted(
        "".join(texts_of(item))
        for item in accumulate(events).items
        if isinstance(item, Message) and item.role == "assistant"
    )
    assert sorted("".join(texts)) == sorted("".join(transcripts))


def texts_of(item: Message) -> list[str]:
    return [
        getattr(part, "text", None)
        or getattr(part, "refusal", None)
        or getattr(part, "transcript", None)
        or ""
        for part in item.content
    ]


@each_protocol
@given(events=legal_events())
def test_coalescing_changes_only_the_number_of_deltas(
    protocol: str, events: list[ResponseEvent]
) -> None:
    options = {"vercel": {"message_id": "m"}, "agui": {"run_id": "r"}}[protocol]
    joined = through(events, coalesce(float("inf")))
    kinds = (OutputTextDelta, ReasoningContentDelta, FunctionCallArgumentsDelta)
    assert sum(isinstance(event, kinds) for event in joined) <= sum(
        isinstance(event, kinds) for event in events
    )
    assert shown_texts(READERS[protocol](encode_all(protocol, joined, **options))) == shown_texts(
        READERS[protocol](encode_all(protocol, events, **options))
    )


def shown_texts(shown: list[dict[str, Any]]) -> dict[Any, str]:
    texts: dict[Any, str] = {}
    for part in shown:
        delta = part.get("delta", part.get("inputTextDelta"))
        if delta is not None:
            key = (part["type"], part.get("id") or part.get("toolCallId") or part.get("messageId"))
            texts[key] = texts.get(key, "") + delta
    return texts


@each_protocol
@pytest.mark.parametrize("folder", WIRES)
def test_recording_keeps_the_protocol(protocol: str, folder: str) -> None:
    samples = [*recordings(folder), *recordings(folder, [".json"])]
    if not samples:
        pytest.skip("shared test data is absent: the corpus")
    for recording in some(samples, 2, f"{protocol} {folder}"):
        READERS[protocol](encode_all(protocol, parsed(recording)))


@each_protocol
def test_abandoned_stream_never_looks_complete(protocol: str) -> None:
    encode = encoder(protocol)
    body = (
        b"".join(encode.feed(event) for event in made(Message("assistant", (Text("half"),)))[:-2])
        + encode.close()
    )
    assert b"truncated" in body
    assert b"finish" not in body.lower()


@each_protocol
@pytest.mark.parametrize("kind", ["truncated", "rate_limited", "server_error"])
def test_failure_is_an_error_after_the_partial_response(protocol: str, kind: Any) -> None:
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
def test_calls_with_equal_or_missing_ids_stay_separate(protocol: str) -> None:
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
def test_other_choices_and_earlier_turns_are_reported(protocol: str) -> None:
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


def test_text_reasoning_and_call_as_parts() -> None:
    shown = parts(
        Reasoning("hm"),
        Message("assistant", (Text("hi"),)),
        FunctionCall("c", "f", '{"a": 1.0}'),
        stop="tool_calls",
    )
    assert [part["type"] for part in shown] == [
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
    assert named(shown, "start") == [{}]
    assert named(shown, "tool-input-available") == [
        {"toolCallId": "c", "toolName": "f", "dynamic": True, "input": {"a": 1.0}}
    ]


def test_summary_paragraphs_are_separated() -> None:
    shown = parts(Reasoning("content", ("one", "two")))
    assert (
        "".join(part["delta"] for part in named(shown, "reasoning-delta"))
        == "one\n\ntwo\n\ncontent"
    )


def test_message_without_text_is_not_an_empty_part() -> None:
    assert not named(parts(Message("assistant", signature="sig")), "text-start")


def test_incomplete_call_is_an_error_and_never_available() -> None:
    shown = parts(FunctionCall("c", "f", '{"a', status="incomplete"), stop="length")
    (fault,) = named(shown, "tool-input-error")
    assert (fault["input"], bool(fault["errorText"])) == ('{"a', True)
    unfinished = parts(FunctionCall("c", "f", "{}", status="incomplete"), stop="length")
    assert "truncated" in named(unfinished, "tool-input-error")[0]["errorText"]
    assert not named(shown, "tool-input-available") + named(unfinished, "tool-input-available")


def test_free_form_input_is_marked_as_text() -> None:
    shown = parts(CustomToolCall("c", "patch", "*** begin"), stop="tool_calls")
    assert named(shown, "tool-input-start")[0]["inputEncoding"] == "text"
    assert named(shown, "tool-input-available")[0]["input"] == "*** begin"


def test_provider_run_call_has_an_output() -> None:
    code = ServerToolCall("a", "code", "print(1)", native={"outputs": [{"logs": "1"}]})
    shown = parts(
        code,
        ServerToolCall("b", "search", "{}"),
        ServerToolResult("b", "search", ["x"]),
        ServerToolCall("c", "search", "{}"),
    )
    outputs = {part["toolCallId"]: part["output"] for part in named(shown, "tool-output-available")}
    assert outputs == {"a": {"outputs": [{"logs": "1"}]}, "b": ["x"], "c": None}
    assert named(shown, "tool-input-available")[0]["input"] == "print(1)"
    assert all(part["providerExecuted"] for part in named(shown, "tool-input-available"))
    paused = parts(ServerToolCall("c", "search", "{}"), stop="pause")
    assert not named(paused, "tool-output-available"), "it still runs"


def test_files_and_their_transcripts() -> None:
    shown = parts(
        Message(
            "assistant",
            (Image(data="aGk=", media_type="image/webp"), Audio(data="aGk=", transcript="hello")),
        )
    )
    assert [part["url"].split(",")[0] for part in named(shown, "file")] == [
        "data:image/webp;base64",
        "data:audio/wav;base64",
    ]
    assert named(shown, "text-delta") == [{"id": "0", "delta": "hello"}]


@each_case(
    "annotation, expected",
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
def test_citation_names_a_page_or_a_document(annotation: dict[str, Any], expected: Any) -> None:
    assert source(annotation) == expected


def test_sources_are_parts() -> None:
    text = Text("x", ({"url": "https://a/", "title": "A"}, {"filename": "a.pdf"}, {"nothing": 1}))
    encode = encoder("vercel")
    shown = read_vercel(
        b"".join(encode.feed(event) for event in made(Message("assistant", (text,))))
        + encode.close()
    )
    assert [(part["url"], part["title"]) for part in named(shown, "source-url")] == [
        ("https://a/", "A")
    ]
    assert [(part["filename"], part["title"]) for part in named(shown, "source-document")] == [
        ("a.pdf", "a.pdf")
    ]
    assert [change.path for change in encode.report] == ["/annotations"]


def test_usage_has_the_sdks_shape_and_unknown_stays_unknown() -> None:
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


def test_step_can_continue_a_message_of_an_earlier_one() -> None:
    shown = read_vercel(encode_all("vercel", made(), message_id="msg_of_the_page"))
    assert named(shown, "start") == [{"messageId": "msg_of_the_page"}]


def test_cancelled_stream_is_an_abort() -> None:
    assert named(parts(ErrorInfo("cancelled", "closed by the user")), "abort") == [
        {"reason": "closed by the user"}
    ]
    assert run(ErrorInfo("cancelled", "closed by the user"))[-1]["outcome"] == {"type": "cancelled"}


def test_agui_outcome_is_cancelled_when_a_limit_is_reached() -> None:
    events = made(Message("assistant", (Text("Hi"),), status="incomplete"), stop="length")
    encode = encoder("agui")
    shown = read_agui(b"".join([*map(encode.feed, events), encode.close()]))
    assert shown[-1]["outcome"] == {"type": "cancelled"}
    assert {"name": "stop_reason", "value": "length"} in named(shown, "CUSTOM")
    assert [change.path for change in encode.report] == ["/stop_reason"]


def test_agui_run_fails_when_its_text_is_filtered() -> None:
    events = made(Message("assistant", (Text("Hi"),)), stop="content_filter")
    encode = encoder("agui")
    shown = read_agui(b"".join([*map(encode.feed, events), encode.close()]))
    assert (shown[-1]["type"], shown[-1]["code"]) == ("RUN_ERROR", "content_filter")
    assert [change.path for change in encode.report] == ["/stop_reason"]


def test_every_stop_reason_has_a_value() -> None:
    assert set(FINISH_REASONS) == set(StopReason.__args__)  # type: ignore[attr-defined]
    assert HEADERS["x-vercel-ai-ui-message-stream"] == "v1"


def test_version_7_shows_unknown_kinds() -> None:
    opaque = Opaque("new_kind", {"type": "new_kind", "x": 1})
    assert named(parts(opaque, version=7), "custom") == [
        {
            "kind": "messages.new_kind",
            "providerMetadata": {"messages": {"type": "new_kind", "x": 1}},
        }
    ]
    assert not named(parts(opaque), "custom")


# --- AG-UI ---


def test_calls_belong_to_the_message_before_them() -> None:
    shown = run(
        Message("assistant", (Text("so"),)),
        FunctionCall("a", "f", "{}"),
        FunctionCall("b", "f", "{}"),
        stop="tool_calls",
    )
    assert [event["parentMessageId"] for event in named(shown, "TOOL_CALL_START")] == ["r-0", "r-0"]
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


def test_only_complete_calls_are_pending() -> None:
    incomplete = FunctionCall("b", "f", '{"a', status="incomplete")
    shown = run(
        FunctionCall("a", "f", "{}"),
        incomplete,
        ServerToolCall("c", "search", "{}"),
        stop="tool_calls",
    )
    assert shown[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["a"]}
    results = {event["toolCallId"]: event["content"] for event in named(shown, "TOOL_CALL_RESULT")}
    assert set(results) == {"b", "c"}
    assert "truncated" in results["b"]


def test_provider_run_call_gets_one_result() -> None:
    shown = run(
        ServerToolCall("a", "search", "{}"),
        ServerToolResult("a", "search", ["x"]),
        ServerToolCall("b", "search", "{}"),
    )
    assert [
        (event["toolCallId"], event["content"]) for event in named(shown, "TOOL_CALL_RESULT")
    ] == [("a", '["x"]'), ("b", "")]
    assert not named(run(ServerToolCall("a", "search", "{}"), stop="pause"), "TOOL_CALL_RESULT"), (
        "it still runs"
    )


def test_signed_or_encrypted_state_is_in_its_own_event() -> None:
    shown = run(
        Reasoning("hm", signature="s1"),
        Reasoning(encrypted_content="s2"),
        Message("assistant", signature="s3"),
        FunctionCall("c", "f", "{}", signature="s4"),
    )
    encrypted = [
        (event["subtype"], event["entityId"], event["encryptedValue"])
        for event in named(shown, "REASONING_ENCRYPTED_VALUE")
    ]
    assert encrypted == [
        ("message", "r-0", "s1"),
        ("message", "r-1", "s2"),
        ("message", "r-2", "s3"),
        ("tool-call", "c", "s4"),
    ]
    assert named(shown, "TEXT_MESSAGE_START") == [{"messageId": "r-2", "role": "assistant"}], (
        "there is a message to keep it"
    )


@each_protocol
def test_response_id_is_never_the_id_of_a_message(protocol: str) -> None:
    """E2: servers that repeat ids made `useChat` overwrite an earlier answer."""
    events = made(Message("assistant", (Text("hi"),)))
    for options in ({}, {"run": True}, {"response_id": "resp_1"}):
        assert b"resp_1" not in encode_all(protocol, events, **options)
    assert b"resp_1" not in encode_body(protocol, accumulate(events))


def test_message_ids_come_from_the_caller_else_are_random() -> None:
    text = made(Message("assistant", (Text("hi"),)))
    ids = []
    for options in ({"run_id": "r"}, {"run_id": "r", "message_id": "m"}, {}, {}):
        shown = read_agui(encode_all("agui", text, **options))
        ids.append(named(shown, "TEXT_MESSAGE_START")[0]["messageId"])
    assert ids[:2] == ["r-0", "m-0"]
    assert ids[2] != ids[3]


def test_usage_counts_parts_of_totals() -> None:
    shown = run(usage=Usage(100, 20, cache_read_input_tokens=80, reasoning_output_tokens=5))
    assert shown[-1]["usage"] == [
        {
            "model": "m",
            "inputTokens": 100,
            "outputTokens": 20,
            "totalTokens": 120,
            "reasoningTokens": 5,
            "cachedInputTokens": 80,
        }
    ]
    assert shown[0] == {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "r",
        "protocolVersion": "1.0",
    }


def test_what_the_protocol_has_no_event_for_is_custom() -> None:
    text = Text("x", ({"url": "https://a/"},))
    shown = run(
        Message("assistant", (text, Image(data="aGk=", media_type="image/png"))), usage=Usage(1, 2)
    )
    assert [event["name"] for event in named(shown, "CUSTOM")] == ["annotation", "media", "usage"]


def agui_losses(item: Any) -> list[str]:
    encode = encoder("agui", thread_id="t", run_id="r")
    start = msgspec.structs.replace(item, status="incomplete")
    for event in (Created("r"), OutputItemAdded(0, start), OutputItemDone(0, item)):
        encode.feed(event)
    return [change.path for change in encode.report]


def test_agui_reports_files_that_do_not_come_back() -> None:
    """A file of the provider's own, which no page can fetch, is another loss."""
    assert agui_losses(Message("assistant", (Image(url="https://a/b.png"),))) == ["/media"]
    assert agui_losses(Message("assistant", (Image(file_id="file-1"),))) == ["/files"]


def test_agui_reports_the_result_of_a_truncated_call() -> None:
    """The page is told that the call was cut, so its result has no place."""
    cut = ServerToolCall("c1", "file_search", "{}", status="incomplete")
    assert agui_losses(cut) == []
    found = msgspec.structs.replace(cut, native={"results": [{"file_id": "f"}]})
    assert agui_losses(found) == ["/items/server_tool_result"]


# --- approvals ---

APPROVAL = ApprovalRequest("p", "files", "delete", '{"path": "/"}')


def test_approval_is_a_call_that_waits_for_the_page() -> None:
    shown = parts(APPROVAL, stop="tool_calls")
    assert [part["type"] for part in shown[2:]] == [
        "tool-input-start",
        "tool-input-available",
        "tool-approval-request",
        "finish-step",
        "finish",
    ]
    assert named(shown, "tool-input-available") == [
        {
            "toolCallId": "p",
            "toolName": "delete",
            "dynamic": True,
            "providerExecuted": True,
            "input": {"path": "/"},
        }
    ]
    assert named(shown, "tool-approval-request") == [{"approvalId": "p", "toolCallId": "p"}]
    part = json.loads(encode_body("vercel", Response(items=(APPROVAL,), stop_reason="tool_calls")))[
        "parts"
    ][1]
    assert (part["state"], part["approval"]) == ("approval-requested", {"id": "p"})


def test_approval_interrupts_an_agui_run() -> None:
    shown = run(APPROVAL, FunctionCall("c", "f", "{}"), stop="tool_calls")
    assert named(shown, "TOOL_CALL_ARGS")[0] == {"toolCallId": "p", "delta": '{"path": "/"}'}
    outcome = shown[-1]["outcome"]
    assert outcome["type"] == "interrupt"
    (interrupt,) = outcome["interrupts"]
    assert (interrupt["id"], interrupt["toolCallId"], interrupt["reason"]) == (
        "p",
        "p",
        "tool_call",
    )


@each_protocol
def test_calls_of_a_tool_may_need_approval(protocol: str) -> None:
    calls = (FunctionCall("a", "delete", "{}"), FunctionCall("b", "list", "{}"))
    events = made(*calls, stop="tool_calls")
    shown = READERS[protocol](encode_all(protocol, events, approval_tools=["delete"]))
    if protocol == "vercel":
        assert named(shown, "tool-approval-request") == [{"approvalId": "a", "toolCallId": "a"}]
    else:
        assert [of["id"] for of in shown[-1]["outcome"]["interrupts"]] == ["a"]


# --- errors ---


LEAKY = ErrorInfo(
    "rate_limited",
    "limit of org-123 at 10.0.0.7",
    retryable=True,
    retry_after=7.5,
    status=429,
    code="tokens",
    detail={"org": "org-123"},
)


@each_protocol
def test_error_has_kind_retryable_and_seconds(protocol: str) -> None:
    """E5: `useChat` got a string, without `retryable` and `retry_after`."""
    data = {"kind": "rate_limited", "retryable": True, "retry_after": 7.5}
    shown = READERS[protocol](encode_all(protocol, made(LEAKY)))
    if protocol == "vercel":
        assert named(shown, "data-error") == [{"data": data, "transient": True}]
    else:
        assert named(shown, "CUSTOM") == [{"name": "error", "value": data}]
    stopped = encode_all(protocol, made(ErrorInfo("cancelled", "closed")))
    assert b"retryable" not in stopped


@each_protocol
def test_public_error_has_nothing_of_the_provider(protocol: str) -> None:
    # Generated ids are of random digits, and may have those of the status.
    ids = {"message_id": "m"}
    if protocol == "agui":
        ids.update(thread_id="t", run_id="r")
    body = encode_all(protocol, made(LEAKY), public=True, **ids)
    assert b"Too many requests at the moment" in body
    assert not [word for word in (b"org-123", b"10.0.0.7", b"429", b"tokens") if word in body]
    own = encode_all(protocol, made(LEAKY), public=True, error_text=own_text)
    assert b"please wait: rate_limited" in own


def own_text(error: ErrorInfo) -> str:
    return f"please wait: {error.kind}"


@each_protocol
def test_public_stream_has_no_encrypted_state(protocol: str) -> None:
    result = ServerToolResult("s", "search", [{"title": "X", "encrypted_content": "zzz"}])
    events = made(
        Reasoning("hm", signature="zzz", encrypted_content="zzz"),
        ServerToolCall("s", "search", "{}", native={"type": "x", "encrypted_stdout": "zzz"}),
        result,
    )
    assert b"zzz" in encode_all(protocol, events)
    body = encode_all(protocol, events, public=True)
    assert b"zzz" not in body
    assert b"X" in body


# --- bodies ---


def test_body_is_the_message_that_the_stream_makes() -> None:
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
        encode_body(
            "vercel",
            Response("resp_1", "m", items=items, usage=Usage(1, 2), stop_reason="stop"),
            message_id="m1",
        )
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
    assert (body["id"], body["role"], body["metadata"]["model"]) == ("m1", "assistant", "m")
    messages = json.loads(
        encode_body("agui", Response("resp_1", "m", items=items, stop_reason="stop"))
    )
    assert [message["role"] for message in messages] == [
        "reasoning",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert [call["id"] for call in messages[1]["toolCalls"]] == ["c", "c-3"]


def test_body_has_files_and_encrypted_state() -> None:
    items = (
        Message("assistant", (Image(data="aGk=", media_type="image/png"),), signature="s"),
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


@each_case("folder", WIRES)
def test_json_lines_lose_nothing_of_a_recording(folder: str) -> None:
    for recording in recordings(folder):
        events = parsed(recording)
        assert load_events(encode_all("jsonl", events)) == events


def test_failure_and_body_are_json() -> None:
    error = ErrorInfo("overloaded", "later", retryable=True)
    assert msgspec.convert(error_body("jsonl", error), Failed) == Failed(error)
    assert isinstance(made()[-1], Completed)
    assert (
        msgspec.json.decode(encode_body("jsonl", accumulate(made())), type=Response).response_id
        == "resp_1"
    )


def test_json_line_fits_a_server_sent_event() -> None:
    lines = encode_all("jsonl", made(Message("assistant", (Text("a\nb\u2028c"),))))
    frames = b"".join(b"data: " + line + b"\n\n" for line in lines.splitlines())
    assert [payload["type"] for payload in payloads(frames)][-1] == "completed"
