"""A conversation: a history, the requests that continue it, and the screen that shows them.

Each response runs in an event loop of its own; between two responses the program only reads a
line. Ctrl-C during a response cancels its loop and thereby the connection; the partial response
is retained.
"""

from __future__ import annotations

import argparse
import sys
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

import anyio
import msgspec

from streamlib.cli.arguments import CommandError
from streamlib.cli.chat_files import (
    append_recordings,
    check_record_file,
    open_history,
    read_tools,
    save_history,
)
from streamlib.cli.exit_codes import (
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    USAGE,
    code_of_error,
    code_of_response,
)
from streamlib.cli.keyboard import Keyboard
from streamlib.cli.model_options import (
    LOOPBACK_MODEL,
    NO_MODEL,
    chosen_model,
    first_code_block,
    read_options,
    read_schema,
    schema_problem,
    with_option_names,
)
from streamlib.cli.patience import NotedRetry, is_unreachable, unreachable_text
from streamlib.cli.progress import WaitingLine
from streamlib.cli.screen import Screen
from streamlib.client.unreachable import address_of
from streamlib.display.safe_text import printable
from streamlib.providers import find
from streamlib.request.endpoints import resolve_target
from streamlib.request.prompt import Prompt
from streamlib_parsers import (
    Audio,
    CustomToolCall,
    Document,
    FunctionCall,
    Image,
    Response,
    ResponseEvent,
    ResponseItem,
    Text,
    ToolSpec,
    user,
)
from streamlib_parsers.item_base import detected_type
from streamlib_parsers.items import JsonObject
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.client import Client
    from streamlib.client.stream import ResponseStream
    from streamlib.recording import Recorder

MAX_ROUNDS: Final = 50
"""Limit of requests for one line of input, so that a model cannot call tools for ever. Calls
that get an output and pauses count."""

FRAME: Final = 1 / 30
"""Seconds between two drawings of text that is still streaming."""

TARGET_ERRORS: Final = ("unknown_provider", "base_url", "wire_api", "model")
"""Codes of requests that cannot be sent because of the command's options."""


