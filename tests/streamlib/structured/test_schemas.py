"""JSON Schemas of classes, made by the class's own library."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from streamlib.structured.libraries import uses_pydantic
from streamlib.structured.schemas import json_schema
from tests.support.cases import each_case


class City(msgspec.Struct):
    name: str
    people: int = 0


class Model(pydantic.BaseModel):
    name: str
    people: int = 0


@dataclass
class Country:
    """A country."""

    capital: City
    cities: list[City] = field(default_factory=list)


class Entry(TypedDict):
    city: City


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


class ModelTree(pydantic.BaseModel):
    name: str
    children: list[ModelTree] = []


@dataclass
class Mixed:
    model: Model


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Square(msgspec.Struct, tag="square"):
    side: float


class Circle(msgspec.Struct, tag="circle"):
    radius: float


NAME_AND_PEOPLE = {"name": "string", "people": "integer"}


def types(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: child.get("type") for name, child in schema["properties"].items()}


@pytest.mark.parametrize("kind", [City, Model])
def test_schema_is_that_of_the_class_without_a_root_ref(kind: Any) -> None:
    schema = json_schema(kind)
    assert schema["type"] == "object"
    assert "$ref" not in schema
    assert "$defs" not in schema
    assert types(schema) == NAME_AND_PEOPLE
    assert schema["required"] == ["name"]


@pytest.mark.parametrize("kind", [Country, Entry, list[City], dict[str, City], City | None])
def test_definition_used_elsewhere_is_kept(kind: Any) -> None:
    schema = json_schema(kind)
    assert types(schema["$defs"]["City"]) == NAME_AND_PEOPLE
    assert "$ref" not in schema


@pytest.mark.parametrize("kind", [Tree, ModelTree])
def test_class_that_refers_to_itself_is_root_and_definition(kind: Any) -> None:
    schema = json_schema(kind)
    reference = {"$ref": f"#/$defs/{kind.__name__}"}
    assert schema["properties"]["children"]["items"] == reference
    assert schema["$defs"][kind.__name__]["properties"] == schema["properties"]


def test_description_beside_the_root_ref_is_kept() -> None:
    schema = json_schema(Annotated[City, msgspec.Meta(description="a large one")])
    assert schema["description"] == "a large one"
    assert types(schema) == NAME_AND_PEOPLE


def test_enum_states_its_type() -> None:
    """A strict mode refuses a node without a type; msgspec writes enums without one."""
    assert json_schema(Color)["type"] == "string"
    assert json_schema(Literal["a", "b"])["type"] == "string"
    if msgspec.__version__ != "0.19.0":  # which cannot sort these: a TypeError
        assert json_schema(Literal[1, None])["type"] == ["integer", "null"]


def test_tagged_union_is_any_of_without_discriminator() -> None:
    schema = json_schema(Square | Circle)
    assert set(schema) == {"anyOf", "$defs"}
    assert schema["$defs"]["Circle"]["properties"]["type"] == {
        "enum": ["circle"],
        "type": "string",
    }


def test_a_field_called_like_a_keyword_stays() -> None:
    class Odd(msgspec.Struct):
        discriminator: str
        enum: list[str]

    assert types(json_schema(Odd)) == {"discriminator": "string", "enum": "array"}


@pytest.mark.parametrize(
    "kind",
    [
        Model,
        list[Model],
        dict[str, Model | None],
        Mixed,
        ModelTree,
        Annotated[int, pydantic.Field(gt=0)],
    ],
)
def test_class_with_pydantic_inside_is_pydantics(kind: Any) -> None:
    assert uses_pydantic(kind)
    assert isinstance(json_schema(kind), dict)


@each_case("kind", [City, Country, Entry, Tree, Color, list[City], City | None, int])
def test_class_without_pydantic_inside_is_msgspecs(kind: Any) -> None:
    assert not uses_pydantic(kind)


def test_constraints_reach_the_schema() -> None:
    assert json_schema(Annotated[int, pydantic.Field(gt=0)])["exclusiveMinimum"] == 0
    assert json_schema(Annotated[int, msgspec.Meta(gt=0)])["exclusiveMinimum"] == 0


class Plain:
    pass


class PlainInModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    plain: Plain


@pytest.mark.parametrize("kind", [Plain, PlainInModel, Model | City, "City", City("x")])
def test_what_has_no_schema_is_a_type_error(kind: Any) -> None:
    with pytest.raises(TypeError):
        json_schema(kind)
