"""docs/wires/messages.md names every event, block and rule of the code."""

from __future__ import annotations

import re

from streamlib_parsers.items import tag
from streamlib_parsers.wires.messages import BLOCKS, DELTAS, KINDS, TRANSITIONS, State
from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "wires" / "messages.md").read_text("utf-8")


def test_page_names_every_event_block_and_delta() -> None:
    for name in (*KINDS, *BLOCKS, *(tag(kind) for kind in DELTAS)):
        assert f"`{name}`" in PAGE


def test_transitions_on_the_page_are_those_of_the_code() -> None:
    rows = dict(
        re.findall(
            r"^\| (before the first `message_start`|after `message_stop`) \| (.*) \|$",
            PAGE,
            re.MULTILINE,
        )
    )
    assert set(re.findall(r"`(\w+)`", rows["before the first `message_start`"])) == set(
        TRANSITIONS[State.START]
    )
    assert set(re.findall(r"`(\w+)`", rows["after `message_stop`"])) == set(
        TRANSITIONS[State.STOPPED]
    )


def test_rules_named_in_the_builder_are_on_the_page() -> None:
    folder = ROOT / "streamlib" / "wires"
    sources = [folder / "claude.py", *sorted((folder / "messages").glob("build*.py"))]
    builder = " ".join(path.read_text("utf-8") for path in sources)
    named = set(re.findall(r"\((?:[A-Z]\d+\w?, )?([AST]\d+b?)\)", builder))
    table = set(re.findall(r"\b([AST]\d+b?)\b", PAGE)) | {f"T{n}" for n in range(2, 6)}
    assert named <= table
