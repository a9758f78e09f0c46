"""`streamlib convert FILE --wire-api W --to X`: a captured body, said again in another wire or UI protocol."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from streamlib.cli.inspect import read
from streamlib.encoders import encode_body, encoder
from streamlib_parsers import WIRE_APIS, accumulate

TARGETS: Final = (*WIRE_APIS, "vercel", "agui", "jsonl")


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "convert",
        help="say a captured answer in another wire or UI protocol",
        description="Writes the answer to standard output. What the target cannot say is listed on standard error.",
    )
    command.add_argument("file", metavar="FILE")
    command.add_argument("--wire-api", required=True, choices=WIRE_APIS, help="the wire the file was captured from")
    command.add_argument("--to", required=True, choices=TARGETS, help="what to write")
    command.add_argument("--body", action="store_true", help="one whole body instead of a stream")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Converts one file."""
    try:
        body = Path(arguments.file).read_bytes()
    except OSError as error:
        print(f"{arguments.file}: {error.strerror}", file=sys.stderr)
        return 1
    events = read(arguments.wire_api, body)
    encode = encoder(arguments.to)
    stream = b"".join([*(encode.feed(event) for event in events), encode.close()])
    out = encode_body(arguments.to, accumulate(events)) + b"\n" if arguments.body else stream
    sys.stdout.buffer.write(out)
    for change in encode.report:
        print(f"not said: {change.path} ({change.reason})", file=sys.stderr)
    return 0
