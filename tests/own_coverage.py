"""Line and branch coverage of the pure package, each part by its own tests alone and without the shared recordings.

    python -m tests.own_coverage            # every part, some minutes; exit code 1 where a line or a branch was not run
    python -m tests.own_coverage chat sse   # these alone

Coverage by accident is no knowledge: what the tests of another part, or somebody's recording, happen to run does not count here.
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
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.shared import ROOT

PACKAGE: Final = ROOT / "parsers" / "streamlib_parsers"


class Part(NamedTuple):
    """Files of the package (globs), and of their tests."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


PARTS: Final[Mapping[str, Part]] = {
    "sse": Part(("framing/sse.py",), ("test_sse.py",)),
    "eventstream": Part(("framing/eventstream.py",), ("test_eventstream.py",)),
    "ndjson": Part(("framing/ndjson.py",), ("test_ndjson.py",)),
    "json_array": Part(("framing/json_array.py",), ("test_json_array.py",)),
    "sse_or_json": Part(("framing/sse_or_json.py",), ("test_sse_or_json.py",)),
    "base64_text": Part(("base64_text.py",), ("test_base64_text.py",)),
    "json_fragments": Part(("json_fragments.py",), ("test_json_fragments.py",)),
    "rate_limits": Part(("rate_limits.py",), ("test_rate_limits.py",)),
    "redaction": Part(("redaction.py",), ("test_redaction.py",)),
    "errors": Part(("classification.py", "error_tables.py"), ("test_classification.py",)),
    "messages": Part(("wires/messages/*.py",), ("test_messages.py", "test_odd_shapes.py")),
    "responses": Part(("wires/responses/*.py",), ("test_responses*.py", "test_odd_shapes.py")),
    "chat": Part(("wires/chat/*.py",), ("test_chat*.py",)),
    "gemini": Part(("wires/gemini/*.py",), ("test_gemini*.py", "test_arguments_by_path.py", "test_odd_shapes.py")),
    "bedrock": Part(("bedrock.py",), ("test_converse.py", "test_invoke.py", "test_odd_shapes.py")),
    "converse": Part(("wires/converse.py",), ("test_converse.py", "test_odd_shapes.py")),
    "invoke": Part(("wires/invoke.py",), ("test_invoke.py", "test_odd_shapes.py")),
    "ollama": Part(("wires/ollama.py",), ("test_ollama.py", "test_odd_shapes.py")),
    "dialects": Part(("dialects/*.py", "dialects/*/*.py"), ("test_dialect*.py", "test_coercion.py", "test_reasoning_tags.py")),
    "vocabulary": Part(("*.py",), ("test_*.py",)),
}
"""What belongs together. `vocabulary` is what all wires share, so the tests of the wires are its own too."""

SLOW_WORDS: Final = "not linear_time and not twice_the_time and not a_megabyte_in_one_chunk"
"""Tests of speed say nothing while every line is traced."""


def missed(name: str, folder: Path) -> dict[str, Any]:
    """File -> lines and branches of this part that its tests did not run."""
    part = PARTS[name]
    data = folder / name
    tests = [str(path.relative_to(ROOT)) for pattern in part.tests for path in sorted((ROOT / "tests" / "parsers").glob(pattern))]
    coverage = [sys.executable, "-m", "coverage"]
    env = {**os.environ, "STREAMLIB_SHARED": str(folder), "COVERAGE_FILE": str(data)}
    env.pop("STREAMLIB_CORPUS", None)
    files = [path for pattern in part.files for path in PACKAGE.glob(pattern)]
    settings = folder / f"{name}.ini"
    settings.write_text(_settings(files), encoding="utf-8")
    run = [*coverage, "run", f"--rcfile={settings}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", SLOW_WORDS, *tests]
    ran = subprocess.run(run, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stdout[-3000:])
    report = folder / f"{name}.json"
    subprocess.run([*coverage, "json", f"--rcfile={settings}", "-q", "-o", str(report)], env=env, cwd=ROOT, capture_output=True, check=True)
    found = json.loads(report.read_bytes())["files"]
    return {
        path: (one["missing_lines"], one["missing_branches"])
        for path, one in found.items()
        if one["missing_lines"] or one["missing_branches"]
    }


def _settings(files: Iterable[Path]) -> str:
    """The project's own, for these files alone: a `source` would undo an `include`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["coverage"]
    include, exclude = ("\n  ".join(["", *lines]) for lines in (map(str, files), project["report"]["exclude_also"]))
    return f"[run]\nbranch = true\ninclude = {include}\n[report]\nexclude_also = {exclude}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Says what was missed, part by part."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; without one all of them")
    names = command.parse_args(argv).parts
    if unknown := {*names} - {*PARTS}:
        command.error(f"no part {', '.join(unknown)}; one of {', '.join(PARTS)}")
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names or PARTS:
            found = missed(name, Path(folder))
            total += len(found)
            sys.stdout.write(f"{name}: {'whole' if not found else ''}\n")
            for path, (lines, branches) in found.items():
                sys.stdout.write(f"  {path.removeprefix('parsers/streamlib_parsers/')}: lines {lines}, branches {branches}\n")
            sys.stdout.flush()
    return 1 if total else 0


if __name__ == "__main__":
    raise SystemExit(main())
