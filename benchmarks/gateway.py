"""What the gateway costs: CPU for an event, and how much later an event arrives than without it.

    python -m benchmarks.gateway                                   # 1, 100 and 500 streams at once, about two minutes
    python -m benchmarks.gateway --litellm VENV/bin/litellm        # against a LiteLLM proxy too, from a venv of its own

A model server, the gateway and the clients are three processes on this machine. Each event carries the moment at which the server sent
it; the client subtracts. A row's direct twin is measured right before it, so that a busy machine changes both. CPU is the gateway
process's own (user and system), divided by the events that went through it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

STREAMS: Final = (1, 100, 500)
EVENTS: Final = 60
PACE: Final = 0.1
"""Seconds between two events of a stream: ten tokens a second each, 5,000 events a second at 500 streams."""
STAMP: Final = re.compile(rb"T(\d{10,})T")
TICKS: Final = os.sysconf("SC_CLK_TCK")
ASKED: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "messages": (
        "/v1/messages",
        {"max_tokens": 1000, "messages": [{"role": "user", "content": "Hi"}]},
    ),
    "responses": ("/v1/responses", {"input": "Hi"}),
}


class Row(NamedTuple):
    """One measurement: latencies in seconds, CPU in seconds of the process between."""

    name: str
    streams: int
    events: int
    latencies: list[float]
    cpu: float | None

    def percentile(self, share: float) -> float:
        return (
            sorted(self.latencies)[min(len(self.latencies) - 1, int(len(self.latencies) * share))]
            * 1000
        )


# --- the model's server ---


async def upstream() -> None:
    """Chat Completions: each chunk says when it was sent."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int((re.search(rb"content-length: (\d+)", head.lower()) or [b"", b"0"])[1])
                await reader.readexactly(length)
                await answer(writer)
                if b"connection: close" in head.lower():
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def answer(writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    begun = time.monotonic()
    for number in range(EVENTS):
        await asyncio.sleep(max(0.0, begun + number * PACE - time.monotonic()))
        event(writer, {"content": f"T{time.monotonic_ns()}T "})
    event(writer, {}, "stop")
    chunk(writer, b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def event(writer: asyncio.StreamWriter, delta: dict[str, Any], finish: str | None = None) -> None:
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk(
        writer,
        b"data: %s\n\n"
        % json.dumps(
            {**body, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        ).encode(),
    )


def chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


# --- the clients ---


async def stream(url: str, wire: str, model: str, delay: float) -> list[float]:
    """Reads one answer; how old each event was when it came."""
    await asyncio.sleep(delay)
    path, body = ASKED[wire]
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    said = json.dumps({**body, "model": model, "stream": True}).encode()
    lines = f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nauthorization: Bearer sk-1\r\nconnection: close\r\n"
    writer.write(f"{lines}content-length: {len(said)}\r\n\r\n".encode() + said)
    ages: list[float] = []
    seen: set[bytes] = set()
    data = b""
    while got := await reader.read(1 << 16):
        now = time.monotonic_ns()
        data = data[-200:] + got
        for stamp in STAMP.findall(data):
            if stamp not in seen:
                seen.add(stamp)
                ages.append((now - int(stamp)) / 1e9)
    writer.close()
    if len(ages) < EVENTS:
        raise RuntimeError(f"{wire} at {url}: {len(ages)} of {EVENTS} events; {data[:500]!r}")
    return ages


async def measure(name: str, url: str, wire: str, model: str, count: int, pid: int | None) -> Row:
    before = cpu(pid) if pid else None
    ages = await asyncio.gather(
        *(stream(url, wire, model, PACE * number / count) for number in range(count))
    )
    flat = [age for one in ages for age in one]
    return Row(
        name, count, len(flat), flat, None if pid is None or before is None else cpu(pid) - before
    )


def cpu(pid: int) -> float:
    """Seconds that a process and its threads have had."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# --- the processes ---


@contextmanager
def process(*command: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    ) as one:
        try:
            yield one
        finally:
            one.terminate()


def address(one: subprocess.Popen[str]) -> str:
    """The URL in the first line that a process prints."""
    assert one.stdout is not None
    found = re.search(r"http://[\d.]+:\d+", one.stdout.readline())
    assert found
    return found[0]


UNLOCKED: Final = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
"""LiteLLM, too, asks for a token; on 127.0.0.1, for this, it may do without."""


def litellm(command: str, model_url: str, stack: ExitStack) -> tuple[str, int]:
    """A LiteLLM proxy before the same server."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    file = Path(folder) / "config.yaml"
    model = {"model": "openai/m", "api_base": f"{model_url}/v1", "api_key": "sk-1"}
    file.write_text(
        json.dumps({"model_list": [{"model_name": "m", "litellm_params": model}]}), encoding="utf-8"
    )
    port = 4017
    one = stack.enter_context(
        process(
            command, "--config", str(file), "--port", str(port), "--host", "127.0.0.1", **UNLOCKED
        )
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(120):
        time.sleep(0.5)
        try:
            urllib.request.urlopen(f"{url}/health/liveliness", timeout=1).close()
        except OSError:
            continue
        return url, one.pid
    raise RuntimeError("the LiteLLM proxy did not start")


def show(row: Row, direct: Row) -> str:
    added = [row.percentile(share) - direct.percentile(share) for share in (0.5, 0.99)]
    each = f"{row.cpu / row.events * 1e6:8.0f}" if row.cpu is not None else "        "
    ages = f"{row.percentile(0.5):8.2f} {row.percentile(0.99):8.2f}"
    return f"{row.name:<34} {row.streams:>5} {row.events:>7} {each} {ages} {added[0]:>+9.2f} {added[1]:>+9.2f}"


def main() -> None:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    words.add_argument(
        "--litellm", metavar="COMMAND", help="the `litellm` command of a venv with litellm[proxy]"
    )
    words.add_argument("--streams", type=int, nargs="+", default=list(STREAMS))
    asked = words.parse_args()
    if asked.upstream:
        asyncio.run(upstream())
        return
    with ExitStack() as stack:
        model_url = address(
            stack.enter_context(process(sys.executable, "-m", "benchmarks.gateway", "--upstream"))
        )
        command = (
            sys.executable,
            "-m",
            "streamlib",
            "gateway",
            "--port",
            "0",
            "--config",
            routes(stack, model_url),
        )
        ours = stack.enter_context(process(*command))
        gateway_url = address(ours)
        rows = [
            (f"streamlib, {wire} client on chat", gateway_url, wire, ours.pid) for wire in ASKED
        ]
        if asked.litellm:
            url, pid = litellm(asked.litellm, model_url, stack)
            rows.append(("LiteLLM proxy, chat client on chat", url, "chat", pid))
        print(f"{'':<34} streams  events  CPU us/event  p50 ms   p99 ms  added p50  added p99")
        for count in asked.streams:
            for name, url, wire, pid in rows:
                if count == asked.streams[0]:
                    asyncio.run(measure("warm", url, wire, "m", 2, None))
                direct = asyncio.run(measure("direct", model_url, "chat", "m", count, None))
                print(
                    show(asyncio.run(measure(name, url, wire, "m", count, pid)), direct), flush=True
                )


def routes(stack: ExitStack, model_url: str) -> str:
    file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "routes.toml"
    file.write_text(
        f'[[route]]\nmodel = "m"\nto = "custom:m"\nwire_api = "chat"\nbase_url = "{model_url}/v1"\n',
        encoding="utf-8",
    )
    return str(file)


if __name__ == "__main__":
    main()
