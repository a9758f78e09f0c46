"""Delay, status, code, message and detail of an error, on recordings and hostile input too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.classification import classify
from streamlib_parsers.errors import RETRYABLE, ErrorInfo, ErrorKind
from tests.support.cases import each_case
from tests.support.error_bodies import (
    FREE_DAY,
    NOW,
    google,
    openai,
    quota,
    retry_info,
)
from tests.support.shared import CORPUS, require

KINDS = set(get_args(ErrorKind))


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


@each_case("body, headers, seconds", [case[1:] for case in DELAYS])
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
    assert classify(300, {"error": {"code": 429}}).status == 300
    assert classify(299, {"error": {"code": 429}}).status == 429
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
