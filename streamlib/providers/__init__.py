"""Providers: what differs between services, as values.

Each provider has a file with one `Provider` called `PROVIDER`.

`find("anthropic:claude-opus-5")` returns the provider and the model name; `register` adds one of
your own. docs/guides/add-a-provider.md leads through a new file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from streamlib.providers.models import longest_prefix
from streamlib.providers.names import Charset
from streamlib.providers.shapes import ChatShape
from streamlib.providers.websocket import WebSocketSettings
from streamlib_parsers.items import WireApi
from streamlib_parsers.stream_error import invalid_request

Auth: TypeAlias = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "aws", "none"]


class Provider(Struct, frozen=True, gc=False, omit_defaults=True):
    """Everything that differs between providers, as values.

    Attributes:
        name: as in `name:model`.
        aliases: further names.
        wires: the wire APIs it offers, its default first.
        base_url: of every wire without an entry in `wire_urls`; "" where the caller has to give it.
        wire_urls: wire -> its own base URL.
        other_urls: further base URLs of the provider (regions, plans): as `base_url=` they get its
            keys too.
        url_variables: `{name}` in its URLs -> environment variables that may hold it, in order.
        url_replacements: parts of URLs that result from `url_variables` but do not exist -> the
            right ones.
        paths: wire -> path below the base URL, where it is not `WireSpec.path`.
        fields_in_url: body fields that the URL contains instead.
        models_path: where it lists its models, below the base URL or as a complete URL; None: as
            in its `WireSpec`; "": nowhere.

        key_env: environment variables that may hold the key, in order.
        key_optional: requests without a key are allowed (local servers).
        auth: how the key is sent.
        account_header: header for the account of the target.
        headers: sent with every request.
        conversation_header: header for the prompt's `conversation_id`, on every wire
            (`x-grok-conv-id`).
        idempotency_header: header with a value that is the same for every attempt of one request;
            None where the provider documents none. No provider here has one: the SDKs of OpenAI
            and Anthropic know such a header too and send none (``_idempotency_header = None``).

        unsupported: request field (dotted) that it refuses -> the reason.
        unsupported_when_thinking: the same for fields that are refused or without effect while
            the model thinks.
        rename: field -> its name here.
        defaults: fields sent unless the caller sets them.
        overrides: fields that always have this value.
        prepare: names of steps in `request/provider_steps.py`, for what no value can express.
        roles: role that it refuses -> the role sent instead (`{"system": "developer"}`).
        call_ids: what call ids may look like, where it accepts less than its wire.
        parses_calls: the provider itself turns its models' call syntax into typed calls, so that
            no dialect is needed.
        unsigned_thinking: accepts thinking blocks without a signature in a history (local
            servers).
        chat: how its Chat Completions differs.
        websocket: how it serves Responses over WebSocket; None: it does not.
        model_overrides: beginning of a model's name -> the fields of this class that differ for
            it; the longest beginning wins.
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
    idempotency_header: str | None = None
    url_variables: dict[str, tuple[str, ...]] = {}
    url_replacements: dict[str, str] = {}
    paths: dict[WireApi, str] = {}
    fields_in_url: tuple[str, ...] = ()
    call_ids: Charset | None = None
    chat: ChatShape = ChatShape()
    websocket: WebSocketSettings | None = None
    model_overrides: dict[str, dict[str, Any]] = {}
    other_urls: tuple[str, ...] = ()
    models_path: str | None = None


_registered: dict[str, Provider] = {}
"""Providers added by `register`, by name and alias, until the process ends."""


def register(provider: Provider) -> Provider:
    """Adds a provider, or replaces one of the same name, for this process.

    Raises:
        TypeError: it is no `Provider`.
    """
    if not isinstance(provider, Provider):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"register() takes a `Provider(…)`, not {provider!r:.100}")
    for name in (provider.name, *provider.aliases):
        _registered[name] = provider
    return provider


@cache
def shipped() -> dict[str, Provider]:
    """The providers that come with the library, by name and alias."""
    providers: dict[str, Provider] = {}
    # Imported here: much of the package needs no list of providers.
    import pkgutil

    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        # Modules that providers share have no PROVIDER.
        if hasattr(module, "PROVIDER"):
            _add(providers, module.PROVIDER)
    return providers


