"""What stands between an agent and its model: nothing, the gateway, LiteLLM's proxy, or
claude-code-router."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import uvicorn
from anyio.abc import Process

from lab.real.agent_clients import FOLDER
from streamlib.gateway import ExchangeFiles, Gateway, RouteRule, RouteTable, gateway
from streamlib_parsers.items import WireApi

MODELS: Final[dict[WireApi, str]] = {
    "messages": "anthropic:claude-sonnet-4-5",
    "responses": "openai:gpt-5.5",
    "chat": "openai:gpt-5.5",
    "gemini": "google:gemini-3.5-flash",
    "interactions": "google:gemini-3.5-flash",
    "converse": "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "invoke": "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama": "ollama:qwen3",
    "cohere": "cohere:command-a-reasoning-08-2025",
}
"""Upstream wire -> the model there, with its provider's rules."""

KEYS: Final = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CO_API_KEY",
)
READY_SECONDS: Final = 180.0
"""How long a proxy may take until it listens: LiteLLM imports for half a minute when idle."""

LITELLM: Final = "litellm[proxy]==1.106.2"
"""Newer ones need a package that the registry does not have."""

ROUTER: Final = "@musistudio/claude-code-router@2.0.0"
"""3.1.1 needs a package that the registry does not have."""

EXCHANGES: Final = "exchanges"
"""Where the gateway records both sides of each request."""

Between = Callable[[str, WireApi, Path], AbstractAsyncContextManager[str]]
"""(the provider's address, its wire, a folder) -> the address for the agent."""


def base_url(url: str, wire: WireApi) -> str:
    """The base URL of a wire at the strict provider."""
    if wire in ("gemini", "interactions"):
        return f"{url}/v1beta"
    if wire in ("responses", "chat"):
        return f"{url}/v1"
    return url


@asynccontextmanager
async def nothing(url: str, wire: WireApi, home: Path) -> AsyncGenerator[str]:
    """The agent asks the provider itself."""
    yield url


@asynccontextmanager
async def our_gateway(
    url: str, wire: WireApi, home: Path, *, state: str | None = "memory:"
) -> AsyncGenerator[str]:
    """A gateway on a real port; it records what it is sent, and sends, into `EXCHANGES`."""
    rule = RouteRule(
        "*",
        MODELS[wire],
        wire_api=wire,
        base_url=base_url(url, wire),
        # Some agents ask for no reasoning.
        reasoning={"unset": "medium"},
    )
    async with anyio.create_task_group() as group:
        record = ExchangeFiles(home / EXCHANGES)
        app = gateway(Gateway(RouteTable([rule]), state=state, record=record))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        group.start_soon(server.serve)
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
            await anyio.sleep(0.02)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        await anyio.sleep(0.3)
        group.cancel_scope.cancel()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def program(
    command: list[str], port: int, home: Path, variables: Mapping[str, str]
) -> AsyncGenerator[str]:
    """A proxy while the block runs; its address, once it listens."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    for name in KEYS:
        environment[name] = "dummy"
    with (home / "proxy.log").open("wb") as log:
        process = await anyio.open_process(
            command, cwd=home, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        async with process:
            try:
                with anyio.fail_after(READY_SECONDS):
                    await until_it_listens(process, port, home / "proxy.log")
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()


async def until_it_listens(process: Process, port: int, log: Path) -> None:
    """Waits for a proxy.

    Raises:
        RuntimeError: it has ended.
    """
    while True:
        try:
            stream = await anyio.connect_tcp("127.0.0.1", port)
        except OSError:
            if process.returncode is not None:
                text = await anyio.Path(log).read_text(errors="replace")
                raise RuntimeError(f"the proxy ended: {text[-500:]}") from None
            await anyio.sleep(0.2)
        else:
            await stream.aclose()
            return


@asynccontextmanager
async def litellm(url: str, wire: WireApi, home: Path) -> AsyncGenerator[str]:
    """LiteLLM's proxy, with the way to the wire that its documentation names."""
    provider, _, model = MODELS[wire].partition(":")
    names = {"google": "gemini", "openai": "openai", "anthropic": "anthropic"}
    target = f"{names[provider]}/{model}"
    if wire == "responses":
        target = f"openai/responses/{model}"
    parameters = {"model": target, "api_base": base_url(url, wire), "api_key": "dummy"}
    parameters["reasoning_effort"] = "medium"
    entries = [{"model_name": "*", "litellm_params": parameters}]
    file = home / "litellm.json"
    # YAML takes JSON.
    settings = {"drop_params": True, "telemetry": False}
    # It listens on this machine alone.
    general = {"dangerously_permit_weak_or_unset_master_key": True}
    file.write_text(
        json.dumps(
            {"model_list": entries, "litellm_settings": settings, "general_settings": general}
        )
    )
    port = free_port()
    command = [str(FOLDER[0] / "litellm" / "bin" / "litellm"), "--config", str(file)]
    command += ["--port", str(port), "--host", "127.0.0.1"]
    variables = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    async with program(command, port, home, variables) as address:
        yield address


@asynccontextmanager
async def claude_code_router(url: str, wire: WireApi, home: Path) -> AsyncGenerator[str]:
    """claude-code-router, with the transformer for the wire."""
    model = MODELS[wire].partition(":")[2]
    paths = {
        "messages": "/v1/messages",
        "responses": "/v1/responses",
        "chat": "/v1/chat/completions",
        "gemini": "/v1beta/models/",
    }
    transformers = {
        "messages": ["Anthropic"],
        "responses": ["openai-responses"],
        "gemini": ["gemini"],
    }
    entry: dict[str, Any] = {
        "name": "upstream",
        "api_base_url": url + paths[wire],
        "api_key": "dummy",
        "models": [model],
    }
    if wire in transformers:
        entry["transformer"] = {"use": transformers[wire]}
    port = free_port()
    settings = {
        "HOST": "127.0.0.1",
        "PORT": port,
        "APIKEY": "",
        "LOG": False,
        "Providers": [entry],
        "Router": {"default": f"upstream,{model}"},
    }
    folder = home / ".claude-code-router"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    command = [str(FOLDER[0] / "node_modules" / ".bin" / "ccr"), "start"]
    async with program(command, port, home, {"SERVICE_PORT": str(port)}) as address:
        yield address


BETWEEN: Final[dict[str, Between]] = {
    "direct": nothing,
    "gateway": our_gateway,
    "gateway --state off": partial(our_gateway, state=None),
    "litellm": litellm,
    "claude-code-router": claude_code_router,
}
NEEDS: Final[dict[str, str]] = {
    "litellm": "litellm/bin/litellm",
    "claude-code-router": "node_modules/.bin/ccr",
}


def missing(name: str) -> bool:
    """Whether a proxy is not installed."""
    return name in NEEDS and not (FOLDER[0] / NEEDS[name]).exists()


def install() -> None:
    """Installs the proxies: LiteLLM in an environment of its own."""
    home = FOLDER[0]
    folder = home / "litellm"
    subprocess.run([str(shutil.which("python3")), "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, LITELLM], check=True)
    npm = [str(shutil.which("npm")), "install", "--silent", "--no-audit", "--no-fund"]
    subprocess.run([*npm, "--prefix", str(home), ROUTER], check=True)
