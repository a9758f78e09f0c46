"""The environment of Bedrock."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    """The region that base URLs of Bedrock name."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
