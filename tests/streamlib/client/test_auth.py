"""Keys: never shown, and sent to the origin they belong to alone, in the right header."""

from __future__ import annotations

import copy
import logging
import pickle
import random
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib.client import Client
from streamlib.client.auth import KeyStore, sign_request
from streamlib.client.credentials import AwsCredentials, RedactedHeaders, RequestAuth, Secret
from streamlib.client.origins import origin_of, own_origins
from streamlib.client.retry import RetryPolicy
from streamlib.client.sigv4 import sign
from streamlib.client.sources import validated_headers
from streamlib.errors import StreamError
from streamlib.providers import Provider
from streamlib.request.build import Request
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import ErrorInfo, Origin
from streamlib_parsers.redaction import MASK
from tests.support.clients import (
    KEY,
    LIBRARIES,
    MemoryTransport,
    make_client,
    make_request,
    open_http,
)
from tests.support.metrics import figure
from tests.support.response_bodies import HELLO, MESSAGE, error_body, named
from tests.support.scripted_server import (
    FIN,
    HANG,
    RST,
    Script,
    Wait,
    chunk,
    complete_response,
    head,
    scripted,
)

UNUSUAL_KEY: Final = "zQ7-canary/9f+1"
"""A key that looks like no provider's, so that no pattern masks it."""
NOW: Final = datetime(2026, 11, 21, 20, tzinfo=UTC)
ACME: Final = Provider(
    "acme",
    base_url="https://api.acme.example/v1",
    wire_urls={"messages": "https://claude.acme.example"},
    key_env=("ACME_KEY", "ACME_TOKEN"),
)
AWS: Final = Provider(
    "bedrock", base_url="https://bedrock-runtime.{region}.amazonaws.com", auth="aws"
)


def request(url: str, body: bytes = b"{}") -> Request:
    """A request to that address."""
    return Request(
        "POST", url, {"content-type": "application/json"}, body, [], "chat", "m", Origin("chat")
    )


async def auth_headers(
    keys: KeyStore, url: str, provider: Provider = ACME, own: Any = None
) -> dict[str, str]:
    """The headers that a request to that address gets."""
    return dict((await keys.stamp(request(url), provider, NOW, own)).headers)


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


@pytest.mark.parametrize(
    "wrong", ["", " ", "sk\nx: y", "sk\r", "kéy", "a b", "a\x7f", "\ud800"], ids=repr
)
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


def printed(error: BaseException, *, own: bool = True) -> str:
    """All that a tool may print of an exception: locals of every frame, chain and fields.

    own: whether the frames of this file count.
    """
    frames = traceback.TracebackException.from_exception(error, capture_locals=True)
    stack = (
        frames.stack
        if own
        else [frame for frame in frames.stack if not frame.filename.endswith("test_auth.py")]
    )
    lines = [f"{frame.name} {frame.locals}" for frame in stack]
    return "\n".join(
        [
            *lines,
            repr(error),
            str(error),
            repr(error.args),
            repr(error.__context__),
            repr(error.__cause__),
        ]
    )


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


# --- which key is sent where ---


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


# --- addresses ---


