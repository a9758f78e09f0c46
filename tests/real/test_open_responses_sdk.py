"""OpenAI's client, which reads Open Responses too, at servers that store responses and do not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread
import openai
import pytest

from streamlib.gateway import gateway
from streamlib.testing import running
from streamlib_parsers.items import WireApi
from tests.support.asgi_servers import Served, serving_app
from tests.support.loops import asyncio_alone
from tests.support.served_gateways import loopback_gateway

pytestmark = [pytest.mark.real, asyncio_alone]


def create(url: str, **fields: Any) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        created = client.responses.create(model="gpt-6", **fields)
        return list(created) if fields.get("stream") else created


async def in_thread(function: Callable[..., Any], *arguments: Any, **fields: Any) -> Any:
    """The SDK's client is synchronous, and the server runs on this loop."""
    return await anyio.to_thread.run_sync(partial(function, *arguments, **fields))


@asynccontextmanager
async def at_model(wire: WireApi) -> AsyncGenerator[Served]:
    async with loopback_gateway(wire) as made, serving_app(gateway(made)) as served:
        yield served


async def check_continuation(url: str) -> None:
    first = await in_thread(create, url, input="The word is papaya.", store=True)
    second = await in_thread(
        create, url, input="And?", store=True, previous_response_id=first.id, stream=True
    )
    assert second[-1].type == "response.completed"
    last = second[-1].response
    assert (first.store, last.previous_response_id) == (True, first.id)
    assert last.usage.input_tokens > first.usage.input_tokens


async def test_client_continues_a_kept_response(anyio_backend: str) -> None:
    async with running() as url:
        await check_continuation(url)
    async with at_model("responses") as served:
        await check_continuation(served.url)


async def test_client_hears_that_nothing_is_stored(anyio_backend: str) -> None:
    async with at_model("messages") as served:
        first = await in_thread(create, served.url, input="Hi", store=True)
        assert first.store is False
        with pytest.raises(openai.BadRequestError) as caught:
            await in_thread(create, served.url, input="And?", previous_response_id=first.id)
    assert caught.value.param == "previous_response_id"
    assert caught.value.type == "invalid_request_error"
