"""Lists of models, counts of tokens and compaction, for each client's wire."""

from __future__ import annotations

import time
from typing import Any

import httpx
import msgspec
import pytest

from streamlib import (
    Client,
    Message,
    Origin,
    Prompt,
    Reasoning,
    Response,
    Text,
    encode_body,
    parse_body,
)
from streamlib.gateway import RouteRule, RouteTable
from streamlib.gateway.requests.model_endpoints import ModelCatalog, ServedModel, model_list
from streamlib.wires.encoders import encode_all
from streamlib_parsers.items import WireApi, user
from tests.support.cases import each_case
from tests.support.client_limits import Clock
from tests.support.gateways import (
    SIGNED,
    ProviderResponse,
    Upstream,
    client_request,
    read,
    rule,
    send,
    serving,
    stream_response,
    weather_chunks,
    weather_prompt,
)

LISTED = [
    {"id": "a-1", "created": 1700000000},
    {"id": "a-2", "created_at": "2025-02-19T00:00:00Z", "max_input_tokens": 200000},
    {"id": "b-1", "created": 0},
]
LIST = ProviderResponse(200, {}, [msgspec.json.encode({"data": LISTED})])
ROUTES = [
    RouteRule("fast", "custom:a-1", base_url="http://u"),
    RouteRule("a-*", "custom:*", base_url="http://u"),
]
CLIENT_HEADERS: dict[WireApi, dict[str, str]] = {
    "messages": {"anthropic-version": "2023-06-01"},
    "chat": {"authorization": "Bearer x"},
    "gemini": {"x-goog-api-key": "x"},
    "cohere": {"x-fern-sdk-name": "cohere"},
}


async def get(client: httpx.AsyncClient, wire: WireApi, path: str) -> httpx.Response:
    """Requests models as a client of a wire does."""
    version = "v1beta" if wire == "gemini" else "v1"
    return await client.get(f"/{version}/{path}", headers=CLIENT_HEADERS[wire])


# --- models ---


async def test_model_list_has_the_form_of_the_client() -> None:
    bodies: dict[WireApi, Any] = {}
    async with serving(Upstream(LIST), *ROUTES) as client:
        for wire in CLIENT_HEADERS:
            bodies[wire] = (await get(client, wire, "models")).json()
    assert bodies["chat"] == {
        "object": "list",
        "data": [
            {"id": "fast", "object": "model", "created": 1700000000, "owned_by": "streamlib"},
            {"id": "a-1", "object": "model", "created": 1700000000, "owned_by": "streamlib"},
            {"id": "a-2", "object": "model", "created": 1739923200, "owned_by": "streamlib"},
        ],
    }
    claude = bodies["messages"]
    assert (claude["first_id"], claude["last_id"], claude["has_more"]) == ("fast", "a-2", False)
    assert claude["data"][2]["created_at"] == "2025-02-19T00:00:00Z"
    assert claude["data"][2]["max_input_tokens"] == 200000
    assert [model["name"] for model in bodies["gemini"]["models"]] == [
        "models/fast",
        "models/a-1",
        "models/a-2",
    ]
    assert bodies["gemini"]["models"][2]["inputTokenLimit"] == 200000
    assert [model["name"] for model in bodies["cohere"]["models"]] == ["fast", "a-1", "a-2"]


async def test_number_that_means_nothing_is_not_listed() -> None:
    """Some servers write 0 or -1 for a limit that they do not know."""
    limits = {"one": 1, "none": 0, "less": -1, "text": "8"}
    listed = [{"id": name, "max_input_tokens": limit} for name, limit in limits.items()]
    upstream = Upstream(ProviderResponse(200, {}, [msgspec.json.encode({"data": listed})]))
    async with serving(upstream, RouteRule("*", "custom:*", base_url="http://u")) as client:
        models = (await get(client, "messages", "models")).json()["data"]
    shown = {model["id"]: model.get("max_input_tokens") for model in models}
    assert shown == {"one": 1, "none": None, "less": None, "text": None}


async def test_unknown_creation_time_is_the_start_of_the_gateway() -> None:
    before = int(time.time())
    async with serving(Upstream(LIST), RouteRule("b-*", "custom:*", base_url="http://u")) as client:
        body = (await get(client, "chat", "models")).json()
    assert before <= body["data"][0]["created"] <= time.time()


