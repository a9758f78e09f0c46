"""Every deadline, to the millisecond in virtual time: which events restart it and which do not.

No deadline runs while the caller is busy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import anyio
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.transport.deadline_timer import DeadlineTimer
from streamlib.transport.deadlines import FOREVER, Deadlines, deadline_error
from streamlib_parsers import (
    Completed,
    Notice,
    OutputTextDelta,
    Passthrough,
    RateLimits,
    TokenCount,
    Usage,
    parser,
)
from streamlib_parsers.framing import Frame
from streamlib_parsers.stream_error import StreamError
from tests.support.client_streams import FRAMES, stream_over
from tests.support.clients import MemoryTransport, make_client, make_request
from tests.support.metrics import figure
from tests.support.response_bodies import (
    CHAT,
    HELLO,
    HELLO_TEXT,
    LAST,
    MESSAGE,
    OPENED,
    PING,
    START,
    converse,
    finish,
    named,
    part,
    stop,
    text,
)
from tests.support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]

URL: Final = "http://memory.example"
NO_RETRY: Final = RetryPolicy(retries=0)
LIMITS: Final = Deadlines(
    headers=50, first_byte=20, first_event=40, idle=30, total=None, tail=5, drain=0.5
)

MESSAGES: Final = [
    START,
    OPENED.removeprefix(START),
    *(text(f"word {n} ") for n in range(60)),
    stop(),
    finish(),
]
CHATS: Final = [part({"content": f"word {n} "}) for n in range(60)]
CONVERSES: Final = [
    converse("contentBlockDelta", contentBlockIndex=0, delta={"text": f"word {n} "})
    for n in range(60)
]
BODIES: Final[dict[str, list[bytes]]] = {"messages": MESSAGES, "chat": CHATS, "converse": CONVERSES}
COMMENT: Final = b": ping\n\n"
KEEPALIVES: Final = {
    "silence": (),
    "comments": (COMMENT, 5.0),
    "pings": (PING, 5.0),
    "unknown": (named("keep_alive_of_tomorrow"), 5.0),
}
"""What is repeated for ever after the last event."""


def failure(error: StreamError) -> tuple[str, str]:
    """Kind and phase."""
    return error.kind, error.detail["phase"]


async def run(
    transport: Any, deadlines: Deadlines = LIMITS, wire: str = "messages", **options: Any
) -> tuple[float, Any, Any]:
    """Seconds that it took, the failure or None, and the stream."""
    async with make_client(
        URL, transport, deadlines=deadlines, **{"retry": NO_RETRY, **options}
    ) as client:
        began = anyio.current_time()
        stream = client.stream(make_request(URL, wire))
        try:
            async with stream:
                async for _ in stream:
                    pass
        except StreamError as error:
            return anyio.current_time() - began, error, stream
        return anyio.current_time() - began, None, stream


async def test_stream_has_deadlines_of_its_own() -> None:
    transport = MemoryTransport([START, 1000.0])
    async with make_client(URL, transport, deadlines=LIMITS, retry=NO_RETRY) as client:
        began = anyio.current_time()
        limits = Deadlines(idle=7)
        async with client.stream(make_request(URL), deadlines=limits, errors="event") as stream:
            async for _ in stream:
                pass
        assert anyio.current_time() - began == pytest.approx(7)
        assert stream.response.error is not None
        assert stream.response.error.detail == {"phase": "idle"}
        assert transport.sent[0][-1] == limits, "for `connect`, and `first_byte` before the headers"
        with pytest.raises(TypeError, match="deadlines"):
            client.stream(make_request(URL), deadlines=30)  # type: ignore[arg-type]


# --- the arithmetic ---


def test_deadlines_are_seconds() -> None:
    for wrong in (-1, float("nan"), "5"):
        with pytest.raises(ValueError, match="idle"):
            Deadlines(idle=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("event", [Notice("odd"), Passthrough("new", {}), RateLimits()])
def test_keepalive_events_are_not_progress(event: Any) -> None:
    watch = DeadlineTimer(LIMITS)
    watch.note_events([OutputTextDelta(0, 0, "x")])
    watch.add_waited(10)
    watch.note_events([event])
    assert watch.next_deadline() == (20, "idle")
    watch.note_events([event, TokenCount(Usage())])
    assert watch.next_deadline() == (30, "idle")


def test_next_deadline_is_the_nearest() -> None:
    watch = DeadlineTimer(Deadlines(first_byte=5, first_event=8, idle=3, total=9))
    assert watch.next_deadline() == (5, "first_byte")
    watch.add_waited(4)
    watch.note_events([])
    assert watch.next_deadline() == (4, "first_event")
    watch.note_events([OutputTextDelta(0, 0, "x")])
    watch.add_waited(2.5)
    assert watch.next_deadline() == (0.5, "idle")
    watch.note_events([OutputTextDelta(0, 0, "x")])
    assert watch.next_deadline() == (2.5, "total")


def test_silence_is_counted_from_the_headers() -> None:
    timer = DeadlineTimer(Deadlines(first_byte=5, first_event=8))
    timer.add_waited(2)
    assert timer.next_deadline() == (3, "first_byte")


def test_deadlines_of_none_never_expire() -> None:
    watch = DeadlineTimer(Deadlines(first_byte=None, first_event=None, idle=None))
    assert watch.next_deadline()[0] == FOREVER
    assert watch.head_deadline(0)[0] == 900


def test_total_is_a_deadline_and_other_phases_stall() -> None:
    assert (deadline_error("total", LIMITS).kind, deadline_error("total", LIMITS).retryable) == (
        "deadline",
        False,
    )
    assert (deadline_error("idle", LIMITS).kind, deadline_error("idle", LIMITS).retryable) == (
        "stalled",
        True,
    )
    assert "30 s" in deadline_error("idle", LIMITS).message


# --- stalls ---


@pytest.mark.parametrize(
    ("wire", "keepalive"),
    [
        *((wire, keepalive) for wire in ("messages", "chat") for keepalive in KEEPALIVES),
        ("converse", "silence"),
    ],
)
async def test_stall_after_any_event_ends_at_its_deadline(wire: str, keepalive: str) -> None:
    """More than 500 of them on each loop; events come every two seconds before."""
    for count in range(1, len(BODIES[wire]) + 1):
        before = [step for chunk in BODIES[wire][:count] for step in (2.0, chunk)]
        elapsed, error, stream = await run(
            MemoryTransport([*before, *KEEPALIVES[keepalive] * 10, 1e6]), LIMITS, wire
        )
        assert failure(error) == ("stalled", "idle")
        assert elapsed == pytest.approx(2 * count + 30, abs=1e-3), count
        figure("stalls")
        figure("seconds late", abs(elapsed - (2 * count + 30)))
        assert (
            stream.response.timing.longest_gap is None
            or stream.response.timing.longest_gap == pytest.approx(2)
        )


async def test_events_buffered_by_a_dialect_are_progress() -> None:
    """A model that writes a long call into its text is not stalled, though no event is emitted."""
    call = '<tool_call>{"arguments": {"a": "' + "x" * 40 + '"}, "name": "f"}</tool_call>'
    steps = [step for letter in call for step in (20.0, text(letter))]
    elapsed, error, stream = await run(
        MemoryTransport([OPENED, *steps, 1e6]), LIMITS, dialects=[("", ("hermes", "think"))]
    )
    assert failure(error) == ("stalled", "idle")
    assert elapsed == pytest.approx(20 * len(call) + 30, abs=1e-3)
    assert stream.response.text == call, "no tool of that name was offered, so it is text"


class Late(MemoryTransport):
    """Responds after so many seconds."""

    def __init__(self, seconds: float, *scripts: Sequence[Any]) -> None:
        super().__init__(*scripts)
        self.seconds = seconds

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> Any:
        await anyio.sleep(self.seconds)
        return await super().send(method, url, headers, body, deadlines)


@pytest.mark.parametrize(
    ("transport", "phase", "seconds"),
    [
        pytest.param(lambda: Late(1e6, []), "headers", 50, id="no head"),
        pytest.param(
            lambda: MemoryTransport([1e6]), "first_byte", 20, id="a head and then nothing"
        ),
        pytest.param(
            lambda: MemoryTransport([COMMENT, 5.0] * 100),
            "first_event",
            40,
            id="a head and then comments",
        ),
        pytest.param(
            lambda: Late(49, [19.0, START, 29.0, PING, 29.0]),
            "idle",
            49 + 19 + 30,
            id="every phase nearly",
        ),
    ],
)
async def test_each_phase_has_its_own_deadline(transport: Any, phase: str, seconds: float) -> None:
    elapsed, error, _ = await run(transport())
    assert failure(error) == ("stalled", phase)
    assert elapsed == pytest.approx(seconds, abs=1e-3)


async def test_total_ends_a_slow_stream() -> None:
    elapsed, error, stream = await run(
        MemoryTransport([OPENED, *(step for _ in range(1000) for step in (text("x"), 1.0))]),
        Deadlines(total=100),
    )
    assert failure(error) == ("deadline", "total")
    assert elapsed == pytest.approx(100, abs=1e-3)
    assert stream.response.text == "x" * 100


async def test_long_reasoning_is_not_interrupted() -> None:
    """Two minutes before the first event, then a minute of pings between two."""
    transport = MemoryTransport([120.0, START, *[5.0, PING] * 12, MESSAGE.removeprefix(START)])
    elapsed, error, stream = await run(transport, Deadlines())
    assert (error, stream.response.text) == (None, HELLO_TEXT)
    assert elapsed == pytest.approx(180, abs=1e-3)


async def test_no_deadline_runs_while_the_caller_works() -> None:
    async with make_client(
        URL,
        MemoryTransport([START, 5.0, *MESSAGES[1:], LAST]),
        deadlines=Deadlines(idle=6, total=7),
    ) as client:
        async with client.stream(make_request(URL)) as stream:
            async for _ in stream:
                await anyio.sleep(1000)
        assert stream.response.status == "completed"


# --- after the end ---


@pytest.mark.parametrize(
    ("wire", "body", "seconds"),
    [("messages", MESSAGE, 0.5), ("chat", CHAT, 0.5), ("chat", CHAT[: CHAT.rindex(b"data:")], 5.0)],
    ids=["messages", "chat after [DONE]", "chat without [DONE]"],
)
async def test_connection_left_open_is_closed_after_the_tail(
    wire: str, body: bytes, seconds: float
) -> None:
    elapsed, error, stream = await run(MemoryTransport([body, 1e6]), LIMITS, wire)
    assert (error, stream.response.text) == (None, HELLO_TEXT)
    assert elapsed == pytest.approx(seconds, abs=1e-3)


async def test_tail_restarts_with_each_event() -> None:
    usage = part(usage={"prompt_tokens": 3, "completion_tokens": 2}).replace(
        b'"choices": [{', b'"choices": [], "x": [{'
    )
    elapsed, error, stream = await run(
        MemoryTransport([CHAT[: CHAT.rindex(b"data:")], 4.0, usage, 4.0, b"data: [DONE]\n\n"]),
        LIMITS,
        "chat",
    )
    assert error is None
    assert stream.response.usage.output_tokens == 2
    assert elapsed == pytest.approx(8, abs=1e-3)


async def test_incomplete_stream_never_ends_as_complete() -> None:
    _, error, stream = await run(MemoryTransport([HELLO, 1e6]))
    assert (error.kind, stream.response.status) == ("stalled", "failed")


# --- several attempts ---


async def test_total_counts_every_attempt_and_delay() -> None:
    """40 s to the first event's deadline, 10 s delay, 40 s; a 20 s delay would exceed the total."""
    transport = MemoryTransport([COMMENT, 1e6])
    policy = RetryPolicy(retries=5, base=10, cap=100, jitter=0)
    elapsed, error, stream = await run(
        transport, Deadlines(first_byte=None, first_event=40, total=100), retry=policy
    )
    assert failure(error) == ("stalled", "first_event")
    assert (len(transport.sent), len(stream.retried)) == (2, 1)
    assert elapsed == pytest.approx(90, abs=1e-3)


