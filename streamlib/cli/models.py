"""`streamlib models`: the models that providers list."""

from __future__ import annotations

import argparse
import sys
from contextlib import AsyncExitStack
from typing import Any, Final

import anyio
import msgspec

from streamlib.cli.arguments import CommandError
from streamlib.cli.exit_codes import FAILED, USAGE, code_of_error
from streamlib.cli.model_options import with_option_names
from streamlib.cli.patience import NotedRetry, is_unreachable, unreachable_text
from streamlib.cli.progress import WaitingLine
from streamlib.client.auth import variables_of
from streamlib.display.safe_text import one_line
from streamlib.providers import Provider, known
from streamlib.providers import provider as find_provider
from streamlib.providers.loopback import PROVIDER as LOOPBACK
from streamlib_parsers import WIRE_APIS
from streamlib_parsers.stream_error import StreamError

DESCRIPTION: Final = """\
Asks providers for the models that they offer: those whose key is set, or the
one that --provider names."""

EXAMPLES: Final = """examples:
  streamlib models
  # those whose name contains a text
  streamlib models opus
  # of one provider; a local server needs no key, and loopback no server
  streamlib models --provider ollama
  # a server of your own
  streamlib models --provider custom --wire-api chat --base-url http://host/v1

exit code: 0 success, 1 no model was found, 2 usage error,
           5 no provider could be asked, but may be later
"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "query", nargs="?", default="", metavar="QUERY", help="a part of the model's name"
    )
    command.add_argument("-p", "--provider", metavar="PROVIDER", help="ask only this provider")
    command.add_argument(
        "--wire-api", choices=WIRE_APIS, metavar="WIRE", help="the wire of that server"
    )
    command.add_argument("--base-url", metavar="URL", help="another server for the same provider")
    command.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object a model, as its provider lists it",
    )


def run(arguments: argparse.Namespace) -> int:
    """Lists the models that match."""
    names = asked_providers(arguments)
    with WaitingLine(f"asking {', '.join(names)}"):
        return anyio.run(_list, names, arguments)


def asked_providers(arguments: argparse.Namespace) -> list[str]:
    """The names of the providers to ask for their models.

    Raises:
        CommandError: no provider can be asked; exit code 2.
    """
    if arguments.provider:
        return [arguments.provider]
    if arguments.base_url:
        raise CommandError("--base-url is the server of one provider: it needs --provider", USAGE)
    from streamlib.client.auth import KeyStore

    keys = KeyStore()
    names: set[str] = set()
    for provider in known().values():
        has_variable = bool(variables_of(provider))
        if has_variable and provider.base_url and lists_models(provider):
            # Providers with an optional key are local servers, which mostly do not run.
            if keys.can_authenticate(provider, provider.base_url) and not provider.key_optional:
                names.add(provider.name)
    if not names:
        raise CommandError(
            "no provider has a key: `streamlib providers` names their variables, and --provider "
            "asks a local server, which needs none",
            USAGE,
        )
    return sorted(names)


def lists_models(provider: Provider) -> bool:
    """Whether a provider has a list of its models."""
    return provider.models_path != ""


async def _list(names: list[str], arguments: argparse.Namespace) -> int:
    from streamlib.client import Client
    from streamlib.client.model_list import ModelInfo

    lists: dict[str, list[ModelInfo]] = {}
    failures: list[StreamError] = []

    async with AsyncExitStack() as stack:
        base_url = arguments.base_url
        if arguments.provider == LOOPBACK.name and base_url is None:
            from streamlib.testing import running  # an HTTP server: only this provider needs one

            base_url = await stack.enter_async_context(running())
        retry = NotedRetry(note=_note)
        client = Client(base_url=base_url, wire_api=arguments.wire_api, retry=retry)
        await stack.enter_async_context(client)

        async def ask(name: str) -> None:
            try:
                lists[name] = await client.models(name)
            except StreamError as error:
                failures.append(error)
                _note(f"{name}: {_reason(error, name, arguments.base_url)}")

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(ask, name)
    count = 0
    for name in sorted(lists):
        for model in lists[name]:
            if arguments.query.lower() in model.id.lower():
                count += 1
                _print(name, model.id, model.raw, is_json=arguments.json)
    if count:
        return 0
    if failures and not lists:
        return max(code_of_error(error.info) for error in failures)
    return FAILED


def _note(text: str) -> None:
    print(one_line(text), file=sys.stderr)


def _reason(error: StreamError, name: str, base_url: str | None) -> str:
    """Why a provider returned no list; with its address if it cannot be reached."""
    text = str(error)
    if is_unreachable(error):
        text = unreachable_text(error, base_url or find_provider(name).base_url)
    return with_option_names(text)


def _print(provider: str, model: str, raw: dict[str, Any], *, is_json: bool) -> None:
    if is_json:
        fields = {"model": f"{provider}:{model}", "raw": raw}
        print(msgspec.json.encode(fields).decode())
    else:
        print(one_line(f"{provider}:{model}"))
