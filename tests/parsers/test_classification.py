"""Every failure of every provider becomes one error, named by what the caller can do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import error_tables
from streamlib_parsers.classification import FREE_TIER, FREE_TIER_DAY, classify
from streamlib_parsers.error_tables import (
    CODES,
    OVERRIDING_RULES,
    TEXT_RULES,
    TYPE_STATUSES,
    TextRule,
    plain,
)
from streamlib_parsers.errors import RETRYABLE, ErrorInfo, ErrorKind
from tests.support.shared import CORPUS, require

NOW = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)
KINDS = set(get_args(ErrorKind))


def anthropic(kind: str, message: str = "…", **more: Any) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": kind, "message": message, **more},
        "request_id": "req_1",
    }


def openai(
    message: str = "…", kind: str | None = None, code: Any = None, **more: Any
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def google(
    status: str, code: int = 400, message: str = "…", *details: dict[str, Any]
) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def quota(quota_id: str, value: str | None = None) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": quota_id, "quotaValue": value}],
    }


def retry_info(delay: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def reason(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": name}


# ------------------------------------------------- statuses and types (wire reference, 5.4)

BY_STATUS: list[tuple[str, int | None, Any, ErrorKind, bool]] = [
    ("anthropic bad request", 400, anthropic("invalid_request_error"), "invalid_request", False),
    ("anthropic 422", 422, anthropic("invalid_request_error"), "invalid_request", False),
    ("anthropic authentication", 401, anthropic("authentication_error"), "authentication", False),
    ("anthropic billing", 402, anthropic("billing_error"), "quota_exhausted", False),
    (
        "anthropic credit",
        400,
        anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
        "quota_exhausted",
        False,
    ),
    (
        "anthropic spend limit",
        429,
        anthropic("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
        "quota_exhausted",
        False,
    ),
    (
        "anthropic contract limit",
        429,
        anthropic("rate_limit_error", details={"error_code": "contract_spend_limit_reached"}),
        "quota_exhausted",
        False,
    ),
    (
        "anthropic ramp limit",
        429,
        anthropic("rate_limit_error", details={"error_code": "ramp_limit_exceeded"}),
        "rate_limited",
        True,
    ),
    ("anthropic permission", 403, anthropic("permission_error"), "permission", False),
    ("anthropic not found", 404, anthropic("not_found_error", "model: x"), "not_found", False),
    ("anthropic conflict", 409, anthropic("conflict_error"), "server_error", True),
    ("anthropic too large", 413, anthropic("request_too_large"), "request_too_large", False),
    (
        "anthropic image",
        400,
        anthropic("invalid_request_error", details={"error_code": "image_dimensions_too_large"}),
        "request_too_large",
        False,
    ),
    ("anthropic rate", 429, anthropic("rate_limit_error"), "rate_limited", True),
    ("anthropic timeout", 504, anthropic("timeout_error"), "server_error", True),
    ("anthropic api", 500, anthropic("api_error"), "server_error", True),
    ("anthropic overloaded", 529, anthropic("overloaded_error"), "overloaded", True),
    (
        "anthropic compaction unavailable",
        529,
        anthropic("overloaded_error", details={"error_code": "compaction_unavailable"}),
        "overloaded",
        True,
    ),
    (
        "anthropic filter",
        400,
        anthropic("invalid_request_error", "Output blocked by content filtering policy"),
        "content_filter",
        False,
    ),
    (
        "anthropic compaction edited",
        400,
        anthropic("invalid_request_error", details={"error_code": "compaction_signature_invalid"}),
        "invalid_history",
        False,
    ),
    (
        "bedrock validation",
        400,
        {"__type": "com.amazon.coral#ValidationException", "message": "…"},
        "invalid_request",
        False,
    ),
    (
        "bedrock quota",
        400,
        {"__type": "ServiceQuotaExceededException", "message": "…"},
        "quota_exhausted",
        False,
    ),
    ("bedrock client", 403, {"__type": "UnrecognizedClientException"}, "authentication", False),
    ("bedrock expired", 403, {"__type": "ExpiredTokenException"}, "authentication", False),
    ("bedrock signature", 403, {"__type": "InvalidSignatureException"}, "authentication", False),
    ("bedrock access", 403, {"__type": "AccessDeniedException"}, "permission", False),
    ("bedrock not found", 404, {"__type": "ResourceNotFoundException"}, "not_found", False),
    (
        "bedrock model id",
        400,
        {"message": "The provided model identifier is invalid."},
        "not_found",
        False,
    ),
    ("bedrock conflict", 400, {"__type": "ConflictException"}, "invalid_request", False),
    (
        "bedrock throttling",
        429,
        {
            "__type": "ThrottlingException",
            "message": "Too many tokens, please wait before trying again.",
        },
        "rate_limited",
        True,
    ),
    (
        "bedrock throttling without a name",
        429,
        {"message": "Too many tokens, please wait before trying again."},
        "rate_limited",
        True,
    ),
    ("bedrock model timeout", 408, {"__type": "ModelTimeoutException"}, "server_error", True),
    ("bedrock model error", 424, {"__type": "ModelErrorException"}, "server_error", True),
    (
        "bedrock wrapped status",
        424,
        {"__type": "ModelErrorException", "originalStatusCode": 429},
        "rate_limited",
        True,
    ),
    ("bedrock not ready", 429, {"__type": "ModelNotReadyException"}, "overloaded", True),
    ("bedrock internal", 500, {"__type": "InternalServerException"}, "server_error", True),
    ("bedrock unavailable", 503, {"__type": "ServiceUnavailableException"}, "overloaded", True),
    ("google argument", 400, google("INVALID_ARGUMENT"), "invalid_request", False),
    ("google range", 400, google("OUT_OF_RANGE"), "invalid_request", False),
    (
        "google place",
        400,
        google("FAILED_PRECONDITION", 400, "User location is not supported for the API use."),
        "permission",
        False,
    ),
    (
        "google billing",
        400,
        google("FAILED_PRECONDITION", 400, "Please enable billing on project"),
        "quota_exhausted",
        False,
    ),
    (
        "google key",
        400,
        google("INVALID_ARGUMENT", 400, "…", reason("API_KEY_INVALID")),
        "authentication",
        False,
    ),
    ("google no key", 401, google("UNAUTHENTICATED", 401), "authentication", False),
    ("google permission", 403, google("PERMISSION_DENIED", 403), "permission", False),
    ("google not found", 404, google("NOT_FOUND", 404), "not_found", False),
    ("google aborted", 409, google("ABORTED", 409), "server_error", True),
    (
        "google too large",
        400,
        google("INVALID_ARGUMENT", 400, "Request payload size exceeds the limit: 20971520 bytes."),
        "request_too_large",
        False,
    ),
    (
        "google rate",
        429,
        google("RESOURCE_EXHAUSTED", 429, "Resource has been exhausted (e.g. check quota)."),
        "rate_limited",
        True,
    ),
    ("google deadline", 504, google("DEADLINE_EXCEEDED", 504), "server_error", True),
    ("google internal", 500, google("INTERNAL", 500), "server_error", True),
    (
        "google overloaded",
        503,
        google("UNAVAILABLE", 503, "The model is overloaded. Please try again later."),
        "overloaded",
        True,
    ),
    ("google cancelled", 499, google("CANCELLED", 499), "cancelled", False),
    (
        "openai context",
        400,
        openai("…", "invalid_request_error", "context_length_exceeded"),
        "context_window_exceeded",
        False,
    ),
    (
        "openai sealed",
        400,
        openai("…", "invalid_request_error", "invalid_encrypted_content"),
        "invalid_history",
        False,
    ),
    (
        "openai parameter",
        400,
        openai(
            "Unsupported parameter: 'max_tokens'", "invalid_request_error", "unsupported_parameter"
        ),
        "invalid_request",
        False,
    ),
    (
        "openai key",
        401,
        openai(
            "Incorrect API key provided: sk-12345678", "invalid_request_error", "invalid_api_key"
        ),
        "authentication",
        False,
    ),
    (
        "openai model",
        404,
        openai("The model `x` does not exist", "invalid_request_error", "model_not_found"),
        "not_found",
        False,
    ),
    (
        "openai rate",
        429,
        openai("Rate limit reached. Please try again in 1.898s.", "tokens", "rate_limit_exceeded"),
        "rate_limited",
        True,
    ),
    (
        "openai quota",
        429,
        openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
        "quota_exhausted",
        False,
    ),
    (
        "openai hard limit",
        400,
        openai("…", "invalid_request_error", "billing_hard_limit_reached"),
        "quota_exhausted",
        False,
    ),
    (
        "codex usage limit",
        429,
        {"error": {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": 1795291260}},
        "quota_exhausted",
        False,
    ),
    (
        "codex usage not included",
        403,
        {"error": {"type": "usage_not_included"}},
        "quota_exhausted",
        False,
    ),
    ("codex busy", None, openai("…", None, "server_is_overloaded"), "overloaded", True),
    ("codex slow down", None, openai("…", None, "slow_down"), "overloaded", True),
    ("openai policy", None, openai("…", None, "cyber_policy"), "content_filter", False),
    ("openai prompt policy", None, openai("…", None, "invalid_prompt"), "content_filter", False),
    ("no body 408", 408, "", "server_error", True),
    ("no body 418", 418, b"", "invalid_request", False),
    ("no body 429", 429, None, "rate_limited", True),
    ("no body 498", 498, "", "overloaded", True),
    ("no body 502", 502, "", "server_error", True),
    ("no body 524", 524, "", "server_error", True),
    ("a redirect", 307, "", "invalid_request", False),
    ("nothing at all", None, None, "server_error", True),
    ("an empty object", None, {}, "server_error", True),
    (
        "a success that failed",
        200,
        {"error": {"code": "unknown-error", "message": "Foobar"}},
        "server_error",
        True,
    ),
]


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [case[1:] for case in BY_STATUS],
    ids=[case[0] for case in BY_STATUS],
)
def test_classify_names_the_kind(
    status: int | None, body: Any, kind: ErrorKind, retryable: bool
) -> None:
    info = classify(status, body)
    assert (info.kind, info.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("invalid_request_error", 400),
        ("authentication_error", 401),
        ("billing_error", 402),
        ("permission_error", 403),
        ("not_found_error", 404),
        ("conflict_error", 409),
        ("request_too_large", 413),
        ("rate_limit_error", 429),
        ("api_error", 500),
        ("timeout_error", 504),
        ("overloaded_error", 529),
    ],
)
def test_classify_stream_error_like_its_http_status(kind: str, status: int) -> None:
    inside, outside = classify(None, anthropic(kind)), classify(status, "")
    assert (inside.kind, inside.retryable) == (outside.kind, outside.retryable)
    assert inside.code == kind


# ---------------------------------------------------------------- shapes (wire reference, B10)

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


@pytest.mark.parametrize(
    ("body", "headers", "kind", "code", "message"),
    [case[1:] for case in SHAPES],
    ids=[case[0] for case in SHAPES],
)
def test_classify_reads_every_shape(
    body: Any, headers: dict[str, str], kind: ErrorKind, code: str | None, message: str
) -> None:
    info = classify(None, body, headers)
    assert (info.kind, info.code, info.message) == (kind, code, message)


@pytest.mark.parametrize(
    ("body", "headers", "kind", "code", "message"),
    [case[1:] for case in SHAPES],
    ids=[case[0] for case in SHAPES],
)
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


# ---------------------------------------------------------------- texts

OVERFLOWS = [
    "prompt is too long: 3333404 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "1050000 exceeds the maximum allowed number of input tokens",
    "Input is too long for requested model.",
    "too many total text bytes: 5 > 4",
    "Too many input tokens",
    "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum context length is 8192 tokens.",
    "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
    "Invalid request: Your request exceeded model token limit: 131072",
    "Range of input length should be [1, 30720]",
    "the request exceeds the context window",
    "max_tokens: 65536 > context_window: 200000",
    "输入超过最大长度",
]


@pytest.mark.parametrize("text", OVERFLOWS)
@pytest.mark.parametrize("status", [None, 400])
def test_classify_context_window_exceeded(text: str, status: int | None) -> None:
    assert (
        classify(status, anthropic("invalid_request_error", text)).kind == "context_window_exceeded"
    )


def test_request_above_a_limit_per_minute_is_not_retryable() -> None:
    text = (
        "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested "
        "30000, please reduce it and try again."
    )
    info = classify(413, openai(text, "tokens", "rate_limit_exceeded"))
    assert (info.kind, info.retryable) == ("context_window_exceeded", False)


def test_limit_per_minute_naming_prompts_is_rate_limited() -> None:
    text = (
        "This request would exceed your rate limit of 30,000 input tokens per minute. Please "
        "reduce the prompt length, or try again later."
    )
    assert (
        classify(429, openai("Provider returned error", code=429, metadata={"raw": text})).kind
        == "rate_limited"
    )


HISTORIES = [
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    (
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were"
    ),
    "The block is bound to a different conversation",
    (
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
        "enabled, a final assistant message must start …"
    ),
    (
        "When thinking is disabled, an `assistant` message in the final position cannot "
        "contain `thinking`"
    ),
    "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    "`tool_use` ids must be unique",
    "Expected toolResult blocks at messages.2.content for the following Ids: a",
    "Function call is missing a thought_signature in functionCall parts.",
    "Corrupted thought signature.",
    "Thought signature is not valid",
    "Please ensure that function response turn comes immediately after a function call turn.",
    (
        "Please ensure that the number of function response parts is equal to the number of "
        "function call parts"
    ),
    "The encrypted content could not be verified.",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
    "No tool output found for function call call_1.",
    "No tool call found for function call output with call_id call_1.",
    (
        "An assistant message with 'tool_calls' must be followed by tool messages responding "
        "to each 'tool_call_id'."
    ),
    "Missing reasoning_content field in the assistant message",
    "A conversation must alternate between user and assistant roles.",
    "messages: text content blocks must be non-empty",
    (
        "This model does not support assistant message prefill. The conversation must end "
        "with a user message."
    ),
]


@pytest.mark.parametrize("text", HISTORIES)
@pytest.mark.parametrize("status", [None, 400, 404])
def test_rejected_items_are_invalid_history(text: str, status: int | None) -> None:
    assert classify(status, openai(text, "invalid_request_error")).kind == "invalid_history"


def test_copilots_401_about_ids_is_invalid_history() -> None:
    assert (
        classify(401, openai("input item ID does not belong to this connection")).kind
        == "invalid_history"
    )


PHRASES = [(rule, phrase) for rule in (*OVERRIDING_RULES, *TEXT_RULES) for phrase in rule.phrases]


@pytest.mark.parametrize(
    ("rule", "phrase"),
    PHRASES,
    ids=[f"{index}-{rule.kind}-{phrase}" for index, (rule, phrase) in enumerate(PHRASES)],
)
def test_no_text_rule_is_shadowed(rule: TextRule, phrase: str) -> None:
    text = f"The {phrase} it is"
    if rule is TEXT_RULES[-1]:
        # The rule before it has the same phrases, but not for a quota that resets.
        text = f"The {phrase} resets at noon"
    statuses = rule.statuses or {None, 400, 500}
    assert {classify(status, openai(text)).kind for status in statuses} == {rule.kind}


def test_phrases_are_lower_case_without_quotes() -> None:
    for _, phrase in PHRASES:
        assert phrase == phrase.lower()
        assert not set(phrase) & set("`'\"")


@pytest.mark.parametrize("code", sorted(CODES))
def test_code_decides_the_kind(code: str) -> None:
    assert (
        classify(
            None, {"error": {"type": "invalid_request_error", "code": code, "message": "m"}}
        ).kind
        == CODES[code]
    )


def test_no_code_has_two_kinds() -> None:
    written = [plain(code) for codes in error_tables._CODES.values() for code in codes.split()]
    assert len(written) == len(set(written))
    assert not CODES.keys() & TYPE_STATUSES.keys()


def test_401_is_authentication_whatever_the_message() -> None:
    assert (
        classify(401, openai("API key does not exist, check your quota")).kind == "authentication"
    )


def test_quota_is_rate_limited_only_when_it_resets() -> None:
    assert classify(429, openai("Usage limit reached for this plan")).kind == "quota_exhausted"
    assert classify(429, openai("Usage limit reached, resets at 9pm")).kind == "rate_limited"


def test_parameter_named_max_tokens_is_no_full_context() -> None:
    assert (
        classify(
            400,
            openai(
                "Invalid 'max_tokens': integer below minimum value.",
                "invalid_request_error",
                "integer_below_min_value",
            ),
        ).kind
        == "invalid_request"
    )


# ---------------------------------------------------------------- daily quotas, the free tier

FREE_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
EXCEEDED = (
    "You exceeded your current quota, please check your plan and billing details. Please "
    "retry in 22.4s."
)


def test_daily_quota_has_no_retry_after_despite_a_delay() -> None:
    info = classify(
        429, google("RESOURCE_EXHAUSTED", 429, EXCEEDED, quota(FREE_DAY, "50"), retry_info("22s"))
    )
    assert (info.kind, info.retryable, info.retry_after) == ("quota_exhausted", False, None)
    assert info.message.endswith(FREE_TIER_DAY)


@pytest.mark.parametrize(
    ("quota_id", "value", "free"),
    [
        ("RequestsPerDay", "1000", True),
        ("RequestsPerDay", "1001", False),
        ("RequestsPerDay-FreeTier", None, True),
    ],
)
def test_message_names_googles_free_tier(quota_id: str, value: str | None, free: bool) -> None:
    info = classify(429, google("RESOURCE_EXHAUSTED", 429, EXCEEDED, quota(quota_id, value)))
    assert info.kind == "quota_exhausted"
    assert info.message.endswith(FREE_TIER_DAY) is free


def test_quota_per_minute_has_a_retry_after() -> None:
    info = classify(
        429,
        google(
            "RESOURCE_EXHAUSTED",
            429,
            EXCEEDED,
            quota("RequestsPerMinute-FreeTier"),
            retry_info("34.4s"),
        ),
    )
    assert (info.kind, info.retryable, info.retry_after) == ("rate_limited", True, 34.4)
    assert info.message.endswith(FREE_TIER)


def test_resource_exhausted_with_a_delay_is_rate_limited() -> None:
    assert (
        classify(
            429,
            google("RESOURCE_EXHAUSTED", 429, "You exceeded your current quota.", retry_info("3s")),
        ).kind
        == "rate_limited"
    )
    assert (
        classify(429, google("RESOURCE_EXHAUSTED", 429, "You exceeded your current quota.")).kind
        == "quota_exhausted"
    )


def test_message_names_the_free_tier_by_header() -> None:
    info = classify(
        429,
        google("RESOURCE_EXHAUSTED", 429, "Resource has been exhausted"),
        {"x-ratelimit-limit-requests-per-day": "250"},
    )
    assert (info.kind, info.message) == ("rate_limited", f"Resource has been exhausted {FREE_TIER}")


def test_empty_daily_window_is_quota_exhausted() -> None:
    headers = {"x-ratelimit-remaining-requests-day": "0", "x-ratelimit-reset-requests-day": "30000"}
    assert classify(429, openai("Rate limit exceeded"), headers).kind == "quota_exhausted"
    assert classify(500, openai("…"), headers).kind == "server_error"


# ---------------------------------------------------------------- delay, code, detail

DELAYS: list[tuple[str, Any, dict[str, str], float | None]] = [
    ("header", openai("try again in 9s"), {"Retry-After": "3"}, 3),
    ("header in milliseconds", openai(), {"retry-after-ms": "1500"}, 1.5),
    ("google", google("RESOURCE_EXHAUSTED", 429, "…", retry_info("0.5s")), {}, 0.5),
    (
        "google, upstream of openrouter",
        openai(
            code=429,
            metadata={"raw": json.dumps(google("RESOURCE_EXHAUSTED", 429, "…", retry_info("7s")))},
        ),
        {},
        7,
    ),
    ("a field", openai(retry_after=2.5), {}, 2.5),
    ("message", openai("Rate limit reached. Please try again in 1.898s."), {}, 1.898),
    ("google's message", openai("Please retry in 22.4s."), {}, 22.4),
    (
        "openrouter",
        openai(
            metadata={
                "headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1795291260000"}
            }
        ),
        {},
        60,
    ),
    ("openrouter's retry-after", openai(metadata={"headers": {"Retry-After": 8}}), {}, 8),
    (
        "the window that is used up",
        openai(),
        {
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "6m0s",
            "x-ratelimit-remaining-requests": "1",
            "x-ratelimit-reset-requests": "1h",
        },
        360,
    ),
    (
        "none",
        openai(),
        {"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "6m0s"},
        None,
    ),
]


@pytest.mark.parametrize(
    ("body", "headers", "seconds"), [case[1:] for case in DELAYS], ids=[case[0] for case in DELAYS]
)
def test_retry_after_is_read_from_every_source(
    body: Any, headers: dict[str, str], seconds: float | None
) -> None:
    assert classify(429, body, headers, NOW).retry_after == (
        pytest.approx(seconds) if seconds is not None else None
    )


def test_quota_takes_retry_after_from_its_reset() -> None:
    assert (
        classify(
            429, {"error": {"type": "usage_limit_reached", "resets_at": 1795291260}}, None, NOW
        ).retry_after
        == 60
    )
    assert (
        classify(
            429, {"error": {"type": "usage_limit_reached", "resets_at": 1795291260}}
        ).retry_after
        is None
    )
    assert (
        classify(
            429, {"error": {"type": "usage_limit_reached", "resets_at": 1, "resets_in_seconds": 90}}
        ).retry_after
        == 90
    )


@pytest.mark.parametrize("code", ["#", "x#", ":http", "\ud83d", "sk-canary-0123", "x" * 10_000])
def test_code_is_never_empty_invalid_or_a_key(code: str) -> None:
    shown = classify(None, openai("m", None, code)).code
    assert shown is not None
    assert 0 < len(shown.encode("utf-8")) <= 128
    assert "canary" not in shown


def test_x_should_retry_overrides_the_kind() -> None:
    assert classify(429, "", {"X-Should-Retry": "false"}).retryable is False
    assert classify(400, "", {"X-Should-Retry": "true"}).retryable is True
    assert classify(400, "", {"X-Should-Retry": "perhaps"}).retryable is False


def test_status_is_the_responses_own_else_the_bodys() -> None:
    assert classify(502, {"error": {"code": 429}}).status == 502
    assert classify(200, {"error": {"code": 429}}).status == 429
    assert classify(None, {"error": {"code": "401"}}).status == 401
    assert classify(200, {"error": {"code": 1302}}).status is None
    assert classify(None, {"error": {"code": True}}).status is None


def test_detail_keeps_groqs_failed_generation() -> None:
    generation = '{"name": "f", "arguments": {"text": "' + "x" * 20_000 + '"}}'
    info = classify(
        None,
        openai(
            "failed",
            "invalid_request_error",
            "tool_use_failed",
            failed_generation=generation,
            status_code=400,
        ),
    )
    assert (info.kind, info.code, info.status) == ("invalid_request", "tool_use_failed", 400)
    assert info.detail["failed_generation"] == generation


def test_detail_is_the_providers_error_object() -> None:
    body = openai(
        "m",
        None,
        "content_filter",
        innererror={"code": "X", "content_filter_result": {"hate": {"filtered": True}}},
    )
    assert classify(400, body).detail == body["error"]
    assert classify(400, {"detail": "m"}).detail == {"detail": "m"}
    assert classify(400, "plain words").detail == "plain words"
    assert classify(400, "").detail is None


def test_message_code_and_detail_contain_no_key() -> None:
    body = openai(
        "Incorrect API key provided: sk-canary-0123. AIzaCanary0123456789",
        "Bearer canary-token",
        "sk-canary-0123",
        headers={"authorization": "canary-plain"},
    )
    for shape in (
        body,
        json.dumps(body),
        [body],
        {"error": {"message": "x", "metadata": {"raw": json.dumps(body)}}},
        "failed with sk-canary-0123",
    ):
        assert "canary" not in repr(classify(401, shape)).lower()


def test_message_shows_no_part_of_a_truncated_key() -> None:
    for size in range(2030, 2050):
        assert "sk-" not in classify(500, "x" * size + " sk-canary-0123456789").message


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "é" * 100_000, "\U0001f600" * 50_000, "<title>" + "y" * 100_000]
)
def test_message_is_at_most_two_kibibytes(text: str) -> None:
    for body in (
        text,
        openai(text),
        google("RESOURCE_EXHAUSTED", 429, text, quota(FREE_DAY, "50")),
    ):
        assert 0 < len(classify(429, body).message.encode("utf-8")) <= 2048


# ---------------------------------------------------------------- recordings

FITTING: dict[int, set[ErrorKind]] = {
    400: {
        "invalid_request",
        "invalid_history",
        "not_found",
        "authentication",
        "context_window_exceeded",
        "quota_exhausted",
        "content_filter",
    },
    401: {"authentication"},
    403: {"permission", "authentication"},
    404: {"not_found"},
    429: {"rate_limited", "quota_exhausted"},
    500: {"server_error"},
}


def recorded_errors() -> list[tuple[str, int | None, Any, dict[str, str]]]:
    """Every body of the corpus that is an error, or that carries one in its stream."""
    errors: list[tuple[str, int | None, Any, dict[str, str]]] = []
    for note in sorted(require(CORPUS / "data").glob("*/*.meta.json")):
        meta = json.loads(note.read_bytes())
        error = stream_error(note)
        headers = dict(meta.get("response_headers") or [])
        if (meta.get("status") or 0) >= 400:
            errors.append((note.name, meta["status"], body_beside(note).read_bytes(), headers))
        elif error:
            errors.append((note.name, None, error, headers))
    return errors


def stream_error(note: Path) -> Any:
    expected = note.with_name(note.name.replace(".meta.json", ".expected.json"))
    if not expected.exists():
        return None
    facts = json.loads(expected.read_bytes()).get("facts") or {}
    return facts.get("error")


def body_beside(note: Path) -> Path:
    stem = note.name.removesuffix(".meta.json")
    [body] = [
        path
        for path in note.parent.iterdir()
        if path.name.startswith(stem + ".")
        and not path.name.endswith((".meta.json", ".expected.json"))
    ]
    return body


def test_every_recorded_error_fits_its_status() -> None:
    errors = recorded_errors()
    assert len(errors) >= 100
    for name, status, body, headers in errors:
        info = classify(status, body, headers, NOW)
        assert "without a message" not in info.message, name
        if status is not None:
            assert info.status == status, name
            assert info.kind in FITTING[status], name


def test_every_recorded_error_frame_has_a_specific_kind() -> None:
    frames = [
        (name, classify(None, body).kind)
        for name, status, body, _ in recorded_errors()
        if status is None
    ]
    assert len(frames) >= 4
    assert not [name for name, kind in frames if kind == "server_error"]


def test_every_recorded_overflow_is_recognized() -> None:
    overflows = [
        entry
        for entry in recorded_errors()
        if "context_l" in entry[0] or "context_overflow" in entry[0]
    ]
    assert len(overflows) >= 6
    assert {classify(status, body, headers).kind for _, status, body, headers in overflows} <= {
        "context_window_exceeded",
        "rate_limited",
    }


# ---------------------------------------------------------------- hostile input

NAMES = st.sampled_from(
    [
        "error",
        "message",
        "code",
        "type",
        "status",
        "details",
        "metadata",
        "raw",
        "response",
        "detail",
        "violations",
        "quotaId",
        "headers",
        "loc",
        "errors",
        "base_resp",
        "xException",
        "resets_at",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(codec=None), max_size=30)
    | st.sampled_from(["429", "{", '{"error":{"code":400}}', "Bearer x"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | NAMES, inner, max_size=5)
    ),
    max_leaves=25,
)
STATUSES = st.none() | st.integers(-1, 999)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "retry-after",
            "x-should-retry",
            "x-amzn-errortype",
            ":exception-type",
            "x-ratelimit-reset-tokens",
        ]
    )
    | st.text(max_size=12),
    st.text(max_size=20),
    max_size=5,
)


def assert_sound(info: ErrorInfo, headers: Mapping[str, str] | None = None) -> None:
    assert info.kind in KINDS
    assert info.retryable is (info.kind in RETRYABLE) or "x-should-retry" in (headers or {})
    assert 0 < len(info.message.encode("utf-8")) <= 2048
    assert info.retry_after is None or info.retry_after >= 0
    json.dumps(info.detail, ensure_ascii=False).encode("utf-8")
    assert info.code is None or info.code.encode("utf-8")


@given(STATUSES, JSON, HEADERS)
def test_classify_random_values(status: int | None, body: Any, headers: dict[str, str]) -> None:
    assert_sound(classify(status, body, headers, NOW), headers)


@given(
    STATUSES,
    st.text(alphabet=st.characters(codec=None))
    | st.binary()
    | st.from_regex(r'\{"error": ?\{.{0,40}\}\}'),
)
def test_classify_random_text(status: int | None, body: str | bytes) -> None:
    assert_sound(classify(status, body))


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"error":' * 20_000 + "1" + "}" * 20_000,
        json.dumps({"error": [[[[[["x"] * 30] * 30] * 8] * 8] * 2]}),
        json.dumps({"error": {"message": "9" * 100_000, "code": 10**50}}),
        b'{"error":{"message":"\\ud83d half","code":"\\ude00"}}',
        b'\xff\xfe{"error":1}',
        '{"error":{"code":1e999}}',
        json.dumps({f"k{n}Exception": {"message": str(n)} for n in range(5_000)}),
        json.dumps({"error": {"details": [{"violations": [{"quotaId": "x" * 1000}] * 8}] * 8}}),
        "sk-" * 30_000,
        "api key " * 10_000,
        "try again in " * 10_000,
        "<title>" * 10_000,
    ],
    ids=range(13),
)
def test_classify_hostile_bodies(body: str | bytes) -> None:
    assert_sound(classify(400, body))


def test_classify_values_nested_beyond_the_stack() -> None:
    deep: Any = "end"
    for _ in range(50_000):
        deep = [deep]
    quotas = [{"violations": [{"quotaId": deep}]}]
    locations = [{"loc": [deep, "x"], "msg": "m"}]
    for name in ("message", "code", "retry_after", "headers", "raw", "details", "detail"):
        assert_sound(classify(429, {"error": {"details": quotas, "detail": locations, name: deep}}))
