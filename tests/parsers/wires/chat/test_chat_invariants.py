"""Chat Completions: invariants on generated and hostile streams, recordings, and its page."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCall,
    OutputItemAdded,
    OutputItemDone,
    ResponseEvent,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.usage import Usage, count
from streamlib_parsers.wires.chat import (
    CACHE_READS,
    CACHE_WRITES,
    CHUNK_KEYS,
    FAILURE_REASONS,
    REASONING_TOKENS,
    STOP_REASONS,
)
from streamlib_parsers.wires.chat.choice import PARTS
from streamlib_parsers.wires.chat.chunks import Chunk
from streamlib_parsers.wires.chat.delta import DELTA_KEYS, NOISE
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    REASONING_KEYS,
)
from tests.support import wires
from tests.support.chat_streams import (
    ARGS,
    FINISH,
    HI,
    STOP,
    TOTAL,
    Json,
    call,
    calls,
    chunk,
    delta_chunk,
    events_of,
    sse,
    usage_chunk,
)
from tests.support.partitions import byte_by_byte, every_single_split, partitions
from tests.support.shared import BODIES, PAYLOADS, ROOT, STREAMS, Recording, each_recording

RICH = sse(
    delta_chunk(role="assistant", content=""),
    delta_chunk(reasoning_content="H\u00e9"),
    delta_chunk(reasoning_content="m"),
    delta_chunk(
        reasoning="?",
        reasoning_details=[{"type": "reasoning.text", "text": "?", "index": 0, "signature": "S"}],
    ),
    delta_chunk(content="\u65e5\u672c"),
    delta_chunk(content=" \U0001f600"),
    '{"choices":[{"delta":{"content":"\\ud83d"}}]}',
    '{"choices":[{"delta":{"content":"\\ude00!"}}]}',
    calls(call(0, "f", "", "x"), call(1, "g", "{}", "y")),
    *(calls(call(0, None, text)) for text in ('{"a"', ":", ' "', "b", '"}')),
    chunk({"content": "end"}, "tool_calls"),
    usage_chunk(**TOTAL),
)
"""A stream with every kind of delta, for partitions."""


def test_stream_is_equal_for_every_partition() -> None:
    expected = wires.events_of("chat", RICH)
    assert isinstance(expected[-1], Completed)
    assert wires.events_of("chat", *byte_by_byte(RICH)) == expected
    assert all(wires.events_of("chat", *chunks) == expected for chunks in every_single_split(RICH))


# --- generated streams ---

TEXTS = st.text(
    st.sampled_from(['"', "\\", "{", "}", "a", " ", "\n", "\u2603", "\U0001f600", ","]), max_size=4
)
ENTRY = st.builds(
    call,
    st.sampled_from([0, 0, 1, None]),
    st.sampled_from([None, None, "f", "g", ""]),
    st.one_of(TEXTS, st.sampled_from([None, "{}", '{"a":', "1}", "null", '"'])),
    st.sampled_from([None, None, "x", "y", 3]),
)
PART = st.fixed_dictionaries({"type": st.sampled_from(["text", "thinking"]), "text": TEXTS})
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "content": st.one_of(
            TEXTS,
            st.none(),
            st.lists(
                st.fixed_dictionaries(
                    {"type": st.sampled_from(["text", "thinking"]), "text": TEXTS}
                )
            ),
        ),
        "reasoning_content": TEXTS,
        "reasoning": TEXTS,
        "refusal": TEXTS,
        "tool_calls": st.lists(ENTRY, max_size=2),
        "reasoning_details": st.lists(
            st.fixed_dictionaries({"type": st.just("reasoning.text"), "text": TEXTS}), max_size=1
        ),
    },
)
CHUNK = st.builds(chunk, DELTA, st.sampled_from([None, None, None, "", "stop", "tool_calls"]))
PADDED = st.fixed_dictionaries({}, optional={"obfuscation": TEXTS, "p": st.just("x9")})
ALIKE = st.builds(
    lambda key, texts: [{**delta_chunk(**{key: text}), **padding} for text, padding in texts],
    st.sampled_from(["content", "reasoning"]),
    st.lists(st.tuples(TEXTS, PADDED)),
)
CHUNKS = st.lists(st.one_of(st.lists(CHUNK, max_size=1), ALIKE), max_size=8).map(
    lambda runs: [item for run in runs for item in run]
)


def assert_invariants(events: list[ResponseEvent]) -> None:
    """Brackets, one terminal event at the end, no incomplete call is callable, valid text."""
    added = [event.index for event in events if isinstance(event, OutputItemAdded)]
    done = [event.index for event in events if isinstance(event, OutputItemDone)]
    assert added == list(range(len(added))) == sorted(done)
    assert [isinstance(event, (Completed, Failed)) for event in events].index(True) == len(
        events
    ) - 1
    joined = dict.fromkeys(added, "")
    for event in events:
        if isinstance(getattr(event, "delta", None), str):
            event.delta.encode()  # type: ignore[union-attr]
            joined[event.index] += event.delta  # type: ignore[index, union-attr]
        if isinstance(event, OutputItemDone) and isinstance(event.item, FunctionCall):
            assert event.item.arguments == joined[event.index]
            assert event.item.arguments != "null"  # which stands for no arguments
            assert (
                event.item.status == "incomplete"
                or not event.item.arguments
                or is_json(event.item.arguments)
            )
        elif isinstance(event, OutputItemDone):
            assert getattr(event.item, "text", "") in {joined[event.index], ""}


@given(CHUNKS, st.data())
def test_generated_stream_keeps_invariants_for_any_partition(
    chunks: list[Json], data: st.DataObject
) -> None:
    body = sse(*chunks)
    expected = wires.events_of("chat", body)
    assert_invariants(expected)
    assert wires.events_of("chat", *data.draw(partitions(body))) == expected


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 5),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
HOLES = [
    lambda hole: {"choices": hole},
    lambda hole: {"choices": [hole]},
    lambda hole: {"choices": [{"delta": hole}]},
    lambda hole: {
        "choices": [
            {
                "index": hole,
                "delta": {"content": "a"},
                "usage": hole,
                "logprobs": hole,
                "finish_reason": hole,
            }
        ]
    },
    lambda hole: {
        "choices": [
            {
                "delta": {
                    "content": hole,
                    "refusal": hole,
                    "reasoning": hole,
                    "reasoning_details": hole,
                }
            }
        ]
    },
    lambda hole: {
        "choices": [
            {
                "delta": {
                    "content": [{"type": "thinking", "thinking": hole, "reasoning_details": hole}]
                }
            }
        ]
    },
    lambda hole: {
        "choices": [
            {
                "delta": {
                    "content": [
                        {"type": hole, "text": hole},
                        {"type": "reasoning", "summary": hole},
                    ]
                }
            }
        ]
    },
    lambda hole: {
        "choices": [
            {
                "delta": {
                    "reasoning_details": [hole, {"type": hole, "text": hole}],
                    "thinking_blocks": hole,
                }
            }
        ]
    },
    lambda hole: {
        "choices": [
            {"delta": {"audio": hole, "images": hole, "annotations": hole, "executed_tools": hole}}
        ]
    },
    lambda hole: {
        "choices": [
            {
                "delta": {
                    "audio": {"id": hole, "data": hole},
                    "images": [hole],
                    "executed_tools": [{"index": hole}],
                }
            }
        ]
    },
    lambda hole: {
        "choices": [{"delta": {"tool_calls": hole, "function_call": hole, "extra_content": hole}}]
    },
    lambda hole: {
        "choices": [{"delta": {"tool_calls": [hole], "extra_content": {"google": hole}}}]
    },
    lambda hole: {
        "choices": [
            {
                "delta": {
                    "tool_calls": [{"id": hole, "type": hole, "function": hole, "custom": hole}]
                }
            }
        ]
    },
    lambda hole: {
        "choices": [
            {
                "delta": {
                    "tool_calls": [
                        {"function": {"name": "f", "arguments": hole}, "extra_content": hole}
                    ]
                }
            }
        ]
    },
    lambda hole: {"choices": [{"delta": {"function_call": {"name": hole, "arguments": hole}}}]},
    lambda hole: {"choices": [{"message": hole, "error": hole}]},
    lambda hole: {
        "id": hole,
        "model": hole,
        "object": hole,
        "type": hole,
        "usage": hole,
        "choices": [],
    },
    lambda hole: {
        "error": hole,
        "x_groq": hole,
        "base_resp": hole,
        "detail": hole,
        "message": hole,
    },
    lambda hole: {
        "x_groq": {"error": hole, "usage": hole},
        "base_resp": {"status_code": hole},
        "data": hole,
        "choices": [],
    },
    lambda hole: {
        "usage": {
            "prompt_tokens": hole,
            "completion_tokens": hole,
            "total_tokens": hole,
            "prompt_tokens_details": hole,
        }
    },
]
"""Positions at which a hostile server may send any value."""


@given(st.sampled_from(HOLES), JSON)
def test_hostile_chunks_keep_the_invariants(wrap: Any, hole: Any) -> None:
    assert_invariants(events_of(HI, wrap(hole), calls(call(0, "f", ARGS, "x")), FINISH))
    assert_invariants(parse_body("chat", json.dumps(wrap(hole)).encode()))


@given(st.binary(max_size=60))
def test_hostile_bytes_keep_the_invariants(noise: bytes) -> None:
    assert_invariants(wires.events_of("chat", sse(HI, done=None) + noise + b"\n\n" + sse(STOP)))
    p = parser("chat")
    assert_invariants([*p.feed_event(sse(HI)[6:-2]), *p.feed_event(noise), *p.close()])


# --- recordings ---


def known_to_differ(recording: Recording) -> str:
    """Which fact of a recording cannot be met, judged by its content, not by its name."""
    body, facts = recording.body, recording.expected["facts"]
    if recording.path.suffix in BODIES and b'"message"' in body and b'"delta"' in body:
        return "text"  # the facts were read from an empty delta beside the message
    if b"reasoning_details" in body and not facts.get("reasoning"):
        return "reasoning"  # only in reasoning_details, which the facts left out
    return ""


def differences(recording: Recording) -> list[str]:
    """Differences between the parser and the facts, in every fact but the ids of calls."""
    facts, events = recording.expected["facts"], wires.parsed(recording)
    response = accumulate(events)
    if facts.get("error") or (recording.meta.get("status") or 200) >= 400:
        return [] if isinstance(events[-1], Failed) else ["an error that was not reported"]
    counted = facts.get("usage") or {}
    input_tokens = count(counted, "prompt_tokens")
    output_tokens = count(counted, "completion_tokens")
    reasoning_tokens = count(counted, REASONING_TOKENS[0])
    expected_calls = [
        (call["name"], call["arguments"] or {})
        for call in facts.get("tool_calls") or []
        if call["name"]
    ]
    calls = [
        (item.name, wires.arguments(item))
        for item in response.items
        if isinstance(item, FunctionCall)
    ]
    reason = facts.get("stop_reason")
    terminal = type(events[-1]) if reason else None
    usage = response.usage or Usage()
    compared = {
        "text": (wires.squeezed(facts.get("text")), wires.squeezed(response.text)),
        "reasoning": (wires.squeezed(facts.get("reasoning")), wires.squeezed(response.reasoning)),
        "refusal": (wires.squeezed(facts.get("refusal")), wires.squeezed(response.refusal)),
        "calls": (expected_calls, calls),
        "terminal": (Completed if reason else None, terminal),
        "native": (reason or None, response.native_stop_reason),
        "id": (facts.get("response_id") or None, response.response_id),
        "model": (facts.get("model") or None, response.model),
        "input": (input_tokens, usage.input_tokens),
    }
    differing = [
        f"{name}: {expected!r} != {actual!r}"
        for name, (expected, actual) in compared.items()
        if expected != actual
    ]
    # xAI leaves reasoning out of completion_tokens.
    with_reasoning = (output_tokens or 0) + (reasoning_tokens or 0)
    if usage.output_tokens not in {output_tokens, with_reasoning}:
        differing.append(f"output: {usage.output_tokens}")
    return differing


@each_recording("openai-chat", (*STREAMS, *BODIES, *PAYLOADS))
def test_recording_agrees_with_its_facts(recording: Recording) -> None:
    if recording.expected.get("facts"):
        known = known_to_differ(recording)
        assert [
            difference
            for difference in differences(recording)
            if not known or not difference.startswith(known)
        ] == []


# --- the page ---

PAGE = (ROOT / "docs" / "wires" / "chat.md").read_text(encoding="utf-8")


def test_page_names_the_keys_that_the_code_reads() -> None:
    assert set(wires.documented("chat", "Chunks")) == CHUNK_KEYS
    assert set(wires.documented("chat", "Deltas")) == DELTA_KEYS - NOISE
    assert list(wires.documented("chat", "Deltas"))[:6] == [
        *REASONING_KEYS,
        *REASONING_DETAIL_KEYS,
        OPAQUE_REASONING_KEY,
    ]
    assert set(wires.documented("chat", "Content parts")) == set(PARTS)
    assert {name for name in Chunk.__struct_fields__ if f"`{name}`" not in PAGE} == set()
    assert all(f"`{name}`" in PAGE for name in NOISE)


def test_page_has_the_table_of_stop_reasons() -> None:
    assert {
        reason: cells[0][0] for reason, cells in wires.documented("chat", "Stop reasons").items()
    } == STOP_REASONS | dict.fromkeys(FAILURE_REASONS, "Failed")


def test_page_has_the_names_of_the_counts_in_order() -> None:
    rows = {name: tuple(cells[0]) for name, cells in wires.documented("chat", "Usage").items()}
    assert rows == {
        "cache_read_input_tokens": CACHE_READS,
        "cache_write_input_tokens": CACHE_WRITES,
        "reasoning_output_tokens": REASONING_TOKENS,
    }


def test_page_has_every_deviation_and_tests_the_handled_ones() -> None:
    rows = wires.documented("chat", "Deviations")
    assert list(rows) == [*(f"T{n}" for n in range(1, 26)), *(f"X{n}" for n in range(1, 39))]
    tests = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "tests" / "parsers" / "wires" / "chat").glob("test_*.py")
    )
    tested = {
        name.upper()
        for name in re.findall(r'row\(\s*"([TX]\d+)-|_([tx]\d+)(?=_)', tests)
        for name in name
        if name
    }
    assert set(rows) - tested == {"T21", "X7", "X34"}


def test_page_has_every_notice() -> None:
    home = ROOT / "parsers" / "streamlib_parsers"
    files = [home / "assembler.py", *(home / "wires" / "chat").glob("*.py")]
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    emitted = set(re.findall(r'notice\(\s*"(\w+)"', sources))
    assert set(wires.documented("chat", "Notices")) == emitted - {"text_replaced"}
