"""Serves the metrics to Prometheus: at `/metrics` with the token, or on a separate port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from streamlib.client.origins import LOOPBACK
from streamlib.gateway.clients.access import is_local_host
from streamlib.gateway.paths import METRICS

if TYPE_CHECKING:
    from streamlib.gateway.watch.metrics import Metrics

NOT_INSTALLED: Final = "prometheus_client is not installed: pip install 'streamlib[metrics]'"

REQUEST_SECONDS: Final = 10.0
"""Seconds in which a scraper must send its request."""


def metrics_if_installed() -> Metrics | None:
    """The metrics; None without the extra."""
    try:
        from streamlib.gateway.watch.metrics import Metrics
    except ModuleNotFoundError as error:
        # If a module of our own is missing, that is a defect, not a missing extra.
        if error.name is None or not error.name.startswith("prometheus_client"):
            raise
        return None
    return Metrics()


class MetricsPage:
    """Serves `/metrics` on the gateway's own port."""

    def __init__(self, metrics: Metrics | None) -> None:
        self._metrics = metrics

    async def read(self, request: Request) -> Response:
        """The metrics as text; 404 without the extra."""
        if self._metrics is None:
            return PlainTextResponse(f"{NOT_INSTALLED}\n", 404)
        body, media_type = self._metrics.render()
        return Response(body, media_type=media_type)


@contextmanager
def serving_metrics(metrics: Metrics, host: str, port: int) -> Generator[int]:
    """Serves the metrics on a separate port, without a token, while the block runs.

    Args:
        metrics: the metrics to serve.
        host: address to listen on; on a local address, requests for other host names are refused.
        port: TCP port; 0 selects a free one.

    Yields:
        The port.

    Raises:
        OSError: the port cannot be used.
    """
    handler = _handler(metrics.render, is_local=host in LOOPBACK)
    server = _Server((host, port), handler)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)


def _handler(
    render: Callable[[], tuple[bytes, str]], *, is_local: bool
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Handles one connection of a scraper."""

        timeout = REQUEST_SECONDS
        server_version = "streamlib"
        sys_version = ""

        def do_GET(self) -> None:  # the standard library's name
            """Sends the metrics."""
            if self.path.partition("?")[0] != METRICS:
                self._send(404, b"not found\n", "text/plain")
                return
            # A page in a local browser could reach the port through a host name of its own.
            if is_local and not is_local_host(self.headers.get("host", "")):
                self._send(403, b"another host\n", "text/plain")
                return
            self._send(200, *render())

        def _send(self, status: int, body: bytes, media_type: str) -> None:
            self.send_response(status)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Logs nothing: a line for each scrape is of no use."""

    return Handler
