"""Checks that `streamlib gateway` makes before it serves, so that an error is one line and not a
traceback of the server."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from typing import TYPE_CHECKING

import anyio

from streamlib.client import Client
from streamlib.client.retry import NO_RETRY
from streamlib.display.safe_text import printable
from streamlib.providers.loopback import loopback_at
from streamlib.request.prompt import Prompt
from streamlib.testing import running as running_loopback
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.gateway import RouteRule, RouteTable
    from streamlib.gateway.targets.routes import RouteTarget


def check_routes(table: RouteTable, problems: list[str], model: str | None) -> int:
    """The exit code of `--check`: 0 if every target has its key, and has answered.

    Args:
        table: the routes, which are valid.
        problems: a line for each target without a key.
        model: what `--ask` names: each target of its route is sent one short request; None: no
            request is sent.
    """
    for line in problems:
        print(line, file=sys.stderr)
    if model is None:
        return 1 if problems else 0
    try:
        rule = table.rule(model)
    except StreamError as error:
        print(printable(error.message), file=sys.stderr)
        return 1
    return anyio.run(_ask_all, table, rule, model)


async def _ask_all(table: RouteTable, rule: RouteRule, model: str) -> int:
    """Sends the requests of `--ask`, and prints what each target does; returns the exit code."""
    code = 0
    async with running_loopback() as url, Client() as client:
        for target in table.using(loopback_at(url)).targets(rule, model):
            began = time.monotonic()
            failure = await _ask(client, rule, target)
            name = printable(f"{target.provider.name}:{target.resolved.model}")
            if failure is not None:
                code = 1
                print(f"{name} fails: {failure}", file=sys.stderr)
            else:
                print(f"{name} answers in {time.monotonic() - began:.2g} s")
    return code


async def _ask(client: Client, rule: RouteRule, target: RouteTarget) -> str | None:
    """Sends one short request to a target; why it failed, in its own words, or None."""
    from streamlib.gateway.targets.routes import apply_overrides
    from streamlib.gateway.watch.request_log import error_text

    prompt = apply_overrides(Prompt("Say OK."), target)
    try:
        stream = client.stream(
            prompt,
            target.resolved.model,
            provider=target.provider,
            wire_api=target.resolved.wire_api,
            base_url=target.base_url,
            api_key=target.key,
            dialects=rule.dialects,
            errors="event",
            retry=NO_RETRY,
        )
    except StreamError as error:
        return error_text(error.info)
    async with stream:
        async for _ in stream:
            pass
    if stream.response.error is None:
        return None
    limits = stream.rate_limits
    return error_text(stream.response.error, None if limits is None else limits.request_id)


def check_workers(arguments: argparse.Namespace) -> None:
    """Refuses options that do not work with several workers.

    Raises:
        ValueError: such an option is set.
    """
    if arguments.ask is not None and arguments.check is None:
        raise ValueError("--ask goes with --check FILE")
    if arguments.workers < 1:
        raise ValueError("--workers must be at least 1")
    for option in ("connections", "memory"):
        if getattr(arguments, option) < 1:
            raise ValueError(f"--{option} must be at least 1")
    if arguments.workers == 1:
        return
    if not hasattr(os, "fork"):
        raise ValueError("--workers: this system has no fork: start several gateways")
    if arguments.log == "memory:":
        message = "--log memory: cannot be shared: use sqlite:///file or redis://"
        raise ValueError(f"--workers: {message}")


def check_extras(arguments: argparse.Namespace) -> None:
    """Refuses options whose extra is not installed.

    Raises:
        ValueError: an extra is missing.
    """
    needed = (
        ("--spans", arguments.spans, "opentelemetry", "otel"),
        ("--metrics-port", arguments.metrics_port is not None, "prometheus_client", "metrics"),
    )
    for option, is_set, module, extra in needed:
        if is_set and importlib.util.find_spec(module) is None:
            message = f"{module} is not installed: pip install 'streamlib[{extra}]'"
            raise ValueError(f"{option}: {message}")


def check_servers(arguments: argparse.Namespace) -> None:
    """Connects once to each server that an option names.

    Raises:
        ValueError: a URL names no server, or its server does not respond.
    """
    if arguments.log:
        _check_log(arguments.log)
    if arguments.state != "off":
        _check_state(arguments.state)
    if arguments.limits:
        _check_limits(arguments.limits)


def _check_log(url: str) -> None:
    """Connects once to the engine of a URL, before the gateway serves.

    Raises:
        ValueError: the URL names no engine, or its engine does not respond. The message omits the
            URL, which may contain a password.
    """
    from streamlib.durable import LogError, open_log

    async def check() -> None:
        async with open_log(url):
            pass

    try:
        anyio.run(check)
    except LogError as error:
        raise ValueError(f"--log: {error}") from None


def _check_state(url: str) -> None:
    """Connects once to the store of provider state, as `_check_log` does.

    Raises:
        ValueError: the URL names no store, or it does not respond.
    """
    from streamlib.gateway import StateUnavailableError, open_state

    async def check() -> None:
        async with open_state(url) as store:
            await store.get("check", ["check"])

    try:
        anyio.run(check)
    except (StateUnavailableError, ValueError) as error:
        raise ValueError(f"--state: {error}") from None


def _check_limits(url: str) -> None:
    """Connects once to the store of client limits, as `_check_log` does.

    Raises:
        ValueError: the URL names no server, or it does not respond.
    """
    from streamlib.durable import LogError
    from streamlib.gateway.clients.redis_limits import check_limits

    try:
        anyio.run(check_limits, url)
    except (LogError, ValueError) as error:
        raise ValueError(f"--limits: {error}") from None
