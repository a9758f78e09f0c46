"""Members of the unions of the anthropic SDK, each inside a whole response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import anthropic.types as stable
from anthropic.types import beta
from anthropic.types.beta import beta_raw_content_block_start_event as beta_start
from anthropic.types.raw_content_block_start_event import ContentBlock
from pydantic import BaseModel

from lab.drift.instances import Instances
from lab.drift.member import Member, models_of
from tests.support.messages_frames import block, end, frame, start

Json = dict[str, Any]

BLOCKS: Final[dict[str, Json]] = {
    "text_delta": {"type": "text", "text": ""},
    "citations_delta": {"type": "text", "text": ""},
    "input_json_delta": {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "compaction_delta": {"type": "compaction", "content": ""},
}
"""The block that a delta belongs to."""

POSITIONS: Final = {"index", "type"}
"""Where a member belongs, and what it is."""


def members() -> Iterator[Member]:
    """Every event, content block and delta of the stable and of the beta stream."""
    yield from _of("anthropic", stable, ContentBlock, stable.RawContentBlockDelta)
    yield from _of(
        "anthropic beta", beta, beta_start.ContentBlock, beta.BetaRawContentBlockDelta, "Beta"
    )


def _of(sdk: str, module: Any, blocks: Any, deltas: Any, prefix: str = "") -> Iterator[Member]:
    make = Instances()
    for model in models_of(blocks):
        for instance in make.of_model(model):
            body = start() + block(0, instance) + end()
            yield Member(sdk, model.__name__, "messages", instance, body, POSITIONS)
    for model in models_of(deltas):
        for instance in make.of_model(model):
            for delta in _as_sent(instance):
                body = start() + _with_delta(delta) + end()
                yield Member(sdk, model.__name__, "messages", delta, body, POSITIONS)
    message: type[BaseModel] = getattr(module, f"{prefix}Message")
    for instance in make.of_model(message):
        # The blocks are members of their own; a stream starts without any.
        instance |= {"content": [], "stop_reason": None, "stop_details": None}
        body = frame("message_start", message=instance) + end()
        yield Member(sdk, f"{prefix}RawMessageStartEvent", "messages", instance, body, POSITIONS)
    last: type[BaseModel] = getattr(module, f"{prefix}RawMessageDeltaEvent")
    for instance in make.of_model(last):
        body = start() + frame("message_delta", **_without_type(instance)) + frame("message_stop")
        yield Member(sdk, last.__name__, "messages", instance, body, POSITIONS)


def _as_sent(delta: Json) -> list[Json]:
    """`estimated_tokens` comes only where the text of the reasoning is left out."""
    if delta.get("estimated_tokens") is None:
        return [delta]
    return [delta | {"estimated_tokens": None}, delta | {"thinking": ""}]


def _with_delta(instance: Json) -> bytes:
    kind = instance["type"]
    return block(0, BLOCKS[kind], {"kind": kind, **_without_type(instance)})


def _without_type(instance: Json) -> Json:
    return {key: value for key, value in instance.items() if key != "type"}
