"""`streamlib convert FILE --to X`: a captured response in another wire API or UI protocol."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from streamlib.cli.captures import add_wire_option, events_of, find_error, for_each_capture
from streamlib.cli.exit_codes import EXIT_CODES, code_of_error, code_of_response
from streamlib.display.safe_text import printable
from streamlib.inspection.capture import Capture, wrong_wire_hint
from streamlib.wires.encoders import encode_body, encoder
from streamlib_parsers import WIRE_APIS, accumulate

TARGETS: Final = (*WIRE_APIS, "vercel", "agui", "jsonl")

DESCRIPTION: Final = """\
Writes the response to standard output. What the target cannot express is
listed on standard error."""

EXAMPLES: Final = f"""examples:
  # as a Chat Completions stream
  streamlib convert capture.sse --wire-api messages --to chat
  # a recording, as one complete Responses body
  streamlib convert response.jsonl --to responses --body
  # for useChat
  streamlib convert capture.sse --wire-api gemini --to vercel > ui.sse
  # streamlib's own events, one JSON object a line
  streamlib convert capture.sse --wire-api chat --to jsonl

If the response is incomplete, the part that was received is written.

{EXIT_CODES}"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "file",
        metavar="FILE",
        help="a raw stream, a complete body or a recording; - is standard input",
    )
    add_wire_option(command)
    command.add_argument(
        "--to",
        required=True,
        choices=TARGETS,
        metavar="X",
        help=f"what to write: {', '.join(TARGETS)}",
    )
    command.add_argument(
        "--body", action="store_true", help="write one complete body instead of a stream"
    )


def run(arguments: argparse.Namespace) -> int:
    """Converts every response of one file."""
    return for_each_capture(
        arguments.file, arguments.wire_api, lambda capture: _convert(capture, arguments)
    )


def _convert(capture: Capture, arguments: argparse.Namespace) -> int:
    events = events_of(capture)
    # A complete body is encoded as a stream too, because only the stream's report names
    # everything left out: `encode_body` of several wires drops metadata and ids silently.
    encode = encoder(arguments.to)
    frames = [encode.feed(event) for event in events]
    frames.append(encode.close())
    if arguments.body:
        output = encode_body(arguments.to, accumulate(events)) + b"\n"
    else:
        output = b"".join(frames)
    # Bytes, because Converse and Invoke frames are not text.
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()
    for change in encode.report:
        _print_error(f"not converted: {change.path} ({change.reason})")
    error = find_error(events)
    if error is None:
        return code_of_response(accumulate(events))
    _print_error(f"{capture.name}: failed ({error.kind}): {error.message}")
    hint = wrong_wire_hint(capture)
    if hint is not None:
        _print_error(f"{capture.name}: {hint}")
    return code_of_error(error)


def _print_error(line: str) -> None:
    print(printable(line), file=sys.stderr)
