"""Every shape of failure is read, whatever object, list or text it is in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorKind
from streamlib_parsers.events import Failed
from streamlib_parsers.protocol import WIRE_APIS, parse_body
from tests.support.cases import each_case
from tests.support.error_bodies import (
    google,
    openai,
)

SHAPES: list[tuple[str, Any, dict[str, str], ErrorKind, str | None, str]] = [
    (
        "openrouter unwraps its upstream",
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "provider_name": "X",
                    "raw": json.dumps(
                        openai(
                            "This endpoint's maximum context length is 8", "invalid_request_error"
                        )
                    ),
                },
            },
            "user_id": "u",
        },
        {},
        "context_window_exceeded",
        "invalid_request_error",
        "Provider returned error; This endpoint's maximum context length is 8",
    ),
    (
        "openrouter raw text",
        {
            "error": {
                "message": "Provider returned error",
                "code": 429,
                "metadata": {"raw": "x is temporarily rate-limited"},
            }
        },
        {},
        "rate_limited",
        "429",
        "Provider returned error; x is temporarily rate-limited",
    ),
    (
        "openrouter in mid-stream",
        {
            "id": "gen",
            "provider": "x",
            "error": {"code": 502, "message": "Upstream died"},
            "choices": [{"delta": {"content": ""}, "finish_reason": "error", "index": 0}],
        },
        {},
        "server_error",
        "502",
        "Upstream died",
    ),
    (
        "vllm",
        {
            "error": {
                "object": "error",
                "message": "bad",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
        {},
        "invalid_request",
        "BadRequestError",
        "bad",
    ),
    (
        "vllm, older",
        {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400},
        {},
        "invalid_request",
        "BadRequestError",
        "bad",
    ),
    (
        "groq",
        {"x_groq": {"id": "req", "error": "over capacity"}},
        {},
        "overloaded",
        None,
        "over capacity",
    ),
    (
        "cerebras",
        {"error": {"message": "no", "type": "server_error", "code": ""}, "status_code": 500},
        {},
        "server_error",
        "server_error",
        "no",
    ),
    (
        "xai",
        {"code": "invalid-argument", "error": "Model not found: grok-x"},
        {},
        "not_found",
        "invalid-argument",
        "Model not found: grok-x",
    ),
    (
        "mistral",
        {
            "object": "error",
            "message": {"detail": [{"loc": ["body", "n"], "msg": "too big"}]},
            "type": "invalid_request_error",
            "code": "1210",
        },
        {},
        "invalid_request",
        "invalid_request_error",
        "body.n: too big",
    ),
    (
        "mistral key",
        {"detail": "Unauthorized", "status": 401},
        {},
        "authentication",
        "401",
        "Unauthorized",
    ),
    (
        "fastapi",
        {"detail": [{"loc": ["body", "x"], "msg": "Field required", "type": "missing"}]},
        {},
        "invalid_request",
        "missing",
        "body.x: Field required",
    ),
    (
        "z.ai rate",
        {"error": {"code": "1305", "message": "busy"}},
        {},
        "rate_limited",
        "1305",
        "busy",
    ),
    (
        "z.ai concurrency",
        {"error": {"code": "1302", "message": "busy"}},
        {},
        "rate_limited",
        "1302",
        "busy",
    ),
    (
        "z.ai balance",
        {"error": {"code": "1113", "message": "pay"}},
        {},
        "quota_exhausted",
        "1113",
        "pay",
    ),
    (
        "z.ai length",
        {"error": {"code": "1261", "message": "long"}},
        {},
        "context_window_exceeded",
        "1261",
        "long",
    ),
    (
        "minimax balance",
        {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
        {},
        "quota_exhausted",
        "1008",
        "insufficient balance",
    ),
    (
        "minimax rate",
        {"base_resp": {"status_code": 1002, "status_msg": "x"}},
        {},
        "rate_limited",
        "1002",
        "x",
    ),
    (
        "minimax key",
        {"base_resp": {"status_code": 1004, "status_msg": "x"}},
        {},
        "authentication",
        "1004",
        "x",
    ),
    (
        "minimax tokens",
        {"base_resp": {"status_code": 1039, "status_msg": "x"}},
        {},
        "context_window_exceeded",
        "1039",
        "x",
    ),
    (
        "minimax params",
        {"base_resp": {"status_code": 2013, "status_msg": "x"}},
        {},
        "invalid_request",
        "2013",
        "x",
    ),
    (
        "moonshot busy",
        openai("m", "engine_overloaded_error"),
        {},
        "overloaded",
        "engine_overloaded_error",
        "m",
    ),
    (
        "moonshot rate",
        openai("m", "rate_limit_reached_error"),
        {},
        "rate_limited",
        "rate_limit_reached_error",
        "m",
    ),
    (
        "moonshot quota",
        openai("m", "exceeded_current_quota_error"),
        {},
        "quota_exhausted",
        "exceeded_current_quota_error",
        "m",
    ),
    (
        "dashscope filter",
        openai("m", None, "data_inspection_failed"),
        {},
        "content_filter",
        "data_inspection_failed",
        "m",
    ),
    (
        "dashscope flat",
        {"code": "InvalidParameter", "message": "m", "request_id": "r"},
        {},
        "invalid_request",
        "InvalidParameter",
        "m",
    ),
    (
        "dashscope as a stream",
        'id:1\nevent:error\n:HTTP_STATUS/400\ndata:{"code":"InvalidParameter","message":"m"}\n\n',
        {},
        "invalid_request",
        "InvalidParameter",
        "m",
    ),
    (
        "ollama",
        {"error": "model 'x' not found", "status_code": 404},
        {},
        "not_found",
        "404",
        "model 'x' not found",
    ),
    (
        "gemini in a list",
        [google("INVALID_ARGUMENT", 400, "bad")],
        {},
        "invalid_request",
        "INVALID_ARGUMENT",
        "bad",
    ),
    (
        "bedrock header",
        {"message": "m"},
        {"x-amzn-ErrorType": "ThrottlingException:http://internal.amazon.com/coral/"},
        "rate_limited",
        "ThrottlingException",
        "m",
    ),
    (
        "bedrock frame header",
        {"message": "m"},
        {":exception-type": "throttlingException"},
        "rate_limited",
        "throttlingException",
        "m",
    ),
    (
        "bedrock as a key",
        {"throttlingException": {"message": "m"}},
        {},
        "rate_limited",
        "throttlingException",
        "m",
    ),
    (
        "bedrock as a code",
        {"code": "modelStreamErrorException", "message": "m", "originalStatusCode": 400},
        {},
        "invalid_request",
        "modelStreamErrorException",
        "m",
    ),
    (
        "responses, nested",
        {
            "type": "error",
            "sequence_number": 2,
            "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "m"},
        },
        {},
        "quota_exhausted",
        "insufficient_quota",
        "m",
    ),
    (
        "responses, flat",
        {
            "type": "error",
            "code": "server_error",
            "message": "m",
            "param": None,
            "sequence_number": 3,
        },
        {},
        "server_error",
        "server_error",
        "m",
    ),
    (
        "responses, failed",
        {
            "type": "response.failed",
            "response": {
                "id": "r",
                "status": "failed",
                "metadata": {"code": "slow_down"},
                "error": {"code": "rate_limit_exceeded", "message": "m"},
            },
        },
        {},
        "rate_limited",
        "rate_limit_exceeded",
        "m",
    ),
    (
        "responses, an image",
        {
            "type": "response.failed",
            "response": {"error": {"code": "invalid_base64_image", "message": "m"}},
        },
        {},
        "invalid_request",
        "invalid_base64_image",
        "m",
    ),
    (
        "azure filter",
        openai(
            "filtered", None, "content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}
        ),
        {},
        "content_filter",
        "content_filter",
        "filtered",
    ),
    (
        "azure rate",
        {"error": {"code": "RateLimitReached", "message": "m", "details": "m"}},
        {},
        "rate_limited",
        "RateLimitReached",
        "m",
    ),
    (
        "cloudflare",
        {
            "success": False,
            "errors": [{"code": 10000, "message": "Authentication error"}],
            "status": 403,
        },
        {},
        "permission",
        "10000",
        "Authentication error",
    ),
    (
        "problem+json",
        {"type": "about:blank", "title": "Too Many Requests", "status": 429},
        {},
        "rate_limited",
        "429",
        "Too Many Requests",
    ),
    (
        "json inside a message",
        {"error": {"message": json.dumps(google("RESOURCE_EXHAUSTED", 429, "deep")), "code": 500}},
        {},
        "rate_limited",
        "RESOURCE_EXHAUSTED",
        "deep",
    ),
    ("text", b"upstream connect error", {}, "server_error", None, "upstream connect error"),
    (
        "html",
        (
            b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head>"
            b"<body>rate limit</body></html>"
        ),
        {},
        "server_error",
        None,
        "502 Bad Gateway",
    ),
    ("no message", {"error": {}}, {}, "server_error", None, "an error without a message"),
]


@each_case("body, headers, kind, code, message", [case[1:] for case in SHAPES])
def test_classify_reads_every_shape(
    body: Any, headers: dict[str, str], kind: ErrorKind, code: str | None, message: str
) -> None:
    info = classify(None, body, headers)
    assert (info.kind, info.code, info.message) == (kind, code, message)


@each_case("body, headers, kind, code, message", [case[1:] for case in SHAPES])
def test_classify_treats_text_bytes_and_value_alike(
    body: Any, headers: dict[str, str], kind: ErrorKind, code: str | None, message: str
) -> None:
    text = body
    if isinstance(body, bytes):
        text = body.decode()
    elif not isinstance(body, str):
        text = json.dumps(body)
    of_text = classify(None, text, headers)
    of_bytes = classify(None, text.encode(), headers)
    of_bytearray = classify(None, bytearray(text.encode()), headers)
    assert of_text == of_bytes == of_bytearray
    assert (of_text.kind, of_text.code, of_text.message) == (kind, code, message)


@pytest.mark.parametrize("number", [f"9{'0' * 308}", f"-1{'0' * 400}", f"1{'0' * 5000}", "1e999"])
def test_number_that_is_not_a_float_is_not_a_code(number: str) -> None:
    """Found by fuzzing: an error code of 309 digits raised OverflowError on every wire."""
    for wire_api in WIRE_APIS:
        body = f'{{"error":{{"code":{number},"message":"busy","retry_after":{number}}}}}'.encode()
        events = parse_body(wire_api, body, status=503)
        assert isinstance(events[-1], Failed)
        assert events[-1].error.code is None
