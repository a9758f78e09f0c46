"""Responses in the forms in which people have them, made from this repository's recordings.

Each is a body that a tool, a log or a copy left: not as a server sent it.
"""

from __future__ import annotations

import base64
import csv
import gzip
import importlib
import io
import json
import zlib
from typing import Any, Final

import streamlib
from streamlib.recording import dump_events
from streamlib.transport.content_encoding import ZSTD
from streamlib.wires.encoders import encode_body
from streamlib_parsers.response import Response
from tests.support.inspections import body_of

CHAT: Final = body_of("chat/llama-tool.sse")
MESSAGES: Final = body_of("messages/llama-thinking.sse")
RESPONSES: Final = body_of("responses/aimock-tool.sse")
GEMINI: Final = body_of("gemini/aimock-tool.sse")
OLLAMA: Final = body_of("ollama/aimock-text.ndjson")
CONVERSE: Final = body_of("converse/aimock-text.eventstream")
URL: Final = "https://api.openai.com/v1/chat/completions"


def response_of(body: bytes, wire_api: streamlib.WireApi) -> Response:
    """The response in a stream."""
    parse = streamlib.parser(wire_api)
    return streamlib.accumulate([*parse.feed(body), *parse.close()])


def payloads_of(body: bytes) -> list[bytes]:
    """The JSON of each event of a stream, without `[DONE]`."""
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
    return [line for line in lines if line != b"[DONE]"]


BODY: Final = encode_body("chat", response_of(CHAT, "chat"))
MESSAGES_BODY: Final = encode_body("messages", response_of(MESSAGES, "messages"))


def headers(length: int | None = None, more: str = "") -> bytes:
    """What `curl -i` writes in front of a body."""
    lines = ["HTTP/1.1 200 OK", "content-type: text/event-stream", "x-request-id: req_1"]
    if length is not None:
        lines.append(f"content-length: {length}")
    return "\r\n".join([*lines, *filter(None, [more]), "", ""]).encode()


def chunked(body: bytes, size: int = 700) -> bytes:
    """The framing of HTTP/1.1, as `curl --raw` leaves it."""
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return framed + b"0\r\n\r\n"


def entry(body: str, url: str = URL, **content: Any) -> dict[str, Any]:
    """An entry of a HAR file."""
    return {
        "startedDateTime": "2026-11-28T10:00:00.000Z",
        "time": 1200.5,
        "request": {"method": "POST", "url": url + "?key=secret", "headers": []},
        "response": {
            "status": 200,
            "headers": [{"name": "Content-Type", "value": "text/event-stream"}],
            "content": {"mimeType": "text/event-stream", "text": body} | content,
        },
    }


def har(*entries: dict[str, Any]) -> bytes:
    """A HAR file, as a browser exports it: indented."""
    log = {"log": {"version": "1.2", "creator": {"name": "Chrome"}, "entries": list(entries)}}
    return json.dumps(log, indent=2).encode()


def text(body: bytes) -> str:
    """A body as text."""
    return body.decode()


def json_line(**fields: Any) -> str:
    """A line of a JSON log."""
    return json.dumps({"time": "2026-11-28T10:00:00Z", "level": "debug", **fields}) + "\n"


def log(line: str) -> str:
    """A line of Python's logging."""
    return f"2026-11-28 10:00:00,123 DEBUG app.client: {line}\n"


def table(body: str, delimiter: str = ",") -> bytes:
    """A table that a log service exported, with a body in its last cell but one."""
    written = io.StringIO()
    rows = csv.writer(written, delimiter=delimiter)
    rows.writerow(["time", "host", "message", "status"])
    rows.writerow(["2026-11-28T10:00:00Z", "web, 1", body, 200])
    return written.getvalue().encode("utf-8", "surrogateescape")


def sse_messages(body: bytes) -> list[dict[str, Any]]:
    """Chrome's own field of a HAR entry, where it kept the events and no body."""
    started = 1795860000.0  # 2026-11-28T10:00:00Z
    payloads = [*payloads_of(body), b"[DONE]"]
    return [
        {"time": started + number / 10, "eventName": "", "eventId": "", "data": text(payload)}
        for number, payload in enumerate(payloads, 1)
    ]


