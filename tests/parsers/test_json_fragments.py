"""Argument text in fragments: every view is a beginning of the value, no text is read twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import FunctionCallArgumentsDelta, InvalidArguments
from streamlib_parsers.json_fragments import IncrementalJson
from streamlib_parsers.json_reader import DEEPEST
from streamlib_parsers.wires.gemini.arguments_by_path import ArgumentsByPath
from tests.support.cases import each_case
from tests.support.dialect_streams import chat
from tests.support.timing import cpu_seconds

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=6), inner, max_size=5)
    ),
    max_leaves=20,
)


def begins(view: Any, value: Any) -> bool:
    """Whether `view` can still become `value` by growing."""
    if isinstance(view, str) and isinstance(value, str):
        return value.startswith(view)
    if isinstance(view, list) and isinstance(value, list):
        return len(view) <= len(value) and _all_begin(view, value)
    if isinstance(view, dict) and isinstance(value, dict):
        keys = list(view)
        return keys == list(value)[: len(keys)] and _all_begin(
            [view[key] for key in keys], [value[key] for key in keys]
        )
    return type(view) is type(value) and view == value


def _all_begin(views: list[Any], values: list[Any]) -> bool:
    """Whether all but the last are equal and the last can still grow."""
    return views[:-1] == values[: len(views[:-1])] and all(
        begins(view, value)
        for view, value in zip(views[-1:], values[len(views) - 1 :], strict=False)
    )


def views_of(fragments: Iterable[str]) -> list[Any]:
    """A copy of the view after each fragment."""
    incremental = IncrementalJson()
    views: list[Any] = []
    for fragment in fragments:
        incremental.feed(fragment)
        views.append(json.loads(json.dumps(incremental.partial())))
    return views


@pytest.mark.parametrize("digits", ["-06c", "+06c", " 06c", "0_6c", "0x6c", "006g"])
def test_view_ends_before_an_escape_that_is_none(digits: str) -> None:
    """Four characters that `int` reads as a hexadecimal number: one raised, others were shown."""
    fragments = IncrementalJson()
    fragments.feed(f'["a\\u{digits}b", 1]')
    assert fragments.partial() == ["a"]


@given(JSON, st.booleans(), st.sampled_from([None, 1]), st.booleans())
def test_partial_of_every_prefix_is_a_prefix_of_the_value(
    value: Any, ascii_only: bool, indent: int | None, sort: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, sort_keys=sort)
    value = json.loads(text)
    fragments = IncrementalJson()
    for character in text:
        fragments.feed(character)
        view = fragments.partial()
        assert view is None or begins(view, value), (view, fragments.text)
    assert fragments.value() == value
    if isinstance(value, (str, list, dict)):
        assert fragments.partial() == value


@given(JSON, st.lists(st.integers(0, 200), max_size=8))
def test_partial_does_not_depend_on_the_split(value: Any, offsets: list[int]) -> None:
    text = json.dumps(value)
    ends = sorted({min(offset, len(text)) for offset in offsets})
    ends.append(len(text))
    fragments = [text[start:end] for start, end in pairwise([0, *ends])]
    # Before the first character there is no view.
    by_character = [None, *views_of(text)]
    assert views_of(fragments) == [by_character[end] for end in ends]


def test_partial_shows_what_is_certain() -> None:
    text = (
        '{"a": 12, "b": [true, nul',
        'l, "x\\u00',
        'e9y"], "c": {"d": -1.5e',
        '3 }, "e": "\\ud83d',
        '\\ude00"}',
    )
    assert views_of(text) == [
        {"a": 12, "b": [True]},
        {"a": 12, "b": [True, None, "x"]},
        {"a": 12, "b": [True, None, "x\u00e9y"], "c": {}},
        {"a": 12, "b": [True, None, "x\u00e9y"], "c": {"d": -1500.0}, "e": ""},
        {"a": 12, "b": [True, None, "x\u00e9y"], "c": {"d": -1500.0}, "e": "\U0001f600"},
    ]


def test_value_of_empty_text_is_an_empty_object() -> None:
    fragments = IncrementalJson()
    assert (fragments.partial(), fragments.text, fragments.value(), fragments.is_complete) == (
        None,
        "",
        {},
        False,
    )
    fragments.feed("")
    fragments.feed(" \n")
    assert fragments.partial() is None


@each_case(
    "text",
    [
        "{",
        '{"a',
        '{"a": ',
        '{"a": 1',
        "[1,",
        '"a',
        "tru",
        '{"a": 1}}',
        "{a: 1}",
        "{} {}",
        "[01]",
        "nope",
    ],
)
def test_value_raises_when_the_text_is_incomplete(text: str) -> None:
    fragments = IncrementalJson()
    fragments.feed(text)
    assert not fragments.is_complete
    with pytest.raises(InvalidArguments) as caught:
        fragments.value()
    assert caught.value.arguments == text


@each_case(
    "text, view",
    [
        ('{"a": 1, b', {"a": 1}),
        ('{"a": nope, "b": 1}', {}),
        ("[1, 2}, 3", [1, 2]),
        ('["a\\x", 1]', ["a"]),
        ('{"a": 1} {"b": 2}', {"a": 1}),
        ("[1e999, 2]", []),
        ("]", None),
        ('["a\\u00zz"]', ["a"]),
        ('{"a" 1}', {}),
    ],
)
def test_partial_keeps_what_precedes_invalid_json(text: str, view: Any) -> None:
    assert views_of(text)[-1] == view
    assert views_of([text])[-1] == view


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d!"', "\ufffd!"),
        ('"\\ude00"', "\ufffd"),
        ('"\\ud83d\\ud83d\\ude00"', "\ufffd\U0001f600"),
        ('"a\\ud83d\\n"', "a\ufffd\n"),
    ],
)
def test_partial_and_value_agree_on_lone_surrogates(text: str, value: str) -> None:
    fragments = IncrementalJson()
    for character in text:
        fragments.feed(character)
        assert value.startswith(fragments.partial() or "")
    assert fragments.value() == fragments.partial() == value


def test_partial_returns_the_same_growing_object() -> None:
    fragments = IncrementalJson()
    fragments.feed('{"a": [1, ')
    view = fragments.partial()
    fragments.feed("2, 3], ")
    assert fragments.partial() is view
    assert view == {"a": [1, 2, 3]}


def test_partial_limits_nesting() -> None:
    text = "[" * (DEEPEST + 100)
    view = views_of([text])[-1]
    depth = 0
    while view:
        view = view[0]
        depth += 1
    assert depth == DEEPEST - 1


def test_partial_reads_gemini_arguments_by_path() -> None:
    by_path, fragments = ArgumentsByPath(), IncrementalJson()
    views: list[Any] = []
    for path, value, more in [
        ("$.city", "Par", True),
        ("$.city", "is", False),
        ("$.days[0]", "3", False),
    ]:
        is_string = path == "$.city"
        fragments.feed(by_path.put(path, value, is_string=is_string, more=more) or "")
        views.append(json.loads(json.dumps(fragments.partial())))
    fragments.feed(by_path.finish())
    assert views == [{"city": "Par"}, {"city": "Paris"}, {"city": "Paris", "days": []}]
    assert fragments.value() == json.loads(by_path.object_text()) == {"city": "Paris", "days": [3]}


def test_partial_reads_deltas_of_a_stream() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a": "b'}}
    events = chat(
        [{"tool_calls": [call]}, {"tool_calls": [{"index": 0, "function": {"arguments": 'c"}'}}]}]
    )
    fragments = IncrementalJson()
    views: list[Any] = []
    for event in events:
        if isinstance(event, FunctionCallArgumentsDelta):
            fragments.feed(event.delta)
            views.append(dict(fragments.partial()))
    assert views == [{"a": "b"}, {"a": "bc"}]


TEXTS = {
    "one string": lambda n: json.dumps({"path": "a", "content": 'abcde\n"x' * (n // 10)}),
    "numbers": lambda n: json.dumps({"a": list(range(n // 7))}),
    "objects": lambda n: json.dumps([{"k": i, "s": "v\u00e9"} for i in range(n // 24)]),
    "escapes": lambda n: json.dumps("\n" * (n // 2)),
}


@pytest.mark.timing
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("size", [10, 1 << 20])
def test_partial_a_hundred_times_takes_linear_time(kind: str, size: int) -> None:
    texts = [TEXTS[kind](length) for length in (20_000, 200_000)]
    measured: list[float] = []
    for _ in range(4):  # a busy machine can only make it look worse
        small, large = (view_hundred_times(text, size) for text in texts)
        measured.append(large / small)
        if measured[-1] <= 12:
            return
    pytest.fail(f"ratios {measured}")


def view_hundred_times(text: str, size: int) -> float:
    """Seconds for feeding `text` with a hundred views on the way."""
    fragments = [text[start : start + size] for start in range(0, len(text), size)]
    interval = max(1, len(fragments) // 100)

    def view() -> None:
        incremental = IncrementalJson()
        for index, fragment in enumerate(fragments):
            incremental.feed(fragment)
            if index % interval == 0:
                incremental.partial()
        incremental.value()

    return cpu_seconds(view, tries=2)
