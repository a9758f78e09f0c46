"""A chat in the terminal, with rich: text appears as it streams, complete parts become Markdown.

    python examples/terminal_chat.py

It works offline: the model is the loopback provider. A real model needs that provider's key in the
environment:

    python examples/terminal_chat.py anthropic:claude-opus-5

Ctrl-C during a response closes the connection to the model and keeps the partial response; at the
prompt it ends the program, as Ctrl-D does. Needs `pip install 'streamlib[cli]' rich`.
"""

import signal
import sys
from collections.abc import Iterator

import anyio
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from streamlib import (
    Client,
    FunctionCall,
    Message,
    Prompt,
    Reasoning,
    Refusal,
    Response,
    ResponseItem,
    ResponseStream,
    ServerToolCall,
    StreamError,
    user,
)
from streamlib.loopback import Behaviour, serve
from streamlib.pipeline import coalesce, pipe
from streamlib.terminal.printable import printable


class Tail:
    """The last lines of a renderable, as many as the screen has.

    A `Live` that is taller than the screen would be drawn again and again.
    """

    def __init__(self, inner: RenderableType) -> None:
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """The last lines."""
        height = max(1, console.height - 2)
        lines = console.render_lines(self.inner, options, pad=False)[-height:]
        for number, line in enumerate(lines):
            yield from line
            if number < len(lines) - 1:
                yield Segment.line()


def rendered(item: ResponseItem) -> RenderableType | None:
    """An open or completed item on the screen."""
    # A model may write escape sequences: `printable` makes them harmless.
    if isinstance(item, Message):
        refusals = [part.refusal for part in item.content if isinstance(part, Refusal)]
        text = printable(item.text or "".join(refusals))
        if not text:
            return None
        return Markdown(text) if item.status == "completed" else Text(text)
    if isinstance(item, Reasoning):
        if not item.text:
            return None
        return Padding(Text(printable(item.text), style="dim italic"), (0, 2))
    if isinstance(item, (FunctionCall, ServerToolCall)):
        name = (printable(item.name), "bold cyan")
        arguments = (printable(item.arguments), "cyan")
        return Text.assemble(("→ ", "cyan"), name, " ", arguments)
    return None


def status(response: Response) -> Text:
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
    return Text(printable(" · ".join(filter(None, facts))), style="dim")


async def show(console: Console, stream: ResponseStream) -> None:
    """Draw the stream: completed items are printed once, open items are redrawn below them."""
    printed = 0
    try:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            async with pipe(stream, coalesce(1 / 30)) as events:
                async for _ in events:
                    items = stream.snapshot.items
                    while printed < len(items) and items[printed].status == "completed":
                        put(console, items[printed])
                        printed += 1
                    parts = filter(None, map(rendered, items[printed:]))
                    live.update(Tail(Group(*parts)), refresh=True)
    finally:  # also items that an error or Ctrl-C left open
        for item in stream.response.items[printed:]:
            put(console, item)


def put(console: Console, item: ResponseItem) -> None:
    """Print an item once."""
    part = rendered(item)
    if part is not None:
        console.print(part)


async def turn(console: Console, model: str, history: list[ResponseItem]) -> None:
    """Send a request and show the response. Ctrl-C cancels reading, which closes the connection."""
    async with anyio.create_task_group() as group:
        base_url = None
        if model.startswith("loopback:"):
            base_url = await group.start(serve, Behaviour(pace=0.03))
        async with Client(base_url=base_url) as client:
            with anyio.CancelScope() as scope:
                group.start_soon(cancel_on_ctrl_c, scope)
                try:
                    await respond(console, client, model, history)
                except StreamError as error:
                    message = printable(f"{error.kind}: {error.info.message}")
                    console.print(Text(message, style="red"), end="\n\n")
        if scope.cancelled_caught:
            console.print(Text("stopped", style="yellow"), end="\n\n")
        group.cancel_scope.cancel()


async def respond(
    console: Console, client: Client, model: str, history: list[ResponseItem]
) -> None:
    """Show a response and append it to the history, also a partial one."""
    stream = client.stream(Prompt(history, reasoning="low"), model)
    try:
        async with stream:
            await show(console, stream)
    finally:
        history += stream.response.items
    console.print(status(stream.response), end="\n\n")


async def cancel_on_ctrl_c(scope: anyio.CancelScope) -> None:
    """Cancel the scope at Ctrl-C."""
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


def main(model: str) -> None:
    """Read a line and show the response, until the input ends."""
    console, history = Console(), list[ResponseItem]()
    console.print(Text(f"{model} · Ctrl-C stops a response, Ctrl-D ends", style="dim"), end="\n\n")
    while True:
        try:
            text = console.input("[bold green]>[/] ")
        except (EOFError, KeyboardInterrupt):
            return
        if text.strip():
            history.append(user(text))
            anyio.run(turn, console, model, history)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "loopback:echo")
