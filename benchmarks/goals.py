"""Goals of this project for ratios to peers, and whether they are met."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from benchmarks.cells import NOTHING, markdown, with_spread
from benchmarks.results import Figure, Result, ratio
from streamlib.testing.bench.records import OURS

Build = Literal["pure", "compiled"]
SNAPSHOTS: Final = "messages, 20,000 deltas"
NODE: Final = "Node: eventsource-parser"


class Goal(NamedTuple):
    """A goal: a peer takes at least this many times our time.

    Attributes:
        bench: name of the benchmark.
        workload: name of the workload.
        chunks: text that names the chunking.
        peer: name of the peer.
        build: build of this library.
        least: minimum ratio; for a floor, the minimum share of our time that it takes.
    """

    bench: str
    workload: str
    chunks: str
    peer: str
    build: Build
    least: float

    @property
    def text(self) -> str:
        """The goal in words."""
        if self.peer == "floor":
            return f"{self.workload}, {self.chunks}: ≤ {1 / self.least:.1f} times the floor"
        return f"{self.bench}, {self.workload}, {self.chunks}: {self.peer} ≥ {self.least:g}x"


def _sdk(workload: str, peer: str, pure: tuple[int, int], compiled: tuple[int, int]) -> list[Goal]:
    """The goals against an SDK: ratios with one event a chunk, and in chunks of 16 KiB."""
    made: list[Goal] = []
    builds: tuple[tuple[Build, tuple[int, int]], ...] = (("pure", pure), ("compiled", compiled))
    for build, (one, fast) in builds:
        made.append(Goal("events", workload, "an event", peer, build, one))
        made.append(Goal("events", workload, "16 KiB", peer, build, fast))
    return made


def _floor(workload: str) -> list[Goal]:
    made: list[Goal] = []
    for chunks in ("an event", "16 KiB"):
        made.append(Goal("events", workload, chunks, "floor", "pure", 1 / 1.6))
    return made


GOALS: Final = (
    *_sdk("messages", "anthropic", (10, 15), (16, 18)),
    *_sdk("chat", "openai", (50, 63), (90, 100)),
    *_sdk("responses", "openai", (40, 48), (55, 65)),
    *_sdk("gemini", "google-genai", (45, 60), (60, 75)),
    *_sdk("converse", "botocore", (7, 10), (9, 13)),
    Goal("snapshots", SNAPSHOTS, "an event", "anthropic.stream", "pure", 10),
    Goal("events", "messages", "an event", NODE, "compiled", 1),
    Goal("events", "chat", "an event", NODE, "compiled", 1),
    *_floor("responses"),
    *_floor("gemini"),
)


def reached(goal: Goal, result: Result) -> Figure | None:
    """The measured ratio; None if it was not measured."""
    key = {"bench": goal.bench, "workload": goal.workload, "chunks": goal.chunks}
    peer = result.find(**key, contestant=goal.peer, measure="time")
    own = result.find(**key, contestant=OURS, measure="time")
    if not peer or not own:
        return None
    if goal.peer == "floor":
        return ratio(own[0], peer[0])
    return ratio(peer[0], own[0])


def is_met(goal: Goal, found: Figure) -> bool:
    """Whether the median of the rounds meets a goal."""
    if goal.peer == "floor":
        return found.median <= 1 / goal.least
    return found.median >= goal.least


def table(pure: Result | None, compiled: Result | None) -> str:
    """A table of every goal, the ratio that was reached, and whether it meets the goal."""
    if pure is None:
        return NOTHING
    rows: list[list[str]] = []
    for goal in GOALS:
        result = pure if goal.build == "pure" else compiled
        found = None if result is None else reached(goal, result)
        if found is None:
            rows.append([goal.text, goal.build, NOTHING, ""])
        else:
            verdict = "yes" if is_met(goal, found) else "**no**"
            rows.append([goal.text, goal.build, with_spread(found), verdict])
    return markdown(["goal", "build", "reached", "met"], rows)
