"""The exception of the client and of whatever reads streams: `StreamError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlib_parsers.errors import ErrorInfo, ErrorKind

if TYPE_CHECKING:
    from streamlib_parsers.accumulate import Response


class StreamError(Exception):
    """A request or a stream failed. The fields of `info` are attributes of the exception too.

    Attributes:
        info: the failure.
        response: the partial response, with every event received before the failure; None if the
            failure came before any stream.
    """

    def __init__(self, info: ErrorInfo, response: Response | None = None) -> None:
        super().__init__(info, response)
        self.info = info
        self.response = response

    def __str__(self) -> str:
        info = self.info
        details: list[str] = []
        if info.status:
            details.append(f"HTTP {info.status}")
        if isinstance(info.detail, dict) and "address" in info.detail:
            details.append(str(info.detail["address"]))
        if details:
            return f"{info.kind} ({', '.join(details)}): {info.message}"
        return f"{info.kind}: {info.message}"

    @property
    def kind(self) -> ErrorKind:
        """Category of the failure, which tells what the caller can do."""
        return self.info.kind

    @property
    def message(self) -> str:
        """The provider's message, or the library's."""
        return self.info.message

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.info.retryable

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before a retry, if the provider named them."""
        return self.info.retry_after

    @property
    def status(self) -> int | None:
        """HTTP status."""
        return self.info.status

    @property
    def code(self) -> str | None:
        """The provider's own error code."""
        return self.info.code

    @property
    def detail(self) -> Any:
        """The provider's error object, or where the failure happened."""
        return self.info.detail


def invalid_request(message: str, code: str | None = None) -> StreamError:
    """An `invalid_request` error: the request cannot be built."""
    return StreamError(ErrorInfo("invalid_request", message, code=code))
