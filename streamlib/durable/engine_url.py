"""Splits the URL of an engine. It may contain a password, so no message repeats it."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def split_engine_url(url: str) -> SplitResult:
    """The parts of a URL.

    Raises:
        ValueError: it is not a URL. The error of `urlsplit` would quote user, password and host.
    """
    try:
        return urlsplit(url)
    except ValueError:
        message = "this is not a URL: a user or a password is percent-encoded there"
    # Raised outside of `except`, because the original exception contains the password.
    raise ValueError(message)
