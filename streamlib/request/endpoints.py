"""Resolves the target of a request: wire API and base URL.

A base URL with variables (`{region}`) is filled from the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from streamlib.providers import Provider, find, for_model
from streamlib.providers.models import Traits, traits
from streamlib.request.target import Target
from streamlib_parsers.items import WireApi
from streamlib_parsers.stream_error import invalid_request

URL_VARIABLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*")
"""What may stand for a `{name}` in a URL: no slash, so that a host stays a host."""

LONGEST_MODEL: Final = 2048
"""Characters of a model's name: the longest are ARNs of Bedrock. Names are kept in caches."""

_BLANK_OR_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def find_service(
    model: str, provider: str | Provider | None, known: Iterable[Provider]
) -> tuple[Provider, str]:
    """The provider and the model name; the provider may be named, or one of the caller's own."""
    if isinstance(provider, Provider):
        return find(model, provider.name, (*known, provider))
    return find(model, provider, known)


def resolve_target(
    provider: Provider,
    model: str,
    wire_api: WireApi | None = None,
    base_url: str | None = None,
    models: Mapping[str, Traits] | None = None,
    account: str | None = None,
) -> Target:
    """The target of a request.

    Args:
        provider: its values are used as they are for this model (`Provider.model_overrides`).
        model: the model's name, without the provider's.
        wire_api: None takes the provider's first wire.
        base_url: None takes the provider's own.
        models: traits of models that win over the shipped ones, by name prefix.
        account: sent in the provider's account header, and part of the origin.

    Raises:
        StreamError: `invalid_request`, where the provider lacks the wire, a base URL is missing,
            or the model's name could not be in a URL.
    """
    provider = for_model(provider, model)
    chosen = wire_api or provider.wires[0]
    if chosen not in provider.wires:
        offered = ", ".join(provider.wires)
        raise invalid_request(
            f"{provider.name} does not offer {chosen}: it offers {offered}", "wire_api"
        )
    check_base_url(base_url)
    base = base_url or provider.wire_urls.get(chosen) or provider.base_url
    if not base:
        raise invalid_request(f"{provider.name} needs base_url=", "base_url")
    if not model:
        raise invalid_request("'model' is missing: it names the model", "model")
    if len(model) > LONGEST_MODEL:
        message = f"a model's name has at most {LONGEST_MODEL} characters"
        raise invalid_request(message, "model")
    if _BLANK_OR_CONTROL.search(model):
        raise invalid_request("a model's name has no blanks or control characters", "model")
    if _SURROGATE.search(model):
        raise invalid_request(f"a model's name is valid Unicode, not {model!r:.100}", "model")
    # Percent-encoding leaves dots as they are: in the path of Bedrock or Gemini, HTTP libraries
    # and proxies would resolve such a segment to another URL.
    if {".", ".."} & set(model.split("/")):
        raise invalid_request(f"{model!r} is not a model: it would change the URL's path", "model")
    url = _fill_url(base, provider)
    return Target(provider, model, chosen, url, traits(model, models), account)


def check_base_url(base_url: str | None) -> None:
    """Refuses a base URL to which no path could be added.

    Raises:
        StreamError: `invalid_request`; it is not http or https, or has a query or a fragment. What
            a provider needs in its query (Azure: api-version) its own value adds.
    """
    if not base_url:
        return
    if not isinstance(base_url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"base_url is a text, not {base_url!r:.100}")
    for mark, kind in (("?", "query"), ("#", "fragment")):
        if mark in base_url:
            raise invalid_request(
                f"base_url has a {kind}, {mark!r}: end it before, the paths of requests follow it",
                "base_url",
            )
    if not base_url.lower().startswith(("http://", "https://")):
        raise invalid_request("base_url: a URL must begin with http:// or https://", "base_url")


def url_below(url: str, end: str) -> str:
    """The URL with an end added to its path: a query of the URL stays behind it."""
    path, mark, query = url.partition("?")
    return f"{path}{end}{mark}{query}"


def _fill_url(url: str, provider: Provider) -> str:
    """The URL with the provider's variables filled from the environment."""
    for name, variables in provider.url_variables.items():
        slot = f"{{{name}}}"
        if slot in url:
            url = url.replace(slot, _url_variable(name, variables, provider.name))
    for wrong, right in provider.url_replacements.items():
        url = url.replace(wrong, right)
    return url


def _url_variable(name: str, variables: tuple[str, ...], provider: str) -> str:
    """The first of the environment variables that is set."""
    value = ""
    for variable in variables:
        value = os.environ.get(variable, "").strip()
        if value:
            break
    if not value:
        options = " or ".join(variables)
        raise invalid_request(f"{provider} needs a {name}: set {options}, or give base_url=", name)
    if not URL_VARIABLE.fullmatch(value):
        raise invalid_request(
            f"{provider}: the {name} in the environment is no part of a URL", name
        )
    return value
