"""The one exception of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlib_parsers.errors import ErrorInfo, ErrorKind

if TYPE_CHECKING:
    from streamlib_parsers.accumulate import Response


class StreamError(Exception):
    """A request or a stream failed. `info` says how, `response` is what came before it; the fields of `info` are forwarded."""

    def __init__(self, info: ErrorInfo, response: Response | None = None) -> None:
        super().__init__(info, response)
        self.info = info
        self.response = response

    def __str__(self) -> str:
        status = f" (HTTP {self.info.status})" if self.info.status else ""
        return f"{self.info.kind}{status}: {self.info.message}"

    @property
    def kind(self) -> ErrorKind:
        """What the caller can do about it."""
        return self.info.kind

    @property
    def message(self) -> str:
        """The provider's words, or ours."""
        return self.info.message

    @property
    def retryable(self) -> bool:
        """Whether the same request can succeed later."""
        return self.info.retryable

    @property
    def retry_after(self) -> float | None:
        """Seconds the provider asked for."""
        return self.info.retry_after

    @property
    def status(self) -> int | None:
        """HTTP status."""
        return self.info.status

    @property
    def code(self) -> str | None:
        """The provider's own code."""
        return self.info.code

    @property
    def detail(self) -> Any:
        """The provider's error object, or what is known of the place."""
        return self.info.detail


def invalid_request(message: str, code: str | None = None) -> StreamError:
    """The request cannot be built as asked."""
    return StreamError(ErrorInfo("invalid_request", message, code=code))
