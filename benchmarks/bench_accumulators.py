"""Arguments that grow: the accumulators of anthropic and pydantic-ai against ours, on one call dripped in pieces of ten characters.

python -m benchmarks.bench_accumulators [--kilobytes 100 200 400] [--json F]

One round each: a quadratic one takes a minute for a megabyte.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.against_peers import contestants
from benchmarks.contestants import ours
from benchmarks.races import agree
from streamlib.bench.answers import ELEMENT, Called, elements
from streamlib.bench.bodies import messages
from streamlib.bench.records import Record, as_json, record, table
from streamlib.cli.bench import Bar


def body(kilobytes: int) -> list[bytes]:
    """A stream of one call with so much argument text."""
    return list(
        messages((Called("call_0", "write_file", elements(kilobytes * 1000 // len(ELEMENT))),))
    )


def main(argv: list[str] | None = None) -> int:
    """Every size, everybody who accumulates."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--kilobytes", type=int, nargs="+", default=[100, 200, 400])
    arguments.add_argument("--json")
    asked = arguments.parse_args(argv)
    readers = [ours("messages", "accumulated"), *contestants("messages", ("accumulated",))]
    bar = Bar(len(readers) * len(asked.kilobytes))
    records: list[Record] = []
    agree(readers, body(10))
    for kilobytes in asked.kilobytes:
        events = body(kilobytes)
        for reader in readers:
            bar.advance(f"{kilobytes} KB: {reader.name}")
            taken = min(reader.seconds(events) for _ in range(3 if kilobytes <= 100 else 1))
            records.append(
                record(
                    "accumulators",
                    f"{kilobytes} KB of arguments",
                    "an event",
                    reader.name,
                    "CPU",
                    "s",
                    [taken],
                )
            )
    bar.done()
    print(table(records, "contestant"), end="")
    if asked.json:
        Path(asked.json).write_bytes(as_json(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
