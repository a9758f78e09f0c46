"""What the providers' error codes, types and messages mean, as data for `error_kinds`.

Codes are compared by letters and digits alone (`plain`), so that `RateLimitReached`,
`rate_limit_reached` and `rate-limit-reached` are one entry. Phrases are lower-case substrings of a
text whose quotation marks are removed. Sources: the SDKs' own enumerations, recorded bodies, and
the providers' published lists (Z.ai: docs.z.ai, API code; its numbers are below 2000, MiniMax's
have the prefix `base_resp.`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streamlib_parsers.errors import ErrorKind


def plain(code: str) -> str:
    """A code as the tables compare it: lower-case, letters and digits only."""
    return "".join(filter(str.isalnum, code.lower()))


class TextRule(NamedTuple):
    """Any of `phrases` gives `kind`, unless one of `unless` is in the text too."""

    kind: ErrorKind
    phrases: tuple[str, ...]
    unless: tuple[str, ...] = ()
    statuses: frozenset[int | None] = frozenset()
    """HTTP statuses with which the rule applies, None for a stream; empty for any."""


# ---------------------------------------------------------------- codes

# The order counts: see `KIND_ORDER`.
# Codes separated by spaces: a code a line would take 150 lines and be no easier to search.
_CODES: Final[dict[ErrorKind, str]] = {
    "invalid_history": (
        "invalid_encrypted_content missing_following_item compaction_block_ambiguous "
        "compaction_block_misplaced compaction_content_mismatch compaction_incomplete_turn "
        "compaction_signature_invalid compaction_tool_changes_mismatch"
    ),
    "context_window_exceeded": (
        "context_length_exceeded context_window_exceeded model_context_window_exceeded "
        "exceed_context_size_error max_tokens_exceeded too_many_prompt_tokens too_many_tokens "
        "tokens_limit_reached prompt_too_long 1261 base_resp.1039"
    ),
    "quota_exhausted": (
        "insufficient_quota billing_error billing_hard_limit_reached billing_not_active "
        "payment_required insufficient_balance insufficient_credits balance_depleted "
        "credits_exhausted exceeded_current_quota_error usage_limit_reached usage_not_included "
        "enforced_spend_limit_reached contract_spend_limit_reached "
        "model_not_supported_on_free_tier quota_exceeded Arrearage ServiceQuotaExceededException "
        "1113 1304 1308 1309 1310 base_resp.1008"
    ),
    "content_filter": (
        "content_filter content_filtered content_policy_violation image_content_policy_violation "
        "ResponsibleAIPolicyViolation data_inspection_failed moderation_blocked cyber_policy "
        "bio_policy misalignment_policy_violation invalid_prompt 1301 base_resp.1026 "
        "base_resp.1027"
    ),
    "request_too_large": (
        "request_too_large request_body_too_large_after_decoding payload_too_large "
        "RequestEntityTooLargeException image_too_large image_file_too_large "
        "image_dimensions_too_large file_too_large string_above_max_length"
    ),
    "authentication": (
        "authentication authentication_error invalid_api_key incorrect_api_key "
        "invalid_authentication invalid_authentication_error API_KEY_INVALID API_KEY_EXPIRED "
        "UNAUTHENTICATED expired_api_key token_expired UnrecognizedClientException "
        "ExpiredTokenException ExpiredToken InvalidClientTokenId InvalidSignatureException "
        "SignatureDoesNotMatch IncompleteSignature MissingAuthenticationTokenException 1000 "
        "1001 1002 1003 1004 base_resp.1004 base_resp.2049"
    ),
    "not_found": (
        "not_found_error NOT_FOUND model_not_found invalid_model invalid_model_id unknown_model "
        "model_decommissioned DeploymentNotFound ResourceNotFoundException "
        "previous_response_not_found thread_not_found file_expired unknown_url 1211 1212 1221 "
        "1222 1500"
    ),
    "permission": (
        "permission_error PERMISSION_DENIED AccessDeniedException access_denied "
        "insufficient_permissions SERVICE_DISABLED API_KEY_SERVICE_BLOCKED "
        "unsupported_country_region_territory 1110 1111 1112 1121 1220 1311"
    ),
    "overloaded": (
        "overloaded_error engine_overloaded engine_overloaded_error server_overloaded "
        "server_is_overloaded slow_down UNAVAILABLE ServiceUnavailableException "
        "service_unavailable service_unavailable_error ModelNotReadyException "
        "compaction_unavailable capacity_exceeded 1312"
    ),
    "rate_limited": (
        "rate_limit_error rate_limit_exceeded rate_limit_reached rate_limit_reached_error "
        "rate_limited throttled too_many_requests TooManyRequestsException ThrottlingException "
        "Throttling Throttling.RateQuota Throttling.AllocationQuota limit_requests "
        "limit_burst_rate ramp_limit_exceeded websocket_stream_limit_reached 1302 1303 1305 "
        "base_resp.1002"
    ),
    # Sent with status 400, and yet another connection takes the same request.
    "server_error": "websocket_connection_limit_reached",
}
CODES: Final[dict[str, ErrorKind]] = {
    plain(code): kind for kind, codes in _CODES.items() for code in codes.split()
}
"""Codes and types that name a kind."""

KIND_ORDER: Final = tuple(_CODES)
"""Order of precedence where the codes of one failure name several kinds: first the kind that leaves
the caller the fewest ways to go on."""

# Types by the HTTP status that they repeat.
_TYPES: Final = {
    400: (
        "invalid_request_error INVALID_ARGUMENT FAILED_PRECONDITION OUT_OF_RANGE "
        "ValidationException BadRequestError bad_request validation_error tool_use_failed "
        "InvalidParameter parameter_unknown memory_precondition_failed_error "
        "memory_path_conflict_error 1210 1213 1214 1215 base_resp.2013"
    ),
    408: "ModelTimeoutException request_timeout",
    409: "conflict_error ConflictException ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: (
        "api_error server_error internal_error internal_server_error InternalServerException "
        "InternalFailure INTERNAL UNKNOWN ModelErrorException ModelStreamErrorException "
        "vector_store_timeout"
    ),
    504: "timeout_error gateway_timeout DEADLINE_EXCEEDED",
}
TYPE_STATUSES: Final[dict[str, int]] = {
    plain(code): status for status, codes in _TYPES.items() for code in codes.split()
}
"""Types that only repeat a status: used where there is none, as inside a stream."""

INVALID_PREFIXES: Final = (
    "invalid",
    "unsupported",
    "missing",
    "unknownparameter",
    "unrecognized",
    "empty",
)
"""Beginnings of codes, as `plain` writes them, that blame the request."""

IGNORED_CODES: Final = frozenset(
    {"error", "failed", "response.failed", "none", "null", "0", "1", "about:blank"}
)
"""Values of code fields that only state that something failed."""

STATUSES: Final[dict[int, ErrorKind]] = {
    401: "authentication",
    402: "quota_exhausted",
    403: "permission",
    404: "not_found",
    408: "server_error",  # a timeout of the server's
    409: "server_error",  # a conflict passes: every SDK retries it
    410: "not_found",  # a retired model
    413: "request_too_large",
    424: "server_error",  # Bedrock: its model failed
    425: "server_error",  # too early: the same request may succeed later
    429: "rate_limited",
    498: "overloaded",  # Groq: no flex capacity
    499: "cancelled",
    503: "overloaded",
    529: "overloaded",  # Anthropic
}
"""Any other 4xx is `invalid_request`, any other 5xx `server_error`."""

# ---------------------------------------------------------------- messages

_REJECTED: Final[frozenset[int | None]] = frozenset({None, 400, 413, 422, 500})
_RATE_LIMITED: Final[frozenset[int | None]] = frozenset({None, 403, 429})
_MAYBE_QUOTA: Final[frozenset[int | None]] = frozenset({None, 400, 403, 429})
_RESETS: Final = ("try again", "resets at", "reset in", "retry", "wait", "window")
"""Phrases about a quota that resets by itself, which is a rate limit."""

OVERRIDING_RULES: Final = (
    TextRule(
        "invalid_history",
        (
            # signatures and encrypted reasoning
            "invalid signature in thinking",
            "blocks in the latest assistant message cannot be modified",
            "bound to a different conversation",
            "thinking block that preceded this one",
            "expected thinking or redacted_thinking, but found",
            "final block in an assistant message cannot be thinking",
            "in the final position cannot contain thinking",
            "thought_signature",
            "thought signature is not valid",
            "corrupted thought signature",
            "missing reasoning_content",
            "reasoning_content in the thinking mode must be passed back",
            "encrypted content could not be",
            "the encrypted content",  # with its first and last characters behind it
            "encrypted content item_id did not match",
            "encrypted_content was not issued",
            "could not be decrypted or parsed",
            "was provided without its required",
            "input item id does not belong to this connection",
            "items are not persisted when store is set to false",
            # pairs of calls and results
            "tool_use ids were found without tool_result",
            "unexpected tool_use_id found in tool_result",
            "must have a corresponding tool_use block",
            "was found without a corresponding",
            "tool_use ids must be unique",
            "each tool_use must have a single result",
            "expected toolresult blocks at",
            "number of toolresult blocks",
            "tool result blocks cannot be provided in the same turn",
            "no tool output found for",
            "no tool call found for",
            "tool_calls must be followed by tool messages",
            "did not have response messages",
            "must be a response to a preceding message with tool_calls",
            "must be a response to a preceeding message with tool_calls",
            "not the same number of function calls and responses",
            "function call turn comes immediately after",
            "function response turn comes immediately after",
            "number of function response parts",
            # order and emptiness
            "must alternate between user and assistant",
            "roles must alternate",
            "must start with a user message",
            "must end with a user message",
            "does not support assistant message prefill",
            "content blocks must be non-empty",
            "text content blocks must contain non-whitespace text",
            "all messages must have non-empty content",
            "cannot end with trailing whitespace",
            "field in the contentblock object",
            "contents.parts must not be empty",
            "must include at least one parts field",
            # tool results that must be plain text
            "text is not set",
            "tool message content must be a string",
            "tool content must be a string",
            "expected string, got list",
            "expected string, got array",
        ),
    ),
    # One request above a limit per minute: waiting never helps, a shorter history does.
    TextRule("context_window_exceeded", ("request too large for",)),
)
"""Messages that outrank every code: providers send them with less specific codes, or with 401
and 429."""

TEXT_RULES: Final = (
    TextRule(
        "request_too_large",
        (
            "request payload size exceeds",
            "request entity too large",
            "payload too large",
            "error code: 413",
            "image exceeds",
            "image too large",
            "image_too_large",
            "image size exceeds",
            "dimensions exceed max allowed size",
        ),
    ),
    # Bedrock's "Too many tokens, please wait before trying again" is a limit per minute.
    TextRule("rate_limited", ("please wait before trying again",)),
    TextRule(
        "context_window_exceeded",
        (
            "context length",
            "context size",
            "context limit",
            "context window",
            "context_window",
            "maximum context",
            "slot context",
            "n_ctx_slot",
            "prompt is too long",
            "prompt too long",
            "prompt exceeds max length",
            "prompt length",
            "input is too long",
            "total length of all messages is too long",
            "too many total text bytes",
            "input token count exceeds",
            "input tokens exceed",
            "too many input tokens",
            "maximum number of tokens",
            "maximum allowed number of input tokens",
            "max_model_len",
            "maximum model length",
            "exceeded model token limit",
            "range of input length should be",
            "tokens in request more than max tokens allowed",
            "reduce the length",
            "truncating input",
            "超过最大长度",
            "上下文长度",
        ),
        # Anthropic's limit per minute asks to "reduce the prompt length".
        unless=("rate limit", "per minute", "tokens per min"),
        statuses=frozenset({None, 400, 404, 413, 422, 500, 502}),
    ),
    TextRule(
        "quota_exhausted",
        (
            "insufficient credits",
            "insufficient_quota",
            "insufficient quota",
            "insufficient balance",
            "credit balance",
            "credits exhausted",
            "no usable credits",
            "top up your credits",
            "payment required",
            "billing hard limit",
            "billing_hard_limit",
            "enable billing",
            "account is deactivated",
            "plan does not include",
            "out of extra usage",
            "out of funds",
            "balance_depleted",
            "not available on the free tier",
        ),
    ),
    TextRule("quota_exhausted", ("exceeded your current quota",), unless=_RESETS),
    TextRule(
        "rate_limited",
        (
            "rate limit",
            "rate-limit",
            "rate_limit",
            "ratelimit",
            "too many requests",
            "too many concurrent requests",
            "throttled",
            "throttling",
            "per minute",
            "tokens per min",
            "requests per day",
            "resource_exhausted",
            "resource has been exhausted",
            "rate increased too quickly",
        ),
        statuses=frozenset({None, 400, 403, 413, 429, 500, 502, 503}),
    ),
    TextRule("overloaded", ("overloaded", "at capacity", "over capacity", "high demand")),
    TextRule(
        "authentication",
        (
            "api key not valid",
            "invalid api key",
            "invalid x-api-key",
            "incorrect api key",
            "api key expired",
            "missing api key",
            "api key is missing",
            "no auth credentials",
            "invalid subscription key",
            "could not parse your authentication token",
            "security token included in the request is",
        ),
    ),
    # Cohere's status for it; Groq's 498 is about capacity.
    TextRule("authentication", ("invalid token", "api token"), statuses=frozenset({498})),
    TextRule("permission", ("data policy", "matching your guardrail", "location is not supported")),
    TextRule(
        "content_filter",
        (
            "content filtering policy",
            "content management policy",
            "content filter",
            "content_filter",
            "content policy",
            "safety system",
            "violating our usage policy",
            "flagged by moderation",
            "inappropriate content",
            "不安全或敏感内容",
        ),
        statuses=frozenset({None, 400, 403, 422}),
    ),
    TextRule(
        "invalid_request",
        (
            "unknown parameter",
            "unsupported parameter",
            "unrecognized request argument",
            "unknown_parameter",
            "unsupported_parameter",
        ),
        statuses=frozenset({None, 400, 422}),
    ),
    TextRule(
        "not_found",
        (
            "is not a valid model",
            "invalid model",
            "model not found",
            "model_not_found",
            "model identifier is invalid",
            "does not exist",
            "no such model",
            "unknown model",
            "unsupported model",
            "no endpoints found that support",
        ),
        statuses=frozenset({None, 400, 403, 404, 422}),
    ),
    # Vague: only with a status that rejects the request, so that limits per minute do not match.
    TextRule(
        "context_window_exceeded",
        (
            "token limit",
            "too many tokens",
            "max input token",
            "input token",
            "exceeds the limit",
            "> context",
        ),
        statuses=_REJECTED,
    ),
    TextRule(
        "rate_limited", ("try again in", "retry in", "please retry after"), statuses=_RATE_LIMITED
    ),
    TextRule(
        "quota_exhausted",
        ("usage limit", "quota", "limit exceeded"),
        unless=_RESETS,
        statuses=_MAYBE_QUOTA,
    ),
    TextRule("rate_limited", ("usage limit", "quota", "limit exceeded"), statuses=_MAYBE_QUOTA),
)
"""The first rule that applies wins. Billing comes before rate limits, whose phrases it shares;
vague phrases come last and only with a status that suits them."""

STATUSES_OVER_TEXT: Final = frozenset({401, 402})
"""Statuses that only `OVERRIDING_RULES` overrule: `API key does not exist` does not mean that a
model is missing."""
