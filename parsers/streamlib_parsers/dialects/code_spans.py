"""Where text is code: fences and inline code, read line by line as Markdown does.

This is the part of Markdown that models write. A fence opens with at most three spaces and three or
more of ` or ~, and closes with a line of at least as many. Inline code opens with a run of
backticks and closes with a run of the same length, and never goes past its line: one stray backtick
must not make the rest of a response unreadable. Only what was shown to the user is read, never what
a tag buffers.
"""

from __future__ import annotations

from typing import Final

HEAD: Final = 80
"""Characters of a line's beginning that are kept, to recognise a fence."""
UNREAD: Final = 4096
"""Characters that wait to be read: in most responses nobody asks for the state."""


class CodeSpans:
    """The state at the end of the text so far."""

    __slots__ = (
        "_blank",
        "_fence",
        "_head",
        "_last",
        "_run",
        "_span",
        "_ticks",
        "_unread",
        "_unread_size",
        "started",
    )

    def __init__(self) -> None:
        self.started = False
        """Whether the text holds anything but white space."""
        self._unread: list[str] = []
        """Text added since the last read."""
        self._unread_size = 0
        """Characters of it."""
        self._fence = ""
        """The characters that opened the fence; "" outside of fences."""
        self._last = ""
        """The last character read."""
        # Of the current line:
        self._head = ""
        """Its first `HEAD` characters."""
        self._blank = True
        """Whether it has nothing but white space."""
        self._ticks = 0
        """Its backticks."""
        self._run = 0
        """Backticks at the very end of the line so far."""
        self._span = 0
        """The length of the run that opened inline code; 0 outside of it."""

    def add(self, text: str) -> None:
        """Adds text that was shown."""
        self._unread.append(text)
        self._unread_size += len(text)
        if not self.started:
            self.started = bool(text) and not text.isspace()
        if self._unread_size > UNREAD:
            self._read()

    @property
    def inside(self) -> bool:
        """Whether what comes next is in code."""
        self._read()
        self._end_run()
        return bool(self._fence or self._span or self._opened_fence())

    @property
    def line_start(self) -> bool:
        """Whether nothing but white space is on the line so far."""
        self._read()
        return self._blank

    @property
    def last(self) -> str:
        """The last character, "" at the beginning."""
        self._read()
        return self._last

    def _read(self) -> None:
        if not self._unread:
            return
        text = "".join(self._unread)
        self._unread.clear()
        self._unread_size = 0
        *lines, rest = text.split("\n")
        for line in lines:
            self._on_line(line)
            self._end_line()
        self._on_line(rest)
        if text:
            self._last = text[-1]

    def _on_line(self, text: str) -> None:
        if not text:
            return
        if len(self._head) < HEAD:
            self._head += text[: HEAD - len(self._head)]
        self._blank = self._blank and text.isspace()
        index = 0
        while True:
            tick = text.find("`", index)
            if tick < 0:
                break
            if tick > index:
                self._end_run()
            self._run += 1
            self._ticks += 1
            index = tick + 1
        if index < len(text):
            self._end_run()

    def _end_run(self) -> None:
        """A run of backticks is complete: it opens inline code, closes it, or is in it."""
        if not self._run:
            return
        if not self._span:
            self._span = self._run
        elif self._span == self._run:
            self._span = 0
        self._run = 0

    def _end_line(self) -> None:
        opened = self._opened_fence()
        if not self._fence:
            self._fence = opened
        elif opened and self._closes_fence(opened):
            self._fence = ""
        self._head = ""
        self._blank = True
        self._ticks = self._run = self._span = 0

    def _closes_fence(self, fence: str) -> bool:
        """Whether the line is a closing one.

        Nothing beside at least as many of the same character.
        """
        is_same = fence[0] == self._fence[0] and len(fence) >= len(self._fence)
        return is_same and self._head.strip() == fence

    def _opened_fence(self) -> str:
        """The fence characters with which the line begins; "" where it is not a line of a fence."""
        line = self._head.lstrip(" ")
        if len(self._head) - len(line) > 3 or line[:3] not in ("```", "~~~"):
            return ""
        fence = line[: len(line) - len(line.lstrip(line[0]))]
        if line[0] == "`" and self._ticks > len(fence):
            return ""  # more backticks follow: inline code
        return fence
