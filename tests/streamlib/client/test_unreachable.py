"""A server that cannot be reached is named in the error, with what may help."""

from __future__ import annotations

import socket

import pytest

from streamlib import Client, RetryPolicy, StreamError
from streamlib.client.unreachable import address_of
from streamlib.testing import loopback
from tests.support.cases import each_case


def free_address() -> str:
    """The URL of a port of this machine where nothing listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{reserved.getsockname()[1]}"


async def test_unreachable_loopback_names_serve() -> None:
    """It was `no response was received (ConnectError: All connection attempts failed)`."""
    url = free_address()
    async with Client(base_url=url, retry=RetryPolicy(retries=0)) as client:
        with pytest.raises(StreamError) as caught:
            await client.text("hi", "loopback:echo")
    assert str(caught.value).startswith(f"connection ({url}): no response was received (")
    assert "start `streamlib serve`" in str(caught.value)
    assert "`streamlib.testing.running()`" in str(caught.value)
    assert caught.value.detail == {"phase": "first_byte", "address": url}


async def test_unreachable_server_is_named_without_path_and_key() -> None:
    url = free_address()
    options = {"wire_api": "chat", "api_key": "sk-hidden-0123456789"}
    async with Client(base_url=f"{url}/team-7/v1", retry=RetryPolicy(retries=0)) as client:
        with pytest.raises(StreamError) as caught:
            await client.respond("hi", model="custom:x", **options)  # type: ignore[arg-type]
        with pytest.raises(StreamError) as listed:
            await client.models("ollama")
    for error in (caught.value, listed.value):
        assert str(error).startswith(f"connection ({url}): no response was received (")
        assert "hidden" not in repr(error)
        assert "team-7" not in str(error)
        assert url not in error.message, "a gateway sends the message to its clients"
        assert "streamlib serve" not in str(error)


async def test_refusal_of_a_server_does_not_name_it() -> None:
    async with loopback(status=401) as client:
        with pytest.raises(StreamError) as caught:
            await client.text("hi", "loopback:echo")
    assert str(caught.value).startswith("authentication (HTTP 401): ")
    assert "127.0.0.1" not in str(caught.value)


@each_case(
    "url, address",
    [
        ("https://api.example.com/v1/chat?key=secret", "https://api.example.com"),
        ("http://user:secret@host:8080/", "http://host:8080"),
        ("http://[::1]:8800", "http://[::1]:8800"),
    ],
)
def test_address_is_scheme_host_and_port(url: str, address: str) -> None:
    assert address_of(url) == address
