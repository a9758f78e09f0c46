"""`streamlib providers`: the providers, their wires, and which of their keys are set."""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

import msgspec

from streamlib.cli.tables import table, terminal_width
from streamlib.client.auth import variables_of
from streamlib.providers import Provider, known

DESCRIPTION: Final = """\
Lists the providers: their wires, the default first, and the environment
variables of their keys. No key is shown, and nothing is sent."""

EXAMPLES: Final = """examples:
  streamlib providers
  # one in detail, or those whose name or address contains a text
  streamlib providers mistral
  # one object a line, for programs
  streamlib providers --json

exit code: 0 success, 1 no provider matches, 2 usage error
"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "query", nargs="?", default="", metavar="QUERY", help="a part of the name or the address"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object a provider")


def run(arguments: argparse.Namespace) -> int:
    """Lists the providers that match; for a single one, everything that is known."""
    providers = matching(arguments.query)
    if arguments.json:
        for provider in providers:
            print(msgspec.json.encode(facts(provider)).decode())
    elif len(providers) == 1:
        for line in table(("provider", "facts"), details(providers[0]), terminal_width())[1:]:
            print(line)
    elif providers:
        for line in table(("provider", "key", "wires"), map(row, providers), terminal_width()):
            print(line)
    return 0 if providers else 1


def matching(query: str) -> list[Provider]:
    """Providers whose name, alias or address contains a text, each once, by name."""
    providers: dict[str, Provider] = {}
    for name, provider in known().items():
        if query.lower() in f"{name} {provider.base_url}".lower():
            providers[provider.name] = provider
    return sorted(providers.values(), key=lambda provider: provider.name)


def facts(provider: Provider) -> dict[str, Any]:
    """The JSON object of a provider."""
    return {
        "provider": provider.name,
        "aliases": provider.aliases,
        "wires": provider.wires,
        "base_url": provider.base_url,
        "key_variables": variables_of(provider),
        "key_set": set_variables(provider),
        "key_optional": provider.key_optional or provider.auth == "none",
    }


def set_variables(provider: Provider) -> list[str]:
    """The variables of a provider's key that are set. Their values are not read."""
    return [name for name in variables_of(provider) if os.environ.get(name)]


def row(provider: Provider) -> tuple[str, str, str]:
    """The cells of a provider in the table."""
    return provider.name, key_state(provider), " ".join(provider.wires)


def key_state(provider: Provider) -> str:
    """The variable that holds the key, or the one to set."""
    present = set_variables(provider)
    variables = variables_of(provider)
    if present:
        return f"{present[0]} is set"
    if not variables:
        return "needs none"
    if provider.key_optional:
        return f"{variables[0]}, not needed"
    return variables[0]


def details(provider: Provider) -> list[tuple[str, str]]:
    """Everything that is known about a provider, as pairs of a name and a text."""
    lines = [
        ("name", ", ".join((provider.name, *provider.aliases))),
        ("wires", " ".join(provider.wires)),
        ("key", key_state(provider)),
        ("address", provider.base_url or "--base-url names it"),
    ]
    others = variables_of(provider)[1:]
    if others:
        lines.insert(3, ("or", " or ".join(others)))
    return lines
