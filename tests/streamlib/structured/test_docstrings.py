"""Docstrings of three styles, and the same read by docstring-parser."""

from __future__ import annotations

import random

import docstring_parser
import pytest

from streamlib.structured.functions import Docstring, read_docstring
from tests.support.cases import each_case

GOOGLE = """Finds a place.

    A second paragraph: with a colon.

    Args:
        city: where it is
            in the country.
        days (int, optional): how many days.
            At most 14:

            - a list
        *names (Callable[[int], str]): further names
        options:
            on a line of its own.

    Returns:
        text: not a parameter.

    Raises:
        KeyError: nor this.
    """

NUMPY = """Finds a place.

    A second paragraph: with a colon.

    Parameters
    ----------
    city : str
        where it is
        in the country.
    days : int, optional
        how many days.
    x, y : float
        both.
    nothing

    Returns
    -------
    str
        text.
    """

SPHINX = """Finds a place.

    A second paragraph: with a colon.

    :param city: where it is
        in the country.
    :param int days: how many days.
    :type city: str
    :param dict[str, int] options: others.
    :raises KeyError: never.
    :returns: text.
    """

DESCRIPTION = "Finds a place.\n\nA second paragraph: with a colon."


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        (
            GOOGLE,
            {
                "city": "where it is\nin the country.",
                "days": "how many days.\nAt most 14:\n\n- a list",
                "names": "further names",
                "options": "on a line of its own.",
            },
        ),
        (
            NUMPY,
            {
                "city": "where it is\nin the country.",
                "days": "how many days.",
                "x": "both.",
                "y": "both.",
            },
        ),
        (
            SPHINX,
            {
                "city": "where it is\nin the country.",
                "days": "how many days.",
                "options": "others.",
            },
        ),
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_parameters_of_each_style(text: str, parameters: dict[str, str]) -> None:
    assert read_docstring(text) == Docstring(DESCRIPTION, parameters)


@each_case(
    "text, description",
    [
        ("", ""),
        ("One line.", "One line."),
        ("Returns: nothing.", "Returns: nothing."),
        ("Says:\nso\n\n    note: code", "Says:\nso\n\n    note: code"),
        ("Args:\n    a: b", ""),
        ("Text.\n\nArgs:\n\nMore text.", "Text."),
        ("Parameters\nof a curve.", "Parameters\nof a curve."),
        ("Matches :ref:`x` or :class: names.", "Matches :ref:`x` or :class: names."),
    ],
)
def test_description_ends_at_the_first_section(text: str, description: str) -> None:
    assert read_docstring(text).description == description


def test_paragraph_after_a_section_is_not_a_parameter() -> None:
    docstring = read_docstring("Does.\n\nArgs:\n    a: b\n\nNote that\nx: is prose.")
    assert docstring.parameters == {"a": "b"}


WORDS = ("where", "it is", "3.5 km", "e.g. Rome", "(optional)", "a list", "of `names`", "x/y")


def drawn(random_: random.Random) -> dict[str, list[str]]:
    """Parameters with the lines of their descriptions."""
    parameters: dict[str, list[str]] = {}
    for name in random_.sample(
        ["city", "days", "_x", "value2", "kind", "b"], random_.randint(1, 5)
    ):
        lines = random_.randint(1, 3)
        parameters[name] = [" ".join(random_.choices(WORDS, k=3)) for _ in range(lines)]
    return parameters


def google(parameters: dict[str, list[str]]) -> str:
    lines = ["Does it.", "", "Args:"]
    for name, (first, *rest) in parameters.items():
        lines.append(f"    {name}: {first}")
        lines += [f"        {line}" for line in rest]
    return "\n".join([*lines, "", "Returns:", "    int: what."])


def numpy(parameters: dict[str, list[str]]) -> str:
    lines = ["Does it.", "", "Parameters", "----------"]
    for name, texts in parameters.items():
        lines.append(f"{name} : int")
        lines += [f"    {line}" for line in texts]
    return "\n".join([*lines, "", "Returns", "-------", "int", "    what."])


def sphinx(parameters: dict[str, list[str]]) -> str:
    lines = ["Does it.", ""]
    for name, (first, *rest) in parameters.items():
        lines.append(f":param int {name}: {first}")
        lines += [f"    {line}" for line in rest]
    return "\n".join([*lines, ":returns: what."])


def test_docstring_parser_reads_the_same() -> None:
    random_ = random.Random(16)
    for _ in range(100):
        parameters = drawn(random_)
        for write in (google, numpy, sphinx):
            text = write(parameters)
            ours = read_docstring(text)
            theirs = docstring_parser.parse(text)
            read = {one.arg_name: one.description for one in theirs.params}
            assert ours.parameters == read, text
            assert ours.description == (theirs.description or "").strip(), text
