"""A loop that searches for a body on which a parser violates an invariant, and shrinks it.

    finding = fuzz(Parser, seconds=10)              # any parser: None, or the smallest body found
    split_picture.draw(Parser, finding)             # an SVG that shows where the cut is

    campaign = Campaign(find_target("chat"), seed=1)
    for _ in campaign.run(seconds=60): ...          # about twice a second, to show progress
    campaign.finding                                # None, or the first body that fails
    reproducer(shrink(campaign.target, campaign.finding))      # the text of a pytest file

Each body is parsed in one chunk, checked by the target's oracle, and parsed again in several
chunks, which must give the same results. Bodies come from the target's generator, from files, and
from mutations of bodies that gave a new set of event kinds.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from streamlib.testing.fuzz_targets import RAISED, FuzzTarget, difference, target_of
from streamlib.testing.invariants import InvariantViolation
from streamlib.testing.mutations import split_at
from streamlib.testing.shorter_bodies import EVERYWHERE, ends_of_values, shorter_values

BODY_BYTES: Final = 64 << 10
"""Maximum size of a body: growth is measured elsewhere, and one long body costs as much time as
many short ones."""
POOL: Final = 512
"""Maximum number of bodies to mutate, apart from those of files; the oldest are dropped."""
SHRINK_SECONDS: Final = 20.0
EVERY_OFFSET_BYTES: Final = 300
"""Bodies up to this size are read byte by byte, and split at every offset while they are shrunk."""
TICK_SECONDS: Final = 0.5
LINE_BYTES: Final = 90
"""Bytes of a body on one line of a reproducer."""

_PLAIN_BYTES: Final = (b"0", b"a", b" ", b"\n")
"""Bytes that shrinking does not replace further."""


@dataclass(frozen=True)
class FuzzFinding:
    """A body that fails.

    Attributes:
        target: name of the target.
        invariant: name of the violated invariant, or of the exception that escaped.
        detail: message of the violation.
        body: the body that was parsed.
        offsets: offsets in bytes at which the body was split; () is one chunk.
        error: `module.Name` of the exception that escaped; a builtin has no module. Empty if none
            did.
    """

    target: str
    invariant: str
    detail: str
    body: bytes
    offsets: tuple[int, ...] = ()
    error: str = ""

    @property
    def chunks(self) -> list[bytes]:
        """The body as it was split."""
        return split_at(self.body, self.offsets)


Fails: TypeAlias = Callable[[bytes, Sequence[int]], bool]
"""Whether a body, split at these offsets, still violates the invariant that is being shrunk."""


def examine(target: FuzzTarget, body: bytes, offsets: Sequence[int] = ()) -> None:
    """Parses a body in one chunk, and again split at these offsets.

    Raises:
        InvariantViolation: an invariant of the target does not hold.
        Exception: any exception that escapes from the target.
    """
    unsplit = _read_unsplit(target, body)
    target.oracle(body, unsplit)
    if offsets:
        _check_split(target, body, unsplit, split_at(body, offsets))


def _read_unsplit(target: FuzzTarget, body: bytes) -> list[Any]:
    # A separate function, so that it parses as deep in the stack as `_check_split` does: the
    # permitted nesting of JSON depends on the remaining stack.
    return target.read([body])


def _check_split(
    target: FuzzTarget, body: bytes, unsplit: list[Any], chunks: Sequence[bytes]
) -> None:
    changed = difference(unsplit, target.read(chunks))
    if changed is not None:
        sizes = [len(chunk) for chunk in chunks[:-1]]
        raise InvariantViolation(
            "any partition", f"{changed}; chunks of {sizes[:20]} of {len(body)} bytes"
        )


@dataclass
class Campaign:
    """One search for a failing body.

    Attributes:
        target: what is fuzzed.
        seed: seed of the generator; equal seeds try the same bodies.
        corpus: bodies to begin with.
        splits: number of random partitions in which each body is parsed again.
        executions: number of bodies tried so far.
        readings: number of times a body was parsed so far.
        finding: the first failure; None until there is one.
    """

    target: FuzzTarget
    seed: int = 0
    corpus: Sequence[bytes] = ()
    splits: int = 2
    executions: int = 0
    readings: int = 0
    finding: FuzzFinding | None = None
    _pool: list[bytes] = field(default_factory=list[bytes])
    """Bodies to mutate: the corpus, then those that gave a new set of kinds."""
    _kinds: set[Any] = field(default_factory=set[Any])
    """All sets of result kinds that a body gave."""
    _first_results: list[Any] | None = None
    """Results of the first body for which the parser did not raise an error."""
    _results_differ: bool = False
    """Whether another body gave other results."""

    @property
    def kinds(self) -> int:
        """Number of different sets of result kinds."""
        return len(self._kinds)

    @property
    def is_blind(self) -> bool:
        """Whether every body gave the same results: then nothing in a body mattered, and no split
        could."""
        return not self._results_differ

    def blindness(self) -> str:
        """What to say of a parser that gave the same for every body."""
        return (
            f"{self.target.name}: nothing was tried: every body ({self.executions:,} in all) gave "
            "the same results, or an error, so the parser may have read none of them. Begin with "
            "a body that it reads, such as a capture of your server"
        )

    def run(self, seconds: float) -> Iterator[None]:
        """Searches until the time is over or a body fails; yields every `TICK_SECONDS`."""
        rng = random.Random(self.seed)
        self._pool = list(self.corpus)
        until = time.monotonic() + seconds
        tick = time.monotonic() + TICK_SECONDS
        for body in self._bodies(rng, until):
            self.try_body(body, rng)
            if self.finding is not None:
                return
            if time.monotonic() > tick:
                tick = time.monotonic() + TICK_SECONDS
                yield

    def _bodies(self, rng: random.Random, until: float) -> Iterator[bytes]:
        yield from self.corpus
        while time.monotonic() < until:
            # New bodies keep the search from staying close to the first ones.
            if not self._pool or rng.random() < 0.3:
                body = self.target.seed(rng)
            else:
                body = self.target.change(rng.choice(self._pool), rng)
            yield body[:BODY_BYTES]

    def try_body(self, body: bytes, rng: random.Random) -> None:
        """Parses one body in one chunk, in random partitions, and byte by byte if it is short.

        Sets `finding` if the body fails.
        """
        self.executions += 1
        partitions = [_random_offsets(body, rng) for _ in range(self.splits)]
        if len(body) <= EVERY_OFFSET_BYTES:
            partitions.append(list(range(1, len(body))))
        offsets: Sequence[int] = ()
        try:
            unsplit = _read_unsplit(self.target, body)
            self.target.oracle(body, unsplit)
            self.readings += 1
            for offsets in partitions:
                self.readings += 1
                _check_split(self.target, body, unsplit, split_at(body, offsets))
        except Exception as error:  # noqa: BLE001  # any exception that escapes is a finding
            self.finding = _finding(self.target, body, offsets, error)
        else:
            self._remember(body, unsplit)
            self._compare_with_first(unsplit)

    def _compare_with_first(self, results: list[Any]) -> None:
        """Notes whether bodies give different results."""
        if self._results_differ or _is_error(results):
            return
        if self._first_results is None:
            self._first_results = results
        elif difference(self._first_results, results) is not None:
            self._results_differ = True

    def _remember(self, body: bytes, results: list[Any]) -> None:
        """Keeps a body that gave a new set of kinds."""
        kinds = frozenset(_kind(result) for result in results)
        if kinds in self._kinds:
            return
        self._kinds.add(kinds)
        self._pool.append(body)
        # The bodies of files stay; the oldest of the others are dropped.
        del self._pool[len(self.corpus) : len(self._pool) - POOL]


def _random_offsets(body: bytes, rng: random.Random) -> list[int]:
    return sorted(rng.randint(0, len(body)) for _ in range(rng.randint(1, 8)))


def _is_error(results: list[Any]) -> bool:
    """Whether the parser raised an error that it may raise."""
    return len(results) == 1 and isinstance(results[0], str) and results[0].startswith(f"{RAISED} ")


def _kind(result: Any) -> tuple[str, str, str | None]:
    """A result's class, the class of its item, and its notice code, error kind or item status."""
    item = getattr(result, "item", None)
    code = getattr(result, "code", None)
    if not code:
        code = getattr(getattr(result, "error", None), "kind", None)
    if not code:
        code = getattr(item, "status", None)
    if not isinstance(code, str):
        code = None
    return type(result).__name__, type(item).__name__, code


