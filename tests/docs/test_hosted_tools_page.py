"""docs/hosted-tools.md has every declaration of the table, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamlib.request.hosted_tools import (
    PROVIDER_TOOLS,
    WIRE_TOOLS,
    WITHOUT_NAMESPACES,
    Declaration,
    Tools,
)
from streamlib_parsers.hosted_tools import HOSTED_NAMES
from tests.support.shared import ROOT

PAGE: Final = (ROOT / "docs" / "hosted-tools.md").read_text(encoding="utf-8")
WORDS: Final = {
    "max_uses": "uses",
    "allowed_domains": "only domains",
    "blocked_domains": "blocked domains",
    "location": "location",
    "stores": "stores",
}


def cell(declaration: Declaration | None) -> str:
    """The type that is sent, and the options that the API has."""
    if declaration is None:
        return "—"
    options = [word for field, word in WORDS.items() if getattr(declaration, field)]
    if declaration.models:
        options.append(f"models with {', '.join(declaration.models)}")
    text = f"`{declaration.types[0]}`"
    if options:
        text += f": {', '.join(options)}"
    return text


def rows() -> Iterator[str]:
    named: list[tuple[str, Tools]] = []
    for wire_api, tools in WIRE_TOOLS.items():
        named.append((f"{wire_api}, other providers", tools))
        for (wire, provider), own in PROVIDER_TOOLS.items():
            if wire == wire_api:
                named.append((f"{wire_api}, `{provider}`", own))
    for name, tools in named:
        cells = [cell(tools.get(tool)) for tool in HOSTED_NAMES]
        yield f"| {' | '.join([name, *cells])} |"


def test_page_has_the_table() -> None:
    section = PAGE.partition("## The table")[2].partition("## Native tools")[0]
    table = [line for line in section.splitlines() if line.startswith("| ")]
    assert table[1:] == list(rows())


def test_page_names_the_providers_without_namespaces() -> None:
    for provider in WITHOUT_NAMESPACES:
        assert f"`{provider}`" in PAGE.partition("## Namespaces")[2]
