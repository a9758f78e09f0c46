"""What our builders make of any history, the strict provider takes: every wire to every wire.

A conversation is begun at the strict provider of one wire, which signs it, and continued on each
wire: finished, with calls unanswered, cut in a call, ended by reasoning, begun by the assistant.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamlib import (
    CacheOptions,
    FunctionCall,
    Image,
    Message,
    Origin,
    Prompt,
    Reasoning,
    Request,
    Response,
    ResponseItem,
    StreamError,
    Text,
    ToolSpec,
    accumulate,
    build,
    parser,
    user,
)
from streamlib.testing import Turn
from streamlib.testing.provider.responses import scripted_response
from streamlib.testing.provider.strict import Ledger, StrictProvider, StrictRequest
from streamlib.testing.provider.strict.invoke import CLAUDE_RULES
from streamlib.testing.provider.strict.provider import RULES
from streamlib.testing.provider.strict.rules import check
from streamlib.wires.encoders import encode_all
from streamlib.wires.routes import route
from streamlib_parsers.items import WireApi
from tests.streamlib.wires.test_cross_wire import histories
from tests.support.thorough import some

MODELS: Final[dict[WireApi, tuple[str, ...]]] = {
    "messages": (
        "anthropic:claude-opus-5",
        "anthropic:claude-sonnet-4-5",
        "anthropic:claude-opus-4-6",
        "anthropic:claude-opus-5-5",
    ),
    "responses": ("openai:gpt-5.5", "openai:gpt-4o"),
    "chat": ("openai:gpt-5.5", "openai:gpt-4o"),
    "gemini": ("google:gemini-3.5-flash", "google:gemini-2.5-flash", "google:gemini-2.5-pro"),
    "interactions": ("google:gemini-3.5-flash", "google:gemini-2.5-flash"),
    "converse": (
        "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
        "bedrock:anthropic.claude-opus-4-8",
        "bedrock:amazon.nova-pro-v1:0",
    ),
    "invoke": (
        "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
        "bedrock:anthropic.claude-opus-4-8",
    ),
    "ollama": ("ollama:qwen3:4b",),
    "cohere": ("cohere:command-a-reasoning-08-2025", "cohere:command-a-03-2025"),
}
"""Wire -> models that have rules of their own; the first begins the conversations."""

PLACE: Final = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
}
TOOLS: Final = (
    ToolSpec("weather", "Weather of a place.", PLACE),
    ToolSpec("my camera!", "", PLACE),
    ToolSpec("strict", "Any.", {**PLACE, "additionalProperties": False}, strict=True),
)

PNG: Final = Image("iVBORw0KGgo=", media_type="image/png")
CALLING: Final = (
    Reasoning("Three calls."),
    Message("assistant", (Text("I look."),)),
    FunctionCall("", "weather", '{"place":"Riga"}'),
    FunctionCall("", "my_camera_", '{"place":"Köln","zoom":1.0}'),
    FunctionCall("", "weather", '{"place":"Oslo"}'),
)
FINAL: Final = (Reasoning("Now I know."), Message("assistant", (Text("Sunny."),)))
SCHEMA: Final = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "string"}},
    "required": ["a"],
}
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "usual": {},
    "reasoning off": {"reasoning": "off"},
    "no reasoning": {"reasoning": None},
    "sampling, forced": {
        "reasoning": "high",
        "temperature": 0.3,
        "top_p": 0.5,
        "top_k": 4,
        "tool_choice": "required",
    },
    "named, cached, schema": {
        "tool_choice": "weather",
        "stop": ["a", "b", " ", "d", "e", "f"],
        "cache": CacheOptions(),
        "output_schema": SCHEMA,
    },
    "no tools, small": {"tools": (), "max_output_tokens": 300, "reasoning": "max"},
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def request_of(
    wire_api: WireApi, model: str, items: list[ResponseItem], settings: dict[str, Any]
) -> Request:
    """A request of a history."""
    usual: dict[str, Any] = {
        "instructions": "Be brief.",
        "tools": TOOLS,
        "max_output_tokens": 4000,
        "reasoning": "low",
    }
    prompt = Prompt(items, **{**usual, **settings})
    return build(prompt, model, wire_api=wire_api, base_url="http://127.0.0.1:8800/v1beta")


def refusal(provider: StrictProvider, request: Request) -> str | None:
    """Why the provider refuses a request; None where it takes it."""
    matched = route(served_path(request))
    model = matched.model if matched is not None else None
    refused = provider.check(request.wire_api, request.body, request.headers, model)
    return refused.body.decode() if refused is not None else None


def served_path(request: Request) -> str:
    """The path without the beginning of the base URL, where that is not served."""
    path = urlsplit(request.url).path
    return re.sub(r"^/v1beta/(?!models)", "/", unquote(path))


def response(provider: StrictProvider, request: Request, turn: Any) -> Response:
    """What the provider answers, as a client reads it."""
    wire_api: Any = request.wire_api
    events = scripted_response(Turn(turn), Prompt("x", model="m"), wire_api)
    stream = encode_all(wire_api, provider.signed(wire_api, events, request.body))
    parse = parser(wire_api, origin=Origin(wire_api))
    return accumulate([*parse.feed(stream), *parse.close()])


def conversations(provider: StrictProvider, wire_api: WireApi) -> dict[str, list[ResponseItem]]:
    """Histories of one conversation, as far as each of them got."""
    model = MODELS[wire_api][0]
    begun: list[ResponseItem] = [user("What is this?", PNG)]
    first = response(provider, request_of(wire_api, model, begun, {}), CALLING)
    calls: list[Any] = list(first.calls)
    assert len(calls) == 3
    outputs = [
        calls[0].output([Text("3 degrees"), PNG]),
        calls[1].output("no camera", is_error=True),
        calls[2].output(""),
    ]
    asked = [*begun, *first.items]
    answered = [*asked, *outputs]
    second = response(provider, request_of(wire_api, model, answered, {}), FINAL)
    last_call = calls[-1]
    cut_call = FunctionCall(
        "call_cut",
        "weather",
        '{"pla',
        status="incomplete",
        origin=last_call.origin,
        response_id=last_call.response_id,
    )
    cut = [*asked[:-1], cut_call]
    finished = [*answered, *second.items]
    return {
        "answered": answered,
        "finished": finished,
        "asked again": [*finished, user("And tomorrow?")],
        "unanswered": asked,
        "cut": cut,
        "cut, asked again": [*cut, user("Go on.")],
        "only reasoning": [user("hi"), first.items[0], user("And?")],
        "assistant first": [*second.items, user("And?")],
        "long id": [*begun, *long_id_call(wire_api)],
    }


def long_id_call(wire_api: WireApi) -> list[ResponseItem]:
    """A call with an id that only some wires take."""
    call_id = "call:1.2|" + "x" * 60
    call = FunctionCall(call_id, "weather", "{}", origin=Origin(wire_api), response_id="r1")
    return [call, call.output("18")]


@pytest.mark.parametrize("made", MODELS)
def test_what_is_built_is_accepted_on_every_wire(made: WireApi) -> None:
    """A third of the histories with each settings, another one from each wire; the thorough run
    tries all."""
    provider = StrictProvider()
    histories = conversations(provider, made)
    refused: list[str] = []
    for wire_api, models in MODELS.items():
        cases = list(itertools.product(models, histories, SETTINGS))
        for model, name, settings in some(cases, 3, f"{made} {wire_api}"):
            request = request_of(wire_api, model, histories[name], SETTINGS[settings])
            reason = refusal(provider, request)
            if reason is not None:
                refused.append(f"{wire_api} {model}, {name}, {settings}: {reason}")
    assert refused == []


@pytest.mark.parametrize("wire_api", ["messages", "responses", "gemini", "converse", "invoke"])
def test_own_signatures_are_sent_back(wire_api: WireApi) -> None:
    """Else the provider would find nothing to refuse."""
    provider = StrictProvider()
    history = conversations(provider, wire_api)["answered"]
    request = request_of(wire_api, MODELS[wire_api][0], history, {})
    assert re.search(rb'"(signature|thoughtSignature|encrypted_content)":"[^"]{40}', request.body)
    assert refusal(provider, request) is None
    assert refusal(StrictProvider("another account"), request) is not None


UNSIGNED_RULES: Final = {
    "check_signatures",
    "check_latest_blocks",
    "check_reasoning",
    "check_encrypted_content",
}
"""Rules that know what was issued: generated histories have signatures of nobody."""


@pytest.mark.parametrize("wire_api", MODELS)
@hypothesis_settings(max_examples=30)
@given(st.data())
def test_no_history_is_refused(wire_api: WireApi, data: st.DataObject) -> None:
    """Any items in any order, with any settings."""
    made = data.draw(st.sampled_from([None, Origin(wire_api)]))
    items = data.draw(histories(made, wire_api))
    settings = data.draw(st.sampled_from(sorted(SETTINGS)))
    model = data.draw(st.sampled_from(MODELS[wire_api]))
    try:
        request = request_of(wire_api, model, items, SETTINGS[settings])
    except StreamError as error:
        if error.code == "empty_input":
            return
        raise
    body = msgspec.json.decode(request.body)
    headers = {name.lower(): value for name, value in request.headers.items()}
    name = request.model or str(body.get("model"))
    rules = [rule for rule in RULES[wire_api] if rule.__name__ not in UNSIGNED_RULES]
    strict_request = StrictRequest(wire_api, body, headers, name, Ledger())
    if wire_api == "invoke":
        rules = [rule for rule in CLAUDE_RULES if rule.__name__ not in UNSIGNED_RULES]
    check(rules, strict_request)
