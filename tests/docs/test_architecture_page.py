"""The drawing of the rooms in docs/architecture.md is the house that stands."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOM = r"(\w+)(?:\[[^\]]*\])?"


def drawn_arrows() -> set[tuple[str, str]]:
    """The arrows between rooms of `streamlib`."""
    drawing = PAGE.split("subgraph streamlib\n")[1].split("    end\n")[0]
    return set(re.findall(rf"^ *{ROOM} --> {ROOM}$", drawing, re.MULTILINE))


def rooms() -> set[str]:
    """Folders and modules of `streamlib`, without its two entries."""
    found: set[str] = set()
    for path in (ROOT / "streamlib").iterdir():
        if (path / "__init__.py").exists() or path.suffix == ".py":
            found.add(path.stem)
    return found - {"__init__", "__main__"}


@cache
def imported_by(room: str) -> set[str]:
    """Rooms that a room imports."""
    folder = ROOT / "streamlib" / room
    paths = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    found: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("streamlib."):
                found.add(str(node.module).split(".")[1])
    return found


def test_drawing_shows_every_room() -> None:
    drawn = {room for arrow in drawn_arrows() for room in arrow}
    assert drawn == rooms()


def test_drawn_arrows_are_imports() -> None:
    arrows = drawn_arrows()
    assert len(arrows) > 20
    assert [(room, other) for room, other in arrows if other not in imported_by(room)] == []


def test_paths_of_the_page_exist() -> None:
    """A path is one from the root, of a package, or the last part of one."""
    files = [path.name for path in ROOT.glob("*.py")]
    for folder in ("streamlib", "parsers", "tests", "lab"):
        files += [path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.*")]
    named = set(re.findall(r"`([\w/]+\.(?:py|lua|css|js))`", PAGE))
    assert len(named) > 40
    missing = [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)]
    assert missing == []