def known(more: Iterable[Provider] = ()) -> dict[str, Provider]:
    """Every provider by name and alias: those of `more` win over registered ones, and these over
    the shipped ones."""
    providers = {**shipped(), **_registered}
    for service in more:
        _add(providers, service)
    return providers


def _add(providers: dict[str, Provider], provider: Provider) -> None:
    for name in (provider.name, *provider.aliases):
        providers[name] = provider


def provider(name: str, more: Iterable[Provider] = ()) -> Provider:
    """The provider called `name`.

    Raises:
        StreamError: `invalid_request`, with similar names, if the name is unknown.
    """
    more = tuple(more)
    for service in reversed(more):
        if name in (service.name, *service.aliases):
            return service
    shared = _registered.get(name) or shipped().get(name)
    if shared is not None:
        return shared
    import difflib  # for misspelt names alone

    names = known(more)
    similar = difflib.get_close_matches(name, names, 3, 0.5)
    if similar:
        hint = f"; did you mean {', '.join(similar)}?"
    else:
        hint = f": one of {', '.join(sorted({service.name for service in names.values()}))}"
    raise invalid_request(f"unknown provider {name!r}{hint}", "unknown_provider")


def misspelt(name: Any, more: Iterable[Provider] = ()) -> str | None:
    """The provider that an unknown name probably means; None if the name may be the user's own.

    A name of the user's own often has a number or a dash: `openai2`, `openai-eu`.
    """
    import difflib  # for misspelt names alone

    names = known(more)
    if name in names or not isinstance(name, str) or not name.isalpha():
        return None
    near = difflib.get_close_matches(name.lower(), names, 1, 0.8)
    return near[0] if near else None


def for_model(provider: Provider, model: str) -> Provider:
    """The provider as it is for one model, by `model_overrides`.

    Case does not matter, nor does a vendor's name before the model's (`openai/gpt-oss-120b`).
    """
    prefix = longest_prefix(model, provider.model_overrides)
    if prefix is None:
        return provider
    return replace(provider, **provider.model_overrides[prefix])


def find(
    model: str, provider_name: str | None = None, more: Iterable[Provider] = ()
) -> tuple[Provider, str]:
    """The provider and the model name of `"provider:model"`, or of the two given separately.

    Where provider names contain a colon, the longest known one wins.

    Raises:
        StreamError: `invalid_request` if there is no model name or the provider is unknown.
    """
    _check_names(model, provider_name)
    if provider_name is not None:
        return provider(provider_name, more), model
    if not model:
        raise invalid_request("no model was given: write it provider:model", "unknown_provider")
    if ":" not in model:
        raise invalid_request(
            f"a model is written provider:model, not {model!r}{_suggestion(model, more)}",
            "unknown_provider",
        )
    name = model.partition(":")[0]
    more = tuple(more)
    if model.count(":") > 1:
        for candidate in known(more):
            if len(candidate) > len(name) and model.startswith(f"{candidate}:"):
                name = candidate
    return provider(name, more), model[len(name) + 1 :]


def _check_names(model: Any, provider_name: Any) -> None:
    """Refuses a model or a provider of another kind than a text.

    Raises:
        TypeError: it has the value, and what to write.
    """
    if model is not None and not isinstance(model, str):
        raise TypeError(f"model is a text, provider:model, not {model!r:.100}")
    if provider_name is not None and not isinstance(provider_name, str):
        raise TypeError(f"provider is its name or a `Provider(…)`, not {provider_name!r:.100}")


VENDORS: Final = {
    "gpt": "openai",
    "chatgpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "grok": "xai",
    "deepseek": "deepseek",
    "mistral": "mistral",
    "magistral": "mistral",
    "codestral": "mistral",
    "command": "cohere",
    "kimi": "moonshot",
    "glm": "zai",
    "sonar": "perplexity",
    "qwen": "qwen",
}
"""How a model's name begins, up to its first hyphen or digit -> the provider that makes it."""


def _suggestion(model: str, more: Iterable[Provider]) -> str:
    """What was probably meant by a model without its provider; "" where nobody knows."""
    vendor, slash, name = model.partition("/")
    if slash and vendor in known(more):
        return f": write {vendor + ':' + name!r}"
    lowered = model.lower()
    for beginning, provider_name in VENDORS.items():
        if lowered.startswith(beginning):
            return f": write {provider_name + ':' + model!r}"
    return ""
