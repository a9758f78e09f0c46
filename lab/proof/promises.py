"""The promises, the figures each requires, and the tests that prove it: data for the proof command.

A requirement names a figure that the tests count while they run (tests/support/metrics.py), how its
counts become one number (`fold`), and the bound. `sum`, `max` and `min` are over all counts;
`names` counts the different figures that begin with the name (`fault/…`), so that the same vector
on two event loops counts once.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from lab.proof.results import Summary

Fold = Literal["sum", "max", "min", "names"]


class Requirement(NamedTuple):
    """A figure and its bound."""

    figure: str
    bound: float
    fold: Fold = "sum"
    is_minimum: bool = True
    """Whether the bound is the least value; otherwise it is the largest."""

    def value(self, figures: Mapping[str, Summary]) -> float | None:
        """The figure as one number; None if it was not counted."""
        if self.fold == "names":
            count = sum(name.startswith(self.figure) for name in figures)
            return count or None
        summary = figures.get(self.figure)
        if summary is None:
            return None
        return float(getattr(summary, self.fold))

    def is_met(self, figures: Mapping[str, Summary]) -> bool:
        """Whether the figure meets its bound; one that was not counted does not."""
        value = self.value(figures)
        if value is None:
            return False
        if self.is_minimum:
            return value >= self.bound
        return value <= self.bound


def at_most(figure: str, bound: float, fold: Fold = "max") -> Requirement:
    """A figure that must not exceed the bound."""
    return Requirement(figure, bound, fold, is_minimum=False)


class Promise(NamedTuple):
    """One promise."""

    number: int
    title: str
    requirements: tuple[Requirement, ...]
    tests: tuple[str, ...]
    """Selections of tests: `PATH` or `PATH -k EXPRESSION`. Empty if the figures are quoted."""
    quoted: str | None = None
    """Name of another command's result, if its last run is quoted instead (`results.quoted`)."""
    remark: str = ""


def pytest_arguments(selection: str) -> list[str]:
    """A selection as arguments of pytest; everything after `-k` is one expression."""
    path, _, expression = selection.partition(" -k ")
    arguments = shlex.split(path)
    if expression:
        arguments += ["-k", expression]
    return arguments


STOPPING: Final = "tests/streamlib/client/test_stream_stopping.py"
PROOF: Final = "tests/proof"

