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
from msgspec.structs import replace

from streamlib.errors import invalid_request
from streamlib.providers.models import begins
from streamlib.providers.names import Charset
from streamlib.providers.shapes import ChatShape
from streamlib_parsers.items import WireApi

Auth: TypeAlias = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "aws", "none"]


class Provider(Struct, frozen=True, gc=False, omit_defaults=True):
    """Everything that differs between providers, as values.

    wires: the wire APIs it offers, its default first; a wire's own base URL stands in `wire_urls`.
    key_env: environment variables that may hold the key, in order. headers: sent with every request.
    unsupported: request fields (dotted) it refuses, with the reason. unsupported_when_thinking: the same, of fields refused or without effect while the
    model thinks. rename: field -> its name here. defaults: fields sent when the caller gave none. overrides: fields that always have this
    value. prepare: names of steps in `providers/steps.py`, for what no value can say.
    unsigned_thinking: takes thinking blocks without a signature back (local servers).
    roles: roles it refuses -> the role sent instead (`{"system": "developer"}`). account_header: carries the target's account.
    conversation_header: carries the prompt's `conversation_id`, on every wire (`x-grok-conv-id`).
    url_variables: `{name}` in its URLs -> environment variables that may hold it, in order. url_replacements: spellings of a URL that come out of that
    and do not exist -> what is meant. paths: wire -> where it is served, where that is not its `WireSpec.path`. fields_in_url: body fields that the URL says.
    call_ids: what ids of calls may look like, where the provider takes less than its wire. chat: how its Chat Completions differs.
    model_overrides: beginning of a model's name -> the fields above that differ for it (the longest wins). other_urls: further addresses
    of its own (regions, plans): as `base_url=` they get its keys too. models_path: where it lists its models, below the base URL or
    as a whole URL; None: as its `WireSpec` has it, "": nowhere.
    """

    name: str
    wires: tuple[WireApi, ...] = ("chat",)
    base_url: str = ""
    wire_urls: dict[str, str] = {}
    aliases: tuple[str, ...] = ()
    key_env: tuple[str, ...] = ()
    key_optional: bool = False
    parses_calls: bool = False
    auth: Auth = "bearer"
    headers: dict[str, str] = {}
    unsupported: dict[str, str] = {}
    unsupported_when_thinking: dict[str, str] = {}
    rename: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    overrides: dict[str, Any] = {}
    prepare: tuple[str, ...] = ()
    unsigned_thinking: bool = False
    roles: dict[str, str] = {}
    account_header: str = ""
    conversation_header: str = ""
    url_variables: dict[str, tuple[str, ...]] = {}
    url_replacements: dict[str, str] = {}
    paths: dict[WireApi, str] = {}
    fields_in_url: tuple[str, ...] = ()
    call_ids: Charset | None = None
    chat: ChatShape = ChatShape()
    model_overrides: dict[str, dict[str, Any]] = {}
    other_urls: tuple[str, ...] = ()
    models_path: str | None = None


_registered: dict[str, Provider] = {}


def register(provider: Provider) -> Provider:
    """Adds a provider (or replaces one of the same name) for this process."""
    for name in (provider.name, *provider.aliases):
        _registered[name] = provider
    return provider


@cache
def shipped() -> dict[str, Provider]:
    """The providers that come with the library, by name and alias."""
    modules = (
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
    )
    providers = (module.PROVIDER for module in modules if hasattr(module, "PROVIDER"))
    return {name: provider for provider in providers for name in (provider.name, *provider.aliases)}


def known(more: Iterable[Provider] = ()) -> dict[str, Provider]:
    """Every provider by name and alias: `more`, then those registered, then those shipped."""
    return {
        **shipped(),
        **_registered,
        **{alias: one for one in more for alias in (one.name, *one.aliases)},
    }


def provider(name: str, more: Iterable[Provider] = ()) -> Provider:
    """The provider called `name`; an unknown name is `invalid_request`, with the names that are near."""
    names = known(more)
    if name not in names:
        near = difflib.get_close_matches(name, names, 3, 0.5)
        hint = (
            f"; did you mean {', '.join(near)}?"
            if near
            else f": one of {', '.join(sorted({one.name for one in names.values()}))}"
        )
        raise invalid_request(f"unknown provider {name!r}{hint}", "unknown_provider")
    return names[name]


def for_model(provider: Provider, model: str) -> Provider:
    """The provider as it is for one model: `model_overrides`, without regard to case, behind a vendor's name too (`openai/gpt-oss-120b`)."""
    starts = [start for start in provider.model_overrides if begins(model.lower(), start.lower())]
    return (
        replace(provider, **provider.model_overrides[max(starts, key=len)]) if starts else provider
    )


def find(
    model: str, provider_name: str | None = None, more: Iterable[Provider] = ()
) -> tuple[Provider, str]:
    """`"provider:model"` (or the two apart) -> the provider and the model name. Where names hold a colon, the longest that is known."""
    if provider_name is not None:
        return provider(provider_name, more), model
    if not model:
        raise invalid_request("no model was given: write it provider:model", "unknown_provider")
    if ":" not in model:
        raise invalid_request(
            f"a model is written provider:model, not {model!r}", "unknown_provider"
        )
    names = known(more)
    head = max(
        (name for name in names if model.startswith(f"{name}:")),
        key=len,
        default=model.partition(":")[0],
    )
    return provider(head, more), model[len(head) + 1 :]
