"""The checks of `streamlib doctor`. Nothing leaves this machine, and no key is read."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import ssl
import sys
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio
from msgspec import Struct

from streamlib import __version__
from streamlib.cli.model_options import MODEL_VARIABLE
from streamlib.client.auth import variables_of
from streamlib.providers import find, known
from streamlib_parsers import WIRE_APIS
from streamlib_parsers.items import WireApi
from streamlib_parsers.stream_error import StreamError

State: TypeAlias = Literal["ok", "note", "missing", "wrong"]
"""State of a check. `missing`: not installed or not set, which is no mistake."""

LOWEST_PYTHON: Final = (3, 11)

DISTRIBUTIONS: Final = ("msgspec", "anyio")
"""Distributions that the library needs."""

EXTRAS: Final = {
    "cli": ("h11", "markdown_it", "prompt_toolkit", "shtab", "wcwidth"),
    "httpx2": ("httpx2",),
    "http2": ("h2",),
    "br": ("brotli",),
    "zstd": ("backports.zstd",) if sys.version_info < (3, 14) else (),
    "aiohttp": ("aiohttp",),
    "web": ("starlette",),
    "seal": ("cryptography",),
    "gateway": ("starlette", "uvicorn"),
    "metrics": ("prometheus_client",),
    "pipeline": ("regex",),
    "bedrock": ("botocore",),
    "otel": ("opentelemetry",),
    "websocket": ("websockets",),
    "redis": ("coredis",),
    "fuzz": ("hypothesis",),
    "bench": (
        *("h11", "httpx2", "aiohttp", "botocore", "trio"),
        *("anthropic", "cohere", "google.genai", "openai", "httptools", "httpx_sse", "pytest"),
    ),
}
"""Extra -> the modules that it installs. Those for contributors are not listed."""

HTTP_LIBRARIES: Final = ("httpx", "httpx2", "aiohttp")

PROXY_VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

STORE_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")

LOOPBACK_SECONDS: Final = 10.0
"""Timeout of one request; a response of the loopback provider takes milliseconds."""


class Check(Struct, frozen=True):
    """The result of one check.

    Attributes:
        group: heading that the check belongs to.
        name: name of what was checked.
        state: `ok`, `note`, `missing`, or `wrong` if something cannot work.
        finding: the result, for example a version.
        cure: what to do if something is missing or wrong.
    """

    group: str
    name: str
    state: State
    finding: str
    cure: str = ""


def all_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Yields every check.

    Args:
        environ: environment variables.
    """
    yield from versions()
    yield from extras()
    yield from http_libraries()
    yield from proxies(environ)
    yield certificates(environ)
    yield from event_loops()
    yield terminal(environ)
    yield from keys(environ)
    yield model(environ)
    yield from loopback()


def versions() -> Iterator[Check]:
    """Versions of this library, of Python, and of the packages it needs."""
    group = "versions"
    yield Check(group, "streamlib", "ok", __version__)
    python = f"{platform.python_version()} ({platform.system()} {platform.machine()})"
    if sys.version_info >= LOWEST_PYTHON:
        yield Check(group, "Python", "ok", python)
    else:
        needed = ".".join(map(str, LOWEST_PYTHON))
        yield Check(group, "Python", "wrong", python, f"install Python {needed} or newer")
    for name in DISTRIBUTIONS:
        yield Check(group, name, "ok", version_of(name))


def version_of(name: str) -> str:
    """The version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "version unknown"


def is_installed(module: str) -> bool:
    """Whether a module could be imported. It is not imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def extras() -> Iterator[Check]:
    """Which extras are installed."""
    for name, modules in EXTRAS.items():
        absent = [module for module in modules if not is_installed(module)]
        if not absent:
            yield Check("extras", name, "ok", "installed")
            continue
        state: State = "wrong" if name == "cli" else "missing"
        finding = f"lacks {', '.join(absent)}"
        yield Check("extras", name, state, finding, f"pip install 'streamlib[{name}]'")


def http_libraries() -> Iterator[Check]:
    """Which HTTP libraries are installed."""
    group = "HTTP libraries"
    present = [name for name in HTTP_LIBRARIES if is_installed(name)]
    for name in present:
        yield Check(group, name, "ok", version_of(name))
    if not present:
        yield Check(group, "none", "wrong", "no request can be sent", "pip install httpx")


def proxies(environ: Mapping[str, str]) -> Iterator[Check]:
    """Proxies that the environment names, without their passwords."""
    group = "proxies"
    is_any = False
    for name in PROXY_VARIABLES:
        # HTTP libraries read both spellings.
        for variable in (name, name.lower()):
            value = environ.get(variable)
            if not value:
                continue
            is_any = True
            yield _proxy(variable, value)
    if not is_any:
        yield Check(group, "environment", "ok", "no proxy is set")


def _proxy(variable: str, value: str) -> Check:
    if variable.upper() == "NO_PROXY":
        return Check("proxies", variable, "note", value)
    parts = urlsplit(value)
    # A port that is not a number raises when it is read.
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not parts.scheme:
        cure = f"set {variable} to a URL such as http://host:3128, or unset it"
        return Check("proxies", variable, "wrong", "it is not a URL", cure)
    shown = f"{parts.scheme}://{host}"
    if port is not None:
        shown += f":{port}"
    if parts.scheme.startswith("socks") and not is_installed("socksio"):
        return Check("proxies", variable, "wrong", shown, "pip install socksio")
    return Check("proxies", variable, "note", f"requests go through {shown}")


