"""Compares two inspections event by event.

Adjacent deltas of one text are one row, because two responses with the same text are equal, however
it was split. Rows are aligned by the kinds of their events and items, as lines are when files are
compared; then the rows of a pair are compared field by field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, zip_longest
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from streamlib.display.safe_text import printable
from streamlib.inspection.document import Inspection
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import text_or_json

DIFFERENCE_FORMAT: Final = "streamlib.difference/1"
"""Value of the key `format` of every difference."""

Operation: TypeAlias = Literal["same", "ids", "changed", "only_a", "only_b"]

ID_KEYS: Final = frozenset(
    {
        "call_id",
        "encrypted_content",
        "id",
        "origin",
        "request_id",
        "reset_after",
        "reset_at",
        "response_id",
        "seq",
        "signature",
    }
)
"""Keys whose values differ between any two responses."""

ID_EVENTS: Final = frozenset({"rate_limits", "response_metadata"})
"""Events that differ between any two responses."""

TEXT_EVENTS: Final = frozenset(
    {
        "function_call_arguments_delta",
        "output_text_delta",
        "reasoning_content_delta",
        "reasoning_summary_delta",
        "refusal_delta",
    }
)
"""Events whose deltas are joined."""

POSITION_KEYS: Final = ("type", "content_index", "summary_index")
"""Keys of the place in an item. `index` is not among them: after an item that only one side has,
all further indexes differ."""

AROUND: Final = 60
"""Characters shown on each side of a difference."""

BEFORE: Final = 12
"""Characters before a difference that are shown on a terminal."""

ONE_SIDED: Final = 160
"""Characters that are shown of what only one side has."""

ALIGNED_SPANS: Final = 600
"""Limit of spans on each side that are aligned, apart from equal ones at the start and at the end.
Above it, spans with the same number are compared."""


class DifferenceRow(Struct, frozen=True, kw_only=True):
    """One event, or one text, of A and of B.

    Attributes:
        op: `same`; `ids`: only ids, indexes, times or rate limits differ; `changed`; `only_a`;
            `only_b`.
        type: type of the events.
        label: description of the events, in words.
        a: number of the first event in A, and how many there are; None: A lacks it.
        b: the same for B.
        a_frame: number of the frame with the first event in A.
        b_frame: the same for B.
        a_at: seconds from the request to that frame; None: not known.
        b_at: the same for B.
        fields: keys whose values differ.
        character: index of the first character that differs between two texts.
        a_text: text around the difference in A; for `only_a`, the first 160 characters of the text.
        b_text: the same for B.
    """

    op: Operation
    type: str
    label: str
    a: tuple[int, int] | None = None
    b: tuple[int, int] | None = None
    a_frame: int | None = None
    b_frame: int | None = None
    a_at: float | None = None
    b_at: float | None = None
    fields: tuple[str, ...] = ()
    character: int | None = None
    a_text: str = ""
    b_text: str = ""


class FirstDifference(Struct, frozen=True, kw_only=True):
    """The first row that differs, and a description of the difference."""

    row: int
    text: str


class Difference(Struct, frozen=True, kw_only=True):
    """What is different between two responses.

    Attributes:
        format: name and version of the format.
        a: name of the first response.
        b: name of the second response.
        redacted: whether texts were replaced by their lengths.
        equal: whether only ids, indexes, times and rate limits differ.
        first: the first difference; None if nothing differs at all.
        rows: all events, aligned.
    """

    format: str = DIFFERENCE_FORMAT
    a: str
    b: str
    redacted: bool = False
    equal: bool
    first: FirstDifference | None = None
    rows: tuple[DifferenceRow, ...] = ()


class Span(Struct):
    """One event, or the adjacent deltas of one text.

    Attributes:
        first: number of its first event.
        count: number of events.
        frame: number of the frame with its first event.
        seconds: seconds from the request to that frame.
        value: the event; for deltas the first one, with their joined text.
        key: key for the alignment of spans.
    """

    first: int
    count: int
    frame: int
    seconds: float | None
    value: JsonObject
    key: tuple[Any, ...]


def compare(a: Inspection, b: Inspection) -> Difference:
    """Compares two inspections. To redact the result, use `redacted_difference`.

    Args:
        a: the first inspection.
        b: the second inspection.

    Raises:
        ValueError: one is redacted: texts of the same length would count as equal.
    """
    if a.redacted or b.redacted:
        raise ValueError(
            "a redacted inspection has no texts to compare: compare the originals, "
            "then redact the difference (redacted_difference)"
        )
    rows = tuple([_row(ours, theirs) for ours, theirs in _aligned(spans_of(a), spans_of(b))])
    first = _first(rows)
    equal = all(row.op in ("same", "ids") for row in rows)
    return Difference(a=a.source.name, b=b.source.name, equal=equal, first=first, rows=rows)


# --- spans ---


def spans_of(inspection: Inspection) -> list[Span]:
    """The events of a response; adjacent deltas of one text are one span."""
    frames = _frames_of_events(inspection)
    times = frame_times(inspection)
    spans: list[Span] = []
    texts: list[list[str]] = []
    """Deltas of each span; empty if the span is not a text."""
    for number, event in enumerate(inspection.events):
        key = _key(event)
        if event["type"] in TEXT_EVENTS:
            is_adjacent = spans and spans[-1].key == key
            if is_adjacent and spans[-1].value["index"] == event["index"]:
                spans[-1].count += 1
                texts[-1].append(event["delta"])
                continue
        frame = frames[number]
        spans.append(Span(number, 1, frame, times[frame], event, key))
        texts.append([event.get("delta", "")])
    for span, deltas in zip(spans, texts, strict=True):
        if span.count > 1:
            span.value = {**span.value, "delta": "".join(deltas)}
    return spans


def _key(event: JsonObject) -> tuple[Any, ...]:
    """The kind of an event, apart from its content."""
    item = event.get("item") or {}
    key: list[Any] = [event.get(name) for name in POSITION_KEYS]
    return (*key, item.get("type"), item.get("name"))


def _frames_of_events(inspection: Inspection) -> list[int]:
    """The number of the frame of each event."""
    frames: list[int] = []
    for number, count in enumerate(inspection.frames.events):
        frames += [number] * count
    return frames


def frame_times(inspection: Inspection) -> list[float | None]:
    """Seconds from the request to the last byte of each frame; None if not known."""
    times: list[float | None] = []
    chunk_ends = list(accumulate(inspection.chunks.bytes))
    last = len(chunk_ends) - 1
    chunk = 0
    for end in accumulate(inspection.frames.bytes):
        while chunk < last and chunk_ends[chunk] < end:
            chunk += 1
        is_known = inspection.source.recorded and last >= 0
        times.append(inspection.chunks.at[chunk] if is_known else None)
    return times


# --- alignment ---


def _aligned(a: list[Span], b: list[Span]) -> Iterator[tuple[Span | None, Span | None]]:
    """Pairs of spans, in order; None if one side has no such span."""
    start = _alike(a, b)
    end = _alike(a[start:][::-1], b[start:][::-1])
    a_stop, b_stop = len(a) - end, len(b) - end
    yield from zip(a[:start], b[:start], strict=True)
    yield from _aligned_middle(a[start:a_stop], b[start:b_stop])
    yield from zip(a[a_stop:], b[b_stop:], strict=True)


def _alike(a: Sequence[Span], b: Sequence[Span]) -> int:
    """Number of spans at the start with equal keys."""
    count = 0
    for ours, theirs in zip(a, b, strict=False):
        if ours.key != theirs.key:
            break
        count += 1
    return count


def _aligned_middle(
    a: Sequence[Span], b: Sequence[Span]
) -> Iterator[tuple[Span | None, Span | None]]:
    if max(len(a), len(b)) > ALIGNED_SPANS:
        # The time of an alignment grows with the product of both numbers.
        yield from _paired(a, b)
        return
    a_keys = [span.key for span in a]
    b_keys = [span.key for span in b]
    matcher = SequenceMatcher(None, a_keys, b_keys, autojunk=False)
    for _, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        yield from _paired(a[a_start:a_end], b[b_start:b_end])


def _paired(a: Sequence[Span], b: Sequence[Span]) -> Iterator[tuple[Span | None, Span | None]]:
    for ours, theirs in zip_longest(a, b):
        if ours is None or theirs is None or ours.key == theirs.key:
            yield ours, theirs
        else:
            yield ours, None
            yield None, theirs


# --- rows ---


def _row(ours: Span | None, theirs: Span | None) -> DifferenceRow:
    if ours is not None and theirs is not None:
        return _compared(ours, theirs)
    if ours is not None:
        text = beginning_of(ours.value)
        return DifferenceRow(op="only_a", a_text=text, **_about(ours), **_side("a", ours))
    if theirs is not None:
        text = beginning_of(theirs.value)
        return DifferenceRow(op="only_b", b_text=text, **_about(theirs), **_side("b", theirs))
    raise AssertionError("a row has at least one side")


def beginning_of(event: JsonObject) -> str:
    """The beginning of what an event says; "" where that is not a text."""
    text = ""
    if event["type"] in TEXT_EVENTS:
        text = str(event["delta"])
    elif event["type"] == "failed":
        text = str(event["error"].get("message", ""))
    elif event["type"] == "notice":
        text = f"{event['code']}: {event.get('detail') or ''}"
    return text[:ONE_SIDED]


def _about(span: Span) -> dict[str, Any]:
    return {"type": str(span.value["type"]), "label": span_label(span)}


def _side(side: str, span: Span) -> dict[str, Any]:
    return {
        side: (span.first, span.count),
        f"{side}_frame": span.frame,
        f"{side}_at": span.seconds,
    }


def _compared(ours: Span, theirs: Span) -> DifferenceRow:
    row = DifferenceRow(op="same", **_about(ours), **_side("a", ours), **_side("b", theirs))
    a, b = ours.value, theirs.value
    fields: list[str] = []
    for key in sorted({*a, *b} - {"seq"}):
        if a.get(key) != b.get(key):
            fields.append(key)
    if not fields:
        return row
    different = [key for key in fields if _without_ids(key, a) != _without_ids(key, b)]
    if not different or row.type in ID_EVENTS:
        return msgspec.structs.replace(row, op="ids", fields=tuple(fields))
    a_text = text_or_json(_without_ids(different[0], a))
    b_text = text_or_json(_without_ids(different[0], b))
    character = _parting(a_text, b_text)
    return msgspec.structs.replace(
        row,
        op="changed",
        fields=tuple(different),
        character=character,
        a_text=_around(a_text, character),
        b_text=_around(b_text, character),
    )


def _without_ids(key: str, event: JsonObject) -> Any:
    """The value of a key, without the index of an item, and without ids at any depth."""
    if key in ID_KEYS or key == "index":
        return None
    return _stripped(event.get(key))


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(inner) for key, inner in value.items() if key not in ID_KEYS}
    if isinstance(value, list):
        return [_stripped(element) for element in value]
    return value


def _parting(a: str, b: str) -> int:
    """Index of the first character that differs."""
    for number, (ours, theirs) in enumerate(zip(a, b, strict=False)):
        if ours != theirs:
            return number
    return min(len(a), len(b))


def _around(text: str, character: int) -> str:
    return text[max(0, character - AROUND) : character + AROUND]


def span_label(span: Span) -> str:
    """What a span is, on one line, safe for a terminal."""
    value = span.value
    parts = [str(value["type"])]
    if isinstance(value.get("index"), int):
        parts.append(str(value["index"]))
    item = value.get("item")
    if isinstance(item, dict):
        parts.append(" ".join([str(item[key]) for key in ("type", "name") if item.get(key)]))
    if value["type"] in TEXT_EVENTS:
        parts.append(f"({len(value['delta']):,} characters)")
    return printable(" ".join(parts)).replace("\n", " ")


def _first(rows: Sequence[DifferenceRow]) -> FirstDifference | None:
    """The first row that differs; if none does otherwise, the first that differs in ids."""
    only_ids: int | None = None
    for number, row in enumerate(rows):
        if row.op == "ids" and only_ids is None:
            only_ids = number
        if row.op not in ("same", "ids"):
            return FirstDifference(row=number, text=describe(row))
    if only_ids is None:
        return None
    return FirstDifference(row=only_ids, text=describe(rows[only_ids]))


def describe(row: DifferenceRow) -> str:
    """A description of how both sides of a row differ, on one line."""
    if row.op == "same":
        return f"{row.label}: the same"
    if row.op == "ids":
        return f"{row.label}: {', '.join(row.fields)} (ids, times or limits)"
    if row.op in ("only_a", "only_b"):
        return f"{row.label}: only in {row.op[-1].upper()}"
    a_text, b_text = parting_texts(row, 40)
    fields = ", ".join(row.fields)
    return f"{row.label}: {fields} from character {row.character} on: {a_text} and {b_text}"


def parting_texts(row: DifferenceRow, width: int) -> tuple[str, str]:
    """The texts of a changed row around the difference, as Python literals.

    Args:
        row: a row whose `op` is `changed`.
        width: columns of each text.
    """
    start = max(0, min(row.character or 0, AROUND) - BEFORE)
    return repr(row.a_text[start : start + width]), repr(row.b_text[start : start + width])