def _finding(
    target: FuzzTarget, body: bytes, offsets: Sequence[int], error: Exception
) -> FuzzFinding:
    detail = str(error)[:500]
    if isinstance(error, InvariantViolation):
        return FuzzFinding(target.name, error.invariant, detail, body, tuple(offsets))
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ != "builtins":
        name = f"{kind.__module__}.{name}"
    return FuzzFinding(target.name, kind.__name__, detail, body, tuple(offsets), name)


def fuzz(
    parser: Callable[..., Any],
    bodies: Iterable[bytes] = (),
    *,
    seconds: float = 10.0,
    seed: int | None = None,
    allowed: tuple[type[Exception], ...] = (),
) -> FuzzFinding | None:
    """Searches for a body that a parser reads differently when it is split, or on which it fails.

    Args:
        parser: a class or function that makes an object with `feed(bytes)`, and `close()` if it
            has an end; or a function that takes the chunks of a body. What it gives must be the
            same for every split.
        bodies: bodies to begin with, as your server sends them; others are made of the parts of
            SSE and JSON lines.
        seconds: how long to search; making the body small takes up to `SHRINK_SECONDS` more.
        seed: equal seeds try the same bodies; None: others each time.
        allowed: errors that the parser may raise for a body, if it does for every split; others
            are failures.

    Returns:
        The smallest body found, and where it is split; None if nothing failed. A warning says so
        if every body gave the same results: then `bodies` needs one that the parser reads.

    Raises:
        ValueError: `parser` makes no parser.
    """
    target = target_of(parser, allowed=allowed)
    if seed is None:
        seed = random.SystemRandom().randrange(1 << 32)
    campaign = Campaign(target, seed, [*bodies])
    for _ in campaign.run(seconds):
        pass
    if campaign.finding is None:
        if campaign.executions and campaign.is_blind:
            warnings.warn(campaign.blindness(), stacklevel=2)
        return None
    return shrink(target, campaign.finding)


