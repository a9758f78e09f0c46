"""`streamlib chat`: talk to a model in the terminal. Without a model it talks to the loopback provider, through real HTTP.

Each answer has a loop of its own: between two, the program only reads a line. Ctrl-C in an answer cancels its loop, and with it the
connection; what was said stays.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from streamlib.cli.captures import Unreadable
from streamlib.cli.chat_files import (
    check_recordings,
    open_history,
    read_image,
    read_tools,
    record,
    save_history,
)
from streamlib.cli.screen import GOOD, PLAIN, Screen, coloured
from streamlib.cli.terminal import in_options, printable
from streamlib.errors import StreamError
from streamlib.loopback import running
from streamlib.providers import find
from streamlib.request.endpoints import resolve_target
from streamlib.request.prompt import EFFORTS, Prompt
from streamlib_parsers import WIRE_APIS, Response, user

if TYPE_CHECKING:
    from streamlib.client import Client
    from streamlib.client.stream import ResponseStream

ROUNDS: Final = 50
"""Requests for one line of a person: calls that are answered, and pauses. A model that goes on for ever is stopped."""

EXAMPLES = """examples:
  # offline: the loopback provider repeats what it hears
  streamlib chat "Name three rivers"
  # a conversation, line by line; needs ANTHROPIC_API_KEY
  streamlib chat --model anthropic:claude-opus-5
  # goes on where talk.json ends, and saves every turn to it
  streamlib chat --model openai:gpt-5 --history talk.json
  streamlib chat "What is this?" --image photo.jpg --model google:gemini-3-pro
  # shows the calls and asks you for their outputs; it runs nothing
  streamlib chat "Weather in Rome?" --tools tools.json
  # then: streamlib inspect answer.jsonl
  streamlib chat Hello --record answer.jsonl
  # a server of your own
  streamlib chat Hi --model custom:M --wire-api chat --base-url http://host/v1

tools.json:
  [{"name": "get_weather", "description": "…", "schema":
    {"type": "object", "properties": {"city": {"type": "string"}}}}]

exit code: 0 answered, 1 the last answer failed, 130 stopped with Ctrl-C
"""


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "chat",
        help="stream a conversation to the terminal",
        description="Streams one answer, or without TEXT a conversation. Without --model no key is\nneeded: the loopback provider answers.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "text",
        nargs="*",
        metavar="TEXT",
        help="what to say; without it, a conversation line by line",
    )
    command.add_argument(
        "--model",
        default="loopback:echo",
        metavar="PROVIDER:MODEL",
        help="for example anthropic:claude-opus-5",
    )
    command.add_argument(
        "--wire-api",
        choices=WIRE_APIS,
        metavar="WIRE",
        help=f"instead of the provider's default: {', '.join(WIRE_APIS)}",
    )
    command.add_argument("--base-url", metavar="URL", help="another server for the same provider")
    command.add_argument("--system", metavar="TEXT", help="instructions")
    command.add_argument(
        "--reasoning",
        choices=EFFORTS,
        metavar="EFFORT",
        help=f"how much it may think: {', '.join(EFFORTS)}",
    )
    command.add_argument(
        "--history", metavar="FILE", help="a conversation to go on with, saved after each turn"
    )
    command.add_argument(
        "--image",
        metavar="FILE",
        action="append",
        default=[],
        help="goes with the first line; may be given again",
    )
    command.add_argument(
        "--tools",
        metavar="FILE",
        help="a JSON list of tools to offer; you give the outputs of their calls",
    )
    command.add_argument(
        "--record",
        metavar="FILE",
        help="add every answer to this file, with its chunks and times; no key is in it",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One answer, or a conversation until the input ends."""
    try:
        conversation = Conversation(arguments)
    except Unreadable as error:
        print(printable(str(error)), file=sys.stderr)
        return error.code
    return conversation.talk()


