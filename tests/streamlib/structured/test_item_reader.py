"""The elements of a list, each as soon as it is closed, from any split and from a stream."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pydantic
import pytest

from streamlib import (
    Completed,
    ErrorInfo,
    Failed,
    FunctionCall,
    IncompleteOutput,
    InvalidOutput,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    Refusal,
    RefusalDelta,
    ResponseEvent,
    StreamError,
    Text,
    assistant,
)
from streamlib.structured import EventItems, JsonItems, TypedJson, json_items
from streamlib.structured.values import typed_value
from streamlib.testing import MODEL, loopback
from streamlib_parsers.outputs import OUTPUT_TOOL
from tests.support.cases import each_case


class City(msgspec.Struct):
    name: str


class Model(pydantic.BaseModel):
    name: str


TEXT = (
    '{"first": {"cities": [1]}, "cities": [{"name": "Os\\u006co"}, {"name": "a]b}\\"\\\\"} ,'
    '{"name":"c"}], "empty": [], "none": null, "n": [[1, 2], [{"name": "z"}]], "a/b": true}'
)
CITIES = ["Oslo", 'a]b}"\\', "c"]


def items_of(text: str, pointer: str, kind: Any, chance: random.Random | None = None) -> list[Any]:
    items: JsonItems[Any] = JsonItems(pointer, kind)
    values: list[Any] = []
    start = 0
    while start < len(text):
        length = len(text) if chance is None else chance.randrange(1, 12)
        values += items.feed(text[start : start + length])
        start += length
    return values + items.close()


@pytest.mark.parametrize("kind", [City, Model])
def test_element_comes_with_the_character_that_closes_it(kind: Any) -> None:
    items: JsonItems[Any] = JsonItems("/cities", kind)
    given: list[tuple[str, str]] = []
    for index, character in enumerate(TEXT):
        for city in items.feed(character):
            given.append((city.name, TEXT[: index + 1][-3:]))
    assert items.close() == []
    assert given == [("Oslo", 'o"}'), ('a]b}"\\', '\\"}'), ("c", 'c"}')]


def test_values_are_the_same_at_any_split() -> None:
    chance = random.Random(3)
    cases: list[tuple[str, Any, list[Any]]] = [
        ("/cities", City, [City(name) for name in CITIES]),
        ("/cities/1", City, [City(CITIES[1])]),
        ("/cities/2/name", str, ["c"]),
        ("/empty", City, []),
        ("/none", City, []),
        ("/none", City | None, [None]),
        ("/n", list, [[1, 2], [{"name": "z"}]]),
        ("/n/0", int, [1, 2]),
        ("/n/1", City, [City("z")]),
        ("/a~1b", bool, [True]),
        ("/first", dict, [{"cities": [1]}]),
        ("", dict, [msgspec.json.decode(TEXT)]),
    ]
    for pointer, kind, expected in cases:
        assert items_of(TEXT, pointer, kind) == expected
        for text in (TEXT, f"```json\n{TEXT}\n```"):
            for _ in range(20):
                assert items_of(text, pointer, kind, chance) == expected


def test_root_may_be_anything() -> None:
    assert items_of("[1, 2]", "", int) == [1, 2]
    assert items_of("12", "", int) == [12]
    assert items_of(' "a" ', "", str) == ["a"]
    assert items_of("[null, 1]", "", int | None) == [None, 1]


def test_place_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InvalidOutput, match="the JSON has no value there") as caught:
        items_of(TEXT, "/citys", City)
    assert caught.value.path == "/citys"
    with pytest.raises(ValueError, match="JSON pointer"):
        JsonItems("cities", City)


@pytest.mark.parametrize("text", ["", "{", '{"cities": [1', '{"cities" [', "no", "[" * 600])
def test_text_that_breaks_off_is_an_error(text: str) -> None:
    with pytest.raises(InvalidOutput, match="not JSON"):
        items_of(text, "/other", City)


@pytest.mark.parametrize("text", ["[1] [2]", "[1]}", "[1]\n```\nThat is all.", "1 2", '"a" "b"'])
def test_text_after_the_value_is_an_error(text: str) -> None:
    """As `response.parsed` says of the same text: the second value was lost without a word."""
    for length in range(1, len(text) + 1):
        items: JsonItems[Any] = JsonItems("", Any)
        for start in range(0, len(text), length):
            items.feed(text[start : start + length])
        with pytest.raises(InvalidOutput, match="follows the value"):
            items.close()


def test_closing_fence_after_the_value_is_not_an_error() -> None:
    text = "```json\n[1, 2]\n```\n"
    for length in range(1, len(text) + 1):
        items = JsonItems("", int)
        values: list[int] = []
        for start in range(0, len(text), length):
            values += items.feed(text[start : start + length])
        assert values + items.close() == [1, 2]


@pytest.mark.parametrize("kind", [City, Model])
def test_element_that_is_not_a_value_is_named(kind: Any) -> None:
    items: JsonItems[Any] = JsonItems("/a/cities", kind)
    assert len(items.feed('{"a": {"cities": [{"name": "x"}, {"na')) == 1
    with pytest.raises(InvalidOutput) as caught:
        items.feed('me": 1}')
    assert caught.value.path == "/a/cities/1/name"
    with pytest.raises(InvalidOutput) as caught:
        items_of("[null]", "", kind)
    assert caught.value.path == "/0"


def test_values_before_a_wrong_one_are_given_at_any_split() -> None:
    """A fragment that closed three cities, the last one wrong, gave none of them."""
    text = '{"cities": [{"name": "a"}, {"name": "b"}, {"name": 1}, {"name": "c"}]}'
    for length in range(1, len(text) + 1):
        items = JsonItems("/cities", City)
        names: list[str] = []
        paths: list[str] = []
        for start in [*range(0, len(text), length), len(text), len(text)]:
            try:
                names += [city.name for city in items.feed(text[start : start + length])]
            except InvalidOutput as error:
                paths.append(error.path)
        items.close()
        assert (names, paths) == (["a", "b", "c"], ["/cities/2/name"])


# --- events ---


def message(text: str, *, end: ResponseEvent | None) -> list[ResponseEvent]:
    events: list[ResponseEvent] = [OutputItemAdded(0, Message(role="assistant"))]
    for start in range(0, len(text), 5):
        events.append(OutputTextDelta(0, 0, text[start : start + 5]))
    events.append(OutputItemDone(0, assistant(text)))
    if end is not None:
        events.append(end)
    return events


async def given(events: list[ResponseEvent], pointer: str = "/cities") -> tuple[list[str], Any]:
    """Names of the cities, and the exception behind them."""

    async def stream() -> AsyncIterator[ResponseEvent]:
        for event in events:
            yield event

    names: list[str] = []
    source = stream()
    try:
        async for city in json_items(source, pointer, City):
            names.append(city.name)
    except (StreamError, InvalidOutput) as error:
        return names, error
    finally:
        await source.aclose()  # type: ignore[attr-defined]
    return names, None


CUT = Failed(ErrorInfo("truncated", "cut"))


async def test_truncated_stream_gives_closed_values_and_then_fails() -> None:
    names, error = await given(message(TEXT[:90], end=CUT))
    assert names == CITIES[:2]
    assert isinstance(error, StreamError)
    assert error.kind == "truncated"


@pytest.mark.parametrize("end", [CUT, Completed(stop_reason="length"), None])
async def test_stream_gives_values_before_a_wrong_one(end: ResponseEvent | None) -> None:
    text = '{"cities": [{"name": "a"}, {"name": "b"}, {"name": 1}'
    events: list[ResponseEvent] = [
        OutputItemAdded(0, Message(role="assistant")),
        OutputTextDelta(0, 0, text),
    ]
    if end is not None:
        events.append(end)
    names, error = await given(events)
    assert (names, error.path) == (["a", "b"], "/cities/2/name")


@pytest.mark.parametrize("reason", ["length", "content_filter", "refusal", "pause"])
async def test_response_that_ended_early_is_incomplete(reason: Any) -> None:
    names, error = await given(message(TEXT[:90], end=Completed(stop_reason=reason)))
    assert names == CITIES[:2]
    assert isinstance(error, IncompleteOutput)
    assert error.reason == reason


async def test_events_without_an_end_are_incomplete() -> None:
    names, error = await given(message(TEXT[:90], end=None))
    assert (names, error.reason) == (CITIES[:2], "not_ended")


async def test_text_that_is_refused_or_no_json_is_an_error() -> None:
    done = Completed(stop_reason="stop")
    assert (await given(message("no", end=done)))[1].problem.startswith("not JSON")
    assert (await given([done]))[1].problem == "the response has no output"
    refused = Message(role="assistant", content=[Refusal("no")])
    events = [OutputItemAdded(0, refused), RefusalDelta(0, 0, "no"), OutputItemDone(0, refused)]
    assert (await given([*events, done]))[1].reason == "refusal"
    call = FunctionCall("c", "f", "{}")
    events = [OutputItemAdded(0, call), OutputItemDone(0, call)]
    assert (await given([*events, Completed(stop_reason="tool_calls")]))[1].reason == "tool_calls"


async def test_remark_before_the_output_is_left_out() -> None:
    remark: list[ResponseEvent] = [
        OutputItemAdded(1, Message(role="assistant")),
        OutputTextDelta(1, 0, "Found."),
        OutputItemDone(1, assistant("Found.")),
    ]
    for events in (
        [*remark, *message(TEXT, end=Completed(stop_reason="stop"))],
        [*message(TEXT, end=None), *remark, Completed(stop_reason="stop")],
    ):
        assert await given(events) == (CITIES, None)


def test_other_choices_are_left_out() -> None:
    items: EventItems[City] = EventItems("/cities", City)
    items.feed(OutputItemAdded(0, Message(role="assistant", choice=1)))
    assert items.feed(OutputTextDelta(0, 0, TEXT)) == []


@pytest.mark.parametrize("wire", ["messages", "chat", "gemini"])
async def test_stream_gives_elements_of_text_and_of_the_call(wire: Any) -> None:
    turns = ((assistant(TEXT),), (FunctionCall("c1", OUTPUT_TOOL, TEXT),))
    async with loopback(wire, turns=turns) as client:
        for _ in turns:
            names: list[str] = []
            async with client.stream(Prompt("Cities?"), MODEL) as stream:
                async for city in json_items(stream, "/cities", City):
                    names.append(city.name)
            assert names == CITIES
            assert stream.response.status == "completed"


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_error_has_the_response_so_far(errors: Any) -> None:
    parts = Message(role="assistant", content=[Text(TEXT)])
    async with loopback("chat", turns=((parts,),), fault="truncate") as client:
        async with client.stream(Prompt("Cities?"), MODEL, errors=errors) as stream:
            with pytest.raises(StreamError) as caught:
                async for _ in json_items(stream, "/cities", City):
                    pass
        assert caught.value.response is not None
        assert caught.value.response.status == "failed"


# --- a list and the object that it is asked for in: as `partial` and `parsed` read it ---


class Price(msgspec.Struct):
    """It has a field of the wrapper's name."""

    value: list[int]


