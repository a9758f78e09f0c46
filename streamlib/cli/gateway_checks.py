"""Checks that `streamlib gateway` makes before it serves, so that an error is one line and not a
traceback of the server."""

from __future__ import annotations

import argparse
import importlib.util
import os

import anyio


def check_workers(arguments: argparse.Namespace) -> None:
    """Refuses options that do not work with several workers.

    Raises:
        ValueError: such an option is set.
    """
    if arguments.workers < 1:
        raise ValueError("--workers must be at least 1")
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
