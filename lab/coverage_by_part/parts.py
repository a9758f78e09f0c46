"""Line and branch coverage, each part by its own tests alone, without shared recordings.

    python -m lab.coverage_by_part               # every part, some minutes; saves `results.json`
    python -m lab.coverage_by_part chat sse -v   # these alone, with the lines that were not run

What the tests of another part, or a recording, happen to run does not count here. Exit code 1 if a
framing or a reader of bytes is incomplete: those parse what anyone may send.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from lab.proof.results import DIRTY
from tests.support.shared import ROOT

RESULTS: Final = Path(__file__).with_name("results.json")


class Part(NamedTuple):
    """Files of the library (globs), and of the tests below `tests` that answer for them."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


def _parser(*files: str, tests: tuple[str, ...]) -> Part:
    """A part of the parsers that is no wire."""
    return Part(
        tuple(f"parsers/streamlib_parsers/{file}" for file in files),
        tuple(f"parsers/{test}" for test in tests),
    )


def _wire(name: str, *tests: str) -> Part:
    """A wire: its parser, its builder, decoder and encoder."""
    return Part(
        (f"parsers/streamlib_parsers/wires/{name}/*.py", f"streamlib/wires/{name}/*.py"),
        (
            f"parsers/wires/{name}/test_*.py",
            f"streamlib/wires/{name}/test_*.py",
            "parsers/wires/test_malformed_shapes.py",
            "parsers/test_unusual_events.py",
            "streamlib/wires/test_*.py",
            "properties/test_settings.py",
            "properties/test_encoder_ids.py",
            *tests,
        ),
    )


def _room(name: str, *tests: str) -> Part:
    """A folder of `streamlib`, with the tests of the same name and others."""
    return Part((f"streamlib/{name}/**/*.py",), (f"streamlib/{name}/**/test_*.py", *tests))


PARTS: Final[Mapping[str, Part]] = {
    "sse": _parser("framing/sse.py", tests=("framing/test_sse.py", "framing/test_sse_limits.py")),
    "eventstream": _parser(
        "framing/eventstream.py",
        tests=("framing/test_eventstream.py", "framing/test_eventstream_damage.py"),
    ),
    "ndjson": _parser("framing/ndjson.py", tests=("framing/test_ndjson.py",)),
    "json_array": _parser("framing/json_array.py", tests=("framing/test_json_array.py",)),
    "sse_or_json": _parser("framing/sse_or_json.py", tests=("framing/test_sse_or_json.py",)),
    "base64_text": _parser("base64_text.py", tests=("test_base64_text.py",)),
    "json_fragments": _parser("json_fragments.py", tests=("test_json_fragments.py",)),
    "rate_limits": _parser("rate_limits.py", "durations.py", tests=("test_rate_limits.py",)),
    "redaction": _parser("redaction.py", tests=("test_redaction.py",)),
    "errors": _parser(
        "classification.py",
        "error_kinds.py",
        "error_body.py",
        "error_tables.py",
        tests=("test_classification.py", "test_error_*.py"),
    ),
    "messages": _wire("messages"),
    "responses": _wire("responses"),
    "chat": _wire("chat"),
    "gemini": _wire("gemini"),
    "cohere": _wire("cohere"),
    "interactions": _wire("interactions"),
    "bedrock": _parser(
        "bedrock.py",
        tests=(
            "wires/converse/test_*.py",
            "wires/test_invoke.py",
            "wires/test_malformed_shapes.py",
        ),
    ),
    "converse": _wire("converse"),
    "invoke": _wire("invoke", "parsers/wires/test_invoke.py"),
    "ollama": _wire("ollama", "parsers/wires/test_ollama.py"),
    "dialects": _parser("dialects/*.py", "dialects/*/*.py", tests=("dialects/test_*.py",)),
    "vocabulary": _parser("*.py", tests=("**/test_*.py",)),
    "pipeline": _room(
        "pipeline", "properties/test_stage_invariants.py", "properties/test_text_stages.py"
    ),
    "tools": _room("tools", "streamlib/client/test_agent_loop.py"),
    # By tests/where.txt: what a page has kept is read by a reader of transcripts.
    "web": _room("web", "streamlib/history/transcripts/test_vercel.py"),
    "gateway": _room("gateway"),
    "client": _room("client"),
    "durable": _room("durable"),
    "transport": _room(
        "transport", "streamlib/client/test_deadlines.py", "streamlib/client/websocket/test_*.py"
    ),
    "request": _room(
        "request",
        "streamlib/providers/test_*.py",
        "streamlib/wires/test_*.py",
        "streamlib/wires/*/test_build*.py",
        # By tests/where.txt: the number of tokens.
        "streamlib/client/test_count.py",
    ),
    "structured": _room("structured"),
    "inspection": _room("inspection", "streamlib/cli/test_inspect*.py"),
    "display": _room("display", "streamlib/cli/test_chat.py", "streamlib/cli/test_question.py"),
    "wires": Part(
        ("streamlib/wires/*.py",),
        (
            "streamlib/wires/test_*.py",
            "streamlib/wires/*/test_*.py",
            # By tests/where.txt: HTTP statuses, faults, offsets of frames.
            "streamlib/gateway/requests/test_errors.py",
            "streamlib/testing/test_clients.py",
            "streamlib/cli/test_inspect_truncated.py",
        ),
    ),
    "history": _room("history"),
    "batch": _room("batch"),
    # By tests/where.txt: cache rules, settings of WebSockets, masked bodies, and commands.
    "providers": _room(
        "providers",
        "streamlib/history/test_explain.py",
        "streamlib/client/websocket/test_connection.py",
    ),
    "recording": _room("recording", "streamlib/gateway/watch/test_record.py"),
    "cli": _room(
        "cli",
        "streamlib/gateway/test_command.py",
        "streamlib/gateway/test_signals.py",
        "streamlib/testing/bench/test_*.py",
        "streamlib/testing/test_fuzzing.py",
    ),
    "testing": _room("testing"),
}
"""`vocabulary` is what all wires share, so the tests of the wires belong to it too."""

