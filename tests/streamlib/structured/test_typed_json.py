"""Partial objects of classes: real objects whose missing fields are `UNSET`, from any split."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import random
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pytest

from streamlib import UNSET
from streamlib.structured import JsonItems, TypedJson
from streamlib.structured.fence import OpeningFence
from streamlib.structured.values import typed_value
from streamlib_parsers import InvalidOutput
from tests.support.cases import each_case

T = TypeVar("T")


class City(msgspec.Struct):
    name: str
    people: int
    tags: list[str]


class Model(pydantic.BaseModel):
    name: str
    people: int
    tags: list[str]


@dataclass(frozen=True)
class Data:
    name: str
    people: int
    tags: list[str]


class Entry(TypedDict):
    name: str
    people: int
    tags: list[str]


@attrs.define
class Attrs:
    name: str
    people: int
    tags: list[str]


CLASSES: list[Any] = [City, Model, Data, Entry, Attrs]
OSLO = '{"name": "Os\\u006co", "people": 700000, "tags": ["fjord", "cold"]}'


def made(kind: Any, **fields: Any) -> Any:
    """An object of the class, without validation."""
    if kind is Model:
        return Model.model_construct(**fields)
    return kind(**fields)


def view_of(fragments: Iterable[str], kind: Any) -> Any:
    typed: TypedJson[Any] = TypedJson(kind)
    for fragment in fragments:
        typed.feed(fragment)
    return typed.partial()


def split(text: str, chance: random.Random) -> list[str]:
    places = sorted(chance.choices(range(len(text) + 1), k=chance.randrange(8)))
    return [text[start:end] for start, end in zip([0, *places], [*places, None], strict=True)]


@pytest.mark.parametrize("kind", CLASSES)
def test_view_is_an_object_of_the_class_that_grows(kind: Any) -> None:
    typed: TypedJson[Any] = TypedJson(kind)
    first = typed.partial()
    assert first == made(kind, name=UNSET, people=UNSET, tags=UNSET)
    for fragment, expected in [
        ('{"na', made(kind, name=UNSET, people=UNSET, tags=UNSET)),
        ('me": "Os\\u00', made(kind, name="Os", people=UNSET, tags=UNSET)),
        ('6co", "people": 70', made(kind, name="Oslo", people=UNSET, tags=UNSET)),
        ('0000, "tags": ["fj', made(kind, name="Oslo", people=700000, tags=["fj"])),
        ('ord"]}', made(kind, name="Oslo", people=700000, tags=["fjord"])),
    ]:
        typed.feed(fragment)
        assert typed.partial() == expected
        assert typed.partial() is first


@pytest.mark.parametrize("kind", CLASSES)
def test_last_view_is_the_value(kind: Any) -> None:
    for wanted, text in [
        (kind, OSLO),
        (list[kind], f'{{"value": [{OSLO}, {OSLO}]}}'),
        (list[kind], f"[{OSLO}, {OSLO}]"),
        (dict[str, kind], f'{{"a": {OSLO}, "value": {OSLO}}}'),
        (kind | None, OSLO),
        (kind | None, f'{{"value": {OSLO}}}'),
        (tuple[kind, ...], f"[{OSLO}]"),
        (kind, f"```json\n{OSLO}\n```"),
        (dict[int, kind], f'{{"1": {OSLO}}}'),
        (dict[str, Any], '{"a": true, "b": null, "c": [false]}'),
    ]:
        assert view_of([text], wanted) == typed_value(text, wanted)


@pytest.mark.parametrize("kind", CLASSES)
def test_view_of_a_dict_has_what_is_open(kind: Any) -> None:
    text = f'{{"a": {OSLO}, "b": {OSLO[:-1]}'
    assert [*view_of([text], dict[str, kind])] == ["a", "b"]


def test_fence_has_a_label_of_at_most_40_letters() -> None:
    for letters, fenced in ((40, True), (41, False)):
        fence = OpeningFence()
        opening = "```" + "x" * letters
        assert fence.feed(opening) == ("" if fenced else opening)


@pytest.mark.parametrize("kind", CLASSES)
def test_view_is_the_same_at_any_split(kind: Any) -> None:
    chance = random.Random(7)
    texts = [OSLO, f"```json\n{OSLO}\n```", f'{{"value": [{OSLO}, {{"name": "x\\\\"}}]}}']
    for text in texts:
        wanted = list[kind] if "value" in text else kind
        for length in range(0, len(text), 7):
            expected = view_of([text[:length]], wanted)
            for _ in range(5):
                assert view_of(split(text[:length], chance), wanted) == expected
        assert view_of(text, wanted) == view_of([text], wanted)


def test_view_after_each_fragment_is_that_of_the_text() -> None:
    typed: TypedJson[City] = TypedJson(City)
    for index, character in enumerate(OSLO):
        typed.feed(character)
        assert typed.partial() == view_of([OSLO[: index + 1]], City)


class Level(enum.Enum):
    LOW = "low"


class Leaves(msgspec.Struct):
    day: dt.date
    level: Level
    choice: Literal["a", "b"]
    cost: Decimal
    ratio: float
    flag: bool
    nothing: None
    either: int | str
    pair: tuple[int, str]
    ids: set[int]
    anything: Any


LEAVES = (
    '{"day": "2026-01-31", "level": "low", "choice": "b", "cost": 1.10000000000000000001, '
    '"ratio": 3, "flag": true, "nothing": null, "either": "text", "pair": [1, "x"], '
    '"ids": [1, 2], "anything": {"a": [1, "te'
)


def test_only_texts_grow_and_the_rest_appears_complete() -> None:
    seen: dict[str, list[Any]] = {name: [] for name in Leaves.__struct_fields__}
    typed: TypedJson[Leaves] = TypedJson(Leaves)
    for character in LEAVES:
        typed.feed(character)
        view = typed.partial()
        for name, values in seen.items():
            value = copy.deepcopy(getattr(view, name))
            if value is not UNSET and (not values or values[-1] != value):
                values.append(value)
    assert seen["day"] == [dt.date(2026, 1, 31)]
    assert seen["level"] == [Level.LOW]
    assert seen["choice"] == ["b"]
    assert seen["cost"] == [Decimal("1.10000000000000000001")]
    assert seen["ratio"] == [3.0]
    assert seen["flag"] == [True]
    assert seen["nothing"] == [None]
    assert seen["either"][:3] == ["", "t", "te"]
    assert seen["pair"] == [(1, "x")]
    assert seen["ids"] == [[], [1], {1, 2}]
    assert seen["anything"][-1] == {"a": [1, "te"]}


class Square(msgspec.Struct, tag="square"):
    side: int


class Circle(msgspec.Struct, tag="circle"):
    radius: int


class Shapes(msgspec.Struct):
    shapes: list[Square | Circle]


class Trip(msgspec.Struct):
    city: City | None
    stops: list[str] | None
    any_of: City | list[str] | None


def test_field_that_may_be_none_grows_like_any_other() -> None:
    """Most optional fields are so declared; they must not wait for their end."""
    typed: TypedJson[Trip] = TypedJson(Trip)
    typed.feed('{"city": {"name": "Os')
    assert typed.partial().city == City("Os", UNSET, UNSET)  # type: ignore[arg-type]
    typed.feed('lo", "people": 1, "tags": []}, "stops": ["a", "b')
    assert typed.partial().stops == ["a", "b"]
    typed.feed('"], "any_of": ["x"')
    assert typed.partial().any_of == ["x"]


def test_one_of_several_classes_appears_once_it_is_closed() -> None:
    text = '{"shapes": [{"type": "circle", "radius": 1}, {"type": "square", "side": 2'
    assert view_of([text], Shapes).shapes == [Circle(1)]
    assert view_of([text, "}]}"], Shapes).shapes == [Circle(1), Square(2)]


@pytest.mark.parametrize("kind", CLASSES)
def test_what_the_type_refuses_stays_unset(kind: Any) -> None:
    text = '{"name": 3, "people": "many", "tags": {"a": [1, {}]}, "other": [[{"x": "y"}]]'
    assert view_of([text], kind) == made(kind, name=UNSET, people=UNSET, tags=UNSET)
    text = '{"tags": ["a", 1, null, {}, ["b"], "c"], "name": "after"}'
    view = view_of([text], kind)
    assert view == made(kind, name="after", people=UNSET, tags=["a", "c"])


@each_case("kind", [*CLASSES, list[City], City | None, int, Any, dict[str, int]])
def test_no_text_raises(kind: Any) -> None:
    chance = random.Random(11)
    for _ in range(300):
        text = list(OSLO * 2)
        for _ in range(chance.randrange(6)):
            text[chance.randrange(len(text))] = chance.choice('{}[]",:\\ue1-tn `')
        view_of(split("".join(text), chance), kind)


class Zoo(pydantic.BaseModel):
    first: Animal | Keeper
    animals: list[Animal]


class Keeper(pydantic.BaseModel):
    job: str


class Animal(pydantic.BaseModel):
    legs: int

    @pydantic.field_validator("legs")
    @classmethod
    def look_up(cls, legs: int) -> int:
        return {2: 2, 4: 4}[legs]


def test_class_may_name_classes_below_it() -> None:
    view = view_of(['{"first": {"legs": 4}, "animals": [{"legs": 2}, {'], Zoo)
    assert view.first == Animal(legs=4)
    assert [animal.legs for animal in view.animals] == [2, UNSET]


def test_validator_that_raises_anything_leaves_unset() -> None:
    """Unions of classes are validated: the validator's own exception came out of the view."""
    assert view_of(['{"first": {"legs": 3}, '], Zoo).first is UNSET


