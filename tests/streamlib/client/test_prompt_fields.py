"""What `respond` and `text` add to a prompt: `instructions`, `temperature`, `tools`."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from streamlib import FunctionCall, Prompt, RetryPolicy, ToolSpec, build, user
from streamlib.client import ClientOptions
from streamlib.testing import MODEL, scripted
from tests.support.cases import each_case
from tests.support.clients import MemoryTransport, make_client
from tests.support.response_bodies import MESSAGE
from tests.support.sync_clients import make_sync_client

URL: Final = "http://memory.example"


def weather(city: str) -> str:
    """The weather in a city."""
    return city


ADDED: Final[dict[str, Any]] = {
    "instructions": "Answer in French.",
    "temperature": 0.0,
    "tools": [weather],
}


def is_whole(body: dict[str, Any]) -> bool:
    """Whether a request for Messages has all that was added."""
    has_text = "Answer in French." in json.dumps(body["system"])
    return has_text and body["temperature"] == 0.0 and body["tools"][0]["name"] == "weather"


@each_case("method", ["respond", "text"])
@each_case("prompt", ["Hi.", [user("Hi.")], Prompt("Hi."), Prompt("Hi.", tools=[])])
async def test_call_adds_what_the_prompt_lacks(method: str, prompt: Any) -> None:
    transport = MemoryTransport([MESSAGE])
    async with make_client(URL, transport) as client:
        await getattr(client, method)(prompt, "faulty:m", **ADDED)
    assert is_whole(json.loads(transport.sent[0][3]))
    if isinstance(prompt, Prompt):
        assert prompt.instructions is None


@pytest.mark.parametrize("method", ["respond", "text"])
@pytest.mark.parametrize("prompt", ["Hi.", Prompt("Hi.", seed=1)])
def test_call_of_a_sync_client_adds_the_same(method: str, prompt: Any) -> None:
    transport = MemoryTransport([MESSAGE])
    with make_sync_client(URL, transport) as client:
        getattr(client, method)(prompt, "faulty:m", **ADDED)
    assert is_whole(json.loads(transport.sent[0][3]))


async def test_call_adds_to_each_of_several_models() -> None:
    transport = MemoryTransport([MESSAGE])
    async with make_client(URL, transport) as client:
        await client.respond("Hi.", ["faulty:a", "faulty:b"], **ADDED)
    assert is_whole(json.loads(transport.sent[0][3]))


@pytest.mark.parametrize("name", list(ADDED))
@pytest.mark.parametrize("method", ["respond", "text"])
async def test_value_that_the_prompt_has_is_refused(method: str, name: str) -> None:
    """Neither of the two wins in silence, also where they are equal."""
    prompt = Prompt("Hi.", **ADDED)
    async with make_client(URL, MemoryTransport()) as client:
        with pytest.raises(ValueError, match=f"the prompt has {name} already"):
            await getattr(client, method)(prompt, "faulty:m", **{name: ADDED[name]})
    with (
        make_sync_client(URL, MemoryTransport()) as blocking,
        pytest.raises(ValueError, match=f"the prompt has {name} already"),
    ):
        getattr(blocking, method)(prompt, "faulty:m", **{name: ADDED[name]})


async def test_values_of_a_prompt_stay_without_additions() -> None:
    transport = MemoryTransport([MESSAGE])
    prompt = Prompt("Hi.", **ADDED)
    async with make_client(URL, transport) as client:
        await client.respond(prompt, "faulty:m", instructions=None, temperature=None, tools=())
    assert is_whole(json.loads(transport.sent[0][3]))


async def test_built_request_takes_no_additions() -> None:
    request = build("Hi.", "anthropic:claude-opus-5")
    async with make_client(URL, MemoryTransport()) as client:
        with pytest.raises(ValueError, match="set instructions, temperature"):
            await client.respond(request, instructions="Be brief.", temperature=1.0)


@each_case("prompt", ["Hi.", Prompt("Hi.")])
@each_case(
    "added", [{"instructions": 5}, {"temperature": "hot"}, {"tools": weather}, {"tools": ["x"]}]
)
async def test_wrong_kind_is_refused_as_in_a_prompt(prompt: Any, added: dict[str, Any]) -> None:
    async with make_client(URL, MemoryTransport()) as client:
        with pytest.raises(TypeError):
            await client.respond(prompt, "faulty:m", **added)


async def test_added_tool_is_called() -> None:
    async with scripted([FunctionCall("", "weather", '{"city": "Oslo"}')]) as client:
        response = await client.respond("Hi.", MODEL, tools=[ToolSpec.of(weather)])
    assert response.calls[0].name == "weather"


async def test_client_options_are_for_callers_who_pass_them() -> None:
    options: ClientOptions = {"retry": RetryPolicy(retries=0), "connections": 2}
    async with make_client(URL, MemoryTransport([MESSAGE]), **options) as client:
        assert await client.text("Hi.", "faulty:m") != ""
