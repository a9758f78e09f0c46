"""Recorded interactions against their facts, which were not made with this library.

The streams are public recordings beside this repository; nothing of them is committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from streamlib import (
    FunctionCall,
    Message,
    Reasoning,
    Response,
    ServerToolCall,
    Text,
    accumulate,
    parse_body,
)
from tests.support.interactions_frames import events_of
from tests.support.metrics import figure
from tests.support.shared import SHARED

FOLDER: Final = SHARED / "corpus-2" / "interactions"

REFUSED: Final = "derived__legacy-content-schema_removed-2026-06-08"
"""The schema that Google removed, which is refused by its name: its facts are another reader's."""


def recordings() -> Iterator[tuple[Path, Any]]:
    """Each recording and its facts."""
    for facts in sorted(FOLDER.glob("*.facts.json")):
        stem = facts.name.removesuffix(".facts.json")
        for suffix in (".sse", ".jsonl", ".json"):
            path = FOLDER / f"{stem}{suffix}"
            if path.exists():
                yield path, json.loads(facts.read_bytes())["facts"]


def read(path: Path) -> Response:
    body = path.read_bytes()
    if path.suffix == ".json":
        return accumulate(parse_body("interactions", body))
    if path.suffix == ".jsonl":
        lines = [line for line in body.splitlines() if line.strip()]
        body = b"".join(b"data: " + line + b"\n\n" for line in lines)
    return accumulate(events_of(body))


def known(response: Response) -> dict[str, Any]:
    """What the response has of each fact."""
    calls: list[Any] = []
    server_calls: list[Any] = []
    annotations = signatures = 0
    for item in response.items:
        match item:
            case FunctionCall():
                calls.append([item.call_id, item.name, item.parsed()])
            case ServerToolCall():
                server_calls.append([(item.native or {})["type"], item.parsed()])
            case Reasoning():
                signatures += item.signature is not None
            case Message():
                texts = [part for part in item.content if isinstance(part, Text)]
                annotations += sum(len(part.annotations) for part in texts)
            case _:
                pass
    return {
        "text": response.text,
        "thoughts": squeezed(response.reasoning),
        "calls": calls,
        "server_calls": server_calls,
        "annotations": annotations,
        "signatures": signatures,
        "id": response.response_id,
        "model": response.model,
        "continuation_token": response.metadata.get("continuation_token"),
        "last_event_id": response.metadata.get("event_id"),
    }


def squeezed(words: str) -> str:
    """Recorded facts differ in the blanks between summaries."""
    return "".join(words.split())


def expected(facts: Any) -> dict[str, Any]:
    """The facts in the form of `known`."""
    wanted = dict(facts)
    if "thoughts" in wanted:
        wanted["thoughts"] = squeezed(wanted["thoughts"])
    if "calls" in wanted:
        calls = [
            [call_id, name, json.loads(arguments) if isinstance(arguments, str) else arguments]
            for call_id, name, arguments in wanted["calls"]
        ]
        wanted["calls"] = calls
    if isinstance(wanted.get("signatures"), list):
        wanted["signatures"] = len(wanted["signatures"])
    return wanted


def differences(facts: Any, response: Response) -> list[str]:
    found: list[str] = []
    has, wanted = known(response), expected(facts)
    if any(isinstance(call, str) for call in wanted.get("server_calls", ())):
        has["server_calls"] = [kind for kind, _ in has["server_calls"]]
    for name, value in has.items():
        if name in wanted and wanted[name] is not None and wanted[name] != value:
            found.append(f"{name}: {value!r}, not {wanted[name]!r}")
    is_failed = wanted.get("error") or wanted.get("status") in ("failed", "in_progress")
    if is_failed and response.status != "failed":
        found.append("it is not failed")
    status = wanted.get("status")
    if status and not is_failed and response.native_stop_reason != status:
        found.append(f"status: {response.native_stop_reason!r}, not {status!r}")
    usage = wanted.get("usage")
    if usage and response.usage is not None:
        tokens = (response.usage.input_tokens, response.usage.output_tokens)
        tools = usage.get("total_tool_use_tokens", 0)
        output = usage["total_output_tokens"] + usage["total_thought_tokens"]
        if tokens != (usage["total_input_tokens"] + tools, output):
            found.append(f"usage: {tokens}")
    return found


def test_every_recording_agrees_with_its_facts() -> None:
    if not FOLDER.is_dir():
        pytest.skip("shared test data is absent: no corpus-2")
    total = 0
    wrong: dict[str, list[str]] = {}
    for path, facts in recordings():
        if path.stem == REFUSED:
            continue
        total += 1
        found = differences(facts, read(path))
        if found:
            wrong[path.name] = found
    assert wrong == {}
    assert total >= 39
    figure("facts of interactions", total)


def test_refused_schema_is_not_a_broken_stream() -> None:
    path = FOLDER / f"{REFUSED}.sse"
    if not path.exists():
        pytest.skip("shared test data is absent: no corpus-2")
    error = read(path).error
    assert error is not None
    assert error.code == "legacy_schema"