class Strict(msgspec.Struct, frozen=True):
    name: str
    inner: list[Strict] = []

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is needed")


class StrictModel(pydantic.BaseModel, frozen=True):
    name: str = pydantic.Field(min_length=3)
    inner: list[StrictModel] = []

    def model_post_init(self, context: Any) -> None:
        raise ValueError("never complete")


@dataclass(frozen=True, slots=True)
class StrictData:
    name: str
    inner: list[StrictData]

    def __post_init__(self) -> None:
        raise ValueError("never complete")


@pytest.mark.parametrize("kind", [Strict, StrictModel, StrictData])
def test_checks_for_complete_objects_do_not_run(kind: Any) -> None:
    view = view_of(['{"name": "", "inner": [{"name": "a'], kind)
    assert isinstance(view, kind)
    assert isinstance(view.inner[0], kind)
    assert (view.name, view.inner[0].name, view.inner[0].inner) == ("", "a", UNSET)
    assert "name='a'" in repr(view)


def test_fields_are_found_under_their_names_in_json() -> None:
    class Renamed(msgspec.Struct, rename="camel"):
        first_name: str

    class Aliased(pydantic.BaseModel):
        first_name: str = pydantic.Field(alias="firstName")

    class Choices(pydantic.BaseModel):
        first_name: str = pydantic.Field(validation_alias=pydantic.AliasChoices("x", "firstName"))

    for kind in (Renamed, Aliased, Choices):
        assert view_of(['{"firstName": "Ad'], kind).first_name == "Ad"


