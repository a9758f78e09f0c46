"""Python functions as tools: the JSON Schema of their parameters, and JSON as their arguments.

The parameters of a function are read as the fields of a TypedDict, so that `classes` describes and
validates them like any class: pydantic's, msgspec's, dataclasses, TypedDicts, alone or mixed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import itertools
import re
import textwrap
import typing
import weakref
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Final, NotRequired

import msgspec
from msgspec import Struct

from streamlib.structured.libraries import uses_pydantic
from streamlib.structured.pointers import pointer_of
from streamlib.structured.schemas import json_schema
from streamlib.structured.values import typed_value
from streamlib_parsers.errors import InvalidArguments, InvalidOutput
from streamlib_parsers.item_base import JsonObject, parse_arguments

FunctionLike: typing.TypeAlias = Callable[..., Any]

APPROVAL_MARK: Final = "needs_approval"
"""Attribute of a function whose calls somebody approves first."""


def function_name(function: FunctionLike) -> str:
    """The name of a function, of what a ``functools.partial`` wraps, or of an object's class.

    Raises:
        TypeError: it cannot be called, or is a lambda, whose name says nothing.
    """
    if isinstance(function, functools.partial):
        return function_name(function.func)
    if not callable(function):
        raise TypeError(f"a tool is a function or a ToolSpec, not {function!r:.100}")
    name: str = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>":
        raise TypeError("a lambda has no name for the model: make a function, or name it")
    return name


def is_async(function: FunctionLike) -> bool:
    """Whether calling a function makes a coroutine."""
    return inspect.iscoroutinefunction(_defined(function))


def asks_approval(function: Any) -> bool:
    """Whether somebody approves the calls of a tool: it is marked, or what it is made of is.

    A ``functools.partial`` has none of the attributes of its function, nor an object those of its
    ``__call__``.
    """
    while isinstance(function, functools.partial):
        if getattr(function, APPROVAL_MARK, False):
            return True
        function = function.func
    marked = (function, _defined(function))
    return any(getattr(each, APPROVAL_MARK, False) for each in marked)


def _defined(function: FunctionLike) -> FunctionLike:
    """The function under partials and objects, which has the annotations and the docstring."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__  # of an object


