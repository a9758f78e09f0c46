"""`ToolSpec.of`: signatures and docstrings as tools, and JSON as the arguments of functions."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

from streamlib.structured.functions import FunctionSignature, is_async, signature_of
from streamlib_parsers import InvalidArguments, ToolSpec


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


@dataclass
class Place:
    city: str
    tags: list[str] = field(default_factory=list)


class Box(TypedDict):
    width: int


class Point(msgspec.Struct):
    x: Annotated[int, msgspec.Meta(ge=0)]


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(description="a name", min_length=1)


class Pair(NamedTuple):
    left: int
    right: int


class Doc:
    """As in PEP 727."""

    def __init__(self, documentation: str) -> None:
        self.documentation = documentation


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    schema = ToolSpec.of(function).schema
    assert schema is not None
    return schema


def properties_of(function: Callable[..., Any]) -> dict[str, Any]:
    properties: dict[str, Any] = schema_of(function)["properties"]
    return properties


def call(function: Callable[..., Any], arguments: str) -> Any:
    """What a function returns for the JSON of a call."""
    positional, named = FunctionSignature(function).arguments(arguments, "tool")
    return function(*positional, **named)


def forecast(city: str, days: int = 3, unit: Literal["c", "f"] = "c") -> str:
    """The weather of the next days.

    Args:
        city: where
        days: how many days
    """
    return f"{city} {days} {unit}"


def test_function_becomes_a_tool() -> None:
    assert ToolSpec.of(forecast) == ToolSpec(
        "forecast",
        "The weather of the next days.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "where"},
                "days": {"type": "integer", "description": "how many days", "default": 3},
                "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    )


def test_name_description_and_strict_may_be_chosen() -> None:
    spec = ToolSpec.of(forecast, name="weather", description="Says.", strict=True)
    assert (spec.name, spec.description, spec.strict) == ("weather", "Says.", True)


def test_function_without_parameters_and_docstring() -> None:
    async def now() -> None: ...

    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert ToolSpec.of(now) == ToolSpec("now", None, schema)


def test_description_in_the_annotation_wins() -> None:
    def find(
        city: Annotated[str, "annotated"],
        land: Annotated[str, Doc("documented")],
        name: Annotated[str, msgspec.Meta(description="of msgspec")],
        code: Annotated[str, pydantic.Field(description="of pydantic", max_length=3)],
    ) -> None:
        """Finds.

        :param city: of the docstring
        :param name: of the docstring
        """

    found = properties_of(find)
    descriptions = {name: schema["description"] for name, schema in found.items()}
    assert descriptions == {
        "city": "annotated",
        "land": "documented",
        "name": "of msgspec",
        "code": "of pydantic",
    }
    assert found["code"]["maxLength"] == 3


def every_kind(
    place: Place,
    box: Box,
    point: Point,
    model: Model,
    pair: Pair,
    unit: Unit,
    several: list[Place | None],
    anything: Any,
    untyped,  # type: ignore[no-untyped-def]
    *,
    by_name: dict[str, Model],
) -> list[Any]:
    return [place, box, point, model, pair, unit, several, anything, untyped, by_name]


def test_parameters_of_every_kind_in_one_function() -> None:
    """A class has one library, a function may have parameters of several."""
    schema = schema_of(every_kind)
    assert list(schema["properties"]) == list(schema["required"])
    assert set(schema["$defs"]) >= {"Place", "Box", "Point", "Model"}
    assert schema["$defs"]["Point"]["properties"]["x"] == {"type": "integer", "minimum": 0}
    assert schema["properties"]["anything"] == schema["properties"]["untyped"] == {}
    text = """{"place": {"city": "Rome"}, "box": {"width": 1}, "point": {"x": 2},
        "model": {"name": "a"}, "pair": [1, 2], "unit": "f", "several": [null, {"city": "Ur"}],
        "anything": [1.5], "untyped": {"a": null}, "by_name": {"b": {"name": "b"}}}"""
    assert call(every_kind, text) == [
        Place("Rome"),
        {"width": 1},
        Point(2),
        Model(name="a"),
        Pair(1, 2),
        Unit.FAHRENHEIT,
        [None, Place("Ur")],
        [1.5],
        {"a": None},
        {"b": Model(name="b")},
    ]


def test_classes_of_one_name_are_refused() -> None:
    first = msgspec.defstruct("Same", [("a", int)])
    second = pydantic.create_model("Same", b=(int, ...))

    def both(one: Any, two: Any) -> None: ...

    both.__annotations__ = {"one": list[first], "two": list[second]}  # type: ignore[valid-type]
    with pytest.raises(TypeError, match="two different classes named Same"):
        ToolSpec.of(both)


def test_defaults_are_the_functions_own() -> None:
    def take(a: int = None, b: list[int] = [1], c: Any = object(), d: Unit = Unit.CELSIUS) -> Any:  # type: ignore[assignment]  # noqa: B006, B008, RUF013
        return a, b, d

    found = properties_of(take)
    assert found["a"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert found["b"]["default"] == [1]
    assert "default" not in found["c"]
    assert found["d"]["default"] == "c"
    assert call(take, "") == (None, [1], Unit.CELSIUS)
    assert call(take, '{"a": null}') == (None, [1], Unit.CELSIUS)


def test_null_for_an_optional_parameter_is_its_default() -> None:
    """Strict modes that require every parameter make the model write null."""
    assert call(forecast, '{"city": "Rome", "days": null}') == "Rome 3 c"


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (forecast, "{", "arguments of 'tool' are"),
        (forecast, "null", "arguments of 'tool' are NoneType, not an object"),
        (forecast, "{}", "arguments of 'tool': /city: Object missing"),
        (forecast, '{"city": 1}', "arguments of 'tool': /city: Expected `str`"),
        (forecast, '{"city": "a", "unit": "k"}', "arguments of 'tool': /unit: Invalid enum"),
        (
            forecast,
            '{"city": "a", "planet": "b"}',
            "arguments of 'tool': /planet: the function has no",
        ),
        (every_kind, '{"several": [{"city": 1}]}', "arguments of 'tool': /"),
    ],
)
def test_invalid_arguments_name_the_path(
    function: Callable[..., Any], arguments: str, message: str
) -> None:
    with pytest.raises(InvalidArguments) as raised:
        call(function, arguments)
    assert str(raised.value).startswith(message)
    assert raised.value.arguments == arguments


def test_path_leads_into_a_model() -> None:
    def take(models: list[Model]) -> None: ...

    with pytest.raises(InvalidArguments, match="/models/1/name: String should have at least 1"):
        call(take, '{"models": [{"name": "a"}, {"name": ""}]}')


def test_positional_and_further_parameters() -> None:
    def take(a: int, b: int = 2, /, *rest: int, c: int = 3, **others: float) -> Any:
        return a, b, rest, c, others

    schema = schema_of(take)
    assert list(schema["properties"]) == ["a", "b", "c"]
    assert schema["additionalProperties"] == {"type": "number"}
    assert call(take, '{"a": 1, "d": 0.5}') == (1, 2, (), 3, {"d": 0.5})
    with pytest.raises(InvalidArguments, match="/d/0"):
        call(FurtherLists(), '{"d": ["x"]}')


class FurtherLists:
    """A callable object."""

    def __call__(self, **others: list[int]) -> dict[str, list[int]]:
        """Takes lists."""
        return others


class Session:
    def find(self, city: str) -> str:
        """Finds a city."""
        return city

    async def load(self, city: str) -> str:
        return city


def test_methods_objects_and_partials() -> None:
    assert ToolSpec.of(Session().find).description == "Finds a city."
    assert list(properties_of(Session().find)) == ["city"]
    assert ToolSpec.of(FurtherLists()).name == "FurtherLists"
    assert ToolSpec.of(FurtherLists()).description == "Takes lists."
    bound = functools.partial(forecast, "Rome", unit="f")
    assert (ToolSpec.of(bound).name, list(properties_of(bound))) == ("forecast", ["days"])
    assert call(bound, '{"days": 1}') == "Rome 1 f"


def test_what_a_partial_gives_is_not_the_models() -> None:
    """Else the model could choose the database."""
    bound = functools.partial(forecast, days=1)
    with pytest.raises(InvalidArguments, match="/days: the function has no such parameter"):
        call(bound, '{"city": "Rome", "days": 100}')


def test_what_a_partial_gives_is_not_a_further_argument() -> None:
    """A model that named it replaced it, where the function takes further arguments."""

    def query(text: str, **options: str) -> dict[str, str]:
        return options

    inner = functools.partial(query, tenant="ours")
    inner.__name__ = "query"  # type: ignore[attr-defined]  # one with attributes stays inside
    for bound in (inner, functools.partial(inner, limit="3")):
        assert call(bound, '{"text": "a", "order": "date"}')["tenant"] == "ours"
        assert list(properties_of(bound)) == ["text"]
        with pytest.raises(InvalidArguments, match="/tenant: the function has no such parameter"):
            call(bound, '{"text": "a", "tenant": "theirs"}')


def test_decorated_function_keeps_its_signature() -> None:
    @functools.wraps(forecast)
    def wrapped(*arguments: Any, **named: Any) -> str:
        return forecast(*arguments, **named)

    assert ToolSpec.of(wrapped) == ToolSpec.of(forecast)


def test_which_functions_are_async() -> None:
    class Caller:
        async def __call__(self) -> None: ...

    session = Session()
    assert is_async(session.load)
    assert is_async(functools.partial(functools.partial(session.load), city="a"))
    assert is_async(Caller())
    assert not is_async(session.find)
    assert not is_async(forecast)


async def stream_lines(path: str) -> Any:
    yield path


def list_lines(path: str) -> Any:
    yield path


def pydantic_default(city: str = pydantic.Field(description="where")) -> None: ...


def unresolved(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a, "a lambda has no name"),
        (3, "a tool is a function or a ToolSpec, not 3"),
        (stream_lines, "stream_lines is a generator: a tool must return its result instead"),
        (list_lines, "list_lines is a generator: a tool must return its result instead"),
        (pydantic_default, r"city of pydantic_default: put Field\(…\) into Annotated"),
        (unresolved, "unresolved cannot be read: name 'Nowhere' is not defined"),
    ],
)
def test_value_that_is_not_a_tool_is_a_type_error(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ToolSpec.of(function)


def test_parameter_without_a_schema_is_a_type_error() -> None:
    def take(session: Session) -> None: ...

    with pytest.raises(TypeError, match=r"the parameters of .*take"):
        ToolSpec.of(take)


def test_signature_is_read_once_while_the_function_lives() -> None:
    assert signature_of(forecast) is signature_of(forecast)
    assert signature_of(Session().find) is not signature_of(Session().find)
