"""`help` of what people look up first opens with what they need, in 80 columns."""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

import msgspec

import streamlib
from streamlib import Client, Prompt, ToolSpec
from tests.support.cases import each_case

SHOWN_SHORT = type(Prompt) is not type(msgspec.Struct)
"""False with msgspec 0.19, whose metaclass allows no other: it shows its own signature."""


def _help(thing: Any) -> list[str]:
    """The lines of `help`, from the name up to the methods of a class."""
    # pydoc's own title comes first.
    text = pydoc.plain(pydoc.render_doc(thing)).partition("\n\n")[2]
    return text.partition("Method resolution order:")[0].splitlines()


@each_case("thing", [Prompt, ToolSpec, Client.stream])
def test_help_fits_80_columns(thing: Any) -> None:
    lines = _help(thing)
    if inspect.isclass(thing) and not SHOWN_SHORT:
        lines = [line for line in lines if f"{thing.__name__}(" not in line]
    assert max(len(line) for line in lines) <= 80, max(lines, key=len)


@each_case("thing", [Prompt, ToolSpec, Client.stream])
def test_help_shows_an_example_in_its_first_lines(thing: Any) -> None:
    start = "\n".join(_help(thing)[:24])
    example = {Prompt: "prompt = Prompt(", ToolSpec: "ToolSpec.of(weather)"}
    assert example.get(thing, "async with client.stream(") in start


def test_help_of_prompt_names_the_most_used_fields_first() -> None:
    start = "\n".join(_help(Prompt)[:30]).partition("Most requests need these:")[2]
    for name in ("input", "instructions", "tools", "reasoning", "output_schema"):
        assert f"`{name}`" in start


def test_short_signature_keeps_types_for_programs() -> None:
    for thing in (Prompt, ToolSpec):
        parameters = inspect.signature(thing).parameters
        assert list(parameters) == list(thing.__struct_fields__)
        assert parameters["tools"].annotation is not inspect.Parameter.empty
    of_method = inspect.signature(streamlib.Client.stream)
    assert of_method.return_annotation == "ResponseStream | StartedStream"
    model = of_method.parameters["model"].annotation
    assert model == "str | list[str] | tuple[str, ...] | None"
