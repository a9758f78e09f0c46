"""What grows with the number of things: the same work for some things, and for four times as many.

    python -m lab.speeds.growing [--size 250] [--idle 250] [NAME …]

prints as one JSON object how many times longer twice as many take (linear is 2, quadratic 4), and
what `idle_memory` measures. In its own process, for the reasons of `lab/speeds/measure.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

import streamlib
from lab.speeds import things
from lab.speeds.idle import idle_memory
from streamlib import Accumulator, Prompt, accumulate
from streamlib.gateway.state.restore import restore_history
from streamlib.gateway.state.translate import EventTranslator
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.recording import dump, dump_events, load_events
from streamlib.recording.files import parse
from streamlib.recording.replay import pieces
from streamlib.structured.item_views import ItemViews
from streamlib.wires.encoders import UI_PROTOCOLS
from tests.support.timing import cpu_seconds

SIZE: Final = 250
"""Things of the shorter run: some milliseconds for most of this work."""

TIMES: Final = 4
"""The longer run has so many times more: two doublings, which a slow moment hides less than one."""

SHORTEST: Final = 2e-3
"""Seconds of CPU for which the work on few things is repeated: less says nothing."""

MOST: Final = 2.7
"""How many times longer twice as many may take: linear is 2, and what no longer fits into the
processor's caches takes up to a quarter longer; quadratic is 4."""

ATTEMPTS: Final = 12
"""How often both are run before a growth is believed: a busy machine makes some runs too slow."""

COPIED: Final = 100
"""The same for work that copies a reference to each thing, such as a snapshot with its items. It is
the least part of that work up to some thousand things; beyond, it would be all that is seen."""

MEMORY: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str((1 << 31) - 1),
}
"""Settings with which memory stays the process's own: pages that are new to it cost more than most
of this work, and only the longer run would need them."""

Work: TypeAlias = Callable[[], object]
Prepare: TypeAlias = Callable[[int], Work]
"""Makes so many things, and returns what is measured: the work on them."""


# --- looks ---


def _looks(events: Callable[[int], list[Any]], size: int) -> Work:
    """A snapshot after every event, the latest kept."""
    made = events(size)

    def run() -> object:
        accumulator = Accumulator()
        snapshot: object = None
        for event in made:
            accumulator.feed(event)
            snapshot = accumulator.response
        return snapshot

    return run


def _views(kind: Any, size: int) -> Work:
    """The view of a call's arguments after every delta: what `stream.partial` returns."""
    text = things.library(size)
    deltas = [text[start : start + 12] for start in range(0, len(text), 12)]

    def run() -> object:
        views = ItemViews(lambda: streamlib.FunctionCall("c", "f", ""))
        view: object = None
        for delta in deltas:
            view = views.plain() if kind is None else views.typed(kind)
            views.feed(delta)
        return view

    return run


# --- the wires ---


def _built(wire: Any, size: int) -> Work:
    prompt = Prompt(things.conversation(size), max_output_tokens=100)
    return lambda: streamlib.build(prompt, "custom:m", wire_api=wire, base_url="http://x").body


def _encoded(name: str, events: Callable[[int], list[Any]], size: int) -> Work:
    made = events(size)
    return lambda: streamlib.encode_all(name, made, model="m")


def _run_encoded(name: str, size: int) -> Work:
    made = things.run(size)
    return lambda: streamlib.encode_all(name, made, model="m", run=True)


def _body(name: str, size: int) -> Work:
    response = accumulate(things.items(size))
    return lambda: streamlib.encode_body(name, response, model="m")


# --- what is saved ---


def _saved(size: int) -> Work:
    history = things.conversation(size)
    return lambda: streamlib.History(history).dumps()


def _loaded(size: int, *, of_a_later_version: bool = False) -> Work:
    saved = streamlib.History(things.conversation(size)).dumps()
    if of_a_later_version:
        saved = saved.replace(b'"items":[', b'"items":[{"type":"of_a_later_version"},')
    return lambda: streamlib.History.loads(saved)


def _recorded(work: Callable[[Any], object], size: int) -> Work:
    recording = things.recording(size)
    return lambda: work(recording)


def _parsed(size: int) -> Work:
    saved = dump(things.recording(size))
    return lambda: parse(saved)


def _read_log(size: int) -> Work:
    saved = dump_events(things.items(size))
    return lambda: load_events(saved)


