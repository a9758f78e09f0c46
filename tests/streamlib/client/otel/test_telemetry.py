"""What `Client(telemetry=…)` records, beside the facts of the conventions' model files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import anyio
import pytest
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from streamlib import (
    Client,
    Compaction,
    ErrorInfo,
    FunctionCall,
    Prompt,
    Response,
    StreamError,
    SyncClient,
    Usage,
    build,
    user,
)
from streamlib.client.otel import Telemetry, request_attributes, span_attributes, traced
from streamlib.pipeline import map_text, replace
from streamlib.testing import MODEL, loopback, scripted
from streamlib.tools import agent, run_calls
from streamlib_parsers.response import Choice, Timing
from tests.support.clients import MemoryTransport
from tests.support.gemini_streams import chunk, sse, text
from tests.support.messages_frames import block, end, start
from tests.support.telemetry import CONVENTIONS, Recorded

pytestmark = pytest.mark.anyio

INFERENCE: Final[dict[str, list[str]]] = CONVENTIONS["spans"]["gen_ai.client.inference"]
TYPES: Final[dict[str, Any]] = {
    "string": str,
    "int": int,
    "double": (int, float),
    "boolean": bool,
    "string[]": (list, tuple),
    "any": str,
}
SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
EVERYTHING: Final = Prompt(
    [Compaction("before"), user("secret")],
    instructions="Be terse.",
    reasoning="low",
    output_schema=SCHEMA,
    max_output_tokens=9,
    temperature=0.5,
    top_p=0.75,
    top_k=5,
    presence_penalty=0.5,
    frequency_penalty=0.5,
    stop="END",
    seed=7,
    n=2,
    conversation_id="c1",
    name="greet",
    version="2",
)
EVERY_COUNT: Final = Usage(
    input_tokens=60,
    output_tokens=30,
    cache_read_input_tokens=6,
    cache_write_input_tokens=5,
    reasoning_output_tokens=4,
    input_modalities={"text": 30, "image": 20, "audio": 10},
    output_modalities={"text": 15, "image": 10, "audio": 5},
    cache_modalities={"text": 1, "image": 2, "audio": 3},
)
UNKNOWABLE: Final = {"gen_ai.prompt.variable"}
"""Attributes whose value nobody tells the client: it has no templates."""


def weather(city: str) -> str:
    """Says how the weather is."""
    if city == "nowhere":
        raise ValueError(city)
    return f"rain in {city}"


def names_of_the_conventions(attributes: Mapping[str, Any]) -> set[str]:
    """Those that are not the library's own."""
    return {name for name in attributes if not name.startswith("streamlib.")}


def check_types(attributes: Mapping[str, Any], facts: Mapping[str, list[str]]) -> None:
    for name in names_of_the_conventions(attributes):
        kind = facts[name][0]
        assert isinstance(attributes[name], TYPES[kind]), (name, attributes[name])
        assert not (kind in ("int", "double") and isinstance(attributes[name], bool)), name


def test_table_of_facts_has_the_sizes_of_the_page() -> None:
    levels = [level for _, level in INFERENCE.values()]
    counts = [levels.count(level) for level in sorted(set(levels))]
    assert counts == [11, 5, 28, 2]  # conditional, opt-in, recommended, required


def test_every_attribute_of_the_page_is_known_somewhere() -> None:
    prompt = Prompt("x", extra={"previous_response_id": "r0"})
    asked = request_attributes(EVERYTHING, build(EVERYTHING, "google:gemini-3-pro"))
    continued = request_attributes(prompt, build(prompt, "openai:gpt-5"))
    answered = span_attributes(
        Response(
            "r1",
            "m",
            "completed",
            choices=(Choice(0, (), "stop", "STOP"),),
            usage=EVERY_COUNT,
            timing=Timing(first_token=0.5),
        )
    )
    failed = span_attributes(Response(status="failed", error=ErrorInfo("truncated", "cut")))
    together = {**asked, **continued, **failed, **answered}
    check_types(together, INFERENCE)
    opt_in = {name for name, (_, level) in INFERENCE.items() if level == "opt_in"}
    assert names_of_the_conventions(together) == set(INFERENCE) - opt_in


