"""docs/guides/add-a-provider.md, followed to the letter: its file is put where it says, and does what it says."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamlib.providers
from streamlib import Prompt, build
from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "guides" / "add-a-provider.md").read_text(encoding="utf-8")
ASKED = Prompt("Hello", reasoning="high", temperature=0.2, seed=7)


def block(mark: str) -> tuple[str, str]:
    """What a mark names, and the block below it."""
    found = re.search(rf"<!-- {mark}: (\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found, mark
    return found[1], found[2]


@pytest.fixture
def _added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The guide's file, as if it lay among the shipped ones."""
    path, text = block("file")
    assert Path(path).parent == Path("streamlib/providers")
    (tmp_path / Path(path).name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(
        streamlib.providers, "__path__", [*streamlib.providers.__path__, str(tmp_path)]
    )
    monkeypatch.setattr(streamlib.providers, "_registered", {})
    streamlib.providers.shipped.cache_clear()
    yield
    sys.modules.pop(f"streamlib.providers.{Path(path).stem}", None)
    streamlib.providers.shipped.cache_clear()


@pytest.mark.usefixtures("_added")
def test_the_file_is_found_without_editing_a_list() -> None:
    assert {"acme", "acme-ai"} <= set(streamlib.providers.known())


@pytest.mark.usefixtures("_added")
def test_its_requests_are_those_of_the_guide() -> None:
    model, text = block("request")
    request = build(ASKED, model)
    assert json.loads(request.body) == json.loads(text)
    assert list(json.loads(request.body)) == list(json.loads(text))
    _, changes = block("report")
    assert [[change.action, change.path, change.reason] for change in request.report] == json.loads(
        changes
    )


def test_the_prompt_of_the_guide_is_the_one_asked_here() -> None:
    said = re.search(r"That was `(Prompt\(.*\))`", PAGE)
    assert said
    assert eval(said[1], {"Prompt": Prompt}) == ASKED


def test_every_value_that_the_guide_names_exists() -> None:
    fields = {
        *streamlib.providers.Provider.__struct_fields__,
        *streamlib.providers.ChatShape.__struct_fields__,
    }
    named = set(
        re.findall(r"`(?:chat=ChatShape\()?(\w+)=", PAGE.split("| it answers")[1].split("\n\n")[0])
    )
    assert len(named) > 6
    assert named <= fields


def test_the_guide_and_its_files_have_a_place() -> None:
    for name in re.findall(r"`((?:streamlib|tests)/[\w/.]+)`", PAGE):
        assert (ROOT / name).exists() or name == block("file")[0], name
