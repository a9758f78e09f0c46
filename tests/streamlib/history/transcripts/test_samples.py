"""Samples from outside: each is read, and the strict loopback provider takes it on every wire."""

from __future__ import annotations

from functools import cache
from typing import get_args

import pytest

from streamlib import Prompt, user
from streamlib.history import Transcript, dump_transcript, load_transcript
from streamlib.history.transcripts.transcript import WrittenFormat
from streamlib.testing import MODEL, loopback
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.conversation_facts import facts_of
from tests.support.shared import SHARED, require

BROKEN = "claude-code__daaain_edge_cases.jsonl"
"""A sample with lines that are no objects."""


@cache
def samples() -> dict[str, Transcript]:
    folder = require(SHARED / "transcripts")
    paths = sorted([*folder.glob("*.json"), *folder.glob("*.jsonl")])
    return {path.name: load_transcript(path) for path in paths if path.name != BROKEN}


def test_sample_is_recognized_by_its_content() -> None:
    for name, transcript in samples().items():
        assert transcript.items, name
        assert transcript.format in name


def test_broken_sample_is_an_error_with_its_line() -> None:
    with pytest.raises(ValueError, match="line 13: not a JSON object"):
        load_transcript(require(SHARED / "transcripts" / BROKEN))


@pytest.mark.parametrize("name", get_args(WrittenFormat))
def test_sample_in_its_own_format_is_read_again(name: WrittenFormat) -> None:
    for sample, transcript in samples().items():
        if transcript.format == name:
            again = load_transcript(dump_transcript(transcript, name).dumps(), name)
            assert facts_of(again.items) == facts_of(transcript.items), sample
            assert again.instructions == transcript.instructions, sample


@pytest.mark.parametrize("wire_api", WIRE_APIS)
async def test_strict_provider_takes_every_sample(wire_api: WireApi) -> None:
    async with loopback(wire_api, strict=True) as client:
        for name, transcript in samples().items():
            items = [*transcript.items, user("Go on.")]
            prompt = Prompt(items, instructions=transcript.instructions)
            response = await client.respond(prompt, MODEL)
            assert response.error is None, (name, response.error)
