"""What reads logs over HTTP, from npm: the client and the conformance suite of Durable Streams, and
the machine under `useChat` (`ai` 6 and 7).

Got by `python -m lab.real.fetch` into `.real/streams`, at the versions of `streams/package.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from benchmarks.node_packages import absence_in, install_packages
from tests.support.shared import ROOT

HERE: Final = Path(__file__).resolve().parent / "streams"
HOME: Final = ROOT / ".real" / "streams"
PACKAGES: Final = ("@durable-streams/client", "@durable-streams/server-conformance-tests", "ai")

SUITE: Final = "node_modules/@durable-streams/server-conformance-tests/dist/test-runner.js"
CONFIG: Final = "export default { test: { include: ['%s'], exclude: [], testTimeout: 60000 } }\n"
"""With a minute for each test, since the machine may be busy."""


def absence() -> str | None:
    """Why logs cannot be read here so; None where they can."""
    return absence_in(HOME, PACKAGES)


def missing() -> list[str]:
    """What cannot be asked here, with the reason."""
    why = absence()
    return [f"readers of logs ({why})"] if why else []


def install() -> list[str]:
    """Gets what is missing; what could not be had, a line each."""
    if absence() is None:
        return []
    return install_packages("readers of logs", HERE, HOME)


async def read(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the clients made of logs, all at once: see `streams/read.mjs`."""
    lines = b"".join([json.dumps(job).encode() + b"\n" for job in jobs])
    process = await anyio.run_process(["node", str(HERE / "read.mjs"), str(HOME)], input=lines)
    return [json.loads(line) for line in process.stdout.splitlines()]


async def conformance(url: str, pattern: str) -> dict[str, str]:
    """The result of each test of the suite whose name fits: `passed`, `failed`; by its name."""
    (HOME / "vitest.config.mjs").write_text(CONFIG % SUITE, encoding="utf-8")
    report = HOME / "report.json"
    report.unlink(missing_ok=True)
    vitest = HOME / "node_modules" / ".bin" / "vitest"
    command = [str(vitest), "run", "--reporter=json", f"--outputFile={report}", "-t", pattern]
    environment = {**os.environ, "CONFORMANCE_TEST_URL": url}
    await anyio.run_process(command, cwd=HOME, env=environment, check=False)
    results: dict[str, str] = {}
    for file in json.loads(report.read_text(encoding="utf-8"))["testResults"]:
        for test in file["assertionResults"]:
            if test["status"] != "skipped":
                results[test["fullName"]] = test["status"]
    return results
