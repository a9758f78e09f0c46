"""One history, every wire: snapshots of a conversation that has everything, and rules of each wire.

`UPDATE_SNAPSHOTS=1 pytest tests/streamlib/wires/test_cross_wire.py` writes the files in
snapshots/cross_wire anew; read the diff.
"""

from __future__ import annotations

import functools
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib import (
    Compaction,
    CustomToolCall,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    Request,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    StreamError,
    Text,
    ToolSpec,
    accumulate,
    build,
    parser,
    user,
)
from tests.support.metrics import figure
from tests.support.shared import ROOT
from tests.support.thorough import THOROUGH
from tests.support.wire_rules import check, elements, official, turns_of

SNAPSHOTS: Final = ROOT / "tests" / "streamlib" / "snapshots" / "cross_wire"
UPDATE: Final = os.environ.get("UPDATE_SNAPSHOTS") == "1"

MODELS: Final[dict[str, str]] = {
    "messages": "anthropic:claude-opus-5",
    "responses": "openai:gpt-5.5",
    "chat": "custom:any",
    "gemini": "google:gemini-3.5-flash",
    "interactions": "google:gemini-3.5-flash",
    "cohere": "cohere:command-a-reasoning-08-2025",
    "converse": "bedrock:anthropic.claude-opus-4-8",
    "invoke": "bedrock:anthropic.claude-opus-4-8",
    "ollama": "ollama:qwen3:4b",
}
ELSEWHERE: Final = {
    **dict.fromkeys(MODELS, "messages"),
    "messages": "responses",
    "invoke": "gemini",
    "converse": "gemini",
}
"""Wire -> where the conversation was begun that comes to it from another origin."""

PNG: Final = Image(data="iVBORw0KGgo=", media_type="image/png")
SEAL: Final = "U0VBTEVELUZPUi1JVFMtT1dOLU9SSUdJTg=="
"""Every signature and encrypted content here: base64 of `SEALED-FOR-ITS-OWN-ORIGIN`."""
TOOLS: Final = (
    ToolSpec(
        "weather",
        "The weather in a city.",
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    ),
    ToolSpec(
        "camera",
        "A picture of a city.",
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    ),
)


def request_of(items: list[ResponseItem], wire: str, **settings: Any) -> Request:
    prompt = Prompt(
        items,
        **{"instructions": "Be brief.", "tools": TOOLS, "max_output_tokens": 2048, **settings},
    )
    api: Any = wire
    return build(prompt, MODELS[wire], wire_api=api, base_url="https://example.test/v1")


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize(
    "settings", [{"instructions": None, "tools": ()}, {}], ids=["all", "input"]
)
def test_empty_input_is_an_invalid_request(wire: str, settings: dict[str, Any]) -> None:
    if wire in ("chat", "ollama") and not settings:
        # The services take instructions alone.
        assert request_of([], wire).report == []
        return
    with pytest.raises(StreamError) as caught:
        request_of([], wire, **settings)
    assert caught.value.kind == "invalid_request"


# --- the canonical conversation ---


def conversation(made: str) -> list[ResponseItem]:
    """A conversation that has everything.

    An image, signed reasoning, text, two calls at once, a result with an image and a failed one, a
    tool of the provider, a follow-up.
    """
    first: dict[str, Any] = {"origin": Origin(made), "response_id": "r1"}  # type: ignore[arg-type]
    second: dict[str, Any] = {**first, "response_id": "r2"}
    signed = {"signature": SEAL} if made == "gemini" else {}  # Gemini signs the first call
    weather = FunctionCall("call_1", "weather", '{"city": "Oslo"}', **signed, **first)
    camera = FunctionCall("call_2", "camera", '{"city": "Oslo", "zoom": 1.0}', **first)
    return [
        user("What is this place like now?", PNG),
        _reasoning(made, first),
        Message("assistant", [Text("I shall look.")], **first),
        weather,
        camera,
        weather.output([Text("3 degrees, snow"), PNG]),
        camera.output("no such camera", is_error=True),
        *_searched(made, second),
        Message("assistant", [Text("Cold, and it snows.")], **second),
        user("And tomorrow?"),
    ]