@pytest.mark.parametrize(
    ("model", "wire_api"),
    [
        ("anthropic:claude-opus-4-5", "messages"),
        ("openai:gpt-5", "responses"),
        ("openai:gpt-5", "chat"),
        ("google:gemini-3-pro", "gemini"),
        ("google:gemini-3-pro", "interactions"),
        ("cohere:command-a-03-2025", "cohere"),
        ("ollama:m", "ollama"),
    ],
)
def test_settings_are_known_on_every_wire(model: str, wire_api: Any) -> None:
    request = build(EVERYTHING, model, wire_api=wire_api)
    attributes = request_attributes(EVERYTHING, request)
    check_types(attributes, INFERENCE)
    assert attributes["gen_ai.request.seed"] == 7
    dropped = {f"dropped {change.path}" for change in request.report if change.action == "dropped"}
    assert dropped <= set(attributes.get("streamlib.request.changes", []))
    # A request of the caller's own says the same of what was sent.
    alone = request_attributes(None, request)
    assert alone["gen_ai.request.max_tokens"] == attributes["gen_ai.request.max_tokens"]
    assert alone["server.address"] == attributes["server.address"]


def test_value_is_the_one_that_is_sent() -> None:
    prompt = Prompt("x", max_output_tokens=9)
    attributes = request_attributes(prompt, build(prompt, "openai:gpt-5"))
    assert attributes["gen_ai.request.max_tokens"] == 16
    unset = request_attributes(Prompt("x"), build("x", "anthropic:claude-opus-4-5"))
    assert unset["gen_ai.request.max_tokens"] > 0


def test_one_choice_is_no_attribute() -> None:
    prompt = Prompt("x", n=1)
    attributes = request_attributes(prompt, build(prompt, "google:gemini-3-pro"))
    assert "gen_ai.request.choice.count" not in attributes


def test_version_without_a_name_is_no_attribute() -> None:
    prompt = Prompt("x", version="2")
    attributes = request_attributes(prompt, build(prompt, "google:gemini-3-pro"))
    assert "gen_ai.prompt.version" not in attributes


def test_body_of_the_callers_own_form_leaves_what_was_asked() -> None:
    prompt = Prompt("x", temperature=0.5, extra={"messages": 7})
    attributes = request_attributes(prompt, build(prompt, "mistral:m"))
    assert attributes["gen_ai.request.temperature"] == 0.5


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("https://a.example/v1", "a.example", 443),
        ("http://a.example/v1", "a.example", 80),
        ("http://127.0.0.1:8080", "127.0.0.1", 8080),
        ("http://[::1]:8080/v1", "::1", 8080),
    ],
    ids=["https", "http", "port", "ipv6"],
)
def test_server_is_that_of_the_request(url: str, address: str, port: int) -> None:
    request = build("x", "m", provider="custom", wire_api="chat", base_url=url)
    attributes = request_attributes(None, request)
    assert (attributes["server.address"], attributes["server.port"]) == (address, port)


GEMINI_USAGE: Final = {
    "promptTokenCount": 60,
    "candidatesTokenCount": 26,
    "thoughtsTokenCount": 4,
    "cachedContentTokenCount": 6,
    "promptTokensDetails": [
        {"modality": "TEXT", "tokenCount": 30},
        {"modality": "IMAGE", "tokenCount": 20},
        {"modality": "AUDIO", "tokenCount": 10},
    ],
    "cacheTokensDetails": [
        {"modality": "TEXT", "tokenCount": 1},
        {"modality": "IMAGE", "tokenCount": 2},
        {"modality": "AUDIO", "tokenCount": 3},
    ],
    "candidatesTokensDetails": [
        {"modality": "TEXT", "tokenCount": 15},
        {"modality": "IMAGE", "tokenCount": 10},
        {"modality": "AUDIO", "tokenCount": 1},
    ],
}


async def gemini_request(recorded: Recorded, prompt: Prompt) -> None:
    last = chunk(text(" two"), finish="STOP", usageMetadata=GEMINI_USAGE)
    memory = MemoryTransport([sse(chunk(text("One"))), sse(last)])
    async with Client(http=memory, api_key="k", telemetry=recorded.telemetry) as client:
        await client.respond(prompt, "google:gemini-3-pro")


