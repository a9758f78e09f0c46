"""The route table, the list of models, and token counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamlib import StreamError
from streamlib.client.retry import NO_RETRY
from streamlib.gateway import RouteRule, RouteTable, RouteTo, read_route, read_table
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


async def test_each_target_has_its_own_server_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """C14: the second target's model went to the first server, with the first's key."""
    monkeypatch.setenv("FIRST_KEY", "k-first")
    monkeypatch.setenv("GROQ_API_KEY", "k-groq")
    busy = ProviderResponse(529, {"content-type": "application/json"}, [b"{}"])
    upstream = Upstream(busy, busy, weather_response("chat"))
    rules = read_table(
        """
        [[route]]
        model = "*"
        to = [
            { model = "custom:a", base_url = "http://one/v1", key_env = "FIRST_KEY", headers = { x-plan = "first" } },
            { model = "custom:*", base_url = "http://two", wire_api = "messages" },
            "groq:b",
        ]
        """  # noqa: E501  # a table of TOML is one line
    )
    async with serving(upstream, *rules, client={"retry": NO_RETRY}) as client:
        response = await send(client, "chat", weather_prompt())
    assert response.headers["x-streamlib-model"] == "groq:b"
    sent = [(request.url, dict(request.headers)) for request in upstream.requests]
    assert [url for url, _ in sent] == [
        "http://one/v1/chat/completions",
        "http://two/v1/messages",
        "https://api.groq.com/openai/v1/chat/completions",
    ]
    assert ["k-first" in str(headers) for _, headers in sent] == [True, False, False]
    assert ["x-plan" in headers for _, headers in sent] == [True, False, False]
    assert "k-groq" in str(sent[2][1])


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "http://one"},
        {"key_env": "FIRST_KEY"},
        {"headers": {"x-plan": "first"}},
    ],
)
@pytest.mark.parametrize(
    "to",
    [
        ("openai:a", "groq:b"),
        (RouteTo("custom:a", base_url="http://one"), RouteTo("custom:a", base_url="http://two")),
    ],
)
def test_setting_for_several_servers_is_refused(
    to: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C14: whose it is would be a guess."""
    monkeypatch.setenv("FIRST_KEY", "k-first")
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name} belongs to one server, .* for each target$"):
        RouteTable([RouteRule("*", to, **options)])


def test_setting_for_several_models_of_one_server_is_taken() -> None:
    table = RouteTable([RouteRule("*", ("custom:a", "custom:b"), base_url="http://one")])
    targets = table.targets(table.rules[0], "x")
    assert [(target.resolved.model, target.resolved.base_url) for target in targets] == [
        ("a", "http://one"),
        ("b", "http://one"),
    ]


def test_target_wins_over_its_route() -> None:
    to = (RouteTo("custom:a", wire_api="messages"), RouteTo("custom:b"))
    table = RouteTable([RouteRule("*", to, wire_api="chat", base_url="http://one")])
    targets = table.targets(table.rules[0], "x")
    assert [target.resolved.wire_api for target in targets] == ["messages", "chat"]


@pytest.mark.parametrize("to", ['[{base_url="http://x"}]', '[{model="a:b", url="x"}]', "3"])
def test_target_that_is_none_is_refused(to: str) -> None:
    with pytest.raises(ValueError, match="the route file: "):
        read_table(f'[[route]]\nmodel = "a"\nto = {to}')


@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
def test_key_in_the_headers_of_a_route_is_refused(header: str) -> None:
    """`repr` of a route shows its headers."""
    secret = "sk-" + "a" * 40
    for make in (
        lambda headers: RouteRule("m", "openai:m", headers=headers),
        lambda headers: RouteTo("openai:m", headers=headers),
    ):
        with pytest.raises(ValueError, match="key_env") as raised:
            make({header: secret})
        assert secret not in str(raised.value)


async def test_each_target_has_its_own_overrides() -> None:
    busy = ProviderResponse(529, {"content-type": "application/json"}, [b"{}"])
    upstream = Upstream(busy, weather_response("chat"))
    rules = read_table(
        """
        [[route]]
        model = "*"
        wire_api = "chat"
        overrides = { seed = 1, metadata = { a = "route", b = "route" } }
        to = [
            { model = "custom:a", base_url = "http://a", overrides = { metadata = { b = "a" } } },
            { model = "custom:b", base_url = "http://b", overrides = { seed = 2 } },
        ]
        """
    )
    async with serving(upstream, *rules, client={"retry": NO_RETRY}) as client:
        await send(client, "messages", weather_prompt())
    first, second = upstream.body(0), upstream.body(1)
    assert (first["seed"], first["metadata"]) == (1, {"a": "route", "b": "a"})
    assert (second["seed"], second["metadata"]) == (2, {"a": "route", "b": "route"})


def test_key_file_is_read_with_the_routes(tmp_path: Path) -> None:
    file = tmp_path / "key"
    text = """
[[route]]
model = "*"
to = [{ model = "custom:a", base_url = "http://a" }, { model = "custom:b", base_url = "http://b" }]
wire_api = "chat"
"""
    with_file = text.replace('"http://a"', f'"http://a", key_file = "{file}"')
    for content in ("sk-first\n", "sk-second"):
        file.write_text(content, encoding="utf-8")
        table = RouteTable(read_table(with_file))
        first, second = table.targets(table.rules[0], "m")
        assert first.key is not None
        assert first.key.reveal() == content.strip()
        assert second.key is None
    file.write_text("\n", encoding="utf-8")
    for wrong in (with_file, with_file.replace(str(file), str(tmp_path / "no-such"))):
        with pytest.raises(StreamError, match=r"key_file: .* is empty, or cannot be read"):
            RouteTable(read_table(wrong))
    both = with_file.replace(", key_file", ', key_env = "A", key_file')
    with pytest.raises(StreamError, match="a key_env and a key_file: name one"):
        RouteTable(read_table(both))


def test_targets_own_key_replaces_that_of_the_route(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-1", encoding="utf-8")
    to = RouteTo("custom:a", key_file=str(tmp_path / "key"))
    rule = RouteRule("*", to, key_env="NO_SUCH_KEY", base_url="http://a", wire_api="chat")
    [target] = RouteTable([rule]).targets(rule, "m")
    assert target.key is not None
    assert target.key.reveal() == "sk-1"
