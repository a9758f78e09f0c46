"""Nothing that an SDK's response types hold is lost; the oracle sees what is.

The SDKs take seconds to import, so the modules that need them are imported by the tests.
"""

from __future__ import annotations

from pathlib import Path

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
    assert {judgement.sdk for judgement in judged} >= {"openai beta", "anthropic beta"}


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


def test_every_event_union_of_the_sdks_is_decided_on() -> None:
    _require_sdks()
    from lab.drift.page import PAGE, union_rows
    from lab.drift.unions import READ, found, undecided

    names = found()
    assert undecided(names) == []
    assert {"openai", "anthropic", "google-genai", "botocore"} <= names.keys()
    assert "BetaResponseStreamEvent" in names["openai"]
    assert READ["openai"].keys() <= names["openai"]
    assert union_rows() in PAGE.read_text(encoding="utf-8"), "run `python -m lab.drift --write`"


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("DreamEvent", "DreamEvent: TypeAlias = Annotated[\n    Union[A, B],\n    X,\n]"),
        ("DreamServerEvent", "DreamServerEvent = typing.Union[A, B]"),
        ("BetaDreamStreamEvents", 'BetaDreamStreamEvents = TypeAliasType("D", Union[A, B])'),
        ("DreamStreamEvent", "DreamStreamEvent = A | B"),
        ("DreamChunk", "def dream(self) -> Stream[DreamChunk]: ..."),
        ("DreamEvents", "def dream(self) -> eventstreaming.EventStream[models.DreamEvents]: ..."),
        ("DreamFrame", "def dream(self) -> AsyncIterator[types.DreamFrame]: ..."),
    ],
)
def test_a_new_event_union_fails_the_check(
    name: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK is a made one, with one more stream than today's."""
    from lab.drift.unions import READ, undecided, unions

    package = tmp_path / "dreaming" / "types" / "beta"
    package.mkdir(parents=True)
    (tmp_path / "dreaming" / "__init__.py").write_text("")
    (package / "dream.py").write_text(source + "\nDreamClientEvent = Union[A, B]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert unions("dreaming") == {name}
    (line,) = undecided({"dreaming": unions("dreaming")})
    assert f"{name} is new" in line
    known = set(READ["cohere"])
    assert [line for line in undecided({"cohere": known}) if line.endswith("is gone")]
    assert unions("no_such_sdk") == set()
