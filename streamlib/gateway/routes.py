"""The route table: which model a client's model name stands for, and how it is requested.

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
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from streamlib.client.credentials import Secret
from streamlib.errors import StreamError
from streamlib.gateway.named_clients import ClientTable, NamedClient
from streamlib.providers import Provider, find
from streamlib.request.endpoints import resolve_target
from streamlib.request.headers import checked_headers
from streamlib.request.json_objects import merged
from streamlib.request.prompt import Effort, Prompt, ReasoningOptions
from streamlib.request.target import Target
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi

ReasoningLevel: TypeAlias = Effort | int
"""A level, or a budget in tokens."""

COOLDOWN_FAILURES: Final = 3
"""Failures in a row after which a target cools down. Proxies take 5 of single requests; each of
these has been tried up to three times already."""

COOLDOWN_SECONDS: Final = 30.0
"""The first cooldown; the default of proxies."""

QUEUE_SECONDS: Final = 10.0
"""How long a request waits for a free slot. Below the 15 seconds after which a keep-alive starts
the stream: until then, the client gets an HTTP error, which it can act upon."""

UNSET: Final = "unset"
"""Key of `RouteRule.reasoning` for a client that requests no level and no budget."""

BUDGET: Final = "budget"
"""Key of `RouteRule.reasoning` for a client that requests a number of tokens."""

OTHERWISE: Final = "*"
"""Key of `RouteRule.reasoning` for what has no key of its own."""


OF_ONE_SERVER: Final = ("base_url", "key_env", "headers")
"""Fields of a route that belong to one server."""


class RouteTo(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """One target of a route, with a server of its own. What is None is the route's.

    Attributes:
        model: `provider:model`, with `*` for the client's own name.
        base_url: in place of the provider's own.
        wire_api: in place of the provider's first.
        key_env: the environment variable with the key; a `base_url` that requires a key needs it.
        headers: sent to the provider, beside those of the route.
        overrides: fields of the model's wire, merged last, over those of the route.
        max_streams: at a time; None: no limit. With `*` in `model`, of all its models together.
        cooldown_failures: in a row, after which other targets are preferred.
        cooldown_seconds: for which they are; doubled while it still fails. 0: never.
    """

    model: str
    base_url: str | None = None
    wire_api: WireApi | None = None
    key_env: str | None = None
    headers: dict[str, str] = {}
    overrides: dict[str, Any] = {}
    max_streams: Annotated[int, Meta(ge=1)] | None = None
    cooldown_failures: Annotated[int, Meta(ge=1)] | None = None
    cooldown_seconds: Annotated[float, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        _refuse_keys(self.model, self.headers)


def _refuse_keys(model: str, headers: Mapping[str, str]) -> None:
    """A key in a route would be shown with it, and sent whatever server the route names."""
    try:
        checked_headers(headers)
    except StreamError as error:
        message = f"{error.info.message}; name the variable of a key in `key_env`"
        raise ValueError(f"the route {model!r}: {message}") from None


class RouteRule(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """One route.

    Attributes:
        model: pattern of the client's model names; `*`, `?` and `[…]` as in file names.
        to: `provider:model`, with `*` for the client's own name, or a `RouteTo`; several: the
            others are fallbacks.
        wire_api: in place of the provider's first.
        base_url: in place of the provider's own. It, `key_env` and `headers` belong to one server:
            with targets at several, each has its own.
        key_env: the environment variable with the key; a `base_url` that requires a key needs it.
        dialects: of calls or reasoning in text; None: those known for the model.
        reasoning: level requested by the client (or `unset`, `budget`, `*`) -> level or tokens.
        overrides: fields of the model's wire, merged last into the request.
        drop: fields of the client's request that have no counterpart in `Prompt` and would be
            refused (`context_management`).
        headers: sent to the provider (`anthropic-beta` …).
        max_streams: of each target, at a time; None: no limit.
        cooldown_failures: of a target in a row, after which the others are preferred.
        cooldown_seconds: for which they are; doubled while the target still fails. 0: never.
        queue_seconds: for which a request waits where all targets are full.
    """

    model: str
    to: str | RouteTo | tuple[str | RouteTo, ...]
    wire_api: WireApi | None = None
    base_url: str | None = None
    key_env: str | None = None
    dialects: tuple[str, ...] | None = None
    reasoning: dict[str, ReasoningLevel] = {}
    overrides: dict[str, Any] = {}
    drop: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    max_streams: Annotated[int, Meta(ge=1)] | None = None
    cooldown_failures: Annotated[int, Meta(ge=1)] = COOLDOWN_FAILURES
    cooldown_seconds: Annotated[float, Meta(ge=0)] = COOLDOWN_SECONDS
    queue_seconds: Annotated[float, Meta(ge=0)] = QUEUE_SECONDS

    def __post_init__(self) -> None:
        # The struct is frozen; this is still its construction.
        force_setattr(self, "to", _several(self.to))
        _refuse_keys(self.model, self.headers)
        if not self.to:
            raise ValueError(f"the route {self.model!r} has no target")

    @property
    def targets(self) -> tuple[RouteTo, ...]:
        """The targets, each with what it takes from the route."""
        targets: list[RouteTo] = []
        for to in _several(self.to):
            target = RouteTo(to) if isinstance(to, str) else to
            targets.append(
                msgspec.structs.replace(
                    target,
                    base_url=target.base_url or self.base_url,
                    wire_api=target.wire_api or self.wire_api,
                    key_env=target.key_env or self.key_env,
                    headers={**self.headers, **target.headers},
                    overrides=merged(self.overrides, target.overrides),
                    max_streams=target.max_streams or self.max_streams,
                    cooldown_failures=target.cooldown_failures or self.cooldown_failures,
                    cooldown_seconds=self._cooldown_seconds(target),
                )
            )
        return tuple(targets)

    def _cooldown_seconds(self, target: RouteTo) -> float:
        # 0 is a setting.
        if target.cooldown_seconds is None:
            return self.cooldown_seconds
        return target.cooldown_seconds

    @property
    def is_pattern(self) -> bool:
        """Whether the route is for more than one name."""
        return any(char in self.model for char in "*?[")


def _several(to: str | RouteTo | tuple[str | RouteTo, ...]) -> tuple[str | RouteTo, ...]:
    if isinstance(to, (str, RouteTo)):
        return (to,)
    return to


CATCH_ALL: Final = RouteRule("*", "loopback:*")


class RouteTarget(Struct, frozen=True):
    """One target of a route.

    Attributes:
        provider: with the route's headers.
        target: where the request goes.
        base_url: of the route; None: the provider's own.
        key: the route's own; None: the client's for this provider.
        name: what its failures are remembered under: model, server, and whose key.
        slot: what its streams are counted under: the target as the route has it.
        overrides: fields of the model's wire, merged last into the request.
        max_streams: at a time; None: no limit.
        cooldown_failures: in a row, after which it cools down.
        cooldown_seconds: of its first cooldown; 0: none.
    """

    provider: Provider
    target: Target
    base_url: str | None = None
    key: Secret | None = None
    name: str = ""
    slot: str = ""
    overrides: dict[str, Any] = {}
    max_streams: int | None = None
    cooldown_failures: int = COOLDOWN_FAILURES
    cooldown_seconds: float = COOLDOWN_SECONDS


class RouteFile(Struct, forbid_unknown_fields=True):
    """A route file.

    Attributes:
        route: in order of precedence.
        client: who may use them; none: whoever has the gateway's token.
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
            rules: the first that matches is used. None at all: everything goes to the loopback
                provider.
            providers: in addition to the known ones, or in place of those of the same name.
            clients: those with a token of their own.

        Raises:
            ValueError: a route has no valid target, or two clients are the same.
            StreamError: the environment variable of a route's key is not set.
        """
        self.clients = ClientTable(clients)
        self.rules = tuple(rules) or (CATCH_ALL,)
        self._providers = tuple(providers)
        self._keys: dict[str, Secret] = {}
        """Variable -> key, of all `RouteTo.key_env`: read once."""
        for rule in self.rules:
            for target in rule.targets:
                if target.key_env:
                    self._keys[target.key_env] = _read_key(target.key_env)
        for rule in self.rules:
            self._check(rule)

    def using(self, *providers: Provider) -> RouteTable:
        """The same routes, with other providers."""
        # Not constructed anew: keys are read and routes checked already.
        table = copy.copy(self)
        table._providers = (*providers, *self._providers)
        return table

    def _check(self, rule: RouteRule) -> None:
        """Reports an impossible route at the start, not with the first request."""
        try:
            hops = self.hops(rule, "model")
        except StreamError as error:
            targets = ", ".join(target.model for target in rule.targets)
            message = f"the route {rule.model!r} to {targets}: {error.info.message}"
            raise ValueError(message) from None
        # A key, or a header that may hold one, would go to a server that it is not for.
        servers = {(hop.provider.name, hop.base_url) for hop in hops}
        for name in OF_ONE_SERVER:
            if len(servers) > 1 and getattr(rule, name):
                raise ValueError(
                    f"the route {rule.model!r}: {name} belongs to one server, but the targets "
                    f"are on {len(servers)}: set it for each target"
                )

    def rule(self, model: str) -> RouteRule:
        """The first route that matches a client's model name.

        Raises:
            StreamError: none does (`not_found`).
        """
        for rule in self.rules:
            # Not `fnmatch`, which ignores case on Windows.
            if fnmatchcase(model, rule.model):
                return rule
        message = f"no route for the model {model[:200]!r}"
        raise StreamError(ErrorInfo("not_found", message, code="model_not_found"))

    def hops(self, rule: RouteRule, model: str) -> list[RouteTarget]:
        """The targets of a route for a client's model: the first, then its fallbacks."""
        return [self._hop(to, model) for to in rule.targets]

    def _hop(self, to: RouteTo, client_model: str) -> RouteTarget:
        name = to.model.replace("*", client_model)
        provider, model = find(name, None, self._providers)
        # A request has its provider's headers: the route's are added to a copy of it.
        if to.headers:
            headers = {**provider.headers, **to.headers}
            provider = msgspec.structs.replace(provider, headers=headers)
        target = resolve_target(provider, model, to.wire_api, to.base_url)
        server = [text for text in (to.wire_api, to.base_url, to.key_env) if text]
        return RouteTarget(
            provider,
            target,
            to.base_url,
            self._keys.get(to.key_env or ""),
            name=" ".join([f"{provider.name}:{model}", *server]),
            slot=" ".join([to.model, *server]),
            overrides=to.overrides,
            max_streams=to.max_streams,
            cooldown_failures=to.cooldown_failures or COOLDOWN_FAILURES,
            cooldown_seconds=_or(to.cooldown_seconds, COOLDOWN_SECONDS),
        )


