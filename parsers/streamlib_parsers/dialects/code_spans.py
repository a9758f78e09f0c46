"""Where text is code: fences and inline code, read line by line as Markdown does (the part of it that models write).

A fence opens with at most three spaces and three or more of ` or ~, and closes with a line of at least as many. Inline code opens
with a run of backticks and closes with a run of the same length, and never goes past its line: one stray backtick must not
make the rest of an answer unreadable. Only what was shown to the user is read, never what a tag held back.
"""

from __future__ import annotations

from typing import Final

HEAD: Final = 80
"""So much of a line's beginning is kept to tell a fence by."""
UNREAD: Final = 4096
"""So many characters wait to be read: most answers are never asked about."""


class CodeSpans:
    """The state at the end of the text so far.

    started: something other than white space was said.
    """

    __slots__ = (
        "_blank",
        "_fence",
        "_head",
        "_last",
        "_run",
        "_span",
        "_ticks",
        "_unread",
        "_waiting",
        "started",
    )

    def __init__(self) -> None:
        self.started = False
        self._unread: list[str] = []
        self._waiting = 0
        self._fence = ""
        self._last = ""
        self._begin_line()

    def _begin_line(self) -> None:
        self._head = ""
        self._blank = True
        self._ticks = 0  # backticks on the line
        self._run = 0  # of them, those at its very end
        self._span = 0  # length of the run that opened inline code

    def say(self, text: str) -> None:
        """Takes text that was shown."""
        self._unread.append(text)
        self._waiting += len(text)
        if not self.started:
            self.started = not text.isspace() and bool(text)
        if self._waiting > UNREAD:
            self._read()

    @property
    def inside(self) -> bool:
        """Whether what comes next stands in code."""
        self._read()
        self._end_run()
        return bool(self._fence or self._span or self._opened())

    @property
    def line_start(self) -> bool:
        """Whether nothing but white space stands on the line so far."""
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
        self._waiting = 0
        at = 0
        while (end := text.find("\n", at)) >= 0:
            self._on_line(text[at:end])
            self._end_line()
            at = end + 1
        self._on_line(text[at:])
        self._last = text[-1:] or self._last

    def _on_line(self, text: str) -> None:
        if not text:
            return
        if len(self._head) < HEAD:
            self._head += text[: HEAD - len(self._head)]
        self._blank = self._blank and text.isspace()
        at = 0
        while (tick := text.find("`", at)) >= 0:
            if tick > at:
                self._end_run()
            self._run += 1
            self._ticks += 1
            at = tick + 1
        if at < len(text):
            self._end_run()

    def _end_run(self) -> None:
        """A run of backticks is whole: it opens inline code, closes it, or stands in it."""
        if self._run:
            self._span = 0 if self._span == self._run else (self._span or self._run)
            self._run = 0

    def _end_line(self) -> None:
        opened = self._opened()
        if not self._fence:
            self._fence = opened
        elif (
            opened[:1] == self._fence[0]
            and len(opened) >= len(self._fence)
            and self._head.strip() == opened
        ):
            self._fence = ""
        self._begin_line()

    def _opened(self) -> str:
        """The fence characters with which the line begins; "" where it is no line of a fence."""
        line = self._head.lstrip(" ")
        if len(self._head) - len(line) > 3 or line[:3] not in ("```", "~~~"):
            return ""
        fence = line[: len(line) - len(line.lstrip(line[0]))]
        return "" if line[0] == "`" and self._ticks > len(fence) else fence
