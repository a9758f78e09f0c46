"""Prompts as the requests of a provider's batch file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import Prompt, ToolSpec, build
from streamlib.batch import batch_lines
from streamlib.batch.lines import FORMS
from tests.support.shared import ROOT

PROMPTS: dict[str, Prompt | str] = {"a-1": Prompt("One?", max_output_tokens=9), "b_2": "Two?"}
MODELS: dict[str, tuple[str, Any]] = {
    "anthropic": ("anthropic:claude-opus-4-5", None),
    "openai": ("openai:gpt-5", "responses"),
    "openai chat": ("openai:gpt-5", "chat"),
    "google": ("google:gemini-3-pro", None),
    "mistral": ("mistral:mistral-large-latest", "chat"),
    "bedrock": ("bedrock:anthropic.claude-opus-4-8", "converse"),
    "bedrock invoke": ("bedrock:anthropic.claude-opus-4-8", "invoke"),
}


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.parametrize("name", MODELS)
def test_line_holds_the_request_without_a_stream(name: str) -> None:
    model, wire_api = MODELS[name]
    lines = batch_lines(PROMPTS, model, wire_api=wire_api)
    form = FORMS[lines.provider]
    assert [line[form.id_key] for line in lines] == ["a-1", "b_2"]
    request = build(Prompt("One?", max_output_tokens=9, stream=False), model, wire_api=wire_api)
    body = json.loads(request.body)
    body.pop("stream", None)
    if name in ("google", "mistral", "bedrock", "bedrock invoke"):
        body.pop("model", None)
    assert lines[0][form.body_key] == body
    assert "stream" not in str(lines)


@pytest.mark.parametrize("prompts", [["hi"], {1: "hi"}])
def test_prompts_without_ids_of_text_are_refused(prompts: Any) -> None:
    with pytest.raises(TypeError, match=r"^prompts is a dict|^the id of a prompt is a text"):
        batch_lines(prompts, "openai:gpt-5")


def test_lines_of_openai_name_their_endpoint() -> None:
    [line] = batch_lines({"a": "hi"}, "openai:gpt-5", wire_api="chat")
    assert {key: line[key] for key in line if key != "body"} == {
        "custom_id": "a",
        "method": "POST",
        "url": "/v1/chat/completions",
    }
    assert batch_lines({"a": "hi"}, "openai:gpt-5")[0]["url"] == "/v1/responses"


def test_line_names_the_path_without_the_query() -> None:
    prompt = Prompt("hi", extra={"multi_agent": {"enabled": True}})
    lines = batch_lines({"a": prompt}, "openai:gpt-5", wire_api="responses")
    assert lines.requests["a"].url.endswith("?beta=true")
    assert lines[0]["url"] == "/v1/responses"


def test_file_is_what_the_provider_takes() -> None:
    lines = batch_lines(PROMPTS, "anthropic:claude-opus-4-5")
    assert json.loads(lines.dumps()) == {"requests": list(lines)}
    lines = batch_lines(PROMPTS, "openai:gpt-5")
    assert [json.loads(line) for line in lines.dumps().splitlines()] == list(lines)


def test_headers_of_all_requests_are_joined() -> None:
    prompts: dict[str, Prompt | str] = {
        "a": Prompt("x", headers={"anthropic-beta": "one"}),
        "b": Prompt("x", headers={"anthropic-beta": "two"}),
    }
    headers = batch_lines(prompts, "anthropic:claude-opus-4-5").headers
    assert set(headers["anthropic-beta"].replace(" ", "").split(",")) == {"one", "two"}


def test_requests_keep_their_reports_and_names() -> None:
    prompt = Prompt("x", tools=[ToolSpec("my tool!")])
    lines = batch_lines({"a": prompt}, "anthropic:claude-opus-4-5")
    assert lines.requests["a"].names == {"my_tool_": "my tool!"}
    assert lines.requests["a"].report


@pytest.mark.parametrize(
    ("prompts", "model", "message"),
    [
        ({"a b": "x"}, "anthropic:claude-opus-4-5", "'a b' must be 1 to 64 letters"),
        ({"x" * 65: "x"}, "anthropic:claude-opus-4-5", "must be 1 to 64 letters"),
        ({"": "x"}, "openai:gpt-5", "not empty"),
        ({}, "openai:gpt-5", "at least one prompt"),
        ({"a": "x"}, "groq:llama-4", "no form of batches is known for groq, only for anthropic"),
        ({str(n): "x" for n in range(50_001)}, "openai:gpt-5", "50,001 prompts"),
    ],
    ids=["space", "long", "empty", "none", "provider", "many"],
)
def test_batch_that_would_be_refused_is_an_error(
    prompts: dict[str, Prompt | str], model: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        batch_lines(prompts, model)


def test_limits_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "batches.md").read_text(encoding="utf-8")
    for model, wire_api in MODELS.values():
        provider = batch_lines(PROMPTS, model, wire_api=wire_api).provider
        form = FORMS[provider]
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{provider}` |")]
        row = row.replace(" 2 GB", " 2,000 MB")
        if form.most is not None:
            assert f" {form.most:,} requests" in row
        if form.largest is not None:
            assert f" {form.largest / 1_000_000:,g} MB" in row


def test_file_that_is_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    small = msgspec.structs.replace(FORMS["openai"], largest=100)
    monkeypatch.setattr("streamlib.batch.lines.FORMS", {"openai": small})
    with pytest.raises(ValueError, match="takes 100: split the prompts"):
        batch_lines(PROMPTS, "openai:gpt-5").dumps()
