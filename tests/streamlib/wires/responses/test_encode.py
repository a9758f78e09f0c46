"""The Responses encoder: its output parses back to the same events (invariant 10).

What the wire cannot carry is missing and named in the report. The official SDK reads responses of
other wires: as a raw stream, with its streaming helper, and as bodies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, get_args

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Compaction,
    Completed,
    Created,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    Message,
    Notice,
    Opaque,
    Origin,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    RateLimits,
    Reasoning,
    Response,
    ResponseEvent,
    ResponseItem,
    ResponseMetadata,
    ServerToolCall,
    ServerToolResult,
    Text,
    Usage,
    accumulate,
    encode_body,
    encoder,
    parse_body,
)
from streamlib.request.report import Change
from streamlib.testing.invariants import join_deltas
from streamlib.wires.encoders import encode_all, error_body
from streamlib.wires.responses.encode import REPEATED_KEYS
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorKind
from streamlib_parsers.limits import LIMITS
from tests.support.cases import Case, each_case, in_one_test
from tests.support.sdks import openai
from tests.support.shared import (
    BODIES,
    CORPUS,
    PAYLOADS,
    STREAMS,
    WIRES,
    Recording,
    each_recording,
    recordings,
    require,
)
from tests.support.thorough import THOROUGH
from tests.support.wires import events_of, parsed

HERE = Origin("responses")


def read(body: bytes) -> list[ResponseEvent]:
    return events_of("responses", body)


def encoded(events: list[ResponseEvent], **options: Any) -> tuple[bytes, list[str]]:
    encode = encoder("responses", **options)
    return b"".join([*(encode.feed(event) for event in events), encode.close()]), [
        change.path for change in encode.report
    ]


def frames(body: bytes) -> list[dict[str, Any]]:
    """The events, without the end mark."""
    lines = [line for line in body.splitlines() if line.startswith(b"data: {")]
    return [msgspec.json.decode(line[6:]) for line in lines]


def comparable(events: list[ResponseEvent], *, loose: bool = False) -> list[ResponseEvent]:
    """Without notices, which parsers make again, and without rate limits of headers.

    loose: without ids, `native` and errors too.
    """
    joined = join_deltas(event for event in events if not isinstance(event, (Notice, RateLimits)))
    return [without(event) for event in joined] if loose else joined


def without(event: Any) -> Any:
    if isinstance(event, (OutputItemAdded, OutputItemDone)):
        return msgspec.structs.replace(
            event, item=msgspec.structs.replace(event.item, id=None, native=None)
        )
    if isinstance(event, Failed):
        return type(event)
    return (
        msgspec.structs.replace(event, response_id=None)
        if isinstance(event, (Created, Completed))
        else event
    )


# --- round trip ---

REPORTED = {"/id", "/error", "/stop_reason"}
"""What recordings of this wire have and the encoder cannot write.