class Conversation:
    """A history, and the screen that shows it.

    Raises:
        CommandError: an option or a file is not usable; nothing was sent.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        model = chosen_model(arguments.model)
        self._is_model_chosen = model is not None
        self._model = model or LOOPBACK_MODEL
        check_target(self._model, arguments)
        self._options = read_options(arguments.option)
        if arguments.reasoning:
            self._options["reasoning"] = arguments.reasoning
        self._schema: JsonObject | None = None
        if arguments.schema:
            self._schema = read_schema(arguments.schema)
        self._attachments: list[Attachment] = [read_image(name) for name in arguments.image]
        """Parts of the next message; empty after they were sent."""
        self._attachments += [read_attachment(name) for name in arguments.attach]
        self._tools: list[ToolSpec] = []
        if arguments.tools:
            self._tools = read_tools(arguments.tools)
        self._history: list[ResponseItem] = []
        """All items so far; a response is added when it ended or was stopped."""
        if arguments.history:
            self._history = open_history(arguments.history)
        if arguments.record:
            check_record_file(arguments.record)
        self._screen = Screen(sys.stdout, sys.stderr, is_raw=arguments.raw)
        self._keyboard = Keyboard()
        self._is_shown_whole = bool(arguments.extract or arguments.json or arguments.schema)
        """Whether a response is written when it is complete, not while it streams."""
        self._stream: ResponseStream | None = None
        """The stream of the current request; None before it is sent."""
        self._reported: set[tuple[str, str]] = set()
        """Action and reason of each `Change` that was shown. Every turn sends the history again and
        reports the same changes again."""
        self._port = 0
        """Port of the loopback provider; 0 before it is started."""

    def ask(self, text: str) -> int:
        """Sends one question.

        Returns:
            The exit code of its response.
        """
        self._note_model()
        return self._send(text)

    def talk(self) -> int:
        """Sends what is typed, line after line.

        Returns:
            The exit code of the last response.
        """
        self._note_model()
        self._greet()
        code = 0
        while True:
            sys.stderr.write("\n")
            sys.stderr.flush()
            line = self._keyboard.read("> ")
            if line is None:
                return code
            if not line.strip():
                continue
            code = self._send(line)
            if code == INTERRUPTED:
                # The user stopped the response only, so the conversation continues.
                code = 0

    def _note_model(self) -> None:
        if not self._is_model_chosen:
            self._screen.note(f"[{NO_MODEL}]")

    def _greet(self) -> None:
        loaded = ""
        if self._history:
            loaded = f" · {len(self._history)} items in {self._arguments.history}"
        self._screen.note(f"{self._model}{loaded} · Ctrl-C stops a response, Ctrl-D ends")

    def _send(self, text: str) -> int:
        """Sends a message, and requests again after calls with outputs and after pauses."""
        before = len(self._history)
        self._history.append(user(without_surrogates(text), *self._attachments))
        self._attachments = []
        for _ in range(MAX_ROUNDS):
            code, response = self._request()
            if code and len(self._history) == before + 1:
                # Nothing was received: the same message can be sent again.
                self._history.pop()
            is_over = bool(code) or not response.unfinished or not self._collect_outputs(response)
            # Saved after each request, so that a failure of the next one loses nothing.
            if self._arguments.history:
                save_history(self._arguments.history, self._history)
            if is_over:
                if self._is_shown_whole and response.status != "cancelled":
                    code = self._write_whole(response, code)
                return code
        self._screen.note(f"stopped after {MAX_ROUNDS} rounds")
        return FAILED

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
        # A separate method, because mypy would narrow the attribute to None in the caller.
        self._stream = None

    async def _stream_response(self) -> int:
        system = self._arguments.system
        if system:
            system = without_surrogates(system)
        try:
            prompt = Prompt(
                self._history,
                system,
                tools=self._tools,
                output_schema=self._schema,
                **self._options,
            )
        except (TypeError, ValueError) as error:
            self._screen.note(str(error))
            return USAGE
        recorder = self._recorder()
        try:
            async with self._client(recorder) as client:
                self._stream = client.stream(prompt, model=self._model)
                await self._show(self._stream)
        except StreamError as error:
            self._screen.end()
            self._fail(error)
            return code_of_error(error.info)
        finally:
            if recorder is not None:
                await self._save_recordings(recorder)
        return code_of_response(self._stream.response)

    def _fail(self, error: StreamError) -> None:
        """Reports an error, with the server's address if it cannot be reached: a likely mistake."""
        if is_unreachable(error) and self._stream is not None:
            self._screen.fail(unreachable_text(error, self._stream.request.url))
        else:
            self._screen.fail(str(error))

    def _recorder(self) -> Recorder | None:
        if not self._arguments.record:
            return None
        from streamlib.recording import Recorder

        return Recorder()

    async def _save_recordings(self, recorder: Recorder) -> None:
        wire_api = None
        if self._stream is not None:
            wire_api = self._stream.request.wire_api
        append_recordings(self._arguments.record, recorder.recordings, wire_api)
        # Ctrl-C cancels every await, but this one must finish.
        with anyio.CancelScope(shield=True):
            await recorder.aclose()

    @asynccontextmanager
    async def _client(self, http: Any) -> AsyncGenerator[Client]:
        """A client, connected to a loopback provider unless another server was named.

        The loopback provider keeps its port from one request to the next, because the address is
        part of an item's origin.
        """
        # The HTTP library is loaded only where a request is sent.
        from streamlib.client import Client

        base_url = self._arguments.base_url
        async with AsyncExitStack() as stack:
            # With `--base-url` the loopback provider is `streamlib serve` in another process.
            if self._model.startswith("loopback:") and base_url is None:
                from streamlib.testing import running

                base_url = await stack.enter_async_context(running(port=self._port))
                self._port = int(base_url.rpartition(":")[2])
            client = Client(
                http=http,
                base_url=base_url,
                wire_api=self._arguments.wire_api,
                retry=NotedRetry(note=self._screen.note),
            )
            yield await stack.enter_async_context(client)

    async def _show(self, stream: ResponseStream) -> None:
        for change in stream.request.report:
            key = (change.action, change.reason)
            if key not in self._reported:
                self._reported.add(key)
                self._screen.note(f"[{change.action} {change.path}: {change.reason}]")
        target = f"{self._model} at {address_of(stream.request.url)}"
        with WaitingLine(f"waiting for {target}") as waiting:
            if self._is_shown_whole:
                async with stream:
                    async for _ in stream:
                        pass
            else:
                await self._show_events(stream, waiting)
        self._screen.end()
        self._screen.status(stream.response)

    async def _show_events(self, stream: ResponseStream, waiting: WaitingLine) -> None:
        from streamlib.pipeline import coalesce, pipe

        async with AsyncExitStack() as stack:
            events: AsyncIterator[ResponseEvent] = await stack.enter_async_context(stream)
            if self._screen.draws_markdown:
                events = await stack.enter_async_context(pipe(stream, coalesce(FRAME)))
            async for event in events:
                waiting.stop_before(event)
                self._screen.show(event)

    def _write_whole(self, response: Response, code: int) -> int:
        """Writes a response that was not shown while it streamed.

        Returns:
            The exit code of the response, or another one if its text is not as requested.
        """
        problem = None
        if self._schema is not None:
            problem = schema_problem(response.text, self._schema)
        if self._arguments.json:
            print(msgspec.json.encode(response).decode())
        elif self._arguments.extract:
            block = first_code_block(response.text)
            if block is None:
                problem = "there is no fenced code block in it"
            else:
                sys.stdout.write(printable(block))
        else:
            print(printable(response.text))
        if problem is None or code:
            return code
        self._screen.note(f"the response is not as requested: {problem}")
        return INCOMPLETE

    def _collect_outputs(self, response: Response) -> bool:
        """Reads an output for every call; False if the input ends before that."""
        for call in response.pending:
            if not isinstance(call, (FunctionCall, CustomToolCall)):
                # The call needs a shell or a screen: its output cannot be typed.
                self._screen.note(f"a {type(call).__name__} cannot be answered here")
                return False
            output = self._keyboard.read(f"output of {printable(call.name)}: ")
            if output is None:
                self._screen.note(f"{call.name} was left without an output")
                return False
            self._history.append(call.output(output))
        return True


