"""Every failure of every provider becomes one error, named by what the caller can do about it."""

from __future__ import annotations

from typing import Any

from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorKind
from tests.support.cases import each_case
from tests.support.error_bodies import (
    anthropic,
    google,
    openai,
    reason,
)

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
    ("cohere token", 498, {"message": "invalid token"}, "authentication", False),
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


@each_case("status, body, kind, retryable", [case[1:] for case in BY_STATUS])
def test_classify_names_the_kind(
    status: int | None, body: Any, kind: ErrorKind, retryable: bool
) -> None:
    info = classify(status, body)
    assert (info.kind, info.retryable) == (kind, retryable)


@each_case(
    "kind, status",
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
