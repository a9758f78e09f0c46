"""`streamlib inspect FILE…`: what a captured body says, as one JSON object a line, or as a table for people."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from streamlib_parsers import (
    WIRE_APIS,
    Completed,
    Failed,
    Passthrough,
    Response,
    ResponseEvent,
    ServerToolCall,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.items import FunctionCall, WireApi
from streamlib_parsers.json_text import is_json_bytes


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "inspect",
        help="say what a captured stream or body holds",
        description="Reads captured response bodies (streams and whole JSON bodies, told apart by their content) and says what is in them.",
    )
    command.add_argument("files", nargs="+", metavar="FILE")
    command.add_argument("--wire-api", required=True, choices=WIRE_APIS, help="the wire the files were captured from")
    command.add_argument("--json", action="store_true", help="one JSON object a line for each file")
    command.add_argument("--chunk", type=int, metavar="N", help="feed the parser N bytes at a time")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Every file in one process; exit 1 where one could not be read."""
    unread = 0
    for name in arguments.files:
        try:
            body = Path(name).read_bytes()
        except OSError as error:
            print(f"{name}: {error.strerror}", file=sys.stderr)
            unread += 1
            continue
        found = summary(name, read(arguments.wire_api, body, arguments.chunk))
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n" if arguments.json else _page(found))
    return 1 if unread else 0


def read(wire_api: WireApi, body: bytes, chunk: int | None = None) -> list[ResponseEvent]:
    """The events of a stream or of a whole JSON body."""
    if is_json_bytes(body):
        return parse_body(wire_api, body)
    parse = parser(wire_api)
    events: list[ResponseEvent] = []
    for piece in _pieces(body, chunk):
        events += parse.feed(piece)
    return events + parse.close()


def _pieces(body: bytes, chunk: int | None) -> Iterator[bytes]:
    size = max(1, chunk or len(body))
    return (body[at : at + size] for at in range(0, len(body), size))


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
        "server_tools": [_call(item.call_id, item.name, item.arguments) for item in response.items if isinstance(item, ServerToolCall)],
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
    calls = [item for item in response.items if item.__struct_config__.tag in ("function_call", "custom_tool_call")]
    return [_call(item.call_id, item.name, item.arguments if isinstance(item, FunctionCall) else item.input) for item in calls]  # type: ignore[union-attr]


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def _page(found: dict[str, Any]) -> str:
    rows = [f"{found['file']}: {found['terminal']} ({found['stop_reason'] or found['error_kind']})"]
    rows += [f"  {key}: {found[key]}" for key in ("response_id", "model", "text", "reasoning", "refusal", "error") if found[key]]
    rows += [f"  call {call['name']}({call['arguments']})" for call in found["tool_calls"]]
    rows += [f"  {count:6} {kind}" for kind, count in found["events"].items()]
    return "\n".join(rows) + "\n"
