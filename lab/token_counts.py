"""How far counts of tokens without the provider are from what it reported, on recordings.

    python -m lab.token_counts

For each wire: estimated prompts, and second turns anchored on the response before them, as
estimate / real at the 5th, 50th and 95th percentile, and how many are within a third. Prompts with
less than 500 tokens are left out of the estimates, and what a client cannot know (hosted tools,
histories that the provider stores).
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from streamlib import Prompt, Response, StreamError, Usage, parse_request
from streamlib.request.anchors import Anchor
from streamlib.request.history import ALL_OUTPUTS
from streamlib.request.target import continues_stored_history
from streamlib.request.token_count import counted_items, estimated_tokens
from streamlib_parsers.items import Message
from tests.streamlib.wires.test_conversations import response_of
from tests.support.shared import CORPUS, WIRES, Recording, require

SHORT = 500
"""Tokens of a prompt below which an estimate is not compared: a template outweighs it."""


class Ratios(NamedTuple):
    """Wire -> tokens of its prompts as estimate / real."""

    estimated: dict[str, list[float]]
    """Of whole prompts."""
    anchored: dict[str, list[float]]
    """Of second turns, by the response before them."""
    plain: dict[str, list[float]]
    """Of the same turns, estimated."""


def main() -> None:
    """Prints the tables."""
    ratios = measured()
    _show("estimated", ratios.estimated)
    _show("anchored", ratios.anchored)
    _show("the same, estimated", ratios.plain)


def measured() -> Ratios:
    """The ratios on all recordings."""
    estimated: dict[str, list[float]] = defaultdict(list)
    for recording in recordings():
        prompt, response = _exchange(recording)
        if prompt is None or response is None or not _is_plain(prompt, recording):
            continue
        real = _input_tokens(response)
        if real >= SHORT:
            estimated[recording.wire].append(estimated_tokens(prompt) / real)
    anchored: dict[str, list[float]] = defaultdict(list)
    plain: dict[str, list[float]] = defaultdict(list)
    for first, second in pairs():
        before = _exchange(first)[1]
        prompt, response = _exchange(second)
        if before is None or prompt is None or response is None:
            continue
        real = _input_tokens(response)
        tokens = _anchored(prompt, before)
        if real and tokens is not None:
            anchored[second.wire].append(tokens / real)
            plain[second.wire].append(estimated_tokens(prompt) / real)
    return Ratios(estimated, anchored, plain)


def close_ones(values: list[float]) -> int:
    """How many are within a third."""
    return sum(2 / 3 <= value <= 4 / 3 for value in values)


def _show(title: str, ratios: dict[str, list[float]]) -> None:
    print(f"{title}: wire, n, p5, median, p95, within a third")  # noqa: T201
    for wire, values in sorted(ratios.items()):
        cuts = statistics.quantiles(values, n=20) if len(values) > 1 else values * 19
        print(  # noqa: T201
            f"  {wire:14}{len(values):4}{cuts[0]:7.2f}{statistics.median(values):7.2f}"
            f"{cuts[-1]:7.2f}{close_ones(values):5} of {len(values)}"
        )


def _anchored(prompt: Prompt, before: Response) -> int | None:
    """The tokens of a prompt that goes on after a response, as `Client.count` has them."""
    turn = _turn_end(prompt)
    if turn is None:
        return None
    anchor = Anchor.of(before, before.items)
    if anchor is None:
        return None
    return anchor.tokens + counted_items(None, prompt.items[turn:])


def _turn_end(prompt: Prompt) -> int | None:
    """Where the items end that the model made last: what follows is new."""
    items = prompt.items
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        is_callers = isinstance(item, ALL_OUTPUTS)
        if isinstance(item, Message):
            is_callers = item.role != "assistant"
        if not is_callers:
            return index + 1
    return None


def recordings() -> Iterator[Recording]:
    """All recordings of the corpus with a request."""
    for folder in sorted(WIRES):
        for path in sorted((require(CORPUS / "data") / folder).glob("*")):
            if path.suffix in (".sse", ".eventstream", ".ndjson", ".jsonl") or (
                path.suffix == ".json" and path.suffixes[-2:-1] not in ([".meta"], [".expected"])
            ):
                yield Recording(path)


def pairs() -> Iterator[tuple[Recording, Recording]]:
    """Consecutive turns of the recorded conversations."""
    for line in require(CORPUS / "conversations.jsonl").read_bytes().splitlines():
        turns = [Recording(CORPUS / turn) for turn in json.loads(line)["turns"]]
        yield from pairwise(turns)


def _exchange(recording: Recording) -> tuple[Prompt | None, Response | None]:
    """The request and the response of a recording; None for one that cannot be read."""
    try:
        request = recording.meta.get("request_json")
        if not request or recording.path.parent.name not in WIRES:
            return None, None
        body = request if isinstance(request, str) else json.dumps(request)
        path = urlsplit(recording.meta.get("url") or "").path
        wire: Any = recording.wire
        return parse_request(wire, body.encode(), path=path), response_of(recording)
    except (StreamError, ValueError):
        return None, None


def _is_plain(prompt: Prompt, recording: Recording) -> bool:
    """Whether all of its input is in the request, and the model's own tools are not used."""
    if continues_stored_history(prompt.extra, recording.wire):  # type: ignore[arg-type]
        return False
    return all(tool.native is None for tool in prompt.tools)


def _input_tokens(response: Response) -> int:
    return (response.usage or Usage()).input_tokens or 0


if __name__ == "__main__":
    main()
