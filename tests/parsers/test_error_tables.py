"""Codes, messages and quotas name the right kind of error, and no rule shadows another."""

from __future__ import annotations

import pytest

from streamlib_parsers import error_tables
from streamlib_parsers.classification import classify
from streamlib_parsers.error_kinds import FREE_TIER, FREE_TIER_DAY
from streamlib_parsers.error_tables import (
    CODES,
    OVERRIDING_RULES,
    TEXT_RULES,
    TYPE_STATUSES,
    TextRule,
    plain,
)
from tests.support.cases import each_case
from tests.support.error_bodies import (
    FREE_DAY,
    anthropic,
    google,
    openai,
    quota,
    retry_info,
)

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


STATUSES = (None, *range(400, 432), 451, 498, 499, *range(500, 512), 529)


@pytest.mark.parametrize(
    ("text", "kind", "statuses"),
    [
        ("prompt is too long", "context_window_exceeded", [None, 400, 404, 413, 422, 500, 502]),
        ("rate limit", "rate_limited", [None, 400, 403, 413, 429, 500, 502, 503]),
        ("content filter", "content_filter", [None, 400, 403, 422]),
        ("no such model", "not_found", [None, 400, 403, 404, 410, 422]),
    ],
)
def test_text_decides_where_its_status_agrees(
    text: str, kind: str, statuses: list[int | None]
) -> None:
    assert [
        status for status in STATUSES if classify(status, openai(text)).kind == kind
    ] == statuses


def test_text_of_an_error_is_read_up_to_a_limit() -> None:
    before = "x" * (8192 - len("rate limit"))
    assert classify(400, before + "rate limit").kind == "rate_limited"
    assert classify(400, before + " rate limit").kind == "invalid_request"


@each_case("text", OVERFLOWS)
@each_case("status", [None, 400])
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
    "The encrypted content gAAA...wXBV could not be verified.",
    "The encrypted content for item rs_0a18 could not be verified.",
    "Encrypted content item_id did not match the target item id",
    "reasoning `encrypted_content` was not issued to this caller",
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


@each_case("text", HISTORIES)
@each_case("status", [None, 400, 404])
def test_rejected_items_are_invalid_history(text: str, status: int | None) -> None:
    assert classify(status, openai(text, "invalid_request_error")).kind == "invalid_history"


def test_copilots_401_about_ids_is_invalid_history() -> None:
    assert (
        classify(401, openai("input item ID does not belong to this connection")).kind
        == "invalid_history"
    )


PHRASES = [(rule, phrase) for rule in (*OVERRIDING_RULES, *TEXT_RULES) for phrase in rule.phrases]


@each_case("rule, phrase", PHRASES)
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


@each_case("code", sorted(CODES))
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


def test_parameter_named_max_tokens_is_not_a_full_context() -> None:
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