def _written_log(size: int) -> Work:
    events = things.items(size)
    return lambda: dump_events(events)


# --- a gateway ---


def _translated(wire: Any, size: int) -> Work:
    """Events with state of another wire, on their way to a client of this one."""
    events = things.items(size)

    def run() -> object:
        translate = EventTranslator(wire)
        for event in events:
            translate.feed(event)
        return translate.report

    return run


def _restored(history: Callable[[int], list[Any]], size: int) -> Work:
    received = history(size)
    return lambda: restore_history(received, {})


CLIENT_WIRES: Final = tuple(wire for wire, spec in WIRE_SPECS.items() if spec.gateway is not None)

CASES: Final[dict[str, Prepare]] = {
    "snapshots of deltas": partial(_looks, things.deltas),
    "snapshots of items": partial(_looks, things.items),
    "snapshots of open calls": partial(_looks, things.open_calls),
    "snapshots of choices": partial(_looks, things.choices),
    "snapshots of annotations": partial(_looks, things.annotations),
    "snapshots of metadata": partial(_looks, things.metadata),
    "partial view, plain": partial(_views, None),
    "partial view, typed": partial(_views, things.Library),
    **{f"build {wire}": partial(_built, wire) for wire in WIRE_SPECS},
    **{
        f"encode {name}": partial(_encoded, name, things.response)
        for name in (*WIRE_SPECS, *UI_PROTOCOLS)
    },
    **{
        f"encode {name}, open calls": partial(_encoded, name, things.open_calls)
        for name in (*WIRE_SPECS, *UI_PROTOCOLS)
    },
    "encode responses, metadata": partial(_encoded, "responses", things.metadata),
    **{f"encode {name}, runs": partial(_run_encoded, name) for name in UI_PROTOCOLS},
    **{f"body of {name}": partial(_body, name) for name in UI_PROTOCOLS},
    "history saved": _saved,
    "history loaded": _loaded,
    "history loaded item by item": partial(_loaded, of_a_later_version=True),
    "recording saved": partial(_recorded, dump),
    "recording loaded": _parsed,
    "recording parsed": partial(_recorded, lambda recording: recording.events()),
    "recording split anew": partial(
        _recorded, lambda recording: list(pieces(recording.chunks, "random"))
    ),
    "event log saved": _written_log,
    "event log loaded": _read_log,
    **{f"envelopes for {wire}": partial(_translated, wire) for wire in CLIENT_WIRES},
    "envelopes restored": partial(_restored, things.sealed),
    "envelopes restored from a list": partial(_restored, things.sealed_in_a_list),
}
"""Name -> makes so many things, and returns the work on them."""

COPYING: Final = frozenset(
    {
        "snapshots of items",
        "snapshots of open calls",
        "snapshots of choices",
        "snapshots of annotations",
        "snapshots of metadata",
    }
)
"""Work that `COPIED` is for."""


def _repeat(work: Work, times: int) -> None:
    for _ in range(times):
        work()


def doubling(name: str, size: int = SIZE) -> float:
    """How many times longer the work takes for twice as many things."""
    prepare = CASES[name]
    if name in COPYING:
        size = min(size, COPIED)
    few, many = prepare(size), prepare(TIMES * size)
    few()  # what is loaded or compiled at the first use is no growth
    times = max(1, round(SHORTEST / cpu_seconds(few)))
    best_few = best_many = float("inf")
    growth = float("inf")
    for _ in range(ATTEMPTS):
        best_few = min(best_few, cpu_seconds(partial(_repeat, few, times)))
        best_many = min(best_many, cpu_seconds(partial(_repeat, many, times)))
        growth = float((best_many / best_few) ** 0.5)
        if growth <= MOST:
            break
    return growth


def main(argv: list[str] | None = None) -> int:
    """Prints the growth of every case, or of those that are named."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("--size", type=int, default=SIZE)
    command.add_argument("--idle", type=int, default=SIZE, help="streams of the shorter run")
    command.add_argument("names", nargs="*", default=list(CASES))
    arguments = command.parse_args(argv)
    bytearray(64 << 20)  # see `MEMORY`
    figures = {name: doubling(name, arguments.size) for name in arguments.names}
    few, many = idle_memory(arguments.idle), idle_memory(TIMES * arguments.idle)
    figures["bytes of an idle stream"] = many
    figures["idle streams"] = many / few
    sys.stdout.write(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
