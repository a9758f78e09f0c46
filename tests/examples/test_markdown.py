"""The Markdown of the web example: what it makes of a text, and that its work is linear."""

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


def run(texts: list[dict[str, Any]], addresses: list[str] | None = None) -> Any:
    """What the page makes of texts; skips the test where there is no Node.js."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    given = json.dumps({"texts": texts, "addresses": addresses or []})
    command = [node, str(SCRIPT), str(PAGE / "markdown.js")]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


RENDERED: Final = {
    "Hello **bold *and* more** `code`": (
        "<p>Hello <strong>bold <em>and</em> more</strong> <code>code</code></p>"
    ),
    "a * b * c_d_e": "<p>a * b * c_d_e</p>",
    "``a ` b`` and `` ` ``": "<p><code>a ` b</code> and <code>`</code></p>",
    "[a](https://x.y/z) [b](javascript:x) https://x.y/a.": (
        "<p><a href=https://x.y/z>a</a> [b](javascript:x) "
        "<a href=https://x.y/a>https://x.y/a</a>.</p>"
    ),
    "# One #\n## Two\ntext": "<h3>One</h3><h4>Two</h4><p>text</p>",
    "#\nnone": "<p>#\nnone</p>",
    "text\n- a\n- b\n  - c": "<p>text</p><ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>",
    "3. a\n4. b": "<ol><li>a</li><li>b</li></ol>",
    "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
    "---\nx": "<hr></hr><p>x</p>",
    "| a | b |\n|---|---|\n| 1 | **2** |": (
        "<div><table><thead><tr><th>a</th><th>b</th></tr></thead>"
        "<tbody><tr><td>1</td><td><strong>2</strong></td></tr></tbody></table></div>"
    ),
    "```py\na\n\nb\n```\nafter": "<pre><code>a\n\nb</code></pre><p>after</p>",
    "text\n```\nopen": "<p>text</p><pre><code>open</code></pre>",
    "> ```\n> a\n> ```\n> b": "<blockquote><pre><code>a</code></pre><p>b</p></blockquote>",
    "one\n\ntwo": "<p>one</p><p>two</p>",
}


def test_text_is_rendered_the_same_in_any_deltas() -> None:
    texts: list[dict[str, Any]] = []
    for text in RENDERED:
        texts += [{"delta": text}, {"pieces": list(text)}, {"pieces": [text[:3], text[3:]]}]
    results = run(texts)["results"]
    for number, (text, html) in enumerate(RENDERED.items()):
        for result in results[3 * number : 3 * number + 3]:
            assert result["html"] == html, text


def test_code_that_grows_shows_each_delta() -> None:
    pieces = ["```\n", *["word "] * 3000]
    result = run([{"pieces": pieces}, {"delta": "".join(pieces)}])["results"]
    assert result[0]["html"] == result[1]["html"]


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
    "hashes": "# a #  # ",
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
"""Texts of which an element repeated many times took quadratic time, or overflowed the stack."""


def assert_linear(small: dict[str, Any], large: dict[str, Any]) -> None:
    """The large text, four times the small one, takes far less than sixteen times as long.

    The first runs compile the page's code; of the others the fastest count. A busy machine spoils
    one try, quadratic code all four.
    """
    for _ in range(4):
        results = run([small, large] * 4)["results"]
        first = min(result["cpu"] for result in results[2::2])
        second = min(result["cpu"] for result in results[3::2])
        if second < 9 * first + 20:
            break
    assert second < 9 * first + 20


@pytest.mark.parametrize("name", HOSTILE)
def test_rendering_is_linear(name: str) -> None:
    """C13: `[` x 16,000 took 290 ms a render."""
    element = HOSTILE[name]
    size = 25_000 // len(element)
    assert_linear({"delta": element * size}, {"delta": element * 4 * size})


@pytest.mark.parametrize("start", ["", "```\n", "- ", "> ", "| a |\n|---|\n| "])
def test_growing_block_is_linear(start: str) -> None:
    """C13: a code block was rendered again with each of its deltas."""
    words = ["word "] * 3_000
    assert_linear({"pieces": [start, *words]}, {"pieces": [start, *words * 4]})


def test_deep_nesting_does_not_overflow() -> None:
    lists = "".join(f"{'  ' * depth}- a\n" for depth in range(300))
    results = run([{"delta": ">" * 100_000 + "a"}, {"delta": lists}])["results"]
    assert len(results) == 2


def test_citation_without_a_host_is_no_link() -> None:
    """C13: the URL `http:` threw and ended the turn."""
    addresses = ["http:", "http://", "https://a.b/c", "javascript:x", "", "//x", "http://[", "x"]
    assert run([], addresses)["addresses"] == [None, None, "a.b", *[None] * 5]
    view = (PAGE / "view.js").read_text(encoding="utf-8")
    assert "new URL(" not in view
