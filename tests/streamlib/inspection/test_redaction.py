"""A redacted inspection holds nothing that was said, whatever the bytes are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import pytest

from streamlib.inspection import (
    Inspection,
    compare,
    encode,
    inspect,
    load,
    redacted,
    redacted_difference,
)
from streamlib.inspection.redaction import (
    INNER_KEYS,
    KNOWN_WORDS,
    NUMBER_KEYS,
    OWN_KEYS,
    PART_KEYS,
    known_name,
    model_name,
    redacted_event,
)
from streamlib.recording import Chunk, RecordedRequest, Recording
from streamlib.request.report import Change
from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import (
    SampleCall,
    SampleReasoning,
    SampleResponse,
    SampleText,
)
from streamlib_parsers import WIRE_APIS
from streamlib_parsers.items import WireApi
from tests.support.cases import each_case
from tests.support.shared import ROOT

RECORDINGS = ROOT / "tests" / "recordings"
FILES = sorted(path for path in RECORDINGS.glob("*/*") if path.suffix != ".md")

SHORTEST: Final = 4
"""Characters of a text that must not be found; shorter ones are parts of other words."""


def secret_words(rng: random.Random, count: int) -> list[str]:
    """Words that are nowhere else: letters of several scripts, controls, HTML."""
    letters = "qzxjkvw日本😀é\u202e<>&\\\x07"
    return ["".join(rng.choices(letters, k=rng.randint(5, 9))) for _ in range(count)]


def response_of(words: Sequence[str]) -> SampleResponse:
    arguments = msgspec.json.encode({words[4]: words[5], "path": words[6]}).decode()
    call = SampleCall(f"call_{words[2]}", f"tool_{words[3]}", [arguments[:9], arguments[9:]])
    return (SampleReasoning(words[:2]), SampleText(words[7:]), call)


def leaks(document: bytes, words: Sequence[str]) -> list[str]:
    """The words of which a part is in a document, as it is or in the notation of JSON."""
    text = document.decode()
    found: list[str] = []
    for word in words:
        notations = {word, msgspec.json.encode(word).decode()[1:-1], repr(word)[1:-1]}
        if any(len(notation) >= SHORTEST and notation in text for notation in notations):
            found.append(word)
    return found


@each_case("wire_api", WIRE_APIS)
def test_redacted_inspection_holds_no_text_of_a_wire(wire_api: WireApi) -> None:
    for seed in range(2):
        rng = random.Random(seed)
        words = secret_words(rng, 14)
        body = b"".join(bodies.body(wire_api, response_of(words)))
        # Whole, truncated, damaged.
        for data in (body, body[: rng.randrange(len(body))], body.replace(b"delta", b"dalte", 3)):
            check_redacted(Recording(200, {}, (Chunk(0.1, data),), words[0]), wire_api, words)
        check_redacted(Recording(429, {}, (Chunk(0.1, body),)), wire_api, words)


def check_redacted(recording: Recording, wire_api: WireApi, words: Sequence[str]) -> None:
    inspection = inspect(recording, wire_api, name=words[1])
    shown = redacted(inspection)
    data = encode(shown)
    assert leaks(data, words) == []
    assert (shown.redacted, shown.body, load(data)) == (True, None, shown)
    # Everything that is no text is there.
    assert len(shown.events) == len(inspection.events)
    assert [event["type"] for event in shown.events] == [
        event["type"] for event in inspection.events
    ]
    assert lengths(shown) == lengths(inspection)
    assert [finding.code for finding in shown.findings] == [
        finding.code for finding in inspection.findings
    ]


def lengths(inspection: Inspection) -> list[int | None]:
    return [len(event["delta"]) if "delta" in event else None for event in inspection.events]


def server_results(value: Any) -> dict[WireApi, bytes]:
    """Responses with an output of a server tool, by wire."""
    block = {"type": "mcp_tool_result", "tool_use_id": "u", "is_error": False, "content": value}
    events: list[Any] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]
    messages = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events)
    part = {"toolResponse": {"id": "1", "toolType": "URL_CONTEXT", "response": value}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    gemini = b"data: " + msgspec.json.encode({"candidates": [candidate]}) + b"\n\n"
    return {"messages": messages, "gemini": gemini}


def any_output(rng: random.Random, words: Sequence[str], depth: int = 3) -> Any:
    """A JSON value with the keys that remain in streamlib's own objects."""
    if depth == 0:
        return rng.choice([rng.choice(words), 4_111_111_111_111_111])
    if rng.random() < 0.3:
        return [any_output(rng, words, depth - 1) for _ in range(3)]
    keys = sorted(OWN_KEYS) + sorted(INNER_KEYS | PART_KEYS | NUMBER_KEYS)
    value = {key: any_output(rng, words, depth - 1) for key in rng.sample(keys, 6)}
    if rng.random() < 0.5:
        value["type"] = rng.choice(["text", "server_tool_result", "message", words[0]])
    return value


@each_case("wire_api", ("messages", "gemini"))
def test_redacted_inspection_holds_no_output_of_a_tool(wire_api: WireApi) -> None:
    for seed in range(4):
        rng = random.Random(seed)
        words = secret_words(rng, 12)
        body = server_results([{"type": words[1], "limit": 4111111111111111}])[wire_api]
        check_redacted(Recording(200, {}, (Chunk(0.1, body),)), wire_api, words)
        # The first is a part by its type; Gemini's output is an object.
        part = {"type": "text", "limit": 4_111_111_111_111_111, "text": words[0]}
        output: Any = [part, any_output(rng, words)]
        if wire_api == "gemini":
            output = {"type": "message", "content": output, "index": 4_111_111_111_111_111}
        body = server_results(output)[wire_api]
        inspection = inspect(body, wire_api)
        assert "server_tool_result" in [item.type for item in inspection.items]
        data = encode(redacted(inspection))
        assert leaks(data, words) == []
        assert b"4111111111111111" not in data