@each_case("wire", list(CLIENT_HEADERS))
async def test_one_model_has_the_form_of_the_client(wire: WireApi) -> None:
    async with serving(Upstream(LIST), *ROUTES) as client:
        listed = (await get(client, wire, "models")).json()
        one = (await get(client, wire, "models/a-2")).json()
        missing = await get(client, wire, "models/b-1")
    objects = listed.get("data") or listed["models"]
    assert one == objects[2]
    assert missing.status_code == 404
    message = missing.json()
    assert "b-1" in str(message)
    if wire == "messages":
        assert message["error"]["type"] == "not_found_error"
    if wire == "gemini":
        assert message["error"]["status"] == "NOT_FOUND"


async def test_model_with_a_slash_is_found() -> None:
    rules = [RouteRule("x-ai/*", "custom:grok", base_url="http://u")]
    async with serving(Upstream(LIST), *rules) as client:
        for name in ("x-ai/grok", "x-ai%2Fgrok"):
            assert (await get(client, "chat", f"models/{name}")).json()["id"] == "x-ai/grok"


async def test_model_not_in_the_providers_list_is_not_found() -> None:
    async with serving(Upstream(LIST), *ROUTES) as client:
        response = await get(client, "chat", "models/a-3")
    assert response.status_code == 404


async def test_lists_are_read_once_a_minute_for_each_server() -> None:
    upstream = Upstream(LIST)
    async with serving(upstream, *ROUTES) as client:
        for _ in range(3):
            await get(client, "chat", "models")
    assert len(upstream.requests) <= len(ROUTES)


async def test_provider_without_a_list_is_still_served() -> None:
    upstream = Upstream(ProviderResponse(404, {}, [b"{}"]))
    async with serving(upstream, *ROUTES) as client:
        body = (await get(client, "chat", "models")).json()
        one = await get(client, "chat", "models/a-9")
    assert [model["id"] for model in body["data"]] == ["fast"]
    assert one.json()["id"] == "a-9"


async def test_provider_without_a_list_is_not_asked_each_time() -> None:
    upstream = Upstream(ProviderResponse(404, {}, [b"{}"]))
    async with serving(upstream, *ROUTES) as client:
        for _ in range(5):
            await get(client, "chat", "models")
    assert len(upstream.requests) <= len(ROUTES)


async def test_lists_of_old_routes_are_forgotten() -> None:
    clock = Clock()
    catalog = ModelCatalog(clock)
    async with Client(http=Upstream(LIST)) as client:
        for number in range(5):
            table = RouteTable([RouteRule("a-*", "custom:*", base_url=f"http://host-{number}")])
            assert await catalog.models(client, table)
            clock.now += 61
    assert len(catalog._lists) == 1


MODELS = [ServedModel(name, 1) for name in "abcde"]


def test_pages_hold_each_model_once() -> None:
    names: list[str] = []
    query = {"pageSize": "2"}
    while True:
        body = model_list("gemini", MODELS, query)
        names += [model["name"] for model in body["models"]]
        if "nextPageToken" not in body:
            break
        query["pageToken"] = body["nextPageToken"]
    assert names == [f"models/{name}" for name in "abcde"]


def test_anthropic_pages_go_both_ways() -> None:
    forward = model_list("messages", MODELS, {"limit": "2", "after_id": "b"})
    back = model_list("messages", MODELS, {"limit": "2", "before_id": "d"})
    assert [model["id"] for model in forward["data"]] == ["c", "d"]
    assert (forward["has_more"], forward["last_id"]) == (True, "d")
    assert [model["id"] for model in back["data"]] == ["b", "c"]
    assert back["has_more"]


@pytest.mark.parametrize("text", ["0", "-1", "x", "9" * 5000, "²"])
def test_page_size_that_is_none_gives_all_models(text: str) -> None:
    assert len(model_list("messages", MODELS, {"limit": text})["data"]) == len(MODELS)


# --- tokens ---

COUNTS: dict[WireApi, tuple[str, str]] = {
    "messages": ("/v1/messages/count_tokens", "input_tokens"),
    "gemini": ("/v1beta/models/client-model:countTokens", "totalTokens"),
    "responses": ("/v1/responses/input_tokens", "input_tokens"),
}
COUNTERS = [
    ("anthropic:claude-opus-4-5", b'{"input_tokens":42}', "/v1/messages/count_tokens"),
    ("openai:gpt-5", b'{"object":"response.input_tokens","input_tokens":42}', "/input_tokens"),
    ("google:gemini-3-pro", b'{"totalTokens":42}', "/models/gemini-3-pro:countTokens"),
]


