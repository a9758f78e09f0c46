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
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlib.inspection.difference import Difference
    from streamlib.inspection.document import Inspection

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


def render(inspections: Sequence[Inspection], difference: Difference | None = None) -> str:
    """Makes the page.

    Args:
        inspections: The responses to show; the reader can choose among them.
        difference: The difference of the first two, which must then be the only ones.

    Returns:
        The text of an HTML file, to be written as UTF-8.

    Raises:
        ValueError: There is no inspection, or a difference without exactly two inspections.
    """
    from streamlib.inspection.document import encode

    if not inspections:
        raise ValueError("there is nothing to show: pass an inspection")
    if difference is not None and len(inspections) != 2:
        raise ValueError(f"a difference is of two inspections, not of {len(inspections)}")
    blocks = [packed("names", msgspec.json.encode([_label(each) for each in inspections]))]
    for number, inspection in enumerate(inspections):
        # The bytes are packed separately: as base64 inside the JSON they would hardly deflate.
        document = encode(inspection, with_body=False)
        blocks.append(packed(f"inspection-{number}", document))
        if inspection.body is not None:
            blocks.append(packed(f"body-{number}", inspection.body))
    if difference is not None:
        blocks.append(packed("difference", msgspec.json.encode(difference)))
    return assemble(blocks)


def _label(inspection: Inspection) -> str:
    """The name of a response in the list of the page."""
    return f"{inspection.source.name} {inspection.outcome.text}".strip()


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