def certificates(environ: Mapping[str, str]) -> Check:
    """Whether there are root certificates to verify servers with."""
    group, name = "certificates", "store"
    for variable in STORE_VARIABLES:
        path = environ.get(variable)
        if path and not os.path.exists(path):
            cure = f"unset {variable}, or name an existing file"
            return Check(group, variable, "wrong", f"{path} does not exist", cure)
        if path:
            return Check(group, variable, "note", path)
    if is_installed("certifi"):
        return Check(group, name, "ok", f"certifi {version_of('certifi')}")
    context = ssl.create_default_context()
    count = len(context.get_ca_certs())
    if count:
        return Check(group, name, "ok", f"{count} certificates of the system")
    return Check(group, name, "wrong", "no certificates", "pip install certifi")


def event_loops() -> Iterator[Check]:
    """Which event loops are installed."""
    group = "event loops"
    yield Check(group, "asyncio", "ok", "part of Python")
    for name in ("trio", "uvloop"):
        if is_installed(name):
            yield Check(group, name, "ok", version_of(name))
        else:
            yield Check(group, name, "missing", "not installed", f"pip install {name}, if needed")


def terminal(environ: Mapping[str, str]) -> Check:
    """Whether standard output is a terminal, and what it can show."""
    size = shutil.get_terminal_size()
    facts = [f"{size.columns} x {size.lines}", f"TERM {environ.get('TERM') or 'is not set'}"]
    if not sys.stdout.isatty():
        facts.insert(0, "not a terminal: text is written as it is")
    elif environ.get("NO_COLOR"):
        facts.append("NO_COLOR: without colours")
    encoding = (sys.stdout.encoding or "").lower().replace("_", "-")
    facts.append(encoding)
    cure = "set PYTHONUTF8=1: characters that the encoding lacks are shown as numbers"
    state: State = "ok" if encoding == "utf-8" else "note"
    return Check("terminal", "standard output", state, ", ".join(facts), cure)


def keys(environ: Mapping[str, str]) -> Iterator[Check]:
    """Which environment variables hold a key."""
    group = "keys"
    names: dict[str, str] = {}
    for provider in known().values():
        for variable in variables_of(provider):
            if environ.get(variable):
                names.setdefault(variable, provider.name)
    for variable in sorted(names):
        value = environ[variable]
        # `export KEY="$(cat file)"` drops the final newline; an .env file read by hand may keep it.
        if value == value.strip() and value.isprintable():
            yield Check(group, variable, "ok", f"set, for {names[variable]}")
        else:
            cure = "set it again: it has a space or a newline at an end, or a control character"
            yield Check(group, variable, "wrong", "it cannot be sent as it is", cure)
    if not names:
        cure = "`streamlib providers` names the variable of each provider"
        yield Check(group, "environment", "missing", "no key is set", cure)


def model(environ: Mapping[str, str]) -> Check:
    """The model that is used for questions without `--model`."""
    group = "model"
    name = environ.get(MODEL_VARIABLE)
    if not name:
        cure = f"set {MODEL_VARIABLE}, for example to anthropic:claude-opus-5"
        return Check(group, MODEL_VARIABLE, "missing", "not set: the loopback provider", cure)
    try:
        find(name)
    except StreamError as error:
        return Check(group, MODEL_VARIABLE, "wrong", error.message, "write it PROVIDER:MODEL")
    return Check(group, MODEL_VARIABLE, "ok", name)


def loopback() -> Iterator[Check]:
    """One request on each wire, over real HTTP on this machine."""
    group = "loopback provider"
    if not is_installed("h11"):
        cure = "pip install 'streamlib[cli]'"
        yield Check(group, "h11", "wrong", "its server is not installed", cure)
        return
    try:
        results = anyio.run(_ask_each_wire)
    except OSError as error:
        yield Check(
            group, "127.0.0.1", "wrong", str(error), "let programs listen on 127.0.0.1 here"
        )
        return
    for wire_api, problem in results.items():
        if problem is None:
            yield Check(group, wire_api, "ok", "complete")
        else:
            cure = "unset the proxies, or name 127.0.0.1 in NO_PROXY; else report it as a bug"
            yield Check(group, wire_api, "wrong", problem, cure)


async def _ask_each_wire() -> dict[WireApi, str | None]:
    """The error of each wire; None if its request succeeded."""
    from streamlib.client import Client
    from streamlib.client.retry import NO_RETRY
    from streamlib.testing import running

    results: dict[WireApi, str | None] = {}
    async with running() as url, Client(base_url=url, retry=NO_RETRY) as client:
        for wire_api in WIRE_APIS:
            results[wire_api] = "no response in time"
            # A proxy may never answer the request.
            with anyio.move_on_after(LOOPBACK_SECONDS):
                try:
                    response = await client.respond("ping", "loopback:echo", wire_api=wire_api)
                except StreamError as error:
                    results[wire_api] = str(error)
                    continue
                results[wire_api] = None
                if "ping" not in response.text:
                    results[wire_api] = f"unexpected text: {response.text[:40]!r}"
    return results