def _reasoning(made: str, stamp: dict[str, Any]) -> Reasoning:
    if made == "responses":
        return Reasoning(
            summary=["**Looking** at the picture"], encrypted_content=SEAL, id="rs_1", **stamp
        )
    if made == "interactions":
        return Reasoning(summary=["**Looking** at the picture"], signature=SEAL, **stamp)
    return Reasoning(
        "A snowy place.",
        signature=SEAL if made in ("messages", "converse", "invoke") else None,
        **stamp,
    )


def _searched(made: str, stamp: dict[str, Any]) -> list[ResponseItem]:
    """A tool that the provider ran itself, as its wire tells it; Chat and Ollama have none."""
    results = [
        {
            "type": "web_search_result",
            "title": "Oslo",
            "url": "https://example.test/oslo",
            "encrypted_content": SEAL,
        }
    ]
    if made in ("messages", "invoke"):
        call = ServerToolCall(
            "srvtoolu_1",
            "web_search",
            '{"query": "Oslo weather"}',
            native={"type": "server_tool_use"},
            **stamp,
        )
        return [
            call,
            ServerToolResult(
                "srvtoolu_1",
                "web_search",
                results,
                native={"type": "web_search_tool_result"},
                **stamp,
            ),
        ]
    if made == "responses":
        native = {"type": "web_search_call", "action": {"type": "search", "query": "Oslo weather"}}
        return [ServerToolCall("ws_1", "web_search", id="ws_1", native=native, **stamp)]
    if made == "gemini":
        call = ServerToolCall(
            "e1",
            "executable_code",
            "print(3)",
            native={"type": "executableCode", "language": "PYTHON"},
            **stamp,
        )
        return [
            call,
            ServerToolResult(
                "e1",
                "",
                "3",
                native={"type": "codeExecutionResult", "outcome": "OUTCOME_OK"},
                **stamp,
            ),
        ]
    if made == "interactions":
        queries = '{"queries": ["Oslo weather"]}'
        signed = {"signature": SEAL, **stamp}
        found = [{"search_suggestions": "<b>Oslo</b>"}]
        return [
            ServerToolCall(
                "s1", "google_search", queries, native={"type": "google_search_call"}, **signed
            ),
            ServerToolResult(
                "s1", "google_search", found, native={"type": "google_search_result"}, **signed
            ),
        ]
    if made == "converse":
        call = ServerToolCall(
            "tooluse_1",
            "nova_grounding",
            '{"query": "Oslo"}',
            native={"type": "server_tool_use"},
            **stamp,
        )
        return [
            call,
            ServerToolResult(
                "tooluse_1",
                "",
                [{"text": "snow"}],
                native={"type": "nova_grounding_result"},
                **stamp,
            ),
        ]
    return []


CASES: Final = {
    f"{wire}-from-{made}": (wire, made) for wire in MODELS for made in (wire, ELSEWHERE[wire])
}


@pytest.mark.parametrize("name", CASES)
def test_canonical_conversation_matches_its_reviewed_snapshot(name: str) -> None:
    wire, made = CASES[name]
    request = request_of(conversation(made), wire)
    path = SNAPSHOTS / f"{name}.json"
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_page(request), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == _page(request)


def _page(request: Request) -> str:
    shown = {
        "url": request.url,
        "report": [f"{change.action} {change.path}: {change.reason}" for change in request.report],
        "body": msgspec.json.decode(request.body),
    }
    return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_canonical_conversation_keeps_rules_and_official_types(name: str) -> None:
    wire, made = CASES[name]
    request = request_of(conversation(made), wire)
    check(request)
    judged = official(request)
    VALIDATED[wire] += judged
    assert judged or wire in ("ollama", "cohere")
    is_unsigned = wire in ("chat", "ollama", "cohere")
    assert (SEAL.encode() in request.body) == (wire == made and not is_unsigned)


