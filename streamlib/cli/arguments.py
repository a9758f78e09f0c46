"""The parser of a command's arguments, whose errors name what was probably meant; other errors."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

_UNKNOWN = re.compile(r"unrecognized arguments: (.*)", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors suggest an option or a value."""

    def error(self, message: str) -> NoReturn:
        """Shows the usage and the error, and ends the program with exit code 2."""
        super().error(message + self._suggestion(message))

    def options(self) -> set[str]:
        """Every spelling of its options."""
        return {name for action in self._actions for name in action.option_strings}

    def _suggestion(self, message: str) -> str:
        choice = _CHOICE.search(message)
        if choice is not None:
            return did_you_mean(choice[1], re.split(r"[', ]+", choice[2]))
        unknown = _UNKNOWN.search(message)
        if unknown is None:
            return ""
        options = sorted(self.options())
        for typed in unknown[1].split():
            suggestion = did_you_mean(typed.partition("=")[0], options)
            if typed.startswith("-") and suggestion:
                return suggestion
        return ""


def did_you_mean(typed: str, names: list[str]) -> str:
    """A question that names similar names (`; did you mean …`); "" if none is similar."""
    # Imported here, because most commands are spelt correctly.
    import difflib

    similar = difflib.get_close_matches(typed, [name for name in names if name], 1, 0.6)
    if not similar:
        return ""
    return f"; did you mean {similar[0]}?"


class CommandError(Exception):
    """A command cannot go on; the message tells a person why.

    Args:
        message: the reason, naming the file or the option.
        code: the exit code of the program.
    """

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
