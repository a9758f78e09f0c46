"""What observers see of each request: its course, complete, and never a stream that ends with
them."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from streamlib.client.retry import NO_RETRY
from streamlib.gateway import RouteRule, RouteTable
from streamlib.gateway.targets.pool import TargetPool
from streamlib.gateway.targets.routes import RouteTo
from streamlib.gateway.watch.observer import Exchange, Observer
from streamlib.gateway.watch.request_log import FIELDS, JsonFormatter, TextFormatter
from streamlib.wires.encoders import encode_all
from streamlib.wires.responses.repeated_settings import DEFAULTS
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Completed, Created, ResponseMetadata
from tests.support.gateways import (
    ProviderResponse,
    Upstream,
    error_response,
    rule,
    send,
    serving,
    stream_or_body,
    stream_response,
    weather_chunks,
    weather_prompt,
    weather_response,
)

OVERLOADED = ErrorInfo("overloaded", "busy with Ann's letter")


class Notes(Observer):
    """Writes down every call."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.exchanges: list[Exchange] = []
        self.gaps: list[float] = []

    def started(self, exchange: Exchange) -> None:
        self.calls.append("started")

    def target_tried(self, exchange: Exchange) -> None:
        self.calls.append(f"tried {exchange.target}")

    def upstream_failed(self, exchange: Exchange, error: ErrorInfo) -> None:
        self.calls.append(f"failed {error.kind}")

    def first_token(self, exchange: Exchange) -> None:
        self.calls.append("first token")

    def gap(self, exchange: Exchange, seconds: float) -> None:
        self.gaps.append(seconds)

    def ended(self, exchange: Exchange) -> None:
        self.calls.append("ended")
        self.exchanges.append(exchange)


@stream_or_body
async def test_observer_sees_the_course_of_a_request(stream: bool) -> None:
    notes = Notes()
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages"), observers=[notes]) as client:
        await send(client, "chat", weather_prompt(), stream=stream)
    exchange = notes.exchanges[0]
    assert notes.calls == ["started", "tried custom:model-1", "first token", "ended"]
    assert (exchange.route, exchange.requested, exchange.wire_api) == ("*", "client-model", "chat")
    assert (exchange.status, exchange.error, exchange.stop_reason) == (200, None, "tool_calls")
    assert exchange.usage is not None
    assert (exchange.usage.input_tokens, exchange.usage.output_tokens) == (12, 34)
    assert exchange.is_stream == stream
    assert exchange.deltas == 13
    assert exchange.seconds is not None
    assert exchange.first_token is not None
    assert 0 <= exchange.first_token <= exchange.seconds


async def test_gap_is_the_silence_between_two_outputs() -> None:
    notes = Notes()
    chunks: list[bytes | float] = [*weather_chunks("chat")]
    chunks.insert(4, 0.05)
    async with serving(
        Upstream(stream_response("chat", *chunks)), rule("chat"), observers=[notes]
    ) as client:
        await send(client, "chat", weather_prompt())
    assert 0.05 <= notes.exchanges[0].longest_gap == max(notes.gaps)
    assert len(notes.gaps) == 12


async def test_observer_sees_each_failed_target_once() -> None:
    notes = Notes()
    failed = error_response("chat", 529, OVERLOADED)
    upstream = Upstream(failed, weather_response("chat"))
    two = RouteRule(
        "*",
        (
            RouteTo("custom:a", base_url="http://a", wire_api="chat"),
            RouteTo("custom:b", base_url="http://b", wire_api="chat"),
        ),
    )
    async with serving(upstream, two, client={"retry": NO_RETRY}, observers=[notes]) as client:
        await send(client, "chat", weather_prompt())
    assert notes.calls == [
        "started",
        "tried custom:a",
        "failed overloaded",
        "tried custom:b",
        "first token",
        "ended",
    ]
    assert notes.exchanges[0].targets_tried == 2


