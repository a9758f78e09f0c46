"""The Markdown of the web example, as far as it needs no browser: blocks, and linear work.

What the screen makes of it is in test_browser.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.shared import ROOT

PAGE: Final = ROOT / "examples" / "web" / "page"
SCRIPT: Final = Path(__file__).with_name("markdown.mjs")


def run(texts: list[dict[str, Any]], module: Path) -> list[dict[str, Any]]:
    """What the page makes of texts; skips the test where there is no Node.js."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    given = json.dumps({"texts": texts})
    command = [node, str(SCRIPT), str(module)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module as Node.js wants it: in a folder that says that its files are modules."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    for name in ("page", "vendor"):
        shutil.copytree(ROOT / "examples" / "web" / name, folder / name)
    return folder / "page" / "blocks.js"


RENDERED: Final = {
    "Hello **bold *and* more** `code`": (
        "<p>Hello <strong>bold <em>and</em> more</strong> <code>code</code></p>"
    ),
    "# One #\n\n## Two\ntext": "<h3>One</h3>\n<h4>Two</h4>\n<p>text</p>",
    "text\n- a\n- b\n  - c": "<p>text</p>\n<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>",
    "3. a\n\n\n4. b": '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol>',
    "- a\n\n  b\n- c\n\n1. x": (
        "<ul><li><p>a</p><p>b</p></li><li><p>c</p></li></ul><ol><li>x</li></ol>"
    ),
    "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
    "a\n===\nb\n\n---\nx": "<h3>a</h3><p>b</p><hr><p>x</p>",
    "| a | b |\n|---|--:|\n| 1 | **2** |\n\nend": (
        '<table><thead><tr><th>a</th><th class="right">b</th></tr></thead>'
        '<tbody><tr><td>1</td><td class="right"><strong>2</strong></td></tr></tbody></table>'
        "<p>end</p>"
    ),
    "```txt\na\n\nb\n```\nafter": (
        '<pre><code data-language="txt"><span class="part">a\n\nb</span></code></pre><p>after</p>'
    ),
    "text\n```\nopen": (
        '<p>text</p><pre><code data-language=""><span class="part">open</span></code></pre>'
    ),
    "<b onclick=x>hi</b> ![i](https://x.y/z)": (
        '<p>&lt;b onclick=x&gt;hi&lt;/b&gt; <a href="https://x.y/z">i</a></p>'
    ),
    "[x](javascript:alert(1)) http://a.b": (
        '<p>[x](javascript:alert(1)) <a href="http://a.b">http://a.b</a></p>'
    ),
}


def squeezed(html: str) -> str:
    """HTML without the line breaks between tags."""
    return html.replace(">\n", ">").replace("\n<", "<")


def test_blocks_are_the_same_in_any_deltas(module: Path) -> None:
    texts: list[dict[str, Any]] = []
    for text in RENDERED:
        texts += [{"delta": text}, {"pieces": list(text)}, {"pieces": [text[:3], text[3:]]}]
    results = run(texts, module)
    for number, (text, html) in enumerate(RENDERED.items()):
        for result in results[3 * number : 3 * number + 3]:
            assert squeezed(result["html"]) == squeezed(html), text


HOSTILE: Final = {
    "brackets": "[",
    "links": "[a](http://x",
    "addresses": "http://",
    "ticks": "`a",
    "tick_runs": "`a``a```a````a",
    "stars": "**a ",
    "emphasis": "*a ",
    "underscores": "_a",
    "emphases": "*a* ",
    "headings": "# a\n",
    "quotes": ">",
    "quoted_blanks": "> |a|\n>\n",
    "rules": "- ",
    "blanks": "   ",
    "pipes": "| ",
    "rows": "|a|\n|-|\n",
    "lists": "- a\n",
    "lines": "a\n",
    "fences": "```\na\n",
}
"""Texts of which an element repeated many times takes quadratic time in some renderers."""


def assert_linear(pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]], module: Path) -> None:
    """The second of each pair, four times the first, takes far less than sixteen times as long.

    The first runs compile the page's code; of the others the fastest count. A busy machine spoils
    one try, quadratic code all four.
    """
    slow = dict(pairs)
    for _ in range(4):
        texts = [text for pair in slow.values() for text in pair]
        rounds = run(texts * 2, module)
        for number, name in enumerate(list(slow)):
            smalls = rounds[2 * number :: len(texts)]
            larges = rounds[2 * number + 1 :: len(texts)]
            small = min(result["cpu"] for result in smalls)
            large = min(result["cpu"] for result in larges)
            if large < 9 * small + 20:
                del slow[name]
        if not slow:
            return
    assert list(slow) == []


@pytest.mark.timing
def test_rendering_is_linear(module: Path) -> None:
    """C13: `[` x 16,000 took 290 ms a render."""
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for name, element in HOSTILE.items():
        size = 8_000 // len(element)
        pairs[name] = ({"delta": element * size}, {"delta": element * 4 * size})
    assert_linear(pairs, module)


GROWING: Final = {
    "code": ("```python\n", "x = 1\n"),
    "list": ("", "- an entry\n"),
    "numbers": ("", "1. an entry\n"),
    "table": ("| a | b |\n|---|---|\n", "| 1 | 2 |\n"),
    "paragraphs": ("", "Some words.\n\n"),
}


@pytest.mark.timing
def test_growing_blocks_are_linear(module: Path) -> None:
    """C13: a code block was rendered again with each of its deltas."""
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for name, (start, line) in GROWING.items():
        pairs[name] = ({"pieces": [start, *[line] * 300]}, {"pieces": [start, *[line] * 1200]})
    assert_linear(pairs, module)


def test_open_end_stays_short(module: Path) -> None:
    """What is drawn again with each delta does not grow with the block."""
    texts = [{"pieces": [start, *[line] * 400]} for start, line in GROWING.values()]
    for name, result in zip(GROWING, run(texts, module), strict=True):
        assert result["most"] < 6_000, name


def test_deep_nesting_does_not_overflow(module: Path) -> None:
    lists = "".join(f"{'  ' * depth}- a\n" for depth in range(300))
    assert len(run([{"delta": ">" * 100_000 + "a"}, {"delta": lists}], module)) == 2
