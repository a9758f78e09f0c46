"""Errors as Responses writes them: `error.type` is one of those of Open Responses."""

from __future__ import annotations

from typing import Final

from streamlib.wires.openai_errors import error_object as openai_error
from streamlib.wires.responses.repeated_settings import RepeatedSettings
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.items import JsonObject

ERROR_TYPES: Final[dict[ErrorKind, str]] = {
    "authentication": "invalid_request",
    "permission": "invalid_request",
    "context_window_exceeded": "invalid_request",
    "request_too_large": "invalid_request",
    "invalid_request": "invalid_request",
    "invalid_history": "invalid_request",
    "content_filter": "invalid_request",
    "not_found": "not_found",
    "rate_limited": "too_many_requests",
    "quota_exhausted": "too_many_requests",
    "generation_failed": "model_error",
}
"""ErrorKind -> `error.type`; for any other kind `server_error`. `error.code` is OpenAI's."""

REQUEST_FIELDS: Final = (*RepeatedSettings.__struct_fields__, "input", "model", "conversation")
"""Codes of our own that name a field of the request: `error.param` has them."""


def error_object(error: ErrorInfo) -> JsonObject:
    """The error as an object of the wire.

    The provider's own object keeps its values if it has this shape and means the same kind.
    """
    body: JsonObject = openai_error(error)
    error_type = ERROR_TYPES.get(error.kind, "server_error")
    is_own = body is error.detail
    if not is_own:
        param = body["param"]
        if error.kind == "invalid_request" and error.code in REQUEST_FIELDS:
            param = error.code
        return {**body, "type": error_type, "param": param}
    if "type" in body and "param" in body:
        return body
    return {"type": error_type, "param": None, **body}


def error_body(error: ErrorInfo) -> JsonObject:
    """The body of an HTTP error."""
    return {"error": error_object(error)}
