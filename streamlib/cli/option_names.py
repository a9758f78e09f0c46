"""Translates messages of the library into the options of the command line."""

from __future__ import annotations

from typing import Final

_OPTION_NAMES: Final = {
    # The command line takes keys from environment variables alone.
    " or api_key=": "",
    ": pass api_key= together with base_url=": ", so it is not sent there",
    ": use api_key=": ": keys are read from environment variables",
    "base_url=": "--base-url",
}
"""Argument in the library's error messages -> its replacement here. The order matters, because the
last argument is part of another."""


def with_option_names(message: str) -> str:
    """Replaces arguments of the library in a message by options of the command."""
    for argument, option in _OPTION_NAMES.items():
        message = message.replace(argument, option)
    return message
