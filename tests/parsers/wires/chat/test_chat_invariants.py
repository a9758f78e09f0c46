"""Chat Completions under every cut and every insult, against recordings, and its page against the code."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
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
from streamlib_parsers.usage import count
from streamlib_parsers.wires.chat import (
    CACHE_READS,
    CACHE_WRITES,
    CHUNK_KEYS,
    REASONING_TOKENS,
    STOP_REASONS,
    Machine,
)
from streamlib_parsers.wires.chat.choice import ChoiceAssembler
from streamlib_parsers.wires.chat.delta import DELTA_KEYS, NOISE
from streamlib_parsers.wires.chat.fast_path import (
    Chunk,
    LearnBackoff,
    decode_chunk,
    template,
    text_key_of,
    unpadded,
)
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
    choice,
    chunk,
    events_of,
    many,
    said,
    sse,
    used,
)
from tests.support.partitions import byte_by_byte, cuts, every_single_cut
from tests.support.shared import BODIES, PAYLOADS, ROOT, STREAMS, Recording, each_recording

RICH = sse(
    said(role="assistant", content=""),
    said(reasoning_content="H\u00e9"),
    said(reasoning_content="m"),
    said(
        reasoning="?",
        reasoning_details=[{"type": "reasoning.text", "text": "?", "index": 0, "signature": "S"}],
    ),
    said(content="\u65e5\u672c"),
    said(content=" \U0001f600"),
    '{"choices":[{"delta":{"content":"\\ud83d"}}]}',
    '{"choices":[{"delta":{"content":"\\ude00!"}}]}',
    calls(call(0, "f", "", "x"), call(1, "g", "{}", "y")),
    *(calls(call(0, None, text)) for text in ('{"a"', ":", ' "', "b", '"}')),
    chunk({"content": "end"}, "tool_calls"),
    used(**TOTAL),
)
"""A stream with something of everything, for the cuts."""


def test_any_cut_gives_the_same_events() -> None:
    whole = wires.events_of("chat", RICH)
    assert isinstance(whole[-1], Completed)
    assert wires.events_of("chat", *byte_by_byte(RICH)) == whole
    assert all(wires.events_of("chat", *chunks) == whole for chunks in every_single_cut(RICH))


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
ONE = st.builds(chunk, DELTA, st.sampled_from([None, None, None, "", "stop", "tool_calls"]))
PADDED = st.fixed_dictionaries({}, optional={"obfuscation": TEXTS, "p": st.just("x9")})
ALIKE = st.builds(
    lambda key, texts: [{**said(**{key: text}), **padding} for text, padding in texts],
    st.sampled_from(["content", "reasoning"]),
    st.lists(st.tuples(TEXTS, PADDED)),
)
CHUNKS = st.lists(st.one_of(st.lists(ONE, max_size=1), ALIKE), max_size=8).map(
    lambda runs: [one for run in runs for one in run]
)


def holds_its_laws(events: list[ResponseEvent]) -> None:
    """Brackets, one terminal, nothing after it; no cut call is callable; deltas are valid text."""
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
            assert event.item.arguments != "null"  # a fragment that says so says nothing
            assert (
                event.item.status == "incomplete"
                or not event.item.arguments
                or is_json(event.item.arguments)
            )
        elif isinstance(event, OutputItemDone):
            assert getattr(event.item, "text", "") in {joined[event.index], ""}


@given(CHUNKS, st.data())
def test_any_stream_holds_its_laws_at_any_cut(chunks: list[Json], data: st.DataObject) -> None:
    body = sse(*chunks)
    whole = wires.events_of("chat", body)
    holds_its_laws(whole)
    assert wires.events_of("chat", *data.draw(cuts(body))) == whole


@given(CHUNKS)
def test_a_template_changes_nothing_but_the_time(chunks: list[Json]) -> None:
    body = sse(*chunks)
    quick = wires.events_of("chat", body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "_learn", lambda *_: None)
        assert wires.events_of("chat", body) == quick


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
"""Where a hostile server may put anything."""


@given(st.sampled_from(HOLES), JSON)
def test_hostile_chunks_give_events_and_nothing_else(wrap: Any, hole: Any) -> None:
    holds_its_laws(events_of(HI, wrap(hole), calls(call(0, "f", ARGS, "x")), FINISH))
    holds_its_laws(parse_body("chat", json.dumps(wrap(hole)).encode()))


@given(st.binary(max_size=60))
def test_hostile_bytes_give_events_and_nothing_else(noise: bytes) -> None:
    holds_its_laws(wires.events_of("chat", sse(HI, done=None) + noise + b"\n\n" + sse(STOP)))
    p = parser("chat")
    holds_its_laws([*p.feed_event(sse(HI)[6:-2]), *p.feed_event(noise), *p.close()])


# --- templates ---


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        (said(content="a"), "content"),
        (said(content="", reasoning="a"), "reasoning"),
        (calls(call(0, None, "a")), "arguments"),
        (said(content="a", reasoning="b"), ""),
        (said(content="a", tool_calls=[call(0, None, "")]), ""),
        (calls(call(0, "f", "a")), ""),
        (calls(call(0, None, "a"), call(1, None, "b")), ""),
        (chunk({"content": "a"}, "stop"), ""),
        (many(choice(0, {"content": "a"}), choice(1, {"content": "a"})), ""),
    ],
)
def test_only_a_chunk_of_one_text_is_learned_from(sent: Json, key: str) -> None:
    assert text_key_of(decode_chunk(json.dumps(sent).encode())) == key


def test_a_template_is_tried_before_it_is_used() -> None:
    data = b'{"choices":[{"delta":{"content":"a","content":"b"}}]}'  # the last of two counts, the first would be found
    assert template(data, decode_chunk(data), "content", lambda *_: None, None) is None  # type: ignore[arg-type]


def test_a_chunk_that_breaks_out_of_the_gap_is_read_in_full() -> None:
    like = ('{"choices":[{"index":0,"delta":{"content":"', '"},"logprobs":null}]}')
    sent = [
        text.join(like) for text in ("a", "b", 'c"},"finish_reason":"stop","usage":{"x":"', "d")
    ]
    events = events_of(*sent, done=None)
    assert isinstance(events[-1], Completed)
    assert events[-1].native_stop_reason == "stop"
    assert "".join(event.delta for event in events if hasattr(event, "delta")) == "abcd"


def test_patience_grows_where_templates_do_not_serve() -> None:
    patience, learned = LearnBackoff(), 0
    for _ in range(1000):
        if patience.ready():
            learned += 1
            patience.missed(0)
    assert learned < 30
    patience.missed(served=100)
    assert patience.ready()


def reads(chunks: list[Json]) -> int:
    """How many of the chunks of a text are read in full."""
    seen: list[bytes] = []
    read = Machine._read

    def counted(self: Machine, event: str | None, data: bytes) -> None:
        seen.append(data)
        read(self, event, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "_read", counted)
        assert accumulate(events_of(*chunks, STOP)).text == "word " * len(chunks)
    return len(seen)


@pytest.mark.parametrize("padding", ["", "obfuscation", "p"])
def test_a_long_text_is_not_read_chunk_by_chunk(padding: str) -> None:
    word = said(content="word ")
    chunks = [{**word, padding: "x7Q"[: n % 4] or "y"} if padding else word for n in range(1000)]
    assert reads(chunks) == reads(chunks[:10]) < 5


def test_padding_is_taken_off_where_it_is_padding() -> None:
    for whole in (
        b'{"a":1,"b":"c"}',
        b'{"a":",\\"p\\":\\"x"}',
        b'{"a":1,"p":"x y"}',
        b'{"a":1,"p":1}',
        b'{"a":1,"p":"x"}]',
        b"",
        b',"p":"x',
    ):
        assert unpadded(whole) is whole
    assert unpadded(b'{"a":[1,"b"],"p":"x9"}') == b'{"a":[1,"b"]}'


# --- recordings ---


def known_to_differ(recording: Recording) -> str:
    """Why some facts of a recording cannot be met: asked of its content, not of its name."""
    body, facts = recording.body, recording.expected["facts"]
    if recording.path.suffix in BODIES and b'"message"' in body and b'"delta"' in body:
        return "text"  # an empty delta beside the message, which the facts took
    if b"reasoning_details" in body and not facts.get("reasoning"):
        return "reasoning"  # it stands in reasoning_details alone, which the facts left out
    return ""


def differences(recording: Recording) -> list[str]:
    """Where the parser and the facts differ: every fact but the ids of calls."""
    facts, events = recording.expected["facts"], wires.parsed(recording)
    response = accumulate(events)
    if facts.get("error") or (recording.meta.get("status") or 200) >= 400:
        return [] if isinstance(events[-1], Failed) else ["an error that was not reported"]
    counted = facts.get("usage") or {}
    read, written, thought = (
        count(counted, name) for name in ("prompt_tokens", "completion_tokens", REASONING_TOKENS[0])
    )
    own = [
        (one.name, wires.arguments(one)) for one in response.items if isinstance(one, FunctionCall)
    ]
    reason = facts.get("stop_reason")
    told = {
        "text": (wires.squeezed(facts.get("text")), wires.squeezed(response.text)),
        "reasoning": (wires.squeezed(facts.get("reasoning")), wires.squeezed(response.reasoning)),
        "refusal": (wires.squeezed(facts.get("refusal")), wires.squeezed(response.refusal)),
        "calls": (
            [
                (one["name"], one["arguments"] or {})
                for one in facts.get("tool_calls") or []
                if one["name"]
            ],
            own,
        ),
        "terminal": (Completed if reason else None, type(events[-1]) if reason else None),
        "native": (reason or None, response.native_stop_reason),
        "id": (facts.get("response_id") or None, response.response_id),
        "model": (facts.get("model") or None, response.model),
        "input": (read, response.usage.input_tokens if response.usage else None),
    }
    found = [f"{name}: {want!r} != {have!r}" for name, (want, have) in told.items() if want != have]
    output = response.usage.output_tokens if response.usage else None
    return (
        found
        if output in {written, (written or 0) + (thought or 0)}
        else [*found, f"output: {output}"]
    )


@each_recording("openai-chat", (*STREAMS, *BODIES, *PAYLOADS))
def test_a_recording_agrees_with_its_facts(recording: Recording) -> None:
    if recording.expected.get("facts"):
        known = known_to_differ(recording)
        assert [
            one for one in differences(recording) if not known or not one.startswith(known)
        ] == []


# --- the page ---

PAGE = (ROOT / "docs" / "wires" / "chat.md").read_text(encoding="utf-8")


def test_the_page_names_the_keys_that_the_code_reads() -> None:
    assert set(wires.documented("chat", "Chunks")) == CHUNK_KEYS
    assert set(wires.documented("chat", "Deltas")) == DELTA_KEYS - NOISE
    assert list(wires.documented("chat", "Deltas"))[:6] == [
        *REASONING_KEYS,
        *REASONING_DETAIL_KEYS,
        OPAQUE_REASONING_KEY,
    ]
    assert set(wires.documented("chat", "Content parts")) == set(ChoiceAssembler.PARTS)
    assert {name for name in Chunk.__struct_fields__ if f"`{name}`" not in PAGE} == set()
    assert all(f"`{name}`" in PAGE for name in NOISE)


def test_the_page_has_the_table_of_stop_reasons() -> None:
    assert {
        word: cells[0][0] for word, cells in wires.documented("chat", "Stop reasons").items()
    } == STOP_REASONS


def test_the_page_has_the_names_of_the_counts_in_their_order() -> None:
    rows = {name: tuple(cells[0]) for name, cells in wires.documented("chat", "Usage").items()}
    assert rows == {
        "cache_read_input_tokens": CACHE_READS,
        "cache_write_input_tokens": CACHE_WRITES,
        "reasoning_output_tokens": REASONING_TOKENS,
    }


def test_the_page_has_every_deviation_and_the_tests_have_those_that_are_handled() -> None:
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


def test_the_page_has_every_notice() -> None:
    home = ROOT / "parsers" / "streamlib_parsers"
    files = [home / "assembler.py", *(home / "wires" / "chat").glob("*.py")]
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    told = set(re.findall(r'notice\(\s*"(\w+)"', sources))
    assert set(wires.documented("chat", "Notices")) == told - {"text_replaced"}
