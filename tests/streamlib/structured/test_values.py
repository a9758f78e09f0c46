"""JSON text as values of classes, and the path of what is no such value."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict

import attrs
import msgspec
import pydantic
import pytest

from streamlib.structured.pointers import pointer_of, tokens_of
from streamlib.structured.schemas import json_schema
from streamlib.structured.values import typed_value, unfenced
from streamlib_parsers import IncompleteOutput, InvalidArguments, InvalidOutput
from tests.support.cases import each_case


class City(msgspec.Struct):
    name: str
    people: int = 0


class Model(pydantic.BaseModel):
    name: str
    people: int = 0


@dataclass
class Data:
    name: str
    people: int = 0


class Entry(TypedDict):
    name: str
    people: int


@attrs.define
class Attrs:
    name: str = attrs.field(validator=attrs.validators.min_len(2))
    people: int = 0


CLASSES: list[Any] = [City, Model, Data, Entry, Attrs]
OSLO = '{"name": "Oslo", "people": 700000}'


def failure(text: str, kind: Any) -> InvalidOutput:
    with pytest.raises(InvalidOutput) as caught:
        typed_value(text, kind)
    return caught.value


@pytest.mark.parametrize("kind", CLASSES)
def test_value_is_of_its_class(kind: Any) -> None:
    value = typed_value(OSLO, kind)
    assert value == kind(name="Oslo", people=700000)


@pytest.mark.parametrize("kind", CLASSES)
def test_value_of_a_wrong_type_is_named_by_its_path(kind: Any) -> None:
    text = f'{{"a": [{OSLO}], "b/c": [{OSLO}, {{"name": "X1", "people": "many"}}]}}'
    error = failure(text, dict[str, list[kind]])
    assert error.path == "/b~1c/1/people"
    assert error.text == text
    assert str(error).startswith("/b~1c/1/people: ")


@pytest.mark.parametrize("kind", CLASSES)
def test_missing_field_is_named_by_its_path(kind: Any) -> None:
    assert failure('[{"people": 1}]', list[kind]).path == "/0/name"


@each_case("kind", CLASSES)
@each_case("text", ["", "{", "no", OSLO[:-1], OSLO + "x", '{"name": "a\x00"}'])
def test_text_that_is_not_json_is_refused(kind: Any, text: str) -> None:
    error = failure(text, kind)
    assert error.path == ""
    assert error.problem.startswith("not JSON")


def test_validators_of_the_class_run() -> None:
    assert ">= 2" in failure('{"name": "x"}', Attrs).problem
    positive = Annotated[int, pydantic.Field(gt=0)]
    assert failure("0", positive).problem == "Input should be greater than 0"
    assert typed_value("1", positive) == 1


@attrs.define
class Checked:
    name: Any = attrs.field(validator=attrs.validators.instance_of(str))
    code: str = attrs.field(default="a", validator=attrs.validators.matches_re("a+"))


@each_case(
    "text, path, problem",
    [
        ('{"name": 5}', "/1/name", "'name' must be <class 'str'> (got 5 that is a <class 'int'>)."),
        # The value holds what msgspec writes before a path.
        (
            '{"name": "x", "code": "- at `$[7]`"}',
            "/1/code",
            "'code' must match regex 'a+' ('- at `$[7]`' doesn't)",
        ),
    ],
)
def test_error_of_a_validator_of_attrs_is_a_sentence(text: str, path: str, problem: str) -> None:
    error = failure(f'[{{"name": "x"}}, {text}]', list[Checked])
    assert (error.path, error.problem) == (path, problem)
    wrapped = failure(f'{{"value": [{{"name": "x"}}, {text}]}}', list[Checked])
    assert (wrapped.path, wrapped.problem) == (f"/value{path}", problem)


@pytest.mark.parametrize("second", [attrs.Factory(list), attrs.NOTHING])
def test_only_an_attribute_of_attrs_is_in_the_path(second: Any) -> None:
    """The path was /NOTHING, and an AttributeError left `parsed`."""

    def refuse(instance: Any, attribute: Any, value: Any) -> None:
        raise ValueError("custom", second)

    @attrs.define
    class Refusing:
        name: str = attrs.field(validator=refuse)

    assert failure('{"name": "x"}', Refusing).path == ""


class Coded(msgspec.Struct, forbid_unknown_fields=True):
    code: Literal["a"] = "a"


@each_case(
    "text, path, problem",
    [
        ('{"code": "b - at `$[7]`"}', "/1/code", "Invalid enum value 'b - at `$[7]`'"),
        ('{"b - at `$[7]": 1}', "/1", "Object contains unknown field `b - at `$[7]`"),
    ],
)
def test_a_value_that_looks_like_a_path_is_none(text: str, path: str, problem: str) -> None:
    error = failure(f"[{{}}, {text}]", list[Coded])
    assert (error.path, error.problem) == (path, problem)


def test_a_root_that_looks_like_a_path_is_none() -> None:
    error = failure('"b - at `$[7]`"', Literal["a"])
    assert (error.path, error.problem) == ("", "Invalid enum value 'b - at `$[7]`'")


def test_path_of_pydantic_names_no_branch_of_a_union() -> None:
    class Town(pydantic.BaseModel):
        mayor: str

    error = failure('{"a": [{"name": 1}]}', dict[str, list[Model | Town]])
    assert error.path == "/a/0/name"


@pytest.mark.parametrize("kind", CLASSES)
def test_fenced_text_is_read(kind: Any) -> None:
    for text in (f"```json\n{OSLO}\n```", f"\n ```\n{OSLO}\n```\n", f"```JSON\n{OSLO}"):
        assert typed_value(text, kind) == kind(name="Oslo", people=700000)
    assert unfenced("``") == "``"


@pytest.mark.parametrize("kind", CLASSES)
def test_value_that_is_not_an_object_may_be_in_a_wrapper(kind: Any) -> None:
    expected = [kind(name="Oslo", people=700000)]
    assert typed_value(f'{{"value": [{OSLO}]}}', list[kind]) == expected
    assert typed_value(f"[{OSLO}]", list[kind]) == expected
    assert failure('{"value": [{"people": 1}]}', list[kind]).path == "/value/0/name"


class Filters(msgspec.Struct):
    """All of it may be absent, so that it takes any object."""

    city: str | None = None


class ModelFilters(pydantic.BaseModel):
    city: str | None = None


@pytest.mark.parametrize("kind", [Filters, ModelFilters])
def test_wrapper_of_a_choice_is_none_of_its_objects(kind: Any) -> None:
    for text in ('{"value": {"city": "Oslo"}}', '{"city": "Oslo"}'):
        assert typed_value(text, kind | None) == kind(city="Oslo")
        assert typed_value(text, int | kind) == kind(city="Oslo")
    assert typed_value('{"value": {"city": "\\ud800"}}', kind | None) == kind(city="\ufffd")
    assert typed_value('{"value": null}', kind | None) is None
    assert typed_value('{"value": 3}', int | kind) == 3
    assert failure('{"value": {"city": 3}}', kind | None).path == "/value/city"


def test_object_with_a_field_called_value_is_not_a_wrapper() -> None:
    class Price(msgspec.Struct):
        value: int

    assert typed_value('{"value": 3}', Price) == Price(3)
    assert typed_value('{"value": 3}', dict[str, int]) == {"value": 3}
    assert failure('{"value": {"value": 3}}', Price).path == "/value"


@pytest.mark.parametrize("kind", [City, Model, Data, Attrs])
def test_null_for_an_optional_field_is_its_absence(kind: Any) -> None:
    """OpenAI's strict mode requires every field, so that a model writes null for absent ones."""
    assert typed_value('{"name": "Oslo", "people": null}', kind) == kind(name="Oslo")
    assert failure('{"name": null, "people": null}', kind).path == "/name"


