"""The route table: which model a client's model name means, and how it is asked.

    [[route]]                                    # the first that matches wins
    model = "claude-*"                           # what the client asks for; * and ? as in file names
    to = "openrouter:x-ai/grok-code-fast-1"      # provider:model; a * in it is the client's own name. A list: the others are fallbacks
    reasoning = { high = "medium", "*" = "low" } # what the client asks for -> what is asked
    overrides = { temperature = 0 }              # words of the model's wire, merged last into the request

Without any route, everything goes to the loopback provider.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib.client.credentials import Secret
from streamlib.errors import StreamError
from streamlib.providers import Provider, find
from streamlib.request.endpoints import resolve_target
from streamlib.request.json_objects import merged
from streamlib.request.prompt import Effort, Prompt, ReasoningOptions
from streamlib.request.target import Target
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi

Thinking: TypeAlias = Effort | int
"""A level, or tokens to think with."""

UNASKED: Final = "unset"
"""The key in `reasoning` for a client that asks for nothing; `budget` for one that names tokens, `*` for what has no key."""


class RouteRule(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """One route.

    wire_api, base_url: where the provider's own are not meant. key_env: the variable with the key, needed for a `base_url` that wants one.
    dialects: of text that holds calls or thoughts, where the model's own are not known. headers: sent upstream (`anthropic-beta` …).
    drop: words of the client's request that have no place in ours and would be refused (`context_management`).
    """

    model: str
    to: str | tuple[str, ...]
    wire_api: WireApi | None = None
    base_url: str | None = None
    key_env: str | None = None
    dialects: tuple[str, ...] | None = None
    reasoning: dict[str, Thinking] = {}
    overrides: dict[str, Any] = {}
    drop: tuple[str, ...] = ()
    headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        if isinstance(self.to, str):
            force_setattr(self, "to", (self.to,))
        if not self.to:
            raise ValueError(f"the route {self.model!r} leads nowhere")

    @property
    def is_pattern(self) -> bool:
        """Whether it is for more than one name."""
        return any(char in self.model for char in "*?[")


CATCH_ALL: Final = RouteRule("*", "loopback:*")


class RouteTarget(Struct, frozen=True):
    """One target of a route. key: the route's own."""

    provider: Provider
    where: Target
    key: Secret | None = None


class _File(Struct, forbid_unknown_fields=True):
    """A route file."""

    route: list[RouteRule] = []


class RouteTable:
    """Routes, in order. providers: more of them, or others of the same name."""

    def __init__(self, rules: Sequence[RouteRule] = (), providers: Sequence[Provider] = ()) -> None:
        self.rules = tuple(rules) or (CATCH_ALL,)
        self._providers = tuple(providers)
        self._keys = {rule.key_env: _key(rule.key_env) for rule in self.rules if rule.key_env}
        for rule in self.rules:
            self._check(rule)

    def using(self, *providers: Provider) -> RouteTable:
        """The same routes, with other providers."""
        table = RouteTable.__new__(RouteTable)
        table.rules, table._keys, table._providers = (
            self.rules,
            self._keys,
            (*providers, *self._providers),
        )
        return table

    def _check(self, rule: RouteRule) -> None:
        """A route that cannot be is said at once, not with the first request."""
        try:
            self.hops(rule, "model")
        except StreamError as error:
            raise ValueError(
                f"the route {rule.model!r} to {', '.join(rule.to)}: {error.info.message}"
            ) from None

    def rule(self, model: str) -> RouteRule:
        """The first that matches; `not_found` where none does."""
        found = next((rule for rule in self.rules if fnmatchcase(model, rule.model)), None)
        if found is None:
            raise StreamError(
                ErrorInfo(
                    "not_found", f"no route for the model {model[:200]!r}", code="model_not_found"
                )
            )
        return found

    def hops(self, rule: RouteRule, model: str) -> list[RouteTarget]:
        """The targets of a route for a client's model: the first, and those to fall back on."""
        return [self._hop(rule, to.replace("*", model)) for to in rule.to]

    def _hop(self, rule: RouteRule, name: str) -> RouteTarget:
        provider, model = find(name, None, self._providers)
        if rule.headers:
            provider = msgspec.structs.replace(
                provider, headers={**provider.headers, **rule.headers}
            )
        where = resolve_target(provider, model, rule.wire_api, rule.base_url)
        return RouteTarget(provider, where, self._keys.get(rule.key_env or ""))


def _key(variable: str) -> Secret:
    if not os.environ.get(variable):
        raise StreamError(
            ErrorInfo(
                "authentication", f"key_env: the variable {variable} is not set", code="missing_key"
            )
        )
    return Secret(os.environ[variable])


def read_table(text: str) -> list[RouteRule]:
    """The routes of a TOML file; ValueError says what is wrong with it."""
    try:
        return msgspec.convert(tomllib.loads(text), _File).route
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"the route file: {error}") from None


def load_table(path: str | Path) -> list[RouteRule]:
    """The routes of a file."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        return read_table(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_route(text: str) -> RouteRule:
    """`PATTERN=PROVIDER:MODEL[,PROVIDER:MODEL…]`, as the command line has it."""
    pattern, sign, to = text.partition("=")
    if not (pattern and sign and to):
        raise ValueError(f"{text!r}: a route is written PATTERN=PROVIDER:MODEL")
    return RouteRule(pattern, tuple(to.split(",")))


def apply_rule_limits(prompt: Prompt, rule: RouteRule) -> Prompt:
    """The prompt as the route wants it: its thinking, its overrides, without what it drops."""
    extra = {key: value for key, value in (prompt.extra or {}).items() if key not in rule.drop}
    return msgspec.structs.replace(
        prompt, reasoning=_thinking(prompt, rule.reasoning), extra=extra or None
    )


def apply_rule_settings(prompt: Prompt, rule: RouteRule, wire_api: WireApi) -> Prompt:
    """The prompt with the overrides, beside the words that its client said in the same wire."""
    if not rule.overrides:
        return prompt
    own = prompt.extra if prompt.extra_wire in (None, wire_api) else None
    return msgspec.structs.replace(
        prompt, extra=merged(own or {}, rule.overrides), extra_wire=wire_api
    )


def _thinking(prompt: Prompt, mapping: Mapping[str, Thinking]) -> Any:
    asked = prompt.thinking
    word = (
        UNASKED
        if asked is None
        else asked.effort or ("budget" if asked.budget is not None else UNASKED)
    )
    chosen: Any = mapping.get(word, mapping.get("*"))
    if chosen is None:
        return prompt.reasoning
    summary, display = (asked.summary, asked.display) if asked else (None, None)
    if isinstance(chosen, int):
        return ReasoningOptions(budget=chosen, summary=summary, display=display)
    return ReasoningOptions(chosen, summary=summary, display=display)
