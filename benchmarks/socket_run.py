"""One measurement over sockets, in a process of its own, and the streams it is made with.

    python -m benchmarks.socket_run URL READER LOOP STREAMS EVENTS PACE GROUP

All streams are opened and get their first event. Then the CPU so far, for each stream, is the cost
of setting it up, and the memory so far, for each stream, is what an idle one holds. The server goes
on when it is told to, and the rest is the cost of an event.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import anyio.to_thread

from benchmarks import node_readers
from benchmarks.loopback import SEED, events_of, running
from benchmarks.results import Figure, figure
from benchmarks.socket_readers import READERS, Reader
from streamlib.bench.responses import seeded_deltas
from streamlib.cli.bench import Bar

MANY: Final = 5000
"""Number of streams that take a minute, and are therefore measured once."""
SECONDS: Final = 300.0
"""A measurement that lasts longer is given up: the machine is too busy for it."""
NODE_READERS: Final = {
    node_readers.SSE: "eventsource-parser",
    node_readers.VERCEL: "vercel",
}
"""Name -> what `node/sockets.mjs` calls it."""
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Streams(NamedTuple):
    """What is read at once.

    Attributes:
        count: how many streams.
        deltas: of each.
        pace: seconds between two events of a stream; 0: all at once.
    """

    count: int
    deltas: int
    pace: float

    @property
    def chunks(self) -> str:
        """The pace for people."""
        return f"every {self.pace:g} s" if self.pace else "at once"


class Spent(NamedTuple):
    """What a run took of the reading process.

    Attributes:
        setup: CPU µs for opening each stream.
        event: CPU µs for each further event.
        memory: KB that each idle stream held.
    """

    setup: float
    event: float
    memory: float


def run(url: str, reader: str, loop: str, streams: Streams, group: str) -> Spent:
    """Runs one measurement in a process of its own.

    Raises:
        RuntimeError: It failed; the message has what it wrote.
    """
    if reader in NODE_READERS:
        command = node_readers.socket_command(url, NODE_READERS[reader], *map(str, streams), group)
        return _of_node(_printed(command, reader), streams)
    arguments = (url, reader, loop, *map(str, streams), group)
    command = (sys.executable, "-m", "benchmarks.socket_run", *arguments)
    return Spent(**_printed(command, f"{reader} on {loop}"))


def _printed(command: Sequence[str], name: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def _of_node(printed: dict[str, Any], streams: Streams) -> Spent:
    """What a process of Node took, once it read what everybody reads."""
    expected = "".join(seeded_deltas(SEED, streams.deltas))
    if printed["texts"] != [hashlib.sha1(expected.encode()).hexdigest()]:
        raise AssertionError("it read something else")
    events = len(events_of("messages", streams.deltas)) - 1
    return Spent(
        printed["setup"] / streams.count,
        printed["rest"] / (streams.count * events),
        printed["memory"] / streams.count / 1e3,
    )


def measure(
    bench: str, combinations: Sequence[tuple[str, str, Streams]], rounds: int, bar: Bar
) -> tuple[list[Figure], list[str]]:
    """The figures of readers on loops, in alternating rounds against one server; what lacks.

    Interrupted by Ctrl-C, it keeps what was measured.

    Args:
        bench: name of the benchmark in the figures.
        combinations: name of a reader, loop, streams.
        rounds: how often each is measured.
        bar: shows the progress.
    """
    spent: dict[tuple[str, str, Streams], list[Spent]] = {key: [] for key in combinations}
    with running() as url, contextlib.suppress(KeyboardInterrupt):
        groups = _groups()
        for number in range(rounds):
            for key in combinations:
                name, loop, streams = key
                if number and streams.count >= MANY:
                    continue
                bar.advance(f"{streams.count} streams {streams.chunks}: {name}, {loop}")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    spent[key].append(run(url, name, loop, streams, next(groups)))
    figures: list[Figure] = []
    absent: list[str] = []
    for (name, loop, streams), runs in spent.items():
        if not runs:
            absent.append(f"{name} on {loop} with {streams.count} streams {streams.chunks}")
            continue
        key = (bench, f"{streams.count} streams", streams.chunks, f"{name}, {loop}")
        events = [entry.event for entry in runs]
        figures.append(figure(*key, "event", "µs", events))
        if streams.count > 1:  # of one stream they are the first one's
            figures.append(figure(*key, "setup", "µs", [entry.setup for entry in runs]))
            figures.append(figure(*key, "memory", "KB", [entry.memory for entry in runs]))
    return figures, absent


def installed(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The readers that can take part, and why the others cannot."""
    able: list[str] = []
    absent: list[str] = []
    for name in names:
        if name in NODE_READERS:
            why = node_readers.absence()
            if why is None:
                able.append(name)
            else:
                absent.append(why)
            continue
        missing = [each for each in READERS[name].distributions if find_spec(each) is None]
        if missing:
            absent.append(f"{name} ({missing[0]} is not installed)")
        else:
            able.append(name)
    return able, absent


def versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of what takes part."""
    distributions = {"anyio", "trio", "uvloop"}
    of_node: dict[str, str] = {}
    for name in names:
        if name in NODE_READERS:
            of_node = node_readers.versions()
        else:
            distributions |= set(READERS[name].distributions)
    return {name: version(name) for name in sorted(distributions) if find_spec(name)} | of_node


def _groups() -> Iterator[str]:
    """Names of groups of streams, each once."""
    number = 0
    while True:
        number += 1
        yield str(number)


# --- in the process ---


async def _measure(reader: Reader, url: str, streams: Streams, group: str) -> Spent:
    async with reader.open_client(streams.count) as read:
        # Clients warm up with their first request.
        await _go(url, f"{group}warm")
        await read(f"{url}/{reader.wire}/10/0/{group}warm", lambda: None)
        texts: list[str | None] = []
        all_open = anyio.Event()
        waiting = streams.count

        def on_open() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                all_open.set()

        async def read_one() -> None:
            texts.append(await read(stream_url, on_open))

        stream_url = f"{url}/{reader.wire}/{streams.deltas}/{streams.pace}/{group}"
        gc.collect()
        # Else every collection walks the modules of a large library.
        gc.freeze()
        memory = _resident_bytes()
        start = time.process_time()
        async with anyio.create_task_group() as tasks:
            for _ in range(streams.count):
                tasks.start_soon(read_one)
            await all_open.wait()
            opened = time.process_time()
            gc.collect()
            held = _resident_bytes() - memory
            # Before it: events arrive while it is told.
            resumed = time.process_time()
            await _go(url, group)
        ended = time.process_time()
    expected = "".join(seeded_deltas(SEED, streams.deltas))
    if any(text not in (None, expected) for text in texts):
        raise AssertionError("it read something else")
    events = len(events_of(reader.wire, streams.deltas)) - 1
    return Spent(
        (opened - start) / streams.count * 1e6,
        (ended - resumed) / (streams.count * events) * 1e6,
        held / streams.count / 1e3,
    )


async def _go(url: str, group: str) -> None:
    """Lets the server go on."""
    host, port = url.removeprefix("http://").split(":")
    async with await anyio.connect_tcp(host, int(port)) as socket:
        await socket.send(f"POST /go/{group} HTTP/1.1\r\n\r\n".encode())
        await socket.receive()


def _resident_bytes() -> int:
    """Memory of this process that is in use now; on other systems than Linux: at most so far."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * PAGE_BYTES
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _allow_sockets(count: int) -> None:
    """Raises the limit of open files as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count and hard >= count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def main(argv: Sequence[str]) -> None:
    """Measures once and prints it."""
    url, name, loop, count, deltas, pace, group = argv
    streams = Streams(int(count), int(deltas), float(pace))
    _allow_sockets(streams.count + 200)
    backend = "trio" if loop == "trio" else "asyncio"
    options: dict[str, Any] = {"use_uvloop": True} if loop == "uvloop" else {}
    spent = anyio.run(
        _measure, READERS[name], url, streams, group, backend=backend, backend_options=options
    )
    sys.stdout.write(json.dumps(spent._asdict()))


if __name__ == "__main__":
    main(sys.argv[1:])
