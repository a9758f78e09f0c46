"""Hypothesis strategies for code that reads streams: bodies of every wire, events, histories.

    @given(strategies.streams("messages"), st.data())
    def test_my_screen_survives(body, data):
        for chunk in data.draw(strategies.splits(body)): screen.feed(chunk)

    answers(wire_api)             valid event lists: what your user interface receives
    streams(wire_api)             bytes of a correct server, with comments and padding
    odd_streams(wire_api)         frames in any order: unknown kinds, wrong indexes, split emoji,
                                  a second end
    bad_streams(wire_api)         streams of both kinds, with faults
    histories(wire_api)           conversations that every builder accepts
    splits(data)                  partitions of a body into chunks
    faults()                      functions from bytes to bytes: truncate, flip, drop, duplicate,
                                  reorder, insert, bomb

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
from streamlib.testing.mutations import FAULTS, Fault, mutated, random_stream, split_at
from streamlib.testing.responses import random_response
from streamlib.wires.encoders import encode_all
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import (
    ApplyPatchCall,
    ApprovalRequest,
    ComputerCall,
    FunctionCall,
    Image,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    ShellCall,
    ShellResult,
    Text,
    ToolSearchCall,
    ToolSpec,
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


def _generators() -> st.SearchStrategy[random.Random]:
    """A `random.Random` whose draws hypothesis controls, so that it shrinks and can be replayed."""
    return st.randoms(use_true_random=False)


def answers(
    wire_api: WireApi = "messages", *, failing: bool | None = None
) -> st.SearchStrategy[list[ResponseEvent]]:
    """Event lists that satisfy every invariant, with sequential or overlapping items.

    Args:
        wire_api: wire of the response.
        failing: True: they end in `Failed`; False: in `Completed`; None: in either.

    Raises:
        ValueError: no wire has this name.
    """
    wire(wire_api)  # raises for an unknown name now, not when an example is drawn
    ends = st.booleans()
    if failing is not None:
        ends = st.just(failing)
    return st.builds(random_response, _generators(), st.just(wire_api), failing=ends)


def streams(
    wire_api: WireApi, *, failing: bool | None = None, noise: bool = True
) -> st.SearchStrategy[bytes]:
    """Bodies that a server of the wire sends.

    Args:
        wire_api: wire of the bodies.
        failing: True: they end with an error; False: they complete; None: either.
        noise: add keep-alives, comments and padding, which change no response.
    """
    bodies = answers(wire_api, failing=failing).map(lambda events: encode_all(wire_api, events))
    if not noise:
        return bodies
    return st.builds(_noisy, st.just(wire_api), bodies, _generators())


def odd_streams(wire_api: WireApi) -> st.SearchStrategy[bytes]:
    """Well-framed events of the wire in any order, with valid and invalid indexes."""
    wire(wire_api)
    return _generators().map(lambda rng: random_stream(wire_api, rng))


def bad_streams(wire_api: WireApi) -> st.SearchStrategy[bytes]:
    """Streams with one to three faults in bytes, frames or values; sometimes random bytes."""
    bodies = streams(wire_api) | odd_streams(wire_api)
    return st.builds(mutated, st.just(wire_api), bodies, _generators()) | st.binary(max_size=200)


def splits(data: bytes, *, most: int = 12) -> st.SearchStrategy[list[bytes]]:
    """Partitions of `data` into chunks; some may be empty, and joined they are `data`.

    Shrinks to few chunks, split near the start.
    """
    offsets = st.lists(st.integers(0, len(data)), max_size=most)
    return offsets.map(lambda drawn: split_at(data, sorted(drawn)))


def faults(*names: str) -> st.SearchStrategy[Fault]:
    """Faults to apply to bytes: `fault(data)`.

    Args:
        names: names of the faults to draw from; without any, all.

    Raises:
        ValueError: no fault has such a name.
    """
    for name in names:
        if name not in FAULTS:
            raise ValueError(f"no fault {name!r}: one of {', '.join(FAULTS)}")
    kinds = st.sampled_from(names or tuple(FAULTS))
    return st.builds(Fault, kinds, st.integers(0, 1 << 20), st.integers(1, 63))


# --- noise ---

_COMMENTS: Final = (
    b": ping\n\n",
    b":\n\n",
    b": OPENROUTER PROCESSING\n\n",
    b"\n",
    b"retry: 3000\n\n",
    b"id: 7\n\n",
)
"""What servers send between the events of a stream: OpenRouter a comment, others ids."""


def _noisy(wire_api: WireApi, body: bytes, rng: random.Random) -> bytes:
    """The same frames as other servers write them: comments, ids, CRLF, blank NDJSON lines."""
    out: list[bytes] = []
    crlf = rng.random() < 0.3 and WIRE_SPECS[wire_api].frames != "aws"
    for name, payload in unframed(wire_api, body):
        out.append(_noise(wire_api, rng))
        frame = framed(wire_api, payload, name)
        if crlf:
            frame = frame.replace(b"\n", b"\r\n")
        out.append(frame)
    return b"".join(out)


def _noise(wire_api: WireApi, rng: random.Random) -> bytes:
    frames = WIRE_SPECS[wire_api].frames
    # AWS frames have nothing between them.
    if rng.random() < 0.8 or frames == "aws":
        return b""
    if frames == "ndjson":
        return b"\n"
    return rng.choice(_COMMENTS)


# --- histories ---

_PNG: Final = Image(data="iVBORw0KGgo=", media_type="image/png")
_ARGUMENTS: Final = ('{"city": "Oslo"}', "{}", '{"city": "世界", "days": 1.0}')
_MESSAGES: Final = ("What is this?", "And tomorrow?", "naïve 🙂", "Go on.")


def histories(
    wire_api: WireApi = "messages", *, turns: int = 3, images: bool = False
) -> st.SearchStrategy[list[ResponseItem]]:
    """Conversations as an agent keeps them: messages, reasoning, calls, an output for every call.

    Args:
        wire_api: wire of the items' origin.
        turns: maximum number of turns of the model; each has its own response id.
        images: whether some user messages and some outputs of tools contain an image.

    Raises:
        ValueError: no wire has this name.
    """
    wire(wire_api)
    return st.builds(
        _conversation,
        st.just(wire_api),
        _generators(),
        st.integers(1, turns),
        images=st.just(images),
    )


def _conversation(
    wire_api: WireApi, rng: random.Random, turns: int, *, images: bool
) -> list[ResponseItem]:
    text = rng.choice(_MESSAGES)
    history: list[ResponseItem] = []
    if images and rng.random() < 0.5:
        history.append(user(text, _PNG))
    else:
        history.append(user(text))
    for turn in range(turns):
        source: dict[str, Any] = {"origin": Origin(wire_api), "response_id": f"r{turn}"}
        items = _turn(rng, turn, source)
        history += items
        calls = [item for item in items if isinstance(item, FunctionCall)]
        for call in calls:
            output = _tool_output(rng, images=images)
            history.append(call.output(output, is_error=rng.random() < 0.2))
        if calls and wire_api == "responses":
            # A built-in tool is called too; its output stands before those of functions or after.
            built_in = _built_in_pair(rng, turn, source)
            history[-len(calls) : -len(calls)] = built_in[:1]
            history.insert(len(history) - rng.randrange(len(calls) + 1), built_in[1])
        # The next turn continues only from outputs of tools.
        if not calls:
            history.append(user(rng.choice(_MESSAGES)))
    return history


def _turn(rng: random.Random, turn: int, source: dict[str, Any]) -> list[ResponseItem]:
    """The items of one turn: optional reasoning, text and calls, but never only reasoning."""
    items: list[ResponseItem] = []
    if rng.random() < 0.4:
        items.append(Reasoning("Hm.", **source))
    if rng.random() < 0.6:
        items.append(Message("assistant", [Text(rng.choice(_MESSAGES))], **source))
    for n in range(rng.randrange(3)):
        call_id = f"call_{turn}_{n}"
        items.append(FunctionCall(call_id, "get_weather", rng.choice(_ARGUMENTS), **source))
    if all(isinstance(item, Reasoning) for item in items):
        items.append(Message("assistant", [Text("Yes.")], **source))
    return items


def _built_in_pair(
    rng: random.Random, turn: int, source: dict[str, Any]
) -> tuple[ResponseItem, ResponseItem]:
    """A call of a tool that the provider defines and the caller runs, and its output."""
    call_id = f"built_in_{turn}"
    pairs: list[tuple[ResponseItem, ResponseItem]] = []
    computer = ComputerCall(call_id, [{"type": "wait"}], **source)
    pairs.append((computer, computer.output(_PNG)))
    shell = ShellCall(call_id, {"commands": ["ls"]}, **source)
    pairs.append((shell, shell.output([ShellResult("a.txt")])))
    patch = ApplyPatchCall(call_id, {"type": "delete_file", "path": "a.txt"}, **source)
    pairs.append((patch, patch.output(failed=True)))
    approval = ApprovalRequest(call_id, "files", "read", "{}", **source)
    pairs.append((approval, approval.respond(approve=True)))
    search = ToolSearchCall(call_id, '{"goal": "weather"}', **source)
    pairs.append((search, search.output([ToolSpec("get_weather")])))
    return rng.choice(pairs)


def _tool_output(rng: random.Random, *, images: bool) -> Any:
    parts: list[Any] = [Text("see")]
    if images:
        parts.append(_PNG)
    return rng.choice(("3 degrees", "", parts))