def check_target(model: str, arguments: argparse.Namespace) -> None:
    """Checks that the options name a target, before any input is read.

    Raises:
        CommandError: the options do not name one; exit code 2.
    """
    try:
        provider, name = find(model)
        resolve_target(provider, name, arguments.wire_api, arguments.base_url)
    except StreamError as error:
        # Other errors, a missing key for example, are reported by the request itself.
        if error.info.code in TARGET_ERRORS:
            raise CommandError(with_option_names(error.message), USAGE) from None


def without_surrogates(text: str) -> str:
    """Replaces lone surrogates, which stand for bytes of an argument that are not UTF-8."""
    return text.encode("utf-8", "replace").decode()


# --- files and addresses that are sent with a question ---

Attachment: TypeAlias = Text | Image | Document | Audio

ATTACHMENT_BYTES: Final = 20 << 20
"""Limit of a file: no provider accepts a larger one inside a request."""

STANDARD_INPUT: Final = "-"


def read_attachment(name: str) -> Attachment:
    """Reads a file, or standard input for `-`; a URL is passed on for the provider to read.

    The type is taken from the first bytes, not from the name. Text becomes a text part.

    Raises:
        CommandError: it cannot be read, is too large, or is of no type that models accept.
    """
    if urlsplit(name).scheme in ("http", "https"):
        return _of_address(name)
    data = _read(name)
    if len(data) > ATTACHMENT_BYTES:
        raise CommandError(
            f"{name}: {len(data):,} bytes; an attachment may have at most {ATTACHMENT_BYTES:,}"
        )
    media_type = media_type_of(data)
    if media_type is None:
        return _text(name, data)
    encoded = b64encode(data).decode("ascii")
    shown = Path(name).name
    if media_type.startswith("image/"):
        return Image(data=encoded, media_type=media_type)
    if media_type.startswith("audio/"):
        return Audio(data=encoded, media_type=media_type)
    return Document(data=encoded, media_type=media_type, name=shown)


def read_image(name: str) -> Image:
    """Reads an attachment that has to be an image.

    Raises:
        CommandError: as `read_attachment`, or it is no image that models accept.
    """
    image = read_attachment(name)
    if isinstance(image, Image):
        return image
    raise CommandError(f"{name}: not an image of a type that models accept (PNG, JPEG, GIF, WebP)")


def media_type_of(data: bytes) -> str | None:
    """The media type that the first bytes of a file show; None if they show none."""
    return detected_type(b64encode(data[:64]).decode("ascii")) or None


def _of_address(url: str) -> Attachment:
    # Imported late: its tables and the network modules it loads take longer than the rest.
    import mimetypes

    media_type = mimetypes.guess_type(urlsplit(url).path)[0]
    if media_type is None or media_type.startswith("image/"):
        return Image(url=url, media_type=media_type)
    if media_type.startswith("audio/"):
        return Audio(url=url, media_type=media_type)
    return Document(url=url, media_type=media_type)


def _text(name: str, data: bytes) -> Text:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandError(
            f"{name}: neither text nor of a type that models accept (PNG, JPEG, GIF, WebP, PDF, "
            "audio)"
        ) from None
    if "\0" in text:
        raise CommandError(f"{name}: not a file that models accept")
    if name == STANDARD_INPUT:
        return Text(text)
    return Text(f"{Path(name).name}:\n\n{text}")


def _read(name: str) -> bytes:
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read()
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        # The name contains a null byte.
        raise CommandError(f"{name!r}: {error}") from None
