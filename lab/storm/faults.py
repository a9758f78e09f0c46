"""What a server does to a response over HTTP/1.1: kinds of faults, and kinds that are none."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tests.support.fault_row import gzipped
from tests.support.response_bodies import LAST, PING, START, block, error_body, finish, stop, text
from tests.support.scripted_server import (
    END,
    FIN,
    HANG,
    RST,
    Repeat,
    Script,
    Step,
    Wait,
    chunk,
    complete_response,
    head,
)

FORGED: Final = "999999"
"""The tag of responses that answer no request."""


def text_of(tag: str) -> str:
    """The complete text of a response."""
    return f"tag {tag} begins, tag {tag} ends"


def frames_of(tag: str) -> list[bytes]:
    """The events of a complete response."""
    return [
        START,
        block(0),
        text(f"tag {tag} begins,"),
        text(f" tag {tag} ends"),
        stop(),
        finish(),
        LAST,
    ]


class Fault(NamedTuple):
    """A kind of response.

    completes: the response is complete, however its connection ends.
    ends_connection: no other response is on it.
    """

    script: Callable[[str], Script]
    completes: bool = False
    ends_connection: bool = False


def body_of(tag: str) -> bytes:
    """The body of a complete response."""
    return b"".join(frames_of(tag))


def chunks_of(tag: str, count: int | None = None) -> list[Step]:
    """Headers, and so many events in a chunk each."""
    return [head(), *(chunk(frame) for frame in frames_of(tag)[:count])]


def with_length(tag: str) -> list[Step]:
    body = body_of(tag)
    lines = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}"
    return [lines.encode() + b"\r\n\r\n" + body]


def without_length(tag: str) -> list[Step]:
    return [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + body_of(tag), FIN]


def in_small_chunks(tag: str) -> list[Step]:
    body = body_of(tag)
    parts = b"".join(chunk(body[start : start + 50]) for start in range(0, len(body), 50))
    return [head() + parts + END]


def between(tag: str, filler: Step) -> list[Step]:
    steps: list[Step] = [head()]
    for frame in frames_of(tag):
        steps += [filler, chunk(frame)]
    return [*steps, END]


def whole(tag: str) -> bytes:
    """A complete response in one packet."""
    return b"".join([head(), chunk(body_of(tag)), END])


COMPLETE: Final[dict[str, Callable[[str], Script]]] = {
    "whole": lambda tag: [whole(tag)],
    "a chunk for each event": lambda tag: [*chunks_of(tag), END],
    "small chunks": in_small_chunks,
    "content-length": with_length,
    "until the connection ends": without_length,
    "slow": lambda tag: between(tag, Wait(0.002)),
    "pings between": lambda tag: between(tag, chunk(PING)),
    "comments between": lambda tag: between(tag, chunk(b": x\n\n")),
    "gzip": lambda tag: [head(content_encoding="gzip"), chunk(gzipped(body_of(tag))), END],
    "deflate": lambda tag: [
        head(content_encoding="deflate"),
        chunk(zlib.compress(body_of(tag))),
        END,
    ],
    "trailers": lambda tag: [*chunks_of(tag), b"0\r\nx: y\r\n\r\n"],
    "chunk extensions": lambda tag: [
        head() + b"%x;a=b\r\n%s\r\n" % (len(body_of(tag)), body_of(tag)) + END
    ],
    "informational responses": lambda tag: [b"HTTP/1.1 103 Early Hints\r\n\r\n" * 3 + whole(tag)],
    "late headers": lambda tag: [Wait(0.01), whole(tag)],
    "another response behind it": lambda tag: [whole(tag) + whole(FORGED)],
    "half a response behind it": lambda tag: [whole(tag) + whole(FORGED)[:90]],
    "left open": lambda tag: [*chunks_of(tag), HANG],
    "reset behind the end": lambda tag: [*chunks_of(tag), Wait(0.005), RST],
    "closed behind the end": lambda tag: [whole(tag), FIN],
}
"""Responses that are complete."""


def json_response(status: str, kind: str) -> list[Step]:
    return complete_response(error_body(kind), status, "application/json")


BROKEN: Final[dict[str, Callable[[str], Script]]] = {
    "closed before headers": lambda tag: [FIN],
    "reset before headers": lambda tag: [RST],
    "silent before headers": lambda tag: [HANG],
    "closed within headers": lambda tag: [head()[:30], FIN],
    "reset within headers": lambda tag: [head()[:30], RST],
    "silent within headers": lambda tag: [head()[:30], HANG],
    "closed within a chunk": lambda tag: [head(), chunk(body_of(tag))[:200], FIN],
    "reset within a chunk": lambda tag: [head(), chunk(body_of(tag))[:200], RST],
    "short of its content-length": lambda tag: [b"".join(_bytes(with_length(tag)))[:-40], FIN],
    "ends within an event": lambda tag: [head(), chunk(body_of(tag)[:-150]), END],
    "no HTTP": lambda tag: [b"SSH-2.0-OpenSSH_9.9\r\n\r\n", FIN],
    "bad chunk size": lambda tag: [*chunks_of(tag, 3), b"zz\r\n", FIN],
    "huge headers": lambda tag: [head(x="y" * 200_000), END],
    "broken gzip": lambda tag: [head(content_encoding="gzip"), chunk(b"\x1f\x8b" + b"x" * 99), END],
    "half a gzip": lambda tag: [
        head(content_encoding="gzip"),
        chunk(gzip.compress(body_of(tag))[:-30]),
        END,
    ],
    "gzip that unpacks to nothing": lambda tag: [
        head(content_encoding="gzip"),
        Repeat(chunk(gzip.compress(b"")), 0.2),
    ],
    "endless pings": lambda tag: [*chunks_of(tag, 3), Repeat(chunk(PING), 0.2)],
    "endless comments": lambda tag: [*chunks_of(tag, 3), Repeat(chunk(b": x\n\n"), 0.2)],
    "endless chunk extension": lambda tag: [*chunks_of(tag, 3), b"5;", Repeat(b"x", 0.2)],
    "endless trailers": lambda tag: [*chunks_of(tag, 3), b"0\r\n", Repeat(b"x: y\r\n", 0.2)],
    "broken JSON": lambda tag: [*chunks_of(tag, 3), chunk(b"data: {oops\n\n"), END],
    "an error event": lambda tag: [
        *chunks_of(tag, 3),
        chunk(b"event: error\ndata: " + error_body("overloaded_error") + b"\n\n"),
        END,
    ],
    "a page": lambda tag: complete_response(b"<html>", content_type="text/html"),
    "an error with status 200": lambda tag: json_response("200 OK", "api_error"),
    "no body": lambda tag: [head(), END],
    "no content": lambda tag: [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "comments only": lambda tag: [head(), chunk(b": x\n\n" * 3), END],
    "a redirect": lambda tag: [
        b"HTTP/1.1 308 x\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
    ],
    "an error cut short": lambda tag: [head("500 x", "application/json"), chunk(b'{"er'), FIN],
    "another wire": lambda tag: complete_response(json.dumps({"choices": []}).encode()),
    **{
        f"status {status}": lambda tag, status=status: json_response(f"{status} x", "api_error")  # type: ignore[misc]
        for status in (400, 401, 403, 404, 413, 429, 500, 503, 529)
    },
}
"""Responses that are no complete ones."""

ENDS: Final[dict[str, Sequence[Step]]] = {
    "ends": [END],
    "closed": [FIN],
    "reset": [RST],
    "silent": [HANG],
}


def cut(count: int, end: Sequence[Step]) -> Callable[[str], Script]:
    """A response that stops after so many events."""
    return lambda tag: [*chunks_of(tag, count), *end]


def _bytes(steps: Sequence[Step]) -> list[bytes]:
    return [step for step in steps if isinstance(step, bytes)]


def _faults() -> dict[str, Fault]:
    faults = {name: Fault(script, completes=True) for name, script in COMPLETE.items()}
    for name, script in BROKEN.items():
        faults[name] = Fault(script)
    for count in (1, 2, 3, 4, 5, 6):
        for name, end in ENDS.items():
            faults[f"{name} after {count} events"] = Fault(cut(count, end))
    return faults


FAULTS: Final = _faults()
"""Every kind by name."""
