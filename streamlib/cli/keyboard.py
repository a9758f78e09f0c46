"""Reads what a person types or what is piped in."""

from __future__ import annotations

import importlib
import os
import stat
import sys
from typing import TYPE_CHECKING, Final

from streamlib.cli.colours import GREEN, RESET, has_colours
from streamlib.cli.progress import WaitingLine

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

PIPES: Final = (stat.S_ISFIFO, stat.S_ISREG, stat.S_ISSOCK)
"""Kinds of standard input that a user connects on purpose. A service has a device there."""


def is_conversation() -> bool:
    """Whether standard input is a terminal, so that a person can type."""
    return _isatty()


def read_piped() -> str:
    """Everything that is piped in; "" where nothing is.

    Bytes that are not UTF-8 are replaced.
    """
    if _isatty():
        return ""
    try:
        with WaitingLine("reading standard input"):
            return sys.stdin.buffer.read().decode("utf-8", "replace")
    except (AttributeError, OSError, ValueError):
        # Standard input is closed or missing.
        return ""


def has_pipe() -> bool:
    """Whether standard input is a file or another program."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    # Reading a device, or a terminal that nobody types on, would wait for ever.
    return any(is_kind(mode) for is_kind in PIPES)


def _isatty() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False


class Keyboard:
    """Reads lines; on a terminal, pasted text of several lines is one input."""

    def __init__(self) -> None:
        self._session: PromptSession[str] | None = None
        """The line editor, made for the first line; it keeps earlier lines for the arrow keys."""

    def read(self, prompt: str) -> str | None:
        """Reads a line; None at the end of the input. The prompt is shown only on a terminal."""
        if _isatty() and sys.stdout.isatty():
            return self._read_of_terminal(prompt)
        if _isatty():
            # Standard output is a file, which must contain only the responses.
            sys.stderr.write(prompt)
        sys.stderr.flush()
        # Read as bytes, because a pipe need not be UTF-8.
        line = sys.stdin.buffer.readline().decode("utf-8", "replace")
        if not line:
            return None
        return line.removesuffix("\n").removesuffix("\r")

    def _read_of_terminal(self, prompt: str) -> str | None:
        try:
            if os.environ.get("TERM") == "dumb":
                return input(prompt)
            return self._edit(prompt)
        except ModuleNotFoundError:
            return _edit_simply(prompt)
        except (EOFError, KeyboardInterrupt):
            # At the prompt Ctrl-C ends the conversation, as Ctrl-D does, on a line of its own.
            return None

    def _edit(self, prompt: str) -> str:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.formatted_text import ANSI

        if self._session is None:
            # Else the editor asks the terminal for the cursor, and complains if it does not reply.
            os.environ.setdefault("PROMPT_TOOLKIT_NO_CPR", "1")
            self._session = PromptSession()
        if has_colours(sys.stdout):
            return self._session.prompt(ANSI(f"{GREEN}{prompt}{RESET}"))
        return self._session.prompt(prompt)


def _edit_simply(prompt: str) -> str | None:
    """Reads a line without prompt_toolkit, which the extra `cli` installs."""
    try:
        # Importing readline gives `input` arrow keys and a history of lines, if the system has it.
        readline = importlib.import_module("readline")
    except ImportError:
        pass
    else:
        # GNU readline then reads a paste as one line; Python turns that off by default.
        readline.parse_and_bind("set enable-bracketed-paste on")
    try:
        return input(prompt)
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return None
