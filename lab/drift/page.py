"""Prints and writes the tables of docs/drift.md."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from typing import Final

from lab.drift import requests, responses, unions
from lab.drift.judge import Judgement
from lab.provider_pages.pages import table
from tests.support.shared import ROOT

PAGE: Final = ROOT / "docs" / "drift.md"
SDKS: Final = ("anthropic", "openai", "google-genai", "botocore")
MARK: Final = "<!-- written by `python -m lab.drift --write` -->\n"


def summary(judged: list[Judgement]) -> str:
    """One row for each verdict of each SDK or wire: members and instances."""
    rows: dict[tuple[str, str], list[int]] = {}
    for judgement in judged:
        counts = rows.setdefault((judgement.sdk, judgement.verdict), [0, 0])
        counts[0] += 1
        counts[1] += judgement.instances
    lines: list[list[str]] = []
    for (sdk, verdict), (members, instances) in rows.items():
        lines.append([sdk, verdict, str(members), f"{instances:,}"])
    return table(("SDK or wire API", "result", "types or fields", "values tried"), lines)


def listing(judged: list[Judgement]) -> str:
    """One row for each member."""
    lines: list[list[str]] = []
    for judgement in judged:
        lost = " ".join(f"`{path}`" for path in sorted(judgement.lost))
        lines.append([judgement.sdk, f"`{judgement.member}`", judgement.verdict, lost])
    return table(("SDK or wire API", "type or field", "result", "lost"), lines)


def union_rows() -> str:
    """One row for each union of stream events: what reads it, or why nothing does."""
    lines: list[list[str]] = []
    for sdk, rows in unions.READ.items():
        lines += [[sdk, f"`{name}`", f"read: {wire}"] for name, wire in rows.items()]
        lines += [[sdk, f"`{name}`", f"no: {why}"] for name, why in unions.NOT_READ[sdk].items()]
    return table(("SDK", "union of stream events", "read by streamlib"), lines)


def text(of_responses: list[Judgement], of_requests: list[Judgement]) -> str:
    """What follows the mark in the page."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in SDKS)
    return "\n\n".join(
        [
            f"SDKs: {versions}.",
            "## Streams",
            union_rows(),
            "## Responses",
            summary(of_responses),
            "## Requests",
            summary(of_requests),
            "## Every type of the responses",
            listing(of_responses),
            "## Every field of the requests",
            listing(of_requests),
        ]
    )


def main() -> None:
    """Prints the summary and what is lost; exit status 1 if anything is, or a union is new."""
    parser = argparse.ArgumentParser(prog="python -m lab.drift", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/drift.md")
    arguments = parser.parse_args()
    of_responses = responses.judgements()
    of_requests = requests.judgements()
    if arguments.write:
        head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
        PAGE.write_text(head + mark + text(of_responses, of_requests) + "\n", encoding="utf-8")
    undecided = unions.undecided(unions.found())
    for line in undecided:
        sys.stdout.write(f"UNION {line}\n")
    lost = [judgement for judgement in of_responses + of_requests if judgement.verdict == "lost"]
    sys.stdout.write(f"{summary(of_responses)}\n\n{summary(of_requests)}\n")
    for judgement in lost:
        sys.stdout.write(f"LOST {judgement.sdk} {judgement.member}: {sorted(judgement.lost)}\n")
    sys.exit(1 if lost or undecided else 0)
