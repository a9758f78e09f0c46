"""What each cast shows: commands that are run, with their output at the times of the recording."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, chdir
from typing import Any, Final
from unittest.mock import patch

from lab.casts.record import QUESTION, RECORDING
from lab.casts.tape import Tape
from streamlib import Client
from streamlib.cli import main
from streamlib.recording import Chunk, Recording, load, save
from streamlib.testing import replay

PROMPT: Final = "\x1b[1;32m$\x1b[0m "
READING: Final = 6.0
"""Seconds that the last picture of a cast stays, before it starts again."""
LAST_TEXT: Final = b" 1233"
"""What the recording of `inspect` ends with: the rest of its frame was not received."""


def chat() -> Tape:
    """A question, and Markdown that is drawn while it streams."""
    tape = Tape(78, 23)
    model = {"STREAMLIB_MODEL": "loopback:scripted"}
    client = "streamlib.cli.conversation.Conversation._client"
    with patch(client, _replayed), patch.dict("os.environ", model):
        _start(tape)
        _run(tape, f'streamlib "{QUESTION}"')
    _end(tape)
    return tape


def inspect() -> Tape:
    """A response that was cut: what `replay` and `inspect` make of it."""
    tape = Tape(96, 27)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        save(_cut(load(RECORDING)), "cut.jsonl")
        _start(tape)
        _run(tape, "streamlib replay cut.jsonl --speed 2")
        tape.wait(2.0)
        _run(tape, "clear")
        _run(tape, "streamlib inspect cut.jsonl")
    _end(tape)
    return tape


def _cut(recording: Recording) -> Recording:
    """The recording up to `LAST_TEXT`."""
    chunks: list[Chunk] = []
    for chunk in recording.chunks:
        before, found, _ = chunk.data.partition(LAST_TEXT)
        chunks.append(Chunk(chunk.at, before + found))
        if found:
            break
    return Recording(
        recording.status, recording.headers, tuple(chunks), wire_api=recording.wire_api
    )


CASTS: Final[dict[str, Callable[[], Tape]]] = {"chat": chat, "inspect": inspect}
"""Name -> its session."""


@asynccontextmanager
async def _replayed(*_: Any) -> AsyncGenerator[Client]:
    """The client of the chat, with the recording in place of a provider."""
    async with replay(load(RECORDING), speed=1) as client:
        yield client


def _start(tape: Tape) -> None:
    tape.write(PROMPT)
    tape.wait(0.8)


def _run(tape: Tape, command: str) -> None:
    tape.type(command)
    if command == "clear":
        tape.write("\x1b[H\x1b[2J")
    else:
        with tape.as_terminal():
            main(shlex.split(command)[1:])
    tape.wait(0.3)
    tape.write(PROMPT)


def _end(tape: Tape) -> None:
    tape.wait(READING)
    tape.write("")
