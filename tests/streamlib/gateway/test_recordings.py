"""Recorded responses through every pair of wires: each difference is in the report.

A few a pair by default; `pytest -m slow` takes a hundred. The table of
docs/gateway/translation.md is computed by `lab.gateway_table`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest

from lab.gateway_table import table as gateway_table
from streamlib import Response, accumulate
from streamlib.gateway.state.translate import EventTranslator
from streamlib.request.report import Change
from streamlib.wires.encoders import encoder
from streamlib_parsers.items import Origin, WireApi
from tests.support.gateways import CLIENTS, MODELS, common_fields, parse_stream
from tests.support.shared import CORPUS, ROOT, WIRES, Recording, recordings, require
from tests.support.wires import events_of

FOLDERS: Final = {wire: folder for folder, wire in WIRES.items()}

REPORTED_AT: Final[dict[str, tuple[str, ...]]] = {
    "text": ("/refusal",),  # a refusal that became plain text
    "refusal": ("/refusal",),
    "stop_reason": ("/stop_reason",),
    "usage": ("/usage", "/usage/cache_write_input_tokens"),
}
"""Field that may differ -> paths of which the report must have one."""

EXACT_COUNTS: Final = ("input_tokens", "output_tokens")
OPTIONAL_COUNTS: Final = (
    "cache_read_input_tokens",
    "cache_write_input_tokens",
    "reasoning_output_tokens",
)
"""Counts that some wires omit when they are 0."""


def sample(model: WireApi, count: int) -> list[Recording]:
    """Some responses of a wire, from all over its folder."""
    successful = [
        recording
        for recording in recordings(FOLDERS[model])
        if recording.meta.get("status", 200) == 200
    ]
    step = max(1, len(successful) // count)
    return successful[::step][:count]


def compared(response: Response) -> dict[str, Any]:
    """The fields that must be equal. White space between paragraphs is the wire's own."""
    fields = common_fields(response)
    for name in ("text", "reasoning"):
        fields[name] = "".join(fields[name].split())
    fields["refusal"] = response.refusal
    fields["usage"] = None
    if response.usage is not None:
        counts = [getattr(response.usage, name) for name in EXACT_COUNTS]
        counts += [getattr(response.usage, name) or None for name in OPTIONAL_COUNTS]
        fields["usage"] = counts
    return fields


def through(client: WireApi, model: WireApi, recording: Recording) -> tuple[list[str], bool]:
    """The fields that differ and are not in the report; and whether any field differs."""
    events = events_of(model, recording.body, origin=Origin(model, "recorded"))
    translated = events
    report: list[Change] = []
    if client != model:
        translator = EventTranslator(client)
        translated = []
        for event in events:
            translated += translator.feed(event)
        report += translator.report
    encode = encoder(client, model="m")
    frames = [encode.feed(event) for event in translated]
    frames.append(encode.close())
    report += encode.report
    expected = compared(accumulate(events))
    received = compared(parse_stream(client, b"".join(frames)))
    reported = {change.path for change in report}
    different = [name for name in expected if expected[name] != received[name]]
    unreported = [
        name for name in different if not reported.intersection(REPORTED_AT.get(name, ()))
    ]
    return unreported, bool(different)


def run(count: int) -> None:
    require(CORPUS)
    counts: Counter[str] = Counter()
    for model in MODELS:
        for recording in sample(model, count):
            for client in CLIENTS:
                unreported, differs = through(client, model, recording)
                assert not unreported, f"{client} <- {model}, {recording.path.name}: {unreported}"
                if differs:
                    counts["different and reported"] += 1
                else:
                    counts["equal"] += 1
    assert counts["equal"] > 9 * counts["different and reported"], counts
    print(f"\nrecordings through pairs of wires: {dict(counts)}")  # noqa: T201  # the result


def test_recording_is_equal_or_its_loss_is_reported() -> None:
    run(8)


@pytest.mark.slow
def test_hundred_recordings_are_equal_or_reported() -> None:
    run(100)


def test_table_in_the_documentation_is_current() -> None:
    page = ROOT / "docs" / "gateway" / "translation.md"
    assert gateway_table.table() in page.read_text(encoding="utf-8")
