"""A chat in the terminal: Markdown is drawn while it streams, and finished lines are written once.

    python examples/terminal_chat.py

It works offline: the model is the loopback provider. A real model needs that provider's key in the
environment:

    python examples/terminal_chat.py anthropic:claude-opus-5

Ctrl-C during a response closes the connection to the model and keeps the partial response; at the
prompt it ends the program, as Ctrl-D does. Needs `pip install 'streamlib[cli]'`.
"""

import shutil
import signal
import sys

import anyio

from streamlib import (
    Client,
    FunctionCall,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    Response,
    ResponseEvent,
    ResponseItem,
    ResponseStream,
    ServerToolCall,
    StreamError,
    user,
)
from streamlib.display import MarkdownWriter, one_line, printable
from streamlib.pipeline import coalesce, pipe
from streamlib.testing import Behaviour, serve

DIM, RED, YELLOW, CYAN, GREEN, RESET = (f"\x1b[{code}m" for code in (2, 31, 33, 36, 32, 0))


class Screen:
    """Draws the events of one response."""

    def __init__(self) -> None:
        self.size = shutil.get_terminal_size()
        self.markdown = MarkdownWriter(self.size.columns, self.size.lines)
        self.is_thinking = False

    def show(self, event: ResponseEvent) -> None:
        """Draw one event: text as Markdown, reasoning dim, each call on a line of its own."""
        match event:
            case OutputTextDelta() | RefusalDelta():
                self.end_reasoning()
                self.follow_size()
                put(self.markdown.feed(event.delta))
            case ReasoningContentDelta() | ReasoningSummaryDelta():
                put(self.markdown.close() if not self.is_thinking else "")
                self.is_thinking = True
                put(f"{DIM}{printable(event.delta)}{RESET}")
            case OutputItemDone(item=FunctionCall() | ServerToolCall() as call):
                self.end()
                put(f"{CYAN}→ {one_line(call.name)} {one_line(call.arguments)}{RESET}\n")
            case _:
                pass

    def follow_size(self) -> None:
        """Tell the writer when the window has another size."""
        size = shutil.get_terminal_size()
        if size != self.size:
            self.size = size
            put(self.markdown.resize(size.columns, size.lines))

    def end_reasoning(self) -> None:
        """Leave an empty line between reasoning and text."""
        if self.is_thinking:
            self.is_thinking = False
            put("\n\n")

    def end(self) -> None:
        """Write what is still open; a writer takes another text then."""
        self.end_reasoning()
        put(self.markdown.close())


def put(text: str) -> None:
    """Write to the terminal at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def note(text: str, style: str) -> None:
    """Write a line that is not the model's."""
    put(f"{style}{one_line(text)}{RESET}\n\n")


def status(response: Response) -> str:
    """One line about a response: model, speed, tokens, what is left."""
    timing, usage, limits = response.timing, response.usage, response.rate_limits
    facts = [response.model or ""]
    if timing and timing.first_token is not None:
        facts.append(f"first token {timing.first_token * 1000:.0f} ms")
    if timing and timing.tokens_per_second:
        facts.append(f"{timing.tokens_per_second:.0f} tokens/s")
    if usage and usage.input_tokens:
        facts.append(f"{usage.input_tokens} in")
    if usage and usage.output_tokens:
        facts.append(f"{usage.output_tokens} out")
    if limits and limits.requests and limits.requests.remaining:
        facts.append(f"{limits.requests.remaining:,.0f} requests left")
    if response.stop_reason not in ("stop", None):
        facts.append(response.stop_reason)
    return " · ".join(filter(None, facts))


async def show(stream: ResponseStream) -> None:
    """Draw the stream, at most thirty times a second; also what an error or Ctrl-C left open."""
    screen = Screen()
    try:
        async with pipe(stream, coalesce(1 / 30)) as events:
            async for event in events:
                screen.show(event)
    finally:
        screen.end()


async def turn(model: str, history: list[ResponseItem]) -> None:
    """Send a request and show the response. Ctrl-C cancels reading, which closes the connection."""
    async with anyio.create_task_group() as group:
        base_url = None
        if model.startswith("loopback:"):
            base_url = await group.start(serve, Behaviour(pace=0.03))
        async with Client(base_url=base_url) as client:
            with anyio.CancelScope() as scope:
                group.start_soon(cancel_on_ctrl_c, scope)
                try:
                    await respond(client, model, history)
                except StreamError as error:
                    note(f"{error.kind}: {error.info.message}", RED)
        if scope.cancelled_caught:
            note("stopped", YELLOW)
        group.cancel_scope.cancel()


async def respond(client: Client, model: str, history: list[ResponseItem]) -> None:
    """Show a response and append it to the history, also a partial one."""
    stream = client.stream(Prompt(history, reasoning="low"), model)
    try:
        async with stream:
            await show(stream)
    finally:
        history += stream.response.items
    note(status(stream.response), DIM)


async def cancel_on_ctrl_c(scope: anyio.CancelScope) -> None:
    """Cancel the scope at Ctrl-C."""
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


def main(model: str) -> None:
    """Read a line and show the response, until the input ends."""
    history: list[ResponseItem] = []
    note(f"{model} · Ctrl-C stops a response, Ctrl-D ends", DIM)
    while True:
        put(f"{GREEN}> {RESET}")
        try:
            text = input()
        except (EOFError, KeyboardInterrupt):
            return
        if text.strip():
            history.append(user(text))
            anyio.run(turn, model, history)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "loopback:echo")
