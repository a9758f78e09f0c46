"""Nothing of a request is lost without a word: stored calls, names of reasoning, empty turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import Message, Origin, Prompt, Request, StreamError, build, parse_request, user
from streamlib.tools import run_calls
from streamlib_parsers import FunctionCall, FunctionCallOutput, Response
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.dialects.coercion import unwrapped
from streamlib_parsers.protocol import parser

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


@pytest.mark.parametrize("state", ["previous_response_id", "conversation"])
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: str(output["type"]))
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


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content", "reasoning_text"])
@pytest.mark.parametrize("provider", ["custom", "llamacpp", "sglang"])
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


@pytest.mark.parametrize("wire", TARGETS)
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
