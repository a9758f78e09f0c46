"""The inspector's page without a browser: what it allows, what it holds, how large it is."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec
import pytest

from streamlib.inspection import Difference, compare, inspect, load, redacted, render
from streamlib.inspection.page import SCRIPTS, digest, drawing_style, shell, text_of
from tests.support.cases import each_case
from tests.support.inspections import HOSTILE_TEXTS, body_of, hostile_body
from tests.support.page_parts import BLOCK, parts, unpacked
from tests.support.shared import ROOT

FOLDER: Final = ROOT / "streamlib" / "inspection" / "page" / "files"
SHELL_BYTES: Final = 40_000
TEXT_COLOURS: Final = ("text", "soft", "link", "good", "bad", "wait")
BAR_COLOURS: Final = ("message", "reasoning", "call", "tool", "other", "bad", "wait")


def policy_of(page: str) -> dict[str, str]:
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules: dict[str, str] = {}
    for rule in policy.split("; "):
        name, _, sources = rule.partition(" ")
        rules[name] = sources
    return rules


def test_policy_allows_the_scripts_and_the_style_by_digest() -> None:
    page = shell()
    [scripts] = parts(page, "script")
    [loader] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy_of(page) == {
        "default-src": "'none'",
        "script-src": f"'{digest(loader)}' '{digest(scripts.decode())}'",
        "style-src": f"'{digest(style)}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_page_is_one_small_file_without_addresses() -> None:
    page = shell()
    [scripts] = parts(page, "script")
    text = page + scripts.decode()
    assert len(page.encode()) <= SHELL_BYTES
    assert re.findall(r"\w+://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r"<(?:link|iframe|object|embed|img|base)\b", page) == []
    assert re.findall(r"\b(?:src|style|on\w+)=", re.sub(r"<script>.*?</script>", "", page)) == []
    assert "url(" not in page.replace("url(#", "")


def test_scripts_take_no_html_and_load_nothing() -> None:
    [scripts] = parts(shell(), "script")
    text = scripts.decode() + text_of("loader.js")
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|srcdoc"
        r"|\beval\b|new Function|\bimport\b|\bfetch\b|XMLHttpRequest|WebSocket|EventSource"
        r"|sendBeacon|localStorage|\.cookie|setAttribute\(.style"
    )
    assert re.findall(forbidden, text) == []


def test_every_file_of_the_page_is_in_it() -> None:
    others = {"shell.html", "style.css", "drawing.css", "patterns.svg", "loader.js"}
    assert {path.name for path in FOLDER.iterdir()} == others | set(SCRIPTS)
    assert "<!--" not in re.sub(r"<!--data-->", "", shell())


def test_scripts_and_styles_are_as_wide_as_python() -> None:
    wide: list[str] = []
    for path in sorted([*FOLDER.glob("*.js"), *FOLDER.glob("*.css")]):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > 100:
                wide.append(f"{path.name}:{number}")
    assert wide == []


@each_case("hostile", HOSTILE_TEXTS)
def test_text_of_a_recording_stays_in_its_block(hostile: str) -> None:
    inspection = inspect(hostile_body(), "messages", name=hostile)
    page = render([inspection])
    before, after = shell().split("<!--data-->")
    assert page.startswith(before)
    assert page.endswith(after)
    data = page.removeprefix(before).removesuffix(after)
    blocks = re.findall(BLOCK, data)
    assert re.sub(BLOCK, "", data) == ""
    assert [name for name, _ in blocks] == ["names", "inspection-0", "body-0"]
    names, document, body = (unpacked(packed) for _, packed in blocks)
    assert json.loads(names)[0].startswith(hostile)
    assert load(document) == msgspec.structs.replace(inspection, body=None)
    assert body == hostile_body()


def test_page_holds_a_difference_and_both_responses() -> None:
    a, b = (inspect(body_of(f"chat/{name}-tool.sse"), "chat") for name in ("llama", "aimock"))
    difference = compare(a, b)
    [packed] = parts(render([a, b], difference), "difference")
    assert msgspec.json.decode(packed, type=Difference) == difference
    with pytest.raises(ValueError, match="of two inspections, not of 1"):
        render([a], difference)
    with pytest.raises(ValueError, match="nothing to show"):
        render([])


def test_redacted_page_has_no_text_of_the_response() -> None:
    inspection = redacted(inspect(hostile_body(), "messages", name="secret.sse"))
    page = render([inspection])
    [document] = parts(page, "inspection-0")
    assert parts(page, "body-0") == []
    for text in ("alert", "onerror", "window.hit", "secret.sse"):
        assert text not in document.decode()


def light(colour: str) -> float:
    """The relative luminance of WCAG."""
    shares = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    lights = sorted((light(first), light(second)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def colours_of(scheme: str) -> dict[str, Any]:
    blocks = re.findall(r":root \{(.*?)\}", drawing_style(), re.DOTALL)
    block = blocks[{"light": 0, "dark": 1}[scheme]]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_the_contrast_of_aa(scheme: str) -> None:
    colours = colours_of(scheme)
    backgrounds = [colours[name] for name in ("page", "card", "chosen")]
    for name in TEXT_COLOURS:
        assert min(contrast(colours[name], each) for each in backgrounds) >= 4.5, name
    for name in BAR_COLOURS:
        assert min(contrast(colours[name], each) for each in backgrounds) >= 3, name
