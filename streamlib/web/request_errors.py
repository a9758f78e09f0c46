"""The one error of a request body that cannot be read."""

from __future__ import annotations

from functools import partial
from typing import Any

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError


class UIRequestError(StreamError):
    """A request body is not one of the protocol. The message names the position and the reason.

    It quotes nothing of the body, so that it can be sent back. Kind `invalid_request`, or
    `request_too_large` where a limit was exceeded.
    """

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        if too_large:
            super().__init__(ErrorInfo("request_too_large", message, status=413, code="ui_request"))
        else:
            super().__init__(ErrorInfo("invalid_request", message, status=400, code="ui_request"))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, which would call the class with the arguments of its base."""
        too_large = self.info.kind == "request_too_large"
        return partial(type(self), too_large=too_large), (self.info.message,)
