"""The cost of the gateway: CPU for an event, and the latency it adds.

    python -m benchmarks.gateway                                   # about two minutes
    python -m benchmarks.gateway --litellm VENV/bin/litellm        # and a LiteLLM proxy

A model server, the gateway and the clients are three processes on this machine. Each event carries
the time at which the server sent it; the client subtracts. Each row is measured right after the
same streams without a gateway, so that a busy machine changes both. CPU is the gateway process's
own (user and system), divided by the events that went through it. LiteLLM needs a virtual
environment of its own.
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
"""Seconds between two events of a stream: 5,000 events a second with 500 streams."""
STAMP: Final = re.compile(rb"T(\d{10,})T")
TICKS: Final = os.sysconf("SC_CLK_TCK")
REQUESTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "messages": (
        "/v1/messages",
        {"max_tokens": 1000, "messages": [{"role": "user", "content": "Hi"}]},
    ),
    "responses": ("/v1/responses", {"input": "Hi"}),
}


class Row(NamedTuple):
    """One measurement.

    Attributes:
        name: of what is measured.
        streams: concurrent ones.
        events: of all streams.
        latencies: seconds from sending to reading each event.
        cpu: seconds of the measured process; None without one.
    """

    name: str
    streams: int
    events: int
    latencies: list[float]
    cpu: float | None

    def percentile(self, share: float) -> float:
        """A percentile of the latencies in milliseconds; 0.5 is the median."""
        index = min(len(self.latencies) - 1, int(len(self.latencies) * share))
        return sorted(self.latencies)[index] * 1000


# --- the model's server ---


async def upstream() -> None:
    """A Chat Completions server; each chunk has the time at which it was sent."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            closing = False
            while not closing:
                headers = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = headers.partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or b"0"))
                await respond(writer)
                closing = b"connection: close" in headers
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def respond(writer: asyncio.StreamWriter) -> None:
    """Sends a stream of `EVENTS` events at the pace."""
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    start = time.monotonic()
    for number in range(EVENTS):
        await asyncio.sleep(max(0.0, start + number * PACE - time.monotonic()))
        event(writer, {"content": f"T{time.monotonic_ns()}T "})
    event(writer, {}, "stop")
    chunk(writer, b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def event(writer: asyncio.StreamWriter, delta: dict[str, Any], finish: str | None = None) -> None:
    """Sends one chunk of a choice."""
    body = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    chunk(writer, b"data: %s\n\n" % json.dumps(body).encode())


def chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Sends one HTTP chunk."""
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


# --- the clients ---


async def stream(url: str, wire: str, model: str, delay: float) -> list[float]:
    """Reads one response; returns the age of each event in seconds when it arrived."""
    await asyncio.sleep(delay)
    path, fields = REQUESTS[wire]
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({**fields, "model": model, "stream": True}).encode()
    lines = (
        f"POST {path} HTTP/1.1",
        f"host: {host}",
        "content-type: application/json",
        "authorization: Bearer sk-1",
        "connection: close",
        f"content-length: {len(body)}",
    )
    writer.write("\r\n".join((*lines, "", "")).encode() + body)
    ages: list[float] = []
    seen: set[bytes] = set()
    data = b""
    received = await reader.read(1 << 16)
    while received:
        now = time.monotonic_ns()
        # A stamp may be split between reads: the end of the last one is searched again.
        data = data[-200:] + received
        for stamp in STAMP.findall(data):
            if stamp not in seen:
                seen.add(stamp)
                ages.append((now - int(stamp)) / 1e9)
        received = await reader.read(1 << 16)
    writer.close()
    if len(ages) < EVENTS:
        raise RuntimeError(f"{wire} at {url}: {len(ages)} of {EVENTS} events; {data[:500]!r}")
    return ages


async def measure(name: str, url: str, wire: str, model: str, count: int, pid: int | None) -> Row:
    """Reads so many streams at once, their starts spread over one pace.

    Args:
        name: of the row.
        url: of the server.
        wire: of the clients.
        model: in the request.
        count: concurrent streams.
        pid: of the process whose CPU is measured.
    """
    cpu_before = cpu(pid)
    delays = (PACE * number / count for number in range(count))
    streams = await asyncio.gather(*(stream(url, wire, model, delay) for delay in delays))
    ages = [age for ages in streams for age in ages]
    cpu_spent = None
    if pid is not None:
        cpu_spent = cpu(pid) - cpu_before
    return Row(name, count, len(ages), ages, cpu_spent)


def cpu(pid: int | None) -> float:
    """CPU seconds that a process and its threads have used; 0 without a process."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# --- the processes ---


@contextmanager
def process(*command: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a command while the block runs."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    ) as started:
        try:
            yield started
        finally:
            started.terminate()


def url_of(started: subprocess.Popen[str]) -> str:
    """The URL in the first line that a process prints."""
    assert started.stdout is not None
    match = re.search(r"http://[\d.]+:\d+", started.stdout.readline())
    assert match
    return match[0]


UNLOCKED: Final = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
"""LiteLLM requires a master key, unless this is set; on 127.0.0.1 none is needed."""


def litellm(command: str, model_url: str, stack: ExitStack) -> tuple[str, int]:
    """The URL and process id of a LiteLLM proxy before the same server."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    file = Path(folder) / "config.yaml"
    parameters = {"model": "openai/m", "api_base": f"{model_url}/v1", "api_key": "sk-1"}
    config = {"model_list": [{"model_name": "m", "litellm_params": parameters}]}
    file.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    port = 4017
    options = ("--config", str(file), "--port", str(port), "--host", "127.0.0.1")
    proxy = stack.enter_context(process(command, *options, **UNLOCKED))
    url = f"http://127.0.0.1:{port}"
    for _ in range(120):
        time.sleep(0.5)
        try:
            urllib.request.urlopen(f"{url}/health/liveliness", timeout=1).close()
        except OSError:
            continue
        return url, proxy.pid
    raise RuntimeError("the LiteLLM proxy did not start")


def show(row: Row, direct: Row) -> str:
    """A row of the table: its figures, and the difference to the same streams without a gateway."""
    median, slowest = row.percentile(0.5), row.percentile(0.99)
    added_median = median - direct.percentile(0.5)
    added_slowest = slowest - direct.percentile(0.99)
    cpu_each = ""
    if row.cpu is not None:
        cpu_each = f"{row.cpu / row.events * 1e6:.0f}"
    return (
        f"{row.name:<34} {row.streams:>5} {row.events:>7} {cpu_each:>8} "
        f"{median:8.2f} {slowest:8.2f} {added_median:>+9.2f} {added_slowest:>+9.2f}"
    )


def main() -> None:
    """Measures the gateway for clients of three wires, with every number of streams."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    command.add_argument(
        "--litellm", metavar="COMMAND", help="the `litellm` command of a venv with litellm[proxy]"
    )
    command.add_argument("--streams", type=int, nargs="+", default=list(STREAMS))
    arguments = command.parse_args()
    if arguments.upstream:
        asyncio.run(upstream())
        return
    python = (sys.executable, "-m")
    with ExitStack() as stack:
        server = stack.enter_context(process(*python, "benchmarks.gateway", "--upstream"))
        model_url = url_of(server)
        config = routes(stack, model_url)
        gateway = stack.enter_context(
            process(*python, "streamlib", "gateway", "--port", "0", "--config", config)
        )
        gateway_url = url_of(gateway)
        rows: list[tuple[str, str, str, int]] = []
        for wire in REQUESTS:
            rows.append((f"streamlib, {wire} client on chat", gateway_url, wire, gateway.pid))
        if arguments.litellm:
            url, pid = litellm(arguments.litellm, model_url, stack)
            rows.append(("LiteLLM proxy, chat client on chat", url, "chat", pid))
        print(f"{'':<34} streams  events  CPU us/event  p50 ms   p99 ms  added p50  added p99")
        for name, url, wire, _ in rows:  # processes warm up with their first requests
            asyncio.run(measure(name, url, wire, "m", 2, None))
        for count in arguments.streams:
            for name, url, wire, pid in rows:
                direct = asyncio.run(measure("direct", model_url, "chat", "m", count, None))
                row = asyncio.run(measure(name, url, wire, "m", count, pid))
                print(show(row, direct), flush=True)


def routes(stack: ExitStack, model_url: str) -> str:
    """The path of a gateway configuration with the model server as its only route."""
    file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "routes.toml"
    lines = (
        "[[route]]",
        'model = "m"',
        'to = "custom:m"',
        'wire_api = "chat"',
        f'base_url = "{model_url}/v1"',
    )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


if __name__ == "__main__":
    main()
