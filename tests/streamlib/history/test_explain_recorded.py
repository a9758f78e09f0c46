"""Recorded pairs of requests: what their caches read is within what `explain_cache` expects."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from itertools import pairwise
from typing import Any, Final

import pytest

from streamlib import Origin, Request, Response, Usage
from streamlib.history import CacheExplanation, explain_cache
from tests.streamlib.wires.test_conversations import response_of
from tests.support.shared import CORPUS, WIRES, Recording, require

EXACT: Final = (
    "test_anthropic_cache_real_api.01",
    "to_google_deferred_capability_history_replay.02",
    "test_anthropic_cache_bedrock_real_api.01",
    "test_bedrock_single_tool_choice_preserves_cache-nova.02",
    "test_openai_responses_prompt_cache_e2e.01",
)
"""Parts of the names of recordings with marks."""

PAIRS: Final = 73
"""64 are in the tables of caches; the others are of Cohere."""


@cache
def pairs() -> list[tuple[Recording, Recording, Response, Response]]:
    """Consecutive exchanges of a cassette, where one of the two has a number of its cache."""
    cassettes: dict[tuple[str, str], list[tuple[int, str, Recording]]] = defaultdict(list)
    for folder in WIRES:
        for path in sorted((require(CORPUS / "data") / folder).glob("*")):
            if path.name.endswith((".meta.json", ".expected.json")):
                continue
            recording = Recording(path)
            meta = recording.meta
            if meta:
                key = (meta["repo"], meta["path"])
                cassettes[key].append((meta.get("seq", 0), path.name, recording))
    found: list[tuple[Recording, Recording, Response, Response]] = []
    for exchanges in cassettes.values():
        for (_, _, first), (_, _, second) in pairwise(sorted(exchanges, key=lambda one: one[:2])):
            if first.meta.get("request_json") and second.meta.get("request_json"):
                responses = response_of(first), response_of(second)
                if any(_has_cache(response.usage) for response in responses):
                    found.append((first, second, *responses))
    return found


def _has_cache(usage: Usage | None) -> bool:
    usage = usage or Usage()
    return bool(usage.cache_read_input_tokens or usage.cache_write_input_tokens)


def request_of(recording: Recording) -> Request:
    meta = recording.meta
    body = meta["request_json"]
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    wire: Any = recording.wire
    origin = Origin(wire, meta["provider"], model=meta["model"])
    return Request("POST", meta.get("url") or "", {}, data, [], wire, meta["model"], origin)


def explained(
    first: Recording, second: Recording, before: Response, after: Response
) -> CacheExplanation:
    tokens = (after.usage or Usage()).input_tokens
    requests = request_of(first), request_of(second)
    return explain_cache(*requests, response=before, tokens=tokens)


def test_recorded_reads_are_within_what_is_expected() -> None:
    surprises: list[str] = []
    for first, second, before, after in pairs():
        found = explained(first, second, before, after)
        read = (after.usage or Usage()).cache_read_input_tokens or 0
        if read > found.expected_read.high:
            surprises.append(f"{second.path.name}: {read} > {found.expected_read}")
    assert surprises == []
    assert len(pairs()) >= PAIRS


@pytest.mark.parametrize("name", EXACT)
def test_recorded_marks_are_exact(name: str) -> None:
    [pair] = [pair for pair in pairs() if name in pair[1].path.name]
    found = explained(*pair)
    usage = pair[3].usage or Usage()
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    assert found.expected_read == (read, read)
    # What stands behind the last mark differs by a token from request to request.
    assert abs(found.expected_write.high - (written or 0)) <= 1


def test_steps_hold_for_each_recorded_read() -> None:
    for _, second, _, after in pairs():
        read = (after.usage or Usage()).cache_read_input_tokens or 0
        if "kimi" in second.meta["model"]:
            assert read % 64 == 0
