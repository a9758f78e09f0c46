"""Providers: values, not conditionals. One file a provider, each holding one `Provider` called `PROVIDER`.

`find("anthropic:claude-opus-5")` gives the provider and the model name; `register` adds one of your own.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from streamlib.errors import invalid_request
from streamlib.names import Charset
from streamlib.providers.shapes import ChatShape
from streamlib_parsers.items import WireApi

Auth: TypeAlias = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "aws", "none"]

PATHS: dict[WireApi, str] = {
    "messages": "/v1/messages",
    "responses": "/responses",
    "chat": "/chat/completions",
    "gemini": "/models/{model}:streamGenerateContent?alt=sse",
    "converse": "/model/{model}/converse-stream",
    "invoke": "/model/{model}/invoke-with-response-stream",
    "ollama": "/api/chat",
}
"""Where each wire is served below a base URL."""


class Provider(Struct, frozen=True, gc=False, omit_defaults=True):
    """Everything that differs between providers, as values.

    wires: the wire APIs it offers, its default first; a wire's own base URL stands in `wire_urls`.
    key_env: environment variables that may hold the key, in order. headers: sent with every request.
    drop: request fields (dotted) it refuses, with the reason. rename: field -> its name here. defaults: fields sent when the
    caller gave none. fixed: fields that always have this value.
    unsigned_thinking: takes thinking blocks without a signature back (local servers).
    roles: roles it refuses -> the role sent instead (`{"system": "developer"}`). account_header: carries the target's account.
    places: `{name}` in its URLs -> environment variables that may hold it, in order. hosts: spellings of a URL that come out of that
    and do not exist -> what is meant. paths: wire -> where it is served, where that is not `PATHS`. omit: body fields that the URL says.
    call_ids: what ids of calls may look like, where the provider takes less than its wire. chat: how its Chat Completions differs.
    """

    name: str
    wires: tuple[WireApi, ...] = ("chat",)
    base_url: str = ""
    wire_urls: dict[str, str] = {}
    aliases: tuple[str, ...] = ()
    key_env: tuple[str, ...] = ()
    key_optional: bool = False
    auth: Auth = "bearer"
    headers: dict[str, str] = {}
    drop: dict[str, str] = {}
    rename: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    unsigned_thinking: bool = False
    roles: dict[str, str] = {}
    account_header: str = ""
    places: dict[str, tuple[str, ...]] = {}
    hosts: dict[str, str] = {}
    paths: dict[WireApi, str] = {}
    omit: tuple[str, ...] = ()
    call_ids: Charset | None = None
    chat: ChatShape = ChatShape()


_registered: dict[str, Provider] = {}


def register(provider: Provider) -> Provider:
    """Adds a provider (or replaces one of the same name) for this process."""
    for name in (provider.name, *provider.aliases):
        _registered[name] = provider
    return provider


@cache
def shipped() -> dict[str, Provider]:
    """The providers that come with the library, by name and alias."""
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    providers = (module.PROVIDER for module in modules if hasattr(module, "PROVIDER"))
    return {name: provider for provider in providers for name in (provider.name, *provider.aliases)}


def provider(name: str, more: Iterable[Provider] = ()) -> Provider:
    """The provider called `name`; an unknown name is `invalid_request`, with the names that are near."""
    known = {**shipped(), **_registered, **{alias: one for one in more for alias in (one.name, *one.aliases)}}
    if name not in known:
        near = difflib.get_close_matches(name, known, 3, 0.5)
        hint = f"; did you mean {', '.join(near)}?" if near else f": one of {', '.join(sorted(known))}"
        raise invalid_request(f"unknown provider {name!r}{hint}", "unknown_provider")
    return known[name]


def find(model: str, provider_name: str | None = None, more: Iterable[Provider] = ()) -> tuple[Provider, str]:
    """`"provider:model"` (or the two apart) -> the provider and the model name."""
    if provider_name is not None:
        return provider(provider_name, more), model
    name, colon, rest = model.partition(":")
    if not colon:
        raise invalid_request(f"a model is written provider:model, not {model!r}", "unknown_provider")
    return provider(name, more), rest