@pytest.mark.parametrize(("target", "count", "path"), COUNTERS)
@each_case("wire", list(COUNTS))
async def test_count_is_the_providers_own(
    wire: WireApi, target: str, count: bytes, path: str
) -> None:
    upstream = Upstream(ProviderResponse(200, {}, [count]))
    route = RouteRule("*", target, wire_api="responses" if target.startswith("openai") else None)
    own_path, key = COUNTS[wire]
    async with serving(upstream, route, client={"api_key": "k"}) as client:
        response = await client.post(own_path, content=client_request(wire, weather_prompt()).body)
    assert response.json()[key] == 42
    assert "x-streamlib-estimate" not in response.headers
    assert upstream.requests[0].url.endswith(path)
    assert not {"stream", "max_tokens", "max_output_tokens"} & set(upstream.body())
    assert b"weather" in upstream.requests[0].body


@each_case("wire", list(COUNTS))
async def test_count_of_another_server_is_a_marked_estimate(wire: WireApi) -> None:
    path, key = COUNTS[wire]
    async with serving(Upstream(), rule("chat")) as client:
        body = client_request(wire, weather_prompt()).body
        response = await client.post(path, content=body)
        bad = [await client.post(path, content=content) for content in (b"{", b'{"a":"\xff"}')]
    assert response.json()[key] > 10
    assert response.headers["x-streamlib-estimate"] == "true"
    assert [refusal.status_code for refusal in bad] == [400, 400]
    assert all("error" in refusal.json() for refusal in bad)


@pytest.mark.parametrize("count", [b"{}", b"[]", b'{"input_tokens":"\xff"}', b"x", b"[" * 9999])
async def test_count_that_cannot_be_read_is_a_502(count: bytes) -> None:
    route = RouteRule("*", "anthropic:claude-opus-4-5", base_url="http://proxy")
    upstream = Upstream(ProviderResponse(200, {}, [count]))
    async with serving(upstream, route, client={"api_key": "k"}) as client:
        body = client_request("messages", weather_prompt()).body
        response = await client.post("/v1/messages/count_tokens", content=body)
    assert response.status_code == 502
    assert "not a token count" in response.json()["error"]["message"]


@each_case("status", [404, 405, 501])
@each_case("target, count, path", COUNTERS)
async def test_count_is_estimated_where_the_route_is_missing(
    target: str, count: bytes, path: str, status: int
) -> None:
    page = ProviderResponse(status, {"content-type": "text/html"}, [b"<h1>no such page</h1>"])
    route = RouteRule("*", target, base_url="http://proxy")
    async with serving(Upstream(page), route, client={"api_key": "k"}) as client:
        body = client_request("messages", weather_prompt()).body
        response = await client.post("/v1/messages/count_tokens", content=body)
    assert (response.status_code, response.headers["x-streamlib-estimate"]) == (200, "true")
    assert response.json()["input_tokens"] > 10


async def test_gemini_count_takes_a_complete_request() -> None:
    body = msgspec.json.decode(client_request("gemini", weather_prompt()).body)
    path = COUNTS["gemini"][0]
    async with serving(Upstream(), rule("chat")) as client:
        contents = await client.post(path, json={"contents": body["contents"]})
        whole = await client.post(path, json={"generateContentRequest": body})
    # With its tools.
    assert whole.json()["totalTokens"] > contents.json()["totalTokens"]


async def test_envelopes_are_not_counted() -> None:
    """No model gets them, and they are longer than what they hold."""
    reasoning = Reasoning("word " * 2000, signature=SIGNED, origin=Origin("gemini"))
    text = Message("assistant", [Text("Yes.")], origin=Origin("gemini"))
    response = Response("r", "m", "completed", (reasoning, text), stop_reason="stop")
    events = parse_body("gemini", encode_body("gemini", response))
    upstream = Upstream(stream_response("gemini", encode_all("gemini", events, model="m")))
    question = user("Go.")
    async with serving(upstream, rule("gemini")) as client:
        prompt = Prompt([question], reasoning="low", max_output_tokens=4000)
        first = read("messages", await send(client, "messages", prompt))
        body = client_request("messages", Prompt([question, *first.items, question])).body
        count = (await client.post("/v1/messages/count_tokens", content=body)).json()
    assert len(body) > 20_000
    assert 2500 < count["input_tokens"] < 2700