Ids that change within an item, errors made by the parser, a status that is not text.
"""
OF_ITS_OWN = ("openai-cache-usage-automatic-caching-2", "chat_calls_tools_through_the_responses_su")
"""Bodies with a null in a part, or a call without an id: `native` and generated ids."""


@each_recording("openai-responses", [*STREAMS, *PAYLOADS, *BODIES])
def test_recorded_stream_parses_back_equal(recording: Recording) -> None:
    events = parsed(recording)
    body, report = encoded(events)
    loose = bool(REPORTED.intersection(report)) or any(
        name in recording.path.name for name in OF_ITS_OWN
    )
    again = read(body)
    if "/stop_reason" in report:
        events, again = events[:-1], again[:-1]
    assert comparable(again, loose=loose) == comparable(events, loose=loose)
    assert set(report) <= REPORTED


@each_recording("openai-responses", [*STREAMS, *PAYLOADS, *BODIES])
def test_recorded_response_survives_a_body(recording: Recording) -> None:
    response = accumulate(parsed(recording))
    report: list[Change] = []
    body = encode_body("responses", response, report=report)
    again = accumulate(parse_body("responses", body))
    if response.error is not None:
        assert again.error is not None
        assert again.error.kind in (response.error.kind, "server_error")
        return
    if any(change.path == "/stop_reason" for change in report):
        # A status that the wire does not know: its streams end as completed.
        again, response = (without_reason(compared) for compared in (again, response))
    if not all(item.id or isinstance(item, Opaque) for item in response.items):
        response, again = (
            msgspec.structs.replace(compared, items=(), choices=())
            for compared in (response, again)
        )
    assert msgspec.structs.replace(again, notices=()) == msgspec.structs.replace(
        response, notices=()
    )


def without_reason(response: Response) -> Response:
    return msgspec.structs.replace(response, stop_reason=None, native_stop_reason=None, choices=())


KINDS: dict[str, ResponseItem] = {
    "message": Message("assistant", phase="commentary"),
    "reasoning": Reasoning(),
    "call": FunctionCall("", "f"),
    "custom": CustomToolCall("", "patch"),
    "code": ServerToolCall(
        "", "code_interpreter", native={"type": "code_interpreter_call", "container_id": "c"}
    ),
    "mcp": ServerToolCall("", "t", native={"type": "mcp_call", "server_label": "s"}),
    "program": ServerToolResult("", "program", "1", native={"type": "program_output"}),
    "compaction": Compaction(encrypted_content="gAAA"),
    "opaque": Opaque("hologram", {"type": "hologram", "x": [1.0]}),
}
TEXTS = st.sampled_from(["a", "β", "😀", " ", "\n", '"}'])
STEP = st.one_of(
    st.tuples(st.just("open"), st.sampled_from(sorted(KINDS))),
    st.tuples(st.just("say"), st.integers(0, 5), TEXTS),
    st.tuples(
        st.just("close"),
        st.integers(0, 5),
        st.sampled_from(["completed", "completed", "incomplete"]),
    ),
    st.tuples(
        st.sampled_from(["usage", "metadata", "passthrough", "cite", "refuse"]), st.integers(0, 5)
    ),
)


class Script:
    """Turns steps into events as a parser of this wire would: any items at once, in any order."""

    def __init__(self) -> None:
        self.assembly = EventAssembler(LIMITS, HERE)
        self.assembly.identify("resp_1", "m")
        self.count = 0
        self.called = self.has_text = self.refused = False

    def run(self, steps: list[Any]) -> None:
        for name, *values in steps:
            getattr(self, name)(*values)

    def open(self, kind: str) -> None:
        item, name = KINDS[kind], f"it_{self.count}"
        self.count += 1
        ids: dict[str, Any] = {"id": name}
        if hasattr(item, "call_id"):
            ids["call_id"] = name
        if isinstance(item, Opaque):
            ids = {"id": name, "payload": {**item.payload, "id": name}}
        opened = self.assembly.open(msgspec.structs.replace(item, **ids))
        opened.free_text = kind == "code"

    def _opened(self, which: int) -> Any:
        items = self.assembly.open_items
        return items[which % len(items)] if items else None

    def say(self, which: int, text: str) -> None:
        item = self._opened(which)
        if item is None or (
            isinstance(item.item, Message)
            and any(part.other("refusal") for part in item.parts.values())
        ):
            return
        if isinstance(item.item, Message):
            self.assembly.text(
                item,
                text,
                which % 2 if 0 in item.parts else 0,
                [{"token": text}] if which == 3 else None,
            )
        elif isinstance(item.item, Reasoning):
            verb = self.assembly.reasoning if which % 2 else self.assembly.summary
            verb(item, text, 0)
        elif isinstance(item.item, (FunctionCall, CustomToolCall, ServerToolCall)):
            self.assembly.arguments(
                item, text if item.free_text or isinstance(item.item, CustomToolCall) else " "
            )

    def refuse(self, which: int) -> None:
        item = self._opened(which)
        if item is not None and isinstance(item.item, Message) and not item.parts:
            self.assembly.refusal(item, "no", 0)

    def cite(self, which: int) -> None:
        item = self._opened(which)
        if (
            item is not None
            and isinstance(item.item, Message)
            and item.parts
            and not any(part.other("refusal") for part in item.parts.values())
        ):
            self.assembly.annotation(item, {"type": "url_citation", "url": "https://x"}, 0)

    def close(self, which: int, status: Any) -> None:
        item = self._opened(which)
        if item is None:
            return
        if (
            status == "completed"
            and isinstance(item.item, (FunctionCall, ServerToolCall))
            and not item.free_text
        ):
            self.assembly.arguments(item, "{}")
        self.assembly.close(
            item, "completed" if isinstance(item.item, Opaque) else status
        )  # its payload has no field for an incomplete end
        final = item.item
        self.called |= (
            isinstance(final, (FunctionCall, CustomToolCall)) and final.status == "completed"
        )
        if isinstance(final, Message):
            self.has_text |= bool(final.text)
            self.refused |= any(not isinstance(part, Text) for part in final.content)

    def usage(self, count: int) -> None:
        raw = {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": count,
            "total_tokens": 1 + count,
        }
        self.assembly.usage(Usage(1, count, 0, raw=raw))

    def metadata(self, value: int) -> None:
        self.assembly.metadata({"service_tier": f"tier {value}"})

    def passthrough(self, value: int) -> None:
        self.assembly.passthrough("response.sparkle", {"type": "response.sparkle", "x": value})

    def end(self, how: str) -> list[ResponseEvent]:
        while how == "completed" and self.assembly.open_items:
            self.close(0, "completed")
        for item in self.assembly.open_items:
            if isinstance(item.item, Opaque):
                self.assembly.close(item)
        if how == "failed":
            detail = {
                "type": "server_error",
                "code": "server_error",
                "message": "boom",
                "param": None,
            }
            self.assembly.fail(
                ErrorInfo(
                    "server_error", "boom", retryable=True, code="server_error", detail=detail
                )
            )
        elif how == "incomplete":
            self.assembly.metadata({"incomplete_details": {"reason": "max_output_tokens"}})
            self.assembly.complete("length", "incomplete:max_output_tokens")
        else:
            reason: Any = "stop"
            if self.called:
                reason = "tool_calls"
            elif self.refused and not self.has_text:
                reason = "refusal"
            self.assembly.complete(reason, "completed")
        return self.assembly.take()


@given(st.lists(STEP, max_size=30), st.sampled_from(["completed", "incomplete", "failed"]))
def test_generated_events_parse_back_equal(steps: list[Any], how: str) -> None:
    script = Script()
    script.run(steps)
    events = script.end(how)
    body, report = encoded(events)
    assert report == []
    assert comparable(read(body)) == comparable(events)


@given(st.lists(STEP, max_size=30), st.sampled_from(["completed", "incomplete", "failed"]))
def test_the_full_event_set_is_numbered_and_bracketed(steps: list[Any], how: str) -> None:
    script = Script()
    script.run([step for step in steps if step[0] != "passthrough"])
    sent = frames(encoded(script.end(how))[0])
    assert [frame["sequence_number"] for frame in sent] == list(range(len(sent)))
    assert [frame["type"] for frame in sent[:2]] == ["response.created", "response.in_progress"]
    assert sent[-1]["type"] == f"response.{how}"
    started = [
        frame["output_index"] for frame in sent if frame["type"] == "response.output_item.added"
    ]
    assert started == list(range(len(started)))
    for frame in sent:
        if frame["type"].endswith(".delta"):
            assert frame["item_id"]
            assert frame["output_index"] in started
    texts = [frame["type"] for frame in sent if frame.get("output_index") == 0]
    assert len([name for name in texts if name == "response.output_item.done"]) <= 1


def test_events_of_a_text_are_as_documented() -> None:
    script = Script()
    script.run(
        [
            ("open", "message"),
            ("say", 0, "a"),
            ("say", 0, "β"),
            ("cite", 0),
            ("close", 0, "completed"),
        ]
    )
    sent = [
        frame["type"].removeprefix("response.")
        for frame in frames(encoded(script.end("completed"))[0])
    ]
    assert sent == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def test_events_of_a_summary_and_of_a_call() -> None:
    script = Script()
    script.run(
        [
            ("open", "reasoning"),
            ("say", 0, "a"),
            ("close", 0, "completed"),
            ("open", "call"),
            ("close", 0, "completed"),
        ]
    )
    sent = [
        frame["type"].removeprefix("response.")
        for frame in frames(encoded(script.end("completed"))[0])
    ][2:-1]
    assert sent == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]


def test_json_kept_as_bytes_may_have_line_breaks() -> None:
    """The arguments of a hosted call are a JSON value, which a body may have with indentation."""
    assembly = EventAssembler(LIMITS, HERE)
    assembly.identify("resp_1", "m")
    item = assembly.open(
        ServerToolCall("ws_1", "web_search", id="ws_1", native={"type": "web_search_call"})
    )
    assembly.arguments(item, '{\n  "type": "search"\n}')
    assembly.close(item)
    assembly.complete("stop", "completed")
    events = assembly.take()
    assert comparable(read(encoded(events)[0])) == comparable(events)


# --- other wires ---


def foreign(*items: ResponseItem, wire: Any = "messages") -> list[ResponseEvent]:
    """Returns a complete response of another wire."""
    assembly = EventAssembler(LIMITS, Origin(wire))
    for item in items:
        streamed: dict[str, Any] = {}
        if isinstance(item, Message):
            streamed = {"content": ()}
        elif isinstance(item, Reasoning):
            streamed = {"content": ""}
        opened = assembly.open(msgspec.structs.replace(item, **streamed))
        assembly.finish_with(opened, item)
    assembly.complete("stop", "end_turn")
    return assembly.take()


def test_foreign_signed_state_is_left_out_and_reported() -> None:
    reasoning = Reasoning("hm", signature="EqQB")
    encrypted = Reasoning(encrypted_content="EmwK", redacted=True)
    body, report = encoded(foreign(reasoning, encrypted, Message("assistant", [Text("so")])))
    assert b"EqQB" not in body
    assert b"EmwK" not in body
    assert accumulate(read(body)).reasoning == "hm"
    assert report == ["/signature", "/encrypted_content"]


@pytest.mark.parametrize("kind", ["reasoning", "compaction"])
def test_encrypted_items_have_no_status(kind: str) -> None:
    item: dict[str, Any] = {"type": kind, "id": "it_1", "encrypted_content": "gAAA"}
    if kind == "reasoning":
        item["summary"] = []
    body = msgspec.json.encode({"id": "r", "status": "completed", "output": [item]})
    response = accumulate(parse_body("responses", body))
    assert msgspec.json.decode(encode_body("responses", response))["output"] == [item]
    stream = frames(encoded(parse_body("responses", body))[0])
    [added, done] = [event for event in stream if "item" in event]
    assert "status" not in added["item"]
    assert done["item"] == item


def test_foreign_unknown_items_are_left_out_and_reported() -> None:
    search = ServerToolCall("srv", "web_search", "{}", native={"type": "server_tool_use"})
    body, report = encoded(
        foreign(
            search,
            Opaque("x", {"type": "x"}),
            Compaction("short"),
            Message("assistant", [Text("so")]),
        )
    )
    assert [item["type"] for item in frames(body)[-1]["response"]["output"]] == ["message"]
    assert report == ["/ServerToolCall", "/Opaque", "/Compaction"]


def test_foreign_events_are_not_passed_on() -> None:
    events = foreign(Message("assistant", [Text("so")]))
    strange: list[ResponseEvent] = [
        Passthrough("vendor.sparkle", {"type": "vendor.sparkle"}),
        Passthrough("", {"object": "x"}),
    ]
    body, report = encoded([*events[:-1], *strange, events[-1]])
    assert b"sparkle" not in body
    assert report == ["/passthrough"]


def test_foreign_citations_become_url_citations() -> None:
    nested = {
        "type": "url_citation",
        "url_citation": {"url": "https://x", "title": "T", "start_index": 1, "end_index": 2},
    }
    flat = {"type": "web_search_result_location", "url": "https://y", "cited_text": "c"}
    body, report = encoded(
        foreign(Message("assistant", [Text("so", [nested, flat, {"type": "page_location"}])]))
    )
    (message,) = accumulate(read(body)).items
    assert isinstance(message, Message)
    assert isinstance(message.content[0], Text)
    assert message.content[0].annotations == (
        {
            "type": "url_citation",
            "url": "https://x",
            "title": "T",
            "start_index": 1,
            "end_index": 2,
        },
        {"type": "url_citation", "url": "https://y", "title": "", "start_index": 0, "end_index": 0},
    )
    assert report == ["/annotations", "/annotations"]


def test_foreign_image_is_an_item_of_its_own() -> None:
    assembly = EventAssembler(LIMITS, Origin("gemini"))
    item = assembly.open(Message("assistant"))
    assembly.media(item, 0, "image/jpeg", "/9j/")
    assembly.close(item)
    assembly.complete("stop", "STOP")
    events = assembly.take()
    body, _ = encoded(events)
    output = frames(body)[-1]["response"]["output"]
    assert [
        (element["type"], element.get("result"), element.get("output_format")) for element in output
    ] == [
        ("message", None, None),
        ("image_generation_call", "/9j/", "jpeg"),
    ]
    assert len({element["id"] for element in output}) == 2
    decoded = msgspec.json.decode(encode_body("responses", accumulate(events)))
    assert [element["type"] for element in decoded["output"]] == [
        "message",
        "image_generation_call",
    ]


def test_parallel_calls_have_an_output_index_each() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    calls = [assembly.open(FunctionCall(f"c{n}", "f")) for n in range(2)]
    for delta in ("{", "}"):
        for call in calls:
            assembly.arguments(call, delta)
    for call in calls:
        assembly.close(call)
    assembly.complete("tool_calls", "tool_calls")
    sent = frames(encoded(assembly.take())[0])
    assert [
        frame["output_index"] for frame in sent if frame["type"].endswith("arguments.delta")
    ] == [0, 1, 0, 1]
    assert [call["arguments"] for call in sent[-1]["response"]["output"]] == ["{}", "{}"]


def test_call_without_arguments_is_an_empty_object() -> None:
    body, report = encoded(foreign(FunctionCall("c", "f", "")))
    assert accumulate(read(body)).calls[0].arguments == "{}"  # type: ignore[union-attr]
    assert report == ["/arguments"]


def test_second_choice_and_unknown_reason_are_reported() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    for choice in (0, 1):
        item = assembly.open(Message("assistant", choice=choice))
        assembly.text(item, f"answer {choice}")
        assembly.close(item)
    assembly.complete("pause", "pause_turn", "stop!")
    body, report = encoded(assembly.take())
    assert accumulate(read(body)).text == "answer 0"
    assert report == ["/choices", "/stop_reason", "/stop_sequence"]


def test_usage_of_another_wire_is_translated() -> None:
    usage = Usage(100, 20, 30, 10, 5, raw={"prompt_tokens": 100, "completion_tokens": 20})
    body = msgspec.json.decode(
        encode_body("responses", Response("r", "m", "completed", usage=usage, stop_reason="stop"))
    )
    assert body["usage"] == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 10},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }
    again = accumulate(parse_body("responses", msgspec.json.encode(body))).usage
    assert again is not None
    assert again.same_numbers(usage)


def test_generated_ids_are_stable() -> None:
    events = foreign(
        Reasoning("hm"), Message("assistant", [Text("so")]), FunctionCall("c", "f", "{}")
    )
    body, _ = encoded(events, response_id="resp_abc")
    assert body == encoded(events, response_id="resp_abc")[0]
    assert [item["id"] for item in frames(body)[-1]["response"]["output"]] == [
        "rs_abc_0",
        "msg_abc_1",
        "fc_abc_2",
    ]
    assert {frame["item_id"] for frame in frames(body) if "item_id" in frame} == {
        "rs_abc_0",
        "msg_abc_1",
        "fc_abc_2",
    }


def test_clock_is_the_callers() -> None:
    body, _ = encoded(
        foreign(Message("assistant", [Text("so")])), created_at=1_700_000_000, model="mine"
    )
    response = frames(body)[0]["response"]
    assert (response["created_at"], response["model"], response["tool_choice"]) == (
        1_700_000_000,
        "mine",
        "auto",
    )
    openai.types.responses.Response.model_validate(response)
    assert "created_at" not in frames(encoded(foreign())[0])[0]["response"]


# --- incomplete and failed ---


def test_call_truncated_by_a_failure_is_never_done() -> None:
    script = Script()
    script.run([("open", "call"), ("say", 0, "a")])
    sent = [frame["type"] for frame in frames(encoded(script.end("failed"))[0])]
    assert "response.output_item.done" not in sent
    assert sent[-2:] == ["error", "response.failed"]


@each_case("kind", get_args(ErrorKind))
def test_errors_keep_their_kind_or_are_server_errors(kind: Any) -> None:
    """In a stream, in a failed response and in the body of an HTTP error."""
    error = ErrorInfo(kind, "no", retry_after=2.5)
    failed = Failed(error)
    last = read(encoder("responses").feed(failed))[-1]
    partial = Response("r", "m", "failed", error=error)
    bodies = [
        encode_body("responses", partial),
        msgspec.json.encode(error_body("responses", error)),
    ]
    errors = [last.error, *(accumulate(parse_body("responses", body)).error for body in bodies)]  # type: ignore[union-attr]
    ours = {"connection", "truncated", "malformed", "limit_exceeded", "stalled", "deadline"}
    ours |= {"generation_failed", "internal"}
    assert {failure.kind for failure in errors if failure} == {
        "server_error" if kind in ours else kind
    }
    assert len(errors) == 3


def test_providers_own_error_is_passed_on_unchanged() -> None:
    detail = {
        "type": "insufficient_quota",
        "code": "insufficient_quota",
        "message": "no money",
        "param": None,
    }
    error = ErrorInfo("quota_exhausted", "no money", code="insufficient_quota", detail=detail)
    body, report = encoded([Created("resp_1", "m"), Failed(error)])
    assert frames(body)[-2]["error"] == detail
    assert report == []
    assert read(body)[-1] == Failed(error)


# --- the official SDK ---


class Sdk:
    """The official client, over a transport that responds with `body`."""

    def __init__(self) -> None:
        self.body = b""
        self.kind = "text/event-stream"
        http = httpx2.Client(transport=httpx2.MockTransport(self.reply))
        self.client = openai.OpenAI(
            api_key="none", base_url="http://x/v1", max_retries=0, http_client=http
        )

    def reply(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": self.kind}, content=self.body)

    def last_raw(self, body: bytes) -> Any:
        self.body = body
        return list(self.client.responses.create(model="m", input="x", stream=True))[-1]

    def final(self, body: bytes) -> Any:
        self.body = body
        with self.client.responses.stream(model="m", input="x") as stream:
            return stream.get_final_response()

    def create(self, body: bytes) -> Any:
        self.body, self.kind = body, "application/json"
        return self.client.responses.create(model="m", input="x")


@pytest.fixture(scope="module")
def sdk() -> Iterator[Any]:
    made = Sdk()
    yield made
    made.client.close()


SAMPLE = 15 if THOROUGH else 7
"""Recordings of each other wire that the SDK reads; six times as many of its own."""
SAME_ID_TWICE = "with_xai_grok-4_3_searches_cites"
"""A body in which xAI gives two items one id: the SDK's helper rejects it."""


