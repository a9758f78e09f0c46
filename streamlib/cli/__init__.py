"""The command line: `streamlib chat | inspect | serve …`. One file a command, each with `add(commands)` and `run(arguments)`."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Sequence
from typing import Final

from streamlib import __version__

COMMANDS: Final = ("chat", "inspect", "replay", "convert", "serve", "gateway", "bench", "fuzz")
"""In the order in which `--help` teaches them."""

EXAMPLES: Final = """examples:
  # offline; with --model anthropic:claude-opus-5 and a key, for real
  streamlib chat Hello
  # record what came, then look at it: a timeline, and what is missing
  streamlib chat Hello --record answer.jsonl
  streamlib inspect answer.jsonl
  # the same for bytes from anywhere
  streamlib inspect capture.sse --wire-api messages

More of them: streamlib COMMAND --help

exit code: 0 done, 1 it failed and said why, 2 wrong words, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; the exit code: 0 done, 1 it failed and said why, 2 wrong words, 130 interrupted."""
    for stream, errors in (
        (sys.stdin, "replace"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "backslashreplace"),
    ):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)  # a terminal that lacks a character shows its number
    try:
        arguments, unknown = _parser().parse_known_args(argv)
        if unknown:  # said with the usage of the command, not of them all
            arguments.command.error(f"unrecognized arguments: {' '.join(unknown)}")
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output is gone: nothing is wrong, and nothing more can be said
        return 0
    except OSError as error:  # a disk that is full, a file that went away
        sys.stderr.write(f"{error.filename or 'streamlib'}: {error.strerror or error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamlib",
        description="Stream from any LLM API, or look at what one streamed. Without a key\neverything runs on a loopback provider.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"streamlib {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"streamlib.cli.{name}").add(commands)
        commands.choices[name].set_defaults(command=commands.choices[name])
    return parser
