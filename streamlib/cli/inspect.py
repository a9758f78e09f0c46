"""`streamlib inspect FILE…`: a captured response as a timeline with findings, or as JSON."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from streamlib.cli.captures import (
    Capture,
    add_wire_option,
    events_of,
    for_each_capture,
)
from streamlib.cli.commands import COMMANDS
from streamlib.cli.event_text import quote, shorten, tool_name, usage_text
from streamlib.cli.exit_codes import EXIT_CODES, code_of_response
from streamlib.cli.findings import findings
from streamlib.cli.frames import steps
from streamlib.cli.numbers import byte_count
from streamlib.cli.screen import BOLD, DIM, GREEN, RED, YELLOW, paint
from streamlib.cli.tables import hanging, terminal_width
from streamlib.cli.timeline import page
from streamlib.request.built_in_text import describe_call
from streamlib.terminal.printable import printable
from streamlib_parsers import (
    Completed,
    Passthrough,
    Response,
    ResponseEvent,
    ServerToolCall,
    accumulate,
)
from streamlib_parsers.items import BUILT_IN_CALLS, CustomToolCall, FunctionCall

DESCRIPTION: Final = """\
Reads captured responses: raw streams, complete JSON bodies (recognised by
their content) and recordings made by streamlib."""

EXAMPLES: Final = f"""examples:
  # the timeline: offset, frame, events, and what is missing
  streamlib inspect capture.sse --wire-api messages
  # a recording (chat --record) knows its wire, and when each byte was received
  streamlib inspect response.jsonl
  # standard input
  curl -sN … | streamlib inspect - --wire-api chat
  # one JSON object a line for each file, for programs
  streamlib inspect *.sse --wire-api chat --json

The highest code of all files counts; with --json it is 1 for a file that
cannot be read, else 0.

{EXIT_CODES}"""


def add(commands: Any) -> None:
    """Adds the command and its options."""
    command: argparse.ArgumentParser = commands.add_parser(
        "inspect",
        help=COMMANDS["inspect"],
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    add_wire_option(command)
    command.add_argument("--json", action="store_true", help="one JSON object a line for each file")
    command.add_argument(
        "--chunk",
        type=byte_count,
        metavar="N",
        help="with --json: feed the parser N bytes at a time",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Inspects every file; the highest exit code of all."""

    def handle(capture: Capture) -> int:
        if arguments.json:
            return _print_json(capture, arguments.chunk)
        return _print_page(capture)

    code = 0
    for name in arguments.files:
        code = max(code, for_each_capture(name, arguments.wire_api, handle))
    return code


# --- for programs ---


def _print_json(capture: Capture, chunk_bytes: int | None) -> int:
    fields = summary(capture.name, events_of(capture, chunk_bytes))
    sys.stdout.write(msgspec.json.encode(fields).decode() + "\n")
    return 0


def summary(name: str, events: list[ResponseEvent]) -> dict[str, Any]:
    """What `--json` prints for one file. Its keys are a contract."""
    response = accumulate(events)
    is_completed = any(isinstance(event, Completed) for event in events)
    event_counts = Counter(type(event).__name__ for event in events)
    unknown_counts = Counter(event.event for event in events if isinstance(event, Passthrough))
    error_kind = None
    error_message = None
    if response.error is not None:
        error_kind = response.error.kind
        error_message = response.error.message
    return {
        "file": name,
        "response_id": response.response_id,
        "model": response.model,
        "text": response.text,
        "reasoning": response.reasoning,
        "refusal": response.refusal,
        "tool_calls": _calls(response),
        "server_tools": _server_calls(response),
        "stop_reason": response.stop_reason,
        "usage": msgspec.to_builtins(response.usage),
        "terminal": "completed" if is_completed else "failed",
        "error_kind": error_kind,
        "error": error_message,
        "events": event_counts,
        "passthrough": unknown_counts,
        "notices": [notice.code for notice in response.notices],
    }


def _calls(response: Response) -> list[dict[str, Any]]:
    """Every call, incomplete ones too: this shows what was received, and nothing acts on it."""
    calls: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, FunctionCall):
            calls.append(_call(item.call_id, item.name, item.arguments))
        elif isinstance(item, CustomToolCall):
            calls.append(_call(item.call_id, item.name, item.input))
    return calls


def _server_calls(response: Response) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, ServerToolCall):
            calls.append(_call(item.call_id, item.name, item.arguments))
    return calls


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


# --- for people ---


def _print_page(capture: Capture) -> int:
    walked = list(steps(capture))
    events: list[ResponseEvent] = []
    for step in walked:
        events += step.events
    response = accumulate(events)
    width = terminal_width(140)

    title, *facts = _header(capture, response)
    _print(title, BOLD)
    for fact in facts:
        for line in hanging(fact, width):
            _print(line, DIM)
    _print()
    columns, *timeline = page(capture, walked, width)
    _print(columns, DIM)
    for line in timeline:
        _print(line)
    _print()
    for line in _contents(response, width):
        _print(line)
    for index, finding in enumerate(findings(capture, walked)):
        mark, style = "!", YELLOW
        if response.error is not None:
            style = RED
        elif index == 0:
            # The verdict of a complete response; what follows is unusual, but no failure.
            mark, style = "=", GREEN
        for line in hanging(f"  {mark} {finding}", width):
            _print(line, style)
    _print()
    return code_of_response(response)


def _print(line: str = "", style: str = "") -> None:
    line = line.rstrip()
    if style:
        line = paint(line, style, sys.stdout)
    sys.stdout.write(line + "\n")


def _header(capture: Capture, response: Response) -> Iterator[str]:
    recording = capture.recording
    if response.error is not None:
        outcome = f"failed ({response.error.kind})"
    else:
        outcome = f"{response.status} ({response.stop_reason})"
    yield f"{printable(capture.name)}: {outcome}"
    facts: list[str] = [capture.wire_api, f"{len(recording.body):,} bytes"]
    if response.model:
        facts.append(printable(response.model))
    if response.response_id:
        facts.append(printable(response.response_id))
    if capture.is_recorded:
        facts.append(f"HTTP {recording.status}")
    if recording.url:
        facts.append(printable(recording.url))
    if recording.request is not None:
        facts.append(f"request {len(recording.request.body):,} bytes")
    yield "  " + " · ".join(facts)


def _contents(response: Response, width: int) -> Iterator[str]:
    """What the response contains, abbreviated."""
    texts = {"reasoning": response.reasoning, "text": response.text, "refusal": response.refusal}
    for name, text in texts.items():
        if text:
            yield f"  {name}: {quote(text, width - len(name) - 4)}"
    for call in _calls(response):
        name = tool_name(call["name"])
        arguments = quote(call["arguments"], width - len(name) - 9)
        yield f"  call: {name} {arguments}"
    for item in response.items:
        if isinstance(item, BUILT_IN_CALLS):
            yield "  call: " + shorten(printable(describe_call(item)), width - 8)
    if response.usage is not None:
        yield f"  usage: {usage_text(response.usage)}"
