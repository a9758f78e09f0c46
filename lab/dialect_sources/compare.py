"""What a server registers that our dialects do not name, and what they name that is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from lab.dialect_sources.registered import Registered
from lab.dialect_sources.sources import DIALECT_SOURCES, DialectSource

NOT_READ: Final[Mapping[str, str]] = {
    "beam": "channels with XML arguments of their own; no model without a server that parses them",
    "hf": "reads a grammar that the checkpoint brings along",
    "response_template": "reads a grammar that the checkpoint brings along",
    "inkling": "typed blocks between special tokens",
    "k2_horizon": "three forms in tags of its own, chosen by the request",
    "muse": "messages by recipient, calls in <atem:invoke>",
    "muse_glimmer": "messages by recipient, calls in <atem:invoke>",
    "musespark1x": "messages by recipient, calls in <atem:invoke>",
    "plamo3": "tokens of its own around name and JSON",
    "xlam": "a bare JSON array, or one in any of four fences",
}
"""Parsers whose form no dialect reads, and what it is."""


class Comparison(NamedTuple):
    """One server."""

    version: str
    known: tuple[str, ...]
    """Parsers that a dialect names."""
    new: tuple[str, ...]
    """Parsers that neither a dialect nor `NOT_READ` names."""
    gone: tuple[str, ...]
    """Parsers that a dialect names and the server does not register any more."""


def compare(server: str, registered: Registered) -> Comparison:
    """Compares our sources with what a server registers.

    Args:
        server: `vLLM` or `SGLang`.
        registered: its parsers.
    """
    sources = sources_of(server)
    named_parsers = {name for source in sources for name in source.parsers}
    named_reasoning = {name for source in sources for name in source.reasoning}
    known: list[str] = []
    new: list[str] = []
    gone: list[str] = []
    for kind, named, names in (
        ("calls", named_parsers, registered.parsers),
        ("reasoning", named_reasoning, registered.reasoning),
    ):
        known += [f"{name} ({kind})" for name in names if name in named]
        new += [f"{name} ({kind})" for name in names if name not in named | NOT_READ.keys()]
        gone += [f"{name} ({kind})" for name in sorted(named.difference(names))]
    return Comparison(registered.version, tuple(known), tuple(new), tuple(gone))


def sources_of(server: str) -> list[DialectSource]:
    """The sources of all dialects in a server."""
    return [
        source
        for sources in DIALECT_SOURCES.values()
        for source in sources
        if source.title.startswith(server)
    ]
