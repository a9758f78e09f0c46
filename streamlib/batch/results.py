"""The results of a batch, row by row: whatever a line holds becomes a row with its id."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec
from msgspec import Struct

from streamlib.request.build import Request
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.protocol import parse_body
from streamlib_parsers.response import Response

ID_KEYS: Final = {"custom_id": "openai", "key": "google", "recordId": "bedrock"}
"""Key of the id -> the provider whose results have it; Mistral's are written as OpenAI's."""

SHAPES: Final = {"modelInput": "bedrock", "request": "google", "response": "openai"}
"""Key of a line without an id -> the provider that writes such lines."""

LINE_BYTES: Final = 256_000_000
"""Bytes that a line may have: no provider takes a larger file for a whole batch of requests."""

BEGINNING: Final = re.compile(
    rb'\s*\{\s*(?:"id"\s*:\s*"[^"]*"\s*,\s*)?"(?:custom_id|key|recordId)"\s*:\s*'
    rb'("(?:[^"\\]|\\.)*")'
)
"""The beginning of a line, up to its id: what is left of one that was cut."""

NOT_RUN: Final[Mapping[str, ErrorKind]] = {
    "expired": "deadline",
    "batch_expired": "deadline",
    "canceled": "cancelled",
    "cancelled": "cancelled",
    "batch_cancelled": "cancelled",
}
"""Words for a request that the provider did not run -> the kind of its error. It can be sent again:
nothing was generated."""


GRPC_CODES: Final[Mapping[int, int]] = {4: 504, 8: 429, 13: 500, 14: 503}
"""Number of an error in gRPC -> its HTTP status, for those that can be sent again."""


class BatchRow(Struct, frozen=True, omit_defaults=True):
    """What became of one prompt.

    Attributes:
        id: the id of the prompt; None where the line that should hold it cannot be read.
        response: the response; None where there is none.
        error: why there is no complete response; `retryable` says whether to ask again.
        line: number of the line in the file, from 1; None outside a file.
        request: digest of the request, in rows of `map_concurrent`.
        times: seconds and counts of `Measure`, in rows of `map_concurrent`.
        price: by the function that the caller gave, in rows of `map_concurrent`.
    """

    id: str | None
    response: Response | None = None
    error: ErrorInfo | None = None
    line: int | None = None
    request: str | None = None
    times: dict[str, float | int | None] = {}
    price: float | None = None


def read_batch(
    lines: str | os.PathLike[str] | bytes | Iterable[str | bytes | JsonObject],
    *,
    provider: str | None = None,
    sent: Mapping[str, Request] | None = None,
) -> Iterator[BatchRow]:
    """The rows of a batch's results, as they are read: memory does not grow with the file. A file
    that `map_concurrent` has written is read, too.

    Results have any order, and OpenAI has two files of them: read both. A line that cannot be read
    is a row with an error, whose `line` says where it is. Send again what is `error.retryable`.

    Args:
        lines: a path, the bytes of a file or its text, or its lines; dicts of an SDK too.
        provider: whose results these are; None: recognized by each line. Mistral's look like
            OpenAI's.
        sent: `BatchLines.requests`, so that calls have the names of your tools, and items their
            origin.

    Raises:
        OSError: the file cannot be read.
        ValueError: no form of batches is known for `provider`.
    """
    if provider is not None and provider not in _RESULTS:
        known = ", ".join(sorted(_RESULTS))
        raise ValueError(f"no form of batches is known for {provider!r}, only for {known}")
    seen: dict[str, int] = {}
    for number, line in enumerate(_lines(lines), start=1):
        if isinstance(line, (str, bytes)) and not line.strip():
            continue
        row = _row(line, number, provider, sent or {})
        if row.id is not None and row.id in seen:
            message = f"line {number}: the id {row.id!r} is that of line {seen[row.id]}, too"
            row = BatchRow(row.id, error=ErrorInfo("malformed", message), line=number)
        elif row.id is not None:
            seen[row.id] = number
        yield row


def _lines(
    lines: str | os.PathLike[str] | bytes | Iterable[str | bytes | JsonObject],
) -> Iterator[str | bytes | JsonObject]:
    if isinstance(lines, str) and lines.lstrip().startswith("{"):
        lines = lines.encode(errors="surrogatepass")
    if isinstance(lines, bytes):
        yield from _file_lines(io.BytesIO(lines))
    elif isinstance(lines, (str, os.PathLike)):
        with open(lines, "rb") as file:
            yield from _file_lines(file)
    else:
        yield from lines


def _file_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is too long only the beginning, which is no JSON."""
    while line := file.readline(LINE_BYTES):
        yield line
        while len(line) == LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(LINE_BYTES)


def _row(
    line: str | bytes | JsonObject, number: int, provider: str | None, sent: Mapping[str, Request]
) -> BatchRow:
    """The row of one line."""
    batch_id: str | None = None
    try:
        batch_id = _id_of_cut(line)
        value = _value(line)
        if isinstance(value.get("request"), str):
            return msgspec.structs.replace(_kept_row(value), line=number)
        batch_id, usual = _id(value)
        if provider is None:
            provider = "anthropic" if "result" in value else usual
        result = _RESULTS[provider](value)
    except _Unreadable as error:
        return BatchRow(
            batch_id, error=ErrorInfo("malformed", f"line {number}: {error}"), line=number
        )
    if isinstance(result, ErrorInfo):
        return BatchRow(batch_id, error=result, line=number)
    request = None if batch_id is None else sent.get(batch_id)
    response = _response(result, request)
    if response.error is not None and not response.items:
        return BatchRow(batch_id, error=response.error, line=number)
    return BatchRow(batch_id, response, response.error, number)


