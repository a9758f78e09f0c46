"""Twice the input, on every wire: how many times longer it takes. Linear is 2."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from benchmarks.workloads import THOUGHT, WORKLOADS, chunked
from streamlib_parsers import parser


def seconds(wire: Any, chunks: list[bytes]) -> float:
    """CPU time of one run."""
    began = time.process_time()
    parse = parser(wire)
    for chunk in chunks:
        parse.feed(chunk)
    parse.close()
    return time.process_time() - began


def doubled(events: list[bytes], times: int) -> list[bytes]:
    """The stream with its thoughts said `times` as often: more of the same, still one valid answer."""
    marker = THOUGHT.encode()
    return [event for event in events for _ in range(times if marker in event and len(event) < 600 else 1)]


def growth(wire: str, pairs: int = 9) -> float:
    """The middle of the ratios of pairs that ran by turns."""
    events = list(WORKLOADS[wire]())
    once, twice = doubled(events, 10), doubled(events, 20)
    size = len(b"".join(twice)) / len(b"".join(once))
    ratio = statistics.median(seconds(wire, chunked(twice)) / seconds(wire, chunked(once)) for _ in range(pairs))
    return 2 * ratio / size


def main() -> int:
    """Every wire."""
    for wire in WORKLOADS:
        sys.stdout.write(f"{wire:10} x{growth(wire):.2f}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
