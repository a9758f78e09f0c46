"""Line and branch coverage of the parsers, each part by its own tests, without shared recordings.

    python -m lab.coverage_by_part            # every part, some minutes; exit code 1 if one is
    incomplete python -m lab.coverage_by_part chat sse   # these alone

What the tests of another part, or a recording, happen to run does not count here.
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

from tests.support.shared import ROOT

PACKAGE: Final = ROOT / "parsers" / "streamlib_parsers"


class Part(NamedTuple):
    """Files of the package (globs), and of their tests."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


SHAPES: Final = "wires/test_malformed_shapes.py"

PARTS: Final[Mapping[str, Part]] = {
    "sse": Part(("framing/sse.py",), ("framing/test_sse.py", "framing/test_sse_limits.py")),
    "eventstream": Part(
        ("framing/eventstream.py",),
        ("framing/test_eventstream.py", "framing/test_eventstream_damage.py"),
    ),
    "ndjson": Part(("framing/ndjson.py",), ("framing/test_ndjson.py",)),
    "json_array": Part(("framing/json_array.py",), ("framing/test_json_array.py",)),
    "sse_or_json": Part(("framing/sse_or_json.py",), ("framing/test_sse_or_json.py",)),
    "base64_text": Part(("base64_text.py",), ("test_base64_text.py",)),
    "json_fragments": Part(("json_fragments.py",), ("test_json_fragments.py",)),
    "rate_limits": Part(("rate_limits.py", "durations.py"), ("test_rate_limits.py",)),
    "redaction": Part(("redaction.py",), ("test_redaction.py",)),
    "errors": Part(
        ("classification.py", "error_kinds.py", "error_body.py", "error_tables.py"),
        ("test_classification.py", "test_error_*.py"),
    ),
    "messages": Part(("wires/messages/*.py",), ("wires/messages/test_*.py", SHAPES)),
    "responses": Part(("wires/responses/*.py",), ("wires/responses/test_*.py", SHAPES)),
    "chat": Part(("wires/chat/*.py",), ("wires/chat/test_*.py",)),
    "gemini": Part(("wires/gemini/*.py",), ("wires/gemini/test_*.py", SHAPES)),
    "cohere": Part(("wires/cohere/*.py",), ("wires/cohere/test_*.py", SHAPES)),
    "interactions": Part(("wires/interactions/*.py",), ("wires/interactions/test_*.py", SHAPES)),
    "bedrock": Part(("bedrock.py",), ("wires/converse/test_*.py", "wires/test_invoke.py", SHAPES)),
    "converse": Part(("wires/converse/*.py",), ("wires/converse/test_*.py", SHAPES)),
    "invoke": Part(("wires/invoke/*.py",), ("wires/test_invoke.py", SHAPES)),
    "ollama": Part(("wires/ollama/*.py",), ("wires/test_ollama.py", SHAPES)),
    "dialects": Part(("dialects/*.py", "dialects/*/*.py"), ("dialects/test_*.py",)),
    "vocabulary": Part(("*.py",), ("**/test_*.py",)),
}
"""Files below `parsers/streamlib_parsers`, and the tests below `tests/parsers` that answer for
them.

`vocabulary` is what all wires share, so the tests of the wires belong to it too.
"""


def missed(name: str, folder: Path) -> dict[str, Any]:
    """File -> lines and branches of this part that its tests did not run."""
    part = PARTS[name]
    data = folder / name
    tests = [
        str(path.relative_to(ROOT))
        for pattern in part.tests
        for path in sorted((ROOT / "tests" / "parsers").glob(pattern))
    ]
    coverage = [sys.executable, "-m", "coverage"]
    env = {**os.environ, "STREAMLIB_SHARED": str(folder), "COVERAGE_FILE": str(data)}
    env.pop("STREAMLIB_CORPUS", None)
    files = [path for pattern in part.files for path in PACKAGE.glob(pattern)]
    settings = folder / f"{name}.ini"
    settings.write_text(_settings(files), encoding="utf-8")
    run = [
        *coverage,
        "run",
        f"--rcfile={settings}",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    ran = subprocess.run(run, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
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
    found = json.loads(report.read_bytes())["files"]
    return {
        path: (one["missing_lines"], one["missing_branches"])
        for path, one in found.items()
        if one["missing_lines"] or one["missing_branches"]
    }


def _settings(files: Iterable[Path]) -> str:
    """The project's own, for these files alone: a `source` would undo an `include`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "coverage"
    ]
    include, exclude = (
        "\n  ".join(["", *lines]) for lines in (map(str, files), project["report"]["exclude_also"])
    )
    return f"[run]\nbranch = true\ninclude = {include}\n[report]\nexclude_also = {exclude}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Says what was missed, part by part."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; without one all of them"
    )
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
                sys.stdout.write(
                    f"  {path.removeprefix('parsers/streamlib_parsers/')}: lines {lines}, "
                    f"branches {branches}\n"
                )
            sys.stdout.flush()
    return 1 if total else 0
