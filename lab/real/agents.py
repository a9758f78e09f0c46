"""Agents against the gateway in front of every wire, and against other proxies: coding agents
(Claude Code, Codex, Gemini CLI, qwen-code, opencode) and libraries (openai-agents, pydantic-ai,
LangGraph, the AI SDK).

    python -m lab.real.agents                  # installs them (1.5 GB of npm and PyPI), runs all
    python -m lab.real.agents --only codex --scenario resume --home /tmp/agents
    python -m lab.real.agents --through gateway --through litellm --scenario signatures --table

Each agent has its own HOME, and the model is a script behind a strict provider: what an official
service would refuse, fails. Each scenario is run without the gateway too (`direct`, on the agent's
own wire), so that a limit of the client is told from one of the gateway. A case passes if the agent
ended with 0, printed the model's last text, did what the model asked for, no request was refused,
and the model read every history as the client sent it: the same texts, calls and outputs in the
same order (`agent_history`). Beside it stands how many signed items of the turns in its history
each request had with their signature, of how many. Needs no key and no network but 127.0.0.1. Too
large for CI.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from lab.real import agent_clients, agent_proxies
from lab.real.agent_clients import AGENTS, FOLDER
from lab.real.agent_history import fault_in_histories
from lab.real.agent_model import FINAL_TEXT, RESUMED_TEXT, SCENARIOS, Scenario, Upstream, served
from lab.real.agent_proxies import BETWEEN, KEYS, MODELS
from streamlib_parsers.items import WireApi

DIRECT: Final = "direct"
PATIENCE: Final = 150.0
"""Seconds that a run may take."""

OURS: Final = ("claude", "codex")
"""Agents that all scenarios are made for; the others run those below unless told otherwise."""

FOR_ALL: Final = ("signatures", "edit and write", "429")


class Outcome(NamedTuple):
    """How a case went.

    fault: why it failed, or None.
    returned: signed items that came back.
    due: those that should have.
    history: what the last request of the conversation held (`history_of`).
    """

    fault: str | None
    returned: int = 0
    due: int = 0
    history: tuple[str, ...] = ()

    @property
    def signatures(self) -> str:
        """As the table has them."""
        return f"{self.returned}/{self.due}" if self.due else "-"


async def case(agent: str, through: str, wire: WireApi, scenario: Scenario) -> Outcome:
    """Runs an agent once."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home, work, proxy = (Path(folder) / name for name in ("home", "work", "proxy"))
        for path in (home, work, proxy):
            path.mkdir()
        upstream = Upstream(scenario, work)
        async with served(upstream) as url:
            try:
                async with BETWEEN[through](url, wire, proxy) as address:
                    fault = await both_runs(agent, address, home, work, scenario)
            except (RuntimeError, TimeoutError) as error:
                fault = f"{through} did not start: {error}"
        if upstream.refused:
            fault = f"refused: {upstream.refused[0][:300]}"
        fault = fault or fault_in_files(work, scenario)
        recorded = proxy / agent_proxies.EXCHANGES
        if recorded.exists():
            fault = fault or fault_in_histories(recorded, AGENTS[agent].wire, wire)
        counted = upstream.signatures
        return Outcome(fault, counted.returned, counted.due, tuple(upstream.history))


async def both_runs(agent: str, url: str, home: Path, work: Path, scenario: Scenario) -> str | None:
    """The run of the agent, and the one that goes on with it."""
    fault = await run_agent(agent, url, home, work, FINAL_TEXT, resumes=False)
    if fault is None and scenario.resumes:
        return await run_agent(agent, url, home, work, RESUMED_TEXT, resumes=True)
    return fault


async def run_agent(
    agent: str, url: str, home: Path, work: Path, text: str, *, resumes: bool
) -> str | None:
    """Starts the agent; why it failed, or None."""
    command, environment = AGENTS[agent].start(url, home, resumes)
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), **environment}
    done: subprocess.CompletedProcess[bytes] | None = None
    with anyio.move_on_after(PATIENCE):
        done = await anyio.run_process(
            command, cwd=work, check=False, stdin=subprocess.DEVNULL, env=variables
        )
    if done is None:
        return "it did not end"
    output = done.stdout.decode("utf-8", "replace")
    log = output + done.stderr.decode("utf-8", "replace")
    if done.returncode != 0:
        return f"it ended with {done.returncode}: {log[-500:]}"
    if text not in output:
        return f"the last text was not printed: {log[-300:]!r}"
    return None


def fault_in_files(work: Path, scenario: Scenario) -> str | None:
    """What the agent did not do."""
    for name, text in scenario.files.items():
        path = work / name
        if not path.exists():
            return f"{name} was not written"
        if path.read_text(encoding="utf-8") != text:
            return f"{name} has another text"
    return None