@each_case("pointer", ["", "/value"])
@each_case("kind", [City, Model])
@each_case("text", ['{"value": [{"name": "a"}, {"name": "b"}]}', '[{"name": "a"}, {"name": "b"}]'])
def test_list_is_found_in_its_object_and_alone(pointer: str, kind: Any, text: str) -> None:
    chance = random.Random(7)
    for _ in range(30):
        found = items_of(text, pointer, kind, chance)
        assert [city.name for city in found] == ["a", "b"]
    view: TypedJson[Any] = TypedJson(list[kind])
    view.feed(text)
    assert view.partial() == found == typed_value(text, list[kind])


@pytest.mark.parametrize("pointer", ["", "/value"])
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"value": [{"name": "a"}, {"name": 1}]}', "/value/1/name"),
        ('[{"name": "a"}, {"name": 1}]', "/1/name"),
    ],
)
def test_path_of_a_wrong_element_is_that_of_parsed(pointer: str, text: str, path: str) -> None:
    for read in (lambda: items_of(text, pointer, City), lambda: typed_value(text, list[City])):
        with pytest.raises(InvalidOutput) as raised:
            read()
        assert raised.value.path == path


@each_case(
    "text, kind, values",
    [
        ('{"value": [0, 1]}', int, [0, 1]),
        ('{"value": []}', City, []),
        ('{"value": [[0], []]}', list[int], [[0], []]),
        ('{"value": 0}', int, [0]),
        ('{"value": [0, 1]}', Price, [Price([0, 1])]),
        ('{"value": [0, 1]}', Price | None, [Price([0, 1])]),
        ('{"value": [{"name": "a"}, 3]}', City | int, [City("a"), 3]),
        ('{"value": [{"name": "a"}, null]}', City | None, [City("a"), None]),
        ('{"value": [0, 1]}', dict[str, Any], [{"value": [0, 1]}]),
        ('{"value": [0, 1]}', Any, [{"value": [0, 1]}]),
        ('{"name": "value"}', City, [City("value")]),
        ('{"name": "a", "value": [0]}', City, [City("a")]),
        ("{}", dict[str, Any], [{}]),
    ],
)
def test_object_that_is_the_value_itself_stays(text: str, kind: Any, values: list[Any]) -> None:
    chance = random.Random(3)
    for _ in range(10):
        assert items_of(text, "", kind, chance) == values
