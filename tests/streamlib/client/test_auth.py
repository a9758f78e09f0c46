"""Keys: which origin gets which key, and that none is shown."""

from __future__ import annotations

import copy
import gzip
import pickle
from typing import Any, Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib.client import Client
from streamlib.client.auth import KeyStore
from streamlib.client.credentials import RedactedHeaders, RequestAuth, Secret
from streamlib.client.origins import origin_of, own_origins
from streamlib.client.retry import NO_RETRY
from streamlib.client.sources import validated_headers
from streamlib.providers import Provider
from streamlib_parsers import ErrorInfo, RateLimits
from streamlib_parsers.redaction import MASK
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case
from tests.support.clients import KEY, MemoryTransport, make_client, make_request
from tests.support.keys import ACME, UNUSUAL_KEY, auth_headers, printed
from tests.support.response_bodies import MESSAGE

# --- secrets ---


def test_secret_is_shown_nowhere() -> None:
    secret = Secret(f"  {KEY}\n")
    assert secret.reveal() == KEY
    for shown in (
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret:>40}",
        "{} {!r}".format(secret, secret),  # noqa: UP032  # the other way of formatting
        repr([secret]),
        repr(vars),
        ascii(secret),
    ):
        assert KEY not in shown
    assert copy.deepcopy(secret) == copy.copy(secret) == secret == Secret(KEY)
    assert secret != Secret(KEY + "x")
    assert len({secret, Secret(KEY)}) == 1
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert not hasattr(secret, "__dict__")


@each_case("wrong", ["", " ", "sk\nx: y", "sk\r", "kéy", "a b", "a\x7f", "\ud800"], ids=repr)
def test_invalid_key_is_refused_and_not_shown(wrong: str) -> None:
    wrong = wrong if not wrong.strip() else f"{UNUSUAL_KEY}{wrong}{UNUSUAL_KEY}"
    for make in (
        Secret,
        lambda key: KeyStore(key).check(),
        lambda key: Client(api_key=key),
        lambda key: Client().stream(make_request("http://a.example"), provider=ACME, api_key=key),
    ):
        with pytest.raises(StreamError) as raised:
            make(wrong)
        assert raised.value.kind == "authentication"
        assert not wrong.strip() or UNUSUAL_KEY not in printed(raised.value, own=False)


def test_redacted_headers_show_only_names() -> None:
    headers = RedactedHeaders({"authorization": f"Bearer {KEY}", "a": "b"})
    assert repr(headers) == str(headers) == f"{headers}" == "RedactedHeaders(authorization, a)"
    with pytest.raises(TypeError):
        pickle.dumps(headers)


def test_key_echoed_by_a_server_is_masked() -> None:
    stamp = RequestAuth(RedactedHeaders(), (Secret(UNUSUAL_KEY),))
    info = ErrorInfo(
        "authentication",
        f"bad key {UNUSUAL_KEY}",
        code=UNUSUAL_KEY,
        detail={"keys": [{UNUSUAL_KEY: UNUSUAL_KEY}], "n": 1},
    )
    assert UNUSUAL_KEY not in repr(stamp.redact(info))
    assert stamp.redact(info).detail == {"keys": [{MASK: MASK}], "n": 1}


# --- which origin gets which key ---


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ("bearer", "authorization", "Bearer k-1"),
        ("x-api-key", "x-api-key", "k-1"),
        ("x-goog-api-key", "x-goog-api-key", "k-1"),
        ("api-key", "api-key", "k-1"),
    ],
)
async def test_each_auth_style_has_its_header(auth: Any, header: str, value: str) -> None:
    assert await auth_headers(KeyStore("k-1"), "https://a.example/x", Provider("p", auth=auth)) == {
        header: value
    }


async def test_no_key_is_sent_when_none_is_required() -> None:
    assert (
        await auth_headers(KeyStore(environ={}), "https://a.example/x", Provider("p", auth="none"))
        == {}
    )
    assert (
        await auth_headers(
            KeyStore(environ={}), "https://a.example/x", Provider("p", key_optional=True)
        )
        == {}
    )
    assert await auth_headers(KeyStore(environ={}), "http://127.0.0.1:8/x") == {}
    assert await auth_headers(
        KeyStore("k-1"), "https://a.example/x", Provider("p", auth="none")
    ) == {"authorization": "Bearer k-1"}


async def test_missing_key_error_names_the_variables() -> None:
    with pytest.raises(StreamError) as raised:
        await auth_headers(KeyStore(environ={}), "https://api.acme.example/v1/x")
    assert raised.value.kind == "authentication"
    assert "ACME_KEY or ACME_TOKEN" in raised.value.message
    assert not raised.value.retryable


