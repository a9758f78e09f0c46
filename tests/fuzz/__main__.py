"""Coverage-guided fuzzing with atheris: one harness, every target.

    python -m tests.fuzz messages -max_total_time=60      # the rest of the line is libFuzzer's
    python -m tests.fuzz --list

Begins with the project's recordings (tests/recordings). Bodies are changed by libFuzzer and, so
that checksums and JSON stay valid, by the target's own changes. Where a body fails, a reproducer is
written to the working directory and the exit code is 77.
"""

from __future__ import annotations

import random
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import atheris

with atheris.instrument_imports(include=["streamlib_parsers"]):  # before anything else loads them
    from streamlib.testing.dialect_calls import CALLS
    from streamlib.testing.fuzz_targets import TARGETS, FuzzTarget, find_target
    from streamlib.testing.fuzzing import Campaign, reproducer, shrink
    from streamlib_parsers.protocol import WIRE_APIS, wire
    from tests.fuzz.oracles import with_second_reader
    from tests.support.dialect_forms import FORMS
    from tests.support.shared import ROOT

    for name in WIRE_APIS:
        wire(name)

RECORDINGS: Final = ROOT / "tests" / "recordings"
SUFFIXES: Final = {
    "sse": ".sse",
    "sse_or_json": ".sse",
    "ndjson": ".ndjson",
    "eventstream": ".eventstream",
    "json_array": ".json",
}
LONGEST: Final = 4_096
"""Bytes of a body: libFuzzer's default. With 20,000 only a quarter to a half as many bodies are
tried in the same time."""


def seeds(name: str) -> Iterator[bytes]:
    """Recordings of a wire or in a framing, sample calls of a dialect, 50 generated bodies."""
    if name in CALLS:
        for form in FORMS:
            if name in form.dialects:
                yield form.text.encode()
        yield CALLS[name].encode()
    pattern = f"{name}/*.*"
    if name in SUFFIXES:
        pattern = f"*/*{SUFFIXES[name]}"
    for path in sorted(RECORDINGS.glob(pattern)):
        yield path.read_bytes()[:LONGEST]
    rng = random.Random(0)
    target = find_target(name)
    for _ in range(50):
        yield target.seed(rng)


def harness(target: FuzzTarget) -> Callable[[bytes], None]:
    """Reads an input in several partitions; the first failure becomes a test, the run ends."""

    def test_one_input(data: bytes) -> None:
        campaign = Campaign(target, splits=1)
        campaign.try_body(data, random.Random(zlib.crc32(data)))
        if campaign.finding is not None:
            small = shrink(target, campaign.finding)
            path = Path(f"test_fuzz_{target.name.replace(':', '_')}.py")
            path.write_text(reproducer(small), encoding="utf-8")
            raise AssertionError(f"{small.invariant}: {small.detail[:300]}; written to {path}")

    return test_one_input


def mutator(target: FuzzTarget) -> Callable[[bytes, int, int], bytes]:
    """libFuzzer's changes half of the time, the target's own the other half."""

    def change(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return atheris.Mutate(data, most)
        return target.change(data, rng)[:most]

    return change


def main(argv: Sequence[str]) -> None:
    """Searches until libFuzzer's limits; its exit code is ours."""
    if argv[1:] in ([], ["--list"]):
        sys.stdout.write("\n".join(TARGETS) + "\n")
        return
    target = with_second_reader(find_target(argv[1]))
    with tempfile.TemporaryDirectory() as corpus:
        for number, body in enumerate(seeds(target.name)):
            Path(corpus, str(number)).write_bytes(body)
        command = [
            argv[0],
            f"-max_len={LONGEST}",
            f"-artifact_prefix={corpus}/",
            "-rss_limit_mb=4096",
            *argv[2:],
            corpus,
        ]
        atheris.Setup(command, harness(target), custom_mutator=mutator(target))
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
