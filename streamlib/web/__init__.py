"""Web frameworks: streams as responses, and the requests of `useChat` and AG-UI's client.

    @app.post("/chat")
    async def chat(request: Request) -> StreamResponse:
        asked = parse_ui_request("vercel", await request.body())
        return StreamResponse(client.stream(asked.history, model), asked.encoder())

`StreamResponse` and the other names that use Starlette need the extra `web`. `iter_bytes` and
`parse_ui_request` need nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlib.web.byte_iterator import ByteIterator, iter_bytes
from streamlib.web.parsed_request import ToolApproval
from streamlib.web.public_errors import public_text
from streamlib.web.request_body import UIRequestError, UIRequestLimits
from streamlib.web.sealing import Seal
from streamlib.web.ui_messages import to_ui_messages
from streamlib.web.ui_request import UIRequest, parse_ui_request

if TYPE_CHECKING:
    from streamlib.web.response import StreamResponse, error_response, on_stream_error

__all__ = [
    "ByteIterator",
    "Seal",
    "StreamResponse",
    "ToolApproval",
    "UIRequest",
    "UIRequestError",
    "UIRequestLimits",
    "error_response",
    "iter_bytes",
    "on_stream_error",
    "parse_ui_request",
    "public_text",
    "to_ui_messages",
]


def __getattr__(name: str) -> Any:
    # Starlette is loaded at the first use of a name that needs it.
    if name not in ("StreamResponse", "error_response", "on_stream_error"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from streamlib.web import response
    except ModuleNotFoundError as error:
        # A missing module of streamlib itself is a defect, not a missing extra.
        if error.name is None or not error.name.startswith("starlette"):
            raise
        raise ModuleNotFoundError(
            f"streamlib.web.{name} needs {error.name}: pip install 'streamlib[web]'",
            name=error.name,
        ) from None
    return getattr(response, name)
