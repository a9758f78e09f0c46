"""The command line: `streamlib chat`, `streamlib inspect` and so on.

Each command is a module of this package with two functions: `add(commands)` adds its
subparser, `run(arguments)` runs it and returns the exit code.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Sequence
from typing import Final

from streamlib import __version__
from streamlib.terminal.printable import one_line

COMMANDS: Final = (
    "chat",
    "inspect",
    "replay",
    "convert",
    "serve",
    "gateway",
    "log",
    "bench",
    "fuzz",
)
"""Modules of this package, in the order in which `--help` lists them."""

DESCRIPTION: Final = """\
Stream from any LLM API, or inspect a stream that was captured from one.
Without a key, everything runs against a loopback provider."""

EXAMPLES: Final = """examples:
  # offline; with a key and --model anthropic:claude-opus-5, a real model
  streamlib chat Hello
  # record the response, then inspect it: a timeline, and what is missing
  streamlib chat Hello --record response.jsonl
  streamlib inspect response.jsonl
  # the same for bytes captured by another program
  streamlib inspect capture.sse --wire-api messages

More examples: streamlib COMMAND --help

exit code: 0 success, 1 failure, 2 usage error, 130 interrupted
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
        argv: The arguments without the program's name; None reads `sys.argv`.

    Returns:
        The exit code: 0 success, 1 failure (the reason is on standard error), 2 usage error,
        130 interrupted.
    """
    for name, errors in ENCODING_ERRORS:
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    try:
        arguments, unknown = _parser().parse_known_args(argv)
        if unknown:
            # Reported by the subparser, so that its usage is shown and not that of all commands.
            arguments.command.error(f"unrecognized arguments: {' '.join(unknown)}")
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): not a failure. Closed, so that the
        # interpreter does not complain about it on exit.
        sys.stderr.close()
        return 0
    except OSError as error:
        # A full disk, or a file that disappeared while it was used.
        # A file's name may hold what moves the cursor, and so may the text of an error.
        text = one_line(f"{error.filename or 'streamlib'}: {error.strerror or error}")
        sys.stderr.write(f"{text}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamlib",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"streamlib {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"streamlib.cli.{name}").add(commands)
        commands.choices[name].set_defaults(command=commands.choices[name])
    return parser
