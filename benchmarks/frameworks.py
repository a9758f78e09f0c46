"""Frameworks above the official SDKs: pydantic-ai, litellm, any-llm. Each is optional; none is needed by anything here."""

from __future__ import annotations

import os
from typing import Any, Final

from benchmarks.contestants import (
    CHAT,
    Contestant,
    Opened,
    Outcome,
    _chat_said,
    _openai,
    anthropics_http,
    openais_http,
    peer,
)


async def _pydantic(model: Any) -> Opened:
    from pydantic_ai.messages import ModelRequest, UserPromptPart
    from pydantic_ai.models import ModelRequestParameters

    asked = [ModelRequest(parts=[UserPromptPart(content="x")])]
    stream = await model.request_stream(asked, None, ModelRequestParameters()).__aenter__()
    return aiter(stream), stream.get


async def _pydantic_anthropic(http: Any) -> Opened:
    import anthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = anthropic.AsyncAnthropic(api_key="none", http_client=http)
    return await _pydantic(AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client)))


async def _pydantic_chat(http: Any) -> Opened:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return await _pydantic(
        OpenAIChatModel("m", provider=OpenAIProvider(openai_client=_openai(http)))
    )


async def _pydantic_responses(http: Any) -> Opened:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return await _pydantic(
        OpenAIResponsesModel("m", provider=OpenAIProvider(openai_client=_openai(http)))
    )


def _pydantic_said(events: list[Any], whole: Any) -> Outcome:
    text = "".join(part.content for part in whole.parts if part.part_kind == "text")
    return Outcome(
        text, [part.args_as_dict() for part in whole.parts if part.part_kind == "tool-call"]
    )


async def _litellm(http: Any) -> Opened:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = (
        "True"  # it would ask the network for prices when it is imported
    )
    import litellm

    litellm.REPEATED_STREAMING_CHUNK_LIMIT = (
        10**9
    )  # our words repeat: it would take them for a model that has gone astray
    stream: Any = await litellm.acompletion(
        **{**CHAT, "model": "openai/m"}, stream=True, client=_openai(http)
    )
    return aiter(stream), None


async def _any_llm(http: Any) -> Opened:
    import any_llm

    model: Any = any_llm.AnyLLM.create("openai", api_key="none", http_client=http)
    return aiter(await model.acompletion(**CHAT, stream=True)), None


FRAMEWORKS: Final[tuple[Contestant, ...]] = (
    peer(
        "pydantic-ai",
        "pydantic-ai-slim",
        "messages",
        "accumulated",
        _pydantic_anthropic,
        _pydantic_said,
        anthropics_http,
    ),
    peer(
        "pydantic-ai",
        "pydantic-ai-slim",
        "chat",
        "accumulated",
        _pydantic_chat,
        _pydantic_said,
        openais_http,
    ),
    peer(
        "pydantic-ai",
        "pydantic-ai-slim",
        "responses",
        "accumulated",
        _pydantic_responses,
        _pydantic_said,
        openais_http,
    ),
    peer("litellm", "litellm", "chat", "raw", _litellm, _chat_said, openais_http),
    peer("any-llm", "any-llm-sdk", "chat", "raw", _any_llm, _chat_said, openais_http),
)
