"""Arguments received as paths and values: the emitted texts join, or `replaced` is set."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.wires.gemini.arguments_by_path import (
    MAX_PATH_LENGTH,
    ArgumentsByPath,
    parse_path,
)
from tests.support.cases import each_case
from tests.support.timing import cpu_seconds


class Partial(NamedTuple):
    path: str
    value: str
    is_string: bool = False
    more: bool = False


def put(arguments: ArgumentsByPath, *partials: Partial) -> list[str | None]:
    return [
        arguments.put(partial.path, partial.value, is_string=partial.is_string, more=partial.more)
        for partial in partials
    ]


def text(path: str, value: str, more: bool = False) -> Partial:
    return Partial(path, value, is_string=True, more=more)


@each_case(
    "path, segments",
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
def test_parse_path_accepts_names_and_indexes(
    path: str, segments: tuple[str | int, ...] | None
) -> None:
    assert parse_path(path) == segments


def test_text_is_emitted_while_values_arrive() -> None:
    arguments = ArgumentsByPath()
    emitted = put(
        arguments,
        text("$.city", "Par", True),
        text("$.city", 'is "x"'),
        Partial("$.days[0]", "3"),
        Partial("$.days[1]", "1.0"),
    )
    assert emitted == ['{"city":"Par', 'is \\"x\\""', ',"days":[3', ",1.0"]
    assert arguments.finish() == "]}"
    assert arguments.object_text() == '{"city":"Paris \\"x\\"","days":[3,1.0]}'


def test_empty_last_fragment_closes_the_string() -> None:
    arguments = ArgumentsByPath()
    assert put(arguments, text("$.a", "x", True), text("$.a", ""), Partial("$.b", "null")) == [
        '{"a":"x',
        '"',
        ',"b":null',
    ]
    assert arguments.finish() == "}"


def test_string_ends_without_a_value_or_at_the_next_path() -> None:
    arguments = ArgumentsByPath()
    assert put(arguments, text("$.a", "x", True)) == ['{"a":"x']
    assert arguments.end_string("$.b") == ""
    assert arguments.end_string("$.a") == '"'
    assert put(arguments, text("$.b", "y", True), Partial("$.c", "1")) == [',"b":"y', '","c":1']


def test_no_values_are_an_empty_object() -> None:
    assert ArgumentsByPath().finish() == "{}"


@pytest.mark.parametrize(
    ("partials", "expected"),
    [
        (
            [Partial("$.a.x", "1"), Partial("$.b", "2"), Partial("$.a.y", "3")],
            '{"a":{"x":1,"y":3},"b":2}',
        ),
        ([Partial("$.a", "1"), Partial("$.a", "2")], '{"a":2}'),
        ([text("$.a", "x"), text("$.a", "y")], '{"a":"xy"}'),
        ([text("$.a", "x", True), Partial("$.b", "1"), text("$.a", "y")], '{"a":"xy","b":1}'),
    ],
)
def test_values_out_of_order_are_in_the_final_object(
    partials: list[Partial], expected: str
) -> None:
    arguments = ArgumentsByPath()
    put(arguments, *partials)
    assert arguments.replaced
    assert arguments.object_text() == expected


@pytest.mark.parametrize(
    "path", ["$.a.b", "$.list.x", "$.list[2]", "$.new[1]", "$.list", "$.o", "nowhere"]
)
def test_impossible_path_is_rejected_and_changes_nothing(path: str) -> None:
    arguments = ArgumentsByPath()
    put(arguments, Partial("$.a", "1"), Partial("$.list[0]", "2"), Partial("$.o.p", "3"))
    before = arguments.object_text()
    assert put(arguments, Partial(path, "4")) == [None]
    assert arguments.object_text() == before
    assert not arguments.replaced


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


def partials_of(value: Any, path: str, draw: st.DrawFn) -> list[Partial]:
    """The value as a provider streams it: leaves in document order, strings in two fragments."""
    if isinstance(value, dict):
        return [
            partial
            for key, child in value.items()
            for partial in partials_of(child, f"{path}[{json.dumps(key)}]", draw)
        ]
    if isinstance(value, list):
        return [
            partial
            for index, child in enumerate(value)
            for partial in partials_of(child, f"{path}[{index}]", draw)
        ]
    if not isinstance(value, str):
        return [Partial(path, json.dumps(value))]
    split = draw(st.integers(0, len(value)))
    return [text(path, value[:split], True), text(path, value[split:])]


@st.composite
def streamed(draw: st.DrawFn) -> tuple[Any, list[Partial]]:
    value = draw(OBJECTS)
    return value, partials_of(value, "$", draw)


@given(streamed())
def test_object_in_document_order_joins_to_itself(case: tuple[Any, list[Partial]]) -> None:
    value, partials = case
    arguments = ArgumentsByPath()
    emitted = put(arguments, *partials)
    assert not arguments.replaced
    joined = "".join(partial or "" for partial in emitted) + arguments.finish()
    assert json.loads(joined) == value
    assert arguments.object_text() == joined


@given(streamed(), st.randoms(use_true_random=False))
def test_any_order_gives_valid_json(case: tuple[Any, list[Partial]], random: Any) -> None:
    _, partials = case
    random.shuffle(partials)
    arguments = ArgumentsByPath()
    emitted = put(arguments, *partials)
    assert json.loads(arguments.object_text()) is not None
    if not arguments.replaced:
        assert (
            "".join(partial or "" for partial in emitted) + arguments.finish()
            == arguments.object_text()
        )


@pytest.mark.timing
def test_ten_thousand_fragments_cost_linear_time() -> None:
    def put_all(count: int) -> None:
        arguments = ArgumentsByPath()
        for n in range(count):
            arguments.put(f"$.list[{n // 4}]", "x" * 20, is_string=True, more=n % 4 < 3)
        arguments.object_text()

    def ratio() -> float:
        return cpu_seconds(lambda: put_all(20_000)) / cpu_seconds(lambda: put_all(10_000))

    assert min(ratio() for _ in range(5)) < 3.0