PROMISES: Final = (
    Promise(
        1,
        "A response is never silently truncated",
        (
            Requirement("truncations", 200_000),
            at_most("false completions", 0, "sum"),
            Requirement("fault/", 97, "names"),
        ),
        (
            f"{PROOF}/test_truncations.py -k test_1_",
            "tests/streamlib/client/test_faults.py",
            f"{STOPPING} -k leaving_after_any_event or cancellation_at_any_await",
            "tests/streamlib/client/test_stream.py -k dropped_open",
            "tests/streamlib/transport/test_connections.py -k reused_connection",
            "tests/properties/test_invariants.py -k invariant_3 and sample",
        ),
        remark=(
            "recorded streams are truncated at every byte, with a clean end or a reset, and every "
            "fault of the catalogue is made on a real socket"
        ),
    ),
    Promise(
        2,
        "Events do not depend on how the bytes are split",
        (Requirement("partitions", 1_000_000), at_most("differences", 0, "sum")),
        (
            f"{PROOF}/test_truncations.py -k test_2_",
            "tests/parsers/framing/test_sse.py -k no_partition_changes_a_vector",
            "tests/properties/test_invariants.py -k invariant_1 and sample",
        ),
        remark="the events of each way to split a stream equal those of the whole stream",
    ),
    Promise(
        3,
        "Nothing leaks, wherever a stream is stopped",
        (Requirement("stops", 10_000),),
        (f"{STOPPING} -k ten_thousand_stops or leaving_after_any_event or unshielded",),
        remark=(
            "streams are cancelled at every await, on three wire APIs, both event loops and both "
            "HTTP libraries; warnings are errors"
        ),
    ),
    Promise(
        4,
        "Cancellation never breaks the client",
        (
            Requirement("cancellations", 10_000, "min"),
            Requirement("storm streams", 110_000),
            at_most("storm: mixed", 0, "sum"),
            at_most("storm: mixed requests", 0, "sum"),
            at_most("storm: late bytes", 0, "sum"),
            at_most("storm: gap", 0, "sum"),
            at_most("storm: false completed", 0, "sum"),
            at_most("storm: events after the terminal", 0, "sum"),
            at_most("storm: sockets left", 0, "sum"),
            at_most("storm: tasks left", 0, "sum"),
            at_most("storm: descriptors left", 0, "sum"),
        ),
        (
            "tests/streamlib/transport/test_connections.py -k ten_thousand_cancellations",
            f"{PROOF}/test_storm.py -k storms_leave_nothing",
        ),
        remark=(
            "requests are cancelled on each event loop with each HTTP library; afterwards every "
            "connection of the pool must still work. In a storm, 200 streams run at once: 50 kinds "
            "of responses, each stopped in 16 ways, over httpx, httpx2, aiohttp and HTTP/2, with "
            "Python's development mode (`-X dev`). **Missed:** the storms should take at most 5 "
            "minutes. On two cores they take about 7, because a stream takes 4 to 8 ms of CPU time "
            "in that mode, and a silent server takes its whole deadline"
        ),
    ),
    Promise(
        5,
        "No stream hangs: pings do not count as progress",
        (
            Requirement("stalls", 500),
            at_most("seconds late", 0.001),
            Requirement("drips", 300),
            at_most("overrun s", 0.2),
        ),
        ("tests/streamlib/client/test_deadlines.py", "tests/streamlib/transport/test_drips.py"),
        remark=(
            "streams stall in seconds of a simulated clock. On real sockets, servers send bytes "
            "that never become an event, very slowly or very fast"
        ),
    ),
    Promise(
        6,
        "API keys are not exposed",
        (Requirement("exposures", 1_000),),
        (
            "tests/streamlib/client/test_auth.py",
            "tests/streamlib/client/test_auth_aws.py",
            "tests/streamlib/client/test_key_exposure.py",
        ),
        remark="everything that a client shows, logs, raises or pickles is searched for the key",
    ),
    Promise(
        7,
        "Text is always valid Unicode, surrogate pairs joined",
        (Requirement("texts", 200_000), at_most("invalid texts", 0, "sum")),
        (
            f"{PROOF}/test_hostile.py -k test_7_",
            "tests/parsers/wires/messages/test_messages.py -k halves",
        ),
        remark="random texts, with characters as bytes or as JSON escapes, are split anywhere",
    ),
    Promise(
        8,
        "A tool call is callable only if complete and intended",
        (
            Requirement("truncations", 100_000),
            at_most("incomplete calls", 0, "sum"),
            Requirement("attack/", 12, "names"),
            Requirement("recovered/", 6, "names"),
        ),
        (
            f"{PROOF}/test_truncations.py -k test_8_",
            "tests/parsers/dialects/test_dialect_recordings.py -k text_of_others",
        ),
        remark=(
            "12 of the 18 test vectors are attacks, which must not become a call; the other 6 are "
            "calls, which must"
        ),
    ),
    Promise(
        9,
        "Memory of a stream is bounded",
        (at_most("MiB over the bound", 2), at_most("times the bytes of text", 2)),
        (f"{PROOF}/test_bombs.py",),
        remark=(
            "attacks are ended by a limit of 8 MiB. The bound is twice the bytes received until "
            "then, and the framing limit; tracemalloc counts all memory. At its end, a long text "
            "is in memory twice: as the fragments of the partial response, and joined in the final "
            "item"
        ),
    ),
    Promise(
        10,
        "Time is linear",
        (at_most("worst doubling", 2.3),),
        (f"{PROOF}/test_growth.py",),
        remark=(
            "the input is doubled from 1 MiB to 32 MiB, in chunks of 1 KiB, for eight kinds of "
            "input, and from 125 to 1,000 calls that are open at the same time, with a snapshot "
            "after every event. The figure is the worst ratio of the times"
        ),
    ),
    Promise(
        11,
        "SSE is parsed as the standard says",
        (
            Requirement("vector/", 96, "names"),
            Requirement("random inputs", 200_000),
            at_most("differences", 0, "sum"),
        ),
        (
            "tests/parsers/framing/test_sse.py -k vectors_hold",
            f"{PROOF}/test_hostile.py -k test_11_",
        ),
    ),
    Promise(
        12,
        "Only documented errors are raised",
        (
            Requirement("hostile inputs", 500_000),
            Requirement("wrong types", 500_000),
            at_most("undocumented exceptions", 0, "sum"),
        ),
        (
            f"{PROOF}/test_hostile.py -k test_12_",
            "tests/properties/test_type_confusion.py -k test_12_",
            "tests/properties/test_invariants.py -k invariant_9",
        ),
        remark="wrong types: any known key anywhere in a message gets a value of another type",
    ),
    Promise(
        13,
        "Retries follow the policy, never after output",
        (
            Requirement("vector/", 34, "names"),
            Requirement("faults after output", 10),
            at_most("repeats after output", 0, "sum"),
        ),
        ("tests/streamlib/client/test_retry.py",),
    ),
    Promise(
        14,
        "Damaged AWS frames are never accepted",
        (Requirement("bit flips", 50_000), Requirement("vector/", 40, "names")),
        (
            "tests/parsers/framing/test_eventstream.py",
            "tests/parsers/framing/test_eventstream_damage.py",
        ),
    ),
    Promise(
        15,
        "asyncio and trio behave the same",
        (
            Requirement("logs", 500),
            at_most("differences", 0, "sum"),
            Requirement("async tests on both, where both can, %", 100, "min"),
        ),
        (f"{PROOF}/test_loops.py",),
        remark=(
            "tests of things that run on one loop only are listed below; the code has the reason "
            "of each: aiohttp, Django, uvicorn, official clients, asyncio's own cancellation"
        ),
    ),
    Promise(
        16,
        "Histories are replayed exactly",
        (Requirement("histories", 50_000),),
        ("tests/streamlib/wires/test_cross_wire.py -k interleaving",),
        remark="histories of reasoning, text and calls in any order are replayed byte for byte",
    ),
    Promise(
        17,
        "State machines accept no illegal transition",
        (
            Requirement("sequences", 20_000),
            Requirement("transitions", 100),
            at_most("transitions never made", 0, "sum"),
        ),
        (f"{PROOF}/test_machines.py",),
        remark=(
            "illegal frames are sent on every wire API in every state. Every item must have one "
            "start and one end, the stream one terminal event, and texts of two indexes must "
            "never be joined"
        ),
    ),
    Promise(
        18,
        "Connections are reused",
        (at_most("connections", 1),),
        ("tests/streamlib/transport/test_connections.py -k hundred_streams_in_a_row",),
        remark="a hundred streams, one after the other",
    ),
    Promise(
        19,
        "The tests detect defects",
        (
            Requirement("mutants", 1_000),
            Requirement("noticed in the worst part, %", 85, "min"),
        ),
        (),
        quoted="mutation",
        remark=(
            "a copy of the library gets one deliberate defect at a time (a mutant), and the tests "
            "of its part are run. The same forty of each part, until the code changes: those that "
            "no test noticed at first got one, so a new sample would be noticed less often; the "
            "list says how many they were"
        ),
    ),
    Promise(
        20,
        "Fuzzing finds no crash",
        (Requirement("executions", 1e7), at_most("crashes", 0, "sum")),
        (),
        quoted="atheris",
        remark="random inputs, guided by coverage, for each parser, framing and dialect",
    ),
    Promise(
        21,
        "Terminal output is safe",
        (Requirement("vector/", 17, "names"), Requirement("partitions", 100)),
        ("tests/streamlib/cli/test_cli.py -k terminal",),
    ),
    Promise(
        22,
        "Few and small dependencies",
        (
            at_most("other distributions", 8),
            at_most("MB of dependencies", 3),
            at_most("MB that the import loads", 0.5),
            at_most("import s", 0.25),
            at_most("modules of the first client", 114),
            at_most("first client s", 0.085),
        ),
        (f"{PROOF}/test_parts.py",),
        remark=(
            "megabytes on disk, without compiled files. **Changed in 0.2.0:** the promise was 3 MB "
            "for everything, and was never kept, because the three dependencies and their own "
            "dependencies have 2.5 MB. Now the size of this library is shown below without a "
            "bound, since it grows with every wire API; what is loaded by the import and by the "
            "first `Client()` is bounded instead"
        ),
    ),
    Promise(
        23,
        "Long use leaks nothing",
        (
            Requirement("streams", 20_000),
            at_most("memory growth KiB", 100),
            at_most("added descriptors", 1),
            at_most("added tasks", 1),
        ),
        (f"{PROOF}/test_soak.py",),
        remark=(
            "a third of the streams is stopped early, and a third fails. The figures are the worst "
            "of four runs of 5,000 streams on real sockets"
        ),
    ),
)
