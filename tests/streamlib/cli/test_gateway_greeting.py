"""What `streamlib gateway` writes when it starts."""

from __future__ import annotations

import os

from streamlib.asgi import END_SECONDS
from streamlib.cli.gateway import greeting
from streamlib.cli.gateway_server import SPARE_SECONDS
from streamlib.client.credentials import Secret
from streamlib.gateway import NamedClient, RouteTable

ADDRESS = ("127.0.0.1", 8901)
PAGE = "http://127.0.0.1:8901/"


def named(text: str) -> bool:
    """Whether a line ends with the page's address."""
    return any(line.endswith(f" {PAGE}") for line in text.splitlines())


def test_greeting_names_the_page_and_the_process() -> None:
    """Nothing said where the page is, or which process to send SIGHUP to."""
    text = greeting(RouteTable([]), None, ADDRESS)
    assert text.startswith(f"gateway on http://127.0.0.1:8901  (process {os.getpid()}; ")
    assert named(text)


def test_greeting_names_no_page_that_nobody_can_open() -> None:
    clients = [NamedClient("alice", token_sha256="0" * 64)]
    table = RouteTable([], clients=clients)
    assert not named(greeting(table, None, ADDRESS))
    assert named(greeting(table, Secret("a-token-of-the-owner"), ADDRESS))


def test_stopping_server_waits_for_the_end_of_its_streams() -> None:
    assert SPARE_SECONDS > END_SECONDS
