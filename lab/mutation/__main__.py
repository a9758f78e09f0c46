"""Mutation testing: one deliberate defect at a time, and whether a test notices.

    python -m lab.mutation                      # what is missing of every part; hours
    python -m lab.mutation tools web            # of these parts
    python -m lab.mutation tools --again        # those that no test noticed, by tests changed since
    python -m lab.mutation tools --fresh        # from the beginning, after the code has changed
    python -m lab.mutation --page               # only the figures for docs/PROOF.md

A defect (mutant) is a comparison changed, `and` for `or`, a constant off by one, a condition
negated, or a statement removed. Of each part (`coverage_by_part.parts.PARTS`) `EACH` are drawn from
all there could be. Each gets those tests of its part that run its line, without the shared
recordings, until the first that fails (`worker.py`). One that hangs or exhausts the memory counts
as noticed. Not drawn: keywords of classes, code for type checkers.

`results.json` has every outcome; it is written after each, so that a stop loses nothing.
`equivalent.json` explains those that change nothing that anyone could see; they count as drawn, and
not as noticed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, TypedDict

from lab.coverage_by_part.parts import PARTS, commit, files_of, files_of_tests, git
from lab.coverage_by_part.parts import RESULTS as COVERAGE
from lab.mutation.defects import mutable_nodes, mutate
from lab.proof.results import QUOTED
from lab.systems import need
from tests.support.shared import ROOT

SEED: Final = 20261124
"""Fixed before the first run; with it and a part's name, the same code gives the same sample."""
EACH: Final = 40
"""Defects drawn of each part; all of a part that has fewer."""

RESULTS: Final = Path(__file__).with_name("results.json")
EQUIVALENT: Final = Path(__file__).with_name("equivalent.json")
QUOTE: Final = QUOTED / "mutation.json"

FIRST, SINCE, SURVIVED, HUNG = "noticed", "noticed since", "survived", "hung"
"""Outcomes. `SINCE`: survived the first run, and a test was written for it."""


class Mutant(NamedTuple):
    """One deliberate defect. number: its index in `mutable_nodes` of the file."""

    path: str
    number: int
    text: str
    """File, line, column and change."""


class PartResult(TypedDict):
    """What is known of a part."""

    date: str
    commit: str
    """Of the code. Tests that were written for the sample are later."""
    possible: int
    """Defects that could have been drawn."""
    tests: int
    seconds: float
    """Of CPU, for its tests without a defect, under coverage."""
    failing: list[str]
    """Tests that fail without a defect here, and were left out."""
    outcomes: dict[str, str]
    """Text of a mutant -> outcome."""


def sample(part: str) -> tuple[list[Mutant], int]:
    """The drawn defects of a part, and from how many."""
    places: list[tuple[str, int]] = []
    for file in files_of(part):
        count = len(list(mutable_nodes(ast.parse(file.read_text(encoding="utf-8")))))
        places += [(str(file.relative_to(ROOT)), number) for number in range(count)]
    drawn = random.Random(f"{SEED} {part}").sample(places, min(EACH, len(places)))
    mutants: list[Mutant] = []
    for path, number in drawn:
        defect = mutate((ROOT / path).read_text(encoding="utf-8"), number)
        place = f"{path} line {defect.lines.start} column {defect.column}"
        mutants.append(Mutant(path, number, f"{place}: {defect.text}"))
    return mutants, len(places)


def load() -> dict[str, PartResult]:
    """Part -> its saved result."""
    if not RESULTS.exists():
        return {}
    known: dict[str, PartResult] = json.loads(RESULTS.read_bytes())
    return known


def save(part: str, result: PartResult) -> None:
    """Saves one part; the others may have been measured meanwhile."""
    results = load() | {part: result}
    ordered = {name: results[name] for name in PARTS if name in results}
    _write(RESULTS, ordered)


def _write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run(part: str, *, fresh: bool) -> None:
    """Tries what is missing of a part."""
    mutants, possible = sample(part)
    result = PartResult(
        date=_today(),
        commit=commit(),
        possible=possible,
        tests=0,
        seconds=0.0,
        failing=[],
        outcomes={} if fresh else _known_outcomes(part, mutants),
    )
    remaining = [mutant for mutant in mutants if mutant.text not in result["outcomes"]]
    if remaining:
        _try(part, remaining, files_of_tests(part), result)
    _say_noticed(part, result)


def run_again(part: str) -> None:
    """Tries what survived with the tests that have changed since: no other can notice it."""
    mutants, _ = sample(part)
    outcomes = _known_outcomes(part, mutants)
    result = load()[part]
    changed = git("diff", "--name-only", result["commit"].partition("-")[0]).splitlines()
    tests = [file for file in files_of_tests(part) if file in changed]
    survived = [mutant for mutant in mutants if outcomes.get(mutant.text) == SURVIVED]
    if survived and tests:
        result["date"] = _today()
        _try(part, survived, tests, result)
    _say_noticed(part, result)


