"""`streamlib replay FILE`: a recording or a captured body, streamed to the terminal again at its own pace, or any other."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import anyio

from streamlib.cli.captures import Capture, add_wire, each, other_wire
from streamlib.cli.numbers import several, speed
from streamlib.cli.progress import Progress
from streamlib.cli.screen import Screen
from streamlib.client.retry import NO_RETRY
from streamlib.errors import StreamError
from streamlib.testing import MODEL, replay

EXAMPLES = """examples:
  # a recording (chat --record), at the pace it came in
  streamlib replay answer.jsonl
  # four times as fast; 0 is at once
  streamlib replay answer.jsonl --speed 4
  # a captured body, byte by byte
  streamlib replay capture.sse --wire-api messages --split 1

exit code: 0 the answer is whole, 1 it was cut or is an error
"""


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "replay",
        help="stream a recording again",
        description="Plays a recording of ours (with its times) or any captured body through the\nclient, without a network.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("file", metavar="FILE", help="- is standard input")
    add_wire(command)
    command.add_argument(
        "--speed",
        type=speed,
        default=1.0,
        metavar="X",
        help="1 is the recorded pace, 0 at once (default 1)",
    )
    command.add_argument(
        "--split", type=several, metavar="N", help="cut the body into chunks of N bytes"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plays every answer of one file."""
    return each(
        arguments.file, arguments.wire_api, lambda capture: anyio.run(_play, capture, arguments)
    )


async def _play(capture: Capture, arguments: argparse.Namespace) -> int:
    screen = Screen(sys.stdout, sys.stderr)
    split: Any = arguments.split or "recorded"
    async with replay(
        capture.recording, capture.wire_api, speed=arguments.speed, split=split, retry=NO_RETRY
    ) as client:
        stream = client.stream("(replayed)", model=MODEL)
        try:
            async with stream:
                await _show(stream, screen, capture)
        except StreamError as error:
            screen.end()
            screen.fail(error)
            hint = other_wire(capture)
            if hint:
                screen.note(hint)
            return 1
    screen.end()
    screen.status(stream.response)
    return 0


async def _show(stream: Any, screen: Screen, capture: Capture) -> None:
    """Every event on the screen; where that is a file, a person may still see how far it is."""
    events = 0
    with Progress(f"playing {capture.name}, events", None) as progress:
        async for event in stream:
            screen.show(event)
            events += 1
            if not screen.colour:
                progress.at(events)