_PAGE_FILE: Final = entry("<svg/>", "https://chat.example/logo.svg", mimeType="image/svg+xml")
_brotli: Final[Any] = importlib.import_module("brotli")
_zstd: Final[Any] = importlib.import_module(ZSTD)
_PAYLOADS: Final = [text(payload) for payload in payloads_of(CHAT)]
_MITM: Final = (
    f"127.0.0.1:5220: POST {URL} HTTP/2.0\n    host: api.openai.com\n    authorization: Bearer k\n"
    '\n    {"model":"gpt-5","stream":true}\n\n << HTTP/2.0 200 OK 2.1k\n'
    "    content-type: text/event-stream\n\n"
    + "".join(f"    {line}\n" if line else "\n" for line in text(CHAT).splitlines())
)
_VERBOSE: Final = (
    "* Connected to api.openai.com port 443\n> POST /v1/chat/completions HTTP/2\n"
    "> Host: api.openai.com\n> authorization: Bearer k\n>\n{ [5 bytes data]\n< HTTP/2 200 \n"
    "< content-type: text/event-stream\n< \n{ [812 bytes data]\n"
)

CHAT_CAPTURES: Final[dict[str, bytes]] = {
    "as it is": CHAT,
    "with Windows line ends": CHAT.replace(b"\n", b"\r\n"),
    "UTF-8 with a byte order mark": b"\xef\xbb\xbf" + CHAT,
    "UTF-16 with a byte order mark": text(CHAT).encode("utf-16"),
    "UTF-16, little end first": text(CHAT).encode("utf-16-le"),
    "UTF-16, big end first": text(CHAT).encode("utf-16-be"),
    "gzip": gzip.compress(CHAT),
    "a cell of a table": table(text(CHAT)),
    "zlib": zlib.compress(CHAT),
    "Brotli": _brotli.compress(CHAT),
    "Zstandard": _zstd.compress(CHAT),
    "gzip twice": gzip.compress(gzip.compress(CHAT)),
    "curl -i": headers() + CHAT,
    "curl -i with line feeds": headers().replace(b"\r", b"") + CHAT,
    "curl -i with its length": headers(len(CHAT)) + CHAT,
    "curl -i after 100 and a redirect": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 308 Permanent Redirect\r\nlocation: /v1\r\n\r\n"
        + headers()
        + CHAT
    ),
    "curl -i through a proxy": b"HTTP/1.1 200 Connection established\r\n\r\n" + headers() + CHAT,
    "curl -i of a compressed body": (headers(more="content-encoding: gzip") + gzip.compress(CHAT)),
    "http -v, and what Wireshark saves": (
        b'POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\n\r\n{"model":"gpt-5"}'
        + headers(more="transfer-encoding: chunked")
        + chunked(CHAT)
    ),
    "curl -v": _VERBOSE.encode() + CHAT + b"* Connection #0 left intact\n",
    "curl --raw": chunked(CHAT),
    "curl --raw -i": headers(more="transfer-encoding: chunked") + chunked(CHAT),
    "mitmdump": _MITM.encode(),
    "HAR": har(_PAGE_FILE, entry(text(CHAT))),
    "HAR with a byte order mark": b"\xef\xbb\xbf" + har(entry(text(CHAT))),
    "HAR, compressed": gzip.compress(har(entry(text(CHAT)))),
    "HAR with base64": har(entry(base64.b64encode(CHAT).decode(), encoding="base64")),
    "HAR with base64 of gzip": har(
        entry(base64.b64encode(gzip.compress(CHAT)).decode(), encoding="base64")
    ),
    "HAR without a body, with Chrome's events": har(
        entry("") | {"_eventSourceMessages": sse_messages(CHAT)}
    ),
    "the table of DevTools": "".join(
        f"\tmessage\t{payload}\t10:22:31.{number:03}\n" for number, payload in enumerate(_PAYLOADS)
    ).encode(),
    "without its blank lines": CHAT.replace(b"\n\n", b"\n"),
    "indented": b"".join(b"    " + line + b"\n" for line in CHAT.splitlines()),
    "objects without data:": "\n".join(_PAYLOADS).encode(),
    "a JSON list of chunks": f"[{', '.join(_PAYLOADS)}]".encode(),
    "a JSON list of chunks, cut": f"[{', '.join(_PAYLOADS)}".encode(),
    "a JSON list of texts": json.dumps([text(CHAT[:300]), text(CHAT[300:])]).encode(),
    "a JSON string": json.dumps(text(CHAT)).encode(),
    "a Python bytes literal": repr(CHAT).encode(),
    "a Python string": repr(text(CHAT)).encode(),
    "a list of Python bytes": repr([CHAT[:99], CHAT[99:500], CHAT[500:]]).encode(),
    "a literal on each line": "".join(
        f"{CHAT[start : start + 200]!r}\n" for start in range(0, len(CHAT), 200)
    ).encode(),
    "Python logging of a literal": (
        log("sending") + log(f"received {CHAT!r} in 1.2 s") + log("done")
    ).encode(),
    "Python logging of a literal for each frame": "".join(
        log(f"chunk {payload!r}") for payload in [*payloads_of(CHAT), b"[DONE]"]
    ).encode(),
    "Python logging of a literal for each chunk": "".join(
        log(f"chunk {start} {CHAT[start : start + 300]!r}") for start in range(0, len(CHAT), 300)
    ).encode(),
    "Python logging of a dict for each frame": "".join(
        log(f"got {json.loads(payload)!r}") for payload in _PAYLOADS
    ).encode(),
    "Python logging of a line each": "".join(
        log(f"chunk: {payload}") for payload in [*_PAYLOADS, "[DONE]"]
    ).encode(),
    "a log line with escaped events": log("body: " + json.dumps(text(CHAT)).strip('"')).encode(),
    "a JSON log with the body": (
        json_line(msg="sending", request_body={"model": "m", "stream": True})
        + json_line(msg="received", response_body=text(CHAT))
    ).encode(),
    "a JSON log with a chunk a line": "".join(
        json_line(chunk=text(CHAT[start : start + 333])) for start in range(0, len(CHAT), 333)
    ).encode(),
    "a JSON log with an object a line": "".join(
        json_line(event={"chunk": json.loads(payload)}) for payload in _PAYLOADS
    ).encode(),
    "a JSON log with an object in a string a line": "".join(
        json_line(msg=payload) for payload in [*_PAYLOADS, "[DONE]"]
    ).encode(),
    "a JSON log with words and an object a line": "".join(
        json_line(message=f"got {payload}") for payload in _PAYLOADS
    ).encode(),
    "a JSON list of objects in strings": json.dumps([*_PAYLOADS, "[DONE]"]).encode(),
    "a log of Docker": "".join(
        json.dumps({"log": line + "\n", "stream": "stdout"}) + "\n"
        for line in text(CHAT).split("\n")
    ).encode(),
    "a log of Docker without blank lines": "".join(
        json.dumps({"log": line + "\n", "stream": "stdout"}) + "\n"
        for line in text(CHAT).split("\n")
        if line
    ).encode(),
    "a JSON list of lines": json.dumps(text(CHAT).split("\n")).encode(),
    "a log in colour": b"".join(
        b"\x1b[32mDEBUG\x1b[0m got \x1b[1m" + payload + b"\x1b[0m\n"
        for payload in payloads_of(CHAT)
    ),
    "base64": base64.encodebytes(CHAT),
    "an answer of AWS Lambda": json.dumps(
        {"statusCode": 200, "isBase64Encoded": True, "body": base64.b64encode(CHAT).decode()}
    ).encode(),
    "Markdown": b"It stopped here:\n\n```\n" + CHAT + b"```\n\nWhy?\n",
}
"""Name -> the response of `CHAT` in another form."""

