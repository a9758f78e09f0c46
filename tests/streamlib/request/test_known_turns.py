"""Requests of long histories are the same bytes as those that are written whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamlib import (
    CustomToolCall,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    Request,
    ResponseItem,
    StreamError,
    Text,
    ToolSpec,
    build,
    user,
)
from streamlib.request import known_turns
from streamlib.request.known_turns import KNOWN_TURNS, KnownTurns
from streamlib.request.prompt import CacheOptions
from streamlib_parsers import WIRE_APIS
from tests.support.timing import cpu_seconds

TOOLS = (ToolSpec("look", schema={"type": "object", "properties": {"n": {"type": "integer"}}}),)
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"tools": TOOLS, "instructions": "be brief"},
    {"tools": TOOLS, "reasoning": 2048, "max_output_tokens": 4096},
    {"tools": TOOLS, "cache": "auto"},
    {"tools": TOOLS, "cache": CacheOptions(breakpoints=(1, 3))},
    {"instructions": "be brief", "extra": {"top_k": 3}},
)


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """No test sees the prefixes of another."""
    KNOWN_TURNS._prefixes.clear()
    yield
    KNOWN_TURNS._prefixes.clear()


def request(wire: Any, items: list[ResponseItem], settings: dict[str, Any]) -> Request:
    return build(
        Prompt(items, **settings), "custom:claude-opus-4-5", wire_api=wire, base_url="http://x"
    )


def outcome(wire: Any, items: list[ResponseItem], settings: dict[str, Any]) -> Request | str:
    """The request, or the error of what cannot be sent."""
    try:
        return request(wire, items, settings)
    except StreamError as error:
        return str(error)


def turn(number: int, wire: Any) -> list[ResponseItem]:
    origin = Origin(wire, "custom", "http://x", "claude-opus-4-5")
    call = f"call_{number:06}"
    return [
        user(f"question {number}"),
        Reasoning("hm", signature="c2lnbmVk", origin=origin),
        FunctionCall(call, "look", f'{{"n": {number}}}', origin=origin, signature="c2lnbmVk"),
        FunctionCallOutput(call, "found"),
        Message("assistant", (Text(f"answer {number}"),), origin=origin),
    ]


def odd(draw: random.Random, number: int, wire: Any) -> list[ResponseItem]:
    """What a turn may be instead."""
    whole = turn(number, wire)
    kinds: list[list[ResponseItem]] = [
        [user("only a question")],
        whole[:4],  # the next message follows the output
        whole[:3],  # a call without its output
        [whole[3]],  # an output without its call
        [Message("system", (Text("now in French"),))],
        [user(""), Message("assistant", ())],
        [user("x"), CustomToolCall(f"custom_{number}", "patch", "text")],
        [user("x"), Opaque("odd", {"type": "odd", "n": number})],
        [user("x"), FunctionCall("call 1!", "a name!", "{}"), FunctionCallOutput("call 1!", "y")],
        [user("x"), FunctionCall(f"call_{number % 3:06}", "look", "{"), user("y")],
        [user("x"), Reasoning("of another", signature="s", origin=Origin("cohere"))],
    ]
    return draw.choice(kinds)


def edited(draw: random.Random, items: list[ResponseItem], wire: Any) -> list[ResponseItem]:
    """The history after one edit: nearly always, something is added."""
    number = draw.randrange(1_000_000)
    at = draw.randrange(len(items))
    match draw.choice(("turn",) * 6 + ("odd", "odd", "delete", "replace", "cut", "insert")):
        case "turn":
            return [*items, *turn(number, wire)]
        case "odd":
            return [*items, *odd(draw, number, wire)]
        case "delete":
            return items[:at] + items[at + 1 :] or items
        case "replace":
            return [*items[:at], *odd(draw, number, wire), *items[at + 1 :]]
        case "cut":
            return items[: max(1, at)]
        case _:
            return [*items[:at], *turn(number, wire), *items[at:]]


def noted(decide: Callable[..., bool], decisions: list[bool]) -> Callable[..., bool]:
    """The function, whose results are kept in a list."""

    def run(*values: Any) -> bool:
        decisions.append(decide(*values))
        return decisions[-1]

    return run


@pytest.mark.parametrize("wire", WIRE_APIS)
def test_edited_histories_are_sent_as_without_prefixes(
    wire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_turns, "LONG", 4)
    monkeypatch.setattr(known_turns, "REST", 3)
    taken: list[bool] = []
    monkeypatch.setattr(known_turns, "_is_separate", noted(known_turns._is_separate, taken))
    for seed in range(12):
        draw = random.Random(f"{wire} {seed}")
        settings = draw.choice(SETTINGS)
        items = turn(0, wire)
        for _ in range(20):
            items = edited(draw, items, wire)
            asked = items if draw.random() < 0.5 else [*items, user("and?")]
            found = outcome(wire, asked, settings)
            monkeypatch.setattr(known_turns, "LONG", 10**9)
            assert found == outcome(wire, asked, settings)
            monkeypatch.setattr(known_turns, "LONG", 4)
    assert taken.count(True) > 5


@pytest.mark.parametrize("wire", WIRE_APIS)
def test_further_turn_costs_what_is_new(wire: Any) -> None:
    spent: list[float] = []
    for count in (40, 400):
        items = [item for number in range(count) for item in turn(number, wire)]
        for number in range(900, 906):  # what comes first cuts the history
            items += turn(number, wire)
            request(wire, items, {"tools": TOOLS})
        prompt = Prompt([*items, user("next")], tools=TOOLS)

        def again(prompt: Prompt = prompt) -> None:
            build(prompt, "custom:claude-opus-4-5", wire_api=wire, base_url="http://x")

        spent.append(min(cpu_seconds(again) for _ in range(9)))
    # Ten times the history: written whole, it takes ten times as long.
    assert spent[1] < 3 * spent[0]


def test_prefixes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_turns, "LONG", 4)
    for number in range(3 * known_turns.MOST):
        request("messages", turn(number, "messages") * 2 + turn(number + 100, "messages"), {})
    assert len(KNOWN_TURNS._prefixes) <= known_turns.MOST
    monkeypatch.setattr(known_turns, "MOST_BYTES", 1)
    request("messages", turn(1, "messages") + turn(2, "messages") + turn(3, "messages"), {})
    assert len(KNOWN_TURNS._prefixes) == 0


def test_prefix_of_other_settings_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_turns, "LONG", 4)
    items = [item for number in range(5) for item in turn(number, "messages")]
    with_tools = request("messages", items, {"tools": TOOLS})
    without = request("messages", items, {})
    assert with_tools != without
    assert request("messages", items, {"tools": TOOLS}) == with_tools


def test_items_that_are_only_equal_are_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_turns, "LONG", 4)
    monkeypatch.setattr(known_turns, "KNOWN_TURNS", KnownTurns())
    one, whole = ({"cache_control": {"type": "ephemeral", "n": n}} for n in (1, 1.0))
    later = turn(1, "messages") + turn(2, "messages")
    first: list[ResponseItem] = [Message("user", (Text("x", native=one),)), turn(0, "messages")[4]]
    second: list[ResponseItem] = [
        Message("user", (Text("x", native=whole),)),
        turn(0, "messages")[4],
    ]
    assert first == second
    assert b'"n":1}' in request("messages", first + later, {}).body
    assert b'"n":1.0}' in request("messages", second + later, {}).body
