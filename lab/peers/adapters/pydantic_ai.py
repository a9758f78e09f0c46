"""pydantic-ai's direct interface: one request to a model, its events, and the response it has put
together."""

from __future__ import annotations

from typing import Any

import anthropic
import boto3
import httpx2
import openai
from botocore.config import Config
from google import genai
from google.genai import types
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest, TextPart, ThinkingPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from lab.peers.peer import READ, Ask, Peer
from lab.peers.told import Told

TIMEOUT: Any = httpx2.Timeout(READ)


def messages(asked: Ask) -> Any:
    """Over the official SDK."""
    sdk = anthropic.AsyncAnthropic(
        api_key="k-1", base_url=asked.url, max_retries=asked.retries, timeout=TIMEOUT
    )
    return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(anthropic_client=sdk))


def _openai(asked: Ask) -> Any:
    return OpenAIProvider(
        openai_client=openai.AsyncOpenAI(
            api_key="k-1", base_url=f"{asked.url}/v1", max_retries=asked.retries, timeout=TIMEOUT
        )
    )


def chat(asked: Ask) -> Any:
    """Over the official SDK."""
    return OpenAIChatModel("m-1", provider=_openai(asked))


def responses(asked: Ask) -> Any:
    """Over the official SDK."""
    return OpenAIResponsesModel("m-1", provider=_openai(asked))


def gemini(asked: Ask) -> Any:
    """Over the official SDK."""
    options = types.HttpOptions(base_url=asked.url, timeout=int(READ * 1000))
    return GoogleModel(
        "gemini-2.5-flash",
        provider=GoogleProvider(client=genai.Client(api_key="k-1", http_options=options)),
    )


def converse(asked: Ask) -> Any:
    """Over boto3, in a thread."""
    config = Config(read_timeout=READ, retries={"max_attempts": asked.retries})
    keys = {"aws_access_key_id": "AK", "aws_secret_access_key": "s", "region_name": "us-east-1"}
    bedrock: Any = boto3.client("bedrock-runtime", endpoint_url=asked.url, config=config, **keys)
    return BedrockConverseModel(
        "us.amazon.nova-lite-v1:0", provider=BedrockProvider(bedrock_client=bedrock)
    )


def asker(model: Any) -> Any:
    """The same for each model."""

    async def ask(asked: Ask, told: Told) -> None:
        async with model_request_stream(
            model(asked), [ModelRequest.user_text_prompt("x")]
        ) as stream:
            try:
                async for _ in stream:
                    if asked.leave and any(
                        isinstance(part, TextPart) and part.content for part in stream.get().parts
                    ):
                        break
            finally:
                read(stream.get(), told)

    return ask


def read(response: Any, told: Told) -> None:
    """Its parts."""
    kinds = {TextPart: "text", ThinkingPart: "reasoning", ToolCallPart: "call"}
    told.order = [kinds[type(part)] for part in response.parts if type(part) in kinds]
    told.text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    told.reasoning = "".join(
        part.content for part in response.parts if isinstance(part, ThinkingPart)
    )
    told.calls = [
        (part.tool_name, part.args) for part in response.parts if isinstance(part, ToolCallPart)
    ]
    told.signatures = [found for part in response.parts if (found := signature(part))]
    told.stop = response.finish_reason
    told.input_tokens, told.output_tokens = (
        response.usage.input_tokens,
        response.usage.output_tokens,
    )


def signature(part: Any) -> str | None:
    """On the thought itself, or among the details of any other part."""
    details = getattr(part, "provider_details", None) or {}
    return getattr(part, "signature", None) or details.get("thought_signature")


async def replay(asked: Ask, told: Told) -> None:
    """Two turns on Messages."""
    model, turns = messages(asked), list[Any]([ModelRequest.user_text_prompt("x")])
    tools = [
        ToolDefinition(name=name, parameters_json_schema={"type": "object"}) for name in ("f", "g")
    ]
    for _ in range(2):
        async with model_request_stream(
            model, turns, model_request_parameters=ModelRequestParameters(function_tools=tools)
        ) as stream:
            async for _event in stream:
                pass
        answer = stream.get()
        calls = [part for part in answer.parts if isinstance(part, ToolCallPart)]
        results = [
            ToolReturnPart(tool_name=call.tool_name, content="ok", tool_call_id=call.tool_call_id)
            for call in calls
        ]
        turns += [answer, ModelRequest(parts=results)]


MODELS = {
    "messages": messages,
    "chat": chat,
    "responses": responses,
    "gemini": gemini,
    "converse": converse,
}
PEERS = (
    Peer(
        "pydantic-ai",
        "pydantic-ai-slim",
        {wire: asker(model) for wire, model in MODELS.items()},
        ("pydantic_ai",),
        replay,
    ),
)
