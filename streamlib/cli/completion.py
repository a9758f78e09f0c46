"""`streamlib completion SHELL`: a script that completes commands and options.

shtab generates it from our own parsers: it quotes for three shells and has no dependencies.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

SHELLS: Final = ("bash", "zsh", "fish")

DESCRIPTION: Final = """\
Prints a script for a shell. It holds all commands, options and values, and
starts no program while you type."""

EXAMPLES: Final = """examples:
  # in ~/.local/share/bash-completion/completions
  streamlib completion bash > streamlib
  streamlib completion zsh > "${fpath[1]}/_streamlib"
  streamlib completion fish > ~/.config/fish/completions/streamlib.fish

exit code: 0 success, 1 shtab is not installed (streamlib[cli]), 2 usage error
"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(arguments: argparse.Namespace) -> int:
    """Prints the script."""
    try:
        import shtab
    except ModuleNotFoundError:
        print("shtab is not installed: pip install 'streamlib[cli]'", file=sys.stderr)
        return 1
    from streamlib.cli import whole_parser

    print(shtab.complete(whole_parser(), arguments.shell))
    return 0
