"""A loop that looks for a body on which a parser breaks a promise, makes it small, and writes it down as a test.

    campaign = Campaign(target("chat"), seed=1)
    for _ in campaign.run(seconds=60): ...          # once a second or so, for whoever shows progress
    campaign.finding                                # None, or the smallest body that shows it
    reproducer(campaign.finding)                    # the text of a pytest file

Each body is read whole, judged, and read again in pieces, which must find the same. Bodies come from the target's own generator, from
files, and from changes to those that made something new come out: kinds of events that were not seen together before.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from streamlib.testing.fuzz_targets import FuzzTarget, difference
from streamlib.testing.fuzz_targets import find_target as named
from streamlib.testing.invariants import InvariantViolation
from streamlib.testing.mutations import cut_at

BODY_BYTES: Final = 64 << 10
"""Longest body that is tried: growth is measured elsewhere, and a long body costs the time of many short ones."""
POOL: Final = 512
SHRINK_SECONDS: Final = 20.0
EVERY_CUT: Final = 300
"""Bodies up to this size are cut at every place while one is made small."""
TICK_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Finding:
    """What broke. law: the promise, or the name of an exception that is none of ours. places: where the body was cut; () is whole."""

    target: str
    invariant: str
    detail: str
    body: bytes
    places: tuple[int, ...] = ()


def examine(what: FuzzTarget, body: bytes, places: Sequence[int] = ()) -> None:
    """Reads a body whole and cut at these places: raises `LawBroken` where a law of the target does not hold, and whatever escapes it."""
    whole = _whole(what, body)
    what.oracle(body, whole)
    if places:
        _same(what, body, whole, cut_at(body, places))


def _whole(what: FuzzTarget, body: bytes) -> list[Any]:
    """As deep in the stack as `_same` reads: how deep JSON may be nested depends on the stack that is left."""
    return what.read([body])


def _same(what: FuzzTarget, body: bytes, whole: list[Any], chunks: Sequence[bytes]) -> None:
    parted = difference(whole, what.read(chunks))
    if parted is not None:
        raise InvariantViolation(
            "any cut",
            f"{parted}; cut after {[len(chunk) for chunk in chunks[:-1]][:20]} of {len(body)} bytes",
        )


@dataclass
class Campaign:
    """One hunt. executions: bodies tried. readings: how often one was read. kinds: what came out, how many kinds of it."""

    target: FuzzTarget
    seed: int = 0
    corpus: Sequence[bytes] = ()
    cuts: int = 2
    executions: int = 0
    readings: int = 0
    finding: Finding | None = None
    _pool: list[bytes] = field(default_factory=list[bytes])
    _kinds: set[Any] = field(default_factory=set[Any])

    @property
    def kinds(self) -> int:
        """How many different sets of kinds have come out."""
        return len(self._kinds)

    def run(self, seconds: float) -> Iterator[None]:
        """Hunts until the time is over or something broke; yields now and then."""
        rng = random.Random(self.seed)
        self._pool = list(self.corpus)
        until = time.monotonic() + seconds
        tick = time.monotonic() + TICK_SECONDS
        for body in self._bodies(rng, until):
            self.try_one(body, rng)
            if self.finding is not None:
                return
            if time.monotonic() > tick:
                tick = time.monotonic() + TICK_SECONDS
                yield

    def _bodies(self, rng: random.Random, until: float) -> Iterator[bytes]:
        yield from self.corpus
        while time.monotonic() < until:
            fresh = not self._pool or rng.random() < 0.3
            body = (
                self.target.seed(rng) if fresh else self.target.change(rng.choice(self._pool), rng)
            )
            yield body[:BODY_BYTES]

    def try_one(self, body: bytes, rng: random.Random) -> None:
        """One body: whole, byte by byte where it is short, and cut at random. `finding` is set where something broke."""
        self.executions += 1
        partitions = [_places(body, rng) for _ in range(self.cuts)]
        if len(body) <= EVERY_CUT:
            partitions.append(list(range(1, len(body))))
        places: Sequence[int] = ()
        try:
            whole = _whole(self.target, body)
            self.target.oracle(body, whole)
            self.readings += 1
            for places in partitions:
                self.readings += 1
                _same(self.target, body, whole, cut_at(body, places))
        except Exception as error:  # noqa: BLE001  # whatever escapes is what is looked for
            self.finding = _found(self.target, body, places, error)
        else:
            self._remember(body, whole)

    def _remember(self, body: bytes, whole: list[Any]) -> None:
        kind = frozenset(_kind(one) for one in whole)
        if kind not in self._kinds:
            self._kinds.add(kind)
            self._pool.append(body)
            del self._pool[len(self.corpus) : len(self._pool) - POOL]


def _places(body: bytes, rng: random.Random) -> list[int]:
    return sorted(rng.randint(0, len(body)) for _ in range(rng.randint(1, 8)))


def _kind(one: Any) -> Any:
    """What sort of thing came out: its class, and the word that tells it from others of its class."""
    item = getattr(one, "item", None)
    word = (
        getattr(one, "code", None)
        or getattr(getattr(one, "error", None), "kind", None)
        or getattr(item, "status", None)
    )
    return (type(one).__name__, type(item).__name__, word if isinstance(word, str) else None)


def _found(what: FuzzTarget, body: bytes, places: Sequence[int], error: Exception) -> Finding:
    law = error.invariant if isinstance(error, InvariantViolation) else type(error).__name__
    return Finding(what.name, law, str(error)[:500], body, tuple(places))


# --- making it small ---


def find_failure(what: FuzzTarget, body: bytes, places: Sequence[int] = ()) -> Finding | None:
    """What breaks on this body: whole, cut at these places, byte by byte, and where it is short cut at every place."""
    several: list[Sequence[int]] = [
        [place for place in places if place <= len(body)],
        range(1, len(body)),
    ]
    several += [[place] for place in range(len(body) + 1)] if len(body) <= EVERY_CUT else []
    found: Sequence[int] = ()
    try:
        whole = _whole(what, body)
        what.oracle(body, whole)
        for found in several:
            _same(what, body, whole, cut_at(body, found))
    except Exception as error:  # noqa: BLE001  # whatever escapes is what is looked for
        return _found(what, body, found, error)
    return None


def shrink(what: FuzzTarget, finding: Finding, seconds: float = SHRINK_SECONDS) -> Finding:
    """The smallest body found in that time on which the same law breaks, cut at as few places as show it."""
    until = time.monotonic() + seconds
    best = finding

    def same(body: bytes, places: Sequence[int]) -> bool:
        nonlocal best
        again = find_failure(what, body, places) if time.monotonic() < until else None
        if again is None or again.invariant != finding.invariant:
            return False
        best = again
        return True

    if not same(finding.body, finding.places):
        return finding
    size = len(best.body)
    while size:
        size = size // 2
        _without(lambda: best, same, max(1, size))
    _plainer(lambda: best, same)
    return _fewer_places(what, best)


def _without(
    best: Callable[[], Finding], same: Callable[[bytes, Sequence[int]], bool], size: int
) -> None:
    """Takes pieces of this size out, as long as what is left still breaks."""
    at = 0
    while at < len(best().body):
        body = best().body
        places = [place if place <= at else max(at, place - size) for place in best().places]
        if not same(body[:at] + body[at + size :], places):
            at += size


def _plainer(best: Callable[[], Finding], same: Callable[[bytes, Sequence[int]], bool]) -> None:
    """Turns bytes into plain ones, where that changes nothing."""
    for at in range(len(best().body)):
        body = best().body
        if at < len(body) and body[at : at + 1] not in (b"0", b"a", b" ", b"\n"):
            _ = any(
                same(body[:at] + plain + body[at + 1 :], best().places) for plain in (b"a", b"0")
            )


def _fewer_places(what: FuzzTarget, finding: Finding) -> Finding:
    for place in sorted(set(finding.places)):
        fewer = sorted({one for one in finding.places if one != place})
        finding = _cut_so(what, finding, fewer) or finding
    return finding


def _cut_so(what: FuzzTarget, finding: Finding, places: Sequence[int]) -> Finding | None:
    try:
        examine(what, finding.body, places)
    except Exception as error:  # noqa: BLE001  # the same failure is what is looked for
        again = _found(what, finding.body, places, error)
        return again if again.invariant == finding.invariant else None
    return None


# --- writing it down ---


def reproducer(finding: Finding) -> str:
    """A pytest file that fails until the finding is mended."""
    word = "".join(c if c.isalnum() else "_" for c in finding.target)
    pieces = [finding.body[at : at + 90] for at in range(0, len(finding.body), 90)] or [b""]
    body = "\n".join(f"    {piece!r}" for piece in pieces)
    return f'''"""Found by `streamlib fuzz {finding.target}`: {finding.invariant}.

{_quoted(finding.detail)}
"""

from streamlib.testing.fuzzing import examine
from streamlib.testing.fuzz_targets import find_target

BODY = (
{body}
)
PLACES = {list(finding.places)}


def test_{word}_keeps_its_laws_on_this_body() -> None:
    examine(find_target({finding.target!r}), BODY, PLACES)
'''


def _quoted(text: str) -> str:
    """Printable, and no end of a docstring."""
    return (
        text.encode("unicode_escape")
        .decode("ascii")
        .replace('"""', "'''")
        .replace("\\", "\\\\")[:400]
    )


def replay_bodies(name: str, bodies: Iterable[bytes]) -> list[Finding]:
    """What breaks on bodies that were kept."""
    what = named(name)
    return [found for body in bodies if (found := find_failure(what, body)) is not None]
