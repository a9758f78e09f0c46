"""The server's log of failures: what a browser is not shown, for whoever runs the server."""

from __future__ import annotations

import logging
from typing import Final

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError

TEXT_CHARACTERS: Final = 500
"""Characters of a failure in the log."""

_log: Final = logging.getLogger("streamlib.web")


def log_failure(error: ErrorInfo) -> None:
    """Logs a failure as one line: kind, status or address, and the provider's text. It has no key.

    Args:
        error: the failure as the client reported it. One that somebody stopped is not logged.
    """
    if error.kind == "cancelled":
        return
    text = str(StreamError(error))[:TEXT_CHARACTERS]
    # As a literal: a line break or an escape sequence of the provider cannot forge another line.
    _log.warning("the response of a model failed: %r", text)
