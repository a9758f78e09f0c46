"""Joins base64 text that arrives in fragments, as audio and encrypted reasoning do."""

from __future__ import annotations

import base64
from collections.abc import Sequence


def joined_base64(fragments: Sequence[str]) -> str:
    """One base64 text.

    A fragment may be encoded by itself, with padding in the middle of the text; fragments that are
    not base64 are joined unchanged.
    """
    joined = "".join(fragments)
    if all(len(part) % 4 == 0 and not part.endswith("=") for part in fragments[:-1]):
        return joined
    try:
        data = b"".join(base64.b64decode(fragment, validate=True) for fragment in fragments)
    except ValueError:  # binascii's, and that of a text which is not ASCII
        return joined
    return base64.b64encode(data).decode("ascii")
