"""What clients see of failing targets: the tables of docs/gateway/routes.md are current."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from lab.gateway_failures.sdks import SDKS
from lab.gateway_failures.tables import HEADS, ROUTES, columns, table
from tests.support.shared import ROOT

FAST: Final = ("openai, Chat", "anthropic")
"""SDKs that other tests import too; importing Google's takes seconds."""

each_route = pytest.mark.parametrize("targets", ROUTES)


def on_the_page(targets: str) -> str:
    page = (ROOT / "docs" / "gateway" / "routes.md").read_text(encoding="utf-8")
    return page[page.index(f"| {HEADS[targets]} |") :].split("\n<!--")[0]


def agrees(targets: str, sdks: Sequence[str]) -> None:
    assert table(targets, sdks) == columns(on_the_page(targets), sdks)


@each_route
def test_page_shows_what_sdks_see(targets: str) -> None:
    agrees(targets, FAST)


@pytest.mark.real
@each_route
def test_page_shows_what_every_sdk_sees(targets: str) -> None:
    agrees(targets, tuple(SDKS))


def test_page_has_every_failure_of_both_routes() -> None:
    for targets in ROUTES:
        # A head, a rule, and seven failures of a stream and of a body.
        assert len(on_the_page(targets).splitlines()) == 2 + 7 * 2
