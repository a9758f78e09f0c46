"""What a notebook shows of a text: escaped, without images and tags of the model."""

from __future__ import annotations

import random
from html.parser import HTMLParser
from typing import Any, Final

from markdown_it import MarkdownIt

from streamlib.display.notebook_text import (
    fence,
    folded,
    fragments,
    pre,
    safe_markdown,
    table_html,
    table_markdown,
)
from tests.support.cases import each_case
from tests.support.metrics import figure

RENDERERS: Final = [
    MarkdownIt("commonmark", {"html": True}),
    MarkdownIt("gfm-like", {"html": True, "linkify": False}),
]
OURS: Final = frozenset({"details", "summary", "pre", "code"})
"""Tags that we write; all others come from Markdown, or from the text."""
OF_MARKDOWN: Final = frozenset(
    [
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "em",
        "strong",
        "s",
        "a",
        "hr",
        "br",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ]
)
PIECES: Final = (
    "![x](http://evil.example/?q=1)",
    "![x][ref]",
    "[ref]: http://evil.example/a.png",
    "[![x](http://evil.example/)](http://a.example)",
    "<img src=http://evil.example/>",
    '<IMG SRC="http://evil.example/">',
    "<script>alert(1)</script>",
    "</pre></details>",
    "<!--",
    "-->",
    "`",
    "``",
    "```",
    "```python",
    "~~~",
    "````",
    "   ```",
    "      ```",
    "- ```",
    "> ```",
    "> ~~~",
    "1. a",
    "   b",
    "    code",
    "\t",
    "\n",
    "\n\n",
    "\r",
    "\u2028",
    "\x0c",
    "\\",
    "$",
    "$$",
    "!",
    "[",
    "](http://evil.example/)",
    "&lt;img src=x&gt;",
    "&#33;&#91;x](http://evil.example/)",
    "text",
    "`a![x](http://evil.example/)`",
    "| a | b |",
    "|---|---|",
)


class Tags(HTMLParser):
    """The tags of an HTML text and their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def unsafe(markdown: str) -> list[str]:
    """Tags that neither Markdown nor we would write, as renderers find them."""
    found: list[str] = []
    for renderer in RENDERERS:
        tags = Tags(renderer.render(markdown))
        found += sorted(tags.names - OURS - OF_MARKDOWN)
        found += sorted(tags.attributes - {"href", "style", "class", "start", "title"})
    return found


@each_case("piece", PIECES[:10])
def test_a_renderer_makes_no_tag_of_the_text(piece: str) -> None:
    for text in (piece, f"a {piece} b", f"> {piece}", f"- {piece}", f"# {piece}\n{piece}"):
        assert unsafe(safe_markdown(text)) == []


def test_no_mix_of_fences_lists_and_images_makes_a_tag() -> None:
    """Random texts, rendered by two dialects of another library's parser."""
    rng = random.Random(16)
    rendered = 0
    for _ in range(300):
        separator = rng.choice(["", "\n", "\n", "\n\n"])
        text = separator.join([rng.choice(PIECES) for _ in range(rng.randrange(1, 12))])
        markdown = safe_markdown(text)
        assert unsafe(markdown) == [], repr(text)
        rendered += 1
    figure("hostile Markdown texts", rendered)


def test_the_check_finds_what_is_not_made_safe() -> None:
    assert "img" in unsafe(PIECES[0])
    assert "script" in unsafe(PIECES[6])


def test_markdown_stays_markdown() -> None:
    text = "# A\n\n- **b** `vec![1] < 2`\n\n```rust\nlet v = vec![1] < 2;\n```\n\n[c](http://d.example)"
    html = RENDERERS[0].render(safe_markdown(text))
    for expected in (
        "<h1>A</h1>",
        "<strong>b</strong>",
        "<code>vec![1] &lt; 2</code>",
        '<pre><code class="language-rust">let v = vec![1] &lt; 2;',
        '<a href="http://d.example">c</a>',
    ):
        assert expected in html


def test_code_cannot_end_its_fence() -> None:
    code = "a\n````\n![x](http://evil.example/)\n````\nb"
    assert [part.text for part in fragments(fence(code))] == [code]
    assert "img" not in unsafe(fence(code))


def test_an_open_block_of_code_is_code() -> None:
    assert [(part.text, part.is_code) for part in fragments("a\n```py\nb")] == [
        ("a", False),
        ("b", True),
    ]


def test_html_is_escaped() -> None:
    hostile = "</pre><script>alert('1')</script>\ud800 & $x$\n\n![x](http://evil.example/)"
    for html in (pre(hostile), folded("<b>", hostile), table_html(("<i>",), [(hostile,)])):
        assert Tags(html).names <= OURS | {"table", "tr", "th", "td"}
        html.encode()
    assert "\n" not in folded("a", hostile)
    assert unsafe(f"a\n\n{folded('a', hostile)}\n\nb") == []
    assert unsafe(table_markdown(("a", "<b>"), [(hostile, "|")])) == []


def test_a_table_keeps_its_cells() -> None:
    html = RENDERERS[1].render(table_markdown(("a", "b|c"), [("1,000", "*x*")]))
    for cell in ("<th>a</th>", "<th>b|c</th>", "<td>1,000</td>", "<td>*x*</td>"):
        assert cell in html
