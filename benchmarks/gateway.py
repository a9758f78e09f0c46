"""The cost of the gateway: CPU for an event, and the latency it adds.

    python -m benchmarks.gateway [--rounds 3] [--quick] [--save]
    LITELLM=VENV/bin/litellm python -m benchmarks.gateway          # and a LiteLLM proxy

A model server, the gateway and the clients are three processes on this machine. Each event carries
the time at which the server sent it; the client subtracts. Each row is measured right after the
same streams without a gateway, so that a busy machine changes both. CPU is the gateway process's
own (user and system, by the clock of the process in nanoseconds), divided by the events that went
through it: 6,000 or more for each figure. LiteLLM needs a virtual environment of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.commands import Measured, Options, run
from streamlib.cli.bench import Bar
from streamlib.testing.bench.records import Figure, figure

UPSTREAM: Final = "upstream"
"""The argument that makes this module the model's server."""


class Plan(NamedTuple):
    """Streams that are read at the same time.

    Attributes:
        streams: number of streams.
        events: number of events in each stream.
        pace: seconds between two events of a stream.
    """

    streams: int
    events: int
    pace: float

    @property
    def model(self) -> str:
        """The name of the model with these streams; the server reads them from it."""
        return f"m-{self.events}-{self.pace:g}"


PLANS: Final = (Plan(1, 6000, 0.002), Plan(100, 60, 0.1), Plan(500, 60, 0.25))
"""The last plan has 2,000 events a second, which one core can handle."""
QUICK: Final = (Plan(2, 20, 0.01),)
WARM: Final = Plan(2, 50, 0)
"""The first requests of a process, which are not measured."""
STAMP: Final = re.compile(rb"T(\d{10,})T")
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
        latencies: seconds from sending to reading each event.
        cpu: CPU seconds of the measured process; None without one.
    """

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
                body = json.loads(await reader.readexactly(int(length or b"0")))
                _, events, pace = body["model"].split("-")
                await respond(writer, int(events), float(pace))
                closing = b"connection: close" in headers
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def respond(writer: asyncio.StreamWriter, events: int, pace: float) -> None:
    """Sends a stream of this many events at the pace."""
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    start = time.monotonic()
    for number in range(events):
        await asyncio.sleep(max(0.0, start + number * pace - time.monotonic()))
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


async def stream(url: str, wire: str, plan: Plan, delay: float) -> list[float]:
    """Reads one response; returns the age of each event when it was received, in seconds."""
    await asyncio.sleep(delay)
    path, fields = REQUESTS[wire]
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({**fields, "model": plan.model, "stream": True}).encode()
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
    if len(ages) < plan.events:
        raise RuntimeError(f"{wire} at {url}: {len(ages)} of {plan.events} events; {data[:500]!r}")
    return ages


async def read_all(url: str, wire: str, plan: Plan, pid: int | None) -> Row:
    """Reads the streams of a plan at once, their starts spread over one pace.

    Args:
        url: URL of the server.
        wire: wire of the clients.
        plan: number and length of the streams.
        pid: id of the process whose CPU is measured.
    """
    before = 0.0 if pid is None else cpu_of(pid)
    delays = (plan.pace * number / plan.streams for number in range(plan.streams))
    streams = await asyncio.gather(*(stream(url, wire, plan, delay) for delay in delays))
    ages = [age for ages in streams for age in ages]
    spent = None if pid is None else cpu_of(pid) - before
    return Row(ages, spent)


def cpu_of(pid: int) -> float:
    """CPU seconds that a process and its threads have used, in nanoseconds on Linux.

    ``/proc`` counts in ticks of 10 ms, far too coarse for one stream.
    """
    if sys.platform == "linux":
        # clock_getcpuclockid(3): the complement of the id, shifted, and the kind of the clock.
        return time.clock_gettime((~pid << 3) | 2)
    spent = subprocess.run(
        ["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    minutes, _, seconds = spent.stdout.strip().rpartition(":")
    return float(minutes.rpartition(":")[2] or 0) * 60 + float(seconds)


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


def litellm(command: str, model_url: str, plans: Sequence[Plan], stack: ExitStack) -> Target:
    """A LiteLLM proxy in front of the same server."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    file = Path(folder) / "config.yaml"
    models: list[dict[str, Any]] = []
    for plan in plans:
        parameters = {
            "model": f"openai/{plan.model}",
            "api_base": f"{model_url}/v1",
            "api_key": "sk-1",
        }
        models.append({"model_name": plan.model, "litellm_params": parameters})
    file.write_text(json.dumps({"model_list": models}), encoding="utf-8")  # JSON is YAML
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
        return Target("LiteLLM proxy, chat", url, "chat", proxy.pid)
    raise RuntimeError("the LiteLLM proxy did not start")


