"""The URL of an engine, which may have a password: no message repeats it."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def split_engine_url(url: str) -> SplitResult:
    """The parts of a URL.

    Raises:
        ValueError: It is not a URL. `urlsplit` would quote user, password and host.
    """
    try:
        return urlsplit(url)
    except ValueError:
        message = "this is not a URL: a user or a password is percent-encoded there"
    # Outside of `except`: the original exception has the password.
    raise ValueError(message)