# --- compaction ---


async def test_compaction_is_the_models_summary() -> None:
    upstream = Upstream(stream_response("messages", *weather_chunks("messages")))
    async with serving(upstream, rule("messages")) as client:
        body = msgspec.json.decode(client_request("responses", weather_prompt()).body)
        response = await client.post("/v1/responses/compact", json=body)
        compacted = response.json()
        following = [*compacted["output"], {"role": "user", "content": "And tomorrow?"}]
        await client.post("/v1/responses", json={"model": "m", "input": following})
    assert response.status_code == 200, compacted
    assert compacted["object"] == "response.compaction"
    kinds = [item["type"] for item in compacted["output"]]
    assert kinds == ["message", "compaction"]
    assert compacted["output"][0]["content"][0]["text"] == "Weather in both?"
    assert compacted["usage"]["output_tokens"] == 34
    asked, sent = upstream.body(0), upstream.body(1)
    assert "Summarise" in str(asked["messages"][-1])
    assert asked["tool_choice"] == {"type": "none"}
    # The next request has the summary as text.
    texts = str(sent["messages"])
    assert "I ask for both." in texts
    assert "And tomorrow?" in texts


async def test_openai_compacts_itself() -> None:
    own = b'{"id":"resp_1","object":"response.compaction","output":[]}'
    upstream = Upstream(ProviderResponse(200, {}, [own]))
    route = RouteRule("*", "openai:gpt-5", wire_api="responses")
    async with serving(upstream, route, client={"api_key": "k"}) as client:
        body = client_request("responses", weather_prompt()).body
        response = await client.post("/v1/responses/compact", content=body)
    assert response.content == own
    assert upstream.requests[0].url.endswith("/v1/responses/compact")
    assert set(upstream.body()) == {"model", "input"}


async def test_own_compaction_of_agents_keeps_its_query() -> None:
    own = b'{"id":"resp_1","object":"response.compaction","output":[]}'
    upstream = Upstream(ProviderResponse(200, {}, [own]))
    route = RouteRule("*", "openai:gpt-5", wire_api="responses")
    prompt = Prompt("hi", extra={"multi_agent": {"enabled": True}}, extra_wire="responses")
    async with serving(upstream, route, client={"api_key": "k"}) as client:
        body = client_request("responses", prompt).body
        await client.post("/v1/responses/compact", content=body)
    assert upstream.requests[0].url.endswith("/v1/responses/compact?beta=true")


async def test_failed_compaction_is_an_error_of_the_wire() -> None:
    upstream = Upstream(ProviderResponse(400, {}, [b'{"error":{"message":"no"}}']))
    async with serving(upstream, rule("messages")) as client:
        body = client_request("responses", weather_prompt()).body
        response = await client.post("/v1/responses/compact", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "no"


async def test_truncated_summary_is_an_error_not_a_compaction() -> None:
    """What was left of the history would be lost without a word."""
    text = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"So far"}}]}\n\n'
    end = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
    upstream = Upstream(stream_response("chat", text, end, b"data: [DONE]\n\n"))
    async with serving(upstream, rule("chat")) as client:
        body = client_request("responses", weather_prompt()).body
        response = await client.post("/v1/responses/compact", content=body)
    assert response.status_code >= 500
    assert "not complete: length" in response.json()["error"]["message"]


# --- short keys ---


@pytest.mark.parametrize("key", ["x", "a", "ask", "both", "1"])
async def test_short_key_corrupts_no_text(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local server's key may be a word that its model writes."""
    monkeypatch.setenv("SHORT_KEY", key)
    upstream = Upstream(stream_response("chat", *weather_chunks("chat")))
    async with serving(upstream, rule("chat", key_env="SHORT_KEY")) as client:
        first = read("messages", await send(client, "messages", weather_prompt()))
        body = await send(client, "messages", weather_prompt(), stream=False)
    assert upstream.requests[0].headers["authorization"] == f"Bearer {key}"
    for response in (first, read("messages", body, stream=False)):
        assert response.text == "I ask for both."
        assert [call.arguments for call in response.calls] == [
            '{"place":"Riga"}',
            '{"place":"Köln"}',
        ]
