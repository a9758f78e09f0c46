"""Follows docs/guides/add-a-provider.md: its file goes where the guide puts it and works."""

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
PROMPT = Prompt("Hello", reasoning="high", temperature=0.2, seed=7)


def block(mark: str) -> tuple[str, str]:
    """The name in a mark, and the code block below the mark."""
    match = re.search(rf"<!-- {mark}: (\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert match, mark
    return match[1], match[2]


@pytest.fixture
def _added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The guide's file, as if it were among the shipped providers."""
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
def test_provider_file_is_found_without_a_list() -> None:
    assert {"acme", "acme-ai"} <= set(streamlib.providers.known())


@pytest.mark.usefixtures("_added")
def test_request_and_report_are_those_of_the_guide() -> None:
    model, text = block("request")
    request = build(PROMPT, model)
    assert json.loads(request.body) == json.loads(text)
    assert list(json.loads(request.body)) == list(json.loads(text))
    _, changes = block("report")
    assert [[change.action, change.path, change.reason] for change in request.report] == json.loads(
        changes
    )


def test_prompt_of_the_guide_is_the_one_built_here() -> None:
    match = re.search(r"That was `(Prompt\(.*\))`", PAGE)
    assert match
    assert eval(match[1], {"Prompt": Prompt}) == PROMPT


def test_values_that_the_guide_names_exist() -> None:
    fields = {
        *streamlib.providers.Provider.__struct_fields__,
        *streamlib.providers.ChatShape.__struct_fields__,
    }
    table = PAGE.split("| it responds")[1].split("\n\n")[0]
    named = set(re.findall(r"`(?:chat=ChatShape\()?(\w+)=", table))
    assert len(named) > 6
    assert named <= fields


def test_files_that_the_guide_names_exist() -> None:
    for name in re.findall(r"`((?:streamlib|tests)/[\w/.]+)`", PAGE):
        assert (ROOT / name).exists() or name == block("file")[0], name
