"""`streamlib serve [FILE…]`: the loopback provider, for trying clients and for tests."""

from __future__ import annotations

import argparse
import sys
from typing import Final, get_args

import anyio

from streamlib.cli.arguments import CommandError
from streamlib.cli.captures import read_bytes
from streamlib.cli.numbers import byte_count, integer, seconds
from streamlib.recording.files import is_recording, read
from streamlib.testing import Behaviour, Fault, running
from streamlib_parsers import WIRE_APIS

DEFAULT_FAULT_CHUNK: Final = 3
"""Chunks before a fault: late enough that some text was sent."""

DESCRIPTION: Final = """\
Responds on every wire on 127.0.0.1, from recorded bodies or from the request
itself, with faults on demand."""

EXAMPLES: Final = """examples:
  streamlib serve
  # then, in another terminal:
  streamlib chat Hello --model loopback:echo --base-url http://127.0.0.1:8800
  # text is sent slowly, and stops after the fifth chunk
  streamlib serve --pace 0.05 --fault stall@5
  # the connection of the first request is lost, the next succeeds
  streamlib serve --fault disconnect@0 --failing 1
  # the first two requests get an HTTP error, as from a service with too many
  streamlib serve --status 429 --failing 2
  # errors as the real services send them, for requests that they would refuse
  streamlib serve --strict
  # recordings and captures, in chunks of seven bytes, to any client
  streamlib serve response.jsonl capture.sse --chunk 7

exit code: 1 a file or the port cannot be used, 2 usage error,
           130 stopped with Ctrl-C
"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="recordings or captured bodies; each request gets the next one, in turn",
    )
    command.add_argument("--port", type=int, default=8800, help="0 picks a free one (default 8800)")
    command.add_argument(
        "--chunk", type=byte_count, metavar="N", help="bytes in one HTTP chunk (default: one event)"
    )
    command.add_argument(
        "--pace", type=seconds, default=0.0, metavar="SECONDS", help="pause between chunks"
    )
    command.add_argument(
        "--fault",
        metavar="KIND[@N]",
        type=_fault,
        help=f"after N chunks (default {DEFAULT_FAULT_CHUNK}): {', '.join(get_args(Fault))}",
    )
    command.add_argument(
        "--status",
        metavar="N",
        type=_error_status,
        help="respond with this HTTP status, 400 to 599; its body is an error of the wire, or FILE",
    )
    command.add_argument(
        "--failing",
        type=integer(1, "requests"),
        metavar="N",
        help="apply the fault or the status to the first N requests only (default: to all)",
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="refuse what the real service refuses, with its error, and sign reasoning and calls",
    )


def _fault(text: str) -> tuple[Fault, int]:
    """Argument type for a fault and the number of chunks before it."""
    kind, separator, count = text.partition("@")
    if not separator:
        count = str(DEFAULT_FAULT_CHUNK)
    is_number = count.isascii() and count.isdigit()
    for fault in get_args(Fault):
        if kind == fault and is_number:
            return fault, int(count)
    raise argparse.ArgumentTypeError(
        f"{text!r}: expected KIND[@N], where KIND is one of {', '.join(get_args(Fault))}"
    )


def _error_status(text: str) -> int:
    """Argument type for the HTTP status of an error."""
    if text.isascii() and text.isdigit() and 400 <= int(text) <= 599:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not the HTTP status of an error: 400 to 599")


def run(arguments: argparse.Namespace) -> int:
    """Serves until interrupted."""
    bodies: list[bytes] = []
    for name in arguments.files:
        bodies += _bodies(name)
    if arguments.failing and not (arguments.fault or arguments.status):
        message = "--failing is the number of requests that fail: it needs --fault or --status"
        print(message, file=sys.stderr)
        return 2
    fault, after = arguments.fault or (None, DEFAULT_FAULT_CHUNK)
    try:
        behaviour = Behaviour(
            recordings=tuple(bodies),
            chunk=arguments.chunk,
            pace=arguments.pace,
            fault=fault,
            at=after,
            status=arguments.status or 200,
            failing=arguments.failing,
            strict=arguments.strict,
        )
        anyio.run(_serve, behaviour, arguments.port)
    except (OSError, OverflowError) as error:
        # The port is in use, not allowed, or over 65,535.
        print(f"port {arguments.port}: {error}", file=sys.stderr)
        return 1
    return 0


def _bodies(name: str) -> list[bytes]:
    """The bodies to send for a file: those of its recordings, or the file as one body."""
    data = read_bytes(name)
    if not is_recording(data):
        bodies = [data]
    else:
        recordings, problem = read(data)
        if problem is not None:
            raise CommandError(f"{name}: it starts as a streamlib recording, but {problem}")
        bodies = [recording.body for recording in recordings]
    # An empty body would be served as a response that is truncated before its first byte.
    if not all(bodies):
        raise CommandError(f"{name}: it is empty: there is nothing to serve")
    return bodies


async def _serve(behaviour: Behaviour, port: int) -> None:
    async with running(behaviour, port=port) as url:
        # Flushed, because a program that starts the server reads the address from a pipe.
        print(
            f"listening on {url}  ({', '.join(WIRE_APIS)}; Ctrl-C stops)",
            flush=True,
        )
        await anyio.sleep_forever()