BODY_CAPTURES: Final[dict[str, bytes]] = {
    "a body": BODY,
    "a body, indented": json.dumps(json.loads(BODY), indent=4).encode(),
    "a cell of a table": table(text(BODY)),
    "a cell of a table with semicolons": table(text(BODY), ";"),
    "a cell of an indented body, with tabs": table(json.dumps(json.loads(BODY), indent=2), "\t"),
    "a body in a string": json.dumps(text(BODY)).encode(),
    "a body in a string in a string": json.dumps(json.dumps(text(BODY))).encode(),
    "a body with escaped quotes": text(BODY).replace("\\", "\\\\").replace('"', '\\"').encode(),
    "a dict that Python printed": repr(json.loads(BODY)).encode(),
    "a log line with a dict that Python printed": log(f"got {json.loads(BODY)!r} (200)").encode(),
    "a log line with a body": log(f"response {text(BODY)} (200)").encode(),
    "a log line with an indented body": log(
        "response " + json.dumps(json.loads(BODY), indent=2)
    ).encode(),
    "a log of nginx": (
        b'10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "POST /v1/chat/completions HTTP/1.1" 200 "'
        + BODY.replace(b"\\", b"\\x5C").replace(b'"', b"\\x22")
        + b'"\n'
    ),
    "a JSON log with an object": json_line(response=json.loads(BODY), ms=12).encode(),
    "a HAR": har(entry(text(BODY), mimeType="application/json")),
}
"""Name -> the response of `BODY` in another form."""

EVENT_LOG: Final = dump_events(streamlib.parse_body("chat", BODY))
"""The same as a log of streamlib's own events."""