class FunctionSignature:
    """The parameters of a function, as a model gives them.

    A ``*`` parameter gets nothing; a ``**`` parameter what no other one takes.

    Attributes:
        description: what the docstring says before its first section; None: nothing.
    """

    def __init__(self, function: FunctionLike) -> None:
        """Reads a function, sync or async: a method, an object with ``__call__``, a partial too.

        Raises:
            TypeError: it has no signature, an annotation that cannot be resolved, or no result.
        """
        defined = _defined(function)
        self._name: str = getattr(defined, "__qualname__", "a function")
        """For messages."""
        if inspect.isgeneratorfunction(defined) or inspect.isasyncgenfunction(defined):
            raise TypeError(f"{self._name} is a generator: a tool must return its result instead")
        docstring = read_docstring(inspect.getdoc(defined) or "")
        self.description = docstring.description or None
        self._descriptions = docstring.parameters
        """Texts of the docstring by parameter; an annotation's own text wins."""
        self._parameters: dict[str, Parameter] = {}
        """What the model gives, in the order of the signature; annotations resolved."""
        self._others: Parameter | None = None
        """The ``**`` parameter."""
        try:
            parameters = inspect.signature(function).parameters.values()
            kinds = typing.get_type_hints(defined, include_extras=True)
        except (NameError, TypeError, ValueError) as error:
            raise TypeError(f"the parameters of {self._name} cannot be read: {error}") from error
        self._preset = _preset_names(function)
        """Arguments that a ``functools.partial`` gives by keyword: not the model's to choose."""
        for parameter in parameters:
            if type(parameter.default).__module__ == "pydantic.fields":
                # Called without the argument, the function would get the description as its value.
                message = "put Field(…) into Annotated[…, Field(…)], and the default value after it"
                raise TypeError(f"parameter {parameter.name} of {self._name}: {message}")
            resolved = parameter.replace(annotation=kinds.get(parameter.name, Any))
            if parameter.kind is Parameter.VAR_KEYWORD:
                self._others = resolved
            elif parameter.name in self._preset:
                continue
            elif parameter.kind is not Parameter.VAR_POSITIONAL:
                self._parameters[parameter.name] = resolved
        self._kinds = _typed_dicts(self._name, self._parameters)
        """All parameters as a class, or as two, since a class has one library."""

    def schema(self) -> JsonObject:
        """The JSON Schema of the arguments.

        Raises:
            TypeError: no JSON Schema describes a parameter.
        """
        properties: JsonObject = {}
        definitions: JsonObject = {}
        for kind in self._kinds:
            schema = self._schema_of(kind)
            properties.update(schema.get("properties", {}))
            for name, definition in schema.get("$defs", {}).items():
                if definitions.setdefault(name, definition) != definition:
                    message = f"{self._name} has parameters of two different classes named {name}"
                    raise TypeError(f"{message}: rename one")
        described: JsonObject = {"type": "object", "properties": {}}
        for name, parameter in self._parameters.items():
            described["properties"][name] = self._described(parameter, properties[name])
        required = [
            name
            for name, parameter in self._parameters.items()
            if parameter.default is Parameter.empty
        ]
        if required:
            described["required"] = required
        if definitions:
            described["$defs"] = definitions
        described["additionalProperties"] = False
        if self._others is not None:
            described["additionalProperties"] = self._schema_of(self._others.annotation) or True
        return described

    def _schema_of(self, kind: Any) -> JsonObject:
        try:
            return json_schema(kind)
        except TypeError as error:
            message = f"no JSON Schema for the parameters of {self._name}"
            raise TypeError(f"{message}: {error}") from error

    def _described(self, parameter: Parameter, schema: JsonObject) -> JsonObject:
        """The schema of one parameter with its description and its default."""
        schema = dict(schema)
        if schema.get("title") == parameter.name.replace("_", " ").title():
            del schema["title"]  # pydantic's own: the name once more
        text = _annotated_text(parameter.annotation) or self._descriptions.get(parameter.name)
        if text:
            schema.setdefault("description", text)
        if parameter.default is not Parameter.empty and parameter.default is not None:
            with contextlib.suppress(TypeError):  # no value of JSON: the function's own matter
                schema.setdefault("default", msgspec.to_builtins(parameter.default))
        return schema

    def arguments(self, text: str, name: str) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call as values of the parameters' types: by position, and by name.

        Args:
            text: the call's JSON.
            name: the tool's name, for messages.

        Raises:
            InvalidArguments: the text is not a JSON object, or does not fit: the message says
                where.
        """
        received = parse_arguments(text, name)
        values: dict[str, Any] = {}
        try:
            for kind in self._kinds:
                values.update(typed_value(text or "{}", kind))
            for key, value in received.items():
                if key not in self._parameters:
                    values[key] = self._other_value(key, value)
        except InvalidOutput as error:
            message = f"arguments of {name!r}: {error}"
            raise InvalidArguments(message, text) from error
        positional: list[Any] = []
        for parameter in self._parameters.values():
            if parameter.kind is Parameter.POSITIONAL_ONLY:
                positional.append(values.pop(parameter.name, parameter.default))
        return positional, values

    def _other_value(self, key: str, value: Any) -> Any:
        """The value of an argument that the ``**`` parameter gets."""
        path = pointer_of([key])
        if self._others is None or key in self._preset:
            raise InvalidOutput("the function has no such parameter", path)
        try:
            return typed_value(msgspec.json.encode(value).decode(), self._others.annotation)
        except InvalidOutput as error:
            raise InvalidOutput(error.problem, path + error.path) from error


def signature_of(function: FunctionLike) -> FunctionSignature:
    """The signature of a function, read once as long as the function lives."""
    try:
        known = _signatures.get(function)
        if known is None:
            known = _signatures[function] = FunctionSignature(function)
    except TypeError:  # an object without a hash, or that cannot be referred to weakly
        return FunctionSignature(function)
    return known


_signatures: Final[weakref.WeakKeyDictionary[FunctionLike, FunctionSignature]] = (
    weakref.WeakKeyDictionary()
)


def _preset_names(function: FunctionLike) -> frozenset[str]:
    """Names that partials give by keyword; one with attributes may be around another one."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names.update(function.keywords)
        function = function.func
    return frozenset(names)


def _typed_dicts(name: str, parameters: dict[str, Parameter]) -> list[Any]:
    """TypedDicts of the parameters that pydantic reads, and of the others; most functions have one.

    A parameter with a default may be absent.
    """
    by_library: dict[bool, dict[str, Any]] = {}
    for parameter in parameters.values():
        kind = parameter.annotation
        if parameter.default is None and kind is not Any:
            kind = kind | None  # `days: int = None`
        if parameter.default is not Parameter.empty:
            kind = NotRequired[kind]
        by_library.setdefault(uses_pydantic(kind), {})[parameter.name] = kind
    try:
        # pydantic reads that of `typing` from Python 3.12 on alone, and brings this module.
        made: Any = importlib.import_module("typing_extensions").TypedDict
    except ImportError:
        made = typing.TypedDict
    return [made(name, fields) for fields in by_library.values()]


def _annotated_text(annotation: Any) -> str | None:
    """The text in ``Annotated[str, "the city"]``, or in its ``Doc("the city")`` (PEP 727)."""
    for metadata in getattr(annotation, "__metadata__", ()):
        text = getattr(metadata, "documentation", metadata)
        if isinstance(text, str):
            return text
    return None


