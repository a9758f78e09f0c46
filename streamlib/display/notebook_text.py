"""Text that a notebook can show: as HTML and as Markdown, escaped, without remote images.

What a model writes is not trusted: an image of another server would tell it what was said, and a
tag would run in the reader's page. HTML is escaped whole, within ``<pre>``, where notebooks look
for no formulas. Markdown stays Markdown: fences are written anew, so that no renderer can take
their boundaries for others; everything else can make neither a tag, nor an image, nor a fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape as escape_html
from typing import Final, NamedTuple

_FENCE: Final = re.compile(r"[ \t]*(?P<run>`{3,}|~{3,})(?P<info>[^`\n]*)")
"""A line that begins or ends a block of code, at any indentation."""

_LANGUAGE: Final = re.compile(r"[A-Za-z0-9_+#.-]{1,40}")

_CODE_SPAN: Final = re.compile(r"(?<!`)(?P<run>`{1,2})(?!`)(?P<code>[^`\n]+)(?P=run)(?!`)")

_PUNCTUATION: Final = re.compile(r"[!\"#$&'()*+/:<=>@\[\\\]^_`{|}~]")
"""Characters that mean something to one of the Markdowns of notebooks."""

_ACTIVE: Final = re.compile(
    r"""
    <                   # a tag
    | (?<=!)\[          # an image
    | `                 # code, which is written as a tag of our own
    | (?<=~)~           # a fence
    | \\(?=(?:style|require|class|cssId|href|includegraphics|unicode)\b)  # formulas with HTML
    """,
    re.VERBOSE,
)
"""Characters that would do something in a renderer of Markdown or of formulas."""


class Fragment(NamedTuple):
    """Part of a Markdown text: a block of code, or anything else."""

    text: str
    is_code: bool
    language: str = ""


def shown(text: str) -> str:
    """The text in valid Unicode, as a notebook's messages need it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def pre(text: str) -> str:
    """HTML of a text as it is."""
    return f'<pre style="white-space:pre-wrap;margin:0">{escape_html(shown(text))}</pre>'


def folded(label: str, text: str) -> str:
    """HTML of a text behind a label that unfolds it; one line, so that it fits into Markdown."""
    content = pre(text).replace("\n", "&#10;").replace("\r", "&#13;").replace("$", "&#36;")
    return f"<details><summary>{escape_html(label)}</summary>{content}</details>"


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table."""
    lines = [_row("th", header)]
    for row in rows:
        lines.append(_row("td", row))
    return f"<table>{''.join(lines)}</table>"


def table_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [_line(header), f"|{'---|' * len(header)}"]
    for row in rows:
        lines.append(_line(row))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join([_entities(cell) for cell in cells])} |"


def _row(tag: str, cells: Sequence[str]) -> str:
    columns = [f"<{tag}>{escape_html(shown(cell))}</{tag}>" for cell in cells]
    return f"<tr>{''.join(columns)}</tr>"


# --- Markdown ---


def fence(code: str, language: str = "") -> str:
    """A block of code, behind a fence that the code cannot end."""
    longest = max([len(run) for run in re.findall("`+", code)], default=0)
    run = "`" * max(3, longest + 1)
    return f"{run}{language}\n{shown(code)}\n{run}"


def safe_markdown(text: str) -> str:
    """A model's Markdown without tags, images and active formulas."""
    blocks: list[str] = []
    for fragment in fragments(text):
        if fragment.is_code:
            blocks.append(fence(fragment.text, fragment.language))
        else:
            blocks.append(_safe_text(shown(fragment.text)))
    return "\n\n".join(blocks)


def fragments(text: str) -> Iterator[Fragment]:
    """The blocks of code in a Markdown text, and what is between them, in order."""
    lines: list[str] = []
    run = ""  # of the fence that is open
    language = ""
    for line in text.splitlines():
        match = _FENCE.fullmatch(line)
        if run:
            if match is not None and _ends(run, match):
                yield Fragment("\n".join(lines), is_code=True, language=language)
                lines, run = [], ""
            else:
                lines.append(line)
        elif match is not None:
            if lines:
                yield Fragment("\n".join(lines), is_code=False)
            first = match["info"].split()[:1]
            language = first[0] if first and _LANGUAGE.fullmatch(first[0]) else ""
            lines, run = [], match["run"]
        else:
            lines.append(line)
    if lines or run:
        yield Fragment("\n".join(lines), is_code=bool(run), language=language)


def _ends(run: str, match: re.Match[str]) -> bool:
    """Whether a line ends the fence that `run` opened."""
    same = match["run"][0] == run[0] and len(match["run"]) >= len(run)
    return same and not match["info"].strip()


def _safe_text(text: str) -> str:
    parts: list[str] = []
    end = 0
    for span in _CODE_SPAN.finditer(text):
        parts.append(_ACTIVE.sub(_entity, text[end : span.start()]))
        parts.append(f"<code>{_entities(span['code'])}</code>")
        end = span.end()
    parts.append(_ACTIVE.sub(_entity, text[end:]))
    return "".join(parts)


def _entities(text: str) -> str:
    """A text in which no character means anything to Markdown."""
    return _PUNCTUATION.sub(_entity, shown(text).replace("\n", " "))


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