async def test_request_has_a_span_by_the_conventions() -> None:
    recorded = Recorded(content="both", older_names=False)
    await gemini_request(recorded, EVERYTHING)
    [span] = recorded.spans
    assert (span.name, span.kind) == ("generate_content gemini-3-pro", SpanKind.CLIENT)
    attributes = recorded.attributes("generate_content")
    check_types(attributes, INFERENCE)
    missing = set(INFERENCE) - set(attributes)
    assert missing == {
        "error.type",
        "gen_ai.request.previous_response.id",
        "gen_ai.tool.definitions",
        "gen_ai.usage.cache_write.input_tokens",
        *UNKNOWABLE,
    }


async def test_metrics_are_those_of_the_model_files() -> None:
    recorded = Recorded(older_names=False)
    await gemini_request(recorded, EVERYTHING)
    async with scripted(
        [FunctionCall("c1", "weather", '{"city":"Oslo"}'), "done"], telemetry=recorded.telemetry
    ) as client:
        await read_run(agent(client, "x", [weather], MODEL, name="planner"))
    facts: dict[str, Any] = CONVENTIONS["metrics"]
    metrics = recorded.metrics
    assert set(metrics) == set(facts)
    for name, metric in metrics.items():
        instrument, unit, allowed = facts[name]
        assert metric.unit == unit
        for point in metric.data.data_points:
            assert set(point.attributes) <= set(allowed), name
            assert hasattr(point, "bucket_counts") == (instrument == "histogram")
            if instrument == "histogram" and unit in CONVENTIONS["buckets"]:
                assert list(point.explicit_bounds) == CONVENTIONS["buckets"][unit]


async def test_duration_of_the_metric_is_that_of_the_span() -> None:
    recorded = Recorded()
    await gemini_request(recorded, Prompt("x"))
    [span] = recorded.spans
    [point] = recorded.metrics["gen_ai.client.inference.duration"].data.data_points
    assert span.start_time is not None
    assert span.end_time is not None
    assert point.sum == pytest.approx((span.end_time - span.start_time) / 1e9, abs=1e-6)


async def test_tokens_are_counted_by_modality() -> None:
    recorded = Recorded()
    await gemini_request(recorded, Prompt("x"))
    metric = recorded.metrics["gen_ai.client.inference.usage.output_tokens"]
    counts = {
        point.attributes["gen_ai.token.modality"]: point.value for point in metric.data.data_points
    }
    # Thoughts are output of no modality.
    assert counts == {"text": 15, "image": 10, "audio": 1, "unknown": 4}
    reads = recorded.metrics["gen_ai.client.inference.usage.cache_read.input_tokens"]
    assert sum(point.value for point in reads.data.data_points) == 6


async def test_failure_has_a_kind_an_event_and_zero_tokens() -> None:
    recorded = Recorded()
    failure = ErrorInfo("rate_limited", "secret", status=429)
    async with scripted([failure], telemetry=recorded.telemetry) as client:
        with pytest.raises(StreamError):
            await client.respond("x", model=MODEL)
    [span] = recorded.spans
    assert span.status.status_code is StatusCode.ERROR
    attributes = recorded.attributes("chat")
    assert attributes["error.type"] == "rate_limited"
    assert attributes["gen_ai.response.finish_reasons"] == ("error",)
    assert "gen_ai.response.time_to_first_chunk" not in attributes
    [event] = recorded.events
    record = event.log_record
    assert record.event_name == "gen_ai.client.operation.exception"
    facts = CONVENTIONS["events"][record.event_name]
    assert record.severity_number is not None
    assert record.severity_number.value == facts["severity"]
    assert span.context is not None
    assert record.span_id == span.context.span_id
    assert "secret" not in str(record.attributes) + span.to_json()
    metric = recorded.metrics["gen_ai.client.inference.usage.input_tokens"]
    [point] = metric.data.data_points
    assert (point.value, point.attributes["gen_ai.token.modality"]) == (0, "unknown")


