"""boto3's client for Bedrock; it knows no event loop, so it runs in a thread that is left behind
where it hangs."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import boto3
from botocore.config import Config

from lab.peers.peer import READ, Ask, Peer, keep
from lab.peers.told import Told


async def ask(asked: Ask, told: Told) -> None:
    """In a thread of its own."""
    failed: list[BaseException] = []
    done = threading.Event()
    threading.Thread(target=partial(drained, asked, told, failed, done), daemon=True).start()
    while not done.is_set():  # noqa: ASYNC110  # a thread that may never end
        await anyio.sleep(0.01)
    if failed:
        raise failed[0]


def drained(asked: Ask, told: Told, failed: list[BaseException], done: threading.Event) -> None:
    """The whole stream."""
    config = Config(read_timeout=READ, retries={"max_attempts": asked.retries})
    keys = {"aws_access_key_id": "AK", "aws_secret_access_key": "s", "region_name": "us-east-1"}
    client: Any = boto3.client("bedrock-runtime", endpoint_url=asked.url, config=config, **keys)
    blocks: dict[int, list[str]] = {}
    try:
        answer = client.converse_stream(
            modelId="m-1", messages=[{"role": "user", "content": [{"text": "x"}]}]
        )
        for event in answer["stream"]:
            read(event, blocks, told)
    except BaseException as error:  # noqa: BLE001  # handed to the loop
        failed.append(error)
    finally:
        told.calls = [(name, arguments) for name, arguments in blocks.values()]
        done.set()


def read(event: Any, blocks: dict[int, list[str]], told: Told) -> None:
    """One event."""
    if tool := event.get("contentBlockStart", {}).get("start", {}).get("toolUse"):
        blocks[event["contentBlockStart"]["contentBlockIndex"]] = [tool["name"], ""]
        keep(told, "call")
    delta = event.get("contentBlockDelta", {}).get("delta", {})
    told.text += delta.get("text", "")
    thought = delta.get("reasoningContent", {})
    told.reasoning += thought.get("text", "")
    told.signatures += [thought["signature"]] if "signature" in thought else []
    if "toolUse" in delta:
        blocks[event["contentBlockDelta"]["contentBlockIndex"]][1] += delta["toolUse"]["input"]
    told.stop = event.get("messageStop", {}).get("stopReason") or told.stop
    if usage := event.get("metadata", {}).get("usage"):
        told.input_tokens, told.output_tokens = usage["inputTokens"], usage["outputTokens"]


PEERS = (Peer("botocore", "botocore", {"converse": ask}, ("botocore",)),)
