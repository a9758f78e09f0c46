"""`loopback` and `replay`: faults, statuses, options and their mistakes."""

from __future__ import annotations

import asyncio
import inspect
from functools import cache
from typing import Any, Final, get_args

import pytest

from streamlib import Client, StreamError, WireApi, encode_all
from streamlib.client.retry import NO_RETRY
from streamlib.recording import Recording, from_body
from streamlib.request.prompt import Prompt
from streamlib.testing import (
    MODEL,
    ClientOptions,
    Fault,
    echo_response,
    loopback,
    replay,
    scripted,
    sync_loopback,
)
from streamlib.transport.deadlines import Deadlines
from streamlib.wires.faults import fault_index
from streamlib_parsers.classification import classify
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case
from tests.support.loops import asyncio_alone

FAULTS: Final = get_args(Fault)
KINDS: Final = {
    "truncate": {"truncated"},
    "disconnect": {"connection", "truncated"},
    "malformed": {"malformed"},
    "stall": {"stalled"},
}
"""Error kinds that each fault may have."""

ONCE: Final[ClientOptions] = {"retry": NO_RETRY}
"""Options of clients that do not try again."""


def options_for(fault: Fault) -> ClientOptions:
    """Options of a client that does not try again; one that meets silence waits for 20 ms."""
    if fault != "stall":
        return ONCE
    # Not with the other faults: a busy machine is silent for longer.
    return {"retry": NO_RETRY, "deadlines": Deadlines(idle=0.02, first_event=0.02)}


def untyped(value: object) -> Any:
    """Hides from the type checkers the mistake that a test makes on purpose."""
    return value


@cache
def one_chunk(wire_api: WireApi) -> Recording:
    """A recorded response whose body arrived in one chunk, as captures are."""
    prompt = Prompt(input="hello there, tell me a story", stream=True)
    return from_body(encode_all(wire_api, echo_response(prompt, wire_api)))


async def outcome(client: Any) -> tuple[str, int]:
    """The error kind of a response, and how many events came before the error."""
    events: list[Any] = []
    async with client.stream("hi", MODEL, errors="event") as stream:
        events = [event async for event in stream]
    error = stream.response.error
    return (error.kind if error else "none"), len(events)


@pytest.mark.parametrize(
    ("count", "after", "index"), [(4, 0, 0), (4, 3, 3), (4, 4, 1), (5, 9, 2), (1, 1, 0), (0, 0, 0)]
)
def test_fault_comes_before_the_end_of_a_short_body(count: int, after: int, index: int) -> None:
    assert fault_index(count, after) == index


@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_hit_recordings_of_one_chunk(fault: Fault) -> None:
    """D2: the recording was sent in one chunk, so the chunk of the fault never came."""
    for wire_api in WIRE_APIS:
        body = one_chunk(wire_api).body
        options = options_for(fault)
        async with loopback(wire_api, fault=fault, recordings=(body,), client=options) as client:
            kind, count = await outcome(client)
        assert kind in KINDS[fault], (wire_api, kind)
        assert count > 2 or fault == "stall", (wire_api, "the fault came before the text")


@pytest.mark.parametrize("fault", FAULTS)
async def test_replay_makes_faults_at_events_with_any_split(fault: Fault) -> None:
    for wire_api in WIRE_APIS:
        for split in ("whole", "random", 50):
            options = {"fault": fault, "at": 4, "split": split, **options_for(fault)}
            async with replay(one_chunk(wire_api), wire_api, **untyped(options)) as client:
                kind, count = await outcome(client)
            assert kind in KINDS[fault], (wire_api, split, kind)
            assert count > 2 or fault == "stall", (wire_api, split)


async def test_fault_after_the_end_of_a_short_body_still_comes() -> None:
    for wire_api in WIRE_APIS:
        recording = one_chunk(wire_api)
        async with replay(recording, wire_api, fault="truncate", at=10_000, **ONCE) as client:
            assert (await outcome(client))[0] == "truncated"
        async with loopback(wire_api, fault="truncate", at=10_000, client=ONCE) as client:
            assert (await outcome(client))[0] == "truncated"


