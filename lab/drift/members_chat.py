"""Members of the openai SDK's Chat Completions: every field of a chunk and of a whole body."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from openai.types.chat.chat_completion_message import ChatCompletionMessage

from lab.drift.instances import Instances
from lab.drift.member import Member
from tests.support.chat_streams import sse

Json = dict[str, Any]

POSITIONS: Final = {"index", "object", "type", "obfuscation"}
"""Where a member belongs, what it is, and random padding against a reader of packet sizes."""


def members() -> Iterator[Member]:
    """Each field of a delta and of a message alone, then all fields around them."""
    make = Instances()
    for name in ChoiceDelta.model_fields:
        for delta in _values(make, ChoiceDelta, name):
            chunk = _chunk(delta, None)
            body = sse(chunk, _chunk({}, "stop"))
            yield Member("openai", f"ChoiceDelta.{name}", "chat", delta, body, POSITIONS)
    for name in ChatCompletionMessage.model_fields:
        for message in _values(make, ChatCompletionMessage, name):
            whole = _whole(message)
            yield _member(f"ChatCompletionMessage.{name}", message, json.dumps(whole).encode())
    for instance in make.of_model(ChatCompletionChunk):
        instance["choices"] = [_plain(instance["choices"][0], "delta")]
        body = sse(instance, _chunk({}, "stop"))
        yield Member("openai", "ChatCompletionChunk", "chat", instance, body, POSITIONS)
    for instance in make.of_model(ChatCompletion):
        instance["choices"] = [_plain(instance["choices"][0], "message")]
        yield _member("ChatCompletion", instance, json.dumps(instance).encode())


def _values(make: Instances, model: Any, name: str) -> list[Json]:
    values = make.of_type(model.model_fields[name].annotation, name, 1)
    if name in ("tool_calls", "function_call"):
        # Every call needs its index; a list has one element in each instance.
        for value in values:
            _number(value)
    return [{"role": "assistant", name: value} for value in values]


def _number(value: Any) -> None:
    if isinstance(value, list) and "index" in value[0]:
        value[0]["index"] = 0


def _chunk(delta: Json, finish: str | None) -> Json:
    return {
        "id": "c1",
        "model": "m",
        "object": "chat.completion.chunk",
        "created": 1,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def _whole(message: Json) -> Json:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "model": "m", "object": "chat.completion", "choices": [choice]}


def _plain(choice: Json, field: str) -> Json:
    """The choice with a plain text: the other fields of the text are members of their own."""
    return choice | {"index": 0, field: {"role": "assistant", "content": "Hi", "refusal": "No"}}


def _member(name: str, instance: Json, body: bytes) -> Member:
    return Member("openai", name, "chat", instance, body, POSITIONS, is_stream=False)
