"""The official SDKs of Cohere and Mistral, which fewer people install than the larger ones."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.contestants import OpenStream, Outcome, parsed_arguments
from benchmarks.sdks import sdk

MESSAGES: Final = [{"role": "user", "content": "x"}]


async def _cohere(http: Any) -> OpenStream:
    import cohere

    client: Any = cohere.AsyncClientV2(api_key="none", httpx_client=http)
    return OpenStream(aiter(client.chat_stream(model="m", messages=MESSAGES)))


def _cohere_outcome(events: list[Any], response: Any) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[Any, str]] = []
    for event in events:
        if event.type == "content-delta":
            texts.append(event.delta.message.content.text or "")
        elif event.type == "tool-call-delta":
            function = event.delta.message.tool_calls.function
            fragments.append((event.index, function.arguments))
    return Outcome("".join(texts), parsed_arguments(fragments))


async def _mistral(http: Any) -> OpenStream:
    from mistralai.client import Mistral

    client: Any = Mistral(api_key="none", async_client=http)
    return OpenStream(aiter(await client.chat.stream_async(model="m", messages=MESSAGES)))


def _mistral_outcome(events: list[Any], response: Any) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[Any, str]] = []
    for event in events:
        for choice in event.data.choices:
            texts.append(choice.delta.content or "")
            for call in choice.delta.tool_calls or ():
                fragments.append((call.index, call.function.arguments))
    return Outcome("".join(texts), parsed_arguments(fragments))


def _httpx() -> str:
    return "httpx"


COHERE: Final = sdk("cohere", "cohere", _cohere, _cohere_outcome, _httpx)
MISTRAL: Final = sdk("mistralai", "chat", _mistral, _mistral_outcome, _httpx, depths=("events",))
