"""The route table: maps a client's model name to the model that is requested, and how.

    [[route]]                                    # the first that matches wins
    model = "claude-*"                           # the client's model; * and ? as in file names
    to = "openrouter:x-ai/grok-code-fast-1"      # provider:model; * is the client's own name.
                                                 # A list: the others are fallbacks, each a
                                                 # name or a table with a server of its own
    reasoning = { high = "medium", "*" = "low" } # requested by the client -> requested of the model
    overrides = { temperature = 0 }              # fields of the model's wire, merged last; a target
                                                 # may have its own

Without any route, everything goes to the loopback provider.
"""

from __future__ import annotations

import copy
import os
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from streamlib.client.credentials import Secret
from streamlib.gateway.clients.named_clients import ClientTable, NamedClient
from streamlib.providers import Provider, find
from streamlib.request.endpoints import resolve_target
from streamlib.request.headers import checked_headers
from streamlib.request.json_objects import merged
from streamlib.request.prompt import Effort, Prompt, ReasoningOptions
from streamlib.request.target import Target
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from streamlib_parsers.stream_error import StreamError

ReasoningLevel: TypeAlias = Effort | int
"""A level of reasoning, or a budget in tokens."""

HEADERS_SECONDS: Final = 30.0
"""Seconds in which a target must send its response headers where another one could be asked: these
are sent before a model thinks, and SDKs give up after some minutes."""

QUEUE_SECONDS: Final = 10.0
"""Seconds that a request waits for a free slot. Below the 15 seconds after which a keep-alive
starts the stream: until then the client receives an HTTP error, which it can handle."""

UNSET: Final = "unset"
"""Key of `RouteRule.reasoning` for a client that requests no level and no budget."""

BUDGET: Final = "budget"
"""Key of `RouteRule.reasoning` for a client that requests a number of tokens."""

OTHERWISE: Final = "*"
"""Key of `RouteRule.reasoning` for every other level."""


KEY_SOURCES: Final = ("key_env", "key_file")
"""Fields that name where a key is; a target that has one of them has no other."""

OF_ONE_SERVER: Final = ("base_url", *KEY_SOURCES, "headers")
"""Fields of a route that are valid for one server only."""

Seconds: TypeAlias = Annotated[float, Meta(gt=0)]


