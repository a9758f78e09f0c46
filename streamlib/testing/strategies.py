"""Hypothesis strategies for whoever reads streams: bytes of every wire, right and wrong, event lists, histories, cuts and faults.

    @given(strategies.streams("messages"), st.data())
    def test_my_screen_survives(body, data):
        for chunk in data.draw(strategies.splits(body)): screen.feed(chunk)

    answers(wire_api)       lists of events that are legal: what your UI is shown
    streams(wire_api)       bytes of a well-behaved server, with the noise that servers make
    odd_streams(wire_api)   any messages in any order: unknown kinds, wrong indexes, halves of emoji, a second end
    bad_streams(wire_api)   either, with faults on the way
    histories(wire_api)     conversations that every builder takes
    splits(data)            ways to cut a body into chunks
    faults()                functions from bytes to bytes: cut, flip, drop, duplicate, reorder, insert, bomb

Needs hypothesis: `pip install 'streamlib[fuzz]'`.
"""

from __future__ import annotations

import random
from typing import Any, Final

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "streamlib.testing.strategies needs hypothesis: pip install 'streamlib[fuzz]'",
        name=error.name,
    ) from None

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.testing.frames import framed, unframed
from streamlib.testing.mutations import FAULTS, Fault, cut_at, mutated, random_stream
from streamlib.testing.responses import random_response
from streamlib.wires.encoders import encode_all
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import (
    FunctionCall,
    Image,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    Text,
    WireApi,
    user,
)
from streamlib_parsers.protocol import WIRE_APIS, wire

__all__ = [
    "answers",
    "bad_streams",
    "faults",
    "histories",
    "odd_streams",
    "splits",
    "streams",
    "wires",
]


def wires() -> st.SearchStrategy[WireApi]:
    """The names of the wires."""
    return st.sampled_from(WIRE_APIS)


def _chance() -> st.SearchStrategy[random.Random]:
    """A `random.Random` whose draws are hypothesis's own: it shrinks, and a failure can be replayed."""
    return st.randoms(use_true_random=False)


def answers(
    wire_api: WireApi = "messages", *, failing: bool | None = None
) -> st.SearchStrategy[list[ResponseEvent]]:
    """Lists of events that keep every law: items one after another or overlapping, and one end.

    failing: True for those that end in `Failed`, False for those that end in `Completed`, None for both.
    """
    wire(wire_api)  # a ValueError for a name that is none: here, not when a body is drawn
    ends = st.booleans() if failing is None else st.just(failing)
    return st.builds(random_response, _chance(), st.just(wire_api), failing=ends)


def streams(
    wire_api: WireApi, *, failing: bool | None = None, noise: bool = True
) -> st.SearchStrategy[bytes]:
    """Bytes that a server of the wire sends. noise: with keep-alives, comments and paddings, which change no answer."""
    bodies = answers(wire_api, failing=failing).map(lambda events: encode_all(wire_api, events))
    return st.builds(_noisy, st.just(wire_api), bodies, _chance()) if noise else bodies


def odd_streams(wire_api: WireApi) -> st.SearchStrategy[bytes]:
    """Well-framed messages of the wire in any order, at places that are allowed and at others."""
    wire(wire_api)
    return _chance().map(lambda rng: random_stream(wire_api, rng))


def bad_streams(wire_api: WireApi) -> st.SearchStrategy[bytes]:
    """Streams with one to three faults: of bytes, of whole messages, or of values inside them; sometimes any bytes at all."""
    bodies = streams(wire_api) | odd_streams(wire_api)
    return st.builds(mutated, st.just(wire_api), bodies, _chance()) | st.binary(max_size=200)


def splits(data: bytes, *, most: int = 12) -> st.SearchStrategy[list[bytes]]:
    """Partitions of `data` into chunks, some of them perhaps empty; joined they are `data`. Shrinks to few cuts, near the start."""
    return st.lists(st.integers(0, len(data)), max_size=most).map(
        lambda places: cut_at(data, sorted(places))
    )


