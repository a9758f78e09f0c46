"""Explains a captured response: how it ended, what is missing, and when each byte was received.

    recording = load("response.jsonl")                    # streamlib.recording
    inspection = inspect(recording)
    print(inspection.outcome.text, [finding.text for finding in inspection.findings])
    Path("response.json").write_bytes(encode(inspection))

`streamlib inspect` shows the same on a terminal, as JSON (``--json --full``) and as a page
(``--html``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from streamlib.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    # For type checkers, which do not read the table. `as` makes a name public for them.
    from streamlib.inspection.difference import DIFFERENCE_FORMAT as DIFFERENCE_FORMAT
    from streamlib.inspection.difference import Difference as Difference
    from streamlib.inspection.difference import DifferenceRow as DifferenceRow
    from streamlib.inspection.difference import FirstDifference as FirstDifference
    from streamlib.inspection.difference import compare as compare
    from streamlib.inspection.document import FORMAT as FORMAT
    from streamlib.inspection.document import ChunkColumns as ChunkColumns
    from streamlib.inspection.document import Facts as Facts
    from streamlib.inspection.document import Finding as Finding
    from streamlib.inspection.document import FrameColumns as FrameColumns
    from streamlib.inspection.document import InspectedItem as InspectedItem
    from streamlib.inspection.document import InspectedNotice as InspectedNotice
    from streamlib.inspection.document import InspectedRequest as InspectedRequest
    from streamlib.inspection.document import Inspection as Inspection
    from streamlib.inspection.document import Outcome as Outcome
    from streamlib.inspection.document import RateLimit as RateLimit
    from streamlib.inspection.document import Silence as Silence
    from streamlib.inspection.document import Silences as Silences
    from streamlib.inspection.document import SkippedSplit as SkippedSplit
    from streamlib.inspection.document import Source as Source
    from streamlib.inspection.document import SplitCharacters as SplitCharacters
    from streamlib.inspection.document import SplitResult as SplitResult
    from streamlib.inspection.document import Splits as Splits
    from streamlib.inspection.document import UnknownEvent as UnknownEvent
    from streamlib.inspection.document import encode as encode
    from streamlib.inspection.document import load as load
    from streamlib.inspection.redaction import redacted as redacted
    from streamlib.inspection.redaction import redacted_difference as redacted_difference
    from streamlib.recording.files import Recording
    from streamlib_parsers.items import WireApi


def inspect(
    source: Recording | bytes,
    wire_api: WireApi | None = None,
    *,
    name: str = "",
    splits: Iterable[int] | None = (),
) -> Inspection:
    """Explains a recorded response, or a captured body.

    Args:
        source: a recording, or the bytes of a body without their times.
        wire_api: the wire to read it as; None: the recording's own.
        name: name of the response in the document.
        splits: sizes of chunks, in bytes, in which the body is always parsed again, beside the
            usual sizes, which are tried while that is quick. None: no splits are tried.

    Raises:
        TypeError: the source is neither, such as the path of a file.
        ValueError: neither the recording nor the caller names the wire, or a split is below 1.
    """
    from streamlib.inspection.capture import Capture
    from streamlib.inspection.inspector import inspected, read_capture
    from streamlib.recording.files import Recording, from_body

    if not isinstance(source, (bytes, Recording)):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(source).__name__
        raise TypeError(f"a `Recording` or bytes are inspected, not a {kind}: read the file first")
    is_recorded = not isinstance(source, bytes)
    recording = from_body(source) if isinstance(source, bytes) else source
    wire_api = wire_api or recording.wire_api
    if wire_api is None:
        raise ValueError("the source does not tell its wire API: pass `wire_api`")
    return inspected(read_capture(Capture(name, wire_api, recording, is_recorded)), splits)


def inspect_all(
    data: bytes,
    wire_api: WireApi | None = None,
    *,
    name: str = "",
    splits: Iterable[int] | None = (),
) -> list[Inspection]:
    """Explains every response in a file, whatever its form: HAR, compressed, a log, `curl -i` …

    Args:
        data: the bytes of the file.
        wire_api: the wire to read all of them as, and the file itself, even an empty one, if no
            response is found in it; None: their own, else the one that each looks like
            (`Source.guessed`).
        name: name of the file in the documents; of several responses with ``#1``, ``#2`` ….
        splits: as for `inspect`.

    Returns:
        The inspections in the order of the file; none where no response was found, as in an
        empty file, and no wire is named.

    Raises:
        TypeError: it is something else than bytes, such as the path of a file.
        ValueError: it cannot be opened, is a HAR file without a response (the message says why),
            or a split is below 1.
    """
    from streamlib.inspection.capture import captures_of
    from streamlib.inspection.inspector import inspected, read_capture

    if not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(data).__name__
        raise TypeError(f"the bytes of a file are inspected, not a {kind}: read the file first")
    sizes = None if splits is None else tuple(splits)
    captures = captures_of(name, data, wire_api)
    return [inspected(read_capture(capture), sizes) for capture in captures]


def render(inspections: Sequence[Inspection], difference: Difference | None = None) -> str:
    """Makes a page of inspections that needs only a browser.

    Args:
        inspections: the responses to show; the reader can choose among them.
        difference: the difference of the first two, which must then be the only ones.

    Returns:
        The text of an HTML file, to be written as UTF-8.

    Raises:
        ValueError: there is no inspection, or a difference without exactly two inspections.
    """
    from streamlib.inspection.document import page_entry
    from streamlib.inspection.page import page

    if not inspections:
        raise ValueError("there is nothing to show: pass an inspection")
    if difference is not None and len(inspections) != 2:
        raise ValueError(f"a difference is of two inspections, not of {len(inspections)}")
    entries = [page_entry(inspection) for inspection in inspections]
    if difference is None:
        return page(entries)
    return page(entries, msgspec.json.encode(difference))


__getattr__, __dir__ = lazy(
    __name__,
    {
        "streamlib.inspection.difference": (
            "DIFFERENCE_FORMAT",
            "Difference",
            "DifferenceRow",
            "FirstDifference",
            "compare",
        ),
        "streamlib.inspection.document": (
            "FORMAT",
            "ChunkColumns",
            "Facts",
            "Finding",
            "FrameColumns",
            "InspectedItem",
            "InspectedNotice",
            "InspectedRequest",
            "Inspection",
            "Outcome",
            "RateLimit",
            "Silence",
            "Silences",
            "SkippedSplit",
            "Source",
            "SplitCharacters",
            "SplitResult",
            "Splits",
            "UnknownEvent",
            "encode",
            "load",
        ),
        "streamlib.inspection.redaction": ("redacted", "redacted_difference"),
    },
    own=("inspect", "inspect_all", "render"),
)