WHOLE: Final = tuple(list(PARTS)[: list(PARTS).index("messages")])
"""Parts of which every line and branch must run."""

APART: Final = ("test_cross_wire.py",)
"""Tests of all parts together: they run nearly every line, and take longer than all others."""


def files_of(name: str) -> list[Path]:
    """The files of a part."""
    return sorted({path for glob in PARTS[name].files for path in ROOT.glob(glob)})


def files_of_tests(name: str) -> list[str]:
    """The files of its tests, relative to the project's folder."""
    found = {path for glob in PARTS[name].tests for path in (ROOT / "tests").glob(glob)}
    return sorted(str(path.relative_to(ROOT)) for path in found if path.name not in APART)


def commit() -> str:
    """The commit that is measured; figures that are saved do not make it another."""
    measured = ("streamlib", "parsers", "streamlib_pytest", "tests")
    changed = git("status", "--porcelain", "--", *measured)
    return git("rev-parse", "--short", "HEAD") + (DIRTY if changed else "")


def git(*arguments: str) -> str:
    """What git says; empty without it."""
    command = ["git", *arguments]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return process.stdout.strip()


class Covered(NamedTuple):
    """What the tests of a part ran."""

    lines: int
    """Statements of its files."""
    branches: int
    missing: int
    """Statements and branches that no test ran."""
    places: dict[str, tuple[list[int], list[list[int]]]]
    """File -> the lines and branches that no test ran."""

    @property
    def share(self) -> float:
        """Statements and branches that ran, in percent."""
        return 100 * (1 - self.missing / (self.lines + self.branches))


def measure(name: str, folder: Path) -> Covered:
    """Runs the tests of one part."""
    coverage = [sys.executable, "-m", "coverage"]
    env = {**os.environ, "STREAMLIB_SHARED": str(folder), "COVERAGE_FILE": str(folder / name)}
    env.pop("STREAMLIB_CORPUS", None)
    settings = folder / f"{name}.ini"
    settings.write_text(_settings(files_of(name)), encoding="utf-8")
    run = ["run", f"--rcfile={settings}", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*coverage, *run, *files_of_tests(name)],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(ran.stdout[-3000:])
    report = folder / f"{name}.json"
    subprocess.run(
        [*coverage, "json", f"--rcfile={settings}", "-q", "-o", str(report)],
        env=env,
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    found = json.loads(report.read_bytes())
    totals = found["totals"]
    return Covered(
        totals["num_statements"],
        totals["num_branches"],
        totals["missing_lines"] + totals["missing_branches"],
        {
            path: (one["missing_lines"], one["missing_branches"])
            for path, one in found["files"].items()
            if one["missing_lines"] or one["missing_branches"]
        },
    )


def _settings(files: Iterable[Path]) -> str:
    """The project's own, for these files alone: a `source` would undo an `include`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "coverage"
    ]
    include, exclude = (
        "\n  ".join(["", *lines]) for lines in (map(str, files), project["report"]["exclude_also"])
    )
    return f"[run]\nbranch = true\ninclude = {include}\n[report]\nexclude_also = {exclude}\n"


def save(name: str, covered: Covered) -> None:
    """Saves the figures of a part."""
    results: dict[str, object] = {}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_bytes())
    results[name] = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit(),
        "lines": covered.lines,
        "branches": covered.branches,
        "run, %": round(covered.share, 1),
    }
    ordered = {part: results[part] for part in PARTS if part in results}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Says what was missed, part by part."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; without one all of them"
    )
    command.add_argument("-v", "--verbose", action="store_true", help="the lines that were not run")
    arguments = command.parse_args(argv)
    names: list[str] = arguments.parts or [*PARTS]
    if unknown := {*names} - {*PARTS}:
        command.error(f"no part {', '.join(unknown)}; one of {', '.join(PARTS)}")
    incomplete = False
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            covered = measure(name, Path(folder))
            save(name, covered)
            sys.stdout.write(f"{name}: {covered.share:.1f} % of lines and branches\n")
            if name in WHOLE and covered.missing:
                incomplete = True
            if arguments.verbose or name in WHOLE:
                for path, (lines, branches) in covered.places.items():
                    sys.stdout.write(f"  {path}: lines {lines}, branches {branches}\n")
            sys.stdout.flush()
    return 1 if incomplete else 0
