"""Claude Code and Codex at a gateway whose targets fail, in real time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from lab.gateway_failures.sdks import when
from lab.gateway_failures.tables import ROUTES
from lab.gateway_failures.targets import FAILURES, TEXT, Failing, Failure
from lab.real import agent_clients
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from tests.support.asgi_servers import serving_app

PATIENCE: Final = 300.0
"""Seconds that a run may take."""

AGENTS: Final = {"Claude Code": agent_clients.claude, "Codex": agent_clients.codex}
SILENCE: Final[dict[str, dict[str, Any]]] = {
    "silent before its headers": {"headers_seconds": 5.0},
    "silent after its headers": {"first_output_seconds": 5.0},
}
"""Settings of the routes, so that a run ends in minutes."""

ONCE: Final = {
    "Claude Code": ({"CLAUDE_CODE_MAX_RETRIES": "0"}, []),
    "Codex": (
        {},
        [
            "-c",
            "model_providers.gateway.request_max_retries=0",
            "-c",
            "model_providers.gateway.stream_max_retries=0",
        ],
    ),
}
"""Variables and options with which an agent asks once, as the SDKs do in the other tables."""

_SAID: Final = re.compile(
    r"(?:API Error|ERROR): (?P<text>.*?)"
    r"(?=$|\. This is a server-side issue|, request id: |, url: | · )"
)
"""What an agent says of a failure, without advice and addresses."""


async def table(home: Path) -> str:
    """The table of both agents, which are installed in a folder."""
    agent_clients.FOLDER[0] = home
    rows = ["| targets | failure of the first | Claude Code | Codex |", "|---|---|---|---|"]
    for targets, route in ROUTES.items():
        for failure in FAILURES:
            rule = msgspec.structs.replace(route, **SILENCE.get(failure.name, {}))
            cells = [await cell(name, failure, rule) for name in AGENTS]
            row = f"| {targets} | {failure.name} | {' | '.join(cells)} |"
            sys.stderr.write(f"{row}\n")  # a run takes minutes
            rows.append(row)
    return "\n".join(rows)


async def cell(agent: str, failure: Failure, rule: RouteRule) -> str:
    """What a person at the agent sees, and when."""
    upstream = Failing(failure)
    app = gateway(Gateway(RouteTable([rule]), client={"http": upstream}))
    async with serving_app(app) as server:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            start = anyio.current_time()
            what = await _run(agent, server.url, Path(folder))
            return f"{what}, {when(anyio.current_time() - start)}"


async def _run(agent: str, url: str, home: Path) -> str:
    command, environment = AGENTS[agent](url, home, False)
    variables, options = ONCE[agent]
    command += options
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), **environment, **variables}
    with anyio.move_on_after(PATIENCE):
        done = await anyio.run_process(
            command, cwd=home, check=False, stdin=subprocess.DEVNULL, env=variables
        )
        output = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0 and TEXT in output:
            return "a response"
        lines = (output + done.stderr.decode("utf-8", "replace")).strip().splitlines()
        said = _SAID.search(lines[-1])
        return f"“{said['text'] if said else lines[-1]}”"
    return "it still waits"
