"""A chat in the terminal, with rich: the words appear as they stream, Markdown is set when a part is whole, Ctrl-C stops an answer.

    python examples/terminal_chat.py                                 offline: the model is the loopback provider
    python examples/terminal_chat.py anthropic:claude-opus-5         needs that provider's key in the environment

Ctrl-C while it streams closes the connection to the model and keeps what was said; at the prompt it ends the program, as Ctrl-D
does. Needs `pip install 'streamlib[cli]' rich`.
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
    Response,
    ResponseItem,
    ResponseStream,
    ServerToolCall,
    StreamError,
    user,
)
from streamlib.cli.terminal import printable
from streamlib.loopback import Behaviour, serve
from streamlib.pipeline import coalesce, pipe


class Tail:
    """The end of something, as many lines as the screen has: what grows past the top of a `Live` would be drawn again and again."""

    def __init__(self, inner: RenderableType) -> None:
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """The last lines."""
        lines = console.render_lines(self.inner, options, pad=False)[-max(1, console.height - 2) :]
        for n, line in enumerate(lines):
            yield from line
            if n < len(lines) - 1:
                yield Segment.line()


def shown(item: ResponseItem) -> RenderableType | None:
    """An item on the screen, whole or still growing. What a model writes is made harmless first: it may hold escape sequences."""
    whole = item.status == "completed"
    if isinstance(item, Message):
        said = printable(
            item.text or "".join(getattr(part, "refusal", "") for part in item.content)
        )
        return (Markdown(said) if whole else Text(said)) if said else None
    if isinstance(item, Reasoning):
        return (
            Padding(Text(printable(item.text), style="dim italic"), (0, 2)) if item.text else None
        )
    if isinstance(item, (FunctionCall, ServerToolCall)):
        return Text.assemble(
            ("→ ", "cyan"),
            (printable(item.name), "bold cyan"),
            " ",
            (printable(item.arguments), "cyan"),
        )
    return None


def status(response: Response) -> Text:
    """One line about an answer: who, how fast, how much, what is left."""
    timing, usage, limits = response.timing, response.usage, response.rate_limits
    facts = [
        response.model,
        f"first token {timing.first_token * 1000:.0f} ms"
        if timing and timing.first_token is not None
        else None,
        f"{timing.tokens_per_second:.0f} tokens/s" if timing and timing.tokens_per_second else None,
        f"{usage.input_tokens} in" if usage and usage.input_tokens else None,
        f"{usage.output_tokens} out" if usage and usage.output_tokens else None,
        f"{limits.requests.remaining:,.0f} requests left"
        if limits and limits.requests and limits.requests.remaining
        else None,
        None if response.stop_reason in ("stop", None) else response.stop_reason,
    ]
    return Text(printable(" · ".join(fact for fact in facts if fact)), style="dim")


async def show(console: Console, stream: ResponseStream) -> None:
    """Draws the stream. Whole items are printed for good, in their order; below them stands what still grows."""
    printed = 0
    try:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            async with pipe(stream, coalesce(1 / 30)) as events:
                async for _ in events:
                    items = stream.snapshot.items
                    while printed < len(items) and items[printed].status == "completed":
                        put(console, items[printed])
                        printed += 1
                    live.update(
                        Tail(
                            Group(
                                *[part for part in map(shown, items[printed:]) if part is not None]
                            )
                        ),
                        refresh=True,
                    )
    finally:  # also what an error or Ctrl-C has cut
        for item in stream.response.items[printed:]:
            put(console, item)


def put(console: Console, item: ResponseItem) -> None:
    """Prints an item for good."""
    drawn = shown(item)
    if drawn is not None:
        console.print(drawn)


async def turn(console: Console, model: str, history: list[ResponseItem]) -> None:
    """Asks, shows the answer and keeps it. Ctrl-C cancels the reading, and with it the connection."""
    async with anyio.create_task_group() as group:
        base_url = (
            await group.start(serve, Behaviour(pace=0.03))
            if model.startswith("loopback:")
            else None
        )
        async with Client(base_url=base_url) as client:
            with anyio.CancelScope() as scope:
                group.start_soon(cancel_on_ctrl_c, scope)
                try:
                    await answer(console, client, model, history)
                except StreamError as error:
                    console.print(
                        Text(printable(f"{error.kind}: {error.info.message}"), style="red"),
                        end="\n\n",
                    )
        if scope.cancelled_caught:
            console.print(Text("stopped", style="yellow"), end="\n\n")
        group.cancel_scope.cancel()


async def answer(console: Console, client: Client, model: str, history: list[ResponseItem]) -> None:
    """One answer on the screen and in the history, as far as it came."""
    stream = client.stream(Prompt(history, reasoning="low"), model)
    try:
        async with stream:
            await show(console, stream)
    finally:
        history += stream.response.items
    console.print(status(stream.response), end="\n\n")


async def cancel_on_ctrl_c(scope: anyio.CancelScope) -> None:
    """Waits for Ctrl-C."""
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


def main(model: str) -> None:
    """Reads a line, shows an answer, until the input ends."""
    console, history = Console(), list[ResponseItem]()
    console.print(Text(f"{model} · Ctrl-C stops an answer, Ctrl-D ends", style="dim"), end="\n\n")
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
