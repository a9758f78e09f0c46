"""`streamlib gateway`: serves clients of several wires from any model, by a table of routes.

Without a route the loopback provider responds.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from streamlib.cli.arguments import CommandError
from streamlib.cli.gateway_checks import (
    check_extras,
    check_routes,
    check_servers,
    check_workers,
)
from streamlib.client.auth import KeyStore, variables_of
from streamlib.client.credentials import Secret
from streamlib.client.origins import LOOPBACK
from streamlib.display.safe_text import one_line
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.gateway import Gateway, Observer, RouteTable

GRACE_SECONDS: Final = 25.0
"""Seconds for open streams to finish: below the 30 that Kubernetes gives a container."""

CONNECTIONS: Final = 4096
"""Connections of clients that may be open: one process carries 1,000 streams, and clients keep
connections for their next request."""

DESCRIPTION: Final = """\
Serves clients of Messages, Chat, Responses, Gemini, Interactions and Cohere
from the models that the routes name. Needs streamlib[gateway]."""

EXAMPLES: Final = """Without a route everything goes to the loopback provider, which needs no key.

examples:
  streamlib gateway
  # clients of Anthropic get a model of OpenAI
  streamlib gateway --route 'claude-*=openai:gpt-5'
  # is every key of a route file there, and does every target answer?
  streamlib gateway --check routes.toml --ask claude-opus-5

exit code: 0 stopped with SIGTERM, or --check found nothing wrong,
           1 something cannot be used, and it says what, 2 usage error,
           130 stopped with Ctrl-C
"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "--route",
        action="append",
        default=[],
        metavar="PATTERN=PROVIDER:MODEL",
        help="the first route that matches is used; may be repeated",
    )
    command.add_argument(
        "--config", metavar="FILE", help="routes in a TOML file, after those of --route"
    )
    command.add_argument(
        "--check",
        metavar="FILE",
        help="read the routes of a file and their keys, print them, and exit",
    )
    command.add_argument(
        "--ask",
        metavar="MODEL",
        help="with --check, also send one short request to each target of this model",
    )
    command.add_argument(
        "--host",
        default="127.0.0.1",
        help="an address that other machines reach needs --token-env (default 127.0.0.1)",
    )
    command.add_argument("--port", type=int, default=8900, help="0 picks a free one (default 8900)")
    command.add_argument(
        "--token-env",
        metavar="NAME",
        help="the variable with the token that clients send as their API key",
    )
    _add_number(command, "--keep-alive", 15.0, "SECONDS", "of silence before a keep-alive is sent")
    _add_number(command, "--body-timeout", 60.0, "SECONDS", "in which a request's body must arrive")
    _add_number(
        command, "--connections", CONNECTIONS, "N", "connections of clients that may be open"
    )
    _add_number(
        command, "--memory", 256, "MIB", "that the open streams may hold; beyond, the largest end"
    )
    command.add_argument(
        "--log-content", action="store_true", help="write requests and responses to the log too"
    )
    _add_operation(command)
    _add_number(
        command,
        "--grace",
        GRACE_SECONDS,
        "SECONDS",
        "at SIGTERM or Ctrl-C, how long open streams may go on",
    )
    _add_number(command, "--workers", 1, "N", "processes that serve the port together")
    _add_stores(command)


def _add_stores(command: argparse.ArgumentParser) -> None:
    """Adds the options of stores that several gateways may share."""
    command.add_argument(
        "--log",
        metavar="URL",
        help="keep the responses of `background: true` there: memory:, sqlite:///f, redis://host",
    )
    command.add_argument(
        "--state",
        default="memory:",
        metavar="URL",
        help="store reasoning for clients that lose it: memory: (default), off, redis://host",
    )
    command.add_argument(
        "--limits",
        metavar="URL",
        help="count the limits of named clients there, for several gateways: redis://host",
    )
    command.add_argument(
        "--new-token",
        action="store_true",
        help="print a new client token and its digest for the route file, and exit",
    )


def _add_operation(command: argparse.ArgumentParser) -> None:
    """Adds the options for logs, metrics and traces."""
    command.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="one line a request for people, or one JSON object a line for programs",
    )
    command.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve /metrics there too, without a token; needs streamlib[metrics]",
    )
    command.add_argument(
        "--spans",
        action="store_true",
        help="emit OpenTelemetry spans; run under opentelemetry-instrument; needs streamlib[otel]",
    )
    command.add_argument(
        "--record",
        metavar="DIR",
        help="record complete exchanges there, with keys masked; `streamlib inspect` opens them",
    )
    _add_number(
        command, "--record-files", 1000, "N", "with --record, how many of the newest files to keep"
    )


