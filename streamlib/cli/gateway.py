"""`streamlib gateway`: any client in front of any model, by a route table. Without one the loopback provider answers."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from streamlib.client.auth import KeyStore, variables_of
from streamlib.client.credentials import Secret
from streamlib.client.origins import LOOPBACK
from streamlib.errors import StreamError

if TYPE_CHECKING:
    from streamlib.gateway import RouteRule, RouteTable


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "gateway",
        help="any client in front of any model",
        description="Serves Messages, Chat, Responses and Gemini clients from whatever model the routes name. Needs streamlib[gateway].",
        epilog="Without a route everything goes to the loopback provider, which needs no key.",
    )
    command.add_argument(
        "--route",
        action="append",
        default=[],
        metavar="PATTERN=PROVIDER:MODEL",
        help="the first that matches wins; may be repeated",
    )
    command.add_argument(
        "--config", metavar="FILE", help="routes in a TOML file, after those of --route"
    )
    command.add_argument(
        "--host",
        default="127.0.0.1",
        help="another one than this machine needs --token-env (default 127.0.0.1)",
    )
    command.add_argument("--port", type=int, default=8900, help="0 picks a free one (default 8900)")
    command.add_argument(
        "--token-env",
        metavar="NAME",
        help="the variable with the token that clients send as their API key",
    )
    command.add_argument(
        "--keep-alive",
        type=float,
        default=15.0,
        metavar="SECONDS",
        help="silence before a sign of life (default 15)",
    )
    command.add_argument(
        "--log-content", action="store_true", help="write requests and answers to the log too"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serves until interrupted, then lets the streams finish."""
    try:
        importlib.import_module("uvicorn")
        table, token = _table(arguments), _token(arguments)
    except ModuleNotFoundError as error:
        print(f"no {error.name}: pip install 'streamlib[cli,gateway]'", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except (ValueError, StreamError) as error:
        print(error.message if isinstance(error, StreamError) else error, file=sys.stderr)
        return 1
    return _serve(arguments, table, token)


def _table(arguments: argparse.Namespace) -> RouteTable:
    from streamlib.gateway import RouteTable, load_table, read_route

    rules: list[RouteRule] = [read_route(text) for text in arguments.route]
    return RouteTable([*rules, *(load_table(arguments.config) if arguments.config else ())])


def _token(arguments: argparse.Namespace) -> Secret | None:
    """ValueError where others could ask without one."""
    if arguments.token_env is None:
        if arguments.host not in LOOPBACK:
            raise ValueError(
                f"--host {arguments.host} lets others in: give --token-env the name of a variable with a token for them"
            )
        return None
    if not os.environ.get(arguments.token_env):
        raise ValueError(f"--token-env: the variable {arguments.token_env} is not set")
    return Secret(os.environ[arguments.token_env])


def _serve(arguments: argparse.Namespace, table: RouteTable, token: Secret | None) -> int:
    import uvicorn

    from streamlib.gateway import Gateway, gateway

    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("streamlib.gateway").setLevel(
        logging.DEBUG if arguments.log_content else logging.INFO
    )
    app = gateway(
        Gateway(table, keep_alive=arguments.keep_alive, log_content=arguments.log_content),
        token=token,
    )
    try:
        listener = socket.create_server(
            (arguments.host, arguments.port),
            family=socket.AF_INET6 if ":" in arguments.host else socket.AF_INET,
        )
    except (OSError, OverflowError) as error:
        print(f"{arguments.host} port {arguments.port}: {error}", file=sys.stderr)
        return 1
    print(_hello(table, token, listener.getsockname()), flush=True)
    for line in keyless(table):
        print(line, file=sys.stderr, flush=True)
    uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    ).run(sockets=[listener])
    return 0


def keyless(table: RouteTable) -> list[str]:
    """A line for each target that will refuse for want of a key: better said now than to the first client."""
    keys = KeyStore()
    hops = [(rule, hop) for rule in table.rules for hop in table.hops(rule, "model")]
    return [
        f"no key for {hop.provider.name} (route {rule.model}): set {' or '.join(variables_of(hop.provider)) or 'key_env in a route file'}"
        for rule, hop in hops
        if hop.key is None and not keys.can_authenticate(hop.provider, hop.target.url)
    ]


def _hello(table: RouteTable, token: Secret | None, address: tuple[Any, ...]) -> str:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    url = f"http://{host}:{address[1]}"
    places = [f" at {rule.base_url}" if rule.base_url else "" for rule in table.rules]
    routes = "\n".join(
        f"  {rule.model:<24} -> {', '.join(rule.to)}{place}"
        for rule, place in zip(table.rules, places, strict=True)
    )
    key = "the token" if token else "any"
    return (
        f"gateway on {url}  (Ctrl-C stops, streams finish)\n{routes}\n"
        f"  Anthropic SDK, Claude Code   ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key}\n"
        f"  OpenAI SDK                   OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY={key}\n"
        f"  Google Gen AI SDK            GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY={key}"
    )
