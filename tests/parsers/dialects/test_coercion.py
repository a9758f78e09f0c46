"""Parameters as text become what the tool's schema says: a row of the table each."""

from __future__ import annotations

import ast
import json
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.dialects.coercion import (
    Parameter,
    coerced,
    is_text,
    parameter_value,
    property_schema,
    unescaped,
)
from streamlib_parsers.dialects.python_literals import keyword_arguments, literal
from tests.support.cases import each_case

DEFS = {
    "$defs": {
        "Point": {"type": "object"},
        "Loop": {"$ref": "#/$defs/Loop"},
        "a/b": {"type": "integer"},
    }
}


def value(text: str, schema: dict[str, Any], **options: Any) -> Any:
    return json.loads(coerced(text, schema, {**DEFS, **schema}, **options))


INTEGER, NUMBER, BOOLEAN, STRING = (
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "string"},
)
OBJECT, ARRAY = {"type": "object"}, {"type": "array"}
NULLABLE = {"type": ["string", "null"]}


@each_case("text", ["123", "true", "null", "None", "", " a ", "{}", "1.0", '"a"', "NaN"])
@each_case("schema", [{}, STRING, {"description": "?"}, {"type": "string", "enum": ["a"]}])
def test_string_stays_as_written(text: str, schema: dict[str, Any]) -> None:
    assert value(text, schema) == text


@each_case(
    "text, schema, expected",
    [
        ("null", NULLABLE, None),
        ("null", {"type": "string", "nullable": True}, None),
        ("None", NULLABLE, "None"),
        ("NULL", NULLABLE, "NULL"),
        ("null", {"anyOf": [STRING, {"type": "null"}]}, None),
        ("None", INTEGER, None),
        (" null\n", OBJECT, None),
        ("NULL", BOOLEAN, None),
    ],
)
def test_null_is_null_unless_a_string_is_allowed(
    text: str, schema: dict[str, Any], expected: Any
) -> None:
    assert value(text, schema) == expected


@each_case(
    "text, expected",
    [
        ("1", 1),
        ("+1", 1),
        (" -7\n", -7),
        ("108.0", 108),
        ("1_000", 1000),
        ("1e3", 1000),
        ("007", 7),
        ("12345678901234567890", 12345678901234567890),
    ],
)
def test_integer_is_read_from_its_spellings(text: str, expected: int) -> None:
    assert value(text, INTEGER) == expected
    assert isinstance(value(text, INTEGER), int)


@each_case("text", ["1.5", "one", "", "1e999", "NaN", "0x1f", "1 2", "٣", "--1", "9" * 5000])
def test_text_that_is_not_an_integer_stays_text(text: str) -> None:
    assert value(text, INTEGER) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "1"),
        ("1.0", "1.0"),
        ("108.", "108.0"),
        ("+2", "2"),
        ("1e5", "1e5"),
        (" -0.5 ", "-0.5"),
        ("1_0.5", "10.5"),
    ],
)
def test_number_keeps_its_spelling_when_it_is_json(text: str, expected: str) -> None:
    assert coerced(text, NUMBER, {}) == expected


@each_case("text", ["NaN", "Infinity", "-inf", "1e999", "-1e999", "nan", "one", ""])
def test_number_is_never_infinite(text: str) -> None:
    assert value(text, NUMBER) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True),
        ("False", False),
        ("TRUE ", True),
        ("1", True),
        ("0", False),
        ("yes", "yes"),
        ("2", "2"),
    ],
)
def test_boolean_is_read_from_its_spellings(text: str, expected: Any) -> None:
    assert value(text, BOOLEAN) is expected or value(text, BOOLEAN) == expected


@each_case(
    "text, schema, expected",
    [
        ('{"a": 1}', OBJECT, {"a": 1}),
        ("{'a': True, 'b': None}", OBJECT, {"a": True, "b": None}),
        ('"{\\"a\\": 1}"', OBJECT, {"a": 1}),
        ("", OBJECT, {}),
        ("", ARRAY, []),
        (" [1, 'b'] ", ARRAY, [1, "b"]),
        ("(1, 2)", ARRAY, [1, 2]),
        ("[1, 2", ARRAY, "[1, 2"),
        ("a, b", ARRAY, "a, b"),
        ("[NaN]", ARRAY, "[NaN]"),
        ("__import__('os')", OBJECT, "__import__('os')"),
        ("{1: 2}", OBJECT, "{1: 2}"),
    ],
)
def test_objects_and_arrays_are_read_from_json_or_python(
    text: str, schema: dict[str, Any], expected: Any
) -> None:
    assert value(text, schema) == expected


def test_json_object_keeps_its_own_text() -> None:
    assert coerced(' {"b": 1.0,  "a":1e5}\n', OBJECT, {}) == '{"b": 1.0,  "a":1e5}'


