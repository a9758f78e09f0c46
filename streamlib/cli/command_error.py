"""The error that ends a command with one line."""

from __future__ import annotations


class CommandError(Exception):
    """A command cannot go on; the message tells a person why.

    Args:
        message: the reason, naming the file or the option.
        code: the exit code of the program.
    """

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
