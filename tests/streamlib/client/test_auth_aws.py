"""AWS keys: signatures, where they are read, and which hosts get them."""

from __future__ import annotations

import random
import warnings
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from streamlib.client.auth import KeyStore, sign_request
from streamlib.client.credentials import AwsCredentials
from streamlib.client.sigv4 import sign
from streamlib.providers import Provider
from streamlib_parsers.stream_error import StreamError
from tests.support.clients import (
    KEY,
)
from tests.support.keys import NOW, UNUSUAL_KEY, auth_headers, request

AWS: Final = Provider(
    "bedrock", base_url="https://bedrock-runtime.{region}.amazonaws.com", auth="aws"
)


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
        with warnings.catch_warnings():
            # botocore 1.35 asks for the time in a way that Python 3.12 deprecates.
            warnings.filterwarnings("ignore", "datetime.datetime.utcnow", DeprecationWarning)
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