async def test_replay_fails_only_the_failing_requests() -> None:
    async with replay(
        one_chunk("chat"), "chat", fault="truncate", failing=1, retry=NO_RETRY
    ) as client:
        kinds = [(await outcome(client))[0] for _ in range(3)]
    assert kinds == ["truncated", "none", "none"]


async def test_random_splits_give_the_same_events() -> None:
    async with replay(one_chunk("messages"), "messages") as client:
        expected = await client.respond("hi", MODEL)
    for seed in range(20):
        async with replay(one_chunk("messages"), split="random", seed=seed) as client:
            assert (await client.respond("hi", MODEL)).items == expected.items


@pytest.mark.parametrize("wire_api", WIRE_APIS)
async def test_every_status_maps_as_that_of_a_real_service(wire_api: WireApi) -> None:
    """D2: `loopback(status=401)` was `rate_limited`."""
    for status in (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529):
        async with loopback(wire_api, status=status, client=ONCE) as client:
            with pytest.raises(StreamError) as caught:
                await client.respond("hi", MODEL)
        expected = classify(status, b"")
        assert (caught.value.info.status, caught.value.kind) == (status, expected.kind)


@pytest.mark.parametrize("split", ["byte", 0, -3, True, 2.5, None])
def test_replay_refuses_a_bad_split_at_the_call(split: object) -> None:
    """D2: it was a `connection` error of the first request."""
    with pytest.raises(ValueError, match="split is"):
        replay(one_chunk("chat"), split=untyped(split))


def test_bad_values_are_errors_at_the_call() -> None:
    recording = one_chunk("chat")
    for options in ({"speed": -1.0}, {"fault": "explode"}, {"at": -1}, {"failing": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            replay(recording, **untyped(options))
    for options in ({"fault": "explode"}, {"at": -1}, {"failing": -1}, {"pace": -1}, {"chunk": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            loopback(**untyped(options))
    with pytest.raises(ValueError, match="one of messages"):
        replay(recording, untyped("chta"))
    with pytest.raises(ValueError, match="one of messages"):
        loopback(untyped("chta"))


def test_misspelt_options_are_type_errors_at_the_call() -> None:
    """D2: `loopback(fualt=…)` was accepted."""
    with pytest.raises(TypeError, match="fualt"):
        loopback(**untyped({"fualt": "truncate"}))
    with pytest.raises(TypeError, match="retires"):
        loopback(client=untyped({"retires": 1}))
    with pytest.raises(TypeError, match="retires"):
        scripted(["Hello"], **untyped({"retires": 1}))
    with pytest.raises(TypeError, match="is the transport"):
        replay(one_chunk("chat"), http=None)
    with pytest.raises(TypeError, match="spilt"):
        replay(one_chunk("chat"), **untyped({"spilt": 1}))


@each_case("wire_api", WIRE_APIS)
def test_sync_loopback_serves_every_wire(wire_api: WireApi) -> None:
    with sync_loopback(wire_api, turns=["Hello"], client=ONCE) as client:
        assert client.text("Hi.", MODEL) == "Hello"


@pytest.mark.parametrize("kind", [LookupError, KeyboardInterrupt, SystemExit])
async def test_exception_of_the_block_comes_out_alone(kind: type[BaseException]) -> None:
    """A task group around it made a group of Ctrl-C, which no `except` expects."""
    with pytest.raises(kind):
        async with loopback():
            raise kind


@asyncio_alone
async def test_block_in_a_handler_of_a_cancellation_ends() -> None:
    """It raised again what the code around it was handling."""
    try:
        raise asyncio.CancelledError
    except asyncio.CancelledError:
        async with loopback() as client:
            assert await client.text("hi", MODEL)


def test_options_of_a_client_are_all_typed() -> None:
    parameters = set(inspect.signature(Client).parameters)
    assert set(ClientOptions.__optional_keys__) == parameters - {
        *("base_url", "wire_api"),
        "values",  # what has no name, to be refused with the word to write
        "unknown",  # names that other libraries use: the same
    }
