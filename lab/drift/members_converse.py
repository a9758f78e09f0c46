"""Members of botocore's shapes of Bedrock Converse: each stream event, each block of a body."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from botocore.loaders import Loader
from botocore.model import ServiceModel

from lab.drift.member import Member
from lab.drift.shapes import ShapeInstances
from tests.support.converse_frames import begin, delta, event, exception, stop

Json = dict[str, Any]

POSITIONS: Final = {"contentBlockIndex"}

STARTS: Final[dict[str, Json]] = {
    "toolUse": {"toolUse": {"toolUseId": "t1", "name": "look"}},
    "toolResult": {"toolResult": {"toolUseId": "t1", "type": "x", "status": "success"}},
    "image": {"image": {"format": "png"}},
}
"""The start of the block that a delta belongs to; other deltas have none."""

EXCEPTIONS: Final = "Exception"


def members() -> Iterator[Member]:
    """Each start, delta and ending event of a stream, and each block and field of a body."""
    model = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
    shape = model.shape_for
    for start in ShapeInstances().of_shape(shape("ContentBlockStart")):
        body = _stream(begin(0, **start) + stop(0))
        yield _member(f"ContentBlockStart.{_only(start)}", start, body)
    for instance in ShapeInstances().of_shape(shape("ContentBlockDelta")):
        name = _only(instance)
        opening = begin(0, **STARTS[name]) if name in STARTS else b""
        body = _stream(opening + delta(0, **instance) + stop(0))
        yield _member(f"ContentBlockDelta.{name}", instance, body)
    for end in ShapeInstances().of_shape(shape("MessageStopEvent")):
        body = event("messageStart", role="assistant") + event("messageStop", **end) + _metadata()
        yield _member("MessageStopEvent", end, body)
    for metadata in ShapeInstances().of_shape(shape("ConverseStreamMetadataEvent")):
        body = event("messageStart", role="assistant")
        body += event("messageStop", stopReason="end_turn") + event("metadata", **metadata)
        yield _member("ConverseStreamMetadataEvent", metadata, body)
    for name, member in shape("ConverseStreamOutput").members.items():
        if name.endswith(EXCEPTIONS):
            for error in ShapeInstances().of_shape(member):
                yield _member(f"ConverseStreamOutput.{name}", error, exception(name, **error))
    for block in ShapeInstances().of_shape(shape("ContentBlock")):
        yield _whole(f"ContentBlock.{_only(block)}", block, _response([block]))
    for response in ShapeInstances().of_shape(shape("ConverseResponse")):
        # The blocks are members of their own.
        response["output"] = _response([{"text": "Hi"}])["output"]
        yield _whole("ConverseResponse", response, response)


def _stream(block: bytes) -> bytes:
    opening = event("messageStart", role="assistant")
    return opening + block + event("messageStop", stopReason="end_turn") + _metadata()


def _metadata() -> bytes:
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return event("metadata", usage=usage, metrics={"latencyMs": 1})


def _response(content: list[Json]) -> Json:
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "stopReason": "end_turn"}


def _only(union: Json) -> str:
    return next(iter(union))


def _member(name: str, instance: Json, body: bytes) -> Member:
    return Member("botocore", name, "converse", instance, body, POSITIONS)


def _whole(name: str, instance: Json, body: Json) -> Member:
    data = json.dumps(body).encode()
    return Member("botocore", name, "converse", instance, data, POSITIONS, is_stream=False)