def _add_number(
    command: argparse.ArgumentParser, option: str, default: float, unit: str, text: str
) -> None:
    """Adds an option that is a number, whole if its default is."""
    command.add_argument(
        option,
        type=type(default),
        default=default,
        metavar=unit,
        help=f"{text} (default {default:g})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serves until interrupted, then lets open streams finish."""
    if arguments.new_token:
        return _print_token()
    try:
        # Checked before the routes are read: without uvicorn nothing else matters.
        importlib.import_module("uvicorn")
        check_workers(arguments)
        if arguments.check is not None:
            arguments.config = arguments.check
        table = read_routes(arguments)
        token = _token(arguments)
        check_extras(arguments)
        check_servers(arguments)
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install 'streamlib[gateway]'", file=sys.stderr)
        return 1
    except StreamError as error:
        raise CommandError(error.message) from None
    except ValueError as error:
        raise CommandError(str(error)) from None
    if arguments.check is not None:
        print("\n".join(route_lines(table)))
        return check_routes(table, keyless(table), arguments.ask)
    return _serve(arguments, table, token)


def _print_token() -> int:
    """Prints a new client token; it is not stored."""
    try:
        from streamlib.gateway.clients.identity import digest_of
        from streamlib.gateway.clients.named_clients import new_token
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install 'streamlib[gateway]'", file=sys.stderr)
        return 1
    token = new_token().reveal()
    print("# for the client, as its API key; it is not shown again", file=sys.stderr)
    print(token)
    print("# for [[client]] in the route file", file=sys.stderr)
    print(f'token_sha256 = "{digest_of(token)}"')
    return 0


def read_routes(arguments: argparse.Namespace) -> RouteTable:
    """The current routes and clients from the options and the route file.

    Raises:
        ValueError: they are invalid, or other machines could send requests without a token.
        StreamError: the environment variable of a key is not set.
        OSError: the route file cannot be read.
    """
    from streamlib.gateway import RouteFile, RouteTable, load_file, read_route

    rules = [read_route(text) for text in arguments.route]
    file = RouteFile()
    if arguments.config:
        file = load_file(arguments.config)
    if arguments.workers > 1 and arguments.limits is None:
        for client in file.client:
            if client.is_limited:
                raise ValueError(
                    f"--workers: each would count the limits of {client.name} for itself: name a "
                    "server that counts for all with --limits redis://host"
                )
    is_public = arguments.host not in LOOPBACK
    if is_public and not file.client and arguments.token_env is None:
        raise ValueError(
            f"--host {arguments.host} can be reached by other machines: name the variable "
            "with the token for their clients with --token-env, or clients in the route file"
        )
    return RouteTable([*rules, *file.route], clients=file.client)


def _token(arguments: argparse.Namespace) -> Secret | None:
    """The owner's token; None if there is none.

    Raises:
        ValueError: the environment variable of the token is not set.
    """
    variable = arguments.token_env
    if variable is None:
        return None
    token = os.environ.get(variable)
    if not token:
        raise ValueError(f"--token-env: the variable {variable} is not set")
    return Secret(token)


def _serve(arguments: argparse.Namespace, table: RouteTable, token: Secret | None) -> int:
    set_up_log(arguments.log_format, with_content=arguments.log_content)
    family = socket.AF_INET6 if ":" in arguments.host else socket.AF_INET
    try:
        # Bound here instead of by uvicorn, so that an error is one line and port 0 is resolved.
        listener = socket.create_server((arguments.host, arguments.port), family=family)
    except (OSError, OverflowError) as error:
        print(f"{arguments.host} port {arguments.port}: {error}", file=sys.stderr)
        return 1
    print(greeting(table, token, listener.getsockname()), flush=True)
    for line in keyless(table):
        print(line, file=sys.stderr, flush=True)
    if arguments.workers == 1:
        return _serve_alone(arguments, table, token, listener)
    if arguments.state == "memory:":
        print(
            "--workers: with --state memory: each worker stores reasoning for itself, so clients "
            "that lose it do not always get it back; use --state redis://host",
            file=sys.stderr,
        )
    return _serve_with_workers(arguments, table, token, listener)


def _serve_with_workers(
    arguments: argparse.Namespace,
    table: RouteTable,
    token: Secret | None,
    listener: socket.socket,
) -> int:
    from streamlib.cli.gateway_workers import GatewayWorkers

    bury: Callable[[int], object] = lambda process: None  # noqa: E731
    with ExitStack() as stack:
        if importlib.util.find_spec("prometheus_client") is not None:
            # Set before prometheus_client is imported: only then the workers share their counts.
            folder = stack.enter_context(TemporaryDirectory(prefix="streamlib-metrics-"))
            os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", folder)
            from prometheus_client.multiprocess import mark_process_dead

            bury = mark_process_dead
        parent = os.getpid()

        def serve(number: int) -> int:
            return _serve_alone(arguments, table, token, listener, number=number, parent=parent)

        return GatewayWorkers(arguments.workers, serve, arguments.grace, bury, listener.close).run()


def _serve_alone(
    arguments: argparse.Namespace,
    table: RouteTable,
    token: Secret | None,
    listener: socket.socket,
    *,
    number: int = 0,
    parent: int | None = None,
) -> int:
    """Serves in this process.

    Args:
        arguments: the options.
        table: routes and clients.
        token: the owner's token.
        listener: the socket that accepts connections.
        number: number of this worker, from 0.
        parent: process id of the parent of all workers; None without workers.
    """
    import uvicorn

    from streamlib.cli.gateway_server import GatewayServer
    from streamlib.gateway import ExchangeFiles, Gateway, gateway

    record: ExchangeFiles | None = None
    if arguments.record:
        try:
            record = ExchangeFiles(arguments.record, files=max(1, arguments.record_files))
        except OSError as error:
            print(one_line(f"--record: {error.filename}: {error.strerror}"), file=sys.stderr)
            return 1
    state = None if arguments.state == "off" else arguments.state
    running = Gateway(
        table,
        keep_alive=arguments.keep_alive,
        log_content=arguments.log_content,
        body_seconds=arguments.body_timeout,
        log=arguments.log,
        state=state,
        limits=arguments.limits,
        observers=observers(arguments),
        record=record,
        grace_seconds=arguments.grace,
        held_bytes=arguments.memory << 20,
    )
    with ExitStack() as stack:
        try:
            # Only worker 0 serves metrics: its page has the counts of all workers.
            metrics_url = _serve_metrics(arguments, running, stack) if number == 0 else None
        except (OSError, OverflowError, ValueError) as error:
            print(f"--metrics-port: {error}", file=sys.stderr)
            return 1
        if metrics_url:
            print(f"  metrics                      {metrics_url}", flush=True)
        app = gateway(running, token=token)
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
        server = GatewayServer(
            config,
            running,
            grace=arguments.grace,
            connections=arguments.connections,
            read_routes=lambda: read_routes(arguments),
            parent=parent,
        )
        server.run(sockets=[listener])
    return 130 if server.was_interrupted else 0


def _serve_metrics(arguments: argparse.Namespace, running: Gateway, stack: ExitStack) -> str | None:
    """Serves the metrics on their own port; returns their URL, None without one.

    Raises:
        OSError: the port cannot be used.
        ValueError: the extra is not installed.
    """
    from streamlib.gateway.paths import METRICS
    from streamlib.gateway.watch.metrics_page import NOT_INSTALLED, serving_metrics

    if arguments.metrics_port is None:
        return None
    if running.metrics is None:
        raise ValueError(NOT_INSTALLED)
    serving = serving_metrics(running.metrics, arguments.host, arguments.metrics_port)
    port = stack.enter_context(serving)
    return url_of(arguments.host, port) + METRICS


def observers(arguments: argparse.Namespace) -> list[Observer]:
    """Observers of the requests, apart from the log and the metrics."""
    if not arguments.spans:
        return []
    from streamlib.gateway.watch.spans import Spans, has_sdk

    if not has_sdk():
        print(
            "--spans: no OpenTelemetry SDK is set up: run `opentelemetry-instrument streamlib …`",
            file=sys.stderr,
        )
    return [Spans()]


def set_up_log(log_format: str, *, with_content: bool) -> None:
    """Writes the log to standard error.

    Args:
        log_format: `text` or `json`.
        with_content: whether the log contains what clients and models wrote.
    """
    from streamlib.gateway.watch.request_log import JsonFormatter, TextFormatter

    level = logging.DEBUG if with_content else logging.INFO
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.getLogger("streamlib.gateway").setLevel(level)


def keyless(table: RouteTable) -> list[str]:
    """A line for each target that will refuse requests because it needs a key.

    Printed at the start, before a client meets the error.
    """
    keys = KeyStore()
    lines: list[str] = []
    for rule in table.rules:
        for target in table.targets(rule, "model"):
            if target.key is None and not keys.can_authenticate(
                target.provider, target.resolved.url
            ):
                variables = " or ".join(variables_of(target.provider)) or "key_env in a route file"
                lines.append(
                    f"no key for {target.provider.name} (route {rule.model}): set {variables}"
                )
    return lines


def url_of(host: str, port: int) -> str:
    """The URL of a host and port of this program."""
    # An IPv6 address is in brackets in a URL.
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}"