@each_case(
    "text, schema, expected",
    [
        ("2", {"enum": [1, 2, "3"]}, 2),
        ("3", {"enum": [1, 2, "3"]}, "3"),
        ("TRUE", {"enum": [True, None]}, True),
        ("null", {"enum": [True, None]}, None),
        ("x", {"enum": [1]}, "x"),
        ("5", {"const": 5}, 5),
        ("2", {"type": "integer", "enum": [1, 2]}, 2),
        ("2", {"anyOf": [{"enum": [1, 2]}, {"type": "null"}]}, 2),
    ],
)
def test_enumeration_without_a_type_is_matched(
    text: str, schema: dict[str, Any], expected: Any
) -> None:
    assert value(text, schema) == expected


@each_case(
    "text, schema, expected",
    [
        ("1", {"type": ["string", "integer"]}, 1),
        ("1.5", {"oneOf": [STRING, INTEGER, NUMBER]}, 1.5),
        ("true", {"anyOf": [STRING, BOOLEAN]}, True),
        ("1", {"anyOf": [STRING, BOOLEAN]}, "1"),
        ("[1]", {"anyOf": [STRING, ARRAY]}, [1]),
        ("", {"anyOf": [STRING, ARRAY]}, ""),
        ("abc", {"anyOf": [INTEGER, STRING]}, "abc"),
        ("abc", {"anyOf": [INTEGER, BOOLEAN]}, "abc"),
        ('{"a":1}', {"allOf": [{"$ref": "#/$defs/Point"}]}, {"a": 1}),
    ],
)
def test_alternatives_are_tried_in_order_with_strings_last(
    text: str, schema: dict[str, Any], expected: Any
) -> None:
    assert value(text, schema) == expected


@pytest.mark.parametrize(
    ("reference", "text", "expected"),
    [
        ("#/$defs/Point", '{"x": 1}', {"x": 1}),
        ("#/$defs/Loop", "1", "1"),
        ("#/$defs/a~1b", "1", 1),
        ("#/nowhere", "1", "1"),
        ("http://x", "1", "1"),
    ],
)
def test_references_inside_the_schema_are_followed(
    reference: str, text: str, expected: Any
) -> None:
    assert value(text, {"$ref": reference}) == expected


def within(depth: int, wrap: Any) -> dict[str, Any]:
    """A schema of an integer, wrapped so often."""
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = wrap(schema)
    return schema


@pytest.mark.parametrize(
    ("largest", "schema"),
    [
        (4, lambda size: within(size, lambda inner: {"anyOf": [inner]})),
        (16, lambda size: {"anyOf": [{"type": "null"}] * (size - 1) + [INTEGER]}),
        (
            15,
            lambda size: {
                "$ref": "#/0",
                **{str(n): {"$ref": f"#/{n + 1}"} for n in range(size - 1)},
                str(size - 1): INTEGER,
            },
        ),
    ],
    ids=["nested", "beside-each-other", "references"],
)
def test_schema_nesting_is_followed_up_to_its_limit(largest: int, schema: Any) -> None:
    assert value("5", schema(largest)) == 5
    assert value("5", schema(largest + 1)) == "5"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"type": [None]},
        {"anyOf": "x"},
        {"anyOf": [None, 3]},
        {"$ref": 5},
        {"enum": "ab"},
        {"properties": 3},
    ],
)
def test_malformed_schema_leaves_text(schema: dict[str, Any]) -> None:
    assert value("1", schema) == "1"
    assert property_schema({"properties": {"a": 3}}, "a", {}) == {}


def test_value_without_schema_is_json_only_on_request() -> None:
    assert value("[1]", {}, json_if_untyped=True) == [1]
    assert value("a b", {}, json_if_untyped=True) == "a b"
    assert value("[1]", STRING, json_if_untyped=True) == "[1]"


@each_case(
    "schema, text, is_string, expected",
    [
        (INTEGER, "1", True, "1"),
        (INTEGER, "a", True, '"a"'),
        (STRING, "1", True, '"1"'),
        ({"type": ["integer", "string"]}, "1", True, '"1"'),
        ({}, "1", True, '"1"'),
        ({}, "[1]", False, "[1]"),
        ({}, "a b", False, '"a b"'),
        (STRING, "[1]", False, '"[1]"'),
        (STRING, "null", False, '"null"'),
        ({"type": ["integer", "string"]}, "1", False, "1"),
        ({"type": ["integer", "null"]}, "null", False, "null"),
        (INTEGER, "108.0", False, "108.0"),
        ({"type": "boolean"}, "True", False, "true"),
    ],
)
def test_type_in_the_call_decides_where_the_schema_does_not(
    schema: dict[str, Any], text: str, *, is_string: bool, expected: str
) -> None:
    parameter = Parameter("k", text, is_string=is_string)
    assert parameter_value({"properties": {"k": schema}}, parameter, "never") == expected


@each_case(
    "schema, expected",
    [
        (STRING, True),
        ({"type": "str"}, True),
        ({"type": "string", "enum": ["a"]}, True),
        ({"anyOf": [STRING, STRING]}, True),
        ({}, True),
        ({"type": ["string", "null"]}, False),
        ({"anyOf": [STRING, INTEGER]}, False),
        ({"anyOf": [STRING, {"const": 1}]}, False),
        (INTEGER, False),
    ],
)
def test_value_is_certainly_text_for_these_schemas(
    schema: dict[str, Any], *, expected: bool
) -> None:
    """A9: no text may change into another type once it was emitted."""
    assert is_text(schema, schema) is expected
    assert is_text({}, {}, json_if_untyped=True) is False


