"""Shows a response while it streams: text on stdout, facts about it on stderr.

On a terminal text is drawn as Markdown. Reasoning is dim and shown on terminals alone; each call
has a line of its own. Everything that a model wrote is made safe for the terminal first.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final, TextIO

from streamlib.cli.colours import CYAN, DIM, RED, RESET, has_colours, paint
from streamlib.cli.model_options import with_option_names
from streamlib.display.safe_text import Printable, printable
from streamlib.inspection.event_text import remaining_text, usage_text
from streamlib_parsers import (
    CustomToolCall,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    Response,
    ResponseEvent,
    ServerToolCall,
)

if TYPE_CHECKING:
    from streamlib.display import MarkdownWriter
    from streamlib.display.themes import ThemeName

CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall)


MEASURED_SECONDS: Final = 0.1
"""Seconds. For text received faster than this no speed is shown."""


class Screen:
    """Writes events to `out`, and lines of status or errors to `err`.

    Args:
        out: stream for the response.
        err: stream for everything else.
        is_raw: whether text is written unchanged, on a terminal too.
    """

    def __init__(self, out: TextIO, err: TextIO, *, is_raw: bool = False) -> None:
        self.colour = has_colours(out)
        """Whether a person sees the response on a terminal with colours."""
        self._markdown: MarkdownWriter | None = None
        """Draws text on a terminal; None if text is written unchanged."""
        self._size = (0, 0)
        """Columns and lines of the terminal."""
        self._has_markdown = False
        """Whether the open lines of the terminal were drawn by `_markdown`."""
        if out.isatty() and not is_raw and os.environ.get("TERM") != "dumb":
            self._start_markdown()
        self._out = out
        self._err = err
        self._printable = Printable()
        """Escapes control characters; it may buffer the end of a delta."""
        self._style = RESET
        """The style that the terminal is in."""
        self._at_line_start = True
        """Whether the cursor is at the start of a line."""
        self._has_output = False
        """Whether anything of the current response was shown."""
        self._open_call: int | None = None
        """Index of the call whose arguments are shown while they stream; other calls are shown
        when they are complete."""

    def show(self, event: ResponseEvent) -> None:
        """Shows one event."""
        match event:
            case OutputTextDelta(agent=None) | RefusalDelta(agent=None):
                self._write_text(event.delta)
            case (
                ReasoningContentDelta()
                | ReasoningSummaryDelta()
                | OutputTextDelta()
                | RefusalDelta()
            ):
                # In a file, reasoning and what other agents said could not be told from the text.
                if self.colour:
                    self._write(event.delta, DIM)
            case FunctionCallArgumentsDelta():
                # Else the deltas of overlapping calls would be mixed on one line.
                if event.index == self._open_call:
                    self._write(event.delta, CYAN)
            case OutputItemAdded():
                self._item_added(event)
            case OutputItemDone():
                self._item_done(event)
            case _:
                pass

    @property
    def draws_markdown(self) -> bool:
        """Whether text is redrawn while it streams, so that fewer drawings are better."""
        return self._markdown is not None

    def end(self) -> None:
        """Ends a response, complete or not: ends its line and resets the colour."""
        self._set_style(RESET)
        self._end_markdown()
        self._end_line()
        self._has_output = False
        self._open_call = None
        self._out.flush()

    def note(self, text: str, style: str = DIM) -> None:
        """Writes a line about the response."""
        self._err.write(paint(printable(text), style, self._err) + "\n")
        self._err.flush()

    def fail(self, text: str) -> None:
        """Writes what went wrong, on one line."""
        self.note(with_option_names(text), RED)

    def status(self, response: Response) -> None:
        """Writes one line: model, stop reason, timing, usage and remaining rate limits."""
        facts = [response.model or "?"]
        # `stop` is the usual reason, so it is not shown.
        if response.stop_reason not in ("stop", None):
            facts.append(response.stop_reason)
        facts += _timing(response)
        usage = usage_text(response.usage)
        if usage:
            facts.append(usage)
        if response.rate_limits is not None:
            facts += remaining_text(response.rate_limits.requests, "requests")
            facts += remaining_text(response.rate_limits.tokens, "tokens")
        if has_colours(self._err):
            # On a terminal the line is shortened instead of wrapped: the last facts matter least.
            columns = shutil.get_terminal_size().columns
            while len(facts) > 1 and len(_status_line(facts)) > columns:
                facts.pop()
        self.note(_status_line(facts))

    # --- items ---

    def _item_added(self, event: OutputItemAdded) -> None:
        if isinstance(event.item, CALLS) and self._open_call is None:
            self._open_call = event.index
            self._start_part()
            self._write(f"→ {event.item.name} ", CYAN)
        elif isinstance(event.item, Message):
            self._start_part()

    def _item_done(self, event: OutputItemDone) -> None:
        item = event.item
        ending = "" if item.status == "completed" else " (incomplete)"
        if event.index == self._open_call:
            # The name and the arguments were shown while they streamed.
            self._open_call = None
            self._write(ending, CYAN)
            self._end_line()
        elif isinstance(item, CALLS):
            written = item.input if isinstance(item, CustomToolCall) else item.arguments
            self._start_part()
            self._write(f"→ {item.name} {written}{ending}", CYAN)
            self._end_line()
        elif isinstance(item, Message):
            self._show_media(item)

    def _show_media(self, message: Message) -> None:
        for part in message.content:
            if getattr(part, "data", None):
                media_type = getattr(part, "media_type", None) or ""
                self._write(f"\n[{type(part).__name__.lower()} {media_type}]\n", DIM)

    # --- Markdown ---

    def _start_markdown(self) -> None:
        try:
            from streamlib.display import MarkdownWriter
        except ModuleNotFoundError:
            # Without the extra `cli` text is written unchanged.
            return
        self._size = _terminal_size()
        theme: ThemeName = "colour" if self.colour else "mono"
        self._markdown = MarkdownWriter(*self._size, theme)

    def _write_text(self, text: str) -> None:
        if self._markdown is None:
            self._write(text, RESET)
            return
        self._set_style(RESET)
        size = _terminal_size()
        if size != self._size:
            self._size = size
            self._out.write(self._markdown.resize(*size))
        if not self._has_markdown:
            self._end_line()
        self._has_markdown = True
        self._has_output = True
        self._out.write(self._markdown.feed(text))
        self._out.flush()

    def _end_markdown(self) -> None:
        if self._markdown is not None and self._has_markdown:
            self._out.write(self._markdown.close())
            self._has_markdown = False
            self._at_line_start = True

    # --- characters ---

    def _start_part(self) -> None:
        """Starts a new line; on a terminal also an empty line before it."""
        self._end_markdown()
        if self._has_output:
            self._set_style(RESET)
            self._end_line()
            if self.colour:
                self._out.write("\n")

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._out.write(self._printable.close() + "\n")
            self._at_line_start = True

    def _write(self, text: str, style: str) -> None:
        if not text:
            return
        self._end_markdown()
        self._set_style(style)
        shown = self._printable.feed(text)
        self._out.write(shown)
        # Flushed, so that each delta is shown when it is received.
        self._out.flush()
        self._has_output = True
        # A delta that is buffered completely shows nothing.
        if shown:
            self._at_line_start = shown.endswith("\n")

    def _set_style(self, style: str) -> None:
        if style == self._style:
            return
        # Text that is still buffered belongs to the style before.
        self._out.write(self._printable.close())
        if self.colour:
            self._out.write(style)
        self._style = style


def _terminal_size() -> tuple[int, int]:
    size = shutil.get_terminal_size()
    return size.columns, size.lines


def _status_line(facts: list[str]) -> str:
    return f"[{' · '.join(facts)}]"


def _timing(response: Response) -> list[str]:
    timing = response.timing
    if timing is None or timing.first_token is None:
        return []
    facts = [f"first token {timing.first_token * 1000:,.0f} ms"]
    duration = (timing.last or 0.0) - timing.first_token
    if timing.tokens_per_second and duration >= MEASURED_SECONDS:
        facts.append(f"{timing.tokens_per_second:,.0f} tokens/s")
    return facts
