"""Every key that a wire's code knows, at every place of every message it reads, with a value of a kind that it does not expect.

Generators make what a wire says; they rarely put a list where a table is asked for a word. The keys are read off the code itself, so that
a key that is read tomorrow is tried tomorrow. The long form (`-m slow`) tries all of them, the default a seeded tenth or less.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import pytest

from streamlib.testing.frame_generators import FRAME_GENERATORS
from streamlib.testing.invariants import InvariantChecker
from streamlib_parsers import WireApi, parse_body, parser
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.invoke_payloads import STREAMED
from tests.support.metrics import figure
from tests.support.shared import ROOT

PURE: Final = ROOT / "parsers" / "streamlib_parsers"
SHARED: Final = (
    "bedrock.py",
    "classification.py",
    "error_body.py",
    "error_tables.py",
    "rate_limits.py",
    "usage.py",
)
ODD: Final[tuple[Any, ...]] = ([], {}, [{}], 5, "x")
SAMPLE: Final = 3_000
"""Of some hundred thousand on each wire."""

Place = tuple[int | str, ...]


@cache
def keys(wire_api: WireApi) -> list[str]:
    """Every word in the code of a wire that a key could be."""
    wires = PURE / "wires"
    files = [
        *wires.glob(f"{wire_api}.py"),
        *(wires / wire_api).glob("*.py"),
        *(PURE / name for name in SHARED),
    ]
    nodes = (
        node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    words = {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return sorted(
        {
            part
            for word in words
            if len(word) < 50 and not set(word) & set(" \n")
            for part in (word, *word.split("."))
        }
    )


@cache
def samples(wire_api: WireApi) -> list[Any]:
    """One message of each kind."""
    moves = [
        made
        for move in FRAME_GENERATORS[wire_api].values()
        if isinstance(made := move(0, "Hi"), dict)
    ]
    return (
        [*moves, *(payload for family in STREAMED.values() for payload in family)]
        if wire_api == "invoke"
        else moves
    )


def objects(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where the objects of a message are."""
    if isinstance(value, dict):
        yield place
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from objects(inner, (*place, key))


def changed(message: Any, place: Place, key: str, value: Any) -> bytes:
    """The message with one key set."""
    target = message = json.loads(json.dumps(message))
    for step in place:
        target = target[step]
    target[key] = value
    return json.dumps(message).encode()


def check(wire_api: WireApi, payload: bytes, before: Sequence[Any]) -> None:
    """In a stream that has begun and as a whole body: our events, one end, and no exception but ours."""
    parse, watch = parser(wire_api), InvariantChecker()
    for message in before:
        watch.feed(parse.feed_event(json.dumps(message)))
    watch.feed(parse.feed_event(payload))
    watch.feed(parse.close())
    watch.close()
    watch = InvariantChecker()
    watch.feed(parse_body(wire_api, payload))
    watch.close()


def cases(wire_api: WireApi) -> Iterator[tuple[bytes, list[Any]]]:
    """All of them: the message, and what was said before it."""
    messages = samples(wire_api)
    for message in messages:
        for place in objects(message):
            for key in keys(wire_api):
                for value in ODD:
                    yield changed(message, place, key, value), messages[:2]


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_no_key_breaks_a_parser_whatever_it_holds(wire_api: WireApi) -> None:
    rng = random.Random(7)
    messages = samples(wire_api)
    for _ in range(SAMPLE):
        message = rng.choice(messages)
        payload = changed(
            message, rng.choice([*objects(message)]), rng.choice(keys(wire_api)), rng.choice(ODD)
        )
        check(wire_api, payload, messages[: rng.randint(0, 2)])


@pytest.mark.slow
@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_12_no_key_of_all_breaks_a_parser(wire_api: WireApi) -> None:
    tried = 0
    for payload, before in cases(wire_api):
        check(wire_api, payload, before)
        tried += 1
    figure("odd keys", tried)


def test_the_keys_are_those_of_the_code() -> None:
    assert {"index", "content_block", "stop_reason"} <= {*keys("messages")}
    assert {"event_type", "is_finished"} <= {*keys("invoke")}