def test_every_snapshot_has_a_case() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.json")} == set(CASES)


# --- generated histories ---

IDS: Final = st.sampled_from(
    ["c1", "c2", "a b/ü", "call:1.2|fc_3", "x" * 100, "x" * 101, "toolu_01A", ""]
)
NAMES: Final = st.sampled_from(["weather", "camera", "my tool!", "n" * 100, "1st"])
TEXTS: Final = st.sampled_from(["so", "", " ", "\n", "naïve 🙂"]) | st.text(max_size=5)
ARGUMENTS: Final = st.sampled_from(["", "{}", '{"a": 1.0}', "[1]", '{"a":', "null"])
OUTPUTS: Final = st.sampled_from(["", "1", " ", [Text("see"), PNG], [PNG], [Text("")], []])
FOREIGN: Final = Origin("chat", "elsewhere")


def items_of(made: Origin | None, wire: str) -> st.SearchStrategy[ResponseItem]:
    """Any item of an origin; what is encrypted is encrypted as that wire does it."""
    encrypted: dict[str, Any] = {"origin": made, "signature": SEAL, "native": {"secret": SEAL}}
    plain: dict[str, Any] = {"origin": made, "response_id": "r1"}
    signed = encrypted if made == FOREIGN else {"origin": made, "signature": SEAL}
    strategies: list[st.SearchStrategy[Any]] = [
        st.builds(user, TEXTS),
        st.builds(user, TEXTS, st.just(PNG)),
        st.builds(lambda text: Message("system", [Text(text)]), TEXTS),
        st.builds(lambda text: Message("assistant", [Text(text)], **plain), TEXTS),
        st.builds(lambda text: Reasoning(text, **signed), TEXTS),
        st.builds(lambda text: Reasoning(text, **plain), TEXTS),
        st.just(Reasoning(encrypted_content=SEAL, redacted=wire != "responses", **plain)),
        st.builds(
            lambda call_id, name, arguments: FunctionCall(call_id, name, arguments, **plain),
            IDS,
            NAMES,
            ARGUMENTS,
        ),
        st.builds(
            lambda call_id, name: FunctionCall(call_id, name, '{"a', status="incomplete", **plain),
            IDS,
            NAMES,
        ),
        st.builds(lambda call_id, name: CustomToolCall(call_id, name, "text", **plain), IDS, NAMES),
        st.builds(FunctionCallOutput, IDS, OUTPUTS, st.booleans()),
        st.builds(FunctionCallOutput, IDS, OUTPUTS, st.booleans()),
    ]
    if made == FOREIGN:
        strategies += [
            st.just(ServerToolCall("s1", "web", "{}", **encrypted)),
            st.just(
                ServerToolResult(
                    "s1", "web", [{"title": "x", "encrypted_content": SEAL}], **encrypted
                )
            ),
            st.just(Compaction(encrypted_content=SEAL, origin=made)),
            st.just(Opaque("odd", {"type": "odd", "data": SEAL}, **encrypted)),
        ]
    return st.one_of(strategies)


@functools.cache
def histories(made: Origin | None, wire: str) -> st.SearchStrategy[list[ResponseItem]]:
    """Any items in any order; a compaction stands before all others, where providers put it.

    Made once: hypothesis takes longer to prepare it than to draw from it.
    """
    compacted = [[], [Compaction("before that", origin=made, response_id="r0")]]
    return st.builds(
        list.__add__,
        st.sampled_from(compacted),
        st.lists(items_of(made, wire), min_size=1, max_size=9),
    )


def built_or_empty(items: list[ResponseItem], wire: str) -> Request | None:
    """The request; None if nothing of the history can be sent, the only refusal there is."""
    try:
        return request_of(items, wire)
    except StreamError as error:
        if error.code == "empty_input":
            return None
        raise