@dataclass
class Page(Generic[T]):
    items: list[T]
    first: T


class ModelPage(pydantic.BaseModel, Generic[T]):
    items: list[T]


class StructPage(msgspec.Struct, Generic[T]):
    items: list[T]


def test_generic_classes_have_typed_elements() -> None:
    text = '{"items": [{"name": "Os'
    for kind in (Page[City], StructPage[City], Page[Model], ModelPage[Model]):
        element = view_of([text], kind).items[0]
        assert element.name == "Os"
        assert element.people is UNSET
    assert view_of(['{"first": {"name": "a'], Page[City]).first.name == "a"


class Point(NamedTuple):
    x: int
    y: int


def test_tuples_and_described_types_are_read() -> None:
    class Mixed(msgspec.Struct):
        point: Point
        size: Annotated[int, msgspec.Meta(gt=0)]
        text: Annotated[str, msgspec.Meta(min_length=9)]

    view = view_of(['{"point": [1, 2], "size": 3, "text": "gro'], Mixed)
    assert (view.point, view.size, view.text) == (Point(1, 2), 3, "gro")


def test_json_of_any_kind_can_be_a_root() -> None:
    assert view_of(['"te'], str) == "te"
    assert view_of(["[1, 2"], list) == [1]
    assert view_of(["[1, 2"], list[int]) == [1]
    assert view_of(["12"], int) is UNSET
    assert view_of(["12 "], int) == 12
    assert view_of(['{"value": 12'], int) is UNSET
    assert view_of(['{"value": 12}'], int) == 12
    assert view_of([], list[int]) == []
    assert view_of([], City | None) is UNSET


def test_class_that_no_library_reads_is_a_type_error() -> None:
    """It is found before any text, and not as a view that stays empty."""

    class Plain:
        pass

    for kind in (Plain, list[Plain]):
        with pytest.raises(TypeError):
            TypedJson(kind)
        with pytest.raises(TypeError):
            JsonItems("/a", kind)


def test_field_of_attrs_without_a_type_takes_anything() -> None:
    """msgspec before 0.23 reads no such class, and said so with a KeyError."""
    untyped: Any = attrs.make_class("Untyped", ["name"])
    holder: Any = msgspec.defstruct("Holder", [("inner", untyped)])
    if tuple(map(int, msgspec.__version__.split(".")[:2])) < (0, 23):
        with pytest.raises(TypeError, match="Untyped"):
            typed_value('{"name": [1]}', untyped)
        with pytest.raises(TypeError, match="Untyped"):
            TypedJson(untyped)
        return
    assert typed_value('{"name": [1]}', untyped).name == [1]
    with pytest.raises(InvalidOutput) as raised:
        typed_value("{}", untyped)
    assert raised.value.path == "/name"
    assert view_of(['{"name": [1,'], untyped).name == [1]
    assert view_of(['{"inner": {"name": [1,'], holder).inner.name == [1]