def _or(seconds: float | None, otherwise: float) -> float:
    return otherwise if seconds is None else seconds


def _read_key(variable: str) -> Secret:
    key = os.environ.get(variable)
    if not key:
        message = f"key_env: the variable {variable} is not set"
        # Now, not with the first request of a client, who could not help it.
        raise StreamError(ErrorInfo("authentication", message, code="missing_key"))
    return Secret(key)


def read_file(text: str) -> RouteFile:
    """Reads a route file.

    Raises:
        ValueError: it is not TOML, or describes no routes and clients.
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
    """Reads a route of the command line, `PATTERN=PROVIDER:MODEL[,PROVIDER:MODEL…]`.

    Raises:
        ValueError: it has another form.
    """
    pattern, sign, to = text.partition("=")
    if not (pattern and sign and to):
        raise ValueError(f"{text!r}: a route is written PATTERN=PROVIDER:MODEL")
    return RouteRule(pattern, tuple(to.split(",")))


def apply_rule_limits(prompt: Prompt, rule: RouteRule) -> Prompt:
    """The prompt with the route's reasoning level and without the fields that it drops."""
    extra = {key: value for key, value in (prompt.extra or {}).items() if key not in rule.drop}
    reasoning = _route_reasoning(prompt, rule.reasoning)
    return msgspec.structs.replace(prompt, reasoning=reasoning, extra=extra or None)


def apply_overrides(prompt: Prompt, hop: RouteTarget) -> Prompt:
    """The prompt with the overrides of a target.

    Fields that the client sent stay only if they are of the same wire: `extra` is for one.
    """
    if not hop.overrides:
        return prompt
    wire_api = hop.target.wire_api
    extra: dict[str, Any] = {}
    if prompt.extra is not None and prompt.extra_wire in (None, wire_api):
        extra = prompt.extra
    return msgspec.structs.replace(prompt, extra=merged(extra, hop.overrides), extra_wire=wire_api)


def _route_reasoning(
    prompt: Prompt, levels: Mapping[str, ReasoningLevel]
) -> int | Effort | ReasoningOptions | None:
    """How much reasoning to request: what the route has for the client's level, else that."""
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
    # How reasoning is shown is the client's, not the route's.
    options = ReasoningOptions(summary=requested.summary, display=requested.display)
    if isinstance(level, int):
        return msgspec.structs.replace(options, budget=level)
    return msgspec.structs.replace(options, effort=level)
