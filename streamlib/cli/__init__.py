"""The command line: `streamlib "question"`, `streamlib chat`, `streamlib inspect` and so on.

Each command is a module of this package with two texts of its help, `DESCRIPTION` and `EXAMPLES`,
and two functions: `add(command)` adds its options, `run(arguments)` runs it and returns the exit
code. Only the module of the command that runs is imported.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from streamlib import __version__
from streamlib.cli.arguments import CommandError, CommandParser, did_you_mean
from streamlib.display.safe_text import one_line, printable

USAGE: Final = """streamlib [OPTIONS] "QUESTION"
       streamlib COMMAND …"""

DESCRIPTION: Final = """\
Asks any LLM API, and shows what a captured stream contains. Piped input
becomes part of the question. Without a model, the built-in loopback
provider responds, which needs no key."""

EXAMPLES: Final = """examples:
  streamlib "Name three rivers"
  # a real model; its key is read from the environment
  streamlib -m anthropic:claude-opus-5 "Name three rivers"
  git diff | streamlib "Write a commit message"
  # a conversation
  streamlib
  # record the response, then inspect it: a timeline, and what is missing
  streamlib chat Hello --record response.jsonl
  streamlib inspect response.jsonl

`streamlib chat --help` lists the options of a question, and
`streamlib COMMAND --help` those of a command.

exit code: 0 success, 1 failure, 2 usage error, 3 incomplete response,
           4 refused, 5 failed, but may succeed later, 130 stopped
"""

ENCODING_ERRORS: Final = (
    ("stdin", "replace"),
    ("stdout", "backslashreplace"),
    ("stderr", "backslashreplace"),
)
"""A terminal that lacks a character shows its number instead of ending the program."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv: the arguments without the program's name; None reads `sys.argv`.

    Returns:
        The exit code: 0 success, 1 failure (the reason is on standard error), 2 usage error,
        3 the response is incomplete, 4 it was refused, 5 it may succeed later, 130 interrupted.
    """
    if argv is None:
        argv = sys.argv[1:]
    return run_command(argv)


def run_command(command: Sequence[str] | argparse.Namespace) -> int:
    """Runs a command, given as words or as parsed arguments; returns the exit code of `main`."""
    for name, errors in ENCODING_ERRORS:
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    try:
        arguments = command if isinstance(command, argparse.Namespace) else parse(command)
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The program that reads our output has ended (`| head`): not a failure. Standard error is
        # closed so that the interpreter does not complain on exit.
        sys.stderr.close()
        return 0
    except CommandError as error:
        # The message may quote a file.
        sys.stderr.write(f"{printable(str(error))}\n")
        return error.code
    except OSError as error:
        # A full disk, or a file that disappeared while it was used.
        # A file name or an error text may contain control characters that move the cursor.
        text = one_line(f"{error.filename or 'streamlib'}: {error.strerror or error}")
        sys.stderr.write(f"{text}\n")
        return 1


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the arguments as those of a command if the first word is one, else as a question.

    Raises:
        SystemExit: the arguments cannot be read (2), or help or version was requested (0).
    """
    if argv and argv[0] in ("-h", "--help", "--version"):
        top_parser().parse_args(argv[:1])
    name, rest = "chat", list(argv)
    meant: str | None = None
    if argv and argv[0] in COMMANDS:
        name, rest = argv[0], rest[1:]
    elif argv:
        meant = nearest_command(argv[0])
    parser = _command(name)
    if meant is not None and meant != name:
        # Checked before parsing, because the parser of questions would refuse or misread them.
        own_options = _command(meant).options() - parser.options()
        if any(typed.partition("=")[0] in {*own_options, "-h", "--help"} for typed in rest):
            _refuse(argv, meant)
    if name == "chat":
        # Options may stand between the words of a question.
        arguments, unknown = parser.parse_known_intermixed_args(rest)
    else:
        arguments, unknown = parser.parse_known_args(rest)
        if unknown:
            # Options may stand between files, too. This parser is slower: it runs only if needed.
            arguments, unknown = parser.parse_known_intermixed_args(rest)
    if meant is not None and _is_meant(meant, arguments.text):
        _refuse(argv, meant)
    if unknown:
        # Reported by the command's own parser, so that the usage shown is that of the command.
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def top_parser() -> argparse.ArgumentParser:
    """The parser of the options before a command: help and version."""
    summaries = [f"  {name:<12}{summary}" for name, summary in COMMANDS.items()]
    parser = CommandParser(
        prog="streamlib",
        usage=USAGE,
        description=DESCRIPTION,
        epilog="\n".join(["commands:", *summaries, "", EXAMPLES]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"streamlib {__version__}")
    return parser


def whole_parser() -> argparse.ArgumentParser:
    """The parser of every command with its options. Imports the modules of all commands."""
    parser = top_parser()
    commands = parser.add_subparsers(metavar="COMMAND", prog="streamlib")
    for name in COMMANDS:
        _add(commands, name)
    return parser


def _command(name: str) -> CommandParser:
    """The parser of one command."""
    return _add(CommandParser(prog="streamlib").add_subparsers(prog="streamlib"), name)


def _add(commands: Any, name: str) -> CommandParser:
    """Adds a command, whose module is imported."""
    module = importlib.import_module(f"streamlib.cli.{name}")
    parser: CommandParser = commands.add_parser(
        name,
        help=COMMANDS[name],
        description=module.DESCRIPTION,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add(parser)
    parser.set_defaults(run=module.run)
    return parser


def _is_meant(command: str, question: Sequence[str]) -> bool:
    """Whether a question was meant as a command whose name its first word nearly is.

    A question of a single word is taken for a command. A longer one is a command if its second
    word is a file or a URL, because in a sentence a plain word comes next.
    """
    if len(question) < 2:
        return True
    # A chat takes words, never files.
    return command != "chat" and names_a_file(question[1])


def _refuse(argv: Sequence[str], command: str) -> NoReturn:
    """Ends the program with a suggestion, because the first word is nearly a command."""
    typed = one_line(argv[0])
    again = one_line(shlex.join(argv))
    suggestion = did_you_mean(command, [command])
    sys.stderr.write(f"{typed} is not a command{suggestion} (to ask it: streamlib chat {again})\n")
    raise SystemExit(2)


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
