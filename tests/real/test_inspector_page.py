"""The inspector's page in headless Chromium: what it shows, by keyboard, and how fast it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lab.real.ui_readers import HOME, absence_in, chromium
from streamlib.inspection import compare, inspect, redacted, render
from streamlib.recording import RecordedRequest, Recording
from streamlib.request.report import Change
from streamlib_parsers import accumulate, parser
from streamlib_parsers.json_fragments import IncrementalJson
from tests.real.conftest import ABSENT
from tests.support.inspections import (
    HOSTILE_TEXTS,
    argument_deltas,
    body_of,
    hostile_body,
    long_body,
    messages_body,
    paced,
    text_deltas,
)
from tests.support.shared import ROOT

pytestmark = [pytest.mark.real]

SCRIPT: Final = ROOT / "lab" / "real" / "inspector_page.mjs"
LOOKS: Final = [("light", False), ("dark", False), ("light", True), ("dark", True)]
LARGE_FRAMES: Final = 20_000
OPENED_MS: Final = 1000
STEP_MS: Final = 16
"""A step of the scrubber fits into one picture of a screen with 60 a second."""
LARGE_BYTES: Final = 1_200_000
IMAGE_BYTES: Final = 9_000_000
JSON_SHOWN: Final = 200_000
"""Characters of a request that the page shows."""


def browse(folder: Path, pages: Mapping[str, str], task: str, **asked: Any) -> dict[str, Any]:
    """What a task of `inspector_page.mjs` saw."""
    why = absence_in(HOME, ("playwright-core",)) or (None if chromium() else "there is no chromium")
    if why is not None:
        pytest.skip(f"{ABSENT}: browser, {why}")
    paths: dict[str, str] = {}
    for name, html in pages.items():
        path = folder / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        paths[name] = str(path)
    pictures = os.environ.get("STREAMLIB_PICTURES") or str(folder)
    command = ["node", str(SCRIPT), str(HOME), chromium() or "", pictures]
    done = subprocess.run(
        command,
        input=json.dumps({"task": task, "pages": paths, **asked}).encode(),
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    seen: dict[str, Any] = json.loads(done.stdout)
    assert (seen["complaints"], seen["foreign"], seen["dialogs"]) == ([], [], [])
    return seen


def page_of(recording: Recording, name: str = "response.jsonl") -> str:
    return render([inspect(recording, name=name)])


def tool_call() -> Recording:
    """Reasoning, text with an umlaut at the border of two chunks, and a call that is truncated."""
    text = ["Grüße", " aus", " Zürich: ", "日本", " 😀"]
    call = {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {}}
    blocks = [{"type": "thinking", "thinking": ""}, {"type": "text", "text": ""}, call]
    thinking = [{"type": "thinking_delta", "thinking": word} for word in ("Let ", "me ", "see.")]
    fragments = ['{"city": "Zü', 'rich", "days": [1, 2', '3], "unit": "cel', 'sius"}']
    body = messages_body(blocks, [thinking, text_deltas(text), argument_deltas(fragments)])
    truncated = body[: body.index(b"sius") + 2]
    # More than a second without bytes, then one frame of which each chunk comes late.
    pauses = {8: 1.4, 20: 0.3, 21: 0.3, 22: 0.3}
    recording = paced(truncated, "messages", chunk_bytes=60, pauses=pauses, end="ReadError")
    change = Change("dropped", "/seed", "not on this wire")
    request = RecordedRequest({}, b'{"model": "claude", "messages": []}', (change,))
    return msgspec.structs.replace(recording, request=request)


def test_page_shows_every_frame_as_it_was_received(tmp_path: Path) -> None:
    recording = tool_call()
    inspection = inspect(recording, name="response.jsonl")
    page = browse(tmp_path, {"call": render([inspection])}, "frames", page="call")
    assert page["verdict"].endswith("failed (truncated)")
    assert page["cards"]["model"] == "claude"
    assert len(page["findings"]) == len(inspection.findings)
    assert page["privacy"] == "Holds what was said. It may hold keys that a server repeated."
    assert page["cards"]["longest silence"].startswith("1.42 s without bytes")
    assert page["cards"]["tokens in → out"].startswith("3,500 → 1")
    assert "1,500 from cache" in page["cards"]["tokens in → out"]
    assert inspection.silences.no_frame != ()
    assert {"no bytes", "bytes, no frame"} <= set(page["lanes"])
    assert {"bar none", "bar silence"} <= set(page["bars"])
    assert "bar truncated" in " ".join(page["bars"])
    assert "truncated" in page["notes"]
    body = recording.body
    start = 0
    parse = parser("messages", headers=recording.headers)
    events = []
    for state, size in zip(page["states"], inspection.frames.bytes, strict=True):
        events += parse.feed(body[start : start + size])
        if start + size == len(body):
            events += parse.close()
        assert shown_texts(state) == expected_texts(events), state["frame"]
        if size:
            assert state["bytes"] == expected_bytes(recording, start, start + size)
        start += size
    assert inspection.split_characters.count > 0
    assert "".join(state["bytes"] for state in page["states"]).count("┊") > 0
    assert "Chunks that end inside a character" in page["unusual"]
    assert "dropped /seed: not on this wire" in page["unusual"]


def shown_texts(state: Mapping[str, Any]) -> list[str]:
    return [text for item in state["items"] for text in item["texts"]]


def expected_texts(events: Sequence[Any]) -> list[str]:
    texts: list[str] = []
    for item in accumulate(events).items:
        parts = getattr(item, "content", ())
        text = "".join(getattr(part, "text", part) for part in parts)
        text += getattr(item, "arguments", "")
        if text:
            texts.append(text)
    return texts


def expected_bytes(recording: Recording, start: int, end: int) -> str:
    """Bytes of a frame as the page shows them, with the borders of the chunks."""
    borders: list[int] = []
    offset = 0
    for chunk in recording.chunks:
        if start <= offset < end and offset > 0:
            borders.append(offset)
        offset += len(chunk.data)
    shown = ""
    for first, last in pairwise(sorted({start, *borders, end})):
        if first in borders:
            is_inside = 0x80 <= recording.body[first] < 0xC0
            shown += "┊" if is_inside else "│"
        shown += recording.body[first:last].decode("utf-8", "backslashreplace")
    return shown


def test_page_works_in_the_frame_of_a_notebook(tmp_path: Path) -> None:
    inspection = inspect(tool_call(), name="response.jsonl")
    pages = {"notebook": f"<!doctype html><h1>A notebook</h1>{inspection._repr_html_()}"}
    seen = browse(tmp_path, pages, "notebook", page="notebook")
    assert seen["where"].startswith(f"frame {inspection.findings[-1].frame} of")
    assert (seen["name"], seen["frames"]) == ("response.jsonl", ["about:srcdoc"])


def test_growing_arguments_are_those_of_partial(tmp_path: Path) -> None:
    arguments = [
        '{"city": "Z\\u00fcrich \\ud83d\\ude00", "x": 12}',
        '{"n": [1, -2.5e3, true, null, {"a": {}, "b": []}]}',
        '["a\\n\\"b", {"c": "d"}]',
        '{"a": tru, "b": 1}',
    ]
    texts = [text[:size] for text in arguments for size in range(len(text) + 1)]
    pages = {"call": page_of(tool_call())}
    seen = browse(tmp_path, pages, "partial", page="call", texts=texts)
    for text, value in zip(texts, seen["values"], strict=True):
        growing = IncrementalJson()
        growing.feed(text)
        assert value == growing.partial(), text


def test_page_is_legible_and_fits_in_every_look(tmp_path: Path) -> None:
    a = inspect(tool_call(), name="a.jsonl")
    name = f"{'a-long-name-of-a-file-' * 12}.jsonl"
    b = inspect(paced(body_of("messages/llama-tool.sse"), "messages"), name=name)
    pages = {
        "call": render([a]),
        "redacted": render([redacted(a)]),
        "raw": render([inspect(body_of("chat/llama-thinking.sse"), "chat", name="capture.sse")]),
        "aws": page_of(paced(body_of("converse/aimock-tool.eventstream"), "converse")),
        "error": render([inspect(body_of("chat/litellm-not-found.json"), "chat", name="e.json")]),
        "empty": render([inspect(b"", "chat", name="empty.sse")]),
        "difference": render([a, b], compare(a, b)),
    }
    seen = browse(tmp_path, pages, "looks", looks=LOOKS)
    assert (seen["faint"], seen["wide"]) == ([], [])


def test_page_is_used_by_keyboard_alone(tmp_path: Path) -> None:
    recording = paced(body_of("chat/llama-tool.sse"), "chat")
    inspection = inspect(recording, name="response.jsonl")
    splits = inspection.splits.results
    pages = {"tool": render([inspection])}
    seen = browse(tmp_path, pages, "keyboard", page="tool", filter="finish", splits=len(splits))
    last = len(inspection.frames.bytes) - 1
    steps = {"right": 4, "left": 3, "j": 4, "k": 3, "ten": 13, "home": 0, "end": last}
    assert (seen["opened"], seen["steps"]) == (3, steps)
    assert seen["address"] == "#frame=1"
    assert [stop["name"] for stop in seen["stops"] if not stop["outline"]] == []
    names = [stop["name"] for stop in seen["stops"]]
    for name in ("play", "position", "filter", "frames", "frame", "growing", "split"):
        assert name in names
    assert seen["filtered"]["matches"] == f"1 of {last + 1} frames"
    assert "finish" in seen["filtered"]["rows"][0]
    assert (seen["unfiltered"], seen["focus"]) == ("", "frames")
    assert seen["unfolded"] > seen["folded"] == seen["refolded"]
    assert seen["below"] > 0
    assert [name for name, _ in seen["tabs"]] == ["Bytes", "Hex", "JSON", "Events"]
    assert len({text for _, text in seen["tabs"]}) == 4
    assert len(seen["splits"]) == len(splits) > 3
    assert all("the events are the same" in split for split in seen["splits"])
    assert (seen["help"], seen["off"], seen["help_off"]) == (True, True, False)
    assert (seen["playing"], seen["played"]) == ("true", "Play")
    assert seen["led"] == {"frame": inspection.findings[-1].frame, "focus": "frames"}


def test_recording_runs_nothing_in_the_page(tmp_path: Path) -> None:
    recording = paced(hostile_body(), "messages", chunk_bytes=90)
    name = HOSTILE_TEXTS[0]
    seen = browse(tmp_path, {"hostile": page_of(recording, name)}, "hostile", page="hostile")
    assert seen["hit"] is None
    # The loader and what it added.
    assert seen["made"] == [0, 0, 0, 2]
    assert seen["attributes"] == []
    for text in HOSTILE_TEXTS[:3]:
        assert text in seen["text"]
    assert "⟨U+202E⟩" in seen["text"]
    assert not {"\u202e", "\u2066", "\x1b", "\x00"} & set(seen["text"])
    assert seen["blocked"] == {"hit": None, "load": "TypeError"}


def test_page_shows_the_start_of_a_large_request(tmp_path: Path) -> None:
    recording = paced(body_of("chat/llama-tool.sse"), "chat")
    image = b'{"data": "' + b"A" * IMAGE_BYTES + b'"}'
    bodies = {
        "image": image,
        "truncated": b'{"content": "' + b'{\\"a\\":1},' * 20_000,
        "small": b'{"model": "m", "messages": []}',
    }
    pages: dict[str, str] = {}
    for name, body in bodies.items():
        request = RecordedRequest({}, body, ())
        pages[name] = page_of(msgspec.structs.replace(recording, request=request))
    seen = browse(tmp_path, pages, "requests")["requests"]
    assert {request["closed"] for request in seen.values()} == {0}
    assert seen["small"]["end"] == '{\n  "model": "m",\n  "messages": []\n}'
    left = len(image) - JSON_SHOWN
    assert seen["image"]["end"].endswith(f"\n… {left:,} characters of {len(image):,} left out")
    assert seen["image"]["size"] < JSON_SHOWN + 200
    assert seen["truncated"]["elapsed"] < 2000


def test_moving_by_hand_stops_playing(tmp_path: Path) -> None:
    pages = {"long": page_of(paced(long_body(500), "messages"))}
    seen = browse(tmp_path, pages, "playing", page="long", filter="stop")
    assert seen["started"]
    assert seen["stopped"] == {"pointer": True, "address": True, "filter": True}
    assert seen["moved"] == 0


def test_page_of_20000_frames_opens_within_a_second(tmp_path: Path) -> None:
    inspection = inspect(paced(long_body(LARGE_FRAMES), "messages", step=0.001), name="long.jsonl")
    page = render([inspection])
    assert len(page.encode()) <= LARGE_BYTES
    seen = browse(tmp_path, {"large": page}, "speed", page="large")
    steps = seen["steps"]
    figures = (
        f"{len(page.encode()):,} bytes, opened in {min(seen['opened']):.0f} ms, a step in "
        f"{steps[len(steps) // 2]:.1f} ms (99 of 100 in {steps[-4]:.1f}), filtered in "
        f"{seen['filter']:.0f} ms, {seen['elements']} elements"
    )
    sys.stdout.write(f"{figures}\n")
    assert min(seen["opened"]) <= OPENED_MS, figures
    assert steps[len(steps) // 2] <= STEP_MS, figures
    assert seen["elements"] < 2000, figures


def test_page_shows_the_first_difference_of_two(tmp_path: Path) -> None:
    body = body_of("chat/llama-tool.sse")
    changed = body.replace(b"city", b"town", 1)
    a, b = (
        inspect(paced(each, "chat", step=step), name=name)
        for each, step, name in ((body, 0.02, "a.jsonl"), (changed, 0.05, "b.jsonl"))
    )
    difference = compare(a, b)
    assert difference.first is not None
    seen = browse(tmp_path, {"two": render([a, b], difference)}, "difference", page="two")
    assert difference.first.text in seen["first"]
    assert len(seen["rows"]) == len(difference.rows)
    row = seen["rows"][difference.first.row]
    expected = difference.rows[difference.first.row]
    assert row[0] == "≠ changed"
    assert row[1:3] == [f"+{expected.a_at:.3f}", f"+{expected.b_at:.3f}"]
    assert "city" in row[4]
    assert "town" in row[4]
    assert seen["different"] == len([each for each in difference.rows if each.op != "same"])
    outcome = a.outcome.text
    assert seen["responses"] == [f"A: a.jsonl {outcome}", f"B: b.jsonl {outcome}"]
    assert seen["name"] == "b.jsonl"


def test_phone_shows_ticks_tools_and_no_empty_column(tmp_path: Path) -> None:
    body = body_of("chat/aimock-tool.sse")
    # So long that half of the axis is more than two of its steps, and a step of five too long.
    a = inspect(body + b": padding\n\n" * 120, "chat", name="a.sse")
    b = inspect(body_of("chat/llama-tool.sse"), "chat", name="b.sse")
    assert 4000 < a.facts.bytes < 5000
    seen = browse(tmp_path, {"two": render([a, b], compare(a, b))}, "narrow", page="two")
    assert {"0", "2,000", "4,000"} <= set(seen["timeline"])
    assert {"get_weather", "get_time"} <= set(seen["timeline"])
    assert seen["titles"] == ["rows", "event"], "no times were recorded"


def test_redacted_page_shows_lengths_and_no_text(tmp_path: Path) -> None:
    inspection = redacted(inspect(tool_call(), name="secret.jsonl"))
    seen = browse(tmp_path, {"redacted": render([inspection])}, "frames", page="redacted")
    assert seen["privacy"] == "Texts are masked, their lengths are true. No bytes and no headers."
    everything = json.dumps(seen, ensure_ascii=False)
    assert not [word for word in ("Grüße", "Zürich", "celsius", "secret") if word in everything]
    titles = " ".join(item["title"] for item in seen["states"][-1]["items"])
    assert "message" in titles


def test_page_moves_less_for_those_who_ask(tmp_path: Path) -> None:
    pages = {"long": page_of(paced(long_body(500), "messages"))}
    seen = browse(tmp_path, pages, "motion", page="long", frame=7)
    assert seen["animations"]["reduce"] == 0
    assert seen["animations"]["no-preference"] > 0
    # In 1.6 seconds: two a second, or as often as the screen is drawn.
    assert seen["reduce"] <= 3 < seen["no-preference"]
