"""The commands by name, so that only the module of the one that runs is imported."""

from __future__ import annotations

import os
from typing import Final

COMMANDS: Final = {
    "chat": "ask a question, or hold a conversation",
    "models": "list the models that providers offer",
    "providers": "list the providers, and which have a key",
    "doctor": "check this installation, and say how to repair it",
    "inspect": "show what a captured response contains, and what is missing",
    "replay": "stream a recording again",
    "convert": "convert a captured response to another wire or UI protocol",
    "serve": "run the loopback provider on a local port, for any SDK",
    "gateway": "let clients of one API use models of another",
    "log": "show event logs: who writes, who reads, the last events",
    "bench": "measure the speed of the parsers and of pipelines",
    "fuzz": "search for bodies that break a parser",
    "completion": "print a script that completes commands in a shell",
}
"""Name -> what it does, in the order of `--help`. Each is a module of this package."""


def is_misspelt(typed: str, command: str) -> bool:
    """Whether one inserted, removed, replaced or swapped letter turns a word into a command."""
    if abs(len(typed) - len(command)) > 1 or typed == command:
        return False
    start = 0
    while start < min(len(typed), len(command)) and typed[start] == command[start]:
        start += 1
    rest, wanted = typed[start:], command[start:]
    if len(rest) == len(wanted):
        is_exchanged = rest[1::-1] == wanted[:2] and rest[2:] == wanted[2:]
        return rest[1:] == wanted[1:] or is_exchanged
    if len(rest) > len(wanted):
        return rest[1:] == wanted
    return rest == wanted[1:]


def nearest_command(typed: str) -> str | None:
    """The command whose name is nearly a word; None if there is none."""
    for command in COMMANDS:
        if is_misspelt(typed, command):
            return command
    return None


def names_a_file(typed: str) -> bool:
    """Whether a word is an existing file, is written like a file name, or is a URL."""
    if os.path.exists(typed):
        return True
    if any(character.isspace() for character in typed):
        return False  # a sentence in quotes
    if "/" in typed:
        return True
    stem, dot, extension = typed.rpartition(".")
    # "What is 3.5 and what comes next?": a number is not a file, and a sentence ends with a dot.
    return bool(stem and dot and extension) and not extension[0].isdigit()
