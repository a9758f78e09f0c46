"""The promises, what each must reach, and the tests that prove it: data for the proof command.

A demand names a figure that those tests count while they run (tests/support/metrics.py), how its lines become one number (`fold`), and the
bound. `sum`, `max` and `min` are over all lines; `names` counts how many different figures begin with the name (`fault/…`), so that the
same vector on two loops is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from tests.proof.results import Counted

Fold = Literal["sum", "max", "min", "names"]


class Demand(NamedTuple):
    """A figure and its bound. `least`: it must be so much or more; otherwise so much or less."""

    figure: str
    bound: float
    fold: Fold = "sum"
    least: bool = True

    def value(self, figures: Mapping[str, Counted]) -> float | None:
        """The one number; None where nothing was counted."""
        if self.fold == "names":
            return sum(name.startswith(self.figure) for name in figures) or None
        found = figures.get(self.figure)
        return None if found is None else getattr(found, self.fold)

    def held(self, figures: Mapping[str, Counted]) -> bool:
        """Whether the bound is kept; what was not counted is not."""
        value = self.value(figures)
        return value is not None and (value >= self.bound if self.least else value <= self.bound)


def most(figure: str, bound: float, fold: Fold = "max") -> Demand:
    """A figure that may not be more than this."""
    return Demand(figure, bound, fold, least=False)


class Promise(NamedTuple):
    """One promise. tests: pytest's arguments, `-k` last; none where the figures are those of another command's last run (`quoted`)."""

    number: int
    words: str
    demands: tuple[Demand, ...]
    tests: tuple[str, ...]
    quoted: str | None = None
    remark: str = ""


STOPPING: Final = "tests/streamlib/client/test_stream_stopping.py"
PROOF: Final = "tests/proof"

PROMISES: Final = (
    Promise(
        1,
        "An answer is never silently cut",
        (Demand("cuts", 200_000), most("false ends", 0, "sum"), Demand("fault/", 97, "names")),
        (
            f"{PROOF}/test_cuts.py -k test_1_",
            "tests/streamlib/client/test_faults.py",
            f"{STOPPING} -k leaving_after_any_event or cancellation_at_any_await",
            "tests/streamlib/client/test_stream.py -k dropped_open",
            "tests/streamlib/transport/test_connections.py -k reused_connection",
            "tests/properties/test_invariants.py -k invariant_3 and sample",
        ),
        remark="cut at every byte of a recorded stream, by a clean end or a reset, and every fault of the catalogue on a real socket",
    ),
    Promise(
        2,
        "The events do not depend on how the bytes arrive",
        (Demand("split runs", 1_000_000), most("differences", 0, "sum")),
        (
            f"{PROOF}/test_cuts.py -k test_2_",
            "tests/parsers/framing/test_sse.py -k no_partition_changes_a_vector",
            "tests/properties/test_invariants.py -k invariant_1 and sample",
        ),
    ),
    Promise(
        3,
        "Nothing leaks, wherever you stop",
        (Demand("stops", 10_000),),
        (
            f"{STOPPING} -k ten_thousand_stops or leaving_after_any_event or unshielded_cancellation",
        ),
        remark="a cancellation at every place where the code waits, three wires, both loops, both HTTP libraries; warnings are errors",
    ),
    Promise(
        4,
        "Cancelling never breaks the client",
        (Demand("cancellations", 10_000, "min"),),
        ("tests/streamlib/transport/test_connections.py -k ten_thousand_cancellations",),
        remark="on each loop with each HTTP library; then every connection of the pool must still work",
    ),
    Promise(
        5,
        "No hang: pings do not count as progress",
        (Demand("stalls", 500), most("late by", 0.001)),
        ("tests/streamlib/client/test_deadlines.py",),
        remark="seconds of a virtual clock",
    ),
    Promise(
        6,
        "Keys stay home",
        (Demand("exposures", 1_000),),
        (
            "tests/streamlib/client/test_auth.py",
            "tests/streamlib/client/test_auth_aws.py",
            "tests/streamlib/client/test_key_exposure.py",
        ),
        remark="each searched for the key and free of it",
    ),
    Promise(
        7,
        "Text is always valid Unicode, emoji whole",
        (Demand("texts", 200_000), most("broken texts", 0, "sum")),
        (
            f"{PROOF}/test_hostile.py -k test_7_",
            "tests/parsers/wires/messages/test_messages.py -k halves",
        ),
    ),
    Promise(
        8,
        "A tool call is given only when whole and meant",
        (
            Demand("cuts", 100_000),
            most("broken calls", 0, "sum"),
            Demand("attack/", 12, "names"),
            Demand("recovered/", 6, "names"),
        ),
        (
            f"{PROOF}/test_cuts.py -k test_8_",
            "tests/parsers/dialects/test_dialect_recordings.py -k text_of_others",
        ),
        remark="of the 18 vectors 12 are attacks, none of which became a call; the 6 others are calls, and did",
    ),
    Promise(
        9,
        "Memory of a stream is bounded",
        (most("over the ceiling", 2), most("over twice the ceiling", 2)),
        (f"{PROOF}/test_bombs.py",),
        remark="MiB traced above a ceiling of 8 MiB, everything included; text and arguments are held in pieces and joined once, so twice",
    ),
    Promise(
        10,
        "Time is linear",
        (most("worst doubling", 2.3),),
        (f"{PROOF}/test_growth.py",),
        remark="the worst ratio of times from 1 MiB to 32 MiB, chunks of 1 KiB, eight kinds of input",
    ),
    Promise(
        11,
        "SSE as the standard has it",
        (
            Demand("vector/", 96, "names"),
            Demand("random inputs", 200_000),
            most("differences", 0, "sum"),
        ),
        (
            "tests/parsers/framing/test_sse.py -k vectors_hold",
            f"{PROOF}/test_hostile.py -k test_11_",
        ),
    ),
    Promise(
        12,
        "Only our errors come out",
        (
            Demand("hostile inputs", 500_000),
            Demand("odd keys", 500_000),
            most("foreign exceptions", 0, "sum"),
        ),
        (
            f"{PROOF}/test_hostile.py -k test_12_",
            "tests/properties/test_type_confusion.py -k test_12_",
            "tests/properties/test_invariants.py -k invariant_9",
        ),
        remark="an odd key: a key that the code knows, at any place of a message, with a value of another kind",
    ),
    Promise(
        13,
        "Retries are honest",
        (
            Demand("vector/", 34, "names"),
            Demand("faults after output", 10),
            most("repeats after output", 0, "sum"),
        ),
        ("tests/streamlib/client/test_retry.py",),
    ),
    Promise(
        14,
        "AWS frames: no wrong message, no silent end",
        (Demand("flips", 50_000), Demand("vector/", 40, "names")),
        (
            "tests/parsers/framing/test_eventstream.py",
            "tests/parsers/framing/test_eventstream_damage.py",
        ),
    ),
    Promise(
        15,
        "asyncio and trio behave the same",
        (
            Demand("logs", 500),
            most("differences", 0, "sum"),
            Demand("async tests on both, %", 100, "min"),
        ),
        (f"{PROOF}/test_loops.py",),
        remark="what is missing to 100 % are tests of what trio has not: asyncio's own cancellation",
    ),
    Promise(
        16,
        "Histories come back as they were",
        (Demand("histories", 50_000),),
        ("tests/streamlib/wires/test_cross_wire.py -k interleaving",),
        remark="thoughts, text and calls in any order, replayed byte for byte",
    ),
    Promise(
        17,
        "State machines refuse nonsense",
        (
            Demand("sequences", 20_000),
            Demand("transitions", 100),
            most("transitions never made", 0, "sum"),
        ),
        (f"{PROOF}/test_machines.py",),
        remark="illegal moves on every wire, in every state; brackets, one end, no words of two places in one item",
    ),
    Promise(
        18,
        "Connections are reused",
        (most("connections", 1),),
        ("tests/streamlib/transport/test_connections.py -k hundred_streams_in_a_row",),
    ),
    Promise(
        19,
        "The tests can fail",
        (Demand("mutants", 1_000), Demand("killed, %", 95, "min")),
        (),
        quoted="mutation",
    ),
    Promise(
        20,
        "Fuzzing that never stops",
        (Demand("executions", 1e7), most("crashes", 0, "sum")),
        (),
        quoted="atheris",
    ),
    Promise(
        21,
        "Printing is safe",
        (Demand("vector/", 17, "names"), Demand("splits", 100)),
        ("tests/streamlib/cli/test_cli.py -k terminal",),
    ),
    Promise(
        22,
        "Few and small parts",
        (most("distributions beside ours", 8), most("MB", 3), most("import s", 0.25, "min")),
        (f"{PROOF}/test_parts.py",),
        remark="megabytes on the disk, this library included, without compiled files; CPU seconds of the import",
    ),
    Promise(
        23,
        "A soak leaves nothing behind",
        (
            Demand("streams", 20_000),
            most("memory growth KiB", 100),
            most("descriptors more", 1),
            most("tasks more", 1),
        ),
        (f"{PROOF}/test_soak.py",),
        remark="a third broken off, a third faulted; the worst of four runs of 5,000 on real sockets",
    ),
)
