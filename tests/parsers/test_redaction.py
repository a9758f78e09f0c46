"""Text that looks like a key is masked; other text is unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.redaction import MASK, redact, redact_value, redacted_parts
from tests.support.cases import each_case
from tests.support.timing import cpu_seconds

# Invented, each in the shape of its provider's keys.
KEYS = [
    "sk-proj-4fA9_xYz-0123456789abcdef",
    "sk-ant-api03-AbCdEf012345-xyz",
    "sk-or-v1-0123456789abcdef",
    "AIzaSyA0123456789abcdefghijklmnopqrstu",
    "AQ.Ab8RN6Kexample0123456789",
    "ya29.a0AfH6SMBexample-0123",
    "xai-0123456789abcdefghij",
    "gsk_0123456789abcdefghij",
    "hf_0123456789abcdefghij",
    "r8_0123456789abcdefghij",
    "nvapi-0123456789_abcdefghij",
    "csk-0123456789abcdefghij",
    "pplx-0123456789abcdefghij",
    "tgp_v1_0123456789abcdefghij",
    "fw_0123456789abcdefghij",
    "ghp_0123456789abcdefghij",
    "github_pat_0123456789abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "ABSKQmVkcm9ja0FQSUtleS1leGFtcGxl",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "eyJ" + "x5c0" * 1_000 + "." + "eyJz" * 1_000 + ".c2lnbmF0dXJl",  # with its certificates
    "ghs_123456_eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln-bmF0_dXJl",
    "xoxb-0123456789-0123-abcdefghij",
    "xoxp-0123456789-0123-4567-abcdefghij",
    "xoxe.xoxp-1-0123456789abcdefghij",
    "xoxe-1-0123456789abcdefghij",
    "xoxd-AbCd%2Bef%2F0123456789%3D",
    "xoxd-AbCd+ef/0123456789=",
    "xapp-1-A0123456789-0123-abcdefghij",
    "xwfp-0123456789-abcdefghij",
    "hooks.slack.com/services/T0123456789/B012/abcdefghij",
    "glpat-0123456789_abcdefghij",
    "glpat-0123456789_abcdefghij-01234567.01.0abcdefgh",
    "glcbt-64_0123456789abcdefghij",
    "npm_" + "0123456789abcdefghij" * 2,
    # In two parts: scanners of repositories would take them for keys.
    "sk" + "_live_0123456789abcdefghij",
    "rk" + "_test_0123456789abcdefghij",
    "whsec_0123456789+/abcdefghij=",
]
SENTENCES = [
    "{}",
    "Incorrect API key provided: {}.",
    "bad '{}'",
    '{{"headers":{{"x":"{}"}}}}',
    "at https://x.example/v1?a=1&key={}&b=2",
    "({})",
    "key={},\n",
]


@each_case("key", KEYS)
@each_case("sentence", SENTENCES)
def test_redact_masks_a_key_anywhere_in_a_sentence(key: str, sentence: str) -> None:
    shown = redact(sentence.format(key))
    assert MASK in shown
    assert not any(key[n : n + 9] in shown for n in range(len(key) - 8)), shown


LABELLED = [
    "Authorization: Bearer canary-secret",
    "authorization: Basic Y2FuYXJ5LXNlY3JldA==canary-secret",
    "x-api-key: canary-secret",
    "x-goog-api-key=canary-secret",
    'api_key="canary-secret"',
    "'apiKey': 'canary-secret'",
    "Incorrect API key provided: canary-secret. See the docs",
    "Your api key: canary-secret is invalid",
    "access_token=canary-secret",
    "secret_access_key = canary-secret",
    "password: canary-secret",
    "got Bearer canary-secret here",
    "https://x.example/?key=canary-secret",
]


@each_case("text", LABELLED)
def test_redact_masks_what_a_label_names_a_key(text: str) -> None:
    assert "canary" not in redact(text)
    assert MASK in redact(text)


HARMLESS = [
    "API key not valid. Please pass a valid API key.",
    "invalid x-api-key",
    "max_tokens: 65536 > context_window: 200000",
    "task-management and risk-assessment of the disk-usage",
    "You can find your API key at https://platform.example/account/api-keys.",
    "unexpected token: '}'",
    "password must not be empty",
    "Bearer",
    "xoxo-your-friends-from-the-conference, kisses and hugs: xoxoxoxoxoxo",
    "the fixtures sk_test_connection and rk_test_timeouts",
    "call hf_hub_download(repo_id) or set hf_transfer_enabled",
    "apt install xapp-sn-watcher-common xapps-common; pip install slack-sdk",
    "posts to https://hooks.slack.com/services/ fail with invalid_token",
    "github.com/xoxa-nyc/site and the letters xoxb are no token",
    "os.environ['npm_config_registry_of_this_package_manager'], npm_lifecycle_event",
    "def sk_test_loader_of_the_data_set(sk_live: bool) -> whsec_type: ...",
    "glpat-… is a token of GitLab; gl-pat-terns-of-the-shader-language, glft-1",
]


@each_case("text", HARMLESS)
def test_redact_keeps_ordinary_text(text: str) -> None:
    assert redact(text) == text


PIECES = [
    "eyJ-",
    "xoxb-",
    "xapp-1-",
    "hooks.slack.com/services/",
    "glpat-a.aa",
    "npm_a",
    "sk_live_",
]


@pytest.mark.timing
@pytest.mark.parametrize("piece", PIECES)
def test_redact_takes_linear_time(piece: str) -> None:
    """Beginnings of keys, again and again: each is looked at from its own place."""
    texts = [piece * (size // len(piece)) for size in (10_000, 20_000)]
    attempts: list[float] = []
    while len(attempts) < 4 and (not attempts or min(attempts) > 2.3):
        short, long = [cpu_seconds(lambda text=text: redact(text), tries=5) for text in texts]
        attempts.append(long / short)
    assert min(attempts) <= 2.3


def test_redact_value_masks_by_key_and_by_shape() -> None:
    value = {
        "api_key": "plain",
        "Authorization": "plain",
        "note": ["uses sk-12345678", {"set-cookie": "plain"}],
        "sk-12345678": 1,
        "tokens": 5,
        "password": 5,
        "text": "ordinary",
    }
    assert redact_value(value) == {
        "api_key": MASK,
        "Authorization": MASK,
        "note": [f"uses {MASK}", {"set-cookie": MASK}],
        MASK: 1,
        "tokens": 5,
        "password": 5,
        "text": "ordinary",
    }


def test_redact_value_limits_depth_and_width() -> None:
    lists: Any = "end"
    objects: Any = "end"
    for _ in range(5_000):
        lists, objects = [lists], {"a": objects}
    assert json.dumps(redact_value(lists)).count("[") == 32
    assert json.dumps(redact_value(objects)).count("{") == 32
    assert len(redact_value(list(range(10_000)))) == 256
    assert len(redact_value(dict.fromkeys(range(10_000)))) == 256
    assert len(redact_value("x" * 1_000_000)) == 1 << 16


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(codec=None), max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
)


@given(JSON)
def test_redact_value_is_always_json(value: Any) -> None:
    json.dumps(redact_value(value), ensure_ascii=False).encode("utf-8")


@given(st.text(max_size=300))
def test_redact_is_idempotent(text: str) -> None:
    assert redact(redact(text)) == redact(text)


TEXTS = [
    "",
    "no key",
    "sk-proj-0123456789abcdef",
    "x" * 20 + " Authorization: Bearer abc.def-ghi " + "sk-a1b2c3d4 " * 4 + "?key=abcdefgh&x",
    "asksk-notakey sk-akey1234 AIzaSyD0123456789abc eyJhbGciOiJI.eyJzdWIiOiIx.sig",
]


@pytest.mark.parametrize("window", [40, 41, 64, 1 << 16])
def test_parts_are_the_redacted_text(window: int) -> None:
    for text in TEXTS:
        for shift in range(45):
            shifted = "y " * shift + text
            assert "".join(redacted_parts(shifted, window)) == redact(shifted)


def test_part_is_of_a_window() -> None:
    assert len(list(redacted_parts("word " * 1000, 100))) == 50
    assert len(list(redacted_parts("word " * (1 << 16)))) == 5