def test_null_is_kept_where_the_field_takes_it() -> None:
    class Trip(msgspec.Struct):
        end: str | None = "unknown"
        stops: list[City] = []

    text = '{"end": null, "stops": [{"name": "Oslo", "people": null}]}'
    assert typed_value(text, Trip) == Trip(None, [City("Oslo")])


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    for kind in (City, Model):
        assert typed_value('{"name": "a\\ud83d"}', kind).name == "a\ufffd"


def test_numbers_and_dates_keep_their_text() -> None:
    class Bill(msgspec.Struct):
        total: Decimal
        day: dt.date

    text = '{"total": 0.1000000000000000000001, "day": "2026-01-31"}'
    bill = typed_value(text, Bill)
    assert bill == Bill(Decimal("0.1000000000000000000001"), dt.date(2026, 1, 31))
    assert failure('{"total": 1, "day": "2026-02-31"}', Bill).path == "/day"


def test_first_refused_key_of_many_is_found() -> None:
    members = ", ".join(f'"k{number}": {number}' for number in range(100))
    text = f'{{{members}, "bad": "x", "k101": 1, "worse": "y"}}'
    assert failure(text, dict[str, int]).path == "/bad"


def test_deep_json_is_invalid_output_and_no_crash() -> None:
    for kind in (City, Model, list[int]):
        assert failure("[" * 100_000, kind).problem.startswith("not JSON")
        assert failure("[" * 5_000 + "]" * 5_000, kind).problem