def samples() -> list[Case]:
    """Recordings by name."""
    require(CORPUS)
    cases: list[Case] = []
    for folder in WIRES:
        folder_samples = recordings(folder, [*STREAMS, *BODIES])
        most = SAMPLE * (6 if folder == "openai-responses" else 1)
        chosen = random.Random(folder).sample(folder_samples, min(most, len(folder_samples)))
        for sample in chosen:
            if SAME_ID_TWICE not in sample.path.name:
                cases.append((f"{folder}/{sample.path.name}", {"recording": sample}))
    return cases


@pytest.mark.filterwarnings(
    "ignore:Pydantic serializer warnings"
)  # the SDK's own, about hosted tools it has no type for
@in_one_test(["recording"], samples)
def test_the_official_sdk_reads_responses_of_any_wire(recording: Recording, sdk: Sdk) -> None:
    sdk.kind = "text/event-stream"
    events = parsed(recording)
    response = accumulate(events)
    if response.error is not None:
        with pytest.raises(openai.APIError, match=r"\S"):
            sdk.last_raw(encode_all("responses", events))
        return
    last = sdk.last_raw(encode_all("responses", events))
    read_back = [last.response, sdk.create(encode_body("responses", response))]
    if (
        response.stop_reason not in ("length", "content_filter")
        and last.type == "response.completed"
    ):
        sdk.kind = "text/event-stream"
        read_back.append(sdk.final(encode_all("responses", events)))
    calls = [
        (call.call_id, call.name, call.arguments or "{}")
        for call in response.calls
        if isinstance(call, FunctionCall)
    ]
    for read_item in read_back:
        assert read_item.output_text == response.text
        named = [
            (item.call_id, item.name, item.arguments)
            for item in read_item.output
            if item.type == "function_call"
        ]
        expected = [call for call in named if read_item.status == "completed" or call in calls]
        assert expected == calls
        assert (read_item.usage is None) == (response.usage is None)
        if read_item.usage and response.usage:
            assert read_item.usage.total_tokens is None or read_item.usage.input_tokens == (
                response.usage.input_tokens or 0
            )