VALIDATED: Final[Counter[str]] = Counter()
"""Requests that the official types took, by wire."""


@pytest.fixture(scope="module", autouse=True)
def _figures(record_testsuite_property: Callable[[str, object], None]) -> Iterator[None]:
    """Records how many requests the official types checked (--junit-xml)."""
    yield
    for wire, count in VALIDATED.items():
        record_testsuite_property(f"requests that the official types of {wire} took", count)


@pytest.mark.parametrize("wire", MODELS)
@given(st.data())
def test_no_history_breaks_a_rule_of_its_wire(wire: str, data: st.DataObject) -> None:
    made = data.draw(
        st.sampled_from(
            [None, Origin(wire), FOREIGN if wire != "chat" else Origin("ollama", "elsewhere")]
        )
    )  # type: ignore[arg-type]
    request = built_or_empty(data.draw(histories(made, wire)), wire)
    if request:
        check(request)
        VALIDATED[wire] += official(request)


@pytest.mark.parametrize("wire", MODELS)
@given(st.data())
def test_encrypted_state_of_another_origin_is_never_sent(wire: str, data: st.DataObject) -> None:
    made = FOREIGN if wire != "chat" else Origin("ollama", "elsewhere")
    request = built_or_empty(data.draw(histories(made, wire)), wire)
    assert request is None or SEAL.encode() not in request.body


TURNS: Final = ("say", "think", "call", "both", "draw", "failed", "ask")


@pytest.mark.parametrize("wire", MODELS)
@settings(max_examples=60 if THOROUGH else 30)
@given(st.lists(st.sampled_from(TURNS), min_size=1, max_size=8), st.booleans())
def test_each_request_begins_with_the_previous_one(
    wire: str, turns: list[str], is_own: bool
) -> None:
    made = Origin(wire if is_own else ELSEWHERE[wire])  # type: ignore[arg-type]
    history: list[ResponseItem] = [user("begin")]
    requests = [request_of(history, wire)]
    for n, turn in enumerate(turns):
        history += _turn(turn, n, made)
        requests.append(request_of(history, wire))
    for shorter, longer in pairwise(map(elements, requests)):
        assert longer[: len(shorter)] == shorter


def _turn(kind: str, n: int, made: Origin) -> list[ResponseItem]:
    stamp: dict[str, Any] = {"origin": made, "response_id": f"r{n}"}
    encrypted = {"encrypted_content": SEAL} if made.wire_api == "responses" else {"signature": SEAL}
    reasoning = Reasoning(f"hm{n}", **encrypted, **stamp)
    first, second = (
        FunctionCall(f"c{n}/{m}", "weather", '{"city": "Oslo"}', **stamp) for m in range(2)
    )
    text = Message("assistant", [Text(f"t{n}")], **stamp)
    turns: dict[str, list[ResponseItem]] = {
        "say": [text, user(f"u{n}")],
        "think": [reasoning, text, user(f"u{n}")],
        "call": [reasoning, first, first.output("1")],
        "both": [reasoning, text, first, second, second.output("2"), first.output("1")],
        "draw": [
            first,
            second,
            first.output([Text("see"), PNG]),
            second.output("2"),
            user(f"u{n}"),
        ],
        "failed": [first, first.output("no", is_error=True)],
        "ask": [user(f"u{n}", PNG)],
    }
    return turns[kind]


# --- replay ---


def random_blocks(chance: random.Random) -> list[bytes]:
    """Blocks of a response as JSON: reasoning, encrypted reasoning, text, calls, in any order.

    The last is text or a call: a turn does not end with reasoning (A14).
    """
    count = chance.randint(1, 12)
    blocks = [BLOCKS[chance.randrange(len(BLOCKS))](chance, n) for n in range(count)]
    return [*blocks, BLOCKS[chance.randint(2, 3)](chance, count)]


