"""What `streamlib gateway` checks before it serves: an error is then one line, not one of the
server's."""

from __future__ import annotations

import argparse
import importlib.util
import os

import anyio


def check_workers(arguments: argparse.Namespace) -> None:
    """Reports what several workers cannot do.

    Raises:
        ValueError: They cannot.
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
    """Reports options whose extra is not installed.

    Raises:
        ValueError: One is not.
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
        ValueError: A URL names none, or its server does not answer.
    """
    if arguments.log:
        _check_log(arguments.log)
    if arguments.state != "off":
        _check_state(arguments.state)
    if arguments.limits:
        _check_limits(arguments.limits)


def _check_log(url: str) -> None:
    """Connects once: an error at the start is one line, not one of the server's.

    Raises:
        ValueError: The URL names no engine, or its engine does not answer. It is not repeated: it
            may have a password.
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
    """As `_check_log`, for the store of what clients lose.

    Raises:
        ValueError: The URL names no store, or it does not answer.
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
    """As `_check_log`, for the limits of named clients.

    Raises:
        ValueError: The URL names no server, or it does not answer.
    """
    from streamlib.durable import LogError
    from streamlib.gateway.redis_limits import check_limits

    try:
        anyio.run(check_limits, url)
    except (LogError, ValueError) as error:
        raise ValueError(f"--limits: {error}") from None