def test_response_objects_repeat_a_bounded_number_of_metadata() -> None:
    """A provider whose every event brings a new key would fill the stream with repetitions."""
    keys = {f"key_{number}": number for number in range(500)}
    metadata = [ResponseMetadata({key: value}) for key, value in keys.items()]
    events = [Created("r", "m"), *metadata, Completed("r", "m", "stop")]
    body = encode_all("responses", events, model="m")
    *repeated, last = [frame["response"] for frame in frames(body)]
    counts = [len(response.keys() & keys.keys()) for response in repeated]
    assert max(counts) == REPEATED_KEYS
    assert last.items() >= keys.items()
    assert accumulate(read(body)).metadata.items() >= keys.items()


@each_case(
    "kind, error_type, code",
    [
        ("authentication", "invalid_request_error", "invalid_api_key"),
        ("invalid_request", "invalid_request_error", "invalid_request_error"),
        ("not_found", "invalid_request_error", "model_not_found"),
        ("context_window_exceeded", "invalid_request_error", "context_length_exceeded"),
        ("quota_exhausted", "insufficient_quota", "insufficient_quota"),
        ("rate_limited", "rate_limit_exceeded", "rate_limit_exceeded"),
        # Codex ends at `server_is_overloaded`, and tries again after any other code.
        ("overloaded", "service_unavailable_error", "server_error"),
        ("stalled", "server_error", "server_error"),
    ],
)
def test_error_has_type_and_code_of_openai(kind: Any, error_type: str, code: str) -> None:
    error = ErrorInfo(kind, "broken")
    for value in (error_body("responses", error), error_body("chat", error)):
        assert (value["error"]["type"], value["error"]["code"]) == (error_type, code)
