"""`streamlib chat`: talk to a model in the terminal; by default to the loopback provider.

Each response runs in an event loop of its own; between two responses the program only reads a
line. Ctrl-C during a response cancels its loop and thereby the connection; the partial response
is retained.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from streamlib.cli.captures import CommandError
from streamlib.cli.chat_files import (
    append_recordings,
    check_record_file,
    open_history,
    read_image,
    read_tools,
    save_history,
)
from streamlib.cli.option_names import with_option_names
from streamlib.cli.screen import GREEN, RESET, Screen, has_colours
from streamlib.errors import StreamError
from streamlib.loopback import running
from streamlib.providers import find
from streamlib.request.endpoints import resolve_target
from streamlib.request.prompt import EFFORTS, Prompt
from streamlib.terminal.printable import printable
from streamlib_parsers import (
    WIRE_APIS,
    CustomToolCall,
    FunctionCall,
    Image,
    Response,
    ResponseItem,
    ToolSpec,
    user,
)

if TYPE_CHECKING:
    from streamlib.client import Client
    from streamlib.client.stream import ResponseStream
    from streamlib.recording import Recorder

MAX_ROUNDS: Final = 50
"""Requests for one line of input (calls that get an output, and pauses): a model that never stops
calling tools is stopped."""

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C."""

DESCRIPTION: Final = """\
Streams one response, or without TEXT a conversation. Without --model no key is
needed: the loopback provider responds."""

EXAMPLES: Final = """examples:
  # offline: the loopback provider repeats its input
  streamlib chat "Name three rivers"
  # a conversation, line by line; needs ANTHROPIC_API_KEY
  streamlib chat --model anthropic:claude-opus-5
  # continues the conversation of talk.json, and saves every turn to it
  streamlib chat --model openai:gpt-5 --history talk.json
  streamlib chat "What is this?" --image photo.jpg --model google:gemini-3-pro
  # shows the calls and prompts you for their outputs; it runs nothing
  streamlib chat "Weather in Rome?" --tools tools.json
  # then: streamlib inspect response.jsonl
  streamlib chat Hello --record response.jsonl
  # a server of your own
  streamlib chat Hi --model custom:M --wire-api chat --base-url http://host/v1

tools.json:
  [{"name": "get_weather", "description": "…", "schema":
    {"type": "object", "properties": {"city": {"type": "string"}}}}]

exit code: 0 success, 1 the last response failed, 2 usage error,
           130 stopped with Ctrl-C
"""