def _kept_row(value: JsonObject) -> BatchRow:
    """A row that `map_concurrent` wrote: its `request` is a digest, that of Google an object."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value), type=BatchRow)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _Unreadable(f"no row of map_concurrent: {error}") from None


def _value(line: str | bytes | JsonObject) -> JsonObject:
    if isinstance(line, dict):
        return line
    try:
        return _object(msgspec.json.decode(line), "the line")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _Unreadable(f"no JSON, or only its beginning: {error}") from None


def _id_of_cut(line: str | bytes | JsonObject) -> str | None:
    """The id at the beginning of a line, which may have no end."""
    if isinstance(line, dict):
        return None
    text = line.encode(errors="replace") if isinstance(line, str) else line
    beginning = BEGINNING.match(text)
    if beginning is None:
        return None
    try:
        return msgspec.json.decode(beginning[1], type=str)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _id(value: JsonObject) -> tuple[str | None, str]:
    """The id of a line, None where it has none, and the provider that writes such lines."""
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("key"), str):
        return metadata["key"], "google"  # of a batch whose requests were not in a file
    for key, provider in ID_KEYS.items():
        batch_id = value.get(key)
        if isinstance(batch_id, str):
            return batch_id, provider
    # Ids are optional on Bedrock and Mistral, and Vertex has none.
    for key, provider in SHAPES.items():
        if key in value:
            return None, provider
    raise _Unreadable(f"none of the keys {', '.join(ID_KEYS)} with an id")


def _response(result: _LineBody, request: Request | None) -> Response:
    """The response in the body of a line."""
    wire_api = result.wire_api
    options: dict[str, Any] = {}
    if request is not None:
        wire_api = request.wire_api
        options = {
            "origin": request.origin,
            "names": request.names,
            "namespaces": request.namespaces,
        }
    body = msgspec.json.encode(result.body)
    events = parse_body(wire_api, body, status=result.status, headers=result.headers, **options)
    return accumulate(events)


# --- one function for each form of a line ---


class _Unreadable(Exception):
    """A line is not of the form that its provider writes."""


class _LineBody(NamedTuple):
    """What a line holds of the response: a body as the provider sends it without a batch."""

    wire_api: WireApi
    body: JsonObject
    status: int | None = None
    headers: dict[str, str] = {}  # noqa: RUF012  # nobody changes it


def _object(value: Any, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise _Unreadable(f"{what} is no JSON object")
    return value


def _not_run(code: str, message: str = "") -> ErrorInfo:
    kind = NOT_RUN[code]
    text = message or f"the batch {code.removeprefix('batch_')} before this request was run"
    return ErrorInfo(kind, text, retryable=True, code=code)


def _anthropic(line: JsonObject) -> _LineBody | ErrorInfo:
    result = _object(line.get("result"), "result")
    kind = result.get("type")
    if kind == "succeeded":
        return _LineBody("messages", _object(result.get("message"), "result.message"))
    if kind == "errored":
        error = _object(result.get("error"), "result.error")
        if error.get("type") != "error":  # as some versions of the SDK give it
            error = {"type": "error", "error": error}
        return _LineBody("messages", error)
    if isinstance(kind, str) and kind in NOT_RUN:
        return _not_run(kind)
    raise _Unreadable(f"a result of the type {kind!r:.50}")


def _openai(line: JsonObject) -> _LineBody | ErrorInfo:
    error = line.get("error")
    exchange = line.get("response")
    if exchange is not None:
        exchange = _object(exchange, "response")
        body = exchange.get("body")
        if isinstance(body, str):  # Mistral gives a refusal as a text
            body = {"error": {"message": body}}
        body = _object(body, "response.body")
        status = exchange.get("status_code")
        wire_api: WireApi = "responses" if body.get("object") == "response" else "chat"
        return _LineBody(wire_api, body, status if isinstance(status, int) else None)
    if isinstance(error, str):
        error = {"message": error}
    error = _object(error, "neither response nor error: error")
    code = error.get("code")
    if isinstance(code, str) and code in NOT_RUN:
        return _not_run(code, str(error.get("message") or ""))
    # The model did not answer in time; what else has no response was refused.
    status = 408 if code == "request_timeout" else 400
    return _LineBody("chat", {"error": error}, status)


def _google(line: JsonObject) -> _LineBody | ErrorInfo:
    if line.get("response"):
        return _LineBody("gemini", _object(line["response"], "response"))
    if isinstance(line.get("status"), str) and line["status"]:  # Vertex says it in words
        return _LineBody("gemini", {"error": {"message": line["status"]}}, 400)
    error = _object(line.get("error"), "neither response nor error: error")
    code = error.get("code")
    status = 400
    if isinstance(code, int):
        status = GRPC_CODES.get(code, max(code, 400))
    return _LineBody("gemini", {"error": error}, status)


def _bedrock(line: JsonObject) -> _LineBody | ErrorInfo:
    if line.get("modelOutput") is not None:
        body = _object(line["modelOutput"], "modelOutput")
        is_converse = "output" in body and "stopReason" in body
        return _LineBody("converse" if is_converse else "invoke", body)
    error = _object(line.get("error"), "neither modelOutput nor error: error")
    code = error.get("errorCode")
    message = {"message": str(error.get("errorMessage") or "")}
    if isinstance(code, int) and code >= 400:
        return _LineBody("converse", message, code)
    return _LineBody("converse", message, 400, {"x-amzn-errortype": str(code or "")})


_RESULTS: Final[Mapping[str, Callable[[JsonObject], _LineBody | ErrorInfo]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "mistral": _openai,
    "google": _google,
    "bedrock": _bedrock,
}
"""Provider -> what reads its lines."""
