"""Uses streamlib as installed, without a checkout: run by the Python that it is installed in.

    nox -s package

Standard library and streamlib only; no test runner.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import streamlib
import streamlib_parsers
from streamlib.inspection import inspect, render

PACKAGES = ("streamlib", "streamlib_parsers", "streamlib_pytest")

BODY = b"""\
data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}

data: [DONE]

"""


def main() -> None:
    """Checks files, version and a first parse; exits with a message where something is wrong."""
    distribution = importlib.metadata.distribution("streamlib")
    files = {str(file) for file in distribution.files or []}
    top_level = {Path(file).parts[0] for file in files}
    folders = {name for name in top_level if "." not in name}
    if not folders <= {*PACKAGES}:
        sys.exit(f"installed more than the packages: {sorted(folders - {*PACKAGES})}")
    if distribution.version != streamlib.__version__:
        sys.exit(f"{distribution.version} is not {streamlib.__version__}")
    for name in PACKAGES:
        if f"{name}/py.typed" not in files:
            sys.exit(f"{name} has no py.typed")
    for name in streamlib.__all__:
        getattr(streamlib, name)
    parser = streamlib.parser("chat")
    response = streamlib_parsers.accumulate([*parser.feed(BODY), *parser.close()])
    # Its files are no Python.
    page = render([inspect(BODY, "chat")])
    if not page.startswith("<!doctype html>"):
        sys.exit(f"the inspector's page is {page[:80]!r}")
    if response.text != "Hello" or response.status != "completed":
        sys.exit(f"parsed {response!r}")
    sys.stdout.write(f"streamlib {distribution.version}: {len(streamlib.__all__)} names\n")


if __name__ == "__main__":
    main()
