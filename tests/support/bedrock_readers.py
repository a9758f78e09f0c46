"""botocore as the reader of what we write for Bedrock: its service model checks requests, its event stream and parsers read answers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("botocore", reason="botocore is the reader here; it comes with the dev extra")

import msgspec
from botocore.eventstream import EventStreamBuffer
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.parsers import create_parser
from botocore.validate import ParamValidator

from streamlib import Request, Response, accumulate
from tests.support.shared import CORPUS, Recording, require
from tests.support.wires import parsed

OPERATIONS: Final = {"converse": "ConverseStream", "invoke": "InvokeModelWithResponseStream"}


@cache
def operation(name: str) -> Any:
    """An operation of bedrock-runtime."""
    return ServiceModel(
        Loader().load_service_model("bedrock-runtime", "service-2"), "bedrock-runtime"
    ).operation_model(name)


# --- requests ---


def validated(request: Request) -> dict[str, Any]:
    """The body of a Converse request, after botocore found nothing wrong with it."""
    body: dict[str, Any] = msgspec.json.decode(request.body)
    model = unquote(urlsplit(request.url).path.split("/")[-2])
    shape = operation("ConverseStream").input_shape
    report = ParamValidator().validate(_params({**body, "modelId": model}, shape), shape)
    assert not report.has_errors(), report.generate_report()
    _union_members(body)
    return body


def _params(value: Any, shape: Any) -> Any:
    """JSON as botocore's callers give it: blobs are bytes."""
    kind = shape.type_name
    if kind == "blob":
        return base64.b64decode(value, validate=True)
    if kind == "structure" and not getattr(shape, "is_document_type", False):
        return {
            key: _params(one, shape.members[key]) if key in shape.members else one
            for key, one in value.items()
        }
    if kind == "list":
        return [_params(one, shape.member) for one in value]
    if kind == "map":
        return {key: _params(one, shape.value) for key, one in value.items()}
    if kind == "string" and shape.metadata.get("pattern"):
        assert re.fullmatch(shape.metadata["pattern"], value), (shape.name, value)
    return value


def _union_members(body: dict[str, Any]) -> None:
    """Exactly one member a block, nothing empty, roles in turn: what the service model does not say."""
    for turn in body["messages"]:
        assert turn["content"], turn
        for block in turn["content"]:
            assert len(block) == 1, block
            assert block.get("text", "x").strip(), block
    roles = [turn["role"] for turn in body["messages"]]
    assert roles[0] == "user"
    assert all(a != b for a, b in pairwise(roles)), roles


# --- answers ---


def streamed(body: bytes, wire: str = "converse") -> Iterator[dict[str, Any]]:
    """The events of a stream as a caller of boto3 gets them; an exception is `{"exception": code}`."""
    shape = operation(OPERATIONS[wire]).output_shape
    shape = shape.members[shape.event_stream_name]
    parser = create_parser("rest-json")
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    for message in buffer:
        response = message.to_response_dict()
        parsed = parser._event_stream_parser.parse(response, shape)
        yield {"exception": parsed["Error"]["Code"]} if response["status_code"] == 400 else parsed
    assert not buffer._data


def whole(body: bytes, status: int = 200) -> dict[str, Any]:
    """A whole Converse body as a caller of boto3 gets it."""
    parsed: dict[str, Any] = create_parser("rest-json").parse(
        {"body": body, "headers": {}, "status_code": status}, operation("Converse").output_shape
    )
    return parsed


# --- recorded conversations ---


def conversations(wire: str) -> list[list[Recording]]:
    """The recorded conversations of one folder of the corpus; skips where there is no corpus."""
    lines = [
        json.loads(line)
        for line in require(CORPUS / "conversations.jsonl").read_bytes().splitlines()
    ]
    return [
        [Recording(CORPUS / turn) for turn in line["turns"]]
        for line in lines
        if line["wire"] == wire
    ]


def request_of(recording: Recording) -> tuple[bytes, str]:
    """The recorded request and its path; empty where none was recorded."""
    request = recording.meta.get("request_json")
    body = (
        request.encode()
        if isinstance(request, str)
        else json.dumps(request).encode()
        if request
        else b""
    )
    body = re.sub(rb"<BASE64 [^>]*>", b"AAAA", body)  # media was left out of the recordings
    return body, urlsplit(
        (recording.meta.get("url") or "").replace("<AWS_REGION>", "us-east-1")
    ).path


def answer_of(recording: Recording) -> Response:
    """What the recorded body said."""
    return accumulate(parsed(recording))
