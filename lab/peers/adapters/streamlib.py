"""Ourselves, as a user would: a provider by its address, the stream in its block."""

from __future__ import annotations

from typing import Any

from lab.peers.peer import READ, Ask, Peer
from lab.peers.told import Told
from streamlib import Client, Deadlines, Prompt, Provider, ToolSpec, user
from streamlib.client.retry import RetryPolicy
from streamlib.request.build import Request
from streamlib_parsers import FunctionCall, Message, OutputTextDelta, Reasoning, Response
from streamlib_parsers.items import Origin
from streamlib_parsers.protocol import WIRE_APIS

PATIENCE = Deadlines(headers=READ, first_byte=READ, first_event=READ, idle=READ, total=30)


async def ask(asked: Ask, told: Told) -> None:
    """Any wire."""
    place = Provider(name="peer", wires=WIRE_APIS, base_url=asked.url, auth="x-api-key")
    request = Request(
        "POST",
        f"{asked.url}/v1/{asked.wire}",
        {"content-type": "application/json"},
        b"{}",
        [],
        asked.wire,
        "m-1",
        Origin(asked.wire, "peer", asked.url, "m-1"),  # type: ignore[arg-type]
    )
    options = {"deadlines": PATIENCE, "retry": RetryPolicy(retries=asked.retries)}
    async with Client(providers=(place,), api_key="k-1", **options) as client:  # type: ignore[arg-type]
        stream = client.stream(request)
        try:
            async with stream:
                async for event in stream:
                    if asked.leave and isinstance(event, OutputTextDelta):
                        break
        finally:
            read(stream.response, told)


def read(response: Response, told: Told) -> None:
    """What the response says."""
    told.text, told.reasoning = response.text, response.reasoning
    told.calls = [
        (call.name, call.arguments) for call in response.calls if isinstance(call, FunctionCall)
    ]
    kinds = {Message: "text", Reasoning: "reasoning", FunctionCall: "call"}
    told.order = [kinds[type(item)] for item in response.items if type(item) in kinds]
    told.signatures = [item.signature for item in response.items if item.signature]
    told.stop = response.stop_reason
    if response.usage:
        told.input_tokens, told.output_tokens = (
            response.usage.input_tokens,
            response.usage.output_tokens,
        )


async def replay(asked: Ask, told: Told) -> None:
    """Two turns on Messages, as the quick start has them."""
    place = Provider(name="peer", wires=("messages",), base_url=asked.url, auth="x-api-key")
    tools = [ToolSpec(name, schema={"type": "object"}) for name in ("f", "g")]
    async with Client(providers=(place,), api_key="k-1", deadlines=PATIENCE) as client:
        history: list[Any] = [user("x")]
        for _ in range(2):
            response = await client.respond(
                Prompt(history, tools=tools, reasoning="low"), model="peer:claude-sonnet-4-5"
            )
            history += response.items
            history += [
                call.output("ok") for call in response.calls if isinstance(call, FunctionCall)
            ]


PEERS = (Peer("streamlib", "streamlib", dict.fromkeys(WIRE_APIS, ask), ("streamlib",), replay),)