async def test_retried_request_is_one_span() -> None:
    recorded = Recorded()
    options: Any = {"telemetry": recorded.telemetry}
    async with loopback(client=options, status=529, failing=1) as client:
        await client.respond("hi", model=MODEL)
    assert len(recorded.spans) == 1
    assert recorded.span("chat").status.status_code is not StatusCode.ERROR


async def test_stream_that_is_left_early_is_cancelled() -> None:
    recorded = Recorded()
    options: Any = {"telemetry": recorded.telemetry}
    async with loopback(client=options) as client:
        async with client.stream("hi", MODEL) as stream:
            async for _ in stream:
                break
        await stream.aclose()
    assert recorded.attributes("chat")["error.type"] == "cancelled"
    assert recorded.events == []


async def test_stream_that_was_closed_before_has_no_span() -> None:
    """Its span was begun, and never ended."""
    recorded, begun = Recorded(), Begun()
    recorded.tracer_provider.add_span_processor(begun)
    options: Any = {"telemetry": recorded.telemetry}
    async with loopback(client=options) as client:
        stream = client.stream("hi", MODEL, errors="event")
        await stream.aclose()
        async with stream:
            pass
        run = agent(client, "hi", model=MODEL)
        run.stop()
        await read_run(run)
    assert begun.names == [span.name for span in recorded.spans] == ["invoke_agent"]
    [calls] = recorded.metrics["gen_ai.invoke_agent.inference_calls"].data.data_points
    assert calls.sum == 0


