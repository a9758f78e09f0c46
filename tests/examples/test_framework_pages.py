"""The pages of React (the real `useChat`) and of AG-UI's client, in headless Chromium."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from lab.real.ui_readers import HOME, absence, chromium
from streamlib.client.retry import NO_RETRY
from streamlib.testing import Behaviour
from tests.examples.serving import web
from tests.real.conftest import ABSENT
from tests.support.shared import ROOT

SCRIPT: Final = Path(__file__).with_name("pages.mjs")
PAGES: Final = ("react", "agui")
OUTPUT: Final = "Booked: 3 days in Lisbon."

each_page = pytest.mark.parametrize("name", PAGES)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the screenshots go: STREAMLIB_PICTURES keeps them."""
    folder = os.environ.get("STREAMLIB_PICTURES")
    return Path(folder) if folder else tmp_path_factory.mktemp("pictures")


@cache
def seen(pictures: Path, name: str) -> dict[str, Any]:
    """What one visit saw; each page is visited once."""
    why = absence() or (None if chromium() else "there is no chromium")
    if why is not None:
        pytest.skip(f"{ABSENT}: browser, {why}")
    found: dict[str, Any] = anyio.run(_visit, pictures, name)
    return found


async def _visit(pictures: Path, name: str) -> dict[str, Any]:
    async with (
        web(Behaviour(pace=0.01)) as (good, _),
        web(Behaviour(pace=0.4)) as (slow, provider),
        web(Behaviour(status=529, failing=1), retry=NO_RETRY) as (failing, _),
    ):
        settings = {"page": name, "good": good, "slow": slow, "failing": failing}
        command = ["node", str(SCRIPT), str(HOME), chromium() or "", str(pictures)]
        with anyio.fail_after(120):
            done = await anyio.run_process(
                command, input=json.dumps(settings).encode(), check=False
            )
        assert done.returncode == 0, done.stderr.decode()
        with anyio.move_on_after(2):
            await provider.wait_for_disconnect()
        return {**json.loads(done.stdout), "left": provider.disconnects}


@pytest.mark.slow
@each_page
def test_tool_waits_for_an_approval(pictures: Path, name: str) -> None:
    page = seen(pictures, name)
    assert page["complaints"] == []
    assert OUTPUT not in page["asking"]
    assert OUTPUT in page["allowed"]
    assert f"The tool says: {OUTPUT}" in page["allowed"]


@pytest.mark.slow
@each_page
def test_denied_call_is_not_run_after_a_second_answer(pictures: Path, name: str) -> None:
    page = seen(pictures, name)
    assert OUTPUT not in " ".join(page["denied"])
    assert "A trip, **please**" in page["denied"]


@pytest.mark.slow
@each_page
def test_stop_of_a_framework_page_closes_the_upstream(pictures: Path, name: str) -> None:
    page = seen(pictures, name)
    assert (page["left"], page["stopped"]["alerts"]) == (1, 0)
    assert page["stopped"]["lines"][0] == "Tell me"
    assert "book_trip" not in " ".join(page["stopped"]["lines"][2:])


@pytest.mark.slow
@each_page
def test_framework_page_offers_another_try(pictures: Path, name: str) -> None:
    page = seen(pictures, name)
    assert "The model is overloaded" in page["failed"]
    assert "book_trip" in page["repaired"]
    assert "The model is overloaded" not in page["repaired"]


@each_page
def test_framework_page_is_short(name: str) -> None:
    folder = ROOT / "examples" / "web" / "page"
    files = [folder / f"{name}{suffix}" for suffix in (".html", ".js")]
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) < 120
