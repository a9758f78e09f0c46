"""Ids and names that a wire accepts: sanitised without collisions, the same for a call and its output, reversible for tools."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import count

from msgspec import Struct


class Charset(Struct, frozen=True):
    """What a wire takes: characters (a regular expression class) and length. `lead`: what the first character must be."""

    allowed: str = "a-zA-Z0-9_-"
    longest: int = 64
    lead: str | None = None
    shortest: int = 1


def fit_names(names: Iterable[str], charset: Charset) -> dict[str, str]:
    """name -> a name the wire takes, only for those that change; two names never meet in one."""
    names = list(dict.fromkeys(names))
    taken = {name for name in names if _fits(name, charset)}
    changed: dict[str, str] = {}
    for name in names:
        if name not in taken:
            changed[name] = _free(name, charset, taken)
            taken.add(changed[name])
    return changed


def _fits(name: str, charset: Charset) -> bool:
    lead = f"[{charset.lead}]" if charset.lead else ""
    least, most = (length - bool(charset.lead) for length in (charset.shortest, charset.longest))
    return re.fullmatch(f"{lead}[{charset.allowed}]{{{least},{most}}}", name) is not None


def _free(name: str, charset: Charset, taken: set[str]) -> str:
    if charset.shortest > 1:
        return _digest(name, charset, taken)
    clean = re.sub(f"[^{charset.allowed}]", "_", name) or "_"
    if charset.lead and not re.match(f"[{charset.lead}]", clean):
        clean = f"_{clean}"
    if len(clean) <= charset.longest and clean not in taken:
        return clean
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{clean[: charset.longest - 9]}_{digest}"


def _digest(name: str, charset: Charset, taken: set[str]) -> str:
    """For ids of one length: hexadecimal digits, made of the name alone, so that an id is the same in every request."""
    digests = (
        hashlib.sha256(f"{name}{'#' * n}".encode("utf-8", "surrogatepass")).hexdigest()[
            : charset.longest
        ]
        for n in count()
    )
    return next(digest for digest in digests if digest not in taken)
