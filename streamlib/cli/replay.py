"""`streamlib replay FILE`: a recording or a captured body, streamed to the terminal again at its own pace, or any other."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import anyio

from streamlib.cli.chat import Screen
from streamlib.errors import StreamError
from streamlib.recording import Recording, from_body, load
from streamlib.testing import MODEL, replay
from streamlib_parsers import WIRE_APIS


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "replay",
        help="stream a recording again",
        description="Plays a recording of ours (with its times) or any captured body through the client, without a network.",
    )
    command.add_argument("file", metavar="FILE")
    command.add_argument("--wire-api", required=True, choices=WIRE_APIS, help="the wire it was recorded from")
    command.add_argument("--speed", type=float, default=1.0, metavar="X", help="1 is the recorded pace, 0 at once (default 1)")
    command.add_argument("--split", type=int, metavar="N", help="cut the body into chunks of N bytes")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plays one file."""
    try:
        recording = opened(arguments.file)
    except OSError as error:
        print(f"{arguments.file}: {error.strerror}", file=sys.stderr)
        return 1
    return anyio.run(_play, recording, arguments)


def opened(name: str) -> Recording:
    """A recording of ours, or any other file as a body without times."""
    try:
        return load(name)
    except ValueError:
        return from_body(Path(name).read_bytes())


async def _play(recording: Recording, arguments: argparse.Namespace) -> int:
    screen = Screen(sys.stdout, sys.stderr)
    split: Any = arguments.split or "recorded"
    async with replay(recording, arguments.wire_api, speed=arguments.speed, split=split) as client:
        stream = client.stream("(replayed)", model=MODEL)
        try:
            async with stream:
                async for event in stream:
                    screen.show(event)
        except StreamError as error:
            screen.end()
            screen.fail(error)
            return 1
    screen.end()
    screen.status(stream.response)
    return 0
