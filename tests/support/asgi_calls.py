"""Calls an ASGI application as a server does, without a server."""

from __future__ import annotations

import json
from typing import Any

import anyio


class AsgiCall:
    """One request to an application, and the messages that the application sent."""

    def __init__(
        self,
        *,
        leave_after: int | None = None,
        path: str = "/chat",
        method: str = "POST",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Prepares a request.

        Args:
            leave_after: Number of the application's messages after which the browser disconnects;
                None: never.
            path: Path of the request, with its query.
            method: HTTP method of the request.
            headers: Further headers.
        """
        self.messages: list[dict[str, Any]] = []
        self.sent_at: list[float] = []
        """Time of each sent message, on the loop's clock."""
        self._leave_after = leave_after
        self._path, _, self._query = path.partition("?")
        self._method = method
        self._headers = headers or {}
        self._left = anyio.Event()

    async def __call__(self, app: Any, body: bytes = b"") -> AsgiCall:
        """Sends the request and waits until the application returns."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self._method,
            "scheme": "http",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": self._query.encode(),
            "root_path": "",
            "headers": [
                (b"host", b"test"),
                (b"content-type", b"application/json"),
                *[(name.encode(), value.encode()) for name, value in self._headers.items()],
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        requests = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if requests:
                return requests.pop()
            await self._left.wait()
            return {"type": "http.disconnect"}

        await app(scope, receive, self._send)
        return self

    async def _send(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.sent_at.append(anyio.current_time())
        if len(self.messages) == self._leave_after:
            self._left.set()

    @property
    def status(self) -> int:
        """The status that was sent."""
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        """The headers that were sent, each of which came once."""
        raw = self.messages[0]["headers"]
        headers = {name.decode(): value.decode() for name, value in raw}
        assert len(headers) == len(raw), raw
        return headers

    @property
    def body(self) -> bytes:
        """The body so far."""
        return b"".join(message["body"] for message in self.messages[1:])

    @property
    def error(self) -> dict[str, Any]:
        """The error of a JSON body."""
        error: dict[str, Any] = json.loads(self.body)["error"]
        return error

    @property
    def is_complete(self) -> bool:
        """Whether the last byte was sent."""
        return not self.messages[-1].get("more_body", False)