@pytest.mark.parametrize(
    ("entities", "text", "expected"),
    [
        ("never", "a &lt; b", "a &lt; b"),
        ("escaped", "a &lt;b&gt; &amp; &#99;", "a <b> & c"),
        ("escaped", "<p>a &lt; b</p>", "<p>a &lt; b</p>"),
        ("escaped", "a &amp; b", "a &amp; b"),
        ("always", "a &amp;lt; &quot;&apos;", "a &lt; \"'"),
    ],
)
def test_character_references_are_read_only_on_request(
    entities: Any, text: str, expected: str
) -> None:
    assert json.loads(parameter_value({}, Parameter("k", text), entities)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("&#x41;&#X41;&#65;", "AAA"),
        ("&#1;&#xD7FF;&#xE000;&#x10FFFF;", "\x01\ud7ff\ue000\U0010ffff"),
        ("&#x110000;&#xDFFF;&#xD800;", "&#x110000;&#xDFFF;&#xD800;"),
        ("&#0000000065;&#00000000065;", "A&#00000000065;"),
    ],
)
def test_numeric_references_are_read_and_invalid_ones_stay(text: str, expected: str) -> None:
    assert unescaped(text) == expected


@each_case(
    "text",
    [
        "&a;",
        "&",
        "&&lt",
        "&#;",
        "&#x;",
        "&#xD800;",
        "&#0;",
        "&#99999999;",
        "&#-5;",
        "&nbsp;",
        "&LT;",
        "&#٣;",
    ],
)
def test_unknown_references_stay(text: str) -> None:
    assert unescaped(text) == text


@given(st.text())
def test_unescaped_reverses_escaping(text: str) -> None:
    escaped = (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("'", "&apos;")
    )
    assert unescaped(escaped) == text


@given(
    st.text(max_size=30),
    st.sampled_from(
        [
            INTEGER,
            NUMBER,
            BOOLEAN,
            STRING,
            OBJECT,
            ARRAY,
            {},
            NULLABLE,
            {"anyOf": [STRING, ARRAY, NUMBER]},
        ]
    ),
)
def test_coerced_is_json_for_any_text(text: str, schema: dict[str, Any]) -> None:
    json.loads(coerced(text, schema, schema), parse_constant=pytest.fail)


# --- Python literals ---

LITERALS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(LITERALS)
def test_literal_reads_what_python_writes(python: Any) -> None:
    assert literal(repr(python)) == python


@given(st.text(st.sampled_from("[]{}(),:'\"\\ an1.-Tru\n"), max_size=20))
def test_literal_agrees_with_python_on_any_text(text: str) -> None:
    try:
        mine = literal(text)
    except ValueError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            python = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            return  # JSON spellings, a line break in a string, or 007: read all the same
    assert json.dumps(mine) == json.dumps(python)


def test_literal_allows_white_space_between_tokens() -> None:
    assert literal("\n[ 'a' , 1 , ( ) , { 'b' : None } , True ] ") == [
        "a",
        1,
        [],
        {"b": None},
        True,
    ]
    assert keyword_arguments(" a = 'x' , b = 1 , ") == {"a": "x", "b": 1}


def test_literal_nesting_is_limited() -> None:
    assert json.dumps(literal("[" * 101 + "]" * 101)).count("[") == 101
    with pytest.raises(ValueError, match="expected a literal"):
        literal("[" * 102 + "]" * 102)


def test_escapes_are_characters_and_surrogates_are_refused() -> None:
    assert literal(r"'\x00\xff\ud7ff\ue000\U0010ffff\q'") == "\x00\xff\ud7ff\ue000\U0010ffff\\q"
    for text in (
        r"'\ud800'",
        r"'\udfff'",
        r"'\U00110000'",
        r"'\x4'",
        r"'\x4 '",
        r"'\x+1'",
        r"'\u 123'",
    ):
        with pytest.raises(ValueError, match=r"."):
            literal(text)


def test_keyword_arguments_are_a_dict() -> None:
    assert keyword_arguments("a=1, b='x, y', c=[1, {'d': (2,)}],") == {
        "a": 1,
        "b": "x, y",
        "c": [1, {"d": [2]}],
    }
    assert keyword_arguments(" ") == {}
    assert keyword_arguments("t=true, n=null") == {"t": True, "n": None}


@each_case(
    "text",
    [
        "1",
        "a=b",
        "a=f()",
        "a=1 b=2",
        "a=__import__('os')",
        "a=[1",
        "a='x",
        "=1",
        "a=1e999",
        "a=1,,b=2",
        "a=" + "[" * 500,
    ],
)
def test_keyword_arguments_refuse_all_but_literals(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        keyword_arguments(text)