class TargetSettings(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """What a route says for all its targets, or a target for itself.

    Attributes:
        base_url: replaces the provider's base URL. It, the key and `headers` are for one server:
            if targets have different servers, each target needs its own.
        wire_api: replaces the provider's first wire.
        key_env: environment variable with the key; required if a `base_url` needs a key.
        key_file: file with the key instead, read whenever the routes are.
        headers: request headers for the provider (`anthropic-beta` …).
        overrides: fields of the model's wire, merged last into the request.
        max_streams: limit of simultaneous streams of a target; None: no limit. With `*` in its
            model it is for all its models together.
        cooldown_failures: failures in a row after which other targets are preferred.
        cooldown_seconds: length of the first cooldown in seconds; each further one is twice as
            long. 0: no cooldown.
        retries: how often a target is asked again where no other can be; None: as often as the
            gateway's client does, which is twice.
        headers_seconds: seconds in which a target must send its response headers. None: 30 where
            another target could be asked, else as the gateway's client.
        first_output_seconds: seconds in which its model must have output; None: as long as it
            likes, since models may reason for minutes.
        total_seconds: seconds that the response of a target may take; None: no limit.
    """

    base_url: str | None = None
    wire_api: WireApi | None = None
    key_env: str | None = None
    key_file: str | None = None
    headers: dict[str, str] = {}
    overrides: dict[str, Any] = {}
    max_streams: Annotated[int, Meta(ge=1)] | None = None
    cooldown_failures: Annotated[int, Meta(ge=1)] | None = None
    cooldown_seconds: Annotated[float, Meta(ge=0)] | None = None
    retries: Annotated[int, Meta(ge=0)] | None = None
    headers_seconds: Seconds | None = None
    first_output_seconds: Seconds | None = None
    total_seconds: Seconds | None = None

    @property
    def key_source(self) -> str | None:
        """The variable or the file of its key; None: the key is that of its provider."""
        return self.key_env or self.key_file


class RouteTo(TargetSettings, frozen=True):
    """One target of a route, with its own server. A setting that is None has the route's value.

    Attributes:
        model: `provider:model`, with `*` for the client's own name.
    """

    model: str

    def __post_init__(self) -> None:
        _refuse_keys(self.model, self.headers)


def _refuse_keys(model: str, headers: Mapping[str, str]) -> None:
    """Refuses a key in a route: it would be shown with the route, and sent to all its servers."""
    try:
        checked_headers(headers)
    except StreamError as error:
        message = f"{error.info.message}; name the variable of a key in `key_env`"
        raise ValueError(f"the route {model!r}: {message}") from None


class RouteRule(TargetSettings, frozen=True):
    """One route.

    Attributes:
        model: pattern of the client's model names; `*`, `?` and `[…]` as in file names.
        to: `provider:model`, with `*` for the client's own name, or a `RouteTo`; of several, the
            others are fallbacks.
        dialects: dialects of calls or reasoning in text; None: those known for the model.
        reasoning: level requested by the client (or `unset`, `budget`, `*`) -> level or tokens.
        drop: fields of the client's request that `Prompt` does not have, and that would be refused
            otherwise (`context_management`).
        queue_seconds: seconds that a request waits if all targets are full.
        recover: a request whose history a target refuses, because signed reasoning does not verify
            any more, is sent to it once more without such state.
    """

    model: str
    to: str | RouteTo | tuple[str | RouteTo, ...]
    dialects: tuple[str, ...] | None = None
    reasoning: dict[str, ReasoningLevel] = {}
    drop: tuple[str, ...] = ()
    queue_seconds: Annotated[float, Meta(ge=0)] = QUEUE_SECONDS
    recover: bool = False

    def __post_init__(self) -> None:
        # The struct is frozen, but this is part of its construction.
        force_setattr(self, "to", _several(self.to))
        _refuse_keys(self.model, self.headers)
        if not self.to:
            raise ValueError(f"the route {self.model!r} has no target")

    @property
    def targets(self) -> tuple[RouteTo, ...]:
        """The targets, each completed by the values of the route."""
        targets: list[RouteTo] = []
        for to in _several(self.to):
            target = RouteTo(to) if isinstance(to, str) else to
            fields: dict[str, Any] = {}
            for name in TargetSettings.__struct_fields__:
                if name in KEY_SOURCES and target.key_source is not None:
                    continue
                # 0 is a valid value, so `or` would be wrong.
                if getattr(target, name) is None:
                    fields[name] = getattr(self, name)
            fields["headers"] = {**self.headers, **target.headers}
            fields["overrides"] = merged(self.overrides, target.overrides)
            targets.append(msgspec.structs.replace(target, **fields))
        return tuple(targets)

    @property
    def is_pattern(self) -> bool:
        """Whether the route is for more than one model name."""
        return any(char in self.model for char in "*?[")


def _several(to: str | RouteTo | tuple[str | RouteTo, ...]) -> tuple[str | RouteTo, ...]:
    if isinstance(to, (str, RouteTo)):
        return (to,)
    return to


CATCH_ALL: Final = RouteRule("*", "loopback:*")


class RouteTarget(Struct, frozen=True):
    """One target of a route.

    Attributes:
        provider: provider, with the route's headers.
        resolved: the model, wire and address of its requests.
        to: its settings, with those of the route.
        key: the route's own key; None: the key that the client has for this provider.
        name: key of its failures: model, server, and owner of the key.
        slot_key: key of its stream count: the target as written in the route.
    """

    provider: Provider
    resolved: Target
    to: RouteTo
    key: Secret | None = None
    name: str = ""
    slot_key: str = ""

    @property
    def base_url(self) -> str | None:
        """Base URL of the route; None: the provider's own."""
        return self.to.base_url


class RouteFile(Struct, forbid_unknown_fields=True):
    """The contents of a route file.

    Attributes:
        route: routes in order of precedence.
        client: named clients; if there are none, the gateway's token gives access.
    """

    route: list[RouteRule] = []
    client: list[NamedClient] = []


class RouteTable:
    """Routes, in order of precedence, and the clients that may use them."""

    def __init__(
        self,
        rules: Sequence[RouteRule] = (),
        providers: Sequence[Provider] = (),
        clients: Sequence[NamedClient] = (),
    ) -> None:
        """Checks the routes.

        Args:
            rules: routes; the first that matches is used. Without any, all requests are sent to the
                loopback provider.
            providers: further providers; they replace known ones of the same name.
            clients: clients with a token of their own.

        Raises:
            ValueError: a route has no valid target, or two clients have the same name or token.
            StreamError: the key of a route is not there.
        """
        self.clients = ClientTable(clients)
        self.rules = tuple(rules) or (CATCH_ALL,)
        self._providers = tuple(providers)
        self._keys: dict[str, Secret] = {}
        """Variable or file -> key, for all `RouteTo.key_source`; each is read once."""
        for rule in self.rules:
            for target in rule.targets:
                if target.key_source is not None:
                    self._keys[target.key_source] = _read_key(target)
        for rule in self.rules:
            self._check(rule)

    def using(self, *providers: Provider) -> RouteTable:
        """The same routes, with other providers."""
        # Copied, not constructed: keys are already read and routes already checked.
        table = copy.copy(self)
        table._providers = (*providers, *self._providers)
        return table

    def _check(self, rule: RouteRule) -> None:
        """Reports an invalid route at the start instead of with the first request."""
        try:
            targets = self.targets(rule, "model")
        except StreamError as error:
            models = ", ".join(target.model for target in rule.targets)
            message = f"the route {rule.model!r} to {models}: {error.info.message}"
            raise ValueError(message) from None
        # A key, or a header with a key, would be sent to a server that it is not for.
        servers = {(target.provider.name, target.base_url) for target in targets}
        for name in OF_ONE_SERVER:
            if len(servers) > 1 and getattr(rule, name):
                raise ValueError(
                    f"the route {rule.model!r}: {name} belongs to one server, but the targets "
                    f"are on {len(servers)}: set it for each target"
                )

    def rule(self, model: str) -> RouteRule:
        """The first route that matches a client's model name.

        Raises:
            StreamError: no route matches (`not_found`).
        """
        for rule in self.rules:
            # `fnmatchcase`, because `fnmatch` ignores case on Windows.
            if fnmatchcase(model, rule.model):
                return rule
        message = f"no route for the model {model[:200]!r}"
        raise StreamError(ErrorInfo("not_found", message, code="model_not_found"))

    def targets(self, rule: RouteRule, model: str) -> list[RouteTarget]:
        """The targets of a route for a client's model name: the first, then its fallbacks."""
        return [self._route_target(to, model) for to in rule.targets]

    def _route_target(self, to: RouteTo, client_model: str) -> RouteTarget:
        name = to.model.replace("*", client_model)
        provider, model = find(name, None, self._providers)
        # Requests take headers from their provider: the route's are added to a copy of it.
        if to.headers:
            headers = {**provider.headers, **to.headers}
            provider = msgspec.structs.replace(provider, headers=headers)
        resolved = resolve_target(provider, model, to.wire_api, to.base_url)
        server = [text for text in (to.wire_api, to.base_url, to.key_source) if text]
        return RouteTarget(
            provider,
            resolved,
            to,
            self._keys.get(to.key_source or ""),
            name=" ".join([f"{provider.name}:{model}", *server]),
            slot_key=" ".join([to.model, *server]),
        )


def _read_key(target: RouteTo) -> Secret:
    """The key of a target. One that is missing is reported now: no client could mend it.

    Raises:
        StreamError: it is not there.
    """
    problem = ""
    key: str | None = None
    if target.key_env is not None and target.key_file is not None:
        problem = f"the target {target.model!r} has a key_env and a key_file: name one of them"
    elif target.key_env is not None:
        key = os.environ.get(target.key_env)
        problem = f"key_env: the variable {target.key_env} is not set"
    elif target.key_file is not None:
        problem = f"key_file: {target.key_file} is empty, or cannot be read"
        # The error of a file that is no text would quote it.
        with suppress(OSError, ValueError):
            key = Path(target.key_file).read_text(encoding="utf-8").strip()
    if not key:
        raise StreamError(ErrorInfo("authentication", problem, code="missing_key"))
    return Secret(key)


def read_file(text: str) -> RouteFile:
    """Reads a route file.

    Raises:
        ValueError: it is not TOML, or not a valid route file.
    """
    try:
        return msgspec.convert(tomllib.loads(text), RouteFile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"the route file: {error}") from None


def load_file(path: str | Path) -> RouteFile:
    """Reads a route file.

    Raises:
        ValueError: as `read_file`, with the path.
        OSError: the file cannot be read.
    """
    text = Path(path).read_text(encoding="utf-8")
    try:
        return read_file(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_table(text: str) -> list[RouteRule]:
    """Reads the routes of a TOML text.

    Raises:
        ValueError: as `read_file`.
    """
    return read_file(text).route


def load_table(path: str | Path) -> list[RouteRule]:
    """Reads the routes of a TOML file.

    Raises:
        ValueError: as `read_file`, with the path.
        OSError: the file cannot be read.
    """
    return load_file(path).route


def read_route(text: str) -> RouteRule:
    """Reads a route from the command line, `PATTERN=PROVIDER:MODEL[,PROVIDER:MODEL…]`.

    Raises:
        ValueError: the text has another format.
    """
    pattern, sign, to = text.partition("=")
    if not (pattern and sign and to):
        raise ValueError(f"{text!r}: a route is written PATTERN=PROVIDER:MODEL")
    return RouteRule(pattern, tuple(to.split(",")))


def apply_rule_limits(prompt: Prompt, rule: RouteRule) -> Prompt:
    """The prompt with the route's reasoning level, without the fields that the route drops."""
    extra = {key: value for key, value in (prompt.extra or {}).items() if key not in rule.drop}
    reasoning = _route_reasoning(prompt, rule.reasoning)
    return msgspec.structs.replace(prompt, reasoning=reasoning, extra=extra or None)


def apply_overrides(prompt: Prompt, target: RouteTarget) -> Prompt:
    """The prompt with the overrides of a target.

    Fields that the client sent are kept only for the same wire: `extra` belongs to one wire.
    """
    if not target.to.overrides:
        return prompt
    wire_api = target.resolved.wire_api
    extra = prompt.extra or {}
    extra_wire = prompt.extra_wire
    if extra_wire not in (None, wire_api):
        # The overrides are for this target alone, and no request of its wire was decoded.
        extra, extra_wire = {}, None
    return msgspec.structs.replace(
        prompt, extra=merged(extra, target.to.overrides), extra_wire=extra_wire
    )


def _route_reasoning(
    prompt: Prompt, levels: Mapping[str, ReasoningLevel]
) -> int | Effort | ReasoningOptions | None:
    """The route's value for the client's level of reasoning; the client's level if it has none."""
    requested = prompt.thinking or ReasoningOptions()
    if requested.effort is not None:
        key: str = requested.effort
    elif requested.budget is not None:
        key = BUDGET
    else:
        key = UNSET
    level = levels.get(key, levels.get(OTHERWISE))
    if level is None:
        return prompt.reasoning
    # The client decides how reasoning is shown, not the route.
    options = ReasoningOptions(summary=requested.summary, display=requested.display)
    if isinstance(level, int):
        return msgspec.structs.replace(options, budget=level)
    return msgspec.structs.replace(options, effort=level)
