"""botocore as the reader of Bedrock output: it validates requests and parses responses."""

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
    """The body of a Converse request, which botocore validated."""
    body: dict[str, Any] = msgspec.json.decode(request.body)
    model = unquote(urlsplit(request.url).path.split("/")[-2])
    shape = operation("ConverseStream").input_shape
    report = ParamValidator().validate(_params({**body, "modelId": model}, shape), shape)
    assert not report.has_errors(), report.generate_report()
    _check_messages(body)
    return body


def _params(value: Any, shape: Any) -> Any:
    """JSON as botocore's callers pass it: blobs are bytes."""
    kind = shape.type_name
    if kind == "blob":
        return base64.b64decode(value, validate=True)
    if kind == "structure" and not getattr(shape, "is_document_type", False):
        params = dict(value)
        for key in params.keys() & shape.members.keys():
            params[key] = _params(value[key], shape.members[key])
        return params
    if kind == "list":
        return [_params(element, shape.member) for element in value]
    if kind == "map":
        return {key: _params(inner, shape.value) for key, inner in value.items()}
    if kind == "string" and shape.metadata.get("pattern"):
        assert re.fullmatch(shape.metadata["pattern"], value), (shape.name, value)
    return value


def _check_messages(body: dict[str, Any]) -> None:
    """Checks rules that the service model lacks: single members, nothing empty, roles alternate."""
    for turn in body["messages"]:
        assert turn["content"], turn
        for block in turn["content"]:
            assert len(block) == 1, block
            assert block.get("text", "x").strip(), block
    roles = [turn["role"] for turn in body["messages"]]
    assert roles[0] == "user"
    assert all(a != b for a, b in pairwise(roles)), roles


# --- responses ---


def parsed_events(body: bytes, wire: str = "converse") -> Iterator[dict[str, Any]]:
    """The events of a stream as boto3 returns them; an exception is `{"exception": code}`."""
    shape = operation(OPERATIONS[wire]).output_shape
    shape = shape.members[shape.event_stream_name]
    parser = create_parser("rest-json")
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    for message in buffer:
        response = message.to_response_dict()
        parsed = parser._event_stream_parser.parse(response, shape)
        if response["status_code"] == 400:
            yield {"exception": parsed["Error"]["Code"]}
        else:
            yield parsed
    assert not buffer._data


def parsed_response(body: bytes, status: int = 200) -> dict[str, Any]:
    """A complete Converse body as boto3 returns it."""
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
    if isinstance(request, str):
        body = request.encode()
    elif request:
        body = json.dumps(request).encode()
    else:
        body = b""
    body = re.sub(rb"<BASE64 [^>]*>", b"AAAA", body)  # media was left out of the recordings
    url = (recording.meta.get("url") or "").replace("<AWS_REGION>", "us-east-1")
    return body, urlsplit(url).path


def response_of(recording: Recording) -> Response:
    """The response in a recorded body."""
    return accumulate(parsed(recording))
