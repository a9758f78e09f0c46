"""`streamlib inspect FILE…`: a captured answer as a timeline that says what broke, or as one JSON object a line."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from streamlib.cli.captures import Capture, add_wire, each, events_of, failure
from streamlib.cli.event_words import quoted, usage_words
from streamlib.cli.findings import findings
from streamlib.cli.frames import steps
from streamlib.cli.numbers import several
from streamlib.cli.screen import BOLD, DIM, FAULT, GOOD, ODD, painted
from streamlib.cli.terminal import printable
from streamlib.cli.timeline import page
from streamlib_parsers import (
    Completed,
    Failed,
    Passthrough,
    Response,
    ResponseEvent,
    ServerToolCall,
    accumulate,
)
from streamlib_parsers.items import CustomToolCall, FunctionCall

EXAMPLES = """examples:
  # the timeline: byte, wire event, our events, and what is missing
  streamlib inspect capture.sse --wire-api messages
  # a recording (chat --record) knows its wire, and when each byte came
  streamlib inspect answer.jsonl
  # standard input
  curl -sN … | streamlib inspect - --wire-api chat
  # one JSON object a line for each file, for programs
  streamlib inspect *.sse --wire-api chat --json

exit code: 0 every answer is whole, 1 one is not or could not be read
           (with --json 1 only for what could not be read)
"""


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "inspect",
        help="say what a captured stream or body holds, and what is missing",
        description="Reads captured answers: raw streams, whole JSON bodies (told apart by their\ncontent) and recordings of ours.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    add_wire(command)
    command.add_argument("--json", action="store_true", help="one JSON object a line for each file")
    command.add_argument(
        "--chunk", type=several, metavar="N", help="with --json: feed the parser N bytes at a time"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Every file in one process; exit 1 where one could not be read, or is not whole."""
    return max(_one(name, arguments) for name in arguments.files)


def _one(name: str, arguments: argparse.Namespace) -> int:
    return each(
        name,
        arguments.wire_api,
        lambda one: _json(one, arguments.chunk) if arguments.json else _page(one),
    )


# --- for programs ---


def _json(capture: Capture, chunk: int | None) -> int:
    sys.stdout.write(
        msgspec.json.encode(summary(capture.name, events_of(capture, chunk))).decode() + "\n"
    )
    return 0


def summary(name: str, events: list[ResponseEvent]) -> dict[str, Any]:
    """What `--json` prints for one file."""
    response = accumulate(events)
    ends = [event for event in events if isinstance(event, (Completed, Failed))]
    return {
        "file": name,
        "response_id": response.response_id,
        "model": response.model,
        "text": response.text,
        "reasoning": response.reasoning,
        "refusal": response.refusal,
        "tool_calls": _calls(response),
        "server_tools": [
            _call(item.call_id, item.name, item.arguments)
            for item in response.items
            if isinstance(item, ServerToolCall)
        ],
        "stop_reason": response.stop_reason,
        "usage": msgspec.to_builtins(response.usage),
        "terminal": "completed" if isinstance(ends[-1], Completed) else "failed",
        "error_kind": response.error.kind if response.error else None,
        "error": response.error.message if response.error else None,
        "events": Counter(type(event).__name__ for event in events),
        "passthrough": Counter(event.event for event in events if isinstance(event, Passthrough)),
        "notices": [notice.code for notice in response.notices],
    }


def _calls(response: Response) -> list[dict[str, Any]]:
    """Every call, also one that was cut: this is a look at what came, not a list to act on."""
    calls: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, FunctionCall):
            calls.append(_call(item.call_id, item.name, item.arguments))
        elif isinstance(item, CustomToolCall):
            calls.append(_call(item.call_id, item.name, item.input))
    return calls


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


# --- for people ---


def _page(capture: Capture) -> int:
    found = list(steps(capture))
    events = [event for step in found for event in step.events]
    response = accumulate(events)
    width = shutil.get_terminal_size((140, 24)).columns
    said = findings(capture, found)
    marks = (
        [("!", FAULT)] * len(said) if response.error else [("=", GOOD), *[("!", ODD)] * len(said)]
    )
    first, *head = _head(capture, response)
    columns, *timeline = page(capture, found, width)
    lines = [
        (first, BOLD),
        *((line, DIM) for line in head),
        ("", ""),
        (columns, DIM),
        *((line, "") for line in timeline),
        ("", ""),
    ]
    lines += [*((line, "") for line in _said(response, width))]
    lines += [(f"  {mark} {line}", style) for line, (mark, style) in zip(said, marks, strict=False)]
    for line, style in [*lines, ("", "")]:
        sys.stdout.write(
            (painted(line.rstrip(), style, sys.stdout) if style else line.rstrip()) + "\n"
        )
    return 1 if failure(events) else 0


def _head(capture: Capture, response: Response) -> Iterator[str]:
    recording, error = capture.recording, response.error
    ended = f"failed ({error.kind})" if error else f"{response.status} ({response.stop_reason})"
    yield f"{printable(capture.name)}: {ended}"
    named = [
        response.model,
        response.response_id,
        f"HTTP {recording.status}" if capture.ours else None,
        recording.url,
    ]
    yield "  " + " · ".join(
        [
            capture.wire_api,
            f"{len(recording.body):,} bytes",
            *(printable(one) for one in named if one),
        ]
    )


def _said(response: Response, width: int) -> Iterator[str]:
    """What the answer says, short."""
    texts = {"thought": response.reasoning, "text": response.text, "refusal": response.refusal}
    yield from (
        f"  {name}: {quoted(text, width - len(name) - 4)}" for name, text in texts.items() if text
    )
    for call in _calls(response):
        yield f"  call: {printable(call['name'])} {quoted(call['arguments'], width - len(call['name']) - 9)}"
    if response.usage is not None:
        yield f"  usage: {usage_words(response.usage)}"