@stream_or_body
async def test_observer_sees_a_truncated_response_once(stream: bool) -> None:
    notes = Notes()
    upstream = Upstream(stream_response("messages", *weather_chunks("messages")[:6]))
    async with serving(upstream, rule("messages"), observers=[notes]) as client:
        await send(client, "messages", weather_prompt(), stream=stream)
    assert notes.calls.count("failed truncated") == 1
    exchange = notes.exchanges[0]
    assert exchange.error is not None
    assert exchange.error.kind == "truncated"
    assert exchange.status == (200 if stream else 502)


async def test_refused_request_is_started_and_ended() -> None:
    notes = Notes()
    async with serving(Upstream(), RouteRule("a", "loopback:x"), observers=[notes]) as client:
        await send(client, "chat", weather_prompt())
        await client.post("/v1/nothing", json={})
    assert notes.calls == ["started", "ended"] * 2
    assert [one.status for one in notes.exchanges] == [404, 404]
    assert [one.route for one in notes.exchanges] == [None, None]


async def test_stream_survives_an_observer_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Observer):
        def first_token(self, exchange: Exchange) -> None:
            raise RuntimeError("no\nroom")

    notes = Notes()
    upstream = Upstream(weather_response("chat"))
    async with serving(upstream, rule("chat"), observers=[Broken(), notes]) as client:
        response = await send(client, "chat", weather_prompt())
    assert "[DONE]" in response.text
    assert notes.calls[-1] == "ended"
    assert "an observer failed: RuntimeError: no\\nroom" in caplog.text


