"""The public API changes only where somebody meant it."""

from __future__ import annotations

import difflib

import pytest

from lab import api
from lab.api import FILE, public_api


def test_public_api_is_the_listed_one() -> None:
    listed = FILE.read_text(encoding="utf-8").splitlines()
    changes = [
        line
        for line in difflib.unified_diff(listed, public_api().splitlines(), lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert not changes, (
        "the public API changed: say so in CHANGELOG.md, then run `python -m lab.api`\n"
        + "\n".join(changes)
    )


def test_public_api_holds_classes_methods_and_fields() -> None:
    lines = public_api().splitlines()
    parameters = "wire_api, body, keyword status=…, keyword headers=…, **options"
    assert f"streamlib_parsers.parse_body({parameters})" in lines
    assert "streamlib_parsers.Message.content" in lines
    assert any(line.startswith("streamlib.Client.stream(self, prompt, model=…") for line in lines)


def test_removed_name_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MODULES", ("streamlib.pipeline",))
    assert "streamlib_parsers" not in public_api()
    assert "streamlib.pipeline.coalesce" in public_api()
