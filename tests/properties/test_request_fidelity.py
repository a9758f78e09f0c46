"""Invariant 12: a request of a wire's own SDK, decoded and built again, has the same leaves, or the
report names each that is missing or changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.fidelity import gemini, messages
from lab.fidelity.compare import Body, Loss, compare, leaves_of
from lab.fidelity.figures import Figures, add, described, measure
from lab.fidelity.shapes import (
    Field,
    Scalar,
    Struct,
    covering,
    structs_of,
    values_of,
)
from lab.fidelity.tables import TABLES
from streamlib import Change, Prompt, Request, WireApi
from streamlib.providers.wire_specs import WIRE_SPECS
from tests.support.thorough import THOROUGH

WIRES = tuple(TABLES)
BODY = {
    "model": "any-model",
    "max_tokens": 1,
    "messages": [{"role": "user", "content": "hi"}],
}


@pytest.mark.parametrize("wire", WIRES)
def test_each_field_survives_or_is_reported(wire: WireApi) -> None:
    """B3: every field and union member once, wherever it may stand."""
    table = TABLES[wire]
    figures = measure(table, covering(table.request()))
    assert described(figures) == ""
    # The smallest type, Ollama's, has some 60 fields and union members.
    assert figures.leaves > figures.requests > 50


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=25 if THOROUGH else 15)
@given(data=st.data())
def test_random_requests_survive_or_are_reported(wire: WireApi, data: st.DataObject) -> None:
    """B3: fields together: a request of several turns, tools and settings."""
    figures = Figures()
    add(figures, TABLES[wire], data.draw(values_of(TABLES[wire].request())))
    assert described(figures) == ""


def distinct(bodies: Iterable[Body]) -> Iterator[Body]:
    """Each body once: a zero or an unknown key is drawn again for each member of a union."""
    compared: set[bytes] = set()
    for body in bodies:
        text = msgspec.json.encode(body)
        if text not in compared:
            compared.add(text)
            yield body


@pytest.mark.parametrize("wire", WIRES)
def test_zeros_survive_or_are_reported(wire: WireApi) -> None:
    """Every number, switch, free text, list and map, as 0, 0.0, False, "", [] and {}."""
    table = TABLES[wire]
    figures = measure(table, distinct(covering(table.request(), draw="zeros")))
    assert described(figures) == ""
    assert figures.requests > 50


@pytest.mark.parametrize("wire", WIRES)
def test_unknown_keys_survive_or_are_reported(wire: WireApi) -> None:
    """An unknown key in every object of every struct, wherever it may stand."""
    table = TABLES[wire]
    bodies = list(covering(table.request(), draw="unknown"))
    # Ollama has five structs, in twelve places.
    assert len(bodies) >= 12
    figures = measure(table, distinct(bodies))
    assert described(figures) == ""


CHAINED = tuple(wire for wire in WIRES if TABLES[wire].chained)


@pytest.mark.parametrize("wire", CHAINED)
def test_chained_requests_keep_their_outputs(wire: WireApi) -> None:
    """The calls of these outputs live on the server."""
    table = TABLES[wire]
    figures = measure(table, table.chained)
    assert described(figures) == ""
    assert figures.reported == {}


def test_wires_with_a_stored_history_are_chained() -> None:
    stored = {wire for wire, spec in WIRE_SPECS.items() if spec.stored_history}
    assert set(CHAINED) == stored


def test_each_field_and_union_member_is_drawn() -> None:
    """Every field of every struct that the type reaches occurs in some value."""
    shape = messages.request_type()
    wanted = {name for struct in structs_of(shape).values() for name in struct.fields}
    drawn: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            drawn.update(value)
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    for body in covering(shape):
        collect(body)
    assert wanted - drawn == set()
    assert len(wanted) > 150


def test_covering_draws_each_option_of_a_field() -> None:
    inner = Struct("inner", lambda: {"a": Field(Scalar((1, 2)), is_required=True)})
    outer = Struct("outer", lambda: {"b": Field(inner, is_required=False)})
    assert list(covering(outer)) == [{}, {"b": {"a": 1}}, {"b": {"a": 2}}]


def test_a_planted_loss_is_found() -> None:
    """The comparison is an oracle only if it sees a leaf that a builder forgets."""

    def forgetful(prompt: Prompt) -> Request:
        request = messages.build_again(prompt)
        body = msgspec.json.decode(request.body)
        del body["temperature"]
        return msgspec.structs.replace(request, body=msgspec.json.encode(body))

    table = replace(messages.TABLE, build=forgetful)
    outcome = compare(table, {**BODY, "temperature": 0.5})
    assert outcome.silent == [Loss("/temperature", 0.5, "(missing)")]


def test_a_loss_that_the_report_names_is_not_silent() -> None:
    tool = {"name": "f", "input_schema": {"title": "none"}}
    outcome = compare(messages.TABLE, {**BODY, "tools": [tool]})
    assert outcome.silent == []
    assert [loss.pointer for loss, _ in outcome.reported] == ["/tools/0/input_schema/type"]


TURN = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Hm."},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
    ],
}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
CALLED = {
    **BODY,
    "messages": [*BODY["messages"], TURN, {"role": "user", "content": [RESULT]}],  # type: ignore[misc]
}


@pytest.mark.parametrize(
    ("change", "excuses"),
    [
        (Change("changed", "/input/1", "the text"), True),
        (Change("dropped", "/input/1", "the text"), True),
        # another item of the same turn, another part of the item, another action
        (Change("changed", "/input/2", "the call"), False),
        (Change("changed", "/input/2/arguments", "the call"), False),
        (Change("changed", "/input/1/signature", "the state"), False),
        (Change("changed", "/input", "all"), False),
        (Change("renamed", "/input/1", "the text"), False),
    ],
)
def test_report_excuses_what_it_names_alone(change: Change, *, excuses: bool) -> None:
    """Once one change excused every difference under the same key of the body."""

    def forgetful(prompt: Prompt) -> Request:
        request = messages.build_again(prompt)
        body = msgspec.json.decode(request.body)
        del body["messages"][1]["content"][0]["text"]
        return msgspec.structs.replace(request, body=msgspec.json.encode(body), report=[change])

    outcome = compare(replace(messages.TABLE, build=forgetful), CALLED)
    assert (len(outcome.silent), len(outcome.reported)) == ((0, 1) if excuses else (1, 0))


def test_report_of_one_setting_excuses_no_other() -> None:
    def forgetful(prompt: Prompt) -> Request:
        request = gemini.build_again(prompt)
        body = msgspec.json.decode(request.body)
        del body["generationConfig"]["topP"]
        report = [Change("dropped", "/temperature", "the model takes none")]
        return msgspec.structs.replace(request, body=msgspec.json.encode(body), report=report)

    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    settings_ = {"temperature": 0.5, "topP": 0.5}
    outcome = compare(
        replace(gemini.TABLE, build=forgetful), {**body, "generationConfig": settings_}
    )
    assert [loss.pointer for loss in outcome.silent] == ["/generationConfig/topP"]


def test_random_requests_hold_zeros_and_unknown_keys() -> None:
    drawn: list[Any] = []

    @settings(max_examples=200 if THOROUGH else 80, database=None)
    @given(values_of(messages.request_type()))
    def run(body: Any) -> None:
        drawn.extend(leaves_of(body).items())

    run()
    assert {True for pointer, _ in drawn if "xUnknown" in pointer}
    assert all(any(value == zero for _, value in drawn) for zero in ("", 0, [], {}))
