"""The official SDKs, each as a function that asks the gateway and says what it got."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import anyio
import httpx
import httpx2

from tests.support.sdks import LazySDK, anthropic, openai

genai: Final = LazySDK("google.genai")
URL: Final = "http://127.0.0.1:8900"
HELLO: Final[Any] = [{"role": "user", "content": "Hello"}]

Ask = Callable[[Any, bool], Awaitable[AsyncIterator[str]]]
"""Asks over an HTTP client, for a stream or for one body; the texts of the response."""


async def ask_chat(http: Any, stream: bool) -> AsyncIterator[str]:
    """OpenAI's SDK, Chat."""
    client = openai.AsyncOpenAI(
        base_url=f"{URL}/v1", api_key="any", http_client=http, max_retries=0
    )
    response = await client.chat.completions.create(model="m", messages=HELLO, stream=stream)
    if not stream:
        return _one(response.choices[0].message.content)
    return _each(response, lambda chunk: chunk.choices and chunk.choices[0].delta.content)


async def ask_responses(http: Any, stream: bool) -> AsyncIterator[str]:
    """OpenAI's SDK, Responses."""
    client = openai.AsyncOpenAI(
        base_url=f"{URL}/v1", api_key="any", http_client=http, max_retries=0
    )
    response = await client.responses.create(model="m", input="Hello", stream=stream)
    if not stream:
        return _one(response.output_text)
    return _each(response, _responses_text)


def _responses_text(event: Any) -> str | None:
    if event.type == "response.output_text.delta":
        text: str = event.delta
        return text
    return None


async def ask_messages(http: Any, stream: bool) -> AsyncIterator[str]:
    """Anthropic's SDK."""
    client = anthropic.AsyncAnthropic(base_url=URL, api_key="any", http_client=http, max_retries=0)
    response = await client.messages.create(model="m", max_tokens=9, messages=HELLO, stream=stream)
    if not stream:
        return _one(response.content[0].text)
    return _each(response, lambda event: getattr(getattr(event, "delta", None), "text", None))


async def ask_gemini(http: Any, stream: bool) -> AsyncIterator[str]:
    """Google's SDK."""
    types = genai.types
    options = types.HttpOptions(
        base_url=URL, httpx_async_client=http, retry_options=types.HttpRetryOptions(attempts=1)
    )
    models = genai.Client(api_key="any", http_options=options).aio.models
    if not stream:
        return _one((await models.generate_content(model="m", contents="Hello")).text)
    response = await models.generate_content_stream(model="m", contents="Hello")
    return _each(response, lambda chunk: chunk.text)


async def _one(text: str) -> AsyncIterator[str]:
    yield text


async def _each(
    response: AsyncIterator[Any], text_of: Callable[[Any], str | None]
) -> AsyncIterator[str]:
    async for event in response:
        text = text_of(event)
        if text:
            yield text


SDKS: Final[dict[str, Ask]] = {
    "openai, Chat": ask_chat,
    "openai, Responses": ask_responses,
    "anthropic": ask_messages,
    "google-genai": ask_gemini,
}


def library_of(ask: Ask) -> Any:
    """The HTTP library that an SDK takes clients of."""
    return httpx2 if ask is ask_messages else httpx


async def seen(ask: Ask, http: Any, stream: bool) -> str:
    """What one client sees of one response, and after how many seconds."""
    start = anyio.current_time()
    first: float | None = None
    try:
        async for _ in await ask(http, stream):
            first = first or anyio.current_time()
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises is the result
        what = named(error)
        if first is not None:
            what = f"the text so far, then {what}"
        return f"{what}, {when(anyio.current_time() - start)}"
    if first is None:
        return "nothing"
    return f"the response of the second, {when(first - start)}"


def named(error: Exception) -> str:
    """An exception of an SDK in the table: its class, its HTTP status and delay."""
    name = f"`{type(error).__name__}`"
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    # Anthropic's has the status of the stream in which the error came.
    if isinstance(status, int) and status != 200:
        name += f" {status}"
    headers = getattr(getattr(error, "response", None), "headers", {})
    if "retry-after" in headers:
        name += f", `retry-after: {headers['retry-after']}`"
    return name


def when(seconds: float) -> str:
    """A time in the table."""
    # The clock jumps a little while an SDK looks in a thread which system it runs on.
    if seconds < 0.3:
        return "at once"
    if seconds < 60:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min"
