"""The faults of the shared catalogue that concern HTTP: statuses, redirects, compression,
limits."""

from __future__ import annotations

import gzip
import json
from typing import Final

from tests.support.clients import KEY
from tests.support.fault_row import (
    FAILURE,
    OK,
    OVERLOAD,
    PAGE,
    QUICK,
    SMALL,
    bomb,
    complete,
    error,
    gzipped,
    refusal,
    stream,
)
from tests.support.response_bodies import (
    CALL,
    HELLO,
    HELLO_TEXT,
    MESSAGE,
    OPENED,
    OVERLOADED,
    START,
    arguments,
    block,
    error_body,
    stop,
    text,
)
from tests.support.scripted_server import (
    FIN,
    Repeat,
    chunk,
    complete_response,
    head,
)

LIMIT_ROWS: Final = (
    error(
        "blocks-1e6",
        [head(), chunk(START), *(chunk(block(n) + stop(n)) for n in range(400)), FIN],
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "args-1GiB",
        [head(), chunk(CALL), Repeat(chunk(arguments("9" * 4000)))],
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "line-1GiB",
        [head(), Repeat(chunk(b"data: " + b"x" * 16_000))],
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "lines-forever",
        [head(), Repeat(chunk(b"data: x\n" * 2000))],
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "text-forever",
        [head(), chunk(OPENED), Repeat(chunk(text("y" * 4000)))],
        kind="limit_exceeded",
        limits=SMALL,
    ),
)
COMPRESSED: Final = (
    complete("gzip", complete_response(gzipped(MESSAGE), content_encoding="gzip")),
    error(
        "gzip-bomb",
        complete_response(bomb(), content_encoding="gzip"),
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "gzip-twice",
        complete_response(gzip.compress(gzip.compress(MESSAGE)), content_encoding="gzip, gzip"),
        kind="malformed",
    ),
    error(
        "gzip-cut",
        complete_response(gzipped(HELLO)[:-20], content_encoding="gzip"),
        kind="truncated",
    ),
)
STATUSES: Final = (
    error(
        "401",
        refusal(
            "401 Unauthorized",
            "authentication_error",
            error_body("authentication_error", f"bad key {KEY}"),
        ),
        kind="authentication",
        sent=1,
        retry=QUICK,
    ),
    error(
        "403-html",
        refusal("403 Forbidden", "", PAGE, "text/html"),
        kind="permission",
        status=403,
        retry=QUICK,
        sent=1,
    ),
    error(
        "404",
        refusal("404 Not Found", "not_found_error"),
        kind="not_found",
        status=404,
        retry=QUICK,
        sent=1,
    ),
    complete("408", refusal("408 Request Timeout", "timeout_error"), OK, retry=QUICK, sent=2),
    complete("409", refusal("409 Conflict", "conflict_error"), OK, retry=QUICK, sent=2),
    error(
        "413",
        refusal("413 Too Large", "request_too_large"),
        kind="request_too_large",
        retry=QUICK,
        sent=1,
    ),
    complete(
        "429-s",
        refusal("429 Too Many", "rate_limit_error", retry_after="0.2"),
        OK,
        retry=QUICK,
        sent=2,
        also=lambda r, s, _: s.retried[0].retry_after == 0.2,
    ),
    complete(
        "429-date",
        refusal("429 Too Many", "rate_limit_error", retry_after="Sat, 21 Nov 2020 20:00:00 GMT"),
        OK,
        retry=QUICK,
        sent=2,
    ),
    complete(
        "429-ms",
        refusal("429 Too Many", "rate_limit_error", retry_after_ms="50"),
        OK,
        retry=QUICK,
        sent=2,
        also=lambda r, s, _: s.retried[0].retry_after == 0.05,
    ),
    error(
        "429-hour",
        refusal("429 Too Many", "rate_limit_error", retry_after="3600"),
        kind="rate_limited",
        retry=QUICK,
        sent=1,
        also=lambda r, *_: r.error is not None and r.error.retry_after == 3600,
    ),
    error(
        "429-quota",
        refusal(
            "429 Too Many",
            "",
            json.dumps(
                {
                    "error": {
                        "message": "You exceeded your current quota",
                        "type": "insufficient_quota",
                        "code": "insufficient_quota",
                    }
                }
            ).encode(),
        ),
        kind="quota_exhausted",
        wire="chat",
        retry=QUICK,
        sent=1,
    ),
    complete("500", FAILURE, OK, retry=QUICK, sent=2),
    complete(
        "502-html", refusal("502 Bad Gateway", "", PAGE, "text/html"), OK, retry=QUICK, sent=2
    ),
    complete("503", refusal("503 Unavailable", "overloaded_error"), OK, retry=QUICK, sent=2),
    complete("529", OVERLOAD, OK, retry=QUICK, sent=2),
    error("retry-storm", FAILURE, kind="server_error", retry=QUICK, sent=3),
    error(
        "fail-after-first-event",
        stream(HELLO, OVERLOADED),
        OK,
        kind="overloaded",
        retry=QUICK,
        sent=1,
        text=HELLO_TEXT,
    ),
)
REDIRECTS: Final = (
    error(
        "307-same",
        [b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"],
        kind="invalid_request",
        message="redirects to another path",
        retry=QUICK,
        sent=1,
    ),
    error(
        "redirect-http",
        [
            b"HTTP/1.1 301 Moved\r\nlocation: http://plain.example/v1/messages\r\n",
            b"content-length: 0\r\n\r\n",
        ],
        kind="invalid_request",
        message="http://plain.example",
        retry=QUICK,
        sent=1,
    ),
)
