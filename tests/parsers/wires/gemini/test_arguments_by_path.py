"""Arguments that come as paths and values: the text given out joins to the object, or says that it does not."""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.wires.gemini.arguments_by_path import (
    MAX_PATH_LENGTH,
    ArgumentsByPath,
    parse_path,
)


class Piece(NamedTuple):
    path: str
    value: str
    is_string: bool = False
    more: bool = False


def put(growing: ArgumentsByPath, *pieces: Piece) -> list[str | None]:
    return [
        growing.put(piece.path, piece.value, is_string=piece.is_string, more=piece.more)
        for piece in pieces
    ]


def text(path: str, value: str, more: bool = False) -> Piece:
    return Piece(path, value, is_string=True, more=more)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("$.city", ("city",)),
        ("$.a.b[0].c", ("a", "b", 0, "c")),
        ("$['a b']['it\\'s'][\"q\\\"\"]", ("a b", "it's", 'q"')),
        ("$.naïve-1[12]", ("naïve-1", 12)),
        ("$['\\u00e9']", ("é",)),
        ("$", None),
        ("$[0]", None),
        ("city", None),
        ("$.", None),
        ("$..a", None),
        ("$.a[-1]", None),
        ("$.a[*]", None),
        ("$.a[", None),
        ("$['\\x']", None),
        ("$" + ".a" * MAX_PATH_LENGTH, ("a",) * MAX_PATH_LENGTH),
        ("$" + ".a" * (MAX_PATH_LENGTH + 1), None),
    ],
)
def test_paths_are_names_and_indexes(path: str, place: tuple[str | int, ...] | None) -> None:
    assert parse_path(path) == place


def test_text_is_given_out_while_it_grows() -> None:
    growing = ArgumentsByPath()
    given_out = put(
        growing,
        text("$.city", "Par", True),
        text("$.city", 'is "x"'),
        Piece("$.days[0]", "3"),
        Piece("$.days[1]", "1.0"),
    )
    assert given_out == ['{"city":"Par', 'is \\"x\\""', ',"days":[3', ",1.0"]
    assert growing.finish() == "]}"
    assert growing.object_text() == '{"city":"Paris \\"x\\"","days":[3,1.0]}'


def test_an_empty_string_without_more_closes_the_one_before() -> None:
    growing = ArgumentsByPath()
    assert put(growing, text("$.a", "x", True), text("$.a", ""), Piece("$.b", "null")) == [
        '{"a":"x',
        '"',
        ',"b":null',
    ]
    assert growing.finish() == "}"


def test_a_string_may_be_ended_without_a_value_or_by_the_next_place() -> None:
    growing = ArgumentsByPath()
    assert put(growing, text("$.a", "x", True)) == ['{"a":"x']
    assert growing.end_string("$.b") == ""
    assert growing.end_string("$.a") == '"'
    assert put(growing, text("$.b", "y", True), Piece("$.c", "1")) == [',"b":"y', '","c":1']


def test_no_values_are_an_empty_object() -> None:
    assert ArgumentsByPath().finish() == "{}"


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (
            [Piece("$.a.x", "1"), Piece("$.b", "2"), Piece("$.a.y", "3")],
            '{"a":{"x":1,"y":3},"b":2}',
        ),
        ([Piece("$.a", "1"), Piece("$.a", "2")], '{"a":2}'),
        ([text("$.a", "x"), text("$.a", "y")], '{"a":"xy"}'),
        ([text("$.a", "x", True), Piece("$.b", "1"), text("$.a", "y")], '{"a":"xy","b":1}'),
    ],
)
def test_what_comes_out_of_order_is_whole_at_the_end(pieces: list[Piece], whole: str) -> None:
    growing = ArgumentsByPath()
    put(growing, *pieces)
    assert growing.replaced
    assert growing.object_text() == whole


@pytest.mark.parametrize(
    "path", ["$.a.b", "$.list.x", "$.list[2]", "$.new[1]", "$.list", "$.o", "nowhere"]
)
def test_a_place_that_cannot_be_is_refused_and_changes_nothing(path: str) -> None:
    growing = ArgumentsByPath()
    put(growing, Piece("$.a", "1"), Piece("$.list[0]", "2"), Piece("$.o.p", "3"))
    before = growing.object_text()
    assert put(growing, Piece(path, "4")) == [None]
    assert growing.object_text() == before
    assert not growing.replaced


LEAVES = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=6)
NAMES = st.text(min_size=1, max_size=4)
OBJECTS = st.dictionaries(
    NAMES,
    st.recursive(
        LEAVES,
        lambda kids: (
            st.lists(kids, min_size=1, max_size=3)
            | st.dictionaries(NAMES, kids, min_size=1, max_size=3)
        ),
        max_leaves=8,
    ),
)


def pieces_of(value: Any, path: str, draw: st.DrawFn) -> list[Piece]:
    """The value as a provider streams it: leaves in document order, strings in up to three fragments."""
    if isinstance(value, dict):
        return [
            piece
            for key, child in value.items()
            for piece in pieces_of(child, f"{path}[{json.dumps(key)}]", draw)
        ]
    if isinstance(value, list):
        return [
            piece
            for at, child in enumerate(value)
            for piece in pieces_of(child, f"{path}[{at}]", draw)
        ]
    if not isinstance(value, str):
        return [Piece(path, json.dumps(value))]
    at = draw(st.integers(0, len(value)))
    return [text(path, value[:at], True), text(path, value[at:])]


@st.composite
def streamed(draw: st.DrawFn) -> tuple[Any, list[Piece]]:
    value = draw(OBJECTS)
    return value, pieces_of(value, "$", draw)


@given(streamed())
def test_any_object_in_document_order_joins_to_itself(case: tuple[Any, list[Piece]]) -> None:
    value, pieces = case
    growing = ArgumentsByPath()
    given_out = put(growing, *pieces)
    assert not growing.replaced
    joined = "".join(piece or "" for piece in given_out) + growing.finish()
    assert json.loads(joined) == value
    assert growing.object_text() == joined


@given(streamed(), st.randoms(use_true_random=False))
def test_any_order_gives_valid_json_or_a_refusal(
    case: tuple[Any, list[Piece]], random: Any
) -> None:
    _, pieces = case
    random.shuffle(pieces)
    growing = ArgumentsByPath()
    given_out = put(growing, *pieces)
    assert json.loads(growing.object_text()) is not None
    if not growing.replaced:
        assert (
            "".join(piece or "" for piece in given_out) + growing.finish() == growing.object_text()
        )


def test_ten_thousand_fragments_cost_linear_time() -> None:
    def seconds(count: int) -> float:
        start = time.process_time()
        growing = ArgumentsByPath()
        for n in range(count):
            growing.put(f"$.list[{n // 4}]", "x" * 20, is_string=True, more=n % 4 < 3)
        growing.object_text()
        return time.process_time() - start

    assert min(seconds(20_000) / seconds(10_000) for _ in range(5)) < 3.0
