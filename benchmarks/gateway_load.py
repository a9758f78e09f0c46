"""The gateway under load: what it adds to first tokens and gaps, its CPU and its memory.

    python -m benchmarks.gateway_load                                  # a quarter of an hour
    python -m benchmarks.gateway_load --litellm VENV/bin/litellm       # and a LiteLLM proxy
    python -m benchmarks.gateway_load --soak 300                       # memory and descriptors

A model server, the gateway and the clients are three processes on this machine. Streams are paced
(an event at a time) or come in bursts (five at once, as providers that buffer send them); however
many there are, all together send about 500 events a second. Each row is measured right after
the same streams without a gateway: what is shown is the difference, so that a busy machine changes
both. CPU is the gateway process's own; memory is what it holds while all streams are open, beyond
what it held after its first requests.

A soak reads short streams without a pause. A third of its clients leave in the middle, and the
server breaks off every fifth response.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import mmap
import os
import random
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.gateway import UNLOCKED, process, url_of
from lab.systems import need

STREAMS: Final = (1, 100, 500, 1000)
EVENTS_A_SECOND: Final = 500.0
"""Events of all streams together: one core handles these; clients and server use the other."""

SECONDS: Final = 10.0
"""Seconds for which the streams of a row send, in addition to the time for their starts."""

STARTS_A_SECOND: Final = 25.0
"""Starts are spread: streams that all start at once would measure only the reading of requests."""

BURST: Final = 5
"""Events that are sent at once if the stream is not paced."""

PATIENCE: Final = 120.0
"""Seconds by which streams may be late; if they have not ended then, the gateway hangs."""

PATHS: Final = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}


class Load(NamedTuple):
    """Streams that are read at the same time.

    Attributes:
        streams: number of streams.
        events: number of events in each stream.
        pace: seconds between two events of a stream, or between two bursts.
        burst: number of events that are sent at once.
    """

    streams: int
    events: int
    pace: float
    burst: int

    @property
    def model(self) -> str:
        """The name of the model that responds in this way."""
        return f"m-{self.events}-{self.pace}-{self.burst}"

    @property
    def name(self) -> str:
        """The kind of these streams, for tables."""
        return "paced" if self.burst == 1 else "bursts"


class Row(NamedTuple):
    """What was measured.

    Attributes:
        first: seconds from a request to its first event, for each stream.
        gaps: seconds between two events.
        cpu: CPU seconds of the gateway's process.
        memory: bytes of its memory while all streams were open.
    """

    first: list[float]
    gaps: list[float]
    cpu: float
    memory: int


def load(streams: int, burst: int, seconds: float) -> Load:
    """Streams that together send `EVENTS_A_SECOND` for this many seconds."""
    # A single stream sends 50 a second, as fast models do.
    rate = min(50.0, EVENTS_A_SECOND / streams)
    seconds += streams / STARTS_A_SECOND
    events = max(2 * burst, round(rate * seconds / burst) * burst)
    return Load(streams, events, burst / rate, burst)


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile in milliseconds; 0.5 is the median."""
    index = min(len(values) - 1, int(len(values) * share))
    return sorted(values)[index] * 1000


# --- the model's server ---


