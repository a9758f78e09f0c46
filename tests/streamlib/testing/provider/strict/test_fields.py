"""The fields that the strict provider knows are those of the installed official SDKs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from streamlib.testing.provider.strict import chat, gemini, messages, responses
from tests.support.sdks import anthropic, openai


def test_fields_of_messages_are_those_of_its_sdk() -> None:
    messages_request = anthropic.types.message_create_params
    beta_request = anthropic.types.beta.message_create_params
    known = set(messages_request.MessageCreateParamsBase.__annotations__)
    in_beta = set(beta_request.MessageCreateParamsBase.__annotations__)
    sampling = {"temperature", "top_p", "top_k"}  # the SDK removed them, older versions take them
    assert known | sampling | {"stream"} == messages.FIELDS
    assert set(messages.FIELDS_OF_BETAS) == in_beta - known - {"betas"}


def test_fields_of_openais_wires_are_those_of_its_sdk() -> None:
    responses_request = openai.types.responses.response_create_params
    chat_request = openai.types.chat.completion_create_params
    known = set(responses_request.ResponseCreateParamsBase.__annotations__)
    assert known | {"stream", "client_metadata"} == responses.FIELDS
    known = set(chat_request.CompletionCreateParamsBase.__annotations__)
    assert known | {"stream"} == chat.FIELDS


def test_fields_of_gemini_are_those_of_its_sdk() -> None:
    types: Any = pytest.importorskip("google.genai.types", reason="the official SDK")

    def fields(model: Any) -> set[str]:
        return {to_camel(name) for name in model.model_fields}

    assert fields(types.Part) == gemini.PART_FIELDS
    assert fields(types.Tool) == gemini.TOOL_FIELDS
    assert fields(types.FunctionDeclaration) == gemini.DECLARATION_FIELDS
    assert fields(types.GenerationConfig) | {"imageConfig"} == gemini.SETTINGS
    assert fields(types.Schema) - {"additionalProperties", "defs", "ref"} == gemini.SCHEMA_FIELDS
