"""Feeds every member of the SDKs' response types to the parsers, and judges what came out."""

from __future__ import annotations

from collections.abc import Iterator

from lab.drift import (
    members_chat,
    members_converse,
    members_gemini,
    members_interactions,
    members_messages,
    members_responses,
)
from lab.drift.judge import Judgement, judge
from lab.drift.member import Member


def members() -> Iterator[Member]:
    """All members of all SDKs."""
    yield from members_messages.members()
    yield from members_responses.members()
    yield from members_chat.members()
    yield from members_gemini.members()
    yield from members_interactions.members()
    yield from members_converse.members()


def judgements() -> list[Judgement]:
    """One judgement a member, in the order of the SDKs."""
    judged: dict[tuple[str, str], Judgement] = {}
    for member in members():
        key = (member.sdk, member.name)
        if key not in judged:
            judged[key] = Judgement(member.sdk, member.name)
        verdict, lost = judge(member.instance, member.events(), member.positions)
        judged[key].add(verdict, lost)
    return list(judged.values())
