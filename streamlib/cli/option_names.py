"""Messages of the library in the words of the command line."""

from __future__ import annotations

from typing import Final

_OPTION_NAMES: Final = {
    # The command line takes keys from environment variables alone.
    " or api_key=": "",
    ": pass api_key= together with base_url=": ", so it is not sent there",
    ": use api_key=": ": keys are read from environment variables",
    "base_url=": "--base-url",
}
"""Arguments that the library's error messages name, and what stands for them here. In order: the
last one is part of another."""


def with_option_names(message: str) -> str:
    """Translates a message of the library for somebody who runs a command."""
    for argument, option in _OPTION_NAMES.items():
        message = message.replace(argument, option)
    return message
