"""Who a client is: by the token that it sends, which is kept nowhere."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from streamlib.client.credentials import Secret
from streamlib.gateway.clients.access import AccessControl
from streamlib.gateway.clients.identity import ClientIdentity, digest_of, identity_of
from tests.support.asgi_calls import AsgiCall
from tests.support.cases import each_case

TOKEN = "gateway-token"


async def show_identity(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers with what it knows of its client."""
    identity = identity_of(scope)
    query = Request(scope).url.query
    body = {"name": identity.name, "digest": identity.token_digest, "query": query}
    await JSONResponse(body)(scope, receive, send)


async def identity_for(path: str, token: str | None, headers: dict[str, str]) -> Any:
    secret = Secret(token) if token else None
    call = await AsgiCall(path=path, headers=headers)(AccessControl(show_identity, secret))
    assert call.status == 200, call.body
    return json.loads(call.body)


@each_case(
    "headers",
    [
        {"authorization": f"Bearer {TOKEN}"},
        {"x-api-key": TOKEN},
        {"x-goog-api-key": TOKEN},
        {"api-key": TOKEN},
    ],
)
async def test_identity_is_the_token_of_any_header(headers: dict[str, str]) -> None:
    shown = await identity_for("/v1/models", TOKEN, headers)
    assert shown["digest"] == digest_of(TOKEN)


@each_case("name", ["key", "k%65y"])
async def test_key_of_the_query_is_a_token_and_not_passed_on(name: str) -> None:
    path = f"/v1beta/models/m:generateContent?alt=sse&{name}={TOKEN}&pageSize=3"
    shown = await identity_for(path, TOKEN, {})
    assert shown["digest"] == digest_of(TOKEN)
    # Servers log the query of the same scope.
    assert shown["query"] == "alt=sse&pageSize=3"


@each_case("path", ["/v1/models", "/v1/models?key=other", "/v1/models?key="])
async def test_other_key_of_the_query_is_refused(path: str) -> None:
    call = await AsgiCall(path=path)(AccessControl(show_identity, Secret(TOKEN)))
    assert call.status == 401


async def test_identity_is_the_token_that_was_right() -> None:
    """A client cannot be another by sending that one's token in a header that is not read."""
    headers = {"authorization": "Bearer other", "x-api-key": TOKEN}
    shown = await identity_for("/v1/models", TOKEN, headers)
    assert shown["digest"] == digest_of(TOKEN)


def test_identity_key_has_names_apart_from_tokens() -> None:
    digest = digest_of(TOKEN)
    keys = {
        ClientIdentity().key,
        ClientIdentity(name=digest).key,
        ClientIdentity(token_digest=digest).key,
        ClientIdentity(name=f"token {digest}").key,
    }
    assert len(keys) == 4
    # The name stays when a token is replaced by another.
    assert ClientIdentity("ada", digest).key == ClientIdentity("ada", None).key