def test_redacted_event_keeps_known_types_and_roles_alone() -> None:
    # A history may be shown too: outputs there are parts.
    event = {
        "type": "output_item_done",
        "stop_reason": "of a stranger",
        "item": {
            "type": "function_call_output",
            "role": "nobody",
            "output": [{"type": "text", "text": "abc"}, {"type": "secret", "limit": 5}],
        },
    }
    assert redacted_event(event) == {
        "type": "output_item_done",
        "item": {"type": "function_call_output", "output": [{"type": "text", "text": "***"}]},
    }


def test_model_name_of_a_key_is_removed() -> None:
    assert model_name("gpt-5.2") == "gpt-5.2"
    assert model_name("sk-proj-4f9a8b7c6d5e4f3a2b1c") is None


@each_case("path", FILES)
def test_redacted_recording_holds_no_string_of_its_events(path: Any) -> None:
    inspection = inspect(path.read_bytes(), path.parent.name)
    shown = redacted(inspection)
    assert "unknown" not in shown.frames.kinds
    data = encode(shown).decode()
    for text in strings_of(inspection.events):
        is_name = known_name(text) == text or model_name(text) == text == inspection.outcome.model
        is_name = is_name or text == inspection.source.wire_api
        if len(text) >= SHORTEST and not is_name:
            assert msgspec.json.encode(text).decode() not in data


def strings_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_of(inner)


def test_redacted_inspection_holds_no_text_of_the_request() -> None:
    words = secret_words(random.Random(7), 20)
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": words[0]}]}
    change = Change("dropped", f"/tools/0/{words[1]}", f"no {words[2]}")
    request = RecordedRequest({"x-request-id": words[3]}, msgspec.json.encode(body), (change,))
    recording = Recording(
        status=200,
        headers={"request-id": words[4]},
        chunks=(Chunk(0.5, b"".join(bodies.body("messages", response_of(words)))),),
        end=words[5],
        url=f"https://{words[6]}.example/{words[7]}",
        wire_api="messages",
        request=request,
    )
    shown = redacted(inspect(recording, name=words[8]))
    assert leaks(encode(shown), words) == []
    assert shown.request is not None
    assert (shown.request.items, shown.request.model) == (1, "m")
    assert [change.path for change in shown.request.changes] == ["/tools/0/unknown"]


def test_redacted_inspection_holds_no_name_that_a_server_made_up() -> None:
    words = secret_words(random.Random(3), 9)
    lines: list[str] = []
    for word in words:
        safe = msgspec.json.encode(word).decode()
        lines.append(f'event: {word}\ndata: {{"type":{safe},{safe}:{{{safe}:[{safe}]}}}}\n\n')
        lines.append(f"data: {word}\n\n")
        lines.append(f'data: {{"choices":[{{"delta":{{{safe}:1}},"finish_reason":{safe}}}]}}\n\n')
        lines.append(f'data: {{"error":{{"code":{safe},"type":{safe},"message":{safe}}}}}\n\n')
    body = "".join(lines).encode()
    for wire_api in WIRE_APIS:
        for start in range(0, len(body), 997):
            check_redacted(Recording(200, {}, (Chunk(0.1, body[start:]),)), wire_api, words)


def test_redacted_difference_holds_no_text() -> None:
    rng = random.Random(5)
    words, others = secret_words(rng, 20), secret_words(rng, 20)
    ours, theirs = [
        inspect(b"".join(bodies.body("messages", response_of(drawn))), "messages", name=drawn[0])
        for drawn in (words, others)
    ]
    difference = compare(ours, theirs)
    shown = redacted_difference(difference)
    assert leaks(msgspec.json.encode(difference), words) != []
    assert leaks(msgspec.json.encode(shown), [*words, *others]) == []
    assert [row.op for row in shown.rows] == [row.op for row in difference.rows]


def test_redacted_inspections_are_not_compared() -> None:
    """Different texts of the same length were equal."""
    ours, theirs = [
        inspect(b"".join(bodies.body("messages", (SampleText([text]),))), "messages")
        for text in ("left", "west")
    ]
    assert not compare(ours, theirs).equal
    for a, b in ((redacted(ours), redacted(theirs)), (ours, redacted(theirs))):
        with pytest.raises(ValueError, match="redacted_difference"):
            compare(a, b)


@each_case(
    "name, expected",
    [
        ("content_block_delta", "content_block_delta"),
        ("contentBlockDelta", "contentBlockDelta"),
        ("response.output_text.delta, end of input", "response.output_text.delta, end of input"),
        ("finishReason MAX_TOKENS", "finishReason MAX_TOKENS"),
        ("[DONE], end of input", "[DONE], end of input"),
        ("ReadError", "ReadError"),
        ("password", "unknown"),
        ("read 1234", "unknown"),
        ("content\nblock", "unknown"),
    ],
)
def test_known_name_keeps_names_of_known_words(name: str, expected: str) -> None:
    assert known_name(name) == expected


@each_case("wire_api", WIRE_APIS)
def test_kinds_of_frames_of_every_wire_are_known(wire_api: WireApi) -> None:
    response = (SampleReasoning(["a"]), SampleText(["b"]), SampleCall("c", "d", ["{}"]))
    shown = redacted(inspect(b"".join(bodies.body(wire_api, response)), wire_api))
    assert "unknown" not in shown.frames.kinds


def test_known_words_are_single_words_in_lower_case() -> None:
    assert all(word.isalpha() and word == word.lower() for word in KNOWN_WORDS)
