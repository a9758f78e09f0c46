"""Every key that a wire's code knows, in every object of every frame, with a value of a wrong type.

Generators produce what a wire sends; they rarely put a list where text is expected. The keys are
read from the code itself, so that a new key is tried at once. The long form (`-m slow`) tries all
of them, the thorough run a seeded tenth or less, the default run the first third of that.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import pytest

from streamlib.testing.frame_generators import FRAME_GENERATORS
from streamlib.testing.invariants import InvariantChecker
from streamlib_parsers import WireApi, parse_body, parser
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case
from tests.support.invoke_payloads import STREAMED
from tests.support.metrics import figure
from tests.support.shared import ROOT
from tests.support.thorough import THOROUGH

PURE: Final = ROOT / "parsers" / "streamlib_parsers"
SHARED: Final = (
    "bedrock.py",
    "error_kinds.py",
    "error_body.py",
    "error_tables.py",
    "rate_limits.py",
    "usage.py",
)
WRONG_VALUES: Final[tuple[Any, ...]] = ([], {}, [{}], 5, "x")
SAMPLE: Final = 3_000 if THOROUGH else 1_000
"""Of some hundred thousand on each wire."""

Path = tuple[int | str, ...]


@cache
def keys(wire_api: WireApi) -> list[str]:
    """Every string in the code of a wire that could be a key."""
    wires = PURE / "wires"
    files = [
        *wires.glob(f"{wire_api}.py"),
        *(wires / wire_api).glob("*.py"),
        *(PURE / name for name in SHARED),
    ]
    nodes = (
        node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    known: set[str] = set()
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if len(node.value) < 50 and not set(node.value) & set(" \n"):
            known.update((node.value, *node.value.split(".")))
    return sorted(known)


@cache
def samples(wire_api: WireApi) -> list[Any]:
    """One frame of each kind."""
    frames: list[Any] = []
    for generator in FRAME_GENERATORS[wire_api].values():
        frame = generator(0, "Hi")
        if isinstance(frame, dict):
            frames.append(frame)
    if wire_api == "invoke":
        for payloads in STREAMED.values():
            frames += payloads
    return frames


def objects(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of the objects in a message."""
    if isinstance(value, dict):
        yield path
    entries: Iterable[tuple[int | str, Any]] = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for key, inner in entries:
        yield from objects(inner, (*path, key))


def changed(message: Any, path: Path, key: str, value: Any) -> bytes:
    """The message with one key set."""
    target = message = json.loads(json.dumps(message))
    for step in path:
        target = target[step]
    target[key] = value
    return json.dumps(message).encode()


def check(wire_api: WireApi, payload: bytes, before: Sequence[Any]) -> None:
    """Within a stream and as a complete body: valid events, one end, documented exceptions only."""
    wire_parser, checker = parser(wire_api), InvariantChecker()
    for message in before:
        checker.feed(wire_parser.feed_event(json.dumps(message)))
    checker.feed(wire_parser.feed_event(payload))
    checker.feed(wire_parser.close())
    checker.close()
    checker = InvariantChecker()
    checker.feed(parse_body(wire_api, payload))
    checker.close()


def cases(wire_api: WireApi) -> Iterator[tuple[bytes, list[Any]]]:
    """All cases: the changed frame, and the frames before it."""
    messages = samples(wire_api)
    for message in messages:
        for path in objects(message):
            for key in keys(wire_api):
                for value in WRONG_VALUES:
                    yield changed(message, path, key, value), messages[:2]


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_no_key_breaks_a_parser_whatever_its_value(wire_api: WireApi) -> None:
    rng = random.Random(7)
    messages = samples(wire_api)
    for _ in range(SAMPLE):
        message = rng.choice(messages)
        payload = changed(
            message,
            rng.choice([*objects(message)]),
            rng.choice(keys(wire_api)),
            rng.choice(WRONG_VALUES),
        )
        check(wire_api, payload, messages[: rng.randint(0, 2)])


@each_case("wire_api", WIRE_APIS)
def test_no_kind_breaks_a_parser_whatever_its_value(wire_api: WireApi) -> None:
    """Each object's own kind: what the code looks up first, in sets and tables of names."""
    messages = samples(wire_api)
    for message in messages:
        for path in objects(message):
            for value in WRONG_VALUES:
                check(wire_api, changed(message, path, "type", value), messages[:2])


@pytest.mark.slow
@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_12_no_key_of_a_wrong_type_breaks_a_parser(wire_api: WireApi) -> None:
    tried = 0
    for payload, before in cases(wire_api):
        check(wire_api, payload, before)
        tried += 1
    figure("wrong types", tried)


def test_the_keys_are_those_of_the_code() -> None:
    assert {"index", "content_block", "stop_reason"} <= {*keys("messages")}
    assert {"event_type", "is_finished"} <= {*keys("invoke")}
