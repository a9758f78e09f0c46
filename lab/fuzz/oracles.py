"""Second readers: a framing's frames are compared with those of a simpler program.

The simpler program reads the complete body at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib.testing.fuzz_targets import FuzzTarget
from streamlib.testing.invariants import InvariantViolation
from streamlib_parsers.framing import Frame
from streamlib_parsers.framing.eventstream import EventStreamFraming
from tests.support.sse_oracle import oracle as whatwg

BOM: Final = b"\xef\xbb\xbf"
JSON_STARTS: Final = tuple(bytes([byte]) for byte in b'{["-0123456789tfn')
"""First bytes of a JSON value."""


def with_second_reader(target: FuzzTarget) -> FuzzTarget:
    """The target with its second reader as the oracle; unchanged where there is none."""
    second = SECOND_READERS.get(target.name)
    if second is None:
        return target
    return target._replace(oracle=second)


def _require(condition: bool, detail: str) -> None:  # an assertion
    if not condition:
        raise InvariantViolation("oracle", detail)


def sse(body: bytes, results: list[Any]) -> None:
    """WHATWG's algorithm, applied to the complete body block by block."""
    frames = _frames(results)
    expected = whatwg(body)
    _require(frames == expected.tolerant, f"{frames!r:.300} is not {expected.tolerant!r:.300}")
    _require(_state(results)["blank"] == expected.blank, "blank")


def ndjson(body: bytes, results: list[Any]) -> None:
    """The lines that are not blank; the last, if it has no end, only where it may start JSON."""
    lines: list[bytes] = []
    for line in body.removeprefix(BOM).split(b"\n"):
        blank = not line.strip(b" \t\r")
        lines.append(b"" if blank else line.removesuffix(b"\r"))
    last = lines.pop()
    refused = bool(last) and last.lstrip(b" \t\r")[:1] not in JSON_STARTS
    failure = None
    if refused:
        failure = "malformed"
    else:
        lines.append(last)
    expected = [line for line in lines if line]
    frames = [frame.data for frame in _frames(results)]
    _require(frames == expected, f"{frames!r:.300} is not {expected!r:.300}")
    _require(_state(results)["failure"] == failure, "failure")


def eventstream(body: bytes, results: list[Any]) -> None:
    """botocore's decoder: equal messages up to the first that either of the two refuses.

    Each message must also have become a frame.
    """
    from botocore.eventstream import EventStreamBuffer

    buffer, framing = EventStreamBuffer(), EventStreamFraming()
    ours = [message.payload for message in framing.messages(body)]
    theirs: list[bytes] = []
    refused = framing.failure is not None
    try:
        buffer.add_data(body)
        theirs.extend(message.payload for message in buffer)
    except Exception:  # noqa: BLE001  # test_eventstream says which bytes are refused, and how
        refused = True
    both = min(len(ours), len(theirs))
    equal = ours[:both] == theirs[:both] and (len(ours) == len(theirs) or refused)
    _require(equal, f"{ours!r:.300} is not {theirs!r:.300}")
    frames = _frames(results)
    _require(len(frames) == len(ours), f"{len(ours)} messages, {results!r:.300}")


def _frames(results: list[Any]) -> list[Frame]:
    return [result for result in results if isinstance(result, Frame)]


def _state(results: list[Any]) -> dict[str, Any]:
    """The framing's state at the end of the body: `failure` and `blank`."""
    return dict(result for result in results if type(result) is tuple)


SECOND_READERS: Final[dict[str, Callable[[bytes, list[Any]], None]]] = {
    "sse": sse,
    "ndjson": ndjson,
    "eventstream": eventstream,
}
"""Target -> its second reader."""
