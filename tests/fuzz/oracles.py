"""Second readers: what a framing found is compared with what another, simpler program reads off the whole body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib.testing.fuzz_targets import FuzzTarget
from streamlib.testing.invariants import InvariantViolation
from streamlib_parsers.framing import Frame
from streamlib_parsers.framing.eventstream import EventStreamFraming
from tests.support.sse_oracle import oracle as whatwg

BOM: Final = b"\xef\xbb\xbf"
JSON_BEGINS: Final = tuple(bytes([byte]) for byte in b'{["-0123456789tfn')


def judged(what: FuzzTarget) -> FuzzTarget:
    """The target, with the second reader there is for it."""
    second = SECOND.get(what.name)
    return what if second is None else what._replace(oracle=second)


def _hold(held: bool, detail: str) -> None:  # it is an assertion
    if not held:
        raise InvariantViolation("oracle", detail)


def sse(body: bytes, found: list[Any]) -> None:
    """WHATWG, read off the whole body block by block."""
    frames = [one for one in found if isinstance(one, Frame)]
    expected = whatwg(body)
    _hold(frames == expected.tolerant, f"{frames!r:.300} is not {expected.tolerant!r:.300}")
    _hold(dict(_facts(found))["blank"] == expected.blank, "blank")


def ndjson(body: bytes, found: list[Any]) -> None:
    """The lines that are not blank; the last one, if it has no end, only where it could begin JSON."""
    *lines, last = [
        line.removesuffix(b"\r") if line.strip(b" \t\r") else b""
        for line in body.removeprefix(BOM).split(b"\n")
    ]
    refused = bool(last) and last.lstrip(b" \t\r")[:1] not in JSON_BEGINS
    expected = [line for line in [*lines, b"" if refused else last] if line]
    frames = [one.data for one in found if isinstance(one, Frame)]
    _hold(frames == expected, f"{frames!r:.300} is not {expected!r:.300}")
    _hold(dict(_facts(found))["failure"] == ("malformed" if refused else None), "failure")


def eventstream(body: bytes, found: list[Any]) -> None:
    """botocore's decoder: the same messages until the first that one of the two refuses, and a frame of ours for each."""
    from botocore.eventstream import EventStreamBuffer

    buffer, framing = EventStreamBuffer(), EventStreamFraming()
    ours = [message.payload for message in framing.messages(body)]
    theirs: list[bytes] = []
    refused = framing.failure is not None
    try:
        buffer.add_data(body)
        theirs.extend(message.payload for message in buffer)
    except Exception:  # noqa: BLE001  # which bytes are to be refused is written in test_eventstream
        refused = True
    both = min(len(ours), len(theirs))
    _hold(
        ours[:both] == theirs[:both] and (len(ours) == len(theirs) or refused),
        f"{ours!r:.300} is not {theirs!r:.300}",
    )
    _hold(
        sum(isinstance(one, Frame) for one in found) == len(ours),
        f"{len(ours)} messages, {found!r:.300}",
    )


def _facts(found: list[Any]) -> list[tuple[str, Any]]:
    return [one for one in found if isinstance(one, tuple)]


SECOND: Final[dict[str, Callable[[bytes, list[Any]], None]]] = {
    "sse": sse,
    "ndjson": ndjson,
    "eventstream": eventstream,
}
"""Target -> its second reader."""
