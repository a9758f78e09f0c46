"""What the two Bedrock wires share: JSON payloads, and the failures that their frames report.

contentBlockDelta                   {"contentBlockIndex":0,"delta":{"text":"Hi"},"p":"abcd"}
exception:throttlingException       {"message":"Too many requests"}
"""

from __future__ import annotations

from typing import Any

from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ParseFailure, malformed
from streamlib_parsers.json_text import decode_any

# --- reading JSON ---


def json_or_text(data: bytes) -> Any:
    """The JSON value of an unknown payload, or its text if it is not JSON."""
    try:
        return decode_any(data)
    except ParseFailure:
        return data.decode("utf-8", "replace")


def at_path(value: Any, path: str) -> Any:
    """The value at a dotted path (`choices.0.text`) of a JSON value, or None."""
    for key in path.split("."):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


# --- failures ---


def failure_of(event: str, data: bytes) -> ErrorInfo:
    """The failure of a frame `exception:<name>` or `error:<code>`; the payload has its message."""
    kind, _, name = event.partition(":")
    if kind == "exception":
        return classify(None, data, {":exception-type": name})
    status = None
    # Some endpoints give an HTTP status as the code. `isdecimal` and not `isdigit`: the latter
    # accepts superscripts, which `int` does not.
    if name.isdecimal() and len(name) == 3:
        status = int(name)
    return classify(status, data, {":error-code": name})


def body_failure(value: Any, body: bytes) -> ParseFailure:
    """The failure of a body that is not a response."""
    # AWS's own errors are `{"message":…}` (`Message` from some gateways) and nothing else that
    # would tell them from another object.
    if isinstance(value, dict) and ("message" in value or "Message" in value):
        return ParseFailure(classify(None, body))
    return malformed("the body is not a Bedrock response", body)