async def test_total_ends_an_attempt_midway() -> None:
    transport = MemoryTransport([COMMENT, 1e6])
    policy = RetryPolicy(retries=5, base=10, cap=10, jitter=0)
    elapsed, error, _ = await run(
        transport, Deadlines(first_byte=None, first_event=40, total=120), retry=policy
    )
    assert failure(error) == ("deadline", "total")
    assert elapsed == pytest.approx(120, abs=1e-3)
    assert len(transport.sent) == 3


async def test_waiting_for_a_connection_counts_for_total_only() -> None:
    class Narrow(MemoryTransport):
        slots = None

    transport = Narrow([START, 60.0, MESSAGE.removeprefix(START)])
    transport.slots = anyio.CapacityLimiter(1)
    ends: list[tuple[float, str | None]] = []

    async def respond(deadlines: Deadlines) -> None:
        elapsed, error, _ = await run(transport, deadlines)
        ends.append((round(elapsed, 3), error and error.detail["phase"]))

    async with anyio.create_task_group() as group:
        group.start_soon(respond, Deadlines())
        await anyio.sleep(0.1)
        group.start_soon(respond, Deadlines(headers=10))
        await anyio.sleep(0.1)
        group.start_soon(respond, Deadlines(total=70))
    assert ends == [(60.0, None), (70.0, "total"), (pytest.approx(119.9), None)]
    assert transport.slots.borrowed_tokens == 0


