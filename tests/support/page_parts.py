"""Reads the data that is packed into a page of the inspector."""

from __future__ import annotations

import base64
import re
import zlib
from typing import Final

BLOCK: Final = r'<script type="application/octet-stream" data-part="([\w-]+)">([^<]*)</script>'
"""A block of data: its name and its base64."""


def parts(page: str, name: str) -> list[bytes]:
    """The unpacked blocks of a page with this name."""
    blocks = re.findall(BLOCK, page)
    return [unpacked(data) for part, data in blocks if part == name]


def unpacked(data: str) -> bytes:
    """The content of a block."""
    return zlib.decompress(base64.b64decode(data))