def _random_text(chance: random.Random) -> str:
    return "".join(chance.choice('ab "\\\n\tü🙂{}<') for _ in range(chance.randint(1, 12))) + "."


BLOCKS: Final[tuple[Callable[[random.Random, int], bytes], ...]] = (
    lambda chance, n: _json(
        {
            "type": "thinking",
            "thinking": _random_text(chance),
            "signature": f"Sig+{n}/{chance.random()}==",
        }
    ),
    lambda chance, n: _json(
        {"type": "redacted_thinking", "data": f"Sealed+{n}/{chance.random()}=="}
    ),
    lambda chance, _: _json({"type": "text", "text": _random_text(chance)}),
    lambda chance, n: _json(
        {
            "type": "tool_use",
            "id": f"toolu_{n}",
            "name": "weather",
            "input": msgspec.Raw(_arguments(chance)),
        }
    ),
)


def _arguments(chance: random.Random) -> bytes:
    """An object with unusual bytes: 1.0, 1e5, spaces and the order of keys must survive."""
    pairs: list[str] = []
    for key in "zab":
        spaces = " " * chance.randint(0, 2)
        value = chance.choice(("1.0", "1e5", "[ ]", "null", '""'))
        pairs.append(f'"{key}":{spaces}{value}')
    return f"{{{', '.join(chance.sample(pairs, chance.randint(0, 3)))}}}".encode()


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def streamed(blocks: list[bytes], chance: random.Random) -> Iterator[bytes]:
    """The events of that response, its deltas split anywhere."""
    yield _json(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "model": "m",
                "role": "assistant",
                "content": [],
                "usage": {},
            },
        }
    )
    for index, raw in enumerate(blocks):
        block = msgspec.json.decode(raw)
        buffered = bytes(
            msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).get("input", b"")
        ).decode()
        opened = dict(block)
        for key in ("thinking", "signature", "text"):
            if key in block:
                opened[key] = ""
        if buffered:
            opened["input"] = {}
        yield _json({"type": "content_block_start", "index": index, "content_block": opened})
        for kind, key in (
            ("thinking_delta", "thinking"),
            ("text_delta", "text"),
            ("signature_delta", "signature"),
        ):
            text = block.get(key, "")
            fragments = _split(text, chance)
            if text and key == "signature":
                fragments = [text]  # a signature is never split
            for fragment in fragments:
                yield _json(
                    {
                        "type": "content_block_delta",
                        "index": index,
                        "delta": {"type": kind, key: fragment},
                    }
                )
        for fragment in _split(buffered, chance):
            yield _json(
                {
                    "type": "content_block_delta",
                    "index": index,
                    "delta": {"type": "input_json_delta", "partial_json": fragment},
                }
            )
        yield _json({"type": "content_block_stop", "index": index})
    yield _json(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 1},
        }
    )
    yield _json({"type": "message_stop"})


def _split(text: str, chance: random.Random) -> list[str]:
    offset = chance.randint(0, len(text))
    return [fragment for fragment in (text[:offset], text[offset:]) if fragment]


def replays_byte_for_byte(chance: random.Random) -> None:
    blocks = random_blocks(chance)
    parse = parser("messages", origin=Origin("messages"))
    events = [
        event for data in streamed(blocks, chance) for event in parse.feed_event(data)
    ] + parse.close()
    items = accumulate(events).items
    outputs = [item.output("1") for item in items if isinstance(item, FunctionCall)]
    request = request_of([user("go"), *items, *outputs, user("on")], "messages")
    assert b'{"role":"assistant","content":[' + b",".join(blocks) + b"]}" in request.body
    assert [turn["role"] for turn in turns_of(request)] == ["user", "assistant", "user"]


@pytest.mark.parametrize("count", [500, pytest.param(50_000, marks=pytest.mark.slow)])
def test_any_interleaving_is_replayed_byte_for_byte(count: int) -> None:
    chance = random.Random(5)
    for _ in range(count):
        replays_byte_for_byte(chance)
    figure("histories", count)
