"""Coverage-guided fuzzing with atheris: one harness, every target.

    python -m tests.fuzz messages -max_total_time=60      # the rest of the line is libFuzzer's
    python -m tests.fuzz --list

Begins with our own recordings (tests/recordings); bodies are changed by libFuzzer and, so that checksums and JSON stay whole, by the
target's own changes. Exit code 77 and a reproducer in the working directory where something broke.
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
    from tests.fuzz.oracles import judged
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
"""Bytes of a body, libFuzzer's own measure: with 20,000 only a quarter to a half as many bodies are tried in the same time."""


def seeds(name: str) -> Iterator[bytes]:
    """Our recordings of a wire, or in a framing; the samples of a dialect."""
    if name in CALLS:
        yield from (form.text.encode() for form in FORMS if name in form.dialects)
        yield CALLS[name].encode()
    pattern = f"*/*{SUFFIXES[name]}" if name in SUFFIXES else f"{name}/*.*"
    yield from (path.read_bytes()[:LONGEST] for path in sorted(RECORDINGS.glob(pattern)))
    rng = random.Random(0)
    what = find_target(name)
    yield from (what.seed(rng) for _ in range(50))


def harness(what: FuzzTarget) -> Callable[[bytes], None]:
    """One input: whole, byte by byte and in pieces, judged; the first that breaks is written down as a test and ends the run."""

    def test_one_input(data: bytes) -> None:
        campaign = Campaign(what, cuts=1)
        campaign.try_one(data, random.Random(zlib.crc32(data)))
        if campaign.finding is not None:
            small = shrink(what, campaign.finding)
            path = Path(f"test_fuzz_{what.name.replace(':', '_')}.py")
            path.write_text(reproducer(small), encoding="utf-8")
            raise AssertionError(f"{small.invariant}: {small.detail[:300]}; written to {path}")

    return test_one_input


def mutator(what: FuzzTarget) -> Callable[[bytes, int, int], bytes]:
    """libFuzzer's changes half of the time, the target's own the other half."""

    def change(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        return atheris.Mutate(data, most) if rng.random() < 0.5 else what.change(data, rng)[:most]

    return change


def main(argv: Sequence[str]) -> None:
    """Hunts until libFuzzer's limits; its exit code is ours."""
    if argv[1:] in ([], ["--list"]):
        sys.stdout.write("\n".join(TARGETS) + "\n")
        return
    what = judged(find_target(argv[1]))
    with tempfile.TemporaryDirectory() as corpus:
        for number, body in enumerate(seeds(what.name)):
            Path(corpus, str(number)).write_bytes(body)
        words = [
            argv[0],
            f"-max_len={LONGEST}",
            f"-artifact_prefix={corpus}/",
            "-rss_limit_mb=4096",
            *argv[2:],
            corpus,
        ]
        atheris.Setup(words, harness(what), custom_mutator=mutator(what))
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
