"""`StreamResponse` called as a server calls it: status, headers, pings, ends, `on_done`."""

from __future__ import annotations

import json
from typing import Any, get_args

import anyio
import anyio.lowlevel
import pytest

from streamlib import Client, Response, StreamError, agent, encoder
from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.request.prompt import Prompt
from streamlib.testing import MODEL, echo_response, loopback
from streamlib.web import StreamResponse, UIRequestError, error_response, iter_bytes
from streamlib.web.http_errors import http_status
from streamlib.web.public_errors import TEXTS, public_text
from streamlib.wires.encoders import sse
from streamlib_parsers import ErrorInfo, ErrorKind, ToolSpec, accumulate
from tests.support.asgi_calls import AsgiCall
from tests.support.cases import each_case
from tests.support.client_streams import FRAMES, stream_over
from tests.support.ui_streams import read_agui, read_vercel
from tests.support.web_runs import Run

NO_RETRY = {"retry": RetryPolicy(retries=0)}
_TOOL = ToolSpec("weather", schema={"type": "object", "properties": {"city": {"type": "string"}}})


def complete() -> ResponseStream:
    return stream_over(*FRAMES)


@pytest.mark.parametrize("protocol", ["vercel", "agui", "jsonl"])
async def test_a_stream_is_sent_with_its_headers(protocol: Any) -> None:
    call = await AsgiCall()(StreamResponse(complete(), protocol))
    assert (call.status, call.is_complete) == (200, True)
    assert call.headers["content-type"] == encoder(protocol).media_type
    assert call.headers["cache-control"] == "no-cache"
    assert ("x-vercel-ai-ui-message-stream" in call.headers) is (protocol == "vercel")
    if protocol == "vercel":
        assert read_vercel(call.body)[-1]["finishReason"] == "stop"
    elif protocol == "agui":
        assert read_agui(call.body)[-1]["type"] == "RUN_FINISHED"
    else:
        assert json.loads(call.body.splitlines()[-1])["type"] == "completed"


def test_an_unknown_protocol_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="no protocol 'chat' for a browser; one of vercel, agui"):
        StreamResponse(complete(), "chat")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ping": "15"}, "ping is more than 0 seconds, not '15'"),
        ({"ping": 0}, "ping is more than 0 seconds, not 0"),
        ({"on_done": 3}, "on_done is a function of a `Response`, not 3"),
        ({"error_text": "busy"}, "error_text is a function of an `ErrorInfo`, not 'busy'"),
        (
            {"stream": "Hello"},
            "a stream is `client.stream(…)`, `agent(…)` or their like, not a str",
        ),
        ({"protocol": None}, "a protocol is a name or an encoder, not None"),
    ],
)
def test_wrong_argument_fails_before_a_request(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"stream": complete(), "protocol": "vercel", **options}
    for respond in (StreamResponse, iter_bytes):
        with pytest.raises((TypeError, ValueError)) as raised:
            respond(**given)
        assert str(raised.value) == message


async def test_an_encoder_of_your_own_is_used_as_it_is() -> None:
    call = await AsgiCall()(StreamResponse(complete(), encoder("chat", created_at=1)))
    assert call.headers["content-type"] == "text/event-stream"
    assert call.body.endswith(b"data: [DONE]\n\n")


# --- failures before the stream ---


