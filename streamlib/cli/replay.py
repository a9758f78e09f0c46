"""`streamlib replay FILE`: streams a recording or a captured body to the terminal again."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

import anyio

from streamlib.cli.captures import add_wire_option, for_each_capture
from streamlib.cli.exit_codes import EXIT_CODES, INCOMPLETE, code_of_error, code_of_response
from streamlib.cli.numbers import byte_count, speed
from streamlib.cli.progress import Progress
from streamlib.cli.screen import Screen
from streamlib.client.retry import NO_RETRY
from streamlib.inspection.capture import Capture, wrong_wire_hint
from streamlib.testing import MODEL, replay
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.client.stream import ResponseStream
    from streamlib.recording import Split

DESCRIPTION: Final = """\
Plays a recording (with its times) or any captured body through the client,
without a network."""

EXAMPLES: Final = f"""examples:
  # a recording (chat --record), at the recorded pace
  streamlib replay response.jsonl
  # four times as fast; 0 is without pauses
  streamlib replay response.jsonl --speed 4
  # a captured body, byte by byte
  streamlib replay capture.sse --wire-api messages --split 1

{EXIT_CODES}"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "file", metavar="FILE", help="a recording or a captured body; - is standard input"
    )
    add_wire_option(command)
    command.add_argument(
        "--speed",
        type=speed,
        default=1.0,
        metavar="X",
        help="1 is the recorded pace, 2 twice as fast, 0 without pauses (default 1)",
    )
    command.add_argument(
        "--split", type=byte_count, metavar="N", help="split the body into chunks of N bytes"
    )


def run(arguments: argparse.Namespace) -> int:
    """Plays every response of one file."""
    return for_each_capture(
        arguments.file, arguments.wire_api, lambda capture: anyio.run(_play, capture, arguments)
    )


async def _play(capture: Capture, arguments: argparse.Namespace) -> int:
    screen = Screen(sys.stdout, sys.stderr)
    split: Split = arguments.split or "recorded"
    async with replay(
        capture.recording, capture.wire_api, speed=arguments.speed, split=split, retry=NO_RETRY
    ) as client:
        # The prompt is not sent anywhere, but a request needs one.
        stream = client.stream("(replayed)", model=MODEL)
        try:
            async with stream:
                await _show(stream, screen, capture)
        except StreamError as error:
            screen.end()
            screen.fail(str(error))
            hint = wrong_wire_hint(capture)
            if hint is not None:
                screen.note(hint)
            if capture.truncation is not None:
                screen.note(capture.truncation)
            return code_of_error(error.info)
    screen.end()
    if capture.truncation is not None:
        # Where the wire completed the response, what followed may say otherwise.
        screen.note(capture.truncation)
        return INCOMPLETE
    screen.status(stream.response)
    return code_of_response(stream.response)


async def _show(stream: ResponseStream, screen: Screen, capture: Capture) -> None:
    """Shows every event; if the output is a file, a terminal still shows the progress."""
    count = 0
    with Progress(f"playing {capture.name}, events", None) as progress:
        async for event in stream:
            screen.show(event)
            count += 1
            if not screen.colour:
                progress.update(count)
