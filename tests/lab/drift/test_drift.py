"""Nothing that an SDK's response types hold is lost; the oracle sees what is.

The SDKs take seconds to import, so the modules that need them are imported by the tests.
"""

from __future__ import annotations

import msgspec
import pytest

SDKS = ("anthropic", "openai", "google.genai", "botocore")


def _require_sdks() -> None:
    for name in SDKS:
        pytest.importorskip(name, reason="the SDK's types are fed; it comes with the dev extra")


def test_no_member_of_a_response_union_is_lost() -> None:
    _require_sdks()
    from lab.drift.page import PAGE
    from lab.drift.responses import judgements

    judged = judgements()
    assert len(judged) > 200
    lost = {judgement.member: judgement.lost for judgement in judged if judgement.lost}
    assert lost == {}
    page = PAGE.read_text(encoding="utf-8")
    missing = [judgement.member for judgement in judged if f"`{judgement.member}`" not in page]
    assert missing == [], "run `python -m lab.drift --write`"


def test_a_leaf_that_came_out_nowhere_is_lost() -> None:
    """The comparison is an oracle only if it sees what a parser forgets."""
    _require_sdks()
    from lab.drift.judge import judge
    from lab.drift.members_responses import members

    member = next(member for member in members() if member.name == "ResponseTextDeltaEvent")
    events = member.events()
    assert judge(member.instance, events, member.positions) == ("typed", set())
    without = [event for event in events if type(event).__name__ != "OutputTextDelta"]
    final = msgspec.structs.replace(without[-1], usage=None)
    verdict, lost = judge(member.instance, [*without[:1], final], member.positions)
    assert verdict == "lost"
    assert "/delta" in lost