def faults(*names: str) -> st.SearchStrategy[Fault]:
    """Faults to put on bytes: `fault(data)`. names: of those kinds alone; ValueError for one that is none."""
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        raise ValueError(f"no fault {unknown[0]!r}: one of {', '.join(FAULTS)}")
    return st.builds(
        Fault, st.sampled_from(names or tuple(FAULTS)), st.integers(0, 1 << 20), st.integers(1, 63)
    )


# --- noise ---

_COMMENTS: Final = (
    b": ping\n\n",
    b":\n\n",
    b": OPENROUTER PROCESSING\n\n",
    b"\n",
    b"retry: 3000\n\n",
    b"id: 7\n\n",
)


def _noisy(wire_api: WireApi, body: bytes, rng: random.Random) -> bytes:
    """The same messages as other servers write them: comments, ids, line ends; padding in AWS frames; blank lines in NDJSON."""
    out: list[bytes] = []
    crlf = rng.random() < 0.3
    for name, payload in unframed(wire_api, body):
        out.append(_before(wire_api, rng))
        message = framed(wire_api, payload, name)
        out.append(
            message.replace(b"\n", b"\r\n")
            if crlf and WIRE_SPECS[wire_api].frames != "aws"
            else message
        )
    return b"".join(out)


def _before(wire_api: WireApi, rng: random.Random) -> bytes:
    if rng.random() < 0.8 or WIRE_SPECS[wire_api].frames == "aws":
        return b""
    return b"\n" if WIRE_SPECS[wire_api].frames == "ndjson" else rng.choice(_COMMENTS)


# --- histories ---

_PNG: Final = Image(data="iVBORw0KGgo=", media_type="image/png")


def histories(
    wire_api: WireApi = "messages", *, turns: int = 3, images: bool = False
) -> st.SearchStrategy[list[ResponseItem]]:
    """Conversations as an agent keeps them: the user asks; the model thinks, speaks, calls; every whole call is answered.

    The items are stamped with the origin `wire_api` and a response id a turn. images: the user shows some, and tools give some.
    """
    wire(wire_api)
    return st.builds(
        _conversation, st.just(wire_api), _chance(), st.integers(1, turns), images=st.just(images)
    )


def _conversation(
    wire_api: WireApi, rng: random.Random, turns: int, *, images: bool
) -> list[ResponseItem]:
    history: list[ResponseItem] = [
        user(rng.choice(_ASKED), *([_PNG] if images and rng.random() < 0.5 else []))
    ]
    for turn in range(turns):
        stamp: dict[str, Any] = {"origin": Origin(wire_api), "response_id": f"r{turn}"}
        said = _turn(rng, turn, stamp)
        calls = [item for item in said if isinstance(item, FunctionCall)]
        history += said
        history += [
            call.output(_given(rng, images=images), is_error=rng.random() < 0.2) for call in calls
        ]
        history += [] if calls else [user(rng.choice(_ASKED))]
    return history


_ARGUMENTS: Final = ('{"city": "Oslo"}', "{}", '{"city": "世界", "days": 1.0}')
_ASKED: Final = ("What is this?", "And tomorrow?", "naïve 🙂", "Go on.")


def _turn(rng: random.Random, turn: int, stamp: dict[str, Any]) -> list[ResponseItem]:
    """A thought perhaps, text perhaps, calls perhaps, and never nothing."""
    said: list[ResponseItem] = [Reasoning("Hm.", **stamp)] if rng.random() < 0.4 else []
    if rng.random() < 0.6:
        said.append(Message("assistant", [Text(rng.choice(_ASKED))], **stamp))
    said += [
        FunctionCall(f"call_{turn}_{n}", "get_weather", rng.choice(_ARGUMENTS), **stamp)
        for n in range(rng.randrange(3))
    ]
    return (
        said
        if any(not isinstance(item, Reasoning) for item in said)
        else [*said, Message("assistant", [Text("Yes.")], **stamp)]
    )


def _given(rng: random.Random, *, images: bool) -> Any:
    return rng.choice(("3 degrees", "", [Text("see"), *([_PNG] if images else [])]))
