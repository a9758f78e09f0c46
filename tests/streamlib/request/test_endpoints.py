"""Targets: what a model's name may not do to the URL of its request."""

from __future__ import annotations

import pytest

from streamlib import StreamError, build
from tests.support.cases import each_case


@each_case("provider", ["bedrock", "google", "anthropic"])
@each_case("model", [".", "..", "a/..", "../a"])
def test_model_that_changes_the_url_path_is_refused(provider: str, model: str) -> None:
    """B12: HTTP libraries and proxies resolve such a segment, so another URL would be called."""
    with pytest.raises(StreamError) as raised:
        build("hi", model, provider=provider, base_url="https://host.example/v1")
    assert (raised.value.info.kind, raised.value.info.code) == ("invalid_request", "model")


@pytest.mark.parametrize("model", ["org/model", "a..b", "v1.5"])
def test_model_with_dots_or_slashes_inside_is_one_segment(model: str) -> None:
    url = build("hi", model, provider="bedrock", base_url="https://host.example").url
    encoded = model.replace("/", "%2F")
    assert url == f"https://host.example/model/{encoded}/converse-stream"


def test_missing_model_is_named() -> None:
    """It was said to have blanks."""
    with pytest.raises(StreamError, match="'model' is missing"):
        build("hi", "", provider="openai")


def test_model_with_an_endless_name_is_refused() -> None:
    """Caches of the process keep names: a client of a gateway could fill them with megabytes."""
    assert build("hi", "m" * 2048, provider="openai").model == "m" * 2048
    with pytest.raises(StreamError, match="at most 2048 characters") as raised:
        build("hi", "m" * 2049, provider="openai")
    assert raised.value.info.code == "model"
