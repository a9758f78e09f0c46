"""The strict provider over HTTP: its errors, its signatures, its scripted turns."""

from __future__ import annotations

from typing import Any, Final

import httpx
import msgspec
import pytest

from streamlib import (
    FunctionCall,
    Message,
    Origin,
    Prompt,
    Reasoning,
    StreamError,
    Text,
    ToolSpec,
    WireApi,
    user,
)
from streamlib.testing import Behaviour, loopback, running
from streamlib.testing.provider.strict import StrictProvider
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case
from tests.support.sdks import anthropic, openai

WEATHER: Final = ToolSpec(
    "weather",
    "Weather of a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
CALLING: Final = (
    Reasoning("Two places."),
    FunctionCall("", "weather", '{"place":"Riga"}'),
    FunctionCall("", "weather", '{"place":"Bonn"}'),
)
FINAL: Final = (Message("assistant", (Text("Sunny in both."),)),)


@each_case("wire_api", WIRE_APIS)
def test_request_without_json_is_refused_on_every_wire(wire_api: WireApi) -> None:
    refused = StrictProvider().check(wire_api, b"{", {}, "m")
    assert refused is not None
    assert refused.status == 400
    assert isinstance(msgspec.json.decode(refused.body), dict)


async def test_refusal_is_the_error_of_anthropics_sdk() -> None:
    async with (
        running(Behaviour(strict=True)) as url,
        anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client,
    ):
        with pytest.raises(anthropic.BadRequestError, match="max_tokens: Input should be"):
            await client.messages.create(
                model="claude-opus-5",
                max_tokens=-1,
                messages=[{"role": "user", "content": "hi"}],
            )


async def test_refusal_is_the_error_of_openais_sdk() -> None:
    async with (
        running(Behaviour(strict=True)) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        with pytest.raises(openai.BadRequestError) as raised:
            await client.responses.create(model="gpt-5.5", input="hi", temperature=0.1)
    assert (raised.value.code, raised.value.param) == ("unsupported_parameter", "temperature")


async def test_turns_are_sent_in_order() -> None:
    async with loopback(strict=True, turns=(CALLING, FINAL)) as client:
        prompt = Prompt(input="weather?", tools=[WEATHER], max_output_tokens=99)
        first = await client.respond(prompt, model="loopback:echo")
        assert [type(item) for item in first.items] == [Reasoning, FunctionCall, FunctionCall]
        assert len({call.call_id for call in first.calls}) == 2
        outputs = [call.output("sunny") for call in first.calls]
        items = (*prompt.items, *first.items, *outputs)
        after = msgspec.structs.replace(prompt, input=items)
        assert (await client.respond(after, model="loopback:echo")).text == "Sunny in both."


async def test_changed_reasoning_is_refused() -> None:
    async with loopback(strict=True) as client:
        prompt = Prompt(input="weather?", tools=[WEATHER], reasoning="low", max_output_tokens=4000)
        response = await client.respond(prompt, model="loopback:echo")
        changed: list[Any] = []
        for item in response.items:
            if isinstance(item, Reasoning):
                changed.append(msgspec.structs.replace(item, content="Something else."))
            else:
                changed.append(item)
        outputs = [call.output("sunny") for call in response.calls]
        after = msgspec.structs.replace(prompt, input=(*prompt.items, *changed, *outputs))
        with pytest.raises(StreamError, match="Invalid `signature` in `thinking` block"):
            await client.respond(after, model="loopback:echo")


@pytest.mark.parametrize("wire_api", ["interactions", "responses"])
@pytest.mark.parametrize("thought", [Reasoning("Hm. So."), Reasoning(summary=("Hm.", " So."))])
async def test_summary_is_sent_once(wire_api: WireApi, thought: Reasoning) -> None:
    async with loopback(wire_api, strict=True, turns=((thought, *FINAL),)) as client:
        prompt = Prompt("Why?", reasoning="low")
        response = await client.respond(prompt, model="loopback:echo")
    assert response.reasoning == "Hm. So."
    [item] = [item for item in response.items if isinstance(item, Reasoning)]
    assert item.summary == (thought.summary or ("Hm. So.",))


@pytest.mark.parametrize(
    ("model", "signed"), [("gpt-5.5", []), ("anthropic/claude-sonnet-4.5", [True])]
)
async def test_reasoning_of_chat_is_signed_for_claude(model: str, signed: list[bool]) -> None:
    async with loopback("chat", strict=True, turns=((Reasoning("Hm."), *FINAL),)) as client:
        response = await client.respond("Why?", model=f"loopback:{model}")
    thoughts = [item for item in response.items if isinstance(item, Reasoning)]
    assert [thought.signature is not None for thought in thoughts] == signed


async def test_signature_of_another_wire_is_refused() -> None:
    reasoning = Reasoning("Hm.", signature="EqQB", origin=Origin("messages"), response_id="r")
    final = Message("assistant", (Text("So."),), origin=Origin("messages"), response_id="r")
    async with loopback(strict=True) as client:
        prompt = Prompt(input=[user("hi"), reasoning, final, user("and?")], max_output_tokens=99)
        with pytest.raises(StreamError, match="Invalid `signature`"):
            await client.respond(prompt, model="loopback:echo")


async def test_stored_response_can_be_named_by_its_id() -> None:
    async with (
        running(Behaviour(strict=True, turns=(CALLING, FINAL))) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        first = await client.responses.create(model="gpt-5.5", input="weather?")
        outputs: list[Any] = []
        for item in first.output:
            if item.type == "function_call":
                output = {"type": "function_call_output", "call_id": item.call_id, "output": "18"}
                outputs.append(output)
        second = await client.responses.create(
            model="gpt-5.5", previous_response_id=first.id, input=outputs
        )
        assert second.output_text == "Sunny in both."
        with pytest.raises(openai.BadRequestError, match="No tool output found"):
            await client.responses.create(
                model="gpt-5.5", previous_response_id=first.id, input=outputs[:1]
            )


async def test_response_that_is_not_stored_is_unknown() -> None:
    async with (
        running(Behaviour(strict=True)) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        first = await client.responses.create(model="gpt-5.5", input="hi", store=False)
        with pytest.raises(openai.BadRequestError) as raised:
            await client.responses.create(
                model="gpt-5.5", previous_response_id=first.id, input="and?"
            )
    assert raised.value.code == "previous_response_not_found"


async def test_openais_sdk_may_replay_what_it_received() -> None:
    items: list[Any] = [{"role": "user", "content": "weather?"}]
    options: Any = {
        "model": "gpt-5.5",
        "store": False,
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
    }
    async with (
        running(Behaviour(strict=True, turns=(CALLING, FINAL))) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        first = await client.responses.create(input=items, **options)
        items += first.output
        for item in first.output:
            if item.type == "function_call":
                output = {"type": "function_call_output", "call_id": item.call_id, "output": "18"}
                items.append(output)
        second = await client.responses.create(input=items, **options)
    assert [item.type for item in first.output] == ["reasoning", "function_call", "function_call"]
    assert [str(item.id)[:3] for item in first.output] == ["rs_", "fc_", "fc_"]
    assert second.output_text == "Sunny in both."


async def test_openais_chat_message_may_be_replayed() -> None:
    messages: list[Any] = [{"role": "user", "content": "weather?"}]
    async with (
        running(Behaviour(strict=True, turns=(CALLING, FINAL))) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        first = await client.chat.completions.create(model="gpt-5.5", messages=messages)
        message = first.choices[0].message
        # Some clients send back every field of a message.
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or ():
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "18"})
        second = await client.chat.completions.create(model="gpt-5.5", messages=messages)
    assert len(messages) == 4
    assert second.choices[0].message.content == "Sunny in both."


async def test_anthropics_sdk_may_replay_what_it_received() -> None:
    messages: list[Any] = [{"role": "user", "content": "make 3 calls"}]
    options: Any = {
        "model": "claude-opus-5",
        "max_tokens": 4000,
        "thinking": {"type": "adaptive"},
        "tools": [{"name": "weather", "input_schema": WEATHER.schema}],
    }
    async with (
        running(Behaviour(strict=True)) as url,
        anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client,
    ):
        first = await client.messages.create(messages=messages, **options)
        results = []
        for block in first.content:
            if block.type == "tool_use":
                result = {"type": "tool_result", "tool_use_id": block.id, "content": "18"}
                results.append(result)
        messages += [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": results},
        ]
        second = await client.messages.create(messages=messages, **options)
    assert len(results) == 3
    assert first.content[0].type == "thinking"
    assert second.content[-1].type == "text"


async def test_cached_content_is_made_named_and_deleted() -> None:
    model = "gemini-3.5-flash"
    hello = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    async with (
        running(Behaviour(strict=True)) as url,
        httpx.AsyncClient(base_url=f"{url}/v1beta") as client,
    ):
        made = (
            await client.post("/cachedContents", json={**hello, "model": f"models/{model}"})
        ).json()
        name = made["name"]
        bad = await client.post("/cachedContents", json=hello)
        listed = (await client.get("/cachedContents")).json()
        found = await client.get(f"/{name}")
        statuses: list[int] = []
        for named in (model, "gemini-2.5-flash"):
            body = {**hello, "cachedContent": name}
            answer = await client.post(f"/models/{named}:generateContent", json=body)
            statuses.append(answer.status_code)
        await client.delete(f"/{name}")
        gone = await client.post(f"/models/{model}:generateContent", json=body)
        empty = (await client.get("/cachedContents")).json()
    assert (bad.status_code, found.json(), listed) == (400, made, {"cachedContents": [made]})
    assert (statuses, empty) == ([200, 400], {})
    assert (gone.status_code, gone.json()["error"]["status"]) == (403, "PERMISSION_DENIED")


async def test_cached_content_needs_the_strict_provider() -> None:
    async with running() as url, httpx.AsyncClient(base_url=url) as client:
        response = await client.post("/v1beta/cachedContents", json={"model": "models/m"})
    assert response.status_code == 404