class Target(NamedTuple):
    """A server in front of the model's server.

    Attributes:
        name: name in tables.
        url: URL for its clients.
        wire: wire of its clients.
        pid: id of its process.
    """

    name: str
    url: str
    wire: str
    pid: int


def targets(model_url: str, plans: Sequence[Plan], stack: ExitStack) -> list[Target]:
    """The gateway for clients of three wires, and a LiteLLM proxy if there is one."""
    command = (sys.executable, "-m", "streamlib", "gateway", "--port", "0")
    gateway = stack.enter_context(process(*command, "--config", routes(stack, model_url, plans)))
    url = url_of(gateway)
    found: list[Target] = []
    for wire in REQUESTS:
        found.append(Target(f"streamlib, {wire}", url, wire, gateway.pid))
    proxy = os.environ.get("LITELLM")
    if proxy:
        found.append(litellm(proxy, model_url, plans, stack))
    return found


def routes(stack: ExitStack, model_url: str, plans: Sequence[Plan]) -> str:
    """The path of a gateway configuration with a route for the model of each plan."""
    file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "routes.toml"
    lines: list[str] = []
    for plan in plans:
        lines += (
            "[[route]]",
            f'model = "{plan.model}"',
            f'to = "custom:{plan.model}"',
            'wire_api = "chat"',
            f'base_url = "{model_url}/v1"',
        )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def measured(options: Options, bar: Bar) -> Measured:
    """Measures every target with every plan."""
    plans = QUICK if options.quick else PLANS
    values: dict[tuple[Plan, str, str, str], list[float]] = {}
    with ExitStack() as stack:
        server = stack.enter_context(process(sys.executable, "-m", "benchmarks.gateway", UPSTREAM))
        model_url = url_of(server)
        found = targets(model_url, (*plans, WARM), stack)
        for target in found:  # processes warm up with their first requests
            asyncio.run(read_all(target.url, target.wire, WARM, None))
        for _ in range(options.rounds):
            for plan in plans:
                for target in found:
                    bar.advance(f"{plan.streams} streams: {target.name}")
                    for measure, unit, value in compared(model_url, plan, target):
                        key = (plan, target.name, measure, unit)
                        values.setdefault(key, []).append(value)
    figures: list[Figure] = []
    for (plan, name, measure, unit), rounds in values.items():
        workload, chunks = f"{plan.streams} streams", f"every {plan.pace:g} s"
        figures.append(figure("gateway", workload, chunks, name, measure, unit, rounds))
    absent: list[str] = []
    if not os.environ.get("LITELLM"):
        absent.append("a LiteLLM proxy (LITELLM names no command)")
    return Measured(figures, {"uvicorn": version("uvicorn"), "httpx": version("httpx")}, absent)


def compared(model_url: str, plan: Plan, target: Target) -> Iterator[tuple[str, str, float]]:
    """The figures of a target: name, unit and value of each."""
    direct = asyncio.run(read_all(model_url, "chat", plan, None))
    row = asyncio.run(read_all(target.url, target.wire, plan, target.pid))
    assert row.cpu is not None
    yield "CPU", "µs/event", row.cpu / len(row.latencies) * 1e6
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        yield name, "ms", row.percentile(share)
        yield f"added {name}", "ms", row.percentile(share) - direct.percentile(share)


def main(argv: list[str] | None = None) -> int:
    """Measures the gateway for clients of three wires, with every plan."""
    if (argv or sys.argv[1:]) == [UPSTREAM]:
        asyncio.run(upstream())
        return 0
    steps = len(PLANS) * (len(REQUESTS) + 1)
    return run(
        "gateway",
        __doc__,
        measured,
        argv,
        rounds=3,
        steps=lambda options: steps * options.rounds,
    )


if __name__ == "__main__":
    raise SystemExit(main())
