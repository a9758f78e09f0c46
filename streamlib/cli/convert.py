"""`streamlib convert FILE --to X`: a captured answer, said again in another wire or UI protocol."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

from streamlib.cli.captures import Capture, add_wire, each, events_of, failure, other_wire
from streamlib.cli.terminal import printable
from streamlib.wires.encoders import encode_body, encoder
from streamlib_parsers import WIRE_APIS, accumulate

TARGETS: Final = (*WIRE_APIS, "vercel", "agui", "jsonl")

EXAMPLES = """examples:
  # as a Chat Completions stream
  streamlib convert capture.sse --wire-api messages --to chat
  # a recording, as one whole Responses body
  streamlib convert answer.jsonl --to responses --body
  # for useChat
  streamlib convert capture.sse --wire-api gemini --to vercel > ui.sse
  # our own events, one JSON object a line
  streamlib convert capture.sse --wire-api chat --to jsonl

exit code: 0 the answer is whole; 1 it is an error or was cut: what came is
           written all the same, and stderr says why
"""


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "convert",
        help="say a captured answer in another wire or UI protocol",
        description="Writes the answer to standard output. What the target cannot say is listed on\nstandard error.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "file",
        metavar="FILE",
        help="a raw stream, a whole body or a recording; - is standard input",
    )
    add_wire(command)
    command.add_argument(
        "--to",
        required=True,
        choices=TARGETS,
        metavar="X",
        help=f"what to write: {', '.join(TARGETS)}",
    )
    command.add_argument("--body", action="store_true", help="one whole body instead of a stream")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Converts one file."""
    return each(arguments.file, arguments.wire_api, lambda capture: _convert(capture, arguments))


def _convert(capture: Capture, arguments: argparse.Namespace) -> int:
    events = events_of(capture)
    encode = encoder(arguments.to)
    stream = b"".join([*(encode.feed(event) for event in events), encode.close()])
    sys.stdout.buffer.write(
        encode_body(arguments.to, accumulate(events)) + b"\n" if arguments.body else stream
    )
    sys.stdout.buffer.flush()
    for change in encode.report:
        print(printable(f"not said: {change.path} ({change.reason})"), file=sys.stderr)
    error = failure(events)
    if error is not None:
        said = [f"not whole, {error.kind}: {error.message}", other_wire(capture)]
        print(
            "\n".join(printable(f"{capture.name}: {line}") for line in said if line),
            file=sys.stderr,
        )
    return 1 if error else 0
