"""Items of several agents in requests, in the streams of every wire, and on pages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    History,
    Message,
    Prompt,
    Request,
    Response,
    Text,
    accumulate,
    build,
    encode_all,
    encode_body,
    encoder,
)
from streamlib.client.background import stored_url
from streamlib.client.setup import with_headers
from streamlib.wires.decoders import parse_request
from streamlib_parsers import ResponseEvent, parse_body, parser
from streamlib_parsers.items import Origin, Reasoning, ShellCall, ShellCallOutput, WireApi
from tests.support.responses_frames import (
    Json,
    call,
    completed,
    created,
    done,
    events_of,
    hosted,
    message,
    reasoning,
)

BEE = {"agent_name": "/root/bee"}

TEAM = [
    reasoning("I plan.", item_id="it_0"),
    message("I ask.", item_id="it_1", phase="commentary", agent={"agent_name": "/root"}),
    hosted("agent_message", item_id="it_2", author="/root", recipient="/root/bee", agent=BEE),
    reasoning("scratch", item_id="it_3", agent=BEE),
    message("draft", item_id="it_4", agent=BEE),
    call('{"a":1}', item_id="it_5", call_id="call_bee", agent=BEE),
    message("Hello", item_id="it_6"),
]
OTHER_WIRES: tuple[WireApi, ...] = (
    "messages",
    "chat",
    "gemini",
    "interactions",
    "converse",
    "ollama",
    "cohere",
)


def team(**options: Any) -> list[ResponseEvent]:
    frames = [done(item, index) for index, item in enumerate(TEAM)]
    return events_of(created(), *frames, completed(), **options)


def request_of(history: History, wire: WireApi = "responses", **options: Any) -> Request:
    provider = {"responses": "openai", "chat": "openai", "messages": "anthropic"}[wire]
    model = {"messages": "claude-opus-4-5"}.get(wire, "gpt-5.4")
    return build(Prompt(history, **options), model, provider=provider, wire_api=wire)


def history_of(events: list[ResponseEvent]) -> History:
    response = accumulate(events)
    history = History().user("Hi").add(response)
    history += [call.output("done") for call in response.calls]
    return history


def test_history_keeps_agents_through_a_dump() -> None:
    history = history_of(team())
    loaded = History.loads(history.dumps())
    assert [item.agent for item in loaded] == [item.agent for item in history]
    assert [item.agent for item in loaded].count("/root/bee") == 3


def test_request_to_its_own_origin_has_the_agents() -> None:
    request = request_of(history_of(team()))
    body = msgspec.json.decode(request.body)["input"]
    agents = [item.get("agent") for item in body]
    assert agents[-6:] == [{"agent_name": "/root"}, BEE, BEE, BEE, None, None]
    assert not [change for change in request.report if "bee" in change.reason]


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_request_elsewhere_reports_each_agent(wire: WireApi) -> None:
    history = history_of(team())
    request = request_of(history, wire)
    assert b"agent_name" not in request.body
    named = [change for change in request.report if "/root/bee" in change.reason]
    assert {change.action for change in named} == {"downgraded"}
    assert {change.path for change in named} == {"/input/4", "/input/5", "/input/6"}


def test_agent_of_an_item_without_origin_is_reported_elsewhere() -> None:
    item = Message("assistant", [Text("draft")], agent="/root/bee")
    history = History([item]).user("Go on")
    assert b"/root/bee" in request_of(history).body
    request = request_of(history, "chat")
    assert [change.path for change in request.report] == ["/input/0"]
    assert b"draft" in request.body


def test_agent_of_the_callers_items_is_sent() -> None:
    shell = ShellCall("c", {"commands": ["ls"]}, agent="/root/bee")
    output = ShellCallOutput("c", [], agent="/root/bee")
    body = msgspec.json.decode(request_of(History([shell, output])).body)
    assert [item["agent"] for item in body["input"]] == [BEE, BEE]


@pytest.mark.parametrize("kind", ["message", "function_call", "function_call_output"])
def test_decoded_request_has_the_agents(kind: str) -> None:
    items: dict[str, Json] = {
        "message": message("x", agent=BEE),
        "function_call": call("{}", agent=BEE),
        "function_call_output": {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": "x",
            "agent": BEE | {"depth": 1},
        },
    }
    body = msgspec.json.encode({"model": "m", "input": [items[kind]]})
    (item,) = parse_request("responses", body).items
    assert item.agent == "/root/bee"
    assert (item.native or {}).get("agent") == ({"depth": 1} if "output" in kind else None)


# --- betas ---


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ({}, "responses_multi_agent=v1"),
        ({"OpenAI-Beta": "x=1"}, "x=1,responses_multi_agent=v1"),
        ({"openai-beta": "responses_multi_agent=v1"}, "responses_multi_agent=v1"),
    ],
)
def test_beta_of_agents_is_derived_in_one_header(headers: dict[str, str], sent: str) -> None:
    extra = {"multi_agent": {"enabled": True}}
    request = request_of(History().user("Hi"), extra=extra, headers=headers)
    found = {name: value for name, value in request.headers.items() if "beta" in name.lower()}
    assert found == {"openai-beta": sent}
    # as the official SDK, also for what is stored
    assert request.url == "https://api.openai.com/v1/responses?beta=true"
    assert stored_url(request.url, "r", "cancel").endswith("/responses/r/cancel?beta=true")
    joined = with_headers(request, {"openai-beta": "y=2"})
    assert isinstance(joined, Request)
    assert joined.headers["openai-beta"] == f"{sent},y=2"


@pytest.mark.parametrize("extra", [{}, {"multi_agent": {"enabled": False}}, {"multi_agent": None}])
def test_beta_is_left_out_without_agents(extra: Json) -> None:
    request = request_of(History().user("Hi"), extra=extra)
    assert "openai-beta" not in request.headers
    assert "?" not in request.url


def test_azure_gets_no_beta_of_agents() -> None:
    prompt = Prompt("Hi", extra={"multi_agent": {"enabled": True}})
    base_url = "https://x.openai.azure.com/openai/v1"
    request = build(prompt, "m", provider="azure", wire_api="responses", base_url=base_url)
    assert "openai-beta" not in request.headers
    assert "?" not in request.url


# --- encoders ---


def test_responses_encoder_writes_agents_back() -> None:
    events = team()
    again = parser("responses")
    read = again.feed(encode_all("responses", events)) + again.close()
    assert [item.agent for item in accumulate(read).items] == [
        item.agent for item in accumulate(events).items
    ]
    deltas = {event.agent for event in read if type(event).__name__.endswith("Delta")}
    assert deltas == {None, "/root/bee"}
    frames = [
        msgspec.json.decode(line[6:])
        for line in encode_all("responses", events).splitlines()
        if line.startswith(b"data: {")
    ]
    drafts = [frame for frame in frames if frame.get("item_id") == "it_4"]
    assert drafts
    assert all(frame["agent"] == BEE for frame in drafts)


def test_responses_body_has_the_agents_of_its_stream() -> None:
    response = accumulate(team())
    body = encode_body("responses", response)
    read = accumulate(parse_body("responses", body))
    assert [item.agent for item in read.items] == [item.agent for item in response.items]


@pytest.mark.parametrize("wire", OTHER_WIRES)
def test_other_encoders_write_the_roots_text_and_all_calls(wire: WireApi) -> None:
    encode = encoder(wire)
    out = b"".join([encode.feed(event) for event in team()]) + encode.close()
    again = parser(wire)
    read = accumulate(again.feed(out) + again.close())
    assert read.text == "I ask.Hello"
    assert "scratch" not in read.reasoning
    assert [call.name for call in read.calls] == ["f"]
    assert "/agent" in {change.path for change in encode.report}
    body_report: list[Any] = []
    body = accumulate(parse_body(wire, encode_body(wire, accumulate(team()), report=body_report)))
    # A body of Cohere has what was said before a call elsewhere than the text.
    assert sorted(body.text) == sorted(read.text)
    assert len(body.calls) == 1
    assert "/agent" in {change.path for change in body_report}


def frames_of(protocol: str, events: list[ResponseEvent]) -> list[Json]:
    lines = encode_all(protocol, events).splitlines()
    return [msgspec.json.decode(line[6:]) for line in lines if line.startswith(b"data: {")]


def test_vercel_names_the_agent_in_metadata() -> None:
    frames = frames_of("vercel", team())
    named = {"streamlib": {"agent": "/root/bee"}}
    assert [frame["type"] for frame in frames if frame.get("providerMetadata") == named] == [
        "reasoning-start",
        "text-start",
        "tool-input-available",
    ]
    body = msgspec.json.decode(encode_body("vercel", accumulate(team())))
    texts = {part["text"]: part for part in body["parts"] if part["type"] == "text"}
    assert texts["draft"]["providerMetadata"] == named
    assert "providerMetadata" not in texts["Hello"]


def test_agui_announces_the_agent_and_attributes_its_items() -> None:
    frames = frames_of("agui", team())
    assert [frame["type"] for frame in frames if "subagentRunId" in frame] == [
        "SUBAGENT_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "TEXT_MESSAGE_START",
        "TOOL_CALL_START",
        "SUBAGENT_FINISHED",
    ]
    started = next(frame for frame in frames if frame["type"] == "SUBAGENT_STARTED")
    assert (started["subagentRunId"], started["name"]) == ("/root/bee", "bee")
    assert [frame["type"] for frame in frames][-2:] == ["SUBAGENT_FINISHED", "RUN_FINISHED"]
    messages = msgspec.json.decode(encode_body("agui", accumulate(team())))
    agents = {each["content"]: each.get("subagentRunId") for each in messages if "content" in each}
    assert (agents["draft"], agents["Hello"]) == ("/root/bee", None)


def test_agui_call_belongs_to_the_message_of_its_agent() -> None:
    items = [message("draft", item_id="it_0", agent=BEE), message("Hello", item_id="it_1")]
    items.append(call("{}", item_id="it_2", agent=BEE))
    frames = [done(item, index) for index, item in enumerate(items)]
    written = frames_of("agui", events_of(created(), *frames, completed()))
    start = next(frame for frame in written if frame["type"] == "TOOL_CALL_START")
    text = next(frame for frame in written if frame.get("delta") == "draft")
    assert start["parentMessageId"] == text["messageId"]


@pytest.mark.parametrize("public", [False, True])
def test_json_lines_have_the_agents(public: bool) -> None:
    lines = encode_all("jsonl", team(), public=public).splitlines()
    agents = [msgspec.json.decode(line).get("agent") for line in lines]
    assert "/root/bee" in agents


def test_items_of_agents_are_equal_only_with_the_same_agent() -> None:
    item = Reasoning("x", origin=Origin("responses"), agent="/root/bee")
    assert item != Reasoning("x", origin=Origin("responses"))
    assert Response(items=(item,)).reasoning == ""
