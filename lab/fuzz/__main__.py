"""Coverage-guided fuzzing with atheris: one harness, every target.

    python -m lab.fuzz messages -max_total_time=60      # the rest of the line is libFuzzer's
    python -m lab.fuzz --list

Begins with the project's recordings (tests/recordings), generated bodies and what earlier runs
found (lab/fuzz/corpora). Bodies are changed by libFuzzer and, so that checksums and JSON stay
valid, by the target's own changes. Where a body fails, a reproducer is written to the working
directory and the exit code is 77.
"""

from __future__ import annotations

import random
import shlex
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["streamlib_parsers"]):  # before anything else loads them
    from lab.fuzz.corpora import LONGEST, load, seeds
    from lab.fuzz.oracles import with_second_reader
    from streamlib.testing.fuzz_targets import TARGETS, FuzzTarget, find_target
    from streamlib.testing.fuzzing import Campaign, reproducer, shrink
    from streamlib_parsers.protocol import WIRE_APIS, wire

    for name in WIRE_APIS:
        wire(name)


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
        for number, body in enumerate([*seeds(target.name), *load(target.name)]):
            Path(corpus, str(number)).write_bytes(body)
        command = [
            # A shell runs this where libFuzzer starts itself again (-merge=1).
            shlex.join([sys.executable, "-m", "lab.fuzz", target.name]),
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
