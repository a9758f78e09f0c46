"""docs/wires/messages.md names every event, block and rule that the code knows."""

from __future__ import annotations

import re

from streamlib_parsers.items import tag
from streamlib_parsers.wires.messages import BLOCKS, DELTAS, KINDS, TRANSITIONS, State
from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "wires" / "messages.md").read_text("utf-8")


def test_every_event_block_and_delta_is_in_the_tables() -> None:
    for name in (*KINDS, *BLOCKS, *(tag(kind) for kind in DELTAS)):
        assert f"`{name}`" in PAGE


def test_the_law_in_the_page_is_the_law_in_the_code() -> None:
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


def test_every_rule_that_the_builder_names_is_in_the_table() -> None:
    folder = ROOT / "streamlib" / "wires"
    sources = [folder / "claude.py", *sorted((folder / "messages").glob("build*.py"))]
    builder = " ".join(path.read_text("utf-8") for path in sources)
    named = set(re.findall(r"\((?:[A-Z]\d+\w?, )?([AST]\d+b?)\)", builder))
    table = set(re.findall(r"\b([AST]\d+b?)\b", PAGE)) | {f"T{n}" for n in range(2, 6)}
    assert named <= table
