"""Frameworks that are built on the official SDKs: pydantic-ai, litellm, any-llm. All optional."""

from __future__ import annotations

import os
from typing import Any, Final

from benchmarks.contestants import Contestant, OpenStream, Outcome
from benchmarks.sdks import (
    CHAT_REQUEST,
    anthropic_http,
    chat_outcome,
    openai_client,
    openai_http,
    sdk,
)


async def _pydantic(model: Any) -> OpenStream:
    from pydantic_ai.messages import ModelRequest, UserPromptPart
    from pydantic_ai.models import ModelRequestParameters

    messages = [ModelRequest(parts=[UserPromptPart(content="x")])]
    stream = await model.request_stream(messages, None, ModelRequestParameters()).__aenter__()
    return OpenStream(aiter(stream), stream.get, lambda _: stream.get())


async def _pydantic_anthropic(http: Any) -> OpenStream:
    import anthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = anthropic.AsyncAnthropic(api_key="none", http_client=http)
    return await _pydantic(AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client)))


async def _pydantic_chat(http: Any) -> OpenStream:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return await _pydantic(
        OpenAIChatModel("m", provider=OpenAIProvider(openai_client=openai_client(http)))
    )


async def _pydantic_responses(http: Any) -> OpenStream:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return await _pydantic(
        OpenAIResponsesModel("m", provider=OpenAIProvider(openai_client=openai_client(http)))
    )


def _pydantic_outcome(events: list[Any], response: Any) -> Outcome:
    text = "".join(part.content for part in response.parts if part.part_kind == "text")
    calls = [part for part in response.parts if part.part_kind == "tool-call"]
    return Outcome(text, [call.args_as_dict() for call in calls])


async def _litellm(http: Any) -> OpenStream:
    # Else litellm downloads prices when it is imported.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    # The workloads repeat deltas, which litellm would report as a model in a loop.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 10**9
    request = {**CHAT_REQUEST, "model": "openai/m"}
    stream: Any = await litellm.acompletion(**request, stream=True, client=openai_client(http))
    return OpenStream(aiter(stream))


async def _any_llm(http: Any) -> OpenStream:
    import any_llm

    model: Any = any_llm.AnyLLM.create("openai", api_key="none", http_client=http)
    return OpenStream(aiter(await model.acompletion(**CHAT_REQUEST, stream=True)))


_PYDANTIC: Final[dict[str, Any]] = {
    "distribution": "pydantic-ai-slim",
    "depths": ("snapshots", "response"),
}

FRAMEWORKS: Final[tuple[Contestant, ...]] = (
    *sdk(
        "pydantic-ai",
        "messages",
        _pydantic_anthropic,
        _pydantic_outcome,
        anthropic_http,
        **_PYDANTIC,
    ),
    *sdk("pydantic-ai", "chat", _pydantic_chat, _pydantic_outcome, openai_http, **_PYDANTIC),
    *sdk(
        "pydantic-ai",
        "responses",
        _pydantic_responses,
        _pydantic_outcome,
        openai_http,
        **_PYDANTIC,
    ),
    *sdk("litellm", "chat", _litellm, chat_outcome, openai_http),
    *sdk("any-llm", "chat", _any_llm, chat_outcome, openai_http, distribution="any-llm-sdk"),
)
