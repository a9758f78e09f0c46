"""Second readers: what a framing found is compared with what another, simpler program reads off the whole body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib.testing.laws import LawBroken
from streamlib.testing.targets import Target
from streamlib_parsers.framing import Frame
from tests.parsers.test_sse import oracle as whatwg

BOM: Final = b"\xef\xbb\xbf"
JSON_BEGINS: Final = tuple(bytes([byte]) for byte in b'{["-0123456789tfn')


def judged(what: Target) -> Target:
    """The target, with the second reader there is for it."""
    second = SECOND.get(what.name)
    return what if second is None else what._replace(judge=second)


def _hold(held: bool, detail: str) -> None:  # it is an assertion
    if not held:
        raise LawBroken("oracle", detail)


def sse(body: bytes, found: list[Any]) -> None:
    """WHATWG, read off the whole body block by block."""
    frames = [one for one in found if isinstance(one, Frame)]
    expected = whatwg(body)
    _hold(frames == expected.tolerant, f"{frames!r:.300} is not {expected.tolerant!r:.300}")
    _hold(dict(_facts(found))["blank"] == expected.blank, "blank")


def ndjson(body: bytes, found: list[Any]) -> None:
    """The lines that are not blank; the last one, if it has no end, only where it could begin JSON."""
    *lines, last = [line.removesuffix(b"\r") if line.strip(b" \t\r") else b"" for line in body.removeprefix(BOM).split(b"\n")]
    refused = bool(last) and last.lstrip(b" \t\r")[:1] not in JSON_BEGINS
    expected = [line for line in [*lines, b"" if refused else last] if line]
    frames = [one.data for one in found if isinstance(one, Frame)]
    _hold(frames == expected, f"{frames!r:.300} is not {expected!r:.300}")
    _hold(dict(_facts(found))["failure"] == ("malformed" if refused else None), "failure")


def eventstream(body: bytes, found: list[Any]) -> None:
    """botocore's decoder: the same messages until the first it or we refuse."""
    from botocore.eventstream import EventStreamBuffer

    buffer = EventStreamBuffer()
    theirs: list[bytes] = []
    try:
        buffer.add_data(body)
        theirs.extend(message.payload for message in buffer)
    except Exception:  # noqa: BLE001  # what it refuses ends its list; whether we must refuse it too is written in test_eventstream
        pass
    ours = [one.data for one in found if isinstance(one, Frame)]
    _hold(_begins_alike(ours, theirs), f"{ours!r:.300} is not {theirs!r:.300}")


def _begins_alike(ours: list[Any], theirs: list[bytes]) -> bool:
    """An error frame has no payload of its own: ours is made of its headers."""
    return all(one == other or not other for one, other in zip(ours, theirs, strict=False))


def _facts(found: list[Any]) -> list[tuple[str, Any]]:
    return [one for one in found if isinstance(one, tuple)]


SECOND: Final[dict[str, Callable[[bytes, list[Any]], None]]] = {"sse": sse, "ndjson": ndjson, "eventstream": eventstream}
"""Target -> its second reader."""