async def test_missing_error_body_is_waited_for_briefly() -> None:
    elapsed, error, _ = await run(
        MemoryTransport([b'{"error": {"type": "overloaded_error", ', 1e6], status=529)
    )
    assert error.kind == "overloaded"
    assert elapsed == pytest.approx(10, abs=1e-3)


USUAL_SCOPE: Final = anyio.CancelScope


class SelfTimed:
    """Chunks that end a late read by themselves, as the chunks of a socket do."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._deadline = FOREVER
        self.started: list[float] = []
        """What each read was allowed."""

    def start(self, seconds: float) -> None:
        self.started.append(seconds)
        self._deadline = anyio.current_time() + seconds

    def __aiter__(self) -> SelfTimed:
        return self

    async def __anext__(self) -> bytes:
        with USUAL_SCOPE(deadline=self._deadline):
            return await anext(self._chunks)
        raise TimeoutError


class SelfTimedTransport(MemoryTransport):
    """A transport whose responses have a `read_timeout`."""

    chunks: SelfTimed

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> Any:
        response: Any = await super().send(method, url, headers, body, deadlines)
        self.chunks = response.chunks = response.read_timeout = SelfTimed(response.chunks)
        return response


EVEN: Final = Deadlines(first_byte=30, first_event=30, idle=30)


@pytest.mark.parametrize(
    ("script", "deadlines", "phase", "seconds"),
    [
        ([1e6], EVEN, "first_byte", 30),
        ([HELLO, 1e6], EVEN, "idle", 30),
        ([HELLO, 20.0, PING, 20.0, PING], EVEN, "idle", 30),
        ([HELLO, 20.0, text("x"), 20.0, text("y"), 1e6], Deadlines(total=50), "total", 50),
    ],
)
async def test_read_timeout_of_a_transport_names_the_phase(
    script: list[Any],
    deadlines: Deadlines,
    phase: str,
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """C2: no scope of ours is needed for a read, whichever deadline is the next."""
    scopes: list[Any] = []

    def counted(**options: Any) -> anyio.CancelScope:
        scopes.append(options)
        return USUAL_SCOPE(**options)

    from streamlib.client import attempt

    transport = SelfTimedTransport(script)
    monkeypatch.setattr(attempt.anyio, "CancelScope", counted)
    elapsed, error, _ = await run(transport, deadlines)
    assert failure(error) == ("deadline" if phase == "total" else "stalled", phase)
    assert elapsed == pytest.approx(seconds, abs=1e-3)
    assert transport.chunks.started
    reads = len(transport.chunks.started)
    assert len(scopes) == 2, f"one to send, one to close, none for {reads} reads"


async def test_read_timeout_of_a_transport_ends_the_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What follows a complete response is read as the response was, and ends without an error."""
    scopes: list[Any] = []

    def counted(**options: Any) -> anyio.CancelScope:
        scopes.append(options)
        return USUAL_SCOPE(**options)

    from streamlib.client import attempt

    monkeypatch.setattr(attempt.anyio, "CancelScope", counted)
    transport = SelfTimedTransport([CHAT, b": more\n\n", 1e6])
    elapsed, error, stream = await run(transport, LIMITS, "chat")
    assert (error, stream.response.text) == (None, HELLO_TEXT)
    assert elapsed == pytest.approx(0.5, abs=1e-3)
    assert len(scopes) == 2, "one to send, one to close"