def test_class_that_no_library_reads_is_a_type_error() -> None:
    class Plain:
        pass

    with pytest.raises(TypeError):
        typed_value("{}", Plain)


@attrs.define
class Converted:
    name: str = attrs.field(converter=str.strip, alias="title")
    ready: bool = attrs.field(init=False, default=False)


def test_limits_of_attrs_classes_are_those_of_the_page() -> None:
    """docs/structured-output.md: no converter, no alias, and `init=False` is set from the text."""
    value = typed_value('{"name": " a ", "ready": true}', Converted)
    assert (value.name, value.ready) == (" a ", True)
    assert failure('{"title": "a"}', Converted).path == "/name"
    assert list(json_schema(Converted)["properties"]) == ["name", "ready"]


@attrs.define
class Titled:
    title: str
    slug: str = attrs.field()

    @slug.default
    def _slug(self) -> str:
        return self.title.lower()


class Shelf(msgspec.Struct):
    books: list[Titled]


@pytest.mark.parametrize("kind", [Titled, list[Titled], Shelf, dict[str, Shelf | None]])
def test_default_made_from_the_object_is_named(kind: Any) -> None:
    for read in (json_schema, lambda kind: typed_value("{}", kind)):
        with pytest.raises(TypeError, match=r"default of Titled\.slug is computed from the object"):
            read(kind)


def test_number_out_of_range_is_invalid_output() -> None:
    """It was msgspec's error, out of the search for the path."""
    assert failure('{"name": "x", "people": 1e400}', City).problem
    assert failure("[1, 1e400]", list[str]).problem


def test_errors_survive_pickle() -> None:
    invalid = pickle.loads(pickle.dumps(InvalidOutput("wrong", "/a", "{}")))
    assert (invalid.problem, invalid.path, invalid.text) == ("wrong", "/a", "{}")
    incomplete = pickle.loads(pickle.dumps(IncompleteOutput("length", "{")))
    assert (incomplete.reason, incomplete.text) == ("length", "{")
    arguments = pickle.loads(pickle.dumps(InvalidArguments("wrong", "{")))
    assert (str(arguments), arguments.arguments) == ("wrong", "{")


def test_pointer_and_tokens_are_inverse() -> None:
    for tokens in ((), ("a",), ("a/b", "~1", "", "0")):
        assert tokens_of(pointer_of(tokens)) == tokens
    with pytest.raises(ValueError, match="begins with "):
        tokens_of("a")