@pytest.mark.parametrize(
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


# --- AWS ---


def _random_request(rng: random.Random) -> dict[str, Any]:
    model = "".join(rng.choices("abcXYZ019-._~:%/+ ", k=rng.randint(0, 30)))
    path = "/" + "/".join(
        rng.choices(
            ["model", "..", ".", "", "a%3Ab", "x y".replace(" ", "%20"), model.replace(" ", "")],
            k=rng.randint(0, 5),
        )
    )
    query = rng.choice(["", "", "alt=sse", "b=2&a=1&a=0", "empty=&flag", "q=a%20b"])
    host = rng.choice(
        ["bedrock-runtime.eu-west-1.amazonaws.com", "vpce-1.example:8443", "h.example:443"]
    )
    headers = {"content-type": "application/json"}
    if rng.random() < 0.5:
        headers["X-Two"] = f"  a   {rng.random()}  b "
    return {
        "url": f"https://{host}{path}" + (f"?{query}" if query else ""),
        "headers": headers,
        "body": rng.randbytes(rng.randint(0, 200)),
        "token": rng.choice([None, "tok/" + str(rng.random())]),
        "region": rng.choice(["eu-west-1", "us-gov-west-1"]),
        "service": rng.choice(["bedrock", "bedrock-mantle"]),
        "method": rng.choice(["POST", "GET"]),
    }


def test_signature_equals_that_of_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand random requests: double encoding, queries, session tokens, unusual headers."""
    auth = pytest.importorskip(
        "botocore.auth", reason="botocore is not installed: signatures are compared with nothing"
    )
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    rng = random.Random(4)
    for _ in range(1000):
        drawn = _random_request(rng)
        monkeypatch.setattr(
            auth, "get_current_datetime", lambda *_, **__: NOW.replace(tzinfo=None), raising=False
        )
        theirs = AWSRequest(drawn["method"], drawn["url"], dict(drawn["headers"]), drawn["body"])
        theirs.context["timestamp"] = NOW.strftime("%Y%m%dT%H%M%SZ")
        signer = auth.SigV4Auth(
            Credentials("AKID", "secret/+key", drawn["token"]), drawn["service"], drawn["region"]
        )
        signer.add_auth(theirs)
        signed_at = datetime.strptime(theirs.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(
            tzinfo=UTC
        )
        ours = sign(**drawn, key_id="AKID", secret="secret/+key", now=signed_at)
        assert ours["authorization"] == theirs.headers["Authorization"], drawn


async def test_aws_keys_are_read_from_the_usual_variables() -> None:
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a%3Ab/converse-stream"
    bearer = await auth_headers(
        KeyStore(environ={"AWS_BEARER_TOKEN_BEDROCK": "t-1", "AWS_ACCESS_KEY_ID": "AK"}), url, AWS
    )
    assert bearer == {"authorization": "Bearer t-1"}
    signed = await auth_headers(
        KeyStore(
            environ={
                "AWS_ACCESS_KEY_ID": "AK",
                "AWS_SECRET_ACCESS_KEY": "s",
                "AWS_SESSION_TOKEN": "t",
            }
        ),
        url,
        AWS,
    )
    assert signed.keys() == {"authorization", "x-amz-date", "x-amz-security-token"}
    assert "Credential=AK/20261121/eu-west-1/bedrock/aws4_request" in signed["authorization"]
    with pytest.raises(StreamError, match="AWS_SECRET_ACCESS_KEY"):
        await auth_headers(KeyStore(environ={"AWS_ACCESS_KEY_ID": "AK"}), url, AWS)
    with pytest.raises(StreamError, match="AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID"):
        await auth_headers(KeyStore(environ={}), url, AWS)


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://bedrock-runtime.us-gov-west-1.amazonaws.com/x", "us-gov-west-1/bedrock/"),
        ("https://bedrock-runtime-fips.us-east-2.amazonaws.com/x", "us-east-2/bedrock/"),
        ("https://bedrock-mantle.us-east-1.api.aws/x", "us-east-1/bedrock-mantle/"),
        ("https://aws-external-anthropic.eu-west-3.api.aws/x", "eu-west-3/aws-external-anthropic/"),
        ("https://vpce-1-2.bedrock-runtime.eu-west-1.vpce.amazonaws.com/x", "us-east-1/bedrock/"),
    ],
)
async def test_region_and_service_are_read_from_the_host(url: str, provider: str) -> None:
    keys = KeyStore(AwsCredentials("AK", "s"))  # type: ignore[arg-type]
    headers = await auth_headers(keys, url, AWS)
    assert provider in headers["authorization"]


async def test_environment_aws_keys_are_sent_to_aws_only() -> None:
    environ = {"AWS_BEARER_TOKEN_BEDROCK": KEY}
    for url in (
        "https://evil.example/x",
        "http://bedrock-runtime.eu-west-1.amazonaws.com/x",
        "https://amazonaws.com.evil.example/x",
    ):
        with pytest.raises(StreamError, match="another origin"):
            await auth_headers(KeyStore(environ=environ), url, AWS)


def test_credentials_show_no_secret() -> None:
    credentials = AwsCredentials("AK", UNUSUAL_KEY, UNUSUAL_KEY)  # type: ignore[arg-type]
    assert UNUSUAL_KEY not in repr(credentials)
    assert UNUSUAL_KEY not in repr(
        sign_request(credentials, "aws", request("https://a.example/x"), NOW).headers
    )


# --- the canary ---

ECHO: Final = error_body(
    "authentication_error", f"x-api-key {UNUSUAL_KEY} is no good, nor is Bearer {UNUSUAL_KEY}"
)
SCRIPTS: Final[dict[str, Script]] = {
    "whole": complete_response(MESSAGE),
    "echo 401": complete_response(ECHO, "401 Unauthorized", "application/json"),
    "echo 400 in HTML": complete_response(
        f"<html>{UNUSUAL_KEY}</html>".encode(), "400 Bad Request", "text/html"
    ),
    "echo in a header": complete_response(
        ECHO, "403 Forbidden", "application/json", x_request_id=UNUSUAL_KEY
    ),
    "echo in the stream": [
        head(),
        chunk(HELLO),
        chunk(named("error", error={"type": "api_error", "message": UNUSUAL_KEY})),
        FIN,
    ],
    "echo of junk": [head(), chunk(HELLO), chunk(f"data: {{{UNUSUAL_KEY}\n\n".encode()), FIN],
    "echo where HTTP should be": [f"HTTX {UNUSUAL_KEY}\r\n\r\n".encode(), FIN],
    "redirect": [
        f"HTTP/1.1 307 x\r\nlocation: http://localhost/{UNUSUAL_KEY}\r\n".encode()
        + b"content-length: 0\r\n\r\n"
    ],
    "reset": [RST],
    "reset later": [head(), chunk(HELLO), Wait(0.01), RST],
    "cut": [head(), chunk(HELLO), FIN],
    "silence": [HANG],
    "stall": [head(), chunk(HELLO), HANG],
}
SHORT_DEADLINES: Final = Deadlines(headers=2, first_byte=0.15, first_event=0.15, idle=0.15)


def exposures(client: Client, stream: Any, error: BaseException | None) -> Iterator[str]:
    """Everything that a careless program could print, log or store."""
    objects = [
        client,
        stream,
        stream.request,
        stream.response,
        stream.snapshot,
        stream.retried,
        stream._config,
        stream._config.source,
        stream._attempt,
    ]
    for item in objects:
        yield repr(item)
        yield str(item)
        yield f"{item}"
    for item in (stream.request, stream.response, error):
        yield repr(pickle.dumps(item))
    for item in (client, client._keys, stream, stream._config.source):
        with pytest.raises(TypeError):
            pickle.dumps(item)
    yield repr(vars(stream._config.source))
    yield repr(vars(client))
    if error is not None:
        yield printed(error, own=False)


@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize("style", ["bearer", "x-api-key", "x-goog-api-key", "api-key"])
async def test_key_is_found_in_no_output(
    http: str, style: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Faults that echo, break and redirect; DEBUG logs; tracebacks with their locals.

    Over 1,000 exposures in all.
    """
    caplog.set_level(logging.DEBUG)
    searched = 0
    inner = open_http(http)
    for script in SCRIPTS.values():
        async with scripted(script) as server:
            provider = Provider("faulty", wires=("messages",), base_url=server.url, auth=style)
            options: Any = {"deadlines": SHORT_DEADLINES, "retry": RetryPolicy(retries=0)}
            client = make_client(
                server.url, inner, providers=(provider,), api_key=UNUSUAL_KEY, **options
            )
            stream, error = client.stream(make_request(server.url)), None
            try:
                async with stream:
                    async for _ in stream:
                        pass
            except StreamError as raised:
                error = raised
            assert any(UNUSUAL_KEY.encode() in sent for sent in server.requests)
            for shown in exposures(client, stream, error):
                assert UNUSUAL_KEY not in shown
                searched += 1
    await inner.aclose()
    figure("exposures", searched)
    assert searched > 400
    # httpcore logs response headers at DEBUG, with whatever they echo: there the key may be.
    assert all(
        UNUSUAL_KEY not in record.getMessage()
        for record in caplog.records
        if "receive_response_headers" not in record.getMessage()
    )


async def test_cancellation_carries_no_frames_with_the_key() -> None:
    async with scripted([HANG]) as server, make_client(server.url, api_key=UNUSUAL_KEY) as client:
        caught: list[BaseException] = []
        with anyio.move_on_after(0.05):
            try:
                await client.respond(make_request(server.url))
            except BaseException as error:
                caught.append(error)
                raise
        assert len(caught) == 1
        assert UNUSUAL_KEY not in printed(caught[0], own=False)


async def test_key_is_sent_in_its_header_only() -> None:
    memory = MemoryTransport([MESSAGE])
    async with make_client("http://memory.example", memory, api_key=UNUSUAL_KEY) as client:
        await client.respond(make_request("http://memory.example"))
    ((_, url, headers, body, _),) = memory.sent
    assert headers["x-api-key"] == UNUSUAL_KEY
    assert UNUSUAL_KEY not in url
    assert UNUSUAL_KEY.encode() not in body
    assert headers["accept-encoding"] == "identity"
