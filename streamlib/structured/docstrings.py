"""Docstrings: what a function does, and what its parameters mean.

Three styles are read, by their headers:

    Args:                     Parameters                  :param city: where.
        city: where.          ----------                  :param int days: how many days;
        days (int): how       city : str                      at most 14.
            many days.            where.

The description is the text before the first section, whatever its name. No optional library does
this: where it is missing, the same function would silently become another tool for the model, and
miss the prompt cache. `tests/streamlib/structured/test_docstrings.py` compares the results with
docstring-parser.
"""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from typing import Final

from msgspec import Struct

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
