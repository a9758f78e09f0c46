"""Explains a captured response: how it ended, what is missing, and when each byte was received.

    recording = load("response.jsonl")                    # streamlib.recording
    inspection = inspect(recording)
    print(inspection.outcome.text, [finding.text for finding in inspection.findings])
    Path("response.json").write_bytes(encode(inspection))

`streamlib inspect` shows the same on a terminal, as JSON (``--json --full``) and as a page
(``--html``).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamlib.inspection.difference import (
        DIFFERENCE_FORMAT,
        Difference,
        DifferenceRow,
        FirstDifference,
        compare,
    )
    from streamlib.inspection.document import (
        FORMAT,
        ChunkColumns,
        Facts,
        Finding,
        FrameColumns,
        InspectedItem,
        InspectedNotice,
        InspectedRequest,
        Inspection,
        Outcome,
        RateLimit,
        Silence,
        Silences,
        SkippedSplit,
        Source,
        SplitCharacters,
        SplitResult,
        Splits,
        UnknownEvent,
        encode,
        load,
    )
    from streamlib.inspection.page import render
    from streamlib.inspection.redaction import redacted, redacted_difference
    from streamlib.recording.files import Recording
    from streamlib_parsers.items import WireApi

__all__ = [
    "DIFFERENCE_FORMAT",
    "FORMAT",
    "ChunkColumns",
    "Difference",
    "DifferenceRow",
    "Facts",
    "Finding",
    "FirstDifference",
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
    "compare",
    "encode",
    "inspect",
    "load",
    "redacted",
    "redacted_difference",
    "render",
]

_OTHER_MODULES: Final = {
    "DIFFERENCE_FORMAT": "difference",
    "Difference": "difference",
    "DifferenceRow": "difference",
    "FirstDifference": "difference",
    "compare": "difference",
    "redacted": "redaction",
    "redacted_difference": "redaction",
    "render": "page",
}
"""Name -> module, for names outside of `document`. The command needs few of them when it starts."""


def inspect(
    source: Recording | bytes,
    wire_api: WireApi | None = None,
    *,
    name: str = "",
    splits: Iterable[int] | None = (),
) -> Inspection:
    """Explains a recorded response, or a captured body.

    Args:
        source: A recording, or the bytes of a body without their times.
        wire_api: The wire to read it as; None: the recording's own.
        name: Name of the response in the document.
        splits: Sizes of chunks, in bytes, in which the body is always parsed again, beside the
            usual sizes, which are tried while that is quick. None: no splits are tried.

    Raises:
        ValueError: Neither the recording nor the caller names the wire, or a split is below 1.
    """
    from streamlib.inspection.capture import Capture
    from streamlib.inspection.inspector import inspected, read_capture
    from streamlib.recording.files import from_body

    is_recorded = not isinstance(source, bytes)
    recording = from_body(source) if isinstance(source, bytes) else source
    wire_api = wire_api or recording.wire_api
    if wire_api is None:
        raise ValueError("the source does not tell its wire API: pass `wire_api`")
    return inspected(read_capture(Capture(name, wire_api, recording, is_recorded)), splits)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _OTHER_MODULES.get(name, "document")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
