"""Our own recordings of real servers: each holds what its name says, for every partition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamlib_parsers import (
    Completed,
    FunctionCall,
    OutputTextDelta,
    Response,
    ResponseEvent,
    accumulate,
    parse_body,
    parser,
)
from tests.support.partitions import byte_by_byte, every_single_split
from tests.support.shared import MISSING, ROOT, WIRES, recordings
from tests.support.thorough import THOROUGH

HOME = ROOT / "tests" / "recordings"
RECORDINGS = sorted(path for path in HOME.glob("*/*") if path.suffix != ".md")
STREAMS = [path for path in RECORDINGS if path.suffix != ".json"]
ENCODE = msgspec.json.Encoder()


def wire(path: Path) -> Any:
    return path.parent.name


def events_of(path: Path, chunks: list[bytes]) -> list[ResponseEvent]:
    wire_parser = parser(wire(path))
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += wire_parser.feed(chunk)
    return events + wire_parser.close()


def response_of(path: Path) -> Response:
    return accumulate(events_of(path, [path.read_bytes()]))


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "path", [pytest.param(path, id=f"{path.parent.name}-{path.name}") for path in paths]
    )


def test_every_wire_of_an_installed_server_has_recordings() -> None:
    assert {path.parent.name for path in RECORDINGS} == {
        "messages",
        "responses",
        "chat",
        "gemini",
        "converse",
        "ollama",
    }


@each(STREAMS)
def test_a_recorded_stream_completes(path: Path) -> None:
    events = events_of(path, [path.read_bytes()])
    assert isinstance(events[-1], Completed), events[-1]


@each([path for path in STREAMS if "tool" in path.name])
def test_a_recorded_call_is_complete_and_ends_the_turn(path: Path) -> None:
    response = response_of(path)
    calls = [call.parsed() for call in response.calls if isinstance(call, FunctionCall)]
    assert calls[0] == {"city": "Paris", "days": 3}
    assert calls[1:] in ([], [{"tz": "Europe/Paris"}])
    assert len(calls) == len(response.calls)


@each([path for path in STREAMS if "thinking" in path.name])
def test_recorded_reasoning_is_not_part_of_the_text(path: Path) -> None:
    response = response_of(path)
    assert response.reasoning
    assert response.reasoning not in response.text


@each([path for path in STREAMS if "halves" in path.name])
def test_an_emoji_split_between_deltas_is_joined(path: Path) -> None:
    assert re.search(rb"\\ud8[0-9a-f]{2}\"", path.read_bytes()), "no delta ends in half an emoji"
    events = events_of(path, [path.read_bytes()])
    text = "".join(event.delta for event in events if isinstance(event, OutputTextDelta))
    assert (
        text
        == accumulate(events).text
        == "Grüße, 世界! 👋🏽 How are 👩\u200d👩\u200d👧\u200d👦 and 𠮷野家 today?"
    )
    assert all(event.delta.encode() for event in events if isinstance(event, OutputTextDelta))


@each(STREAMS)
def test_every_split_gives_the_same_events(path: Path) -> None:
    body = path.read_bytes()
    reference = [ENCODE.encode(event) for event in events_of(path, [body])]
    for chunks in (byte_by_byte(body), *every_single_split(body, 700 if THOROUGH else 350)):
        assert [ENCODE.encode(event) for event in events_of(path, chunks)] == reference


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("messages/aimock-overloaded.json", "overloaded"),
        ("chat/litellm-not-found.json", "not_found"),
        ("chat/llama-too-long.json", "context_window_exceeded"),
    ],
)
def test_a_recorded_error_body_has_its_kind(name: str, kind: str) -> None:
    path = HOME / name
    error = accumulate(parse_body(wire(path), path.read_bytes())).error
    assert error is not None
    assert error.kind == kind


def test_a_signature_after_the_next_block_started_is_assigned() -> None:
    """The late signature of llama.cpp belongs to the reasoning before it."""
    body = (HOME / "messages" / "llama-thinking.sse").read_bytes()
    assert body.index(b'"index":1') < body.index(b"signature_delta")
    assert (
        accumulate(events_of(HOME / "messages" / "x.sse", [body])).items[0].__class__.__name__
        == "Reasoning"
    )


@pytest.mark.parametrize("folder", WIRES)
def test_most_recorded_streams_are_complete(folder: str) -> None:
    """Tests of encoders compare what completes: were there nothing, they would compare nothing."""
    recorded = recordings(folder)
    if not recorded:
        pytest.skip(MISSING)
    complete = 0
    for recording in recorded:
        wire_parser = parser(WIRES[folder])  # type: ignore[arg-type]
        events = [*wire_parser.feed(recording.body), *wire_parser.close()]
        complete += isinstance(events[-1], Completed)
    assert complete >= 0.9 * len(recorded)
