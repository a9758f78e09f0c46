"""Runs the examples of README and of every page, and compares what they print with the page.

A ```python block is executed in a namespace of its own; a ```text block right after it is its
output. A block that needs a key or a server has `<!-- not run: why -->` on the line above.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

import streamlib.providers
from streamlib.testing import running
from tests.support.shared import ROOT

BLOCK = re.compile(
    r"^(?P<mark><!-- not run:[^\n]*-->\n)?"
    r"```python\n(?P<code>.*?)^```\n"
    r"(?:\s*```text\n(?P<printed>.*?)^```)?",
    re.DOTALL | re.MULTILINE,
)

FIRST_PAGES = ["README.md", "docs/index.md", "docs/quick-start.md"]
"""Pages whose first program is for a key: here the loopback provider responds to it."""

PAGES = [
    ROOT / "README.md",
    ROOT / "parsers" / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]


def blocks() -> list[object]:
    """The examples of every page, named by page and line."""
    examples: list[object] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            if block["mark"]:
                continue
            line = text.count("\n", 0, block.start("code"))
            name = f"{page.relative_to(ROOT)}:{line}"
            examples.append(pytest.param(page, line, block["code"], block["printed"], id=name))
    return examples


@pytest.fixture
def ctrl_c_interrupts() -> Iterator[None]:
    """A shell that runs the tests in the background has Ctrl-C ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("ctrl_c_interrupts")
@pytest.mark.parametrize(("page", "line", "code", "printed"), blocks())
def test_example_prints_what_its_page_shows(
    page: Path,
    line: int,
    code: str,
    printed: str | None,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write files
    monkeypatch.setattr(streamlib.providers, "_registered", {})  # or register a provider
    # Without this module's own `from __future__`: a user's program has none either.
    program = compile("\n" * line + code, page, "exec", dont_inherit=True)
    exec(program, {"__name__": "__example__"})
    assert printed is None or capsys.readouterr().out == printed


def test_readme_has_an_example_that_runs() -> None:
    assert any("README.md" in str(block) for block in blocks())


@pytest.mark.parametrize("name", FIRST_PAGES)
def test_first_program_with_a_real_client_prints_the_response(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    [program] = [block for block in BLOCK.finditer(text) if "needs a key" in (block["mark"] or "")]
    [made] = re.findall(r"streamlib\.(\w*Client)\(\)", program["code"])
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running()) as url:
        client = partial(getattr(streamlib, made), base_url=url, api_key="key")
        monkeypatch.setattr(streamlib, made, client)
        exec(compile(program["code"], name, "exec", dont_inherit=True), {"__name__": "__example__"})
    assert "You said: Name three rivers" in capsys.readouterr().out
