"""`streamlib chat`: talk to a model in the terminal. Without a model it talks to the loopback provider, through real HTTP."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, TextIO

import anyio

from streamlib.cli.terminal import Printable, printable
from streamlib.errors import StreamError
from streamlib.loopback import running
from streamlib.prompt import EFFORTS, Prompt
from streamlib_parsers import (
    WIRE_APIS,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    Response,
    ResponseItem,
    user,
)
from streamlib_parsers.items import FunctionCall, ServerToolCall

DIM, PLAIN = "\x1b[2m", "\x1b[0m"


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "chat",
        help="stream a conversation to the terminal",
        description="Streams one answer, or without TEXT a conversation. Without --model no key is needed: the loopback provider answers.",
    )
    command.add_argument("text", nargs="*", metavar="TEXT", help="what to say; without it, a conversation line by line")
    command.add_argument("--model", default="loopback:echo", metavar="PROVIDER:MODEL", help="for example anthropic:claude-opus-5")
    command.add_argument("--wire-api", choices=WIRE_APIS, help="speak this wire instead of the provider's default")
    command.add_argument("--base-url", metavar="URL", help="another server for the same provider")
    command.add_argument("--system", metavar="TEXT", help="instructions")
    command.add_argument("--reasoning", choices=EFFORTS, default=None, help="how much the model may think")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One answer, or a conversation until the input ends."""
    try:
        return anyio.run(_chat, arguments)
    except StreamError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1


async def _chat(arguments: argparse.Namespace) -> int:
    from streamlib.client import Client  # the HTTP library is loaded only where a request is sent

    async with AsyncExitStack() as stack:
        base_url = arguments.base_url
        if arguments.model.startswith("loopback:") and base_url is None:
            base_url = await stack.enter_async_context(running())
        client = await stack.enter_async_context(Client(base_url=base_url, wire_api=arguments.wire_api))
        return await Conversation(client, arguments).talk()


class Conversation:
    """A history, and the screen it is shown on."""

    def __init__(self, client: Any, arguments: argparse.Namespace) -> None:
        self._client = client
        self._arguments = arguments
        self._history: list[ResponseItem] = []
        self._screen = Screen(sys.stdout, sys.stderr)

    async def talk(self) -> int:
        """Says TEXT, or reads line after line."""
        if self._arguments.text:
            return await self._turn(" ".join(self._arguments.text))
        code = 0
        while (line := await anyio.to_thread.run_sync(_read_line)) is not None:
            if line.strip():
                code = await self._turn(line)
        return code

    async def _turn(self, text: str) -> int:
        prompt = Prompt([*self._history, user(text)], self._arguments.system, reasoning=self._arguments.reasoning)
        try:
            async with self._client.stream(prompt, model=self._arguments.model) as stream:
                async for event in stream:
                    self._screen.show(event)
        except StreamError as error:
            self._screen.end()
            self._screen.fail(error)
            return 1
        self._history = [*prompt.items, *stream.response.items]
        self._screen.end()
        self._screen.status(stream.response)
        return 0


def _read_line() -> str | None:
    sys.stderr.write("\n> " if sys.stdin.isatty() else "")
    sys.stderr.flush()
    return sys.stdin.readline() or None


class Screen:
    """Text on stdout; thoughts dim, and only on a terminal; the status line on stderr."""

    def __init__(self, out: TextIO, status: TextIO) -> None:
        self._out = out
        self._err = status
        self._colour = out.isatty()
        self._safe = Printable()
        self._dim = self._shown = False

    def show(self, event: Any) -> None:
        """One event."""
        shown = _SHOWN.get(type(event))
        if shown is not None:
            shown(self, event)

    def _text(self, event: Any) -> None:
        self._write(event.delta, dim=False)

    def _thought(self, event: Any) -> None:
        if self._colour:
            self._write(event.delta, dim=True)

    def _added(self, event: OutputItemAdded) -> None:
        if isinstance(event.item, (FunctionCall, ServerToolCall)):
            self._write(f"\n[{event.item.name} ", dim=True)
        elif self._shown:
            self._write("\n", dim=self._dim)

    def _done(self, event: OutputItemDone) -> None:
        if isinstance(event.item, (FunctionCall, ServerToolCall)):
            self._write("]", dim=True)

    def _write(self, text: str, *, dim: bool) -> None:
        if self._colour and dim != self._dim:
            self._out.write(self._safe.close() + (DIM if dim else PLAIN))
        self._dim, self._shown = dim, True
        self._out.write(self._safe.feed(text))
        self._out.flush()

    def end(self) -> None:
        """The answer is over."""
        self._out.write(self._safe.close() + (PLAIN if self._dim and self._colour else "") + "\n")
        self._out.flush()
        self._dim = self._shown = False

    def fail(self, error: StreamError) -> None:
        """What went wrong, in one line."""
        self._err.write(printable(str(error)) + "\n")

    def status(self, response: Response) -> None:
        """Time to first token, speed, usage, and what is left of the limits."""
        facts = [*_timing(response), *_usage(response), *_limits(response)]
        line = f"[{response.model or '?'} · {response.stop_reason}{''.join(f' · {fact}' for fact in facts)}]\n"
        self._err.write(printable(line))


_SHOWN: dict[type, Callable[[Screen, Any], None]] = {
    OutputTextDelta: Screen._text,
    RefusalDelta: Screen._text,
    ReasoningContentDelta: Screen._thought,
    ReasoningSummaryDelta: Screen._thought,
    FunctionCallArgumentsDelta: Screen._text,
    OutputItemAdded: Screen._added,
    OutputItemDone: Screen._done,
}


def _timing(response: Response) -> list[str]:
    timing = response.timing
    if timing is None or timing.first_token is None:
        return []
    speed = [f"{timing.tokens_per_second:.0f} tokens/s"] if timing.tokens_per_second else []
    return [f"first token {timing.first_token * 1000:.0f} ms", *speed]


def _usage(response: Response) -> list[str]:
    usage = response.usage
    return [f"{usage.input_tokens} in, {usage.output_tokens} out"] if usage else []


def _limits(response: Response) -> list[str]:
    limits = response.rate_limits
    windows = {"requests": limits.requests, "tokens": limits.tokens} if limits else {}
    return [f"{window.remaining:,.0f} {name} left" for name, window in windows.items() if window and window.remaining is not None]
