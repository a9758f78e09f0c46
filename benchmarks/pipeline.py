"""Pipelines: what each stage costs, and the same job through other libraries.

    python -m benchmarks.pipeline_peers      # installs the others
    python -m benchmarks.node_readers        # and those in Node
    python -m benchmarks.pipeline [--only NAME] [--rounds 5] [--quick] [--save]

Each measurement of the job is made in a process of its own (`pipeline_jobs`, `node/pipeline.mjs`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks import node_readers, pipeline_peers
from benchmarks.commands import Measured, Options, run
from benchmarks.pipeline_jobs import CONTESTANTS
from benchmarks.pipeline_pages import BARE
from streamlib.cli.bench import Bar
from streamlib.testing.bench import pipelines
from streamlib.testing.bench.records import Figure, figure
from streamlib_parsers.events import OutputTextDelta

ROOT: Final = Path(__file__).resolve().parent.parent
JOBS: Final = Path(__file__).with_name("pipeline_jobs.py")
NODE_JOBS: Final = Path(__file__).with_name("node") / "pipeline.mjs"
NODE: Final = "Node: TransformStream, smoothStream"
WORKLOADS: Final = ("job", "one filter", "eight maps")
TOKENS: Final = 10_000
OLD, NEW = "hunter2", "[…]"
SECRET: Final = "The password is hunter2, and nobody knows it. "
SECONDS: Final = 0.3
"""CPU seconds of a measurement, at least."""
TIMEOUT: Final = 120.0


def tokens(count: int) -> list[str]:
    """Texts as long as a model's tokens; the secret is in them again and again, often split."""
    events = pipelines.built_in_events(count * 5, SECRET + pipelines.PROSE)
    deltas = [event.delta for event in events if isinstance(event, OutputTextDelta)]
    return deltas[:count]


def combinations(options: Options) -> tuple[list[tuple[str, str]], list[str]]:
    """Contestants with their workloads, and why others are absent."""
    names = list(CONTESTANTS)
    absent = pipeline_peers.missing()
    if absent:
        names = [name for name in names if not CONTESTANTS[name].distribution]
    if node_readers.absence() is None:
        names.append(NODE)
    absent += node_readers.missing()
    wanted: list[tuple[str, str]] = []
    for workload in WORKLOADS:
        for name in names:
            is_alike = name == BARE and workload != WORKLOADS[1]
            if options.takes(name) and not is_alike:
                wanted.append((workload, name))
    return wanted, absent


def measure_once(workload: str, name: str, texts: list[str], seconds: float) -> dict[str, Any]:
    """One measurement, in a process of its own.

    Raises:
        RuntimeError: it failed, or let out another text than it should.
    """
    python = str(pipeline_peers.PYTHON) if pipeline_peers.PYTHON.exists() else sys.executable
    command = [python, "-P", str(JOBS)]
    if name == NODE:
        command = ["node", str(NODE_JOBS), str(node_readers.HOME)]
    asked = {
        "contestant": name,
        "workload": workload,
        "tokens": texts,
        "old": OLD,
        "new": NEW,
        "seconds": seconds,
    }
    paths = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
    done = subprocess.run(
        command,
        input=json.dumps(asked).encode(),
        capture_output=True,
        check=False,
        timeout=TIMEOUT,
        env={**os.environ, "PYTHONPATH": paths},
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name}, {workload}: {done.stderr.decode()[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    expected = "".join(texts)
    if workload == "job":
        expected = expected.replace(OLD, NEW)
    if result.pop("text") != expected:
        raise RuntimeError(f"{name}, {workload}: it let out another text")
    return result


def measured(options: Options, bar: Bar) -> Measured:
    """The stages, then everybody's jobs."""
    texts = tokens(500 if options.quick else TOKENS)
    seconds = 0.0 if options.quick else SECONDS
    figures = stage_figures(options, bar)
    wanted, absent = combinations(options)
    results: dict[tuple[str, str], list[dict[str, Any]]] = {key: [] for key in wanted}
    versions: dict[str, str] = {}
    for _ in range(options.rounds):
        for workload, name in wanted:
            bar.advance(f"{workload}: {name}")
            result = measure_once(workload, name, texts, seconds)
            versions |= result["versions"]
            results[workload, name].append(result)
    for (workload, name), entries in results.items():
        key = ("pipeline", workload, f"{len(texts):,} tokens", name)
        times = [entry["cpu"] / len(texts) * 1e6 for entry in entries]
        figures.append(figure(*key, "event", "µs", times))
        figures.append(figure(*key, "first", "µs", [entry["first"] * 1e6 for entry in entries]))
        if "memory" in entries[0]:
            figures.append(figure(*key, "memory", "KB", [entry["memory"] for entry in entries]))
    return Measured(figures, versions, absent)


def stage_figures(options: Options, bar: Bar) -> list[Figure]:
    """What `streamlib bench --pipeline` measures, with all rounds."""
    if not options.takes("streamlib"):
        return []
    cases, _ = pipelines.cases(pipelines.BUILT_IN, pipelines.built_in_events())
    return pipelines.measure(cases, options.rounds, bar.advance)


def steps(options: Options) -> int:
    """Measurements, for the progress bar."""
    return options.rounds * (len(combinations(options)[0]) + len(pipelines.STAGES))


def main(argv: list[str] | None = None) -> int:
    """Measures everybody who is installed."""
    return run("pipeline", __doc__, measured, argv, rounds=5, steps=steps)


if __name__ == "__main__":
    raise SystemExit(main())