def add(commands: Any) -> None:
    """Adds the command and its options."""
    command: argparse.ArgumentParser = commands.add_parser(
        "chat",
        help="stream a conversation to the terminal",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "text",
        nargs="*",
        metavar="TEXT",
        help="the message; without it, a conversation line by line",
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
        help=f"reasoning effort: {', '.join(EFFORTS)}",
    )
    command.add_argument(
        "--history", metavar="FILE", help="a conversation to continue, saved after each turn"
    )
    command.add_argument(
        "--image",
        metavar="FILE",
        action="append",
        default=[],
        help="sent with the first message; may be repeated",
    )
    command.add_argument(
        "--tools",
        metavar="FILE",
        help="a JSON list of tools to offer; you type the outputs of their calls",
    )
    command.add_argument(
        "--record",
        metavar="FILE",
        help="append every response to this file, with its chunks and times; it holds no key",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Streams one response, or a conversation until the end of the input."""
    try:
        conversation = Conversation(arguments)
    except CommandError as error:
        print(printable(str(error)), file=sys.stderr)
        return error.code
    return conversation.talk()


class Conversation:
    """A history, and the screen that shows it.

    Raises:
        CommandError: An option or a file is not usable; nothing was sent.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        check_target(arguments)
        self._images: list[Image] = [read_image(name) for name in arguments.image]
        """Images for the next message; empty once they were sent."""
        self._tools: list[ToolSpec] = []
        if arguments.tools:
            self._tools = read_tools(arguments.tools)
        self._history: list[ResponseItem] = []
        """All items so far; a response is added when it ended or was stopped."""
        if arguments.history:
            self._history = open_history(arguments.history)
        if arguments.record:
            check_record_file(arguments.record)
        self._screen = Screen(sys.stdout, sys.stderr)
        self._stream: ResponseStream | None = None
        """The stream of the current request; None until it was sent."""
        self._reported: set[tuple[str, str]] = set()
        """Action and reason of each `Change` that was shown: a history is sent again with every
        turn, and with it its changes."""
        self._port = 0
        """Port of the loopback provider; 0 until it was started."""

    def talk(self) -> int:
        """Sends the text of the command line, or line after line of the input.

        Returns:
            The exit code of the last response.
        """
        if self._arguments.text:
            return self._send(" ".join(self._arguments.text))
        if sys.stdin.isatty():
            self._greet()
        code = 0
        while True:
            line = self._read_input()
            if line is None:
                return code
            if not line.strip():
                continue
            code = self._send(line)
            if code == INTERRUPTED:
                # Whoever stopped the response goes on with the conversation.
                code = 0

    def _greet(self) -> None:
        loaded = ""
        if self._history:
            loaded = f" · {len(self._history)} items in {self._arguments.history}"
        self._screen.note(f"{self._arguments.model}{loaded} · Ctrl-C stops a response, Ctrl-D ends")

    def _read_input(self) -> str | None:
        if sys.stdin.isatty():
            sys.stderr.write("\n")
        sys.stderr.flush()
        return read_line("> ")

    def _send(self, text: str) -> int:
        """Sends a message, and requests again for calls with outputs and for pauses."""
        before = len(self._history)
        self._history.append(user(without_surrogates(text), *self._images))
        self._images = []
        for _ in range(MAX_ROUNDS):
            code, response = self._request()
            if code and len(self._history) == before + 1:
                # Nothing was received: the same message can be sent again.
                self._history.pop()
            is_over = bool(code) or not response.unfinished or not self._collect_outputs(response)
            # After each request, so that a failure of the next one loses nothing.
            if self._arguments.history:
                save_history(self._arguments.history, self._history)
            if is_over:
                return code
        self._screen.note(f"stopped after {MAX_ROUNDS} rounds")
        return 1

    def _request(self) -> tuple[int, Response]:
        """Sends the history; shows the response and adds it to the history, complete or not."""
        self._forget_stream()
        try:
            code = anyio.run(self._stream_response)
        except KeyboardInterrupt:
            code = INTERRUPTED
            # The response stopped in the middle of a line, perhaps in colour.
            self._screen.end()
            self._screen.note("stopped")
        response = Response()
        if self._stream is not None:
            response = self._stream.response
        self._history += response.items
        return code, response

    def _forget_stream(self) -> None:
        # A method, because mypy would take the attribute for None until the end of its caller.
        self._stream = None

    async def _stream_response(self) -> int:
        options = self._arguments
        system = options.system
        if system:
            system = without_surrogates(system)
        prompt = Prompt(self._history, system, tools=self._tools, reasoning=options.reasoning)
        recorder = self._recorder()
        try:
            async with self._client(recorder) as client:
                self._stream = client.stream(prompt, model=options.model)
                await self._show(self._stream)
        except StreamError as error:
            self._screen.end()
            self._screen.fail(error)
            return 1
        finally:
            if recorder is not None:
                await self._save_recordings(recorder)
        return 0

    def _recorder(self) -> Recorder | None:
        from streamlib.recording import Recorder

        if not self._arguments.record:
            return None
        return Recorder()

    async def _save_recordings(self, recorder: Recorder) -> None:
        wire_api = None
        if self._stream is not None:
            wire_api = self._stream.request.wire_api
        append_recordings(self._arguments.record, recorder.recordings, wire_api)
        # Ctrl-C cancels every await, and this one must not be left half done.
        with anyio.CancelScope(shield=True):
            await recorder.aclose()

    @asynccontextmanager
    async def _client(self, http: Any) -> AsyncGenerator[Client]:
        """A client; with a loopback provider, unless another server was given.

        The loopback provider keeps its port from one request to the next, because the address is
        part of an item's origin.
        """
        # The HTTP library is loaded only where a request is sent.
        from streamlib.client import Client

        base_url = self._arguments.base_url
        async with AsyncExitStack() as stack:
            # With `--base-url` it is `streamlib serve` in another process.
            if self._arguments.model.startswith("loopback:") and base_url is None:
                base_url = await stack.enter_async_context(running(port=self._port))
                self._port = int(base_url.rpartition(":")[2])
            client = Client(http=http, base_url=base_url, wire_api=self._arguments.wire_api)
            yield await stack.enter_async_context(client)

    async def _show(self, stream: ResponseStream) -> None:
        for change in stream.request.report:
            key = (change.action, change.reason)
            if key not in self._reported:
                self._reported.add(key)
                self._screen.note(f"[{change.action} {change.path}: {change.reason}]")
        async with stream:
            async for event in stream:
                self._screen.show(event)
        self._screen.end()
        self._screen.status(stream.response)

    def _collect_outputs(self, response: Response) -> bool:
        """Reads an output for every call; False where the input ends before that."""
        for call in response.pending:
            if not isinstance(call, (FunctionCall, CustomToolCall)):
                # A shell or screen of this machine is nothing to type in.
                self._screen.note(f"a {type(call).__name__} cannot be answered here")
                return False
            output = read_line(f"output of {printable(call.name)}: ")
            if output is None:
                self._screen.note(f"{call.name} was left without an output")
                return False
            self._history.append(call.output(output))
        return True


TARGET_ERRORS: Final = ("unknown_provider", "base_url", "wire_api", "model")
"""Codes of requests that cannot be sent because of the command's options."""


def check_target(arguments: argparse.Namespace) -> None:
    """Makes sure that the options name a target, before anything is read from the input.

    Raises:
        CommandError: They do not; exit code 2.
    """
    try:
        provider, model = find(arguments.model)
        resolve_target(provider, model, arguments.wire_api, arguments.base_url)
    except StreamError as error:
        # Other errors, a missing key for example, are reported by the request itself.
        if error.info.code in TARGET_ERRORS:
            raise CommandError(with_option_names(error.message), 2) from None


def without_surrogates(text: str) -> str:
    """Replaces lone surrogates, which stand for bytes of an argument that are not UTF-8."""
    return text.encode("utf-8", "replace").decode()


def read_line(prompt: str) -> str | None:
    """Reads a line of input; None at its end. The prompt is shown on terminals alone."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _read_line_of_terminal(prompt)
    if sys.stdin.isatty():
        # Standard output goes to a file, which must hold the responses alone.
        sys.stderr.write(prompt)
    sys.stderr.flush()
    # Bytes, because a pipe need not be UTF-8.
    line = sys.stdin.buffer.readline().decode("utf-8", "replace")
    if not line:
        return None
    return line.removesuffix("\n").removesuffix("\r")


def _read_line_of_terminal(prompt: str) -> str | None:
    try:
        # Importing it gives `input` arrow keys and a history of lines, where the system has it.
        importlib.import_module("readline")
    except ImportError:
        pass
    else:
        if has_colours(sys.stdout):
            # \x01 and \x02 tell readline that what is between them takes no columns.
            prompt = f"\x01{GREEN}\x02{prompt}\x01{RESET}\x02"
    try:
        return input(prompt)
    except (EOFError, KeyboardInterrupt):
        # At the prompt Ctrl-C ends the conversation as Ctrl-D does, and leaves its own line.
        sys.stdout.write("\n")
        return None
