"""`History`: a list of items with which a conversation is held and saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamlib import (
    FunctionCall,
    History,
    Image,
    Opaque,
    Reasoning,
    ResponseEvent,
    accumulate,
    assistant,
    build,
    parse_body,
    user,
)
from tests.support.response_bodies import COMPLETE_BODY

CALL = FunctionCall("c1", "f", "{}")
ITEMS = [user("hi"), Reasoning("hm"), CALL, CALL.output("one"), Opaque("new", {"type": "new"})]


def test_history_is_a_list_of_items_like_any_other() -> None:
    response = accumulate(parser_events())
    history = History()
    assert history.user("hi", Image(data=b"\x89PNG")).add(response) is history
    history += [user("more"), assistant("so")]
    expected = [user("hi", Image(data="iVBORw==")), *response.items, user("more"), assistant("so")]
    assert history == expected
    built = [build(items, "anthropic:claude-opus-5").body for items in (history, expected)]
    assert built[0] == built[1]


def test_history_loads_what_it_saved(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    History(ITEMS).save(path)
    loaded = History.load(str(path))
    assert type(loaded) is History
    assert loaded == ITEMS == History.loads(path.read_bytes())
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o644)
    loaded.user("again").save(path)
    assert path.stat().st_mode & 0o777 == 0o644
    assert [file.name for file in tmp_path.iterdir()] == ["talk.json"]


def test_history_that_cannot_be_saved_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    History([user("before")]).save(path)
    wrong: Any = "no item"
    history = History([user("after")])
    list.append(history, wrong)
    with pytest.raises(TypeError, match="not an item"):
        history.save(path)
    with pytest.raises(ValueError, match="the history cannot be written as JSON: "):
        History([user("\ud800")]).save(path)
    assert History.load(path) == [user("before")]
    path.write_text("{}")
    with pytest.raises(ValueError, match="not a saved history"):
        History.load(path)


def test_interrupt_after_a_save_is_raised_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C, when the file had its name already: it became a `FileNotFoundError`."""
    replace = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        replace(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    path = tmp_path / "talk.json"
    with pytest.raises(KeyboardInterrupt):
        History([user("hi")]).save(path)
    assert History.load(path) == [user("hi")]


def test_history_of_a_failed_response_keeps_what_arrived() -> None:
    response = accumulate(parser_events()[:4])
    history = History().user("hi").add(response)
    assert [item.status for item in history] == ["completed", "incomplete"]


def parser_events() -> list[ResponseEvent]:
    """Events of a small Messages response."""
    return parse_body("messages", COMPLETE_BODY)
