"""Makes one measurement over sockets, in its own process.

    python -m benchmarks.socket_run URL READER LOOP STREAMS EVENTS PACE GROUP

All streams are opened and receive their first event. The CPU time until then, for each stream, is
the cost of setting it up; the memory, for each stream, is that of an idle one. Then the server is
told to continue, and the further CPU time is the cost of events.
"""

from __future__ import annotations

import contextlib
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import anyio
import anyio.to_thread

from benchmarks.loopback import SEED, events_of, running
from benchmarks.socket_readers import READERS, Reader
from lab.systems import need, resident_bytes
from streamlib.cli.bench import Bar
from streamlib.testing.bench.records import Figure, figure
from streamlib.testing.bench.responses import seeded_deltas

MANY: Final = 5000
"""Number of streams from which on a measurement takes a minute, so it is made once."""
SECONDS: Final = 300.0
"""Timeout of a measurement in seconds: after it the machine is too busy."""


class Streams(NamedTuple):
    """Streams that are read at the same time.

    Attributes:
        count: number of streams.
        deltas: number of deltas in each stream.
        pace: seconds between two events of a stream; 0: all at once.
    """

    count: int
    deltas: int
    pace: float

    @property
    def chunks(self) -> str:
        """The pace in words."""
        return f"every {self.pace:g} s" if self.pace else "at once"


class Spent(NamedTuple):
    """Resources that the reading process used in a run.

    Attributes:
        setup: CPU µs for opening each stream.
        event: CPU µs for each further event.
        memory: KB of memory of each idle stream.
    """

    setup: float
    event: float
    memory: float


def run(url: str, reader: str, loop: str, streams: Streams, group: str) -> Spent:
    """Makes one measurement in its own process.

    Raises:
        RuntimeError: It failed; the message contains its output.
    """
    arguments = (url, reader, loop, *map(str, streams), group)
    command = (sys.executable, "-m", "benchmarks.socket_run", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{reader} on {loop}: {done.stderr[-2000:]}")
    return Spent(**json.loads(done.stdout))


def measure(
    bench: str, combinations: Sequence[tuple[str, str, Streams]], rounds: int, bar: Bar
) -> tuple[list[Figure], list[str]]:
    """Figures of readers on loops, in alternating rounds on one server, and the absent ones.

    After Ctrl-C it returns what was measured so far.

    Args:
        bench: name of the benchmark in the figures.
        combinations: name of a reader, loop, streams.
        rounds: number of rounds.
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
        missing = [each for each in READERS[name].distributions if find_spec(each) is None]
        if missing:
            absent.append(f"{name} ({missing[0]} is not installed)")
        else:
            able.append(name)
    return able, absent


def versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of the participants."""
    distributions = {"anyio", "trio", "uvloop"}
    for name in names:
        distributions |= set(READERS[name].distributions)
    return {name: version(name) for name in sorted(distributions) if find_spec(name)}


def _groups() -> Iterator[str]:
    """Names of groups of streams, each once."""
    number = 0
    while True:
        number += 1
        yield str(number)


# --- in the process ---


async def _measure(reader: Reader, url: str, streams: Streams, group: str) -> Spent:
    async with reader.open_client(streams.count) as read:
        # Warms the client up with a first request.
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
        memory = resident_bytes()
        start = time.process_time()
        async with anyio.create_task_group() as tasks:
            for _ in range(streams.count):
                tasks.start_soon(read_one)
            await all_open.wait()
            opened = time.process_time()
            gc.collect()
            held = resident_bytes() - memory
            # Taken before, because events arrive while the server is told.
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
    """Tells the server to continue."""
    host, port = url.removeprefix("http://").split(":")
    async with await anyio.connect_tcp(host, int(port)) as socket:
        await socket.send(f"POST /go/{group} HTTP/1.1\r\n\r\n".encode())
        await socket.receive()


def _allow_sockets(count: int) -> None:
    """Raises the limit of open files as far as the system permits."""
    need("a benchmark of many sockets", "resource")
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count and hard >= count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def main(argv: Sequence[str]) -> None:
    """Measures once and prints the result."""
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
