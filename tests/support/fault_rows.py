"""The faults of the shared catalogue that a script makes: actions of the server, and how the stream
ends."""

from __future__ import annotations

from typing import Final

from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import FunctionCall, Opaque
from tests.support.fault_row import (
    DRIP,
    IDLE,
    PAGE,
    SHORT,
    closing,
    complete,
    deep,
    error,
    stream,
    the_call,
)
from tests.support.fault_rows_http import COMPRESSED, LIMIT_ROWS, REDIRECTS, STATUSES
from tests.support.response_bodies import (
    CALL,
    CHAT,
    COMPLETE_BODY,
    CREATED,
    DONE,
    HELLO,
    HELLO_TEXT,
    LAST,
    MESSAGE,
    OPENED,
    OVERLOADED,
    PING,
    START,
    arguments,
    aws,
    block,
    calls,
    converse,
    error_body,
    finish,
    named,
    part,
    response_end,
    sse,
    stop,
    text,
)
from tests.support.scripted_server import (
    FIN,
    HANG,
    RST,
    Repeat,
    Wait,
    chunk,
    complete_response,
    head,
)

TOOL_START: Final = {
    "index": 0,
    "id": "call_a",
    "type": "function",
    "function": {"name": "get_weather", "arguments": ""},
}
CONNECTION: Final = (
    error("rst-before-headers", [RST], kind="connection", retryable=True),
    error("silence-before-headers", [HANG], kind="stalled", phase="first_byte", deadlines=SHORT),
    error(
        "headers-drip",
        [b"HTTP/1.1 200 OK\r\n", Repeat(b"x", 0.05)],
        kind="stalled",
        phase="headers",
        deadlines=DRIP,
    ),
    error(
        "headers-100kB",
        [b"HTTP/1.1 200 OK\r\nx-long: " + b"a" * 150_000 + b"\r\n\r\n", HANG],
        kind="malformed",
    ),
)
TRUNCATED: Final = (
    error("eof-no-terminal-clean", stream(HELLO), kind="truncated", text=HELLO_TEXT),
    error("eof-no-terminal-close", closing(HELLO), kind="truncated", text=HELLO_TEXT),
    error(
        "eof-all-but-terminal", stream(HELLO, stop(), finish()), kind="truncated", text=HELLO_TEXT
    ),
    error("eof-mid-event", stream(HELLO, text("more")[:-20]), kind="truncated", text=HELLO_TEXT),
    error(
        "eof-mid-chunk",
        [head(), chunk(HELLO), b"400\r\ndata: {", FIN],
        kind="truncated",
        text=HELLO_TEXT,
    ),
    error("rst-mid", [head(), chunk(HELLO), Wait(0.05), RST], kind="truncated", text=HELLO_TEXT),
    complete(
        "no-final-blank", stream(HELLO, stop(), finish(), LAST[:-2]), notices=("end_inferred",)
    ),
    complete("done-missing", stream(CHAT.removesuffix(DONE)), wire="chat"),
    complete(
        "finish-missing",
        stream(part({"content": "Hello"}), part({"content": " there"}), DONE),
        wire="chat",
    ),
)
OTHER_BODIES: Final = (
    error("empty-200", stream(), kind="malformed"),
    error("only-comments", stream(b": ping\n\n", b": ping\n\n"), kind="malformed"),
    error(
        "html-200",
        complete_response(PAGE, content_type="text/html"),
        kind="malformed",
        message="text/html",
        also=lambda r, s, _: "Just a" in str(r.error),
    ),
    error(
        "json-200",
        complete_response(error_body("overloaded_error"), content_type="application/json"),
        kind="overloaded",
        retryable=True,
    ),
    complete("json-200-ok", complete_response(COMPLETE_BODY, content_type="application/json")),
    complete("ct-missing", complete_response(MESSAGE, content_type=None)),
    complete(
        "ct-case", complete_response(MESSAGE, content_type="Text/Event-Stream; Charset=UTF-8")
    ),
    complete(
        "ct-charset-1252",
        complete_response(
            OPENED + text("Grüße ✓") + stop() + finish() + LAST,
            content_type="text/event-stream; charset=windows-1252",
        ),
        text="Grüße ✓",
    ),
)
IN_BAND: Final = (
    error(
        "error-event", stream(HELLO, OVERLOADED), kind="overloaded", text=HELLO_TEXT, retryable=True
    ),
    error("error-event-first", stream(OVERLOADED), kind="overloaded", text="", retryable=True),
    error(
        "error-in-chunk",
        stream(
            part({"content": HELLO_TEXT}), sse({"error": {"message": "slow down", "code": 429}})
        ),
        kind="rate_limited",
        wire="chat",
    ),
    error(
        "response-failed",
        stream(CREATED, response_end("failed", error={"code": "server_error", "message": "oh"})),
        kind="server_error",
        wire="responses",
    ),
    error(
        "aws-exception",
        stream(
            converse("messageStart", role="assistant"),
            aws(
                {"message": "slow"}, message_type="exception", exception_type="throttlingException"
            ),
            wire="converse",
        ),
        kind="rate_limited",
        wire="converse",
    ),
)
PAYLOADS: Final = (
    error(
        "bad-json",
        stream(HELLO, b'data: {"type": "content_block_delta", oops\n\n', LAST),
        kind="malformed",
        text=HELLO_TEXT,
    ),
    error("json-scalar", stream(HELLO, b"data: 1\n\n"), kind="malformed"),
    complete("unknown-event", stream(HELLO, named("brand_new", a=1), stop(), finish(), LAST)),
    complete("unknown-fields", stream(MESSAGE.replace(b'{"type"', b'{"new": {"x": [1]}, "type"'))),
    complete(
        "unknown-block",
        stream(HELLO, stop(), block(1, "hologram", depth=3), stop(1), finish(), LAST),
        also=lambda r, *_: any(
            isinstance(item, Opaque) and item.kind == "hologram" for item in r.items
        ),
    ),
    complete(
        "unknown-delta",
        stream(
            HELLO,
            named("content_block_delta", index=0, delta={"type": "new_delta"}),
            stop(),
            finish(),
            LAST,
        ),
        notices=("unknown_delta",),
    ),
    error("deep-json", stream(HELLO, deep(100_000)), kind="malformed"),
    error(
        "huge-int",
        stream(
            START,
            named("content_block_delta", index=0, delta=0).replace(
                b'"index": 0', b'"index": ' + b"9" * 5000
            ),
        ),
        kind="malformed",
    ),
)
STALLS: Final = (
    error(
        "ping-forever",
        [head(), chunk(HELLO), Repeat(chunk(b": ping\n\n"), 0.02)],
        kind="stalled",
        phase="idle",
        deadlines=IDLE,
        text=HELLO_TEXT,
    ),
    error(
        "ping-event-forever",
        [head(), chunk(HELLO), Repeat(chunk(PING), 0.02)],
        kind="stalled",
        phase="idle",
        deadlines=IDLE,
        text=HELLO_TEXT,
    ),
    error(
        "stall",
        [head(), chunk(HELLO), HANG],
        kind="stalled",
        phase="idle",
        deadlines=IDLE,
        text=HELLO_TEXT,
    ),
    error(
        "drip",
        [head(), Repeat(chunk(text("a")), 0.02)],
        kind="deadline",
        phase="total",
        deadlines=Deadlines(total=0.3),
    ),
)
STATES: Final = (
    complete("dup-terminal", stream(MESSAGE, LAST), also=lambda r, *_: r.status == "completed"),
    complete("after-terminal", stream(CHAT, part({"content": "more"})), wire="chat"),
    error("dup-start", stream(HELLO, block(0)), kind="malformed", text=HELLO_TEXT),
    error("delta-no-start", stream(START, text("lost")), kind="malformed"),
    error(
        "delta-after-stop", stream(HELLO, stop(), text("late")), kind="malformed", text=HELLO_TEXT
    ),
    # The stop alone is passed through; it is the missing end that fails the response.
    error("stop-no-start", stream(START, stop(3)), kind="truncated"),
    complete(
        "start-no-stop",
        stream(HELLO, finish(), LAST),
        also=lambda r, *_: r.items[0].status == "incomplete",
    ),
    complete(
        "interleaved",
        stream(
            START,
            block(0),
            block(1),
            text("Hel"),
            text("B", 1),
            text("lo there"),
            stop(1),
            stop(),
            finish(),
            LAST,
        ),
        text=HELLO_TEXT + "B",
    ),
    complete(
        "index-jump",
        stream(
            START,
            block(0),
            text("Hello"),
            stop(),
            block(7),
            text(" there", 7),
            stop(7),
            finish(),
            LAST,
        ),
    ),
    error("index-2e53", stream(START, block(2**53 + 1)), kind="malformed"),
    error("index-negative", stream(START, block(-1)), kind="malformed"),
    error("index-string", stream(HELLO, text("x", "0")), kind="malformed"),
    error("index-null", stream(HELLO, text("x", None)), kind="malformed"),
    error("index-bool", stream(HELLO, text("x", True)), kind="malformed"),
)
TOOLS: Final = (
    complete(
        "tool-id-missing",
        stream(
            calls({"index": 0, "function": {"name": "f", "arguments": "{}"}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: the_call(r).call_id.startswith("call_"),
    ),
    complete(
        "tool-name-late",
        stream(
            calls({"index": 0, "id": "a"}),
            calls({"index": 0, "function": {"name": "f", "arguments": "{}"}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: the_call(r).name == "f",
    ),
    complete(
        "tool-args-object",
        stream(
            calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: the_call(r).parsed() == {"x": 1},
    ),
    complete(
        "tool-args-null",
        stream(
            calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: the_call(r).parsed() == {},
    ),
    complete(
        "tool-args-cut",
        stream(CALL, arguments('{"city": "Par'), stop(), finish("max_tokens"), LAST),
        text="",
        also=lambda r, *_: (
            r.status == "incomplete" and not r.calls and the_call(r).arguments == '{"city": "Par'
        ),
    ),
    complete(
        "tool-same-index",
        stream(
            calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}),
            calls({"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: (
            [call.name for call in r.items if isinstance(call, FunctionCall)] == ["f", "g"]
        ),
    ),
)
ROWS: Final = (
    *CONNECTION,
    *TRUNCATED,
    *OTHER_BODIES,
    *IN_BAND,
    *PAYLOADS,
    *STALLS,
    *STATES,
    *TOOLS,
    *LIMIT_ROWS,
    *COMPRESSED,
    *STATUSES,
    *REDIRECTS,
)