class Conversation:
    """A history, and the screen it is shown on."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        check_words(arguments)
        self._images = [read_image(name) for name in arguments.image]
        self._tools = read_tools(arguments.tools) if arguments.tools else []
        self._history = open_history(arguments.history) if arguments.history else []
        if arguments.record:
            check_recordings(arguments.record)
        self._screen = Screen(sys.stdout, sys.stderr)
        self._stream: ResponseStream | None = None
        self._told: set[Any] = set()
        self._port = 0

    def talk(self) -> int:
        """Says TEXT, or reads line after line."""
        if self._arguments.text:
            return self._say(" ".join(self._arguments.text))
        if sys.stdin.isatty():
            since = (
                f" · {len(self._history)} items in {self._arguments.history}"
                if self._history
                else ""
            )
            self._screen.note(
                f"{self._arguments.model}{since} · Ctrl-C stops an answer, Ctrl-D ends"
            )
        code = 0
        while (line := self._line()) is not None:
            if line.strip():
                code = self._say(line)
                code = 0 if code == 130 else code  # stopped by the person who goes on talking
        return code

    def _line(self) -> str | None:
        sys.stderr.write("\n" if sys.stdin.isatty() else "")
        sys.stderr.flush()
        return read_line("> ")

    def _say(self, text: str) -> int:
        """A line, and the answer to it, with all the calls and pauses in between."""
        before = len(self._history)
        self._history.append(user(valid(text), *self._images))
        self._images = []
        for _ in range(ROUNDS):
            code, response = self._answer()
            if code and len(self._history) == before + 1:
                self._history.pop()  # nothing came: the line can be said again
            goes_on = not code and response.unfinished and self._give(response)
            if self._arguments.history:
                save_history(self._arguments.history, self._history)
            if not goes_on:
                return code
        self._screen.note(f"stopped after {ROUNDS} rounds")
        return 1

    def _answer(self) -> tuple[int, Response]:
        """One request, its answer on the screen and in the history as far as it came."""
        self._forget()
        try:
            code = anyio.run(self._ask)
        except KeyboardInterrupt:
            code = 130
            self._screen.end()
            self._screen.note("stopped")
        response = Response() if self._stream is None else self._stream.response
        self._history += response.items
        return code, response

    def _forget(self) -> None:
        self._stream = None

    async def _ask(self) -> int:
        asked = self._arguments
        prompt = Prompt(
            self._history,
            asked.system and valid(asked.system),
            tools=self._tools,
            reasoning=asked.reasoning,
        )
        recorder = self._recorder()
        try:
            async with self._connected(recorder) as client:
                self._stream = client.stream(prompt, model=asked.model)
                await self._show(self._stream)
        except StreamError as error:
            self._screen.end()
            self._screen.fail(error)
            return 1
        finally:
            if recorder is not None:
                record(
                    asked.record,
                    recorder.recordings,
                    None if self._stream is None else self._stream.request.wire_api,
                )
                with anyio.CancelScope(
                    shield=True
                ):  # Ctrl-C cancels what waits, and this must not be left half done
                    await recorder.aclose()
        return 0

    @asynccontextmanager
    async def _connected(self, http: Any) -> AsyncGenerator[Client]:
        """A client, and the loopback provider where no other was asked for: the same address each time, for it is part of an origin."""
        from streamlib.client import (
            Client,
        )  # the HTTP library is loaded only where a request is sent

        base_url = self._arguments.base_url
        async with AsyncExitStack() as stack:
            if self._arguments.model.startswith("loopback:") and base_url is None:
                base_url = await stack.enter_async_context(running(port=self._port))
                self._port = int(base_url.rpartition(":")[2])
            yield await stack.enter_async_context(
                Client(http=http, base_url=base_url, wire_api=self._arguments.wire_api)
            )

    def _recorder(self) -> Any:
        from streamlib.recording import Recorder

        return Recorder() if self._arguments.record else None

    async def _show(self, stream: ResponseStream) -> None:
        for change in stream.request.report:
            if (
                change.action,
                change.reason,
            ) not in self._told:  # once: a history is sent again with every turn
                self._told.add((change.action, change.reason))
                self._screen.note(f"[{change.action} {change.path}: {change.reason}]")
        async with stream:
            async for event in stream:
                self._screen.show(event)
        self._screen.end()
        self._screen.status(stream.response)

    def _give(self, response: Response) -> bool:
        """Asks the person for the outputs of the calls; False where they have none to give."""
        for call in response.calls:
            output = read_line(f"output of {printable(call.name)}: ")
            if output is None:
                self._screen.note(f"{call.name} was left without an output")
                return False
            self._history.append(call.output(output))
        return True


WORDS: Final = ("unknown_provider", "base_url", "wire_api", "model")
"""Codes of requests that cannot be sent because of what was typed."""


def check_words(arguments: argparse.Namespace) -> None:
    """A model that names no target is wrong words: said before anything is asked, in the words of the command line."""
    try:
        resolve_target(*find(arguments.model), arguments.wire_api, arguments.base_url)
    except StreamError as error:
        if error.info.code in WORDS:
            raise Unreadable(in_options(error.message), 2) from None


def valid(text: str) -> str:
    """Text without the halves of characters that a shell may pass on."""
    return text.encode("utf-8", "replace").decode()


def read_line(prompt: str) -> str | None:
    """A line of the person; None at the end of the input. The prompt is for terminals alone."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        try:
            importlib.import_module(
                "readline"
            )  # arrows and a history of lines, where the system has it
            prompt = (
                f"\x01{GOOD}\x02{prompt}\x01{PLAIN}\x02" if coloured(sys.stdout) else prompt
            )  # \x01 \x02: no width in between
        except ImportError:
            pass
        try:
            return input(prompt)
        except (EOFError, KeyboardInterrupt):
            sys.stdout.write("\n")
            return None
    sys.stderr.write(prompt if sys.stdin.isatty() else "")
    sys.stderr.flush()
    line = sys.stdin.buffer.readline().decode("utf-8", "replace")
    return line.removesuffix("\n").removesuffix("\r") if line else None
