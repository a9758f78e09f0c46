"""Nothing of a request is lost without a word: stored calls, names of reasoning, empty turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import (
    CacheOptions,
    Message,
    Origin,
    Prompt,
    ReasoningOptions,
    Request,
    StreamError,
    build,
    parse_request,
    user,
)
from streamlib.tools import run_calls
from streamlib_parsers import FunctionCall, FunctionCallOutput, Response
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.dialects.coercion import unwrapped
from streamlib_parsers.protocol import parser
from tests.support.cases import each_case

TARGETS: dict[str, str] = {
    "messages": "anthropic:claude-opus-4-5",
    "responses": "openai:gpt-5",
    "chat": "groq:llama",
    "gemini": "google:gemini-2.5-pro",
    "interactions": "google:gemini-2.5-pro",
    "converse": "bedrock:us.anthropic.claude-opus-4",
    "invoke": "bedrock:us.anthropic.claude-opus-4",
    "ollama": "ollama:llama",
    "cohere": "cohere:command-a",
}


def built(wire: Any, prompt: Prompt, model: str = "") -> Request:
    return build(prompt, model or TARGETS[wire], wire_api=wire, base_url="http://127.0.0.1")


def body(request: Request) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(request.body)
    return fields


# --- requests that continue what the provider stores ---

OUTPUTS: tuple[dict[str, Any], ...] = (
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "shell_call_output", "call_id": "c_1", "output": []},
    {"type": "apply_patch_call_output", "call_id": "c_1", "status": "completed", "output": "ok"},
    {
        "type": "computer_call_output",
        "call_id": "c_1",
        "output": {
            "type": "computer_screenshot",
            "image_url": "data:image/png;base64,iVBORw0KGgo=",
        },
    },
)


@each_case("state", ["previous_response_id", "conversation"])
@each_case("output", OUTPUTS, ids=lambda output: str(output["type"]))
def test_outputs_of_stored_calls_are_sent(state: str, output: dict[str, Any]) -> None:
    request = {"model": "gpt-5", state: "id_1", "input": [output]}
    again = built("responses", parse_request("responses", json.dumps(request).encode()))
    assert body(again)["input"] == [output]
    assert again.report == []


def test_an_input_of_which_nothing_is_sent_is_left_out() -> None:
    prompt = Prompt([Message("assistant")], extra={"previous_response_id": "resp_1"})
    assert "input" not in body(built("responses", prompt))


def test_results_beside_cached_content_keep_their_names() -> None:
    result = {"functionResponse": {"id": "1", "name": "f", "response": {"output": "ok"}}}
    turn = {"role": "user", "parts": [result]}
    request = {"cachedContent": "cachedContents/1", "contents": [turn]}
    again = built("gemini", parse_request("gemini", json.dumps(request).encode()))
    assert body(again)["contents"] == [turn]


def test_a_result_without_a_name_is_text_beside_cached_content() -> None:
    prompt = Prompt([FunctionCallOutput("c", "ok")], extra={"cachedContent": "cachedContents/1"})
    request = built("gemini", prompt)
    assert "ok" in body(request)["contents"][0]["parts"][-1]["text"]
    assert [change.path for change in request.report] == ["/input/0"]


# --- the name of reasoning ---


@each_case("key", ["reasoning", "reasoning_content", "reasoning_text"])
@each_case("provider", ["custom", "llamacpp", "sglang"])
def test_reasoning_goes_back_by_the_name_it_came_by(provider: str, key: str) -> None:
    request = built("chat", Prompt("x"), f"{provider}:m")
    history = [user("x"), *accumulate(_events(key, request.origin)).items, user("y")]
    assistant = body(built("chat", Prompt(history), f"{provider}:m"))["messages"][1]
    assert assistant.get(key) == "Hm."
    others = {"reasoning", "reasoning_content", "reasoning_text"} - {key}
    assert not others & assistant.keys()


def _events(key: str, origin: Origin) -> list[Any]:
    read = parser("chat", origin=origin)
    events: list[Any] = []
    for delta in ({key: "Hm"}, {key: "."}, {"content": "Hi"}, {}):
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
        events += read.feed(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
    return events + list(read.close())


# --- empty turns ---


@each_case("wire", TARGETS)
def test_an_empty_turn_is_sent_or_reported(wire: str) -> None:
    request = built(wire, Prompt([user("a"), Message("assistant"), user("b")]))
    is_sent = [turn.get("role") for turn in body(request).get("messages", ())][1:2] == ["assistant"]
    assert is_sent or [change.path for change in request.report] == ["/input/1"]


@pytest.mark.parametrize(
    ("wire", "request_body"),
    [
        ("messages", {"max_tokens": 1, "messages": [{"role": "assistant", "content": []}]}),
        ("converse", {"messages": [{"role": "assistant", "content": []}]}),
        ("gemini", {"contents": [{"role": "model", "parts": []}]}),
        ("ollama", {"messages": [{"role": "assistant", "content": ""}]}),
    ],
)
def test_an_empty_turn_of_a_request_is_an_item(wire: Any, request_body: dict[str, Any]) -> None:
    prompt = parse_request(wire, json.dumps({"model": "m", **request_body}).encode())
    assert [item.role for item in prompt.items if isinstance(item, Message)] == ["assistant"]


def test_ollama_loads_a_model_without_messages() -> None:
    request = {"model": "m", "messages": [], "keep_alive": 0}
    again = body(built("ollama", parse_request("ollama", json.dumps(request).encode())))
    assert (again["messages"], again["keep_alive"]) == ([], 0)
    with pytest.raises(StreamError, match="nothing to send"):
        built("chat", Prompt())


def test_gemini_gets_an_empty_text_beside_instructions() -> None:
    request = {
        "systemInstruction": {"parts": [{"text": "Say hi."}]},
        "contents": [{"role": "user", "parts": [{"text": ""}]}],
    }
    again = body(built("gemini", parse_request("gemini", json.dumps(request).encode())))
    assert again["contents"] == request["contents"]
    written = Prompt([user("")], instructions="Say hi.")
    assert body(built("gemini", written))["contents"] == request["contents"]


# --- arguments, exceptions ---

SCHEMA = {"type": "object", "properties": {"k": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('{"arguments": {"k": 1.0}}', '{"k": 1.0}'),
        ('{"input": "{\\"k\\": 1}"}', '{"k": 1}'),
        ('{"arguments": {"other": 1}}', '{"arguments": {"other": 1}}'),
        ('{"parameters": "{\\"other\\": 1}"}', '{"parameters": "{\\"other\\": 1}"}'),
        ('{"arguments": {}}', '{"arguments": {}}'),
        ('{"input": {"k": 1}, "input": {"k": 2}}', '{"input": {"k": 1}, "input": {"k": 2}}'),
        (' {"input" : {"k" : 1.0} } ', '{"k" : 1.0}'),
        ('{"input": {"k": "\\ud800"}}', '{"k": "\\ud800"}'),
    ],
)
def test_wrapper_is_removed_around_parameters_alone(written: str, expected: str) -> None:
    assert unwrapped(written, SCHEMA) == expected


@pytest.mark.anyio
async def test_exception_of_a_tool_is_masked() -> None:
    async def look_up() -> str:
        """Looks up."""
        raise RuntimeError("401 for key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")

    call = FunctionCall("c", "look_up", "{}")
    (output,) = await run_calls(Response(items=(call,)), [look_up])
    assert isinstance(output, FunctionCallOutput)
    assert "abcdefghij" not in str(output.output)
    assert output.is_error


# --- unknown keys, zeros and empty values inside what a typed field holds ---

USER: dict[str, Any] = {"role": "user", "content": "Hi"}
CALL: dict[str, Any] = {"id": "c", "type": "function"}
FUNCTION: dict[str, Any] = {"name": "f", "arguments": "{}"}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "c", "content": "ok"}
ASKED: dict[str, Any] = {"role": "user", "content": [{"text": "Hi"}]}
TOOL: dict[str, Any] = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
POINT: dict[str, Any] = {"cachePoint": {"type": "default", "beam": 0}}
THOUGHT: dict[str, Any] = {"text": "Hm.", "signature": "s", "beam": 0}
DOCUMENT: dict[str, Any] = {"type": "document", "source": {"type": "text", "data": "x"}}


def chat_calls(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "messages": [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, RESULT]
    }


def converse_turns(*blocks: dict[str, Any]) -> dict[str, Any]:
    answer = {"role": "assistant", "content": [*blocks, {"text": "Hello"}]}
    return {"messages": [ASKED, answer, ASKED]}


def chat_turn(**said: Any) -> dict[str, Any]:
    """A request with one assistant message, and the results of its calls."""
    after = RESULT if "tool_calls" in said else USER
    return {"messages": [USER, {"role": "assistant", **said}, after]}


def gemini_turn(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [GEMINI_USER, {"role": "model", "parts": list(parts)}, GEMINI_USER]}


def thought(*summary: dict[str, Any]) -> dict[str, Any]:
    step = {"type": "thought", "signature": "c2ln", "summary": list(summary)}
    return {"input": [STEP, step, STEP]}


def cached(mark: dict[str, Any]) -> dict[str, Any]:
    """A request with a mark on each kind of place, and of the whole."""
    block = {"type": "text", "text": "Hi", "cache_control": mark}
    turn = {"role": "user", "content": [block]}
    tool = {"name": "f", "input_schema": {"type": "object"}, "cache_control": mark}
    return {
        "max_tokens": 5,
        "messages": [turn],
        "system": [block],
        "tools": [tool],
        "cache_control": mark,
    }


GEMINI_USER: dict[str, Any] = {"role": "user", "parts": [{"text": "Hi"}]}
STEP: dict[str, Any] = {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}
PICTURE: dict[str, Any] = {"url": "https://example.com/a.png", "detail": ""}
CONVERSE_CALL: dict[str, Any] = {"toolUseId": "c", "name": "f", "input": {}}
CONVERSE_RESULT: dict[str, Any] = {"toolUseId": "c", "content": [{"text": "ok"}]}
EMPTY_POINT: dict[str, Any] = {"cachePoint": {"type": "default", "ttl": ""}}
CALLED: list[dict[str, Any]] = [{**CALL, "function": FUNCTION}]

KEPT: dict[str, tuple[str, dict[str, Any]]] = {
    "empty key of a call": ("chat", chat_calls({**CALL, "beam": "", "function": FUNCTION})),
    "empty key of a function": ("chat", chat_calls({**CALL, "function": {**FUNCTION, "beam": ""}})),
    "key of audio": (
        "chat",
        {
            "messages": [
                USER,
                {"role": "assistant", "content": None, "audio": {"id": "a", "beam": 0, "x": ""}},
                USER,
            ]
        },
    ),
    "key of a thought": (
        "converse",
        converse_turns({"reasoningContent": {"reasoningText": THOUGHT, "beam": ""}}),
    ),
    "empty text beside calls": ("chat", chat_turn(content="", tool_calls=CALLED)),
    "empty text beside a free-form call": (
        "chat",
        chat_turn(
            content="",
            tool_calls=[{"id": "c", "type": "custom", "custom": {"name": "f", "input": ""}}],
        ),
    ),
    "empty text beside a refusal": ("chat", chat_turn(content="", refusal="No.")),
    "null beside calls": ("chat", chat_turn(content=None, tool_calls=CALLED)),
    "empty refusal": ("chat", chat_turn(content="Hi", refusal="")),
    "empty reasoning": (
        "chat",
        chat_turn(content="", reasoning_content="", tool_calls=CALLED),
    ),
    "empty list of reasoning": ("openrouter", chat_turn(content="x", reasoning_details=[])),
    "empty detail of an image": (
        "chat",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": PICTURE}]}]},
    ),
    "no alternatives of tokens": (
        "chat",
        {"messages": [USER], "logprobs": True, "top_logprobs": 0},
    ),
    "no alternatives of tokens of Gemini": (
        "gemini",
        {
            **gemini_turn({"text": "a"}),
            "generationConfig": {"responseLogprobs": True, "logprobs": 0},
        },
    ),
    "lifetimes of each mark of Chat": (
        "openrouter",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Hi", "cache_control": mark}],
                }
                for mark in (
                    {"type": "ephemeral", "ttl": "1h"},
                    {"type": "ephemeral", "ttl": "5m"},
                    {"type": "ephemeral"},
                )
            ]
        },
    ),
    "empty lifetime of a mark": ("messages", cached({"type": "ephemeral", "ttl": ""})),
    "lifetime of a mark": ("messages", cached({"type": "ephemeral", "ttl": "1h"})),
    "key beside a schema": (
        "messages",
        {
            "max_tokens": 5,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
            "output_config": {"format": {"type": "json_schema", "schema": {}, "beam": 0}},
        },
    ),
    "empty signature of a text": ("gemini", gemini_turn({"text": "a", "thoughtSignature": ""})),
    "empty signature of a thought": (
        "gemini",
        gemini_turn({"text": "a", "thought": True, "thoughtSignature": ""}, {"text": "b"}),
    ),
    "thoughts not asked for": (
        "gemini",
        {
            **gemini_turn({"text": "a"}),
            "generationConfig": {"thinkingConfig": {"includeThoughts": False}},
        },
    ),
    "thoughts not asked for beside a budget": (
        "gemini",
        {
            **gemini_turn({"text": "a"}),
            "generationConfig": {
                "thinkingConfig": {"thinkingBudget": 512, "includeThoughts": False}
            },
        },
    ),
    "empty summary of a thought": ("interactions", thought()),
    "empty paragraph of a summary": (
        "interactions",
        thought({"type": "text", "text": ""}, {"type": "text", "text": "b"}),
    ),
    "key beside a call": (
        "converse",
        {
            "messages": [
                ASKED,
                {
                    "role": "assistant",
                    "content": [{"toolUse": {**CONVERSE_CALL, "beam": 1}, "beam": 0}],
                },
                {
                    "role": "user",
                    "content": [{"toolResult": {**CONVERSE_RESULT, "beam": 1}, "beam": 0}],
                },
            ],
            "toolConfig": {"tools": [TOOL]},
        },
    ),
    "key beside a text": ("converse", converse_turns({"text": "Hm.", "beam": 0})),
    "key beside a thought": (
        "converse",
        converse_turns({"reasoningContent": {"reasoningText": THOUGHT}, "beam": 0}),
    ),
    "key of a cache point": ("converse", converse_turns({"text": "Hm."}, POINT)),
    "key of a cache point of the system": (
        "converse",
        {"messages": [ASKED], "system": [{"text": "Be terse."}, POINT]},
    ),
    "key of a cache point of the tools": (
        "converse",
        {"messages": [ASKED], "toolConfig": {"tools": [TOOL, POINT]}},
    ),
    "key of the choice of a function": (
        "interactions",
        {
            "input": [{"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}],
            "tools": [{"type": "function", "name": "f"}],
            "generation_config": {
                "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"], "beam": 0}}
            },
        },
    ),
    "system prompt without a text": (
        "ollama",
        {"messages": [{"role": "system", "content": ""}, USER]},
    ),
    "thoughts asked for without tokens": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": True}},
        },
    ),
}
"""What a client said -> its wire or provider, and the request: it comes back as it was."""


MODELS = {
    "gemini": "google:gemini-2.5-flash",
    "chat": "custom:m",
    "openrouter": "openrouter:anthropic/claude-opus-4.8",
    "messages": "anthropic:claude-opus-4-8",
}
"""Models that take what is in the requests."""


@each_case("name", KEPT)
def test_a_request_comes_back_with_every_key(name: str) -> None:
    place, request = KEPT[name]
    wire: Any = "chat" if place == "openrouter" else place
    model = MODELS.get(place, "")
    again = built(wire, parse_request(wire, json.dumps({"model": "m", **request}).encode()), model)
    written = body(again)
    assert {key: written.get(key) for key in request} == request


def test_keys_of_a_message_stand_once_on_ollama() -> None:
    said: dict[str, Any] = {"role": "assistant", "content": "Hm.", "beam": 0}
    said["tool_calls"] = [{"function": {"name": "f", "arguments": {}}}]
    messages = [USER, said, {"role": "tool", "tool_name": "f", "content": "ok"}]
    request = json.dumps({"model": "m", "messages": messages}).encode()
    again = built("ollama", parse_request("ollama", request))
    assert again.body.count(b"beam") == 1
    assert body(again)["messages"][1]["beam"] == 0


@pytest.mark.parametrize("media_type", ["", None, "text/plain"])
def test_a_text_document_stays_one_on_messages(media_type: str | None) -> None:
    source = {**DOCUMENT["source"], "media_type": media_type}
    messages = [{"role": "user", "content": [{**DOCUMENT, "source": source}]}]
    request = json.dumps({"model": "m", "max_tokens": 5, "messages": messages}).encode()
    again = body(built("messages", parse_request("messages", request)))
    sent = again["messages"][0]["content"][0]["source"]
    assert sent == {"type": "text", "media_type": "text/plain", "data": "x"}


@pytest.mark.parametrize("model", ["groq:llama", "mistral:mistral-large", "custom:m"])
@pytest.mark.parametrize("call", [{"beam": 0}, {"function": {**FUNCTION, "beam": ""}}])
def test_key_of_a_call_is_sent_or_reported(model: str, call: dict[str, Any]) -> None:
    request = json.dumps({"model": "m", **chat_calls({**CALL, "function": FUNCTION, **call})})
    again = built("chat", parse_request("chat", request.encode()), model)
    is_reported = any("no further keys" in change.reason for change in again.report)
    assert (b"beam" in again.body) != is_reported


# --- what says nothing is not reported ---

ASK: dict[str, Any] = {"messages": [USER]}
SAYS_NOTHING: dict[str, tuple[Any, dict[str, Any]]] = {
    "alternatives of tokens": ("chat", {**ASK, "top_logprobs": 0}),
    "alternatives of tokens of Gemini": (
        "gemini",
        {**gemini_turn({"text": "a"}), "generationConfig": {"logprobs": 0}},
    ),
    "thoughts": (
        "gemini",
        {
            **gemini_turn({"text": "a"}),
            "generationConfig": {"thinkingConfig": {"includeThoughts": False}},
        },
    ),
    "signature": ("gemini", gemini_turn({"text": "a", "thoughtSignature": ""})),
    "detail of an image": (
        "chat",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": PICTURE}]}]},
    ),
    "list of reasoning": ("chat", chat_turn(content="x", reasoning_details=[])),
    "arguments": ("chat", chat_calls({**CALL, "function": {"name": "f", "arguments": ""}})),
}


@each_case("name", SAYS_NOTHING)
@pytest.mark.parametrize("target", ["messages", "responses", "chat", "cohere"])
def test_empty_value_is_not_missed_on_another_wire(name: str, target: str) -> None:
    wire, request = SAYS_NOTHING[name]
    prompt = parse_request(wire, json.dumps(request).encode())
    assert built(target, prompt).report == []


def test_unknown_zero_is_missed_on_another_wire() -> None:
    request = {**gemini_turn({"text": "a"}), "generationConfig": {"logprobs": 0, "beam": 0}}
    changes = built("messages", parse_request("gemini", json.dumps(request).encode())).report
    assert [change.path for change in changes] == ["/extra/generationConfig"]


def test_summary_that_is_sent_without_reasoning_is_kept() -> None:
    reasoning = {"effort": "none", "summary": "auto"}
    request = {"model": "m", "input": "Hi", "reasoning": reasoning}
    prompt = parse_request("responses", json.dumps(request).encode())
    again = built("responses", prompt, "openai:gpt-5.1")
    assert body(again)["reasoning"] == reasoning
    assert again.report == []


# --- received keys that have the name of a note ---

NOTES = {"(empty)": "chat", "(beside)": "converse"}
VALUES: tuple[Any, ...] = (5, "", [], {}, {"toolUse": 1, "content": "", "refusal": "No."}, [{}, 1])


def noted_call(name: str, value: Any) -> dict[str, Any]:
    """A request with a key of that name wherever one may be."""
    if name == "(empty)":
        call = {**CALL, "function": FUNCTION, name: value}
        return chat_turn(content="", tool_calls=[call, {**call, "id": "d"}], **{name: value})
    block = {"toolUse": {**CONVERSE_CALL, name: value}, name: value}
    result = {"toolResult": {**CONVERSE_RESULT, name: value}, name: value}
    turns = [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
    return {"messages": [ASKED, *turns], "toolConfig": {"tools": [TOOL]}}


@each_case("value", VALUES, ids=str)
@each_case("name", NOTES)
def test_key_with_the_name_of_a_note_comes_back(name: str, value: Any) -> None:
    wire: Any = NOTES[name]
    request = noted_call(name, value)
    model = MODELS.get(wire, "")
    prompt = parse_request(wire, json.dumps({"model": "m", **request}).encode())
    sent = body(built(wire, prompt, model))["messages"]
    assert sent[: len(request["messages"]) - 1] == request["messages"][:-1]
    elsewhere = [change.reason for change in built("messages", prompt).report]
    says_something = value not in ("", [], {})
    assert any(name in reason for reason in elsewhere) == says_something


def test_key_with_the_name_of_a_note_is_named_at_mistral() -> None:
    request = chat_turn(content="x", **{"(empty)": 5})
    prompt = parse_request("chat", json.dumps({"model": "m", **request}).encode())
    (change,) = built("chat", prompt, "mistral:mistral-large").report
    assert change.reason.endswith("(empty)")


def test_key_beside_a_call_is_named_on_another_wire() -> None:
    turns = converse_turns({"toolUse": CONVERSE_CALL, "beam": 1})
    prompt = parse_request("converse", json.dumps(turns).encode())
    reasons = [change.reason for change in built("chat", prompt).report]
    assert "options of another wire are left out: beam" in reasons


PARTS: tuple[dict[str, Any], ...] = (
    {"newPart": {"a": 1}},
    # an image made while thinking
    {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thought": True},
    {"functionResponse": {"name": "f", "response": {"a": 1}}},
    {},
    {"text": ""},
    {"text": "", "thought": True},
    {"text": "a", "(empty signature)": 3},
)


@each_case("part", PARTS)
def test_empty_signature_of_a_part_comes_back(part: dict[str, Any]) -> None:
    request = gemini_turn({**part, "thoughtSignature": ""}, {"text": "b"})
    again = built("gemini", parse_request("gemini", json.dumps(request).encode()))
    assert body(again)["contents"] == request["contents"]


# --- what cannot be kept is reported ---

REPORTED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "content of no parts": (
        "chat",
        chat_turn(content=[], tool_calls=CALLED),
        "changed /input/1",
    ),
    "content of an empty part": (
        "chat",
        chat_turn(content=[{"type": "text", "text": ""}], tool_calls=CALLED),
        "changed /input/1",
    ),
    "tokens of reasoning that is off": (
        "messages",
        {"max_tokens": 5, **ASK, "thinking": {"type": "disabled", "budget_tokens": 5}},
        "dropped /reasoning/budget",
    ),
    "tokens of reasoning that is off at OpenRouter": (
        "openrouter",
        {**ASK, "reasoning": {"enabled": False, "max_tokens": 5}},
        "dropped /reasoning/budget",
    ),
    "empty list of calls": ("chat", chat_turn(content="Hi", tool_calls=[]), "dropped /input/1"),
    "empty lifetime of a point": (
        "converse",
        {"messages": [{"role": "user", "content": [*ASKED["content"], EMPTY_POINT]}]},
        "dropped /cache/ttl",
    ),
    "turn of an empty plan": (
        "cohere",
        {
            "messages": [
                USER,
                {"role": "assistant", "content": "", "tool_plan": "", "tool_calls": []},
                USER,
            ]
        },
        "dropped /input/1",
    ),
}
"""What a client said -> its wire, the request, and the change that names it."""


@pytest.mark.parametrize("name", REPORTED)
def test_a_value_that_is_not_sent_is_reported(name: str) -> None:
    place, request, change = REPORTED[name]
    wire: Any = "chat" if place == "openrouter" else place
    model = MODELS["openrouter"] if place == "openrouter" else ""
    again = built(wire, parse_request(wire, json.dumps({"model": "m", **request}).encode()), model)
    assert change in [f"{entry.action} {entry.path}" for entry in again.report]


@pytest.mark.parametrize("provider", ["openai:gpt-5", "groq:llama"])
def test_number_of_tokens_goes_with_its_switch(provider: str) -> None:
    """Servers refuse `top_logprobs` without `logprobs`, which these do not take."""
    request = {"model": "m", "messages": [USER], "logprobs": True, "top_logprobs": 0}
    again = built("chat", parse_request("chat", json.dumps(request).encode()), provider)
    assert b"logprobs" not in again.body
    assert "/logprobs" in [change.path for change in again.report]


def test_empty_arguments_of_a_response_are_not_reported() -> None:
    """A provider streams them for a call without arguments: `strict=True` may not fail for it."""
    origin = built("chat", Prompt("x"), "custom:m").origin
    call = FunctionCall("c", "f", "", origin=origin)
    request = built("chat", Prompt([user("x"), call, call.output("ok")]), "custom:m")
    assert request.report == []


@pytest.mark.parametrize("target", ["openai:gpt-5.6", "ollama:m", "cohere:m"])
def test_lifetimes_of_marks_are_reported_where_there_are_none(target: str) -> None:
    marks = CacheOptions(breakpoints=[0], lifetimes={0: "1h"})
    request = build(Prompt([user("x")], cache=marks), target)
    reported = [change.path for change in request.report]
    assert {"/cache/lifetimes", "/cache"} & set(reported)


def test_empty_texts_beside_calls_are_no_items_elsewhere() -> None:
    request = {"model": "m", **chat_turn(content="", tool_calls=CALLED)}
    prompt = parse_request("chat", json.dumps(request).encode())
    for wire in ("messages", "responses", "gemini", "ollama", "cohere"):
        changes = [change.reason for change in built(wire, prompt).report]
        assert not any("empty" in reason or "without content" in reason for reason in changes)


@pytest.mark.parametrize("wire", [wire for wire in TARGETS if wire != "gemini"])
@pytest.mark.parametrize("is_thought", [False, True])
def test_empty_signature_is_no_state_elsewhere(wire: str, is_thought: bool) -> None:
    """Gemini ends turns with an empty text; clients send it with an empty signature."""
    empty: dict[str, Any] = {"text": "", "thoughtSignature": "", "thought": is_thought}
    for parts in ([{"text": "Hi"}, empty], [empty, {"text": "Hi"}], [empty]):
        asked = {"role": "user", "parts": [{"text": "x"}]}
        contents = [asked, {"role": "model", "parts": parts}, asked]
        prompt = parse_request("gemini", json.dumps({"contents": contents}).encode())
        report = built(wire, prompt).report
        assert not any("encrypted" in change.reason for change in report)
        # Alone it is a turn, which some wires cannot have.
        assert len(parts) == 1 or report == []


@each_case(
    "target, options, path",
    [
        ("anthropic:claude-opus-4-8", {"effort": "low", "budget": 3000}, "/reasoning/budget"),
        ("openai:gpt-5", {"effort": "low", "budget": 3000}, "/reasoning/budget"),
        ("qwen:qwen3-max", {"effort": "low", "budget": 3000}, "/reasoning/effort"),
        ("openrouter:a/b", {"effort": "max", "budget": 0}, "/reasoning/effort"),
        ("cohere:command-a-reasoning", {"effort": "low"}, "/reasoning"),
        ("anthropic:claude-opus-4-8", {"effort": "off", "display": "summarized"}, "display"),
        ("deepseek:deepseek-chat", {"effort": "off", "budget": 3000}, "/reasoning/budget"),
        ("ollama:gpt-oss", {"effort": "off", "budget": 3000}, "/reasoning/budget"),
    ],
)
def test_reasoning_in_another_form_is_reported(target: str, options: Any, path: str) -> None:
    wire: Any = "chat" if target.startswith("openai") else None
    request = build(Prompt("x", reasoning=ReasoningOptions(**options)), target, wire_api=wire)
    assert any(change.path.endswith(path) for change in request.report)


def test_number_of_tokens_of_cohere_stays_without_a_report() -> None:
    thinking = {"type": "enabled", "token_budget": 1024}
    request = {"model": "command-a-reasoning", "messages": [USER], "thinking": thinking}
    again = built("cohere", parse_request("cohere", json.dumps(request).encode()))
    assert body(again)["thinking"] == thinking
    assert again.report == []
