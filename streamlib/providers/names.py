"""Ids and tool names that a wire accepts.

Names are changed without collisions, in the same way for a call and its output, and reversibly for
tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct


class Charset(Struct, frozen=True):
    """Which names a wire accepts.

    Attributes:
        allowed: characters, as the inside of a regular expression's class.
        longest: maximum number of characters.
        lead: the same as `allowed` for the first character, where it has a rule of its own.
        shortest: minimum number of characters.
    """

    allowed: str = "a-zA-Z0-9_-"
    longest: int = 64
    lead: str | None = None
    shortest: int = 1


def fit_names(names: Iterable[str], charset: Charset) -> dict[str, str]:
    """Name -> a name that the wire accepts, for those that change; no two become the same."""
    names = list(dict.fromkeys(names))
    taken = {name for name in names if _fits(name, charset)}
    changed: dict[str, str] = {}
    for name in names:
        if name not in taken:
            changed[name] = _fitted(name, charset, taken)
            taken.add(changed[name])
    return changed


def _fits(name: str, charset: Charset) -> bool:
    if not charset.shortest <= len(name) <= charset.longest:
        return False
    if charset.lead and not re.match(f"[{charset.lead}]", name):
        return False
    rest = name
    if charset.lead:
        rest = name[1:]
    return re.fullmatch(f"[{charset.allowed}]*", rest) is not None


def _fitted(name: str, charset: Charset, taken: set[str]) -> str:
    if charset.shortest > 1:
        return _digest(name, charset, taken)
    clean = re.sub(f"[^{charset.allowed}]", "_", name) or "_"
    if charset.lead and not re.match(f"[{charset.lead}]", clean):
        clean = f"_{clean}"
    if len(clean) <= charset.longest and clean not in taken:
        return clean
    # A digest of the name, so that it is the same in every request of a conversation.
    digest = _hex_digest(name)[:8]
    return f"{clean[: charset.longest - 9]}_{digest}"


def _digest(name: str, charset: Charset, taken: set[str]) -> str:
    """A name of one fixed length (Mistral's call ids): hexadecimal digits that depend on the
    original name alone, so that an id is the same in every request."""
    digest = _hex_digest(name)[: charset.longest]
    while digest in taken:
        name += "#"
        digest = _hex_digest(name)[: charset.longest]
    return digest


def _hex_digest(name: str) -> str:
    # Few names need it, and it loads OpenSSL.
    import hashlib

    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
