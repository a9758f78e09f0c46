"""An answer on a plain terminal, while it streams: text on stdout, facts about it on stderr.

Thoughts are dim and only shown to people; calls stand on lines of their own. Whatever a model writes is made harmless first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any, Final, TextIO

from streamlib.cli.event_words import usage_words
from streamlib.cli.terminal import Printable, in_options, printable
from streamlib.errors import StreamError
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
    ServerToolCall,
)

PLAIN: Final = "\x1b[0m"
BOLD: Final = "\x1b[1m"
DIM: Final = "\x1b[2m"
CALL: Final = "\x1b[36m"
FAULT: Final = "\x1b[31m"
GOOD: Final = "\x1b[32m"
ODD: Final = "\x1b[33m"

CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall)


class Screen:
    """Events on `out`, a line of status or of error on `err`."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.colour = coloured(out)
        self._out = out
        self._err = err
        self._safe = Printable()
        self._style = PLAIN
        self._fresh = True  # the cursor stands at the beginning of a line
        self._began = False  # something of this answer was shown
        self._call: int | None = (
            None  # the call whose arguments are shown while they grow; others wait until they are whole
        )

    def show(self, event: Any) -> None:
        """One event."""
        shown = _SHOWN.get(type(event))
        if shown is not None:
            shown(self, event)

    def end(self) -> None:
        """The answer is over, or was stopped: the cursor stands on a line of its own, in its own colour."""
        self._restyle(PLAIN)
        self._line()
        self._began, self._call = False, None
        self._out.flush()

    def note(self, text: str, style: str = DIM) -> None:
        """A line about the answer."""
        self._err.write(painted(printable(text), style, self._err) + "\n")
        self._err.flush()

    def fail(self, error: StreamError) -> None:
        """What went wrong, in one line."""
        self.note(in_options(str(error)), FAULT)

    def status(self, response: Response) -> None:
        """Who answered, why it ended early, time to first token, speed, usage, and what is left of the limits: one line."""
        ended = [] if response.stop_reason in ("stop", None) else [response.stop_reason]
        facts = [
            response.model or "?",
            *ended,
            *_timing(response),
            *_usage(response),
            *_limits(response),
        ]
        while (
            coloured(self._err)
            and len(facts) > 1
            and len(" · ".join(facts)) + 2 > shutil.get_terminal_size().columns
        ):
            facts.pop()
        self.note(f"[{' · '.join(facts)}]")

    # --- events ---

    def _text(self, event: Any) -> None:
        self._write(event.delta, PLAIN)

    def _thought(self, event: Any) -> None:
        if self.colour:
            self._write(event.delta, DIM)

    def _arguments(self, event: FunctionCallArgumentsDelta) -> None:
        if event.index == self._call:
            self._write(event.delta, CALL)

    def _added(self, event: OutputItemAdded) -> None:
        if isinstance(event.item, CALLS) and self._call is None:
            self._call = event.index
            self._part()
            self._write(f"→ {event.item.name} ", CALL)
        elif isinstance(event.item, Message):
            self._part()

    def _done(self, event: OutputItemDone) -> None:
        item = event.item
        if event.index == self._call:
            self._call = None
            self._write("" if item.status == "completed" else " (cut)", CALL)
            self._line()
        elif isinstance(item, CALLS):
            written = item.input if isinstance(item, CustomToolCall) else item.arguments
            self._part()
            self._write(
                f"→ {item.name} {written}" + ("" if item.status == "completed" else " (cut)"), CALL
            )
            self._line()
        elif isinstance(item, Message):
            for part in item.content:
                if getattr(part, "data", None):
                    self._write(
                        f"\n[{type(part).__name__.lower()} {getattr(part, 'media_type', None) or ''}]\n",
                        DIM,
                    )

    # --- characters ---

    def _part(self) -> None:
        """A new part begins: on a line of its own, with an empty one before it where people read."""
        if self._began:
            self._restyle(PLAIN)
            self._line()
            self._out.write("\n" if self.colour else "")

    def _line(self) -> None:
        if not self._fresh:
            self._out.write(self._safe.close() + "\n")
            self._fresh = True

    def _write(self, text: str, style: str) -> None:
        if not text:
            return
        self._restyle(style)
        said = self._safe.feed(text)
        self._out.write(said)
        self._out.flush()
        self._began = True
        self._fresh = said.endswith("\n") if said else self._fresh

    def _restyle(self, style: str) -> None:
        if style != self._style:
            self._out.write(self._safe.close() + (style if self.colour else ""))
            self._style = style


_SHOWN: dict[type, Callable[[Screen, Any], None]] = {
    OutputTextDelta: Screen._text,
    RefusalDelta: Screen._text,
    ReasoningContentDelta: Screen._thought,
    ReasoningSummaryDelta: Screen._thought,
    FunctionCallArgumentsDelta: Screen._arguments,
    OutputItemAdded: Screen._added,
    OutputItemDone: Screen._done,
}


def painted(line: str, style: str, stream: TextIO) -> str:
    """A line in a colour, where the stream has colours."""
    return f"{style}{line}{PLAIN}" if coloured(stream) else line


def coloured(stream: TextIO) -> bool:
    """A terminal whose person did not ask for plain text (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _timing(response: Response) -> list[str]:
    timing = response.timing
    if timing is None or timing.first_token is None:
        return []
    speed = [f"{timing.tokens_per_second:,.0f} tokens/s"] if timing.tokens_per_second else []
    return [f"first token {timing.first_token * 1000:,.0f} ms", *speed]


def _usage(response: Response) -> list[str]:
    said = usage_words(response.usage)
    return [said] if said else []


def _limits(response: Response) -> list[str]:
    limits = response.rate_limits
    windows = {"requests": limits.requests, "tokens": limits.tokens} if limits else {}
    return [
        f"{window.remaining:,.0f} {name} left"
        for name, window in windows.items()
        if window and window.remaining is not None
    ]
