"""The route table, the list of models, and token counts."""

from __future__ import annotations

import msgspec
import pytest

from streamlib import StreamError
from streamlib.gateway import RouteRule, RouteTable, read_route, read_table
from tests.support.gateways import (
    ProviderResponse,
    Upstream,
    client_request,
    rule,
    send,
    serving,
    weather_prompt,
    weather_response,
)


async def test_first_matching_route_is_used() -> None:
    upstream = Upstream(weather_response("messages"))
    first = rule("messages", reasoning={"low": "off"}, overrides={"top_k": 3})
    async with serving(upstream, first, rule("chat")) as client:
        await send(client, "chat", weather_prompt())
    assert upstream.requests[0].url == "http://upstream/v1/messages"
    assert upstream.body()["top_k"] == 3
    assert upstream.body().get("thinking", {"type": "disabled"}) == {"type": "disabled"}


async def test_model_without_a_route_is_not_found() -> None:
    async with serving(Upstream(), RouteRule("claude-*", "loopback:*")) as client:
        assert (await send(client, "messages", weather_prompt())).status_code == 404


def test_route_file_errors_are_explained() -> None:
    rules = read_table('[[route]]\nmodel = "a*"\nto = "anthropic:*"')
    assert rules[0].to == ("anthropic:*",)
    for text in (
        "[[route]",
        '[[route]]\nmodel = "a"',
        '[[route]]\nmodel = "a"\nto = []',
        '[[route]]\nmodel="a"\nto="b:c"\nuse="x"',
    ):
        with pytest.raises(ValueError, match="the route file: "):
            read_table(text)
    with pytest.raises(ValueError, match=r"the route '\*' to antropic:x: unknown provider"):
        RouteTable([read_route("*=antropic:x")])
    with pytest.raises(StreamError, match="NO_SUCH_KEY"):
        RouteTable([RouteRule("*", "anthropic:x", key_env="NO_SUCH_KEY")])


async def test_model_list_has_the_names_of_the_routes() -> None:
    upstream = Upstream(ProviderResponse(200, {}, [b'{"data":[{"id":"a-1"},{"id":"b-1"}]}']))
    rules = [
        RouteRule("fast", "custom:x", base_url="http://u"),
        RouteRule("a-*", "custom:*", base_url="http://u"),
    ]
    async with serving(upstream, *rules) as client:
        openai = (await client.get("/v1/models")).json()
        gemini = (await client.get("/v1beta/models")).json()
    assert [model["id"] for model in openai["data"]] == ["fast", "a-1"]
    assert gemini["models"][0]["name"] == "models/fast"


async def test_token_count_is_exact_or_marked_as_estimate() -> None:
    body = msgspec.json.decode(client_request("messages", weather_prompt()).body)
    async with serving(Upstream(), rule("chat")) as client:
        estimate = await client.post("/v1/messages/count_tokens", json=body)
    assert estimate.json()["input_tokens"] > 10
    assert estimate.headers["x-streamlib-estimate"] == "true"

    upstream = Upstream(ProviderResponse(200, {}, [b'{"input_tokens":42}']))
    to_anthropic = RouteRule("*", "anthropic:claude-opus-4-5")
    async with serving(upstream, to_anthropic, client={"api_key": "k"}) as client:
        exact = await client.post("/v1/messages/count_tokens", json=body)
    assert exact.json() == {"input_tokens": 42}
    assert "x-streamlib-estimate" not in exact.headers
    assert upstream.requests[0].url.endswith("/v1/messages/count_tokens")
    assert "max_tokens" not in upstream.body()