async def upstream() -> None:
    """A Chat Completions server whose responses depend on the name of the model."""
    dice = random.Random(7)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                headers = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = headers.partition(b"content-length: ")[2].partition(b"\r\n")[0]
                body = json.loads(await reader.readexactly(int(length or b"0")))
                _, events, pace, burst = body["model"].split("-")[-4:]
                breaks = body["model"].startswith("breaking") and dice.random() < 0.2
                await respond(writer, int(events), float(pace), int(burst), breaks=breaks)
                if breaks or b"connection: close" in headers:
                    break
        writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=2048)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def respond(
    writer: asyncio.StreamWriter, events: int, pace: float, burst: int, *, breaks: bool
) -> None:
    """Sends a stream; one that breaks ends in the middle."""
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    start = time.monotonic()
    for number in range(0, events, burst):
        await asyncio.sleep(max(0.0, start + number // burst * pace - time.monotonic()))
        if breaks and number >= events // 2:
            return
        writer.write(b"".join(frame({"content": "T"}) for _ in range(burst)))
        await writer.drain()
    writer.write(frame({}, "stop") + chunk_of(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    await writer.drain()


def frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """An event of a Chat stream, as an HTTP chunk."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return chunk_of(b"data: %s\n\n" % json.dumps({**body, "choices": [choice]}).encode())


def chunk_of(data: bytes) -> bytes:
    """An HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


# --- the clients ---


async def read_stream(
    url: str, wire: str, model: str, *, leave_after: int | None = None
) -> tuple[list[float], bool]:
    """Reads one response.

    Args:
        url: URL of the server.
        wire: wire of the client.
        model: model in the request.
        leave_after: number of events after which the client disconnects; None: never.

    Returns:
        When each event was received, in seconds since the request; whether the response had the
        end of its wire.
    """
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    fields = {"model": model, "stream": True, "max_tokens": 1000}
    body = json.dumps({**fields, "messages": [{"role": "user", "content": "Hi"}]}).encode()
    lines = (
        f"POST {PATHS[wire]} HTTP/1.1",
        f"host: {host}",
        "content-type: application/json",
        "authorization: Bearer sk-1",
        "connection: close",
        f"content-length: {len(body)}",
    )
    start = time.monotonic()
    writer.write("\r\n".join((*lines, "", "")).encode() + body)
    times: list[float] = []
    tail = b""
    try:
        while data := await reader.read(1 << 16):
            # A mark may be split between reads.
            count = (tail[-2:] + data).count(b'"T"')
            if count:
                times += [time.monotonic() - start] * count
            tail = (tail + data)[-400:]
            if leave_after is not None and len(times) >= leave_after:
                break
    except ConnectionError:
        pass
    finally:
        writer.close()
    is_ended = b"[DONE]" in tail or b"message_stop" in tail or b'"error"' in tail
    return times, is_ended


async def measure(url: str, wire: str, plan: Load, pid: int | None) -> Row:
    """Reads this many streams at once, their starts spread over some seconds.

    Args:
        url: URL of the gateway, or of the server itself.
        wire: wire of the clients.
        plan: the streams.
        pid: id of the process whose CPU and memory are measured.

    Raises:
        TimeoutError: the streams did not end.
        RuntimeError: a stream was truncated.
    """

    async def one(delay: float) -> tuple[list[float], bool]:
        await asyncio.sleep(delay)
        return await read_stream(url, wire, plan.model)

    cpu_before = cpu(pid)
    delays = [number / STARTS_A_SECOND for number in range(plan.streams)]
    tasks = [asyncio.create_task(one(delay)) for delay in delays]
    # Now all streams have started, and none has ended.
    await asyncio.sleep(delays[-1] + plan.pace)
    held = memory(pid)
    async with asyncio.timeout(plan.events / plan.burst * plan.pace + PATIENCE):
        results = await asyncio.gather(*tasks)
    first: list[float] = []
    gaps: list[float] = []
    for times, is_ended in results:
        if len(times) < plan.events or not is_ended:
            raise RuntimeError(f"{wire} at {url}: {len(times)} of {plan.events} events")
        first.append(times[0])
        gaps += [after - before for before, after in itertools.pairwise(times)]
    return Row(first, gaps, cpu(pid) - cpu_before, held)


def cpu(pid: int | None) -> float:
    """CPU seconds that a process and its threads have used; 0 without a process."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int | None) -> int:
    """Bytes of memory that a process uses; 0 without a process."""
    if pid is None:
        return 0
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * mmap.PAGESIZE


def descriptors(pid: int) -> int:
    """Number of files and sockets that a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


# --- the soak ---


class Sample(NamedTuple):
    """The resources of a process at one time.

    Attributes:
        seconds: seconds since the soak began.
        memory: bytes of memory.
        descriptors: number of open files and sockets.
        streams: number of streams read so far.
        cut: number of these streams that lack an end that they should have had.
    """

    seconds: float
    memory: int
    descriptors: int
    streams: int
    cut: int


async def soak(url: str, pid: int, seconds: float, clients: int = 40) -> list[Sample]:
    """Reads short streams without a pause, and measures the process ten times.

    Args:
        url: URL of the gateway.
        pid: id of its process.
        seconds: duration in seconds.
        clients: number of clients that read at the same time.
    """
    started = time.monotonic()
    counts = {"streams": 0, "cut": 0}

    async def client(number: int) -> None:
        dice = random.Random(number)
        while time.monotonic() - started < seconds:
            leave_after = dice.randrange(1, 20) if dice.random() < 1 / 3 else None
            model = "breaking-m-20-0.01-1"
            wire = dice.choice(["chat", "messages"])
            _, is_ended = await read_stream(url, wire, model, leave_after=leave_after)
            counts["streams"] += 1
            if leave_after is None and not is_ended:
                counts["cut"] += 1

    samples: list[Sample] = []

    def sample() -> None:
        elapsed = time.monotonic() - started
        samples.append(Sample(elapsed, memory(pid), descriptors(pid), **counts))

    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(number))
        for step in range(1, 11):
            await asyncio.sleep(max(0.0, started + seconds * step / 10 - time.monotonic()))
            sample()
    # The sockets of the last clients close a little later.
    await asyncio.sleep(1.0)
    sample()
    return samples


# --- the processes ---


def routes(stack: ExitStack, model_url: str) -> str:
    """The path of a route file with the model server as the only target."""
    file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "routes.toml"
    fields = {"model": "*", "to": "custom:*", "wire_api": "chat", "base_url": f"{model_url}/v1"}
    lines = ["[[route]]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def litellm(command: str, model_url: str, stack: ExitStack) -> tuple[str, int]:
    """The URL and process id of a LiteLLM proxy before the same server."""
    file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "config.yaml"
    parameters = {"model": "openai/*", "api_base": f"{model_url}/v1", "api_key": "sk-1"}
    config = {"model_list": [{"model_name": "*", "litellm_params": parameters}]}
    file.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = ("--config", str(file), "--port", str(port), "--host", "127.0.0.1")
    proxy = stack.enter_context(process(command, *options, **UNLOCKED))
    url = f"http://127.0.0.1:{port}"
    for _ in range(240):
        time.sleep(0.5)
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/health/liveliness", timeout=1).close()
            return url, proxy.pid
    raise RuntimeError("the LiteLLM proxy did not start")


HEADER: Final = (
    f"{'':<30} {'streams':>7} {'':>7} {'first p50':>10} {'p99':>8} {'gap p50':>8} {'p99':>8} "
    f"{'CPU us/event':>13} {'KiB/stream':>11}"
)


def show(name: str, plan: Load, row: Row, direct: Row, idle: int) -> str:
    """A row of the table: latency that the gateway adds, in milliseconds, and its CPU and memory.

    Args:
        name: name of the gateway.
        plan: the streams.
        row: result with the gateway.
        direct: result of the same streams without a gateway.
        idle: bytes of memory of the gateway without a stream.
    """
    added: list[str] = []
    for width, mine, base in ((10, row.first, direct.first), (8, row.gaps, direct.gaps)):
        for share, columns in ((0.5, width), (0.99, 8)):
            difference = percentile(mine, share) - percentile(base, share)
            added.append(f"{difference:>+{columns}.1f}")
    each = row.cpu / (plan.streams * plan.events) * 1e6
    kib = max(0, row.memory - idle) / plan.streams / 1024
    return (
        f"{name:<30} {plan.streams:>7} {plan.name:>7} {' '.join(added)} {each:>13.0f} {kib:>11.0f}"
    )


def run(arguments: argparse.Namespace) -> None:
    """Measures every number of streams, paced and in bursts; or soaks."""
    python = (sys.executable, "-m")
    with ExitStack() as stack:
        command = (*python, "benchmarks.gateway_load", "--upstream")
        model_url = url_of(stack.enter_context(process(*command)))
        config = routes(stack, model_url)
        command = (*python, "streamlib", "gateway", "--port", "0", "--config", config)
        gateway = stack.enter_context(process(*command))
        url = url_of(gateway)
        if arguments.soak:
            print_soak(asyncio.run(soak(url, gateway.pid, arguments.soak)))
            return
        gateways = [(f"streamlib, {wire} on chat", url, wire, gateway.pid) for wire in PATHS]
        if arguments.litellm:
            proxy, pid = litellm(arguments.litellm, model_url, stack)
            gateways.append(("LiteLLM proxy, chat on chat", proxy, "chat", pid))
        print(HEADER)
        idle: list[int] = []
        for _, address, wire, pid in gateways:  # processes warm up with their first requests
            asyncio.run(measure(address, wire, Load(5, 5, 0.05, 1), None))
            idle.append(memory(pid))
        for streams in arguments.streams:
            for burst in (1, BURST):
                plan = load(streams, burst, arguments.seconds)
                direct = asyncio.run(measure(model_url, "chat", plan, None))
                for (name, address, wire, pid), held in zip(gateways, idle, strict=True):
                    try:
                        row = asyncio.run(measure(address, wire, plan, pid))
                    except (TimeoutError, RuntimeError) as error:
                        reason = str(error) or f"streams did not end within {PATIENCE:.0f} s"
                        print(f"{name:<30} {streams:>7} {plan.name:>7} {reason}", flush=True)
                        continue
                    print(show(name, plan, row, direct, held), flush=True)


def print_soak(samples: Sequence[Sample]) -> None:
    """Prints the resources of the process during a soak."""
    print(f"{'seconds':>8} {'MiB':>8} {'descriptors':>12} {'streams':>9} {'cut':>5}")
    for sample in samples:
        mib = sample.memory / (1 << 20)
        print(
            f"{sample.seconds:8.0f} {mib:8.1f} {sample.descriptors:12} {sample.streams:9} "
            f"{sample.cut:5}"
        )


def main() -> None:
    """Reads the command line."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    command.add_argument(
        "--litellm", metavar="COMMAND", help="the `litellm` command of a venv with litellm[proxy]"
    )
    command.add_argument("--streams", type=int, nargs="+", default=list(STREAMS))
    command.add_argument("--seconds", type=float, default=SECONDS, help="of each row")
    command.add_argument("--soak", type=float, metavar="SECONDS", help="soak instead")
    arguments = command.parse_args()
    need("benchmarks.gateway_load", "/proc/self/stat", "os.sysconf")
    if arguments.upstream:
        asyncio.run(upstream())
    else:
        run(arguments)


if __name__ == "__main__":
    main()