# --- shrinking ---


def find_failure(
    target: FuzzTarget, body: bytes, offsets: Sequence[int] = ()
) -> FuzzFinding | None:
    """The first failure of a body: in one chunk, split at these offsets, or byte by byte.

    A short body is also split at each single offset.
    """
    partitions: list[Sequence[int]] = [
        [offset for offset in offsets if offset <= len(body)],
        range(1, len(body)),
    ]
    if len(body) <= EVERY_OFFSET_BYTES:
        partitions += [[offset] for offset in range(len(body) + 1)]
    return _first_failure(target, body, partitions)


def _first_failure(
    target: FuzzTarget, body: bytes, partitions: Iterable[Sequence[int]]
) -> FuzzFinding | None:
    """The first failure of a body: in one chunk, or in one of these partitions."""
    tried: Sequence[int] = ()
    try:
        unsplit = _read_unsplit(target, body)
        target.oracle(body, unsplit)
        for tried in partitions:
            _check_split(target, body, unsplit, split_at(body, tried))
    except Exception as error:  # noqa: BLE001  # any exception that escapes is a finding
        return _finding(target, body, tried, error)
    return None


def shrink(
    target: FuzzTarget, finding: FuzzFinding, seconds: float = SHRINK_SECONDS
) -> FuzzFinding:
    """The smallest body found in this time that violates the invariant, with fewest offsets.

    Whole values of JSON are taken out, then chunks of bytes, for as long as that makes it smaller.
    """
    until = time.monotonic() + seconds
    best = finding

    def fails(body: bytes, offsets: Sequence[int]) -> bool:
        nonlocal best
        if time.monotonic() >= until:
            raise _TimeIsOver
        if finding.offsets:
            again = find_failure(target, body, offsets)
        else:  # it fails in one chunk: to split a long body each time would take minutes
            again = _first_failure(target, body, ())
        if again is None or again.invariant != finding.invariant:
            return False
        best = again
        return True

    with suppress(_TimeIsOver):
        if not fails(finding.body, finding.offsets):
            return finding
        before = len(best.body) + 1
        while len(best.body) < before:
            before = len(best.body)
            _shorten_everywhere(lambda: best, fails)
            _shorten_values(lambda: best, fails)
            size = len(best.body)
            # Large chunks first: most of a long body has no part in the failure.
            while size:
                size = size // 2
                _remove_chunks(lambda: best, fails, max(1, size))
        _replace_bytes(lambda: best, fails)
    return _with_fewer_offsets(target, best)


class _TimeIsOver(Exception):
    """Ends shrinking."""


def _replaced(
    finding: FuzzFinding, start: int, end: int, new: bytes = b""
) -> tuple[bytes, list[int]]:
    """The body with other bytes in a place, and its offsets: they move with the bytes after."""
    shorter = end - start - len(new)
    offsets: list[int] = []
    for offset in finding.offsets:
        if offset > start:
            offset = max(start, offset - shorter)  # noqa: PLW2901  # moves with the bytes after
        offsets.append(offset)
    return finding.body[:start] + new + finding.body[end:], offsets


