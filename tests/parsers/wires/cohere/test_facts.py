"""Recorded responses of Cohere and Mistral against their facts, which were not made with this
library.

The responses are public recordings beside this repository; nothing of them is committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from streamlib import FunctionCall, Message, Response, Text, WireApi, accumulate, parse_body, parser
from tests.support.metrics import figure
from tests.support.shared import SHARED

FOLDERS: Final[dict[str, WireApi]] = {"cohere": "cohere", "mistral-chat": "chat"}


def recordings(folder: Path) -> Iterator[tuple[Path, Any]]:
    """Each recording with its facts."""
    for facts in sorted(folder.glob("*.facts.json")):
        stem = facts.name.removesuffix(".facts.json")
        for suffix in (".sse", ".jsonl", ".json"):
            path = folder / f"{stem}{suffix}"
            if path.exists():
                yield path, json.loads(facts.read_bytes())


def read(path: Path, wire: WireApi, status: int | None) -> Response:
    body = path.read_bytes()
    if path.suffix == ".json":
        return accumulate(parse_body(wire, body, status=status))
    if path.suffix == ".jsonl":
        lines = [line for line in body.splitlines() if line.strip()]
        body = b"".join(b"data: " + line + b"\n\n" for line in lines)
    wire_parser = parser(wire)
    return accumulate([*wire_parser.feed(body), *wire_parser.close()])


def known(response: Response) -> dict[str, Any]:
    """What the response has of each fact."""
    texts = {"text": "", "tool_plan": ""}
    citations = 0
    for item in response.items:
        if isinstance(item, Message):
            texts["tool_plan" if item.phase == "commentary" else "text"] += item.text
            parts = [part for part in item.content if isinstance(part, Text)]
            for annotation in (each for part in parts for each in part.annotations):
                citations += 1
                assert cited(annotation, parts[0].text), annotation
    calls = [
        [call.call_id, call.name, call.parsed()]
        for call in response.calls
        if isinstance(call, FunctionCall)
    ]
    usage = response.usage
    return {
        **texts,
        "thoughts": response.reasoning,
        "calls": calls,
        "citations": citations,
        "finish_reason": response.native_stop_reason,
        "id": response.response_id,
        "usage": None if usage is None else usage.raw,
    }


def cited(annotation: dict[str, Any], text: str) -> bool:
    """Whether the offsets of a citation are those of its words."""
    if "text" not in annotation:
        return True
    return bool(text[annotation["start"] : annotation["end"]] == annotation["text"])


def differences(facts: Any, response: Response) -> list[str]:
    if facts.get("error"):
        return [] if response.status == "failed" else ["it is not failed"]
    wanted = dict(facts)
    calls: list[Any] = []
    for call_id, name, arguments in facts["calls"]:
        if isinstance(arguments, str):
            arguments = json.loads(arguments or "{}")  # noqa: PLW2901
        calls.append([call_id, name, arguments])
    wanted["calls"] = calls
    found: list[str] = []
    for name, value in known(response).items():
        if wanted.get(name) is not None and wanted[name] != value:
            found.append(f"{name}: {value!r}, not {wanted[name]!r}")
    return found


@pytest.mark.parametrize("name", FOLDERS)
def test_every_recording_agrees_with_its_facts(name: str) -> None:
    folder = SHARED / "corpus-2" / name
    if not folder.is_dir():
        pytest.skip("shared test data is absent: no corpus-2")
    wrong: dict[str, list[str]] = {}
    total = 0
    for path, recorded in recordings(folder):
        total += 1
        found = differences(recorded["facts"], read(path, FOLDERS[name], recorded.get("status")))
        if found:
            wrong[path.name] = found
    assert wrong == {}
    assert total >= 30
    figure(f"facts of {name}", total)
