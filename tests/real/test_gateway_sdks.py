"""The official SDKs at the gateway, in front of a model on every wire: streaming and whole, a tool
call, an error, a slow model."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.genai import errors as google_errors
from google.genai import types

pytestmark = pytest.mark.real
MODELS = ("messages", "chat", "responses", "gemini", "converse", "ollama")
each_model = pytest.mark.parametrize("model", MODELS)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
}


@contextmanager
def command(*words: str) -> Iterator[str]:
    """`streamlib …` while the block runs; its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "streamlib", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+:\d+", process.stdout.readline())
            assert found
            yield found[0]
        finally:
            process.terminate()


def route(name: str, wire: str, base: str) -> str:
    to = (
        "claude-opus-4-5" if wire == "converse" else "m"
    )  # Converse has a word for thinking by model
    return (
        f'[[route]]\nmodel = "{name}"\nto = "custom:{to}"\nwire_api = "{wire}"\n'
        f'base_url = "{base}"\n'
    )


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway before the loopback provider on each wire (`chat`), slow (`slow-chat`), cut
    (`cut-chat`), and before nothing (`down`)."""
    with (
        command("serve", "--port", "0") as plain,
        command("serve", "--port", "0", "--pace", "0.05") as slow,
        command("serve", "--port", "0", "--fault", "truncate@6") as cut,
    ):
        names = [
            (f"{name}{wire}", wire, base)
            for name, base in (("", plain), ("slow-", slow), ("cut-", cut))
            for wire in MODELS
        ]
        routes = [
            route(name, wire, f"{base}/v1beta" if wire == "gemini" else base)
            for name, wire, base in names
        ]
        routes.append(route("down", "chat", "http://127.0.0.1:9"))
        file = tmp_path_factory.mktemp("gateway") / "routes.toml"
        Path(file).write_text("\n".join(routes), encoding="utf-8")
        with command(
            "gateway", "--port", "0", "--config", str(file), "--keep-alive", "0.02"
        ) as address:
            yield address


# --- Anthropic ---


@pytest.fixture
def anthropic_sdk(url: str) -> Iterator[Any]:
    sdk = pytest.importorskip("anthropic")
    with sdk.Anthropic(base_url=url, api_key="dummy", max_retries=0) as client:
        yield client


@each_model
def test_anthropic_streams_and_calls_tools(anthropic_sdk: Any, model: str) -> None:
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": 4000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
    }
    with anthropic_sdk.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    # The streamed one last: each response has ids of its own, and its call is answered below.
    for message in (anthropic_sdk.messages.create(**asked), streamed):
        (call,) = [block for block in message.content if block.type == "tool_use"]
        assert (call.name, call.input, message.stop_reason, message.model) == (
            "weather",
            {"place": "text"},
            "tool_use",
            model,
        )
        assert message.content[0].type == "thinking"
        assert message.usage.output_tokens > 0
    answer = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}],
    }
    asked["messages"] += [{"role": "assistant", "content": streamed.content}, answer]
    said = anthropic_sdk.messages.create(**asked)
    assert [block.text for block in said.content if block.type == "text"] == [
        "The tool says: sunny"
    ]


def test_anthropic_waits_for_a_slow_model_and_sees_truncation(anthropic_sdk: Any) -> None:
    import anthropic

    asked: dict[str, Any] = {"max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
    with anthropic_sdk.messages.stream(model="slow-gemini", **asked) as stream:
        assert stream.get_final_text().startswith("You said: Hello")
    with (
        pytest.raises(anthropic.APIStatusError),
        anthropic_sdk.messages.stream(model="cut-chat", **asked) as stream,
    ):
        stream.get_final_message()
    with pytest.raises(anthropic.NotFoundError):
        anthropic_sdk.messages.create(model="nobody", **asked)
    with pytest.raises(anthropic.InternalServerError):
        anthropic_sdk.messages.create(model="down", **asked)
    assert (
        anthropic_sdk.messages.count_tokens(model="chat", messages=asked["messages"]).input_tokens
        > 0
    )
    assert "chat" in [one.id for one in anthropic_sdk.models.list()]


# --- OpenAI ---


@pytest.fixture
def openai_sdk(url: str) -> Iterator[Any]:
    sdk = pytest.importorskip("openai")
    with sdk.OpenAI(base_url=f"{url}/v1", api_key="dummy", max_retries=0) as client:
        yield client


@each_model
def test_openai_chat_streams_and_calls_tools(openai_sdk: Any, model: str) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    asked: dict[str, Any] = {
        "model": model,
        "reasoning_effort": "low",
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": tools,
    }
    with openai_sdk.chat.completions.stream(
        **asked, stream_options={"include_usage": True}
    ) as stream:
        streamed = stream.get_final_completion()
    # The streamed one last: each response has ids of its own, and its call is answered below.
    for completion in (openai_sdk.chat.completions.create(**asked), streamed):
        (choice,) = completion.choices
        (call,) = choice.message.tool_calls
        assert (call.function.name, call.function.arguments, choice.finish_reason) == (
            "weather",
            '{"place":"text"}',
            "tool_calls",
        )
        assert completion.usage.completion_tokens > 0
    asked["messages"] += [
        streamed.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    assert (
        openai_sdk.chat.completions.create(**asked).choices[0].message.content
        == "The tool says: sunny"
    )


@each_model
def test_openai_responses_streams_and_calls_tools(openai_sdk: Any, model: str) -> None:
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]
    asked: dict[str, Any] = {
        "model": model,
        "reasoning": {"effort": "low"},
        "input": [{"role": "user", "content": "Weather?"}],
        "tools": tools,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    with openai_sdk.responses.stream(**asked) as stream:
        streamed = stream.get_final_response()
    # The streamed one last: each response has ids of its own, and its call is answered below.
    for response in (openai_sdk.responses.create(**asked), streamed):
        (call,) = [item for item in response.output if item.type == "function_call"]
        assert (call.name, call.arguments, response.status) == (
            "weather",
            '{"place":"text"}',
            "completed",
        )
        assert response.usage.output_tokens > 0
    asked["input"] += [
        *streamed.output,
        {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
    ]
    assert openai_sdk.responses.create(**asked).output_text == "The tool says: sunny"


def test_openai_waits_for_a_slow_model_and_sees_truncation(openai_sdk: Any) -> None:
    import openai

    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
    said = "".join(
        chunk.choices[0].delta.content or ""
        for chunk in openai_sdk.chat.completions.create(model="slow-messages", stream=True, **asked)
        if chunk.choices
    )
    assert said.startswith("You said: Hello")
    with pytest.raises(openai.APIError):
        list(openai_sdk.chat.completions.create(model="cut-messages", stream=True, **asked))
    with pytest.raises(openai.APIError):
        list(openai_sdk.responses.create(model="cut-messages", stream=True, input="Hello"))
    with pytest.raises(openai.NotFoundError):
        openai_sdk.chat.completions.create(model="nobody", **asked)
    with pytest.raises(openai.InternalServerError):
        openai_sdk.responses.create(model="down", input="Hello")
    assert "chat" in [one.id for one in openai_sdk.models.list()]


# --- Google ---


@pytest.fixture
def google_sdk(url: str) -> Iterator[Any]:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="dummy", http_options=types.HttpOptions(base_url=url))
    yield client
    client.close()


@each_model
def test_google_streams_and_calls_tools(google_sdk: Any, model: str) -> None:
    weather = types.FunctionDeclaration(
        name="weather", description="Weather.", parameters_json_schema=SCHEMA
    )
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[weather])],
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=2000),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    asked: list[Any] = [types.Content(role="user", parts=[types.Part(text="Weather?")])]
    chunks = list(
        google_sdk.models.generate_content_stream(model=model, contents=asked, config=config)
    )
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    whole = google_sdk.models.generate_content(model=model, contents=asked, config=config)
    for found in (parts, whole.candidates[0].content.parts):
        (call,) = [part.function_call for part in found if part.function_call]
        assert (call.name, call.args) == ("weather", {"place": "text"})
    assert chunks[-1].usage_metadata.candidates_token_count > 0
    answer = types.Part.from_function_response(name="weather", response={"output": "sunny"})
    asked += [types.Content(role="model", parts=parts), types.Content(role="user", parts=[answer])]
    assert (
        google_sdk.models.generate_content(model=model, contents=asked, config=config).text
        == "The tool says: sunny"
    )


def test_google_waits_for_a_slow_model_and_sees_truncation(google_sdk: Any) -> None:
    said = "".join(
        chunk.text or ""
        for chunk in google_sdk.models.generate_content_stream(model="slow-chat", contents="Hello")
    )
    assert said.startswith("You said: Hello")
    with pytest.raises(google_errors.APIError):
        list(google_sdk.models.generate_content_stream(model="cut-chat", contents="Hello"))
    with pytest.raises(google_errors.ClientError):
        google_sdk.models.generate_content(model="nobody", contents="Hello")
    with pytest.raises(google_errors.ServerError):
        google_sdk.models.generate_content(model="down", contents="Hello")
    assert "models/chat" in [one.name for one in google_sdk.models.list()]


# --- without an SDK ---

GEMINI = "/v1beta/models/slow-chat:streamGenerateContent?alt=sse"


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses", GEMINI])
def test_a_plain_reader_of_events_reads_every_route(url: str, path: str) -> None:
    import httpx
    from httpx_sse import connect_sse

    said = [{"role": "user", "content": "Hello"}]
    words = {
        "/v1/responses": {"input": said},
        GEMINI: {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]},
    }
    body = {
        "model": "slow-gemini",
        "stream": True,
        "max_tokens": 50,
        **words.get(path, {"messages": said}),
    }
    with httpx.Client() as client, connect_sse(client, "POST", f"{url}{path}", json=body) as source:
        events = list(source.iter_sse())
    assert len(events) > 5
    assert "Hello" in "".join(event.data for event in events)