async def test_read_timeout_ends_the_tail_without_an_error() -> None:
    transport = SelfTimedTransport([CHAT[: CHAT.rindex(b"data:")], 1e6])
    elapsed, error, stream = await run(transport, LIMITS, "chat")
    assert (error, stream.response.text) == (None, HELLO_TEXT)
    assert elapsed == pytest.approx(5, abs=1e-3)


async def test_parsing_without_an_event_counts_as_waiting() -> None:
    """C2: a flood of comments keeps the stream busy, and is no work of the caller's."""

    class SlowFraming:
        """Takes a second for each chunk."""

        def __init__(self, framing: Any) -> None:
            self.now = 0.0
            self._framing = framing

        def feed(self, chunk: bytes) -> list[Frame]:
            self.now += 1
            return self._framing.feed(chunk)  # type: ignore[no-any-return]

        def __getattr__(self, name: str) -> Any:
            return getattr(self._framing, name)

    async def flood() -> AsyncIterator[bytes]:
        yield HELLO
        for _ in range(100):
            yield COMMENT
        raise AssertionError("no deadline passed")

    stream_parser: Any = parser("messages")
    slow = stream_parser._framing = SlowFraming(stream_parser._framing)
    stream = ResponseStream.from_chunks(
        flood(), stream_parser, deadlines=Deadlines(idle=30), errors="event", clock=lambda: slow.now
    )
    async with stream:
        async for _ in stream:
            pass
    error = stream.response.error
    assert error is not None
    assert (error.kind, error.detail) == ("stalled", {"phase": "idle"})


async def test_bytes_of_the_caller_have_no_deadlines_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """C12: no timeout scope for a read, and no failure however late the bytes are."""
    from streamlib.client import attempt

    pauses = 50
    stream = stream_over(FRAMES[0], *[3600.0] * pauses, *FRAMES[1:])
    scopes: list[float] = []
    usual_scope = anyio.CancelScope

    def counted(**options: Any) -> anyio.CancelScope:
        scopes.append(options["deadline"])
        return usual_scope(**options)

    async with stream:
        monkeypatch.setattr(attempt.anyio, "CancelScope", counted)
        events = [event async for event in stream]
        # Those that close a complete response are allowed: see `tail` and `drain`.
        assert len(scopes) <= 3
        monkeypatch.undo()
    assert type(events[-1]) is Completed
    assert stream.response.status == "completed"