def test_text_line_has_the_time_of_the_json_line(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("streamlib.gateway").warning("stopping")
    [record] = caplog.records
    time, _, text = TextFormatter().format(record).partition(" ")
    assert text == "stopping"
    assert msgspec.json.decode(JsonFormatter().format(record))["time"] == time


async def test_log_has_no_password_of_an_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    address = "http://ada:pass-word@host/v1"
    route = RouteRule("*", "custom:m", base_url=address, wire_api="chat")
    async with serving(Upstream(), route) as client:
        await send(client, "chat", weather_prompt())
    assert " at host: invalid_request" in caplog.text
    assert "pass-word" not in caplog.text


async def test_warning_has_no_key_of_an_address(caplog: pytest.LogCaptureFixture) -> None:
    address = "http://ada:pass-word@host:99/v1"
    route = RouteRule("*", "custom:m", base_url=address, wire_api="chat", cooldown_failures=1)
    [target] = RouteTable([route]).targets(route, "m")
    pool = TargetPool()
    with await pool.slot([target], 0) as slot:
        slot.ended(OVERLOADED)
    assert "custom:m at host:99 cools down for 30 seconds: overloaded" in caplog.text
    [record] = caplog.records
    line = msgspec.json.decode(JsonFormatter().format(record))
    assert line["message"] == "cools down"
    assert (line["model"], line["server"], line["cooldown"], line["error"]) == (
        "custom:m",
        "host:99",
        30.0,
        "overloaded",
    )
    assert "pass-word" not in str(line)
    assert "pass-word" not in caplog.text


async def test_json_line_has_figures_and_no_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    upstream = Upstream(weather_response("gemini"))
    async with serving(upstream, rule("gemini")) as client:
        prompt = weather_prompt(instructions="secret letter of Ann")
        await send(client, "chat", prompt, authorization="Bearer sk-client-secret")
    records = [record for record in caplog.records if hasattr(record, FIELDS)]
    line = JsonFormatter().format(records[0])
    fields: dict[str, Any] = msgspec.json.decode(line)
    assert fields["time"].endswith("Z")
    assert (fields["wire_api"], fields["route"], fields["status"]) == ("chat", "*", 200)
    assert (fields["requested_model"], fields["model"]) == ("client-model", "custom:model-1")
    assert (fields["input_tokens"], fields["output_tokens"]) == (12, 34)
    assert fields["first_token"] >= 0
    assert fields["report"].keys() <= {"dropped", "downgraded", "generated", "changed"}
    for secret in ("sk-client", "Ann", "Riga", "sunny", "weather"):
        assert secret not in line


def test_json_line_of_another_logger_is_one_line() -> None:
    record = logging.LogRecord("uvicorn", logging.WARNING, "", 1, "two\nlines %s", ("x",), None)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert msgspec.json.decode(line)["message"] == "two\nlines x"


async def logged_error(caplog: pytest.LogCaptureFixture, text: str, **headers: str) -> list[str]:
    """The lines of a request whose target refuses it with this text: for people, for programs."""
    caplog.clear()
    caplog.set_level(logging.INFO, "streamlib.gateway")
    body = msgspec.json.encode({"error": {"message": text, "code": "weird_code"}})
    refusal = ProviderResponse(400, {"content-type": "application/json", **headers}, [body])
    async with serving(Upstream(refusal), rule("chat")) as client:
        await send(client, "messages", weather_prompt())
    [record] = [record for record in caplog.records if hasattr(record, FIELDS)]
    return [record.getMessage(), JsonFormatter().format(record)]


async def test_two_errors_have_two_lines_in_their_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    request_id = {"x-request-id": "req_at_provider"}
    line, json_line = await logged_error(caplog, "n must be 1", **request_id)
    said = "invalid_request (n must be 1, code weird_code, request req_at_provider)"
    assert said in line
    fields = msgspec.json.decode(json_line)
    assert fields["error_message"] == "n must be 1"
    assert fields["error_code"] == "weird_code"
    assert fields["upstream_request_id"] == "req_at_provider"
    line, json_line = await logged_error(caplog, "stop has 9 texts")
    assert "invalid_request (stop has 9 texts, code weird_code)" in line
    assert msgspec.json.decode(json_line)["upstream_request_id"] is None


async def test_providers_words_are_masked_and_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = f"wrong key sk-proj-0123456789abcdef\nforged line {'x' * 5000}"
    for line in await logged_error(caplog, text):
        assert "sk-proj" not in line
        assert "wrong key ***" in line
        assert "\n" not in line
        assert len(line) < 1500


async def test_repeated_settings_are_not_reported() -> None:
    """OpenAI repeats the settings of the request in each response."""
    settings = dict.fromkeys((*DEFAULTS, "created_at", "completed_at"), "as requested")
    metadata = {**settings, "moderation": "a value of the response"}
    made = encode_all("responses", [Created("r", "m"), ResponseMetadata(metadata), Completed("r")])
    notes = Notes()
    upstream = Upstream(stream_response("responses", made))
    async with serving(upstream, rule("responses"), observers=[notes]) as client:
        await send(client, "messages", weather_prompt())
    paths = [change.path for change in notes.exchanges[0].report]
    assert [path for path in paths if "metadata" in path] == ["/metadata/moderation"]


async def test_failed_target_is_logged_in_its_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    busy = error_response("messages", 529, ErrorInfo("overloaded", "at capacity"), request_id="r_1")
    route = RouteRule("*", ("custom:a", "custom:b"), wire_api="messages", base_url="http://up")
    async with serving(Upstream(busy, weather_response("messages")), route) as client:
        await send(client, "chat", weather_prompt())
    said = "overloaded (at capacity, code overloaded_error, request r_1): trying the next target"
    assert f"custom:a failed with {said}" in caplog.text
    failure, request = [record for record in caplog.records if hasattr(record, FIELDS)]
    assert "r_1" not in request.getMessage()
    line = msgspec.json.decode(JsonFormatter().format(failure))
    assert line["message"] == "trying the next target"
    assert (line["model"], line["error"], line["error_message"]) == (
        "custom:a",
        "overloaded",
        "at capacity",
    )
    assert line["upstream_request_id"] == "r_1"
    ended = msgspec.json.decode(JsonFormatter().format(request))
    for name in ("request_id", "client", "wire_api", "route", "requested_model"):
        assert line[name] == ended[name]
