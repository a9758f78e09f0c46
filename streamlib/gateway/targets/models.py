"""The catalog of models that clients may request.

A route without a wildcard serves one name. A route with a wildcard, whose target uses the client's
own name, serves the matching names in its provider's list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final

import anyio
from msgspec import Struct

from streamlib.client import Client
from streamlib.client.model_list import ModelInfo
from streamlib.gateway.targets.routes import RouteRule, RouteTable, RouteTarget
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError

LIST_SECONDS: Final = 10.0
"""Timeout in seconds for a provider's list; after it, its models are missing from ours."""

LISTED_SECONDS: Final = 60.0
"""Seconds for which a provider's list is reused, because clients request it at each start."""

FAILED_SECONDS: Final = 10.0
"""Seconds before a list that could not be read is requested again."""

CREATED_KEYS: Final = ("created", "created_at", "modified_at")
"""Keys of the creation time in lists of OpenAI, Anthropic and Ollama."""


class ServedModel(Struct, frozen=True):
    """A model that clients may request.

    Attributes:
        name: name of the model in requests.
        created: creation time in seconds since 1970; if the provider does not report it, the start
            of the gateway.
        input_tokens: maximum in a request; None: unknown.
        output_tokens: maximum in a response; None: unknown.
    """

    name: str
    created: int
    input_tokens: int | None = None
    output_tokens: int | None = None


class ModelCatalog:
    """The models that the routes serve, completed by the providers' lists."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Makes a catalog without any list.

        Args:
            clock: returns seconds since 1970.
        """
        self._clock = clock
        self._started = int(clock())
        """Start of the gateway, in seconds since 1970."""
        self._lists: dict[object, tuple[float, list[ModelInfo] | None]] = {}
        """Server and key -> expiry time of the list, and the list; None: it could not be read. The
        key is part of it, because a provider lists what that key may use."""

    async def models(self, client: Client, table: RouteTable) -> list[ServedModel]:
        """The models that the routes serve, each once."""
        models: dict[str, ServedModel] = {}
        lists = await self._lists_of(client, table)
        for rule, listed in zip(table.rules, lists, strict=True):
            if not rule.is_pattern:
                model = self._alias(rule.model, table.targets(rule, rule.model)[0], listed)
                models.setdefault(rule.model, model)
                continue
            # Other targets have a fixed name, which the provider's list need not contain.
            if not _takes_own_name(rule):
                continue
            for info in listed or ():
                # An earlier route may match the name, and may serve another model under it.
                if fnmatchcase(info.id, rule.model) and table.rule(info.id) is rule:
                    models.setdefault(info.id, self._listed(info.id, info))
        return list(models.values())

    async def find(self, client: Client, table: RouteTable, name: str) -> ServedModel:
        """The model that a client would receive under a name.

        Raises:
            StreamError: no route serves the name (`not_found`), or its provider has no such model.
        """
        rule = table.rule(name)
        target = table.targets(rule, name)[0]
        listed = await self._list(client, target)
        if not _takes_own_name(rule):
            return self._alias(name, target, listed)
        if listed is None:
            return ServedModel(name, self._started)
        for info in listed:
            if info.id == name:
                return self._listed(name, info)
        message = f"the provider of this route has no model {name[:200]!r}"
        raise StreamError(ErrorInfo("not_found", message, code="model_not_found"))

    def _alias(
        self, name: str, target: RouteTarget, listed: Sequence[ModelInfo] | None
    ) -> ServedModel:
        """A model of a provider, under the name that the gateway gives it."""
        for info in listed or ():
            if info.id == target.resolved.model:
                return self._listed(name, info)
        return ServedModel(name, self._started)

    def _listed(self, name: str, info: ModelInfo) -> ServedModel:
        raw = info.raw
        return ServedModel(
            name,
            _created(raw) or self._started,
            _number(raw, "max_input_tokens", "inputTokenLimit", "context_length"),
            _number(raw, "max_tokens", "outputTokenLimit"),
        )

    async def _lists_of(
        self, client: Client, table: RouteTable
    ) -> list[Sequence[ModelInfo] | None]:
        """The list of each route's provider; all are requested at once."""
        lists: list[Sequence[ModelInfo] | None] = [None] * len(table.rules)

        async def read(index: int, target: RouteTarget) -> None:
            lists[index] = await self._list(client, target)

        async with anyio.create_task_group() as group:
            for index, rule in enumerate(table.rules):
                group.start_soon(read, index, table.targets(rule, "model")[0])
        return lists

    async def _list(self, client: Client, target: RouteTarget) -> list[ModelInfo] | None:
        """The list of a target's provider; None if it has none, or if it could not be read."""
        key = (target.provider.name, target.resolved.wire_api, target.base_url, target.key)
        now = self._clock()
        if key in self._lists and now < self._lists[key][0]:
            return self._lists[key][1]
        listed: list[ModelInfo] | None = None
        with anyio.move_on_after(LIST_SECONDS):
            try:
                listed = await client.models(
                    target.provider,
                    wire_api=target.resolved.wire_api,
                    base_url=target.base_url,
                    api_key=target.key,
                )
            except StreamError:
                # The provider has no list, or there is no key for it: its models are served all the
                # same, but not listed.
                listed = None
        seconds = LISTED_SECONDS if listed is not None else FAILED_SECONDS
        # Expired entries are dropped, so that lists of former routes or keys do not stay.
        fresh = {known: entry for known, entry in self._lists.items() if entry[0] > now}
        self._lists = {**fresh, key: (now + seconds, listed)}
        return listed


def _takes_own_name(rule: RouteRule) -> bool:
    """Whether a route's first target receives the name that the client sends."""
    return rule.is_pattern and rule.targets[0].model.endswith(":*")


def _created(raw: dict[str, Any]) -> int | None:
    """The creation time of a provider's model, in seconds since 1970; None if not reported."""
    for key in CREATED_KEYS:
        value = raw.get(key)
        if isinstance(value, (int, float)) and value > 0:
            return int(value)
        if isinstance(value, str):
            try:
                return int(datetime.fromisoformat(value).timestamp()) or None
            except (ValueError, OverflowError):
                continue
    return None


def _number(raw: dict[str, Any], *keys: str) -> int | None:
    for key in keys:
        value = raw.get(key)
        if isinstance(value, int) and value > 0:
            return value
    return None