class Begun(SpanProcessor):
    """The names of the spans that were begun."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """See `SpanProcessor`."""
        self.names.append(span.name)


async def test_stream_that_is_read_event_by_event_has_one_end() -> None:
    recorded = Recorded()
    options: Any = {"telemetry": recorded.telemetry}
    async with loopback(client=options) as client, client.stream("hi", MODEL) as stream:
        async for _ in stream:
            pass
    assert "error.type" not in recorded.attributes("chat")


async def test_each_model_of_a_fallback_has_a_span() -> None:
    recorded = Recorded()
    turns: list[Any] = [ErrorInfo("overloaded", "no", retryable=True), "yes"]
    async with scripted(turns, telemetry=recorded.telemetry) as client:
        await client.respond("x", [MODEL, MODEL])
    kinds = [(span.attributes or {}).get("error.type") for span in recorded.spans]
    assert kinds == ["overloaded", None]


def test_sync_client_records_the_same() -> None:
    recorded = Recorded()
    tracer = recorded.tracer_provider.get_tracer("mine")
    body = b"".join([start(), block(0, {"type": "text", "text": "Hi"}), end()])
    memory = MemoryTransport([body])
    with (
        SyncClient(http=memory, api_key="k", telemetry=recorded.telemetry) as client,
        tracer.start_as_current_span("outer") as outer,
    ):
        client.respond("x", "anthropic:claude-opus-4-5")
    span = recorded.span("chat")
    assert span.parent is not None
    assert span.parent.span_id == outer.get_span_context().span_id
    assert recorded.attributes("chat")["gen_ai.usage.output_tokens"] == 9


# --- runs and tools ---


async def read_run(run: Any) -> None:
    async with run:
        async for _ in run:
            pass


async def test_run_has_a_span_around_its_requests_and_calls() -> None:
    recorded = Recorded(older_names=False, content="spans")
    turns: list[Any] = [FunctionCall("c1", "weather", '{"city":"Oslo"}'), "done"]
    prompt = Prompt("x", conversation_id="talk", temperature=0.5)
    async with scripted(turns, telemetry=recorded.telemetry) as client:
        await read_run(agent(client, prompt, [weather], MODEL, name="planner"))
    run = recorded.span("invoke_agent planner")
    assert run.kind is SpanKind.INTERNAL
    assert run.context is not None
    for span in recorded.spans:
        if span is not run:
            assert span.parent is not None
            assert span.parent.span_id == run.context.span_id
    attributes = recorded.attributes("invoke_agent")
    check_types(attributes, CONVENTIONS["spans"]["gen_ai.invoke_agent.internal"])
    requests = [span.attributes or {} for span in recorded.spans if span.name.startswith("chat")]
    tokens = [request["gen_ai.usage.input_tokens"] for request in requests]
    assert attributes["gen_ai.usage.input_tokens"] == sum(tokens)  # type: ignore[arg-type]
    call = recorded.attributes("execute_tool weather")
    check_types(call, CONVENTIONS["spans"]["gen_ai.execute_tool.internal"])
    assert call["gen_ai.tool.description"] == "Says how the weather is."
    assert call["gen_ai.conversation.id"] == "talk"
    assert json.loads(call["gen_ai.tool.call.arguments"]) == {"city": "Oslo"}
    assert call["gen_ai.tool.call.result"] == "rain in Oslo"
    counts = recorded.metrics["gen_ai.invoke_agent.inference_calls"].data.data_points
    assert [point.sum for point in counts] == [2]


async def test_call_that_fails_has_its_error() -> None:
    recorded = Recorded()
    turns: list[Any] = [FunctionCall("c1", "weather", '{"city":"nowhere"}'), "done"]
    async with scripted(turns, telemetry=recorded.telemetry) as client:
        await read_run(agent(client, "x", [weather], MODEL))
    assert recorded.attributes("execute_tool")["error.type"] == "ValueError"
    assert "error.type" not in recorded.attributes("invoke_agent")


async def test_call_that_takes_too_long_is_a_timeout() -> None:
    recorded = Recorded()

    async def slow() -> str:
        await anyio.sleep(5)
        return ""

    response = Response(status="completed", items=(FunctionCall("c1", "slow", "{}"),))
    await run_calls(response, [slow], timeout=0.01, telemetry=recorded.telemetry)
    assert recorded.attributes("execute_tool slow")["error.type"] == "timeout"


async def test_span_of_a_function_is_within_that_of_its_call() -> None:
    recorded = Recorded()
    tracer = recorded.tracer_provider.get_tracer("mine")

    def lookup() -> str:
        with tracer.start_as_current_span("inner"):
            return "x"

    response = Response(status="completed", items=(FunctionCall("c1", "lookup", "{}"),))
    await run_calls(response, [lookup], telemetry=recorded.telemetry)
    inner, call = recorded.spans
    assert inner.parent is not None
    assert call.context is not None
    assert inner.parent.span_id == call.context.span_id


async def test_run_without_counts_has_no_tokens() -> None:
    recorded = Recorded()
    watch = recorded.telemetry.of_run(Prompt("x"), None, "m")
    watch.entered()
    watch.ended(Response(status="completed", stop_reason="stop"))
    assert [name for name in recorded.attributes("invoke_agent") if "usage" in name] == []


async def test_run_that_fails_has_the_kind_of_its_error() -> None:
    recorded = Recorded()
    failure = ErrorInfo("authentication", "no", status=401)
    async with scripted([failure], telemetry=recorded.telemetry) as client:
        with pytest.raises(StreamError):
            await read_run(agent(client, "x", [weather], MODEL))
    assert recorded.attributes("invoke_agent")["error.type"] == "authentication"


# --- content, older names, the environment ---


async def test_content_is_recorded_only_where_it_is_asked_for() -> None:
    for content, on_spans, on_events in [
        ("none", False, False),
        ("spans", True, False),
        ("events", False, True),
        ("both", True, True),
    ]:
        recorded = Recorded(content=content)
        await gemini_request(recorded, EVERYTHING)
        span = recorded.span("generate_content").to_json()
        events = str([event.log_record.attributes for event in recorded.events])
        assert ("secret" in span, "secret" in events) == (on_spans, on_events)


async def test_event_of_the_details_has_structure() -> None:
    recorded = Recorded(content="events")
    await gemini_request(recorded, EVERYTHING)
    [event] = recorded.events
    record = event.log_record
    assert record.event_name == "gen_ai.client.inference.operation.details"
    assert record.severity_number is not None
    assert record.severity_number.value == CONVENTIONS["events"][record.event_name]["severity"]
    attributes: Any = record.attributes
    [message] = attributes["gen_ai.output.messages"]
    assert message["role"] == "assistant"


async def test_redaction_comes_before_what_is_recorded() -> None:
    recorded = Recorded(content="both", redact=replace("secret", "***"))
    turns: list[Any] = [FunctionCall("c1", "weather", '{"city":"secret"}'), "secret"]
    prompt = Prompt("secret", instructions="secret")
    async with scripted(turns, telemetry=recorded.telemetry) as client:
        await read_run(agent(client, prompt, [weather], MODEL))
    spans = "".join([span.to_json() for span in recorded.spans])
    events = str([event.log_record.attributes for event in recorded.events])
    assert "secret" not in spans + events
    assert "rain in ***" in spans


async def test_redaction_that_fails_leaves_content_out(caplog: pytest.LogCaptureFixture) -> None:
    def fail(text: str) -> str:
        raise LookupError(text)

    recorded = Recorded(content="spans", redact=map_text(fail))
    async with scripted(["yes"], telemetry=recorded.telemetry) as client:
        response = await client.respond("secret", model=MODEL)
    assert response.text == "yes"
    attributes = recorded.attributes("chat")
    assert "gen_ai.input.messages" not in attributes
    assert attributes["gen_ai.usage.output_tokens"] is not None
    assert "LookupError" in caplog.text
    assert "secret" not in caplog.text  # the exception quotes it


@pytest.mark.parametrize(
    ("value", "are_older"),
    [
        (None, True),
        ("http", True),
        ("gen_ai_latest_experimental", False),
        ("http/dup, gen_ai_latest_experimental", False),
    ],
    ids=["unset", "other", "latest", "among others"],
)
async def test_older_names_are_there_until_the_newest_are_asked_for(
    value: str | None, are_older: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", value)
    recorded = Recorded()
    async with scripted(["yes"], telemetry=recorded.telemetry) as client:
        await client.respond("x", model=MODEL)
    names = set(recorded.attributes("chat")) | set(recorded.metrics)
    older = set(CONVENTIONS["older"]) - {"gen_ai.usage.cache_creation.input_tokens"}
    assert (older <= names) == are_older
    assert are_older or not older & names
    assert "gen_ai.provider.name" in names


@pytest.mark.parametrize(
    ("word", "content"),
    [("", "none"), ("no_content", "none"), ("SPAN_ONLY", "spans"), ("SPAN_AND_EVENT", "both")],
)
def test_environment_chooses_where_content_is(
    word: str, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", word)
    assert Telemetry().content == content
    assert Telemetry(content="none").content == "none"


def test_environment_with_another_word_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    with pytest.raises(ValueError, match="is one of NO_CONTENT, SPAN_ONLY"):
        Telemetry()


def test_what_is_no_telemetry_is_refused() -> None:
    with pytest.raises(TypeError, match="telemetry is True or"):
        Client(telemetry="on")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="content is none, spans, events or both"):
        Telemetry(content="all")  # type: ignore[arg-type]
    assert Client(telemetry=False).telemetry is None
    assert isinstance(Client(telemetry=True).telemetry, Telemetry)


# --- traced ---


async def test_traced_needs_no_prompt() -> None:
    recorded = Recorded()
    tracer = recorded.tracer_provider.get_tracer("mine")
    prompt = Prompt("hi", temperature=0.25, name="greet")
    async with (
        loopback() as client,
        traced(client.stream(prompt, MODEL), tracer=tracer) as stream,
    ):
        with tracer.start_as_current_span("inner"):
            async for _ in stream:
                pass
    attributes = recorded.attributes("chat")
    assert attributes["gen_ai.request.temperature"] == 0.25
    assert attributes["gen_ai.prompt.name"] == "greet"
    inner, span = recorded.span("inner"), recorded.span("chat")
    assert inner.parent is not None
    assert span.context is not None
    assert inner.parent.span_id == span.context.span_id


async def test_traced_stream_of_a_client_with_telemetry_has_one_span() -> None:
    recorded = Recorded()
    options: Any = {"telemetry": recorded.telemetry}
    async with loopback(client=options) as client, traced(client.stream("hi", MODEL)) as stream:
        async for _ in stream:
            pass
    assert len(recorded.spans) == 1