def _known_outcomes(part: str, mutants: list[Mutant]) -> dict[str, str]:
    known = load().get(part)
    if known is None:
        return {}
    # Half of one sample and half of another would be no sample.
    if unknown := {*known["outcomes"]} - {mutant.text for mutant in mutants}:
        raise SystemExit(f"the code has changed since, use --fresh: {min(unknown)}")
    return known["outcomes"]


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _say_noticed(part: str, result: PartResult) -> None:
    outcomes = result["outcomes"]
    noticed = sum(outcome != SURVIVED for outcome in outcomes.values())
    _say(f"{part}: {noticed} of {len(outcomes)} noticed")


def _try(part: str, mutants: list[Mutant], tests: list[str], result: PartResult) -> None:
    numbers = {(mutant.path, mutant.number): mutant.text for mutant in mutants}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        job = {"tests": tests, "defects": [list(place) for place in numbers]}
        copy_project(home)
        (home / "job.json").write_text(json.dumps(job), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.mutation.worker", "job.json"],
            cwd=home,
            env=os.environ | _environment(home),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            if "tests" in said:
                _say(f"{part}: {line.strip()}")
                if not result["tests"]:
                    result["tests"], result["seconds"] = said["tests"], said["seconds"]
                    result["failing"] = said["failed"]
                continue
            text = numbers.pop((said["path"], said["number"]))
            _note(result["outcomes"], text, said["outcome"])
            _say(f"{said['outcome']}: {text} {said['by']}")
            save(part, result)
        process.wait()
    if numbers:
        raise SystemExit(f"{part}: not tried: {sorted(numbers.values())}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _note(outcomes: dict[str, str], text: str, outcome: str) -> None:
    if outcomes.get(text) == SURVIVED and outcome != SURVIVED:
        outcome = SINCE
    outcomes[text] = outcome


def copy_project(home: Path) -> None:
    """A copy of what tests read, in which defects are planted."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    for path in ROOT.iterdir():
        if path.name in {".git", ".nox", ".real"} or path.name.startswith(".venv"):
            continue
        if path.is_dir():
            shutil.copytree(path, home / path.name, ignore=ignored)
        else:
            shutil.copy2(path, home)
    (home / "nothing").mkdir()


def _environment(home: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": f"{home}:{home / 'parsers'}",
        "STREAMLIB_SHARED": str(home / "nothing"),
        "PYTHONHASHSEED": "0",
    }


def quote() -> None:
    """Writes the figures for docs/PROOF.md."""
    results = load()
    coverage: dict[str, dict[str, float]] = {}
    if COVERAGE.exists():
        coverage = json.loads(COVERAGE.read_bytes())
    reasons: dict[str, str] = json.loads(EQUIVALENT.read_bytes())
    notes: list[str] = []
    survivors: list[str] = []
    drawn = 0
    worst = 100.0
    for part, result in results.items():
        outcomes = result["outcomes"]
        survived = [text for text, outcome in outcomes.items() if outcome == SURVIVED]
        explained = [text for text in survived if text in reasons]
        since = sum(outcome == SINCE for outcome in outcomes.values())
        noticed = len(outcomes) - len(survived)
        share = 100 * noticed / len(outcomes)
        worst = min(worst, share)
        drawn += len(outcomes)
        note = (
            f"{part}: {noticed} of {len(outcomes)} noticed ({share:.0f} %), {since} of them by "
            f"tests written for this sample; {len(explained)} change nothing that can be seen; "
            f"drawn from {result['possible']:,}; {result['date']}, {result['commit']}"
        )
        if part in coverage:
            note += f"; its tests run {coverage[part]['run, %']} % of its lines and branches"
        notes.append(note)
        for text in survived:
            if text in explained:
                notes.append(f"changes nothing: `{text}`: {reasons[text]}")
            else:
                survivors.append(f"survived: {text}")
    missing = [part for part in PARTS if part not in results]
    if missing:
        notes.append(f"not tried yet: {', '.join(missing)}")
    if not drawn:
        return
    document = {
        "command": "python -m lab.mutation",
        "date": max(result["date"] for result in results.values()),
        "commit": min((result["commit"] for result in results.values()), key=_age),
        "figures": {"mutants": drawn, "noticed in the worst part, %": round(worst, 1)},
        "notes": [*notes, *survivors],
    }
    _write(QUOTE, document)


def _age(commit: str) -> int:
    """Sorts the oldest commit first: it decides whether the figures are out of date."""
    return int(git("rev-list", "--count", commit.partition("-")[0]) or 0)


def main() -> None:
    """Tries the parts that are named, or all."""
    need("lab.mutation", "os.fork", "resource")
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    command.add_argument("--again", action="store_true", help="only what survived")
    command.add_argument("--fresh", action="store_true", help="forget what is known of these parts")
    command.add_argument("--page", action="store_true", help="only write the figures for the page")
    arguments = command.parse_args()
    if unknown := {*arguments.parts} - {*PARTS}:
        command.error(f"no part {', '.join(unknown)}; one of {', '.join(PARTS)}")
    if not arguments.page:
        for part in arguments.parts or PARTS:
            if arguments.again:
                run_again(part)
            else:
                run(part, fresh=arguments.fresh)
    quote()


if __name__ == "__main__":
    main()
