"""A picture of the split on which a parser fails: the bytes, the cut, and what came out each time.

It is drawn from what the parser really gives for the body of a finding, whole and split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from streamlib.testing.fuzz_targets import FuzzTarget, target_of
from streamlib.testing.fuzzing import FuzzFinding
from streamlib.testing.invariants import log
from streamlib.testing.svg import CODE, LEFT, WIDTH, number, picture, text

CELL: Final = 21
"""Width of a byte."""
ROW: Final = 46
"""Height of a row of bytes, with the room for the words of a cut."""
PER_ROW: Final = 16
MOST_ROWS: Final = 5
"""A shrunk body is short. Of a longer one the rows around the first cut are shown."""
MOST_RESULTS: Final = 4
LINE: Final = 19

NAMES: Final = {0x20: "␣", 0x0A: "⏎", 0x0D: "␍", 0x09: "⇥"}
"""Signs for bytes that cannot be seen."""

STYLE: Final = (
    f"\n.code{{font:12px {CODE}}}.cell{{fill:var(--card);stroke:var(--line)}}"
    ".odd{fill:var(--chosen)}.wrong{fill:var(--bad)}.heading{font-weight:600}"
    ".cut{stroke:var(--bad);stroke-width:2.5;stroke-dasharray:5 3}"
)


class ParserOutput(NamedTuple):
    """What a parser made of a body.

    Attributes:
        results: each result as text, at the end the error that it raised.
        differs: number of the first that the other reading does not have; None without one.
    """

    results: list[str]
    differs: int | None


def draw(parser: Callable[..., Any] | FuzzTarget, finding: FuzzFinding) -> str:
    """The picture of a finding, as SVG.

    Args:
        parser: what was fuzzed: a class or function, or a target.
        finding: what was found in it.
    """
    target = parser if isinstance(parser, FuzzTarget) else target_of(parser)
    unsplit, split = readings(target, finding)
    parts = [text(_title(finding), LEFT, 24, "heading", room=WIDTH - 2 * LEFT)]
    top = _draw_bytes(parts, finding, 44)
    top = _draw_results(parts, "In one chunk", unsplit, top + 12)
    if finding.offsets:
        heading = f"In {len(finding.chunks)} chunks"
        top = _draw_results(parts, heading, split, top + 12, is_wrong=True)
    return picture(describe(finding, unsplit, split), top + 8, parts, STYLE)


def readings(target: FuzzTarget, finding: FuzzFinding) -> tuple[ParserOutput, ParserOutput]:
    """What the body of a finding gives whole, and as it was split."""
    unsplit = _results(target, [finding.body])
    split = _results(target, finding.chunks)
    differs = 0
    while unsplit[differs : differs + 1] == split[differs : differs + 1]:
        if differs >= len(unsplit):  # equal: it fails in the same way, however it is split
            return ParserOutput(unsplit, None), ParserOutput(split, None)
        differs += 1
    return ParserOutput(unsplit, differs), ParserOutput(split, differs)


def describe(finding: FuzzFinding, unsplit: ParserOutput, split: ParserOutput) -> str:
    """What the picture shows, for those who do not see it."""
    sentences = [f"{_title(finding)}: {finding.body[:100]!r}."]
    sentences.append(f"In one chunk: {', '.join(unsplit.results[:MOST_RESULTS]) or 'nothing'}.")
    if finding.offsets:
        after = ", ".join(str(offset) for offset in finding.offsets[:8])
        sentences.append(f"Cut after byte {after}: {', '.join(split.results[:MOST_RESULTS])}.")
    return " ".join(sentences)


def _title(finding: FuzzFinding) -> str:
    name = finding.target.rpartition(":")[2]
    if finding.invariant == "any partition":
        return f"{name}: another result when it is split"
    return f"{name}: {finding.invariant}"


def _results(target: FuzzTarget, chunks: Sequence[bytes]) -> list[str]:
    try:
        lines = log(target.read(chunks))
    except Exception as error:  # noqa: BLE001  # what escapes is what is drawn
        return [f"{type(error).__name__}: {error}"]
    shown: list[str] = []
    for line in lines:
        shown.append(line.decode("utf-8", "replace") if isinstance(line, bytes) else line)
    return shown


def _draw_bytes(parts: list[str], finding: FuzzFinding, top: float) -> float:
    """Draws the bytes and the cuts; returns where they end."""
    cuts = set(finding.offsets)
    first = min(cuts, default=0) // PER_ROW - MOST_ROWS // 2
    start = max(0, first) * PER_ROW
    shown = finding.body[start : start + MOST_ROWS * PER_ROW]
    if start:
        parts.append(text(f"after {start:,} bytes", LEFT, top + 6, "soft"))
        top += 12
    chunk = sum(offset <= start for offset in cuts)
    for position, byte in enumerate(shown):
        offset = start + position
        x = LEFT + position % PER_ROW * (CELL + 1)
        y = top + 14 + position // PER_ROW * ROW
        if offset in cuts and offset > start:
            chunk += 1
        kind = "cell odd" if chunk % 2 else "cell"
        parts.append(f'<rect class="{kind}" x="{x}" y="{number(y)}" width="{CELL}" height="24"/>')
        parts.append(text(_name(byte), x + CELL / 2, y + 16, "code", "middle"))
    for offset in sorted(cuts):
        if start <= offset <= start + len(shown):
            parts += _split_mark(offset - start, offset, top)
    rows = -(-len(shown) // PER_ROW)
    top += max(1, rows) * ROW
    left = len(finding.body) - start - len(shown)
    if left:
        parts.append(text(f"and {left:,} bytes more", LEFT, top + 6, "soft"))
        top += 12
    return top


def _split_mark(position: int, offset: int, top: float) -> list[str]:
    """The line between two bytes, and how many are before it."""
    row, column = divmod(position, PER_ROW)
    if column == 0 and row:  # behind the last byte of the row above
        row, column = row - 1, PER_ROW
    x = LEFT + column * (CELL + 1) - 0.5
    y = top + row * ROW
    anchor = "middle"
    if column < 2:
        anchor = "start"
    if column > PER_ROW - 3:
        anchor = "end"
    return [
        f'<path class="cut" d="M{number(x)} {number(y + 8)}v36"/>',
        text(f"cut after {offset}", x, y + 4, "wrong", anchor),
    ]


def _name(byte: int) -> str:
    if byte in NAMES:
        return NAMES[byte]
    return chr(byte) if 0x20 < byte < 0x7F else f"{byte:02X}"


def _draw_results(
    parts: list[str], heading: str, output: ParserOutput, top: float, *, is_wrong: bool = False
) -> float:
    """Draws what came out, around the first difference; returns where it ends."""
    parts.append(text(heading, LEFT, top + 10, "soft"))
    first = 0
    if output.differs is not None:
        first = max(0, output.differs - MOST_RESULTS + 2)
    shown = output.results[first : first + MOST_RESULTS]
    if first:
        parts.append(text(f"after {first} results", WIDTH - LEFT, top + 10, "soft", "end"))
    top += LINE
    is_missing = output.differs == len(output.results)
    if is_missing:
        shown.append("nothing" if not output.results else "nothing more")
    for number_of, result in enumerate(shown, first):
        kind = "code"
        mark = "→"
        if is_wrong and number_of == output.differs:
            kind, mark = "code wrong", "≠"
        # A letter of the code font is wider.
        parts.append(text(f"{mark} {result}", LEFT, top + 9, kind, room=(WIDTH - 2 * LEFT) * 0.9))
        top += LINE
    return top