async def test_first_variable_that_is_set_is_used() -> None:
    assert await auth_headers(
        KeyStore(environ={"ACME_TOKEN": "k-2"}), "https://api.acme.example/v1/x"
    ) == {"authorization": "Bearer k-2"}
    both = {"ACME_TOKEN": "k-2", "ACME_KEY": "k-1"}
    assert await auth_headers(KeyStore(environ=both), "https://claude.acme.example/x") == {
        "authorization": "Bearer k-1"
    }


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/v1/x",
        "https://api.acme.example.evil.example/x",
        "http://api.acme.example/v1/x",
        "https://api.acme.example:8443/v1/x",
        "https://xapi.acme.example/v1/x",
        "http://127.0.0.1:1234/v1/x",
    ],
)
async def test_environment_key_is_sent_to_own_origins_only(url: str) -> None:
    """Otherwise whoever controls `base_url` receives the key (CVE-2024-6587 elsewhere)."""
    keys = KeyStore(environ={"ACME_KEY": KEY})
    if "127.0.0.1" in url:
        assert await auth_headers(keys, url) == {}
        return
    with pytest.raises(StreamError, match="belongs to another origin") as raised:
        await auth_headers(keys, url)
    assert KEY not in printed(raised.value)


async def test_single_key_belongs_to_one_origin() -> None:
    keys = KeyStore("k-1", environ={})
    assert await auth_headers(keys, "https://api.acme.example/v1/x") == {
        "authorization": "Bearer k-1"
    }
    assert await auth_headers(keys, "https://claude.acme.example/x") == {
        "authorization": "Bearer k-1"
    }
    with pytest.raises(StreamError, match="another origin"):
        await auth_headers(keys, "https://evil.example/x")
    based = KeyStore("k-1", "https://proxy.example/v1", environ={})
    assert await auth_headers(based, "https://proxy.example/v1/x") == {
        "authorization": "Bearer k-1"
    }
    with pytest.raises(StreamError, match="another origin"):
        await auth_headers(based, "https://api.acme.example/v1/x")


async def test_keys_by_provider_are_not_mixed() -> None:
    keys = KeyStore({"acme": "k-1", "other": "k-2"}, environ={})
    assert await auth_headers(keys, "https://api.acme.example/v1/x") == {
        "authorization": "Bearer k-1"
    }
    assert await auth_headers(
        keys, "https://o.example/x", Provider("other", base_url="https://o.example")
    ) == {"authorization": "Bearer k-2"}
    with pytest.raises(StreamError):
        await auth_headers(keys, "https://o.example/x")


async def test_url_variable_matches_one_label_of_a_host() -> None:
    provider = Provider(
        "p",
        base_url="https://{region}-ai.example/v1",
        url_replacements={"//eu-ai.example": "//ai.eu.rep.example"},
        key_env=("K",),
    )
    keys = KeyStore(environ={"K": "k-1"})
    for url in ("https://us-west1-ai.example/v1/x", "https://ai.eu.rep.example/v1/x"):
        assert await auth_headers(keys, url, provider) == {"authorization": "Bearer k-1"}
    for url in (
        "https://evil.example/-ai.example",
        "https://a.evil-ai.example/x",
        "https://x.rep.example/v1",
    ):
        with pytest.raises(StreamError, match="another origin"):
            await auth_headers(keys, url, provider)


async def test_key_of_a_request_is_sent_anywhere() -> None:
    assert await auth_headers(KeyStore("k-1", environ={}), "https://else.example/x", own="k-9") == {
        "authorization": "Bearer k-9"
    }


async def test_key_is_sent_anywhere_when_provider_has_no_url() -> None:
    azure = Provider("azure", key_env=("AZURE_KEY",), auth="api-key")
    assert await auth_headers(
        KeyStore(environ={"AZURE_KEY": "k-1"}), "https://mine.openai.azure.example/x", azure
    ) == {"api-key": "k-1"}


async def test_key_function_is_called_for_each_request() -> None:
    tokens = iter(["k-1", Secret("k-2")])

    async def later() -> Any:
        await anyio.lowlevel.checkpoint()
        return next(tokens)

    keys = KeyStore(later)
    assert await auth_headers(keys, "https://a.example/x") == {"authorization": "Bearer k-1"}
    assert await auth_headers(keys, "https://a.example/x") == {"authorization": "Bearer k-2"}
    assert await auth_headers(KeyStore(lambda: "k-3"), "https://a.example/x") == {
        "authorization": "Bearer k-3"
    }


async def test_failing_key_function_exposes_no_key() -> None:
    def broken() -> str:
        raise OSError(f"cannot refresh {KEY}")

    with pytest.raises(StreamError) as raised:
        await auth_headers(KeyStore(broken), "https://a.example/x")
    assert raised.value.kind == "authentication"
    assert "OSError" in raised.value.message
    assert KEY not in printed(raised.value)


