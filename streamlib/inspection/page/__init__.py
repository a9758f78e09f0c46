"""An inspection as one HTML file that needs only a browser.

The file is `shell.html` with the style, the scripts and the data inserted. It loads nothing: its
policy (``Content-Security-Policy``) allows no address, and only the two scripts whose digests it
names. Scripts and data are deflated; the first script (`loader.js`) unpacks the others. Content of
a recording is only in the packed data, and the scripts insert it as text nodes.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

SCRIPTS: Final = (
    "dom.js",
    "numbers.js",
    "model.js",
    "unpack.js",
    "bytes.js",
    "json.js",
    "verdict.js",
    "timeline.js",
    "state.js",
    "rows.js",
    "frames.js",
    "frame.js",
    "details.js",
    "difference.js",
    "position.js",
    "main.js",
)
"""The scripts that `loader.js` unpacks, in this order: each uses the ones before it."""


class PageEntry(NamedTuple):
    """A response that the page shows."""

    label: str
    """Its name in the page's list."""
    document: bytes
    """The inspection as JSON, without the body."""
    body: bytes | None
    """The captured bytes, if they may be shown."""


def page(entries: Sequence[PageEntry], difference: bytes | None = None) -> str:
    """Makes the page, as the text of an HTML file.

    Args:
        entries: the responses to show; the reader can choose among them.
        difference: the difference of the first two as JSON, if there is one.
    """
    blocks = [packed("names", msgspec.json.encode([entry.label for entry in entries]))]
    for number, entry in enumerate(entries):
        # The bytes are packed separately: as base64 inside the JSON they would hardly deflate.
        blocks.append(packed(f"inspection-{number}", entry.document))
        if entry.body is not None:
            blocks.append(packed(f"body-{number}", entry.body))
    if difference is not None:
        blocks.append(packed("difference", difference))
    return assemble(blocks)


def packed(part: str, content: bytes) -> str:
    """A block of data for the page: deflated, in base64, so that it cannot end its element."""
    data = base64.b64encode(zlib.compress(content, 9)).decode("ascii")
    return f'<script type="application/octet-stream" data-part="{part}">{data}</script>'


def assemble(blocks: Sequence[str]) -> str:
    """The shell with these blocks of data inserted."""
    return shell().replace("<!--data-->", "".join(blocks))


@cache
def shell() -> str:
    """The page without data."""
    style = drawing_style() + compact(text_of("style.css"))
    loader = text_of("loader.js")
    scripts = '"use strict";\n' + "".join(text_of(name) for name in SCRIPTS)
    # A hash allows exactly this text; `unsafe-inline` would also allow injected text.
    policy = (
        "default-src 'none'; "
        f"script-src '{digest(loader)}' '{digest(scripts)}'; "
        f"style-src '{digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = text_of("shell.html")
    page = page.replace("<!--policy-->", policy)
    page = page.replace("/*style*/", style)
    page = page.replace("<!--patterns-->", patterns())
    page = page.replace("<!--scripts-->", packed("script", scripts.encode()))
    return page.replace("/*loader*/", loader)


def digest(text: str) -> str:
    """The source expression that allows one inline text in the policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def drawing_style() -> str:
    """The style of colours and bars that the page shares with the charts of `streamlib bench`."""
    return compact(text_of("drawing.css"))


def compact(style: str) -> str:
    """A style without comments and line breaks, because the page does not deflate it."""
    return " ".join(re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL).split())


def patterns() -> str:
    """The fill patterns of the bars, as an SVG element ``defs``."""
    return text_of("patterns.svg")


@cache
def text_of(name: str) -> str:
    """The text of a file of the page."""
    return (files("streamlib.inspection.page") / "files" / name).read_text(encoding="utf-8")
