"""The loopback provider before a client of Open Responses, and its memory of responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib.testing import Behaviour, echo_response
from streamlib.testing.provider.provider import LONGEST_MEMORY, Loopback, StoredResponses
from streamlib.wires.routes import route
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import FunctionCall, JsonObject, Opaque, Reasoning, ServerToolCall
from streamlib_parsers.stream_error import StreamError
from tests.support.metrics import figure
from tests.support.open_responses import (
    CASES,
    HOSTED_CASES,
    Post,
    ServedResponse,
    ask,
    ask_stream,
    check_error,
    failed_cases,
    kinds,
)

SLUG: JsonObject = {"type": "acme:search", "id": "s_1", "status": "completed", "results": [1]}


def posting(behaviour: Behaviour | None = None, path: str = "/v1/responses") -> Post:
    """Sends requests to a loopback provider, without a socket."""
    provider = Loopback(behaviour or Behaviour(), echo_response)

    async def post(body: JsonObject) -> ServedResponse:
        served = provider.response(route(path), json.dumps(body).encode(), {}, path)
        return ServedResponse(served.status, list(served.chunks))

    return post


async def test_every_case_of_the_suite_passes() -> None:
    """Each of the 32 members, usage details and `[DONE]` were missing."""
    assert await failed_cases(posting()) == {}
    figure("Open Responses cases, loopback", len(CASES))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("file-search", "file_search_call"), ("offline-web-search", "web_search_call")],
)
async def test_optional_case_passes_with_a_scripted_tool(name: str, kind: str) -> None:
    call = ServerToolCall("ws_1", kind.removesuffix("_call"), native={"type": kind})
    await HOSTED_CASES[name](posting(Behaviour(turns=[[call, "Found."]])))


async def test_settings_are_repeated() -> None:
    asked: dict[str, Any] = {
        "instructions": "Be brief.",
        "temperature": 0.5,
        "max_output_tokens": 99,
        "metadata": {"a": "b"},
        "reasoning": {"effort": "low"},
        "service_tier": "auto",
        "store": False,
        "user": "u1",
    }
    response = await ask(posting(), input="Hi", **asked)
    expected = {**asked, "reasoning": {"effort": "low", "summary": None}, "service_tier": "default"}
    assert {name: response[name] for name in asked} == expected


async def test_slug_items_keep_their_order() -> None:
    turn = [Opaque("acme:search", SLUG), "one", Opaque("acme:search", SLUG), FunctionCall("c", "f")]
    order = ["acme:search", "message", "acme:search", "function_call"]
    post = posting(Behaviour(turns=[turn]))
    body = await ask(post, input="Hi")
    events = await ask_stream(post, input="Hi")
    assert kinds(body) == kinds(events[-1]["response"]) == order
    assert body["output"][0] == SLUG


async def test_slug_items_and_tools_are_taken_back() -> None:
    tool = {"type": "acme:search", "depth": 2}
    response = await ask(posting(), input=[SLUG, {"role": "user", "content": "Hi"}], tools=[tool])
    assert response["tools"] == [tool]


async def test_failure_is_an_error_in_its_form() -> None:
    served = await posting(Behaviour(turns=[ErrorInfo("rate_limited", "slow")]))({"input": "Hi"})
    error = json.loads(served.body)
    check_error(error)
    assert (served.status, error["error"]["type"]) == (429, "rate_limit_exceeded")


async def test_failed_stream_ends_with_its_end_mark() -> None:
    from streamlib.testing import Turn

    turn = Turn("partly", error=ErrorInfo("server_error", "broken"))
    events = await ask_stream(posting(Behaviour(turns=[turn])), input="Hi")
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    check_error(events[-2])


# --- memory ---


async def test_response_that_is_not_kept_is_refused() -> None:
    served = await posting()({"input": "Hi", "previous_response_id": "resp_none"})
    error = json.loads(served.body)
    check_error(error)
    assert served.status == 400
    assert error["error"]["code"] == "previous_response_not_found"
    assert error["error"]["param"] == "previous_response_id"


async def test_response_is_not_kept_without_store() -> None:
    post = posting()
    first = await ask(post, input="Hi", store=False)
    second = await post({"input": "And?", "previous_response_id": first["id"]})
    assert first["store"] is False
    assert second.status == 400


async def test_interaction_continues_one_that_is_kept() -> None:
    post = posting(path="/v1beta/interactions")
    first = json.loads((await post({"model": "gemini-3", "input": "one two three"})).body)
    follow = {"model": "gemini-3", "input": "four", "previous_interaction_id": first["id"]}
    second = json.loads((await post(follow)).body)
    assert second["usage"]["total_input_tokens"] > first["usage"]["total_input_tokens"]


def test_memory_forgets_the_oldest_first() -> None:
    from streamlib.request.prompt import Prompt

    memory = StoredResponses()
    for number in range(LONGEST_MEMORY + 1):
        response = accumulate(echo_response(Prompt(f"turn {number}"), "responses"))
        if number == 0:
            oldest = response.response_id
        memory.keep("responses", Prompt(f"turn {number}"), response)
    newest = response.response_id
    following = Prompt("and?", extra={"previous_response_id": newest})
    assert len(memory.continued("responses", following).items) == 3
    with pytest.raises(StreamError, match="not found"):
        memory.continued("responses", Prompt("and?", extra={"previous_response_id": oldest}))


async def test_reasoning_is_part_of_a_kept_response() -> None:
    post = posting(Behaviour(turns=[[Reasoning("hm"), "Hi"], "So"]))
    first = await ask(post, input="Hi")
    second = await ask(post, input="And?", previous_response_id=first["id"])
    assert kinds(first) == ["reasoning", "message"]
    assert second["usage"]["input_tokens"] == 4
