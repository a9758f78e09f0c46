"""Recorded answers through every pair of wires: what differs at the client's end is in the report, under its name.

A few a pair by default; `pytest -m slow` takes a hundred. The table of docs/gateway.md is what the probes say.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest

from streamlib import Response, accumulate
from streamlib.gateway.translate import EventTranslator
from streamlib.wires.encoders import encoder
from streamlib_parsers.items import Origin, WireApi
from tests.gateway_table import table as gateway_table
from tests.support.gateways import CLIENTS, MODELS, plain, said
from tests.support.shared import CORPUS, ROOT, WIRES, Recording, recordings, require
from tests.support.wires import events_of

FOLDERS: Final = {wire: folder for folder, wire in WIRES.items()}
NAMED: Final[dict[str, tuple[str, ...]]] = {
    "text": ("/refusal",),  # a refusal that became plain text
    "refusal": ("/refusal",),
    "stop_reason": ("/stop_reason",),
    "usage": ("/usage", "/usage/cache_write_input_tokens"),
}
"""What may differ -> where the report says so."""


def chosen(model: WireApi, count: int) -> list[Recording]:
    """So many answers of a wire, from all over its folder."""
    whole = [one for one in recordings(FOLDERS[model]) if one.meta.get("status", 200) == 200]
    return whole[:: max(1, len(whole) // count)][:count]


def compared(response: Response) -> dict[str, Any]:
    """What must be equal: blanks between paragraphs are the wire's own."""
    usage = response.usage
    counts = (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_write_input_tokens",
        "reasoning_output_tokens",
    )
    values = plain(response)
    return {
        **values,
        "text": "".join(values["text"].split()),
        "reasoning": "".join(values["reasoning"].split()),
        "refusal": response.refusal,
        "usage": usage
        and [getattr(usage, name) or None for name in counts[2:]]
        + [getattr(usage, name) for name in counts[:2]],
    }


def through(client: WireApi, model: WireApi, recording: Recording) -> tuple[list[str], bool]:
    """What differs and is not in the report; whether anything differs."""
    events = events_of(model, recording.body, origin=Origin(model, "recorded"))
    crossing = None if client == model else EventTranslator(client)
    encode = encoder(client, model="m")
    crossed = [
        one for event in events for one in ([event] if crossing is None else crossing.feed(event))
    ]
    stream = b"".join([*(encode.feed(event) for event in crossed), encode.close()])
    wanted, got = compared(accumulate(events)), compared(said(client, stream))
    reported = {change.path for change in [*encode.report, *(crossing.report if crossing else ())]}
    differ = [name for name in wanted if wanted[name] != got[name]]
    return [name for name in differ if not reported.intersection(NAMED.get(name, ()))], bool(differ)


def run(count: int) -> None:
    require(CORPUS)
    counts: Counter[str] = Counter()
    for model in MODELS:
        for recording in chosen(model, count):
            for client in CLIENTS:
                unnamed, differs = through(client, model, recording)
                assert not unnamed, f"{client} <- {model}, {recording.path.name}: {unnamed}"
                counts["differs, and is named" if differs else "equal"] += 1
    assert counts["equal"] > 9 * counts["differs, and is named"], counts
    print(f"\nrecordings through pairs of wires: {dict(counts)}")  # noqa: T201  # the figure of this proof


def test_recorded_answers_arrive_or_their_loss_is_named() -> None:
    run(8)


@pytest.mark.slow
def test_a_hundred_recorded_answers_a_pair_arrive_or_their_loss_is_named() -> None:
    run(100)


def test_the_table_of_what_survives_is_what_the_probes_say() -> None:
    assert gateway_table.table() in (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")
