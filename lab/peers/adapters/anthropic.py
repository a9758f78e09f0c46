"""The official SDK for Messages: `create(stream=True)` with the additions its README shows, and the
`stream()` helper."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2

from lab.peers.peer import READ, Ask, Peer, attr
from lab.peers.told import Told

MESSAGES: Any = [{"role": "user", "content": "x"}]


def client(asked: Ask) -> anthropic.AsyncAnthropic:
    """With the key of nobody."""
    timeout: Any = httpx2.Timeout(READ)
    return anthropic.AsyncAnthropic(
        api_key="k-1", base_url=asked.url, max_retries=asked.retries, timeout=timeout
    )


async def create(asked: Ask, told: Told) -> None:
    """Raw events, put together by hand."""
    async with client(asked) as made:
        stream = await made.messages.create(
            model="m-1", max_tokens=9, messages=MESSAGES, stream=True
        )
        blocks: dict[int, dict[str, Any]] = {}
        try:
            async for event in stream:
                gather(event, blocks, told)
                if asked.leave and any(one["text"] for one in blocks.values()):
                    await stream.close()
                    break
        finally:
            fold(blocks, told)


def gather(event: Any, blocks: dict[int, dict[str, Any]], told: Told) -> None:
    """One event into its block."""
    kind = attr(event, "type")
    if kind == "message_start":
        told.input_tokens, told.output_tokens = (
            attr(event, "message", "usage", "input_tokens"),
            attr(event, "message", "usage", "output_tokens"),
        )
    elif kind == "content_block_start":
        start = event.content_block
        blocks[event.index] = {
            "type": attr(start, "type"),
            "name": attr(start, "name"),
            "text": attr(start, "text", default=""),
            "args": "",
            "thinking": "",
            "signature": "",
        }
    elif kind == "content_block_delta":
        place, delta = blocks[event.index], event.delta
        place["text"] += attr(delta, "text", default="")
        place["args"] += attr(delta, "partial_json", default="")
        place["thinking"] += attr(delta, "thinking", default="")
        place["signature"] += attr(delta, "signature", default="")
    elif kind == "message_delta":
        told.stop = attr(event, "delta", "stop_reason")
        told.output_tokens = attr(event, "usage", "output_tokens")


def fold(blocks: dict[int, dict[str, Any]], told: Told) -> None:
    """Blocks in their order."""
    kinds = {"text": "text", "thinking": "reasoning", "tool_use": "call"}
    for one in blocks.values():
        told.order += [kinds[one["type"]]] if one["type"] in kinds else []
        told.text += one["text"]
        told.reasoning += one["thinking"]
        told.signatures += [one["signature"]] if one["signature"] else []
        told.calls += [(one["name"], one["args"])] if one["type"] == "tool_use" else []


async def stream(asked: Ask, told: Told) -> None:
    """The helper, and the message it has put together."""
    async with (
        client(asked) as made,
        made.messages.stream(model="m-1", max_tokens=9, messages=MESSAGES) as answer,
    ):
        try:
            async for event in answer:
                if asked.leave and event.type == "text":
                    break
            if not asked.leave:
                final(await answer.get_final_message(), told)
        finally:
            snapshot = getattr(answer, "_AsyncMessageStream__final_message_snapshot", None)
            if snapshot is not None and not told.order:
                final(snapshot, told)


def final(message: Any, told: Told) -> None:
    """A whole message."""
    kinds = {"text": "text", "thinking": "reasoning", "tool_use": "call"}
    for one in message.content:
        told.order += [kinds[one.type]] if one.type in kinds else []
        told.text += attr(one, "text", default="")
        told.reasoning += attr(one, "thinking", default="")
        told.signatures += [one.signature] if attr(one, "signature") else []
        told.calls += [(one.name, one.input)] if one.type == "tool_use" else []
    told.stop = message.stop_reason
    told.input_tokens, told.output_tokens = message.usage.input_tokens, message.usage.output_tokens


async def replay(asked: Ask, told: Told) -> None:
    """Two turns: the message's content goes back as it is, as the SDK's own tool examples do."""
    turns: list[Any] = [*MESSAGES]
    async with client(asked) as made:
        for _ in range(2):
            async with made.messages.stream(
                model="claude-sonnet-4-5", max_tokens=2000, messages=turns
            ) as answer:
                message = await answer.get_final_message()
            results = [
                {"type": "tool_result", "tool_use_id": one.id, "content": "ok"}
                for one in message.content
                if one.type == "tool_use"
            ]
            turns += [
                {"role": "assistant", "content": message.content},
                {"role": "user", "content": results or "on"},
            ]


PEERS = (
    Peer("anthropic create", "anthropic", {"messages": create}, ("anthropic",)),
    Peer("anthropic stream", "anthropic", {"messages": stream}, ("anthropic",), replay),
)
