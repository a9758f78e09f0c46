"""Growing arguments: accumulators of anthropic and pydantic-ai against ours, on one long call.

python -m benchmarks.bench_accumulators [--kilobytes 100 200 400] [--json F]

The arguments arrive in deltas of ten characters. Bodies above 100 KB are read once by each
contestant: a quadratic one takes a minute for a megabyte.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.against_peers import contestants
from benchmarks.contestants import ours
from benchmarks.races import agree
from streamlib.bench.bodies import messages
from streamlib.bench.records import Record, as_json, record, table
from streamlib.bench.responses import ELEMENT, SampleCall, elements
from streamlib.cli.bench import Bar


def body(kilobytes: int) -> list[bytes]:
    """The events of a stream whose only call has so much argument text."""
    call = SampleCall("call_0", "write_file", elements(kilobytes * 1000 // len(ELEMENT)))
    return list(messages((call,)))


def main(argv: list[str] | None = None) -> int:
    """Measures every size with every contestant that accumulates."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--kilobytes", type=int, nargs="+", default=[100, 200, 400])
    command.add_argument("--json")
    arguments = command.parse_args(argv)
    readers = [ours("messages", "accumulated"), *contestants("messages", ("accumulated",))]
    bar = Bar(len(readers) * len(arguments.kilobytes))
    records: list[Record] = []
    agree(readers, body(10))
    for kilobytes in arguments.kilobytes:
        events = body(kilobytes)
        workload = f"{kilobytes} KB of arguments"
        rounds = 3 if kilobytes <= 100 else 1
        for reader in readers:
            bar.advance(f"{kilobytes} KB: {reader.name}")
            best = min(reader.seconds(events) for _ in range(rounds))
            key = ("accumulators", workload, "an event", reader.name)
            records.append(record(*key, "CPU", "s", [best]))
    bar.done()
    print(table(records, "contestant"), end="")
    if arguments.json:
        Path(arguments.json).write_bytes(as_json(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
