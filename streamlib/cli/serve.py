"""`streamlib serve [FILE…]`: the loopback provider, for trying clients and for tests."""

from __future__ import annotations

import argparse
import sys
from typing import Any, get_args

import anyio

from streamlib.cli.captures import Unreadable, file_bytes
from streamlib.cli.numbers import pause, several, whole
from streamlib.cli.terminal import printable
from streamlib.loopback import Behaviour, Fault, running
from streamlib.recording import is_recording, read

EXAMPLES = """examples:
  streamlib serve
  # then, in another terminal:
  streamlib chat Hello --model loopback:echo --base-url http://127.0.0.1:8800
  # words come slowly, and stop coming after the fifth
  streamlib serve --pace 0.05 --fault stall@5
  # the first request breaks off, the next goes well
  streamlib serve --fault disconnect@0 --failing 1
  # what was recorded or captured, in chunks of seven bytes, to whoever asks
  streamlib serve answer.jsonl capture.sse --chunk 7
"""


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "serve",
        help="run the loopback provider: any SDK can point at it",
        description="Answers every wire on 127.0.0.1, from recorded bodies or from the request\nitself, with faults on demand.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="recordings, or bodies as they came; sent one a request, in turn",
    )
    command.add_argument("--port", type=int, default=8800, help="0 picks a free one (default 8800)")
    command.add_argument(
        "--chunk", type=several, metavar="N", help="bytes in one HTTP chunk (default: one event)"
    )
    command.add_argument(
        "--pace", type=pause, default=0.0, metavar="SECONDS", help="pause between chunks"
    )
    command.add_argument(
        "--fault",
        metavar="KIND[@N]",
        type=_fault,
        help=f"after N chunks (default 3): {', '.join(get_args(Fault))}",
    )
    command.add_argument(
        "--failing",
        type=whole(1, "requests"),
        metavar="N",
        help="only the first N requests get the fault (default: all)",
    )
    command.set_defaults(run=run)


def _fault(text: str) -> tuple[str, int]:
    kind, sign, at = text.partition("@")
    at = at if sign else "3"
    if kind not in get_args(Fault) or not (at.isascii() and at.isdigit()):
        raise argparse.ArgumentTypeError(
            f"{text!r}: KIND[@N] with KIND one of {', '.join(get_args(Fault))}"
        )
    return kind, int(at)


def run(arguments: argparse.Namespace) -> int:
    """Serves until interrupted."""
    try:
        bodies = tuple(body for name in arguments.files for body in _bodies(name))
    except Unreadable as error:
        print(printable(str(error)), file=sys.stderr)
        return error.code
    fault, at = arguments.fault or (None, 3)
    if arguments.failing and not fault:
        print("--failing says how many requests get the fault: it needs --fault", file=sys.stderr)
        return 2
    try:
        behaviour = Behaviour(
            bodies, arguments.chunk, arguments.pace, fault, at, failing=arguments.failing
        )
        anyio.run(_serve, behaviour, arguments.port)
    except (OSError, OverflowError) as error:
        print(f"port {arguments.port}: {error}", file=sys.stderr)
        return 1
    return 0


def _bodies(name: str) -> list[bytes]:
    """What a file holds, to be sent: the bodies of our recordings, any other file as it is."""
    data = file_bytes(name)
    found, broken = read(data) if is_recording(data) else ([], None)
    bodies = [recording.body for recording in found] or [data]
    if broken is not None:
        raise Unreadable(f"{name}: it begins as a recording of ours, but {broken}")
    if not all(bodies):
        raise Unreadable(f"{name}: it is empty: there is nothing to serve")
    return bodies


async def _serve(behaviour: Behaviour, port: int) -> None:
    async with running(behaviour, port=port) as url:
        print(
            f"listening on {url}  (Messages, Responses, Chat, Gemini, Converse, Invoke, Ollama; Ctrl-C stops)",
            flush=True,
        )
        await anyio.sleep_forever()