def route_lines(table: RouteTable) -> list[str]:
    """A line for each route: its pattern and its targets."""
    from streamlib.gateway.log_text import server_of

    lines: list[str] = []
    for rule in table.rules:
        targets: list[str] = []
        for target in rule.targets:
            text = target.model
            if target.base_url:
                text += f" at {server_of(target.base_url)}"
            targets.append(text)
        lines.append(f"  {rule.model:<24} -> {', '.join(targets)}")
    return lines


def greeting(table: RouteTable, token: Secret | None, address: tuple[Any, ...]) -> str:
    """The lines of the start: the addresses, and the process that SIGHUP is sent to."""
    url = url_of(*address[:2])
    key = "the token" if token or table.clients else "any"
    lines = [f"gateway on {url}  (process {os.getpid()}; Ctrl-C stops, streams finish)"]
    if table.clients:
        names = [client.name for client in table.clients.clients]
        lines.append(f"  clients                      {', '.join(names)}")
    lines += route_lines(table)
    lines += [
        f"  Anthropic SDK, Claude Code   ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key}",
        f"  OpenAI SDK                   OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY={key}",
        f"  Google Gen AI SDK            GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY={key}",
    ]
    # Clients alone have no token that opens it.
    if token or not table.clients:
        lines.append(f"  a page to look at            {url}/")
    return "\n".join(lines)