# --- docstrings ---
#
# Three styles are read, by their headers:
#
#     Args:                     Parameters                  :param city: where.
#         city: where.          ----------                  :param int days: how many days;
#         days (int): how       city : str                      at most 14.
#             many days.            where.
#
# The description is the text before the first section, whatever its name. No optional library does
# this: where it is missing, the same function would silently become another tool for the model, and
# miss the prompt cache. `test_docstrings.py` compares the results with docstring-parser.


PARAMETER_SECTIONS: Final = (
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
)
"""Headers of sections about parameters, in lower case."""

OTHER_SECTIONS: Final = (
    "attributes",
    "example",
    "examples",
    "note",
    "notes",
    "raises",
    "references",
    "return",
    "returns",
    "see also",
    "todo",
    "warning",
    "warnings",
    "warns",
    "yield",
    "yields",
)

_UNDERLINE: Final = re.compile(r"-{3,}\s*")
_GOOGLE_ENTRY: Final = re.compile(
    r"\*{0,2}(?P<name>\w+)\s*"
    r"(?:\((?:[^()]|\([^()]*\))*\))?"  # its type, which may have brackets of its own
    r"\s*:(?P<text>\s.*|)$"
)
_NUMPY_ENTRY: Final = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_FIELD: Final = re.compile(r":\w[^:]*:(\s|$)")
_PARAMETER_FIELD: Final = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?"
    r"\*{0,2}(?P<name>\w+)\s*:(?P<text>.*)$"
)


class Docstring(Struct, frozen=True):
    """What a docstring says.

    Attributes:
        description: the text before the first section; "" if there is none.
        parameters: description of each parameter that has one.
    """

    description: str
    parameters: dict[str, str]


def read_docstring(text: str) -> Docstring:
    """What a docstring says of a function and its parameters."""
    lines = inspect.cleandoc(text).splitlines()
    starts = [index for index in range(len(lines)) if _section_name(lines, index) is not None]
    boundaries = [*starts, len(lines)]
    parameters: dict[str, str] = {}
    for start, end in itertools.pairwise(boundaries):
        name = _section_name(lines, start)
        if name == "":
            parameters.update(_field(lines[start:end]))
        elif name not in PARAMETER_SECTIONS:
            continue
        elif lines[start].endswith(":"):
            parameters.update(_google(lines[start + 1 : end]))
        else:
            parameters.update(_numpy(lines[start + 2 : end]))
    return Docstring("\n".join(lines[: boundaries[0]]).strip(), parameters)


def _section_name(lines: list[str], index: int) -> str | None:
    """The name of the section that a line begins, in lower case; "" for a field of Sphinx."""
    line = lines[index].rstrip()
    if _FIELD.match(line):
        return ""
    name = line.removesuffix(":").lower()
    if name not in PARAMETER_SECTIONS + OTHER_SECTIONS:
        return None
    if line.endswith(":"):
        return name
    is_underlined = index + 1 < len(lines) and _UNDERLINE.fullmatch(lines[index + 1])
    return name if is_underlined else None


def _google(lines: list[str]) -> dict[str, str]:
    """Parameters of a section whose entries are indented."""
    indented: list[str] = []
    for line in lines:
        if line and not line.startswith(" "):
            break  # a paragraph after the section
        indented.append(line)
    entries: dict[str, list[str]] = {}
    current: list[str] = []
    for line in textwrap.dedent("\n".join(indented)).splitlines():
        entry = _GOOGLE_ENTRY.match(line)  # none of an indented line
        if entry is None:
            current.append(line)
        else:
            current = entries.setdefault(entry["name"], [])
            current.append(entry["text"])
    return _joined(entries)


def _numpy(lines: list[str]) -> dict[str, str]:
    """Parameters of a section whose entries are not indented, and their descriptions are."""
    entries: dict[str, list[str]] = {}
    current: list[list[str]] = []
    for line in lines:
        entry = _NUMPY_ENTRY.match(line)
        if entry is None:
            for description in current:
                description.append(line)
            continue
        current = []
        for name in entry["names"].split(","):
            current.append(entries.setdefault(name.strip().lstrip("*"), [""]))
    return _joined(entries)


def _field(lines: list[str]) -> dict[str, str]:
    """The parameter of a field of Sphinx; none of another field."""
    parameter = _PARAMETER_FIELD.match(lines[0])
    if parameter is None:
        return {}
    return _joined({parameter["name"]: [parameter["text"], *lines[1:]]})


def _joined(entries: dict[str, list[str]]) -> dict[str, str]:
    """The texts; their lines as they are, without the indentation of the docstring."""
    texts: dict[str, str] = {}
    for name, lines in entries.items():
        following = textwrap.dedent("\n".join(lines[1:]))
        text = f"{lines[0].strip()}\n{following}".strip()
        if text:
            texts[name] = text
    return texts