def outcome_of_history(outcome: Outcome, client: WireApi, wire: WireApi, first: Outcome) -> Outcome:
    """The outcome; a case fails whose history is another than that on the first wire.

    Agents join turns that seem to be one: the order of calls and outputs shows it.
    """
    expected, history = first.history, outcome.history
    if wire == "chat" or (client == "gemini" and wire == "gemini"):
        # OpenAI takes no thoughts there; Gemini signs calls, and its clients leave thoughts out.
        expected = without_reasoning(expected)
    if client == "gemini" and wire == "gemini":
        history = without_reasoning(history)
    if outcome.fault is not None or history == expected:
        return outcome
    return outcome._replace(fault=f"its history is {outcome.history}, and not {expected}")


def without_reasoning(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(kind for kind in kinds if kind != "reasoning")


class Cells:
    """The outcomes of a run, for a table."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str, str], dict[str, str]] = {}

    def add(self, agent: str, name: str, through: str, wire: str, outcome: Outcome) -> None:
        text = outcome.signatures
        if outcome.fault is not None:
            text = f"fails ({text})"
        self._cells.setdefault((agent, name, through), {})[wire] = text

    def markdown(self, wires: Sequence[str]) -> str:
        """Signed items that came back, by agent and wire of the model."""
        lines = [f"| agent | scenario | through | {' | '.join(wires)} |"]
        lines.append("|---" * (3 + len(wires)) + "|")
        for key, row in self._cells.items():
            cells = [row.get(wire, "") for wire in wires]
            lines.append(f"| {' | '.join([*key, *cells])} |")
        return "\n".join(lines)


async def run(arguments: argparse.Namespace) -> int:
    """Every case, one line each; how many failed that do not fail without the gateway."""
    for name in KEYS:
        os.environ.setdefault(name, "dummy")
    failed = 0
    cells = Cells()
    for agent in arguments.only or AGENTS:
        if agent_clients.missing(agent):
            sys.stdout.write(f"!! {agent} is not installed\n")
            continue
        for name in arguments.scenario or (SCENARIOS if agent in OURS else FOR_ALL):
            failed += await run_scenario(agent, name, arguments, cells)
    if arguments.table:
        sys.stdout.write(f"{cells.markdown(arguments.wire or list(MODELS))}\n")
    return failed


async def run_scenario(agent: str, name: str, arguments: argparse.Namespace, cells: Cells) -> int:
    """The cases of one agent in one scenario."""
    failed = 0
    histories: dict[str, Outcome] = {}
    limit: str | None = None
    for through in arguments.through or (DIRECT, "gateway"):
        if agent_proxies.missing(through):
            sys.stdout.write(f"!! {through} is not installed\n")
            continue
        wires: list[WireApi] = arguments.wire or list(MODELS)
        if through == DIRECT:
            wires = [AGENTS[agent].wire]
        for wire in wires:
            outcome = await case(agent, through, wire, SCENARIOS[name])
            if through != DIRECT:
                first = histories.setdefault(through, outcome)
                outcome = outcome_of_history(outcome, AGENTS[agent].wire, wire, first)
            cells.add(agent, name, through, wire, outcome)
            text = "passed"
            if outcome.fault is not None and through == DIRECT:
                limit = outcome.fault
                text = f"the client's own limit: {limit}"
            elif outcome.fault is not None:
                failed += limit is None and through == "gateway"
                text = f"as without the gateway: {outcome.fault}" if limit else outcome.fault
            row = f"{agent:<20} {name:<15} {through:<8} {wire:<9} {outcome.signatures:>7}"
            sys.stdout.write(f"{row} {text}\n")
            sys.stdout.flush()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(AGENTS), action="append")
    parser.add_argument("--scenario", choices=list(SCENARIOS), action="append")
    parser.add_argument("--wire", choices=list(MODELS), action="append")
    parser.add_argument("--through", choices=list(BETWEEN), action="append")
    parser.add_argument("--table", action="store_true", help="print a table at the end")
    parser.add_argument("--install", action="store_true", help="install what is missing first")
    parser.add_argument("--home", type=Path, default=FOLDER[0], help="where they are installed")
    arguments = parser.parse_args()
    FOLDER[0] = arguments.home.resolve()
    if not FOLDER[0].exists() or arguments.install:
        agent_clients.install()
        if set(arguments.through or ()) & set(agent_proxies.NEEDS):
            agent_proxies.install()
    return anyio.run(run, arguments)


if __name__ == "__main__":
    sys.exit(main())
