"""Finds the target of a request: which wire, which address. Addresses with places in them (`{region}`) are filled from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from streamlib.errors import invalid_request
from streamlib.providers import Provider, for_model
from streamlib.providers.models import Traits, traits
from streamlib.request.target import Target
from streamlib_parsers.items import WireApi


def resolve_target(
    provider: Provider,
    model: str,
    wire_api: WireApi | None = None,
    base_url: str | None = None,
    models: Mapping[str, Traits] | None = None,
    account: str | None = None,
) -> Target:
    """The target of a request; a wire the provider does not offer is `invalid_request`."""
    provider = for_model(provider, model)
    chosen = wire_api or provider.wires[0]
    if chosen not in provider.wires:
        raise invalid_request(
            f"{provider.name} does not offer {chosen}: it offers {', '.join(provider.wires)}",
            "wire_api",
        )
    base = base_url or provider.wire_urls.get(chosen) or provider.base_url
    if not base:
        raise invalid_request(f"{provider.name} needs base_url=", "base_url")
    if not model or any(ord(char) < 0x21 or ord(char) == 0x7F for char in model):
        raise invalid_request("a model's name has no blanks or control characters", "model")
    return Target(
        provider, model, chosen, _fill_url(base, provider), traits(model, models), account
    )


URL_VARIABLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*")
"""What may stand for a `{name}` in a URL: no slash, so that a host stays a host."""


def _fill_url(url: str, provider: Provider) -> str:
    """The URL with the provider's `{names}` filled from the environment."""
    for name, variables in provider.url_variables.items():
        slot = f"{{{name}}}"
        if slot in url:
            url = url.replace(slot, _url_variable(name, variables, provider.name))
    for wrong, right in provider.url_replacements.items():
        url = url.replace(wrong, right)
    return url


def _url_variable(name: str, variables: tuple[str, ...], provider: str) -> str:
    value = next(
        (value for variable in variables if (value := os.environ.get(variable, "").strip())), None
    )
    if value is None:
        raise invalid_request(
            f"{provider} needs a {name}: set {' or '.join(variables)}, or give base_url=", name
        )
    if not URL_VARIABLE.fullmatch(value):
        raise invalid_request(
            f"{provider}: the {name} in the environment cannot stand in a URL", name
        )
    return value
