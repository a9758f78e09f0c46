"""The gateway before a client of Open Responses, in front of models of any wire."""

from __future__ import annotations

import json
from typing import Any, Final

import httpx
import pytest

from streamlib.gateway import Gateway, gateway
from streamlib_parsers.items import JsonObject, WireApi
from tests.support.cases import each_case
from tests.support.gateways import Upstream, rule, serving, stream_response
from tests.support.metrics import figure
from tests.support.open_responses import (
    CASES,
    Post,
    ServedResponse,
    ask,
    check_error,
    failed_cases,
)
from tests.support.responses_frames import added, completed, created, done, frame, message
from tests.support.served_gateways import loopback_gateway

STORED: Final = {"previous-response-id", "function-call-roundtrip"}
"""Cases that name a response which is stored: only a target on Responses has it."""

STATE: Final = "previous_response_id names state that only responses providers store"


def posting(running: Gateway, **always: Any) -> Post:
    """Sends requests to a gateway, each with the same further members."""
    app = gateway(running)

    async def post(body: JsonObject) -> ServedResponse:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            served = await client.post("/v1/responses", json={**body, **always})
        return ServedResponse(served.status_code, [served.content])

    return post


@pytest.mark.parametrize("wire", ["messages", "chat"])
async def test_every_case_passes_or_is_refused_by_name(wire: WireApi) -> None:
    """A stored response that another wire does not have is refused, and the rest is complete."""
    async with loopback_gateway(wire) as made, made as running:
        failed = await failed_cases(posting(running))
    assert failed.keys() == STORED
    for reason in failed.values():
        assert STATE in reason
    figure("Open Responses cases, gateway", len(CASES) - len(failed))


async def test_every_case_passes_where_the_model_stores() -> None:
    """Also where the first request of a chain does not say that it will be continued."""
    async with loopback_gateway("responses") as made, made as running:
        assert await failed_cases(posting(running)) == {}
        assert await failed_cases(posting(running, store=True)) == {}
        assert (await failed_cases(posting(running, store=False))).keys() == STORED


CLIENT_BODIES: Final[dict[str, tuple[str, JsonObject]]] = {
    "responses": ("/v1/responses", {"model": "m", "input": "Hi"}),
    "interactions": ("/v1beta/interactions", {"model": "m", "input": "Hi", "stream": True}),
    "chat": (
        "/v1/chat/completions",
        {"model": "m", "messages": [{"role": "user", "content": "a"}]},
    ),
}
"""Requests that leave out what they want to be stored, by their wire."""


@each_case("overrides", [{}, {"top_p": 0.5}])
@each_case("target", ["responses", "interactions"])
@each_case("wire", CLIENT_BODIES)
async def test_default_of_storage_is_the_targets_on_its_wire(
    wire: str, target: WireApi, overrides: JsonObject
) -> None:
    """A client of another wire expects that nothing is stored."""
    upstream = Upstream(stream_response(target))
    path, body = CLIENT_BODIES[wire]
    async with serving(upstream, rule(target, overrides=overrides)) as client:
        await client.post(path, json=body)
    assert upstream.body(0).get("store") is (None if wire == target else False)


async def test_gateway_reports_that_it_stores_nothing() -> None:
    async with loopback_gateway("chat") as made, made as running:
        post = posting(running)
        response = await ask(post, input="Hi", store=True, temperature=0.25)
        refused = await post({"model": "m", "input": "And?", "previous_response_id": "resp_1"})
    assert (response["store"], response["temperature"]) == (False, 0.25)
    error = json.loads(refused.body)
    check_error(error)
    assert (refused.status, error["error"]["code"]) == (400, "invalid_request_error")
    assert error["error"]["param"] == "previous_response_id"


async def test_settings_that_the_model_reports_win() -> None:
    """A setting that a Responses server reports is its own, not the request's."""
    frames = [created(), added(message("Hi")), done(message("Hi"))]
    frames.append(completed(message("Hi"), temperature=0.7, service_tier="flex", store=True))
    upstream = Upstream(stream_response("responses", *frames))
    async with serving(upstream, rule("responses")) as client:
        served = await client.post("/v1/responses", json={"model": "m", "input": "Hi"})
    response = served.json()
    assert response["temperature"] == 0.7
    assert (response["service_tier"], response["store"]) == ("flex", True)


async def test_slug_items_and_events_pass_in_order() -> None:
    slug = {"type": "acme:search", "id": "s_1", "status": "completed", "results": [1]}
    frames = [created(), added({**slug, "status": "in_progress"}), frame("acme:trace", phase="a")]
    frames += [done(slug), added(message("Hi"), 1), done(message("Hi"), 1)]
    frames.append(completed(slug, message("Hi")))
    upstream = Upstream(stream_response("responses", *frames))
    async with serving(upstream, rule("responses")) as client:
        body = {"model": "m", "input": "Hi", "stream": True}
        served = await client.post("/v1/responses", json=body)
    lines = [line for line in served.text.splitlines() if line.startswith("data: {")]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    kinds = [event["type"] for event in events]
    assert kinds.index("acme:trace") < kinds.index("response.output_item.done")
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["acme:search", "message"]
    assert events[-1]["response"]["output"][0] == slug
