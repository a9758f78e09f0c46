"""Reads any failure of any wire into its objects, codes and messages, before it has a kind.

The wires have a dozen shapes; HTTP error bodies and error frames inside a stream of status 200
use the same ones:

    {"type":"error","error":{"type":"overloaded_error","message":"…"}}     Anthropic
    {"error":{"message":"…","type":"…","param":null,"code":"…"}}           OpenAI and the like
    {"error":{"code":429,"status":"…","details":[…]}}, also in a list      Google
    {"message":"…"} + x-amzn-errortype, or the exception's name as a key   Bedrock
    {"error":{"code":429,"metadata":{"raw":"<upstream's JSON>"}}}          OpenRouter
    {"error":"…"}, {"detail":…}, {"base_resp":{…}}, HTML, nothing          the others

The objects of a failure are listed flat, outermost first (`_error_objects`); their codes and
messages are collected from all of them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from streamlib_parsers.durations import as_text
from streamlib_parsers.error_tables import IGNORED_CODES
from streamlib_parsers.errors import ParseFailure
from streamlib_parsers.events import RateLimits
from streamlib_parsers.json_text import decode_any, scrub
from streamlib_parsers.rate_limits import read_rate_limits

_OUTER_KEYS: Final = (
    "error",
    "response",
    "x_groq",
    "base_resp",  # MiniMax
    "errors",
    "detail",
    "message",
    "innererror",
)
_INNER_KEYS: Final = (
    "error",
    "errors",
    "metadata",
    "details",
    "detail",
    "innererror",
    "raw",
    "message",
)
_NESTED_KEYS: Final = {
    "": _OUTER_KEYS,
    # Not `metadata`: a response's is the caller's own.
    "response": ("error", "status_details"),
    "x_groq": ("error",),
    "details": ("violations",),
}
"""Key of an object -> keys of the error objects in it; `_INNER_KEYS` for any other object."""

_MESSAGE_KEYS: Final = (
    "message",
    "Message",
    "msg",
    "error_message",
    "errorMessage",
    "status_msg",
    "detail",
    "error",
    "error_description",
    # Less specific than the ones above, therefore last.
    "raw",
    "details",
    "title",
)
_CODE_KEYS: Final = (
    "code",
    "error_code",
    "errorCode",
    "type",
    "__type",
    "error_type",
    "provider_code",
    "status",
    "reason",
    "status_code",
)
_STATUS_KEYS: Final = (
    "status_code",
    "status",
    "code",
    "raw_status_code",
    "http_status",
    "statusCode",
    "http_code",
    "originalStatusCode",
)
_TYPE_HEADERS: Final = ("x-amzn-errortype", ":exception-type", ":error-code")

# Limits on hostile input; real errors stay far below all of them.
_MAX_OBJECTS: Final = 256
_MAX_LIST_ENTRIES: Final = 8
_MAX_KEYS: Final = 64
_MAX_TEXTS: Final = 16
_CODE_LENGTH: Final = 128
TEXT_LENGTH: Final = 8192
"""Characters of one message that are read."""
_BODY_LENGTH: Final = 1 << 20

_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,200})", re.IGNORECASE)
_STATUS: Final = re.compile("[45][0-9][0-9]")
_QUOTES: Final = str.maketrans("", "", "`'\"")


class ErrorObject(NamedTuple):
    """An object of a failure."""

    key: str
    """Key that held it, "" for the outermost."""
    value: Mapping[str, Any]


class ErrorEvidence(NamedTuple):
    """What is known of a failure before it has a kind."""

    objects: list[ErrorObject]
    """Outermost first."""
    codes: list[str]
    """Each once: names, then numbers, then numbers that are an HTTP status."""
    messages: list[str]
    """Each once, outermost first."""
    text: str
    """Messages and codes, lower-case and without quotation marks, for `error_tables`."""
    status: int | None
    limits: RateLimits


def decode_body(body: Any) -> Any:
    """The JSON value of a body, or of the first `data:` line of a stream; else the text itself.

    Args:
        body: bytes, text, or a value that is decoded already and returned unchanged.
    """
    if isinstance(body, (bytearray, memoryview)):
        body = bytes(body)
    if isinstance(body, bytes):
        body = body[:_BODY_LENGTH].decode("utf-8", "replace")
    if not isinstance(body, str):
        return body
    value = _json_in_text(body)
    if value is not None:
        return value
    for line in body[:TEXT_LENGTH].splitlines():
        if line.startswith("data:"):
            value = _json_in_text(line[5:])
            if value is not None:
                return value
    return body


def _json_in_text(text: str) -> Any:
    """A JSON object or array; None for other texts."""
    text = text.strip()
    if not text.startswith(("{", "[")) or len(text) > _BODY_LENGTH:
        return None
    try:
        return decode_any(text.encode("utf-8", "replace"))
    except ParseFailure:
        return None


def read_evidence(
    status: int | None, value: Any, headers: Mapping[str, str], received_at: datetime | None
) -> ErrorEvidence:
    """Collects what a failure contains.

    Args:
        status: of the HTTP response, None inside a stream.
        value: as `decode_body` returns it.
        headers: with lower-case names.
        received_at: when it came, aware; turns dates into seconds.
    """
    objects = _error_objects(value)
    messages = _messages(objects)
    if not objects:
        messages = _messages_of_text(value)
    codes = list(dict.fromkeys(_codes(objects, headers)))
    text = " ".join([*messages, *codes])[:TEXT_LENGTH].lower().translate(_QUOTES)
    codes.sort(key=_code_precedence)
    limits = read_rate_limits(headers, received_at)
    return ErrorEvidence(objects, codes, messages, text, _status(status, objects), limits)


def _code_precedence(code: str) -> int:
    """Sorts names before numbers, and those before numbers that only repeat an HTTP status."""
    if not code.isdigit():
        return 0
    if not _STATUS.fullmatch(code):
        return 1
    return 2


def _error_objects(value: Any) -> list[ErrorObject]:
    """The objects of a failure, outermost first; JSON inside a text is decoded too."""
    queue: deque[tuple[str, Any]] = deque([("", value)])
    objects: list[ErrorObject] = []
    for _ in range(_MAX_OBJECTS):
        if not queue:
            break
        key, candidate = queue.popleft()
        if isinstance(candidate, str):
            candidate = _json_in_text(candidate)
        if isinstance(candidate, dict):
            error_object = ErrorObject(key, candidate)
            objects.append(error_object)
            queue.extend(_nested_values(error_object))
        elif isinstance(candidate, (list, tuple)):
            for entry in candidate[:_MAX_LIST_ENTRIES]:
                if isinstance(entry, str):  # a list of plain messages
                    entry = {"message": entry}  # noqa: PLW2901
                queue.append((key, entry))
    return objects


def _nested_values(error_object: ErrorObject) -> Iterator[tuple[str, Any]]:
    """Keys and values in which further objects of the failure may be."""
    value = error_object.value
    for key in _NESTED_KEYS.get(error_object.key, _INNER_KEYS):
        if isinstance(value.get(key), (dict, list, tuple, str)):
            yield key, value[key]
    if error_object.key:
        return
    # Bedrock's JSON errors: {"throttlingException": {"message": "…"}}
    for key, nested in list(value.items())[:_MAX_KEYS]:
        if str(key).endswith("Exception") and isinstance(nested, dict):
            yield key, nested


def _codes(objects: Iterable[ErrorObject], headers: Mapping[str, str]) -> Iterator[str]:
    for name in _TYPE_HEADERS:
        if headers.get(name):
            yield _bare_type(headers[name])
    for key, value in objects:
        if key.endswith("Exception"):
            yield key[:_CODE_LENGTH]
        prefix = ""
        if key == "base_resp":  # MiniMax's numbers mean something else than Z.ai's
            prefix = "base_resp."
        for name in _CODE_KEYS:
            text = (as_text(value.get(name)) or "").strip()
            if text and text.lower() not in IGNORED_CODES:
                yield prefix + _bare_type(text)


def _bare_type(code: str) -> str:
    """The name alone: AWS writes `ValidationException:http://…` in headers and
    `com.amazon.x#ValidationException` in bodies."""
    code = code[:256]
    bare = code.split(":http", 1)[0].rsplit("#", 1)[-1]
    return (bare or code)[:_CODE_LENGTH]


def _messages(objects: Iterable[ErrorObject]) -> list[str]:
    """Every message, without those that are part of an earlier one."""
    messages: list[str] = []
    for error_object in objects:
        for text in _texts_of(error_object.value):
            if len(messages) == _MAX_TEXTS:
                return messages
            if not any(text in earlier for earlier in messages):
                messages.append(text)
    return messages


def _texts_of(value: Mapping[str, Any]) -> Iterator[str]:
    """The messages of an object. FastAPI and Mistral name the invalid field in `loc`."""
    prefix = ""
    location = value.get("loc")
    if isinstance(location, list):
        steps = [(as_text(step) or "")[:64] for step in location[:8]]
        prefix = ".".join(steps) + ": "
    for key in _MESSAGE_KEYS:
        text = value.get(key)
        if isinstance(text, str) and text.strip() and _json_in_text(text) is None:
            yield prefix + scrub(text[:TEXT_LENGTH]).strip()


def _messages_of_text(value: Any) -> list[str]:
    """The message of a body that is not JSON: the title of an HTML page, else its text."""
    if not isinstance(value, str):
        return []
    text = scrub(value[:TEXT_LENGTH]).strip()
    if not text:
        return []
    title = _TITLE.search(text)
    if title:
        return [title[1].strip()]
    return [text]


def _status(status: int | None, objects: Iterable[ErrorObject]) -> int | None:
    """The response's own status, else one that the body names.

    The status of a success says nothing about a failure; 424 is what Bedrock sends when its model
    failed, whose own status is in the body.
    """
    own = None
    if status is not None and status >= 300:
        own = status
    if own is not None and own != 424:
        return own
    for error_object in objects:
        for key in _STATUS_KEYS:
            text = as_text(error_object.value.get(key)) or ""
            if _STATUS.fullmatch(text):
                return int(text)
    return own
