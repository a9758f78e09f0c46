"""The parsers against everybody else, on the same bytes, with equal work: events alone, a snapshot
at every event, a complete response.

    python -m benchmarks.against_peers [--only WIRE] [--rounds 7] [--quick] [--save] [--chart F.svg]

All read in one process and in turn (Node in another); first their outcomes are compared.
"""

from __future__ import annotations

from typing import Final

from benchmarks import node_readers
from benchmarks.commands import Measured, Options, run
from benchmarks.contestants import DEPTHS, Contestant, Depth, ours
from benchmarks.framings import FRAMINGS
from benchmarks.node_readers import NODE
from benchmarks.other_sdks import COHERE, MISTRAL
from benchmarks.races import race, versions
from benchmarks.results import Figure
from benchmarks.sdks import PEERS
from streamlib.cli.bench import Bar
from streamlib.testing.bench.workloads import EVENT, FAST, WORKLOADS
from streamlib_parsers import WIRE_APIS

LONG: Final = 10
"""Length of the long response, in units of 2,000 deltas."""
LONG_WIRE: Final = "messages"
LONG_PEERS: Final = ("anthropic.stream", "Node: Vercel AI SDK")
LONG_ROUNDS: Final = 3
"""Rounds for the long response: with 20,000 snapshots a round takes some peers seconds."""

CHUNKS: Final[dict[Depth, tuple[int, ...]]] = {
    "events": (EVENT, FAST),
    "snapshots": (EVENT,),  # who draws every event gets them one by one
    "response": (EVENT, FAST),
}


def everybody() -> tuple[Contestant, ...]:
    """All peers, installed or not; those in Node only if Node can be run."""
    node = NODE if node_readers.absence() is None else ()
    return (*FRAMINGS, *PEERS, *COHERE, *MISTRAL, *node)


def contestants(wire: str, depth: Depth) -> list[Contestant]:
    """The installed peers of a wire with this depth."""
    found: list[Contestant] = []
    for peer in everybody():
        # Mistral's reader reads another body: see `measure`.
        if peer in MISTRAL:
            continue
        if peer.wire == wire and peer.depth == depth and peer.installed:
            found.append(peer)
    return found


def measure(options: Options, bar: Bar) -> Measured:
    """Measures every wire with every depth that a peer has."""
    figures: list[Figure] = []
    for wire in WIRE_APIS:
        if options.takes(wire):
            figures += of_wire(wire, options, bar)
    if options.takes("chat") and MISTRAL[0].installed:
        # Only texts: Mistral's reader accepts a call in one delta only, as Mistral sends it.
        events = WORKLOADS["chat-text"].events()
        racers = [ours("chat"), *MISTRAL]
        for size in CHUNKS["events"]:
            figures += race(
                "events", "chat-text", events, size, racers, options.rounds, bar.advance
            )
    if options.takes(LONG_WIRE):
        figures += long_response(options, bar)
    taking_part = [peer for peer in everybody() if peer.installed]
    found = versions(taking_part)
    absent = [f"{peer.name} is not installed" for peer in everybody() if not peer.installed]
    why = node_readers.absence()
    if why is None:
        found |= node_readers.versions()
    else:
        absent.append(f"{why}: python -m benchmarks.node_readers")
    return Measured(figures, found, sorted(set(absent)))


def of_wire(wire: str, options: Options, bar: Bar) -> list[Figure]:
    """The figures of one wire."""
    figures: list[Figure] = []
    events = WORKLOADS[wire].events()
    for depth in DEPTHS:
        peers = contestants(wire, depth)
        if not peers:
            continue
        for size in CHUNKS[depth]:
            racers = [ours(wire, depth), *peers]
            figures += race(depth, wire, events, size, racers, options.rounds, bar.advance)
    return figures


def long_response(options: Options, bar: Bar) -> list[Figure]:
    """Snapshots of a response ten times as long: quadratic readers take a hundred times as long."""
    scale = 1 if options.quick else LONG
    events = WORKLOADS[LONG_WIRE].events(scale)
    peers: list[Contestant] = []
    for peer in contestants(LONG_WIRE, "snapshots"):
        if peer.name in LONG_PEERS:
            peers.append(peer)
    if not peers:
        return []
    racers = [ours(LONG_WIRE, "snapshots"), *peers]
    rounds = min(options.rounds, LONG_ROUNDS)
    name = f"{LONG_WIRE}, 20,000 deltas"
    return race("snapshots", name, events, EVENT, racers, rounds, bar.advance)


def main(argv: list[str] | None = None) -> int:
    """Measures every wire."""
    return run("against_peers", __doc__, measure, argv, steps=lambda options: 200 * options.rounds)


if __name__ == "__main__":
    raise SystemExit(main())