@each_case(
    "status, headers, expected",
    [
        (400, {}, 502),
        (401, {}, 502),
        (403, {}, 502),
        (404, {}, 502),
        (429, {"retry-after": "7"}, 429),
        (500, {}, 502),
        (503, {}, 503),
        (504, {}, 504),
        (529, {}, 503),
    ],
)
async def test_an_early_failure_has_the_pages_status(
    status: int, headers: dict[str, str], expected: int
) -> None:
    """A provider's 401 says that the server's key is wrong: the page's user is signed in."""
    done: list[Response] = []
    async with loopback(status=status, headers=headers, client=NO_RETRY) as client:
        stream = client.stream("hi", MODEL)
        app = StreamResponse(stream, "vercel", on_done=done.append, headers={"X-Own": "1"})
        call = await AsgiCall()(app)
    assert (call.status, call.is_complete) == (expected, True)
    assert call.headers["content-type"] == "application/json"
    assert call.headers.get("retry-after") == headers.get("retry-after")
    assert call.headers["x-own"] == "1"
    assert "x-vercel-ai-ui-message-stream" not in call.headers
    assert call.error["message"] == TEXTS[call.error["kind"]]
    assert b"loopback" not in call.body
    assert done[0].error is not None


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_unreachable_provider_is_named_in_the_log_only(
    errors: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The browser got a 502 of the kind `connection`, and the log had nothing."""
    async with Client(
        base_url="http://127.0.0.1:9", api_key="sk-hidden-01234", **NO_RETRY
    ) as client:
        stream = client.stream("hi", MODEL, errors=errors)
        call = await AsgiCall()(StreamResponse(stream, "vercel"))
    assert (call.status, call.error["kind"]) == (502, "connection")
    assert b"127.0.0.1" not in call.body
    [line] = [record for record in caplog.records if record.name == "streamlib.web"]
    assert line.levelname == "WARNING"
    # In the quotes that the reason of the HTTP library does not have.
    start = "the response of a model failed: 'connection (http://127.0.0.1:9): no response was"
    assert line.getMessage().replace('"', "'").startswith(start)
    assert "hidden" not in line.getMessage()


def test_failure_before_a_stream_is_logged_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    error_response(StreamError(ErrorInfo("authentication", "no key\nin \x1b[2J", code="no_key")))
    error_response(UIRequestError("messages are missing"))
    assert caplog.messages == [
        r"the response of a model failed: 'authentication: no key\nin \x1b[2J'"
    ]


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_a_failure_before_the_first_event_is_a_status(errors: Any) -> None:
    overloaded = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'
    call = await AsgiCall()(StreamResponse(stream_over(overloaded, errors=errors), "vercel"))
    assert (call.status, call.error["kind"], call.error["retryable"]) == (503, "overloaded", True)


async def test_wait_is_in_full_seconds_in_the_header_only() -> None:
    late = StreamError(ErrorInfo("rate_limited", "x", retryable=True, retry_after=1.2, status=429))
    call = await AsgiCall()(StreamResponse(Run(late), "jsonl"))
    assert (call.headers["retry-after"], call.error["retry_after"]) == ("2", 1.2)


async def test_endless_wait_of_a_custom_transport_is_not_a_header() -> None:
    """It was an `OverflowError` in place of the response."""
    late = StreamError(ErrorInfo("rate_limited", "x", retry_after=float("inf"), status=429))
    call = await AsgiCall()(StreamResponse(Run(late), "jsonl"))
    assert (call.status, "retry-after" in call.headers) == (429, False)


async def test_a_run_that_is_refused_is_a_status() -> None:
    call = await AsgiCall()(
        StreamResponse(Run(StreamError(ErrorInfo("authentication", "key", status=401))), "vercel")
    )
    assert (call.status, call.error["kind"]) == (502, "authentication")


def test_every_kind_has_a_text_and_a_status_of_an_error() -> None:
    for kind in get_args(ErrorKind):
        info = ErrorInfo(kind, "internal")
        assert "internal" not in public_text(info)
        assert 400 <= http_status(info) < 600


def test_redirect_status_is_not_sent_to_a_browser() -> None:
    assert http_status(ErrorInfo("invalid_request", "x", status=302)) == 400


def test_a_missing_key_is_the_servers_own_failure() -> None:
    error = StreamError(ErrorInfo("authentication", "set ANTHROPIC_API_KEY", code="no_key"))
    response = error_response(error)
    assert response.status_code == 500
    assert b"ANTHROPIC" not in response.body


# --- failures inside the stream ---


async def test_a_late_failure_is_a_part_without_internals() -> None:
    cut = stream_over(*FRAMES[:4], ConnectionResetError("10.0.0.7 hung up"))
    call = await AsgiCall()(StreamResponse(cut, "vercel"))
    assert (call.status, call.is_complete) == (200, True)
    (error,) = [part for part in read_vercel(call.body) if part["type"] == "error"]
    assert error["errorText"] == TEXTS["truncated"]
    assert b"10.0.0.7" not in call.body


async def test_failure_takes_nothing_of_what_comes_with_it() -> None:
    overloaded = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'
    chunk = b"".join([*FRAMES[:3], overloaded])
    for errors in ("raise", "event"):
        call = await AsgiCall()(StreamResponse(stream_over(chunk, errors=errors), "jsonl"))
        kinds = [json.loads(line)["type"] for line in call.body.splitlines()]
        assert kinds[2:] == ["output_item_added", "output_text_delta", "output_item_done", "failed"]


async def test_the_text_of_errors_can_be_your_own() -> None:
    cut = stream_over(*FRAMES[:4])
    call = await AsgiCall()(StreamResponse(cut, "vercel", error_text=lambda info: info.kind * 2))
    assert b"truncatedtruncated" in call.body


async def test_a_defect_in_a_run_ends_the_stream_and_is_raised() -> None:
    started = echo_response(Prompt("hi"))[:5]
    run = Run(*started, KeyError("database password"))
    call = AsgiCall()
    with pytest.raises(KeyError):
        await call(StreamResponse(run, "vercel"))
    assert call.is_complete
    assert b"The server failed" in call.body
    assert b"password" not in call.body
    assert run.closed


async def test_a_defect_before_the_stream_is_the_frameworks() -> None:
    call = AsgiCall()
    with pytest.raises(KeyError):
        await call(StreamResponse(Run(KeyError("x")), "vercel"))
    assert call.messages == []


async def test_what_only_the_provider_knows_is_not_sent() -> None:
    """E4."""
    start = {"id": "m", "model": "x", "content": [], "container": {"id": "secret-container"}}
    frames = [
        sse({"type": "message_start", "message": start}, "message_start"),
        b'event: strange\ndata: {"type":"strange","token":"secret-token"}\n\n',
        *FRAMES[2:],
    ]
    for protocol in ("vercel", "agui", "jsonl"):
        call = await AsgiCall()(StreamResponse(stream_over(*frames), protocol))  # type: ignore[arg-type]
        assert call.status == 200
        assert b"secret" not in call.body, protocol


# --- pings ---


async def test_a_failure_after_a_ping_is_part_of_the_stream() -> None:
    refused = StreamError(ErrorInfo("overloaded", "busy", status=529))
    call = AsgiCall()
    run = Run(lambda: call.messages, refused)
    await call(StreamResponse(run, "vercel", ping=0.02))
    assert (call.status, call.is_complete) == (200, True)
    assert call.body.startswith(b": ")
    assert b'"errorText":"The model is overloaded' in call.body
    assert b'"kind":"overloaded"' in call.body


# --- the end ---


async def test_on_done_gets_the_response_before_the_last_byte() -> None:
    call = AsgiCall()
    seen: list[tuple[str, str, bool]] = []

    async def save(response: Response) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append((response.text, response.status, call.is_complete))

    await call(StreamResponse(complete(), "vercel", on_done=save))
    assert seen == [("Hello there", "completed", False)]
    assert call.is_complete


async def test_a_browser_that_leaves_cancels_and_still_calls_on_done() -> None:
    seen: list[str] = []

    async def save(response: Response) -> None:
        await anyio.sleep(0.01)
        seen.append(response.status)

    silent = stream_over(*FRAMES[:3], 100.0)
    app = StreamResponse(silent, "vercel", on_done=save)
    with anyio.fail_after(5):
        call = await AsgiCall(leave_after=2)(app)
    assert seen == ["cancelled"]
    assert not call.is_complete


async def test_a_cancelled_request_still_calls_on_done() -> None:
    seen: list[str] = []

    async def save(response: Response) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(response.status)

    silent = stream_over(*FRAMES[:3], 100.0)
    with anyio.move_on_after(0.02) as scope:
        await AsgiCall()(StreamResponse(silent, "vercel", on_done=save))
    assert scope.cancelled_caught
    assert seen == ["cancelled"]


async def test_a_failing_on_done_is_raised_after_the_last_byte() -> None:
    def save(response: Response) -> None:
        raise LookupError(response.status)

    call = AsgiCall()
    with pytest.raises(LookupError):
        await call(StreamResponse(complete(), "vercel", on_done=save))
    assert call.is_complete


async def test_a_send_that_fails_is_a_browser_that_left() -> None:
    seen: list[str] = []
    app = StreamResponse(
        stream_over(*FRAMES[:3], 0.0, *FRAMES[3:], 100.0),
        "jsonl",
        on_done=lambda response: seen.append(response.status),
    )

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            raise OSError("gone")

    async def receive() -> Any:
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        await app({"type": "http"}, receive, send)
    assert seen == ["cancelled"]


async def test_an_agent_is_sent_with_what_its_tools_say() -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"sunny in {city}"

    done: list[Response] = []
    async with loopback() as client:
        run = agent(client, "Weather?", [weather], MODEL)
        call = await AsgiCall()(StreamResponse(run, "vercel", on_done=done.append))
    parts = read_vercel(call.body)
    (output,) = [part["output"] for part in parts if part["type"] == "tool-output-available"]
    assert output.startswith("sunny in ")
    assert [part["type"] for part in parts].count("start-step") == 2
    assert "sunny in" in done[0].text


async def test_an_agent_that_is_refused_is_a_status() -> None:
    async with loopback(status=401, client=NO_RETRY) as client:
        call = await AsgiCall()(StreamResponse(agent(client, "hi", (), MODEL), "agui"))
    assert call.status == 502


async def test_a_run_is_one_message_with_its_outputs() -> None:
    first = echo_response(Prompt("Weather?", tools=[_TOOL]))
    (call_item,) = accumulate(first).function_calls
    run = Run(*first, call_item.output("21 °C"), *echo_response(Prompt("hi")))
    call = await AsgiCall()(StreamResponse(run, "vercel"))
    kinds = [part["type"] for part in read_vercel(call.body)]
    assert kinds.count("start-step") == 2
    assert "tool-output-available" in kinds
