"""The web example in headless Chromium: every visible state, light and dark, desktop and phone."""

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

pytestmark = [pytest.mark.slow]  # a minute in a browser: `pytest -m slow tests/examples`

SCRIPT: Final = Path(__file__).with_name("browse.mjs")
LOOKS: Final = [("light", False), ("dark", False), ("light", True), ("dark", True)]
each_look = pytest.mark.parametrize(("scheme", "phone"), LOOKS)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the screenshots go: STREAMLIB_PICTURES keeps them."""
    folder = os.environ.get("STREAMLIB_PICTURES")
    return Path(folder) if folder else tmp_path_factory.mktemp("pictures")


@cache
def seen(pictures: Path, scheme: str, phone: bool) -> dict[str, Any]:
    """What one visit saw; each look is visited once."""
    why = absence() or (None if chromium() else "there is no chromium")
    if why is not None:
        pytest.skip(f"{ABSENT}: browser, {why}")
    found: dict[str, Any] = anyio.run(_visit, pictures, scheme, phone)
    return found


async def _visit(pictures: Path, scheme: str, phone: bool) -> dict[str, Any]:
    faulty = Behaviour(fault="disconnect", at=18, pace=0.005)
    limited = Behaviour(status=429, headers={"retry-after": "90"})
    async with (
        web(Behaviour(pace=0.06)) as (good, _),
        web(Behaviour(pace=0.03)) as (slow, provider),
        web(faulty, retry=NO_RETRY) as (bad, _),
        web(limited, retry=NO_RETRY) as (busy, _),
        web(Behaviour(status=401)) as (refused, _),
    ):
        urls = {"good": good, "slow": slow, "faulty": bad, "limited": busy, "refused": refused}
        settings = {**urls, "scheme": scheme, "phone": phone}
        command = ["node", str(SCRIPT), str(HOME), chromium() or "", str(pictures)]
        with anyio.fail_after(120):
            done = await anyio.run_process(
                command, input=json.dumps(settings).encode(), check=False
            )
        assert done.returncode == 0, done.stderr.decode()
        with anyio.move_on_after(5):
            await provider.wait_for_disconnect()
        return {**json.loads(done.stdout), "left": provider.disconnects}


@each_look
def test_page_logs_no_error_and_contacts_no_other_host(
    pictures: Path, scheme: str, phone: bool
) -> None:
    page = seen(pictures, scheme, phone)
    assert (page["complaints"], page["foreign"], page["wide"]) == ([], [], False)
    assert page["idle"] == {"heading": ["Ask anything"], "send": True}
    assert len(list(pictures.glob(f"?-*-{scheme}{'-phone' if phone else ''}.png"))) == 9


@each_look
def test_page_shows_reasoning_calls_usage_and_limits(
    pictures: Path, scheme: str, phone: bool
) -> None:
    page = seen(pictures, scheme, phone)
    tool = page["tool"]
    assert page["growing"][0].startswith("{")
    assert (tool["name"], tool["state"]) == (["get_weather"], ["done"])
    assert json.loads(tool["arguments"][0])["city"] == "Lisbon"
    assert len(page["growing"][0]) < len(tool["arguments"][0])
    weather = (
        "Lisbon: 21 °C, a light breeze and sun for the next 3 days. "
        "Good for a long walk by the river with a stop for coffee."
    )
    assert tool["output"] == [weather]
    assert all(label.startswith("Thought for") for label in tool["reasoning"])
    assert (tool["folded"], page["unfolded"]) == (0, True), "it never folds under the reader"
    assert tool["limits"] == ["999 requests left", "99,000 tokens left"]
    assert tool["model"] == ["echo"]
    assert all(fact in tool["facts"][-1] for fact in ("first token", "tokens/s", " in", " out"))


@each_look
def test_markdown_is_rendered_without_active_content(
    pictures: Path, scheme: str, phone: bool
) -> None:
    page = seen(pictures, scheme, phone)
    assert page["markdown"]["strong"] == ["Bytes"]
    assert page["markdown"]["code"] == ["async for event in stream:\n    screen.show(event)"]
    assert page["markdown"]["keywords"] == ["async", "for", "in"]
    assert page["markdown"]["items"] == 3
    assert page["markdown"]["cells"][:2] == ["messages", "message_stop"]
    assert page["harmless"] == {
        "title": "streamlib chat",
        "images": 0,
        "links": ["https://example.com/i.png"],
    }


@each_look
def test_response_and_code_can_be_copied(pictures: Path, scheme: str, phone: bool) -> None:
    """E6: no copy."""
    copied = seen(pictures, scheme, phone)["copied"]
    assert copied["code"] == "async for event in stream:\n    screen.show(event)"
    assert copied["button"] == ["Copied"]
    assert copied["answer"].startswith("You said: Streaming in three points:\n\n1. **Bytes**")


@each_look
def test_reload_and_second_tab_show_the_same(pictures: Path, scheme: str, phone: bool) -> None:
    """E6: a reload lost the conversation; here one in the middle of an answer loses nothing."""
    page = seen(pictures, scheme, phone)
    assert page["tabs"] == {"same": True, "turns": 1}
    assert page["repeated"] == {"turns": 1, "buttons": 1}


@each_look
def test_stop_closes_the_connection_to_the_model(pictures: Path, scheme: str, phone: bool) -> None:
    page = seen(pictures, scheme, phone)
    assert page["stopped"]["note"] == ["Stopped. The connection to the model is closed."]
    assert page["stopped"]["same"]
    assert len(page["stopped"]["text"]) < 400
    assert page["left"] == 1, "the provider saw its client go, once"


@each_look
def test_error_follows_the_text_with_what_helps(pictures: Path, scheme: str, phone: bool) -> None:
    """E6: a retry was offered at once, for what no retry helps too."""
    page = seen(pictures, scheme, phone)
    assert page["error"]["text"][0].startswith("You said")
    assert page["error"]["note"][0].startswith("The answer broke off")
    assert "Try again" in page["error"]["note"][0]
    assert "in " not in page["error"]["note"][0].partition("Try again")[2], "at once"
    assert page["error"]["alert"] == 1
    assert page["again"] == {"turns": 1, "errors": 1}
    assert page["limited"]["waits"], "the provider named a time"
    assert page["limited"]["button"][0].startswith("Try again in ")
    assert page["refused"]["note"][0].startswith("The key is missing or wrong\n")
    assert page["refused"]["buttons"] == 0, "no repetition helps"
