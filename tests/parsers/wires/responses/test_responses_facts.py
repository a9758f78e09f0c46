"""Recordings of Open Responses, xAI and Perplexity against their facts.

The facts were not made with this library. The streams are public recordings beside this repository;
nothing of them is committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from streamlib import (
    Opaque,
    Passthrough,
    Response,
    ResponseEvent,
    ServerToolCall,
    WireApi,
    accumulate,
    parse_body,
    parser,
)
from tests.support.metrics import figure
from tests.support.shared import SHARED

CORPUS: Final = SHARED / "corpus-2"

FOLDERS: Final[dict[str, WireApi]] = {
    "open-responses": "responses",
    "responses-xai": "responses",
    "perplexity-chat": "chat",
}


def recordings(folder: str) -> Iterator[tuple[Path, Any]]:
    """Each recording and its facts."""
    for facts in sorted((CORPUS / folder).glob("*.facts.json")):
        stem = facts.name.removesuffix(".facts.json")
        for suffix in (".sse", ".jsonl", ".json"):
            path = facts.with_name(f"{stem}{suffix}")
            if path.exists():
                yield path, json.loads(facts.read_bytes())["facts"]


def events_of(wire_api: WireApi, path: Path) -> list[ResponseEvent]:
    body = path.read_bytes()
    if path.suffix == ".json":
        return parse_body(wire_api, body)
    if path.suffix == ".jsonl":
        lines = [line for line in body.splitlines() if line.strip()]
        body = b"".join(b"data: " + line + b"\n\n" for line in lines)
    parse = parser(wire_api)
    return [*parse.feed(body), *parse.close()]


def server_calls(response: Response) -> list[str]:
    kinds: list[str] = []
    for item in response.items:
        if isinstance(item, ServerToolCall):
            kinds.append((item.native or {})["type"])
    return kinds


def unknown(events: list[ResponseEvent], response: Response) -> list[str]:
    kinds = [item.kind for item in response.items if isinstance(item, Opaque)]
    kinds += [event.event for event in events if isinstance(event, Passthrough)]
    return kinds


def known(events: list[ResponseEvent]) -> dict[str, Any]:
    """What the response has of each fact."""
    response = accumulate(events)
    usage = response.usage
    tokens = None
    if usage is not None:
        tokens = [usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens]
    return {
        "text": response.text,
        "thoughts": "".join(response.reasoning.split()),
        "calls": [[call.call_id, call.name, call.parsed()] for call in response.function_calls],
        "server_calls": server_calls(response),
        "unknown": unknown(events, response),
        "id": response.response_id,
        "model": response.model,
        "usage": tokens,
        "status": response.status,
        "finish_reason": response.native_stop_reason,
        "error": response.error,
    }


def expected(facts: Any) -> dict[str, Any]:
    """The facts in the form of `known`."""
    wanted = {name: value for name, value in facts.items() if value is not None}
    wanted["thoughts"] = "".join(facts.get("thoughts", "").split())
    if "calls" in facts:
        calls = facts["calls"]
        wanted["calls"] = [[call_id, name, json.loads(text)] for call_id, name, text in calls]
    usage = wanted.get("usage")
    if usage:
        cached = usage.get("input_tokens_details", {}).get("cached_tokens")
        tokens = [usage.get("input_tokens"), usage.get("output_tokens"), cached]
        if "prompt_tokens" in usage:
            tokens = [usage["prompt_tokens"], usage["completion_tokens"], None]
        wanted["usage"] = tokens
    return wanted


def differences(events: list[ResponseEvent], facts: Any) -> list[str]:
    has, wanted = known(events), expected(facts)
    found: list[str] = []
    for name, value in has.items():
        if name in wanted and wanted[name] != value:
            found.append(f"{name}: {value!r}, not {wanted[name]!r}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_recordings_agree_with_their_facts(folder: str) -> None:
    if not CORPUS.is_dir():
        pytest.skip("shared test data is absent: no corpus-2")
    total = 0
    wrong: dict[str, list[str]] = {}
    for path, facts in recordings(folder):
        total += 1
        found = differences(events_of(FOLDERS[folder], path), facts)
        if found:
            wrong[path.name] = found
    assert wrong == {}
    assert total
    figure(f"facts of {folder}", total)