def _remove_chunks(best: Callable[[], FuzzFinding], fails: Fails, size: int) -> None:
    """Removes chunks of this size while the rest still fails."""
    start = 0
    while start < len(best().body):
        if not fails(*_replaced(best(), start, start + size)):
            start += size


def _shorten_everywhere(best: Callable[[], FuzzFinding], fails: Fails) -> None:
    """Replaces what every level of a deep body has, at all levels."""
    for pattern, new in EVERYWHERE:
        finding = best()
        body = pattern.sub(new, finding.body)
        moved = [len(pattern.sub(new, finding.body[:offset])) for offset in finding.offsets]
        # An offset inside a match may have moved beyond one after it.
        offsets = sorted(min(offset, len(body)) for offset in moved)
        if body != finding.body:
            fails(body, offsets)


def _shorten_values(best: Callable[[], FuzzFinding], fails: Fails) -> None:
    """Empties objects and arrays of JSON, puts a value of theirs in their place, and takes out
    members, while the rest still fails."""
    ends = ends_of_values(best().body)
    start = 0
    while start < len(best().body):
        is_shorter = False
        if start in ends:
            ways = shorter_values(best().body, start, ends[start])
            is_shorter = any(fails(*_replaced(best(), *way)) for way in ways)
        if is_shorter:
            ends = ends_of_values(best().body)
        else:
            start += 1


def _replace_bytes(best: Callable[[], FuzzFinding], fails: Fails) -> None:
    """Replaces bytes by plain ones while the body still fails."""
    for index in range(len(best().body)):
        body = best().body
        if index >= len(body) or body[index : index + 1] in _PLAIN_BYTES:
            continue
        for plain in (b"a", b"0"):
            if fails(body[:index] + plain + body[index + 1 :], best().offsets):
                break


def _with_fewer_offsets(target: FuzzTarget, finding: FuzzFinding) -> FuzzFinding:
    for removed in sorted(set(finding.offsets)):
        fewer = sorted({offset for offset in finding.offsets if offset != removed})
        finding = _fail_again(target, finding, fewer) or finding
    return finding


def _fail_again(
    target: FuzzTarget, finding: FuzzFinding, offsets: Sequence[int]
) -> FuzzFinding | None:
    """The same failure with other offsets; None if it does not occur with them."""
    try:
        examine(target, finding.body, offsets)
    except Exception as error:  # noqa: BLE001  # compared with the failure below
        again = _finding(target, finding.body, offsets, error)
        if again.invariant == finding.invariant:
            return again
    return None


# --- reproducers ---


def reproducer(
    finding: FuzzFinding, allowed: Sequence[str] = (), modules: str | None = None
) -> str:
    """The text of a pytest file that fails until the defect is fixed.

    Args:
        finding: what was found.
        allowed: names of errors that the parser may raise, as `find_target` takes them.
        modules: folder of the parser's module, as seen from that of the file; None: it can be
            imported anyway.
    """
    name = "".join(char if char.isalnum() else "_" for char in finding.target)
    lines: list[str] = []
    # At least one line, because the body may be empty.
    for start in range(0, len(finding.body) or 1, LINE_BYTES):
        lines.append(f"    {finding.body[start : start + LINE_BYTES]!r}")
    body = "\n".join(lines)
    target = f"{finding.target!r}, {[*allowed]!r}" if allowed else f"{finding.target!r}"
    imports = importable = ""
    if modules is not None:
        imports = "import sys\nfrom pathlib import Path\n\n"
        importable = (
            "# pytest alone does not look for modules where `streamlib fuzz` was run.\n"
            f"sys.path.insert(0, str(Path(__file__).parent / {modules!r}))\n\n"
        )
    return f'''"""Found by `streamlib fuzz {finding.target}`: {finding.invariant}.

{_quoted(finding.detail)}
"""

{imports}from streamlib.testing.fuzzing import examine
from streamlib.testing.fuzz_targets import find_target

{importable}BODY = (
{body}
)
OFFSETS = {list(finding.offsets)}


def test_{name}_keeps_its_invariants_on_this_body() -> None:
    examine(find_target({target}), BODY, OFFSETS)
'''


def _quoted(text: str) -> str:
    """The text as part of a docstring: printable, and without the docstring's end."""
    printable = text.encode("unicode_escape").decode("ascii")
    return printable.replace('"""', "'''").replace("\\", "\\\\")[:400]
