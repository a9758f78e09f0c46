"""The official SDKs as readers of what is encoded, imported at first use.

Each takes a second to import, and collecting the tests must not wait for them. A missing SDK skips
the test that needs it, with the reason.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest


class LazySDK:
    """A module that is imported when its first attribute is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # pytest looks for marks on every global of a test module.
        if attribute.startswith(("_", "pytest")):
            raise AttributeError(attribute)
        reason = "the official SDK is the reader here; it comes with the dev extra"
        return getattr(pytest.importorskip(self._name, reason=reason), attribute)


anthropic: Final = LazySDK("anthropic")
openai: Final = LazySDK("openai")


@cache
def reader_of(official: Any) -> Any:
    """Reads values as a type of an SDK. pydantic needs up to 200 ms to prepare for a type."""
    reason = "pydantic is not installed: requests are not read by the official types"
    return pytest.importorskip("pydantic", reason=reason).TypeAdapter(official)