# --- URLs and headers ---


@each_case(
    "url",
    [
        "ftp://a.example",
        "a.example",
        "https://",
        "https://user:pass@a.example",
        "https://a.example:99999",
        "https://a.example/a b",
        "https://a.example/\nx",
        "http://[::1",
    ],
)
def test_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(StreamError) as raised:
        origin_of(url)
    assert raised.value.kind == "invalid_request"
    assert "pass" not in raised.value.message.replace("password", "")


def test_origin_is_normalized() -> None:
    assert (
        origin_of("https://API.Acme.example/v1")
        == origin_of("https://api.acme.example:443")
        == "https://api.acme.example:443"
    )
    assert origin_of("http://[::1]:80/x") == "http://[::1]:80"
    assert own_origins(ACME) == {"https://api.acme.example:443", "https://claude.acme.example:443"}


@pytest.mark.parametrize("name", ["a b", "a:b", "", "a\r\nb", "é"], ids=repr)
def test_invalid_header_name_is_refused(name: str) -> None:
    with pytest.raises(StreamError, match="header"):
        validated_headers({name: "x"})


@given(st.text(max_size=20))
def test_header_value_cannot_add_a_header(value: str) -> None:
    harmless = (
        value == value.strip()
        and value.isascii()
        and all(char.isprintable() or char == "\t" for char in value)
    )
    if harmless:
        assert validated_headers({"X-Thing": value}) == {"x-thing": value}
        return
    with pytest.raises(StreamError) as raised:
        validated_headers({"X-Thing": value})
    assert raised.value.kind == "invalid_request"
    assert len(value) < 6 or value not in raised.value.message


# --- short keys (C8) ---

SHORT_KEYS: Final = ("x", "1", "gzip", "anthropic", "7", "request")
LIMIT_HEADERS: Final = {
    "anthropic-ratelimit-requests-limit": "17",
    "anthropic-ratelimit-requests-remaining": "1",
    "retry-after": "1",
    "request-id": "req_1",
    "content-encoding": "gzip",
}


@pytest.mark.parametrize("key", SHORT_KEYS)
async def test_headers_are_read_before_keys_are_masked(key: str) -> None:
    """C8: whatever the key, rate limits are read and gzip is decoded."""
    memory = MemoryTransport([gzip.compress(MESSAGE)], headers=LIMIT_HEADERS)
    async with (
        make_client("http://memory.example", memory, api_key=key) as client,
        client.stream(make_request("http://memory.example")) as stream,
    ):
        events = [event async for event in stream]
    assert stream.response.status == "completed"
    limits = events[0]
    assert isinstance(limits, RateLimits)
    assert limits.requests is not None
    assert (limits.requests.limit, limits.requests.remaining) == (17, 1)


@pytest.mark.parametrize("key", SHORT_KEYS)
async def test_retry_after_is_read_before_keys_are_masked(key: str) -> None:
    """C8."""
    memory = MemoryTransport(
        [b'{"error":{"type":"rate_limit_error","message":"slow"}}'],
        status=429,
        headers={"retry-after": "1"},
    )
    async with make_client("http://memory.example", memory, api_key=key, retry=NO_RETRY) as client:
        with pytest.raises(StreamError) as raised:
            await client.respond(make_request("http://memory.example"))
    assert (raised.value.kind, raised.value.info.retry_after) == ("rate_limited", 1.0)


@pytest.mark.parametrize("key", ["x", "s3cret", "a-key"])
def test_short_key_is_masked_only_as_a_complete_token(key: str) -> None:
    """C8."""
    auth = RequestAuth(RedactedHeaders(), (Secret(key),))
    text = f"bad key '{key}'. Bearer {key}, key={key}; not b{key}b nor {key}-b nor b_{key}"
    expected = f"bad key '***'. Bearer ***, key=***; not b{key}b nor {key}-b nor b_{key}"
    assert auth.redact_value(text) == expected


async def test_keys_in_shown_headers_and_rate_limits_are_masked() -> None:
    """C8: what is read unmasked is shown masked."""
    headers = {"x-ratelimit-limit-requests": "5", "x-ratelimit-note": KEY, "x-request-id": KEY}
    memory = MemoryTransport([MESSAGE], headers={**headers, f"x-ratelimit-{KEY}": "1"})
    async with (
        make_client("http://memory.example", memory) as client,
        client.stream(make_request("http://memory.example")) as stream,
    ):
        events = [event async for event in stream]
        assert KEY not in repr((events, stream.headers, stream.rate_limits, stream.response))
    assert isinstance(events[0], RateLimits)
