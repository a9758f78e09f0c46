"""Base64 that comes in pieces, as audio and sealed thoughts do: one text of them all."""

from __future__ import annotations

import base64
from collections.abc import Sequence


def joined_base64(pieces: Sequence[str]) -> str:
    """The whole. A piece may be encoded by itself, with padding in the middle; what is no base64 is joined as it stands."""
    as_it_stands = "".join(pieces)
    if all(len(piece) % 4 == 0 and not piece.endswith("=") for piece in pieces[:-1]):
        return as_it_stands
    try:
        return base64.b64encode(
            b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
        ).decode("ascii")
    except ValueError:  # of binascii, and of a text that is not even ASCII
        return as_it_stands
