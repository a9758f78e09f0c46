"""docs/prompt-fields.md and the docstring of `Prompt`: each wire API does what they say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from streamlib import WIRE_APIS, Prompt, Request, ToolSpec, WireApi, build
from tests.docs.test_readme import PAGES
from tests.support.cases import each_case
from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "prompt-fields.md").read_text(encoding="utf-8")
BEDROCK_MODEL = "custom:anthropic.claude-opus-4-1"
"""On Bedrock the options depend on the family of the model; elsewhere nothing is known of it."""

VALUES: dict[str, Any] = {
    "instructions": "Answer in one word.",
    "tools": [ToolSpec("f", schema={"type": "object"})],
    "tool_choice": "f",
    "parallel_tools": False,
    "reasoning": "low",
    "verbosity": "low",
    "output_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    "structured": "tool",
    "max_output_tokens": 5,
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 5,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "stop": ["x"],
    "seed": 1,
    "n": 2,
    "logprobs": 1,
    "cache": "auto",
    "metadata": {"a": "b"},
    "service_tier": "default",
    "conversation_id": "c",
    "user_id": "u",
    "thinking_mismatch": "drop_block",
    "background": True,
}
NEEDED: dict[str, dict[str, Any]] = {
    "tool_choice": {"tools": VALUES["tools"]},
    "parallel_tools": {"tools": VALUES["tools"]},
    "structured": {"output_schema": VALUES["output_schema"]},
    "thinking_mismatch": {"reasoning": "low"},
}
"""Options that say nothing without another one."""

OTHERS = {"input", "extra", "extra_wire", "headers", "model", "stream", "name", "version"}
"""Fields that are no options of a wire."""


def request(wire_api: WireApi, options: dict[str, Any]) -> Request:
    """A request of a wire whose model nothing is known of."""
    model = BEDROCK_MODEL if wire_api in {"converse", "invoke"} else "custom:m"
    return build(Prompt("x", **options), model, wire_api=wire_api, base_url="http://x")


def lacks(wire_api: WireApi, option: str) -> bool:
    """Whether a request of the wire leaves the option out, and says so."""
    built = request(wire_api, {**NEEDED.get(option, {}), option: VALUES[option]})
    return any(
        change.action == "dropped" and change.path.startswith(f"/{option}")
        for change in built.report
    )


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a JSON value with their paths: `messages[].content`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, repr(value)


def written(wire_api: WireApi, option: str) -> set[str]:
    """The paths of what an option adds to a request, in its body and its headers."""
    without = request(wire_api, NEEDED.get(option, {}))
    built = request(wire_api, {**NEEDED.get(option, {}), option: VALUES[option]})
    body = set(leaves(msgspec.json.decode(without.body)))
    added = {path for path, value in set(leaves(msgspec.json.decode(built.body))) - body}
    return added | (set(built.headers) - set(without.headers))


def row(first: str, heading: str) -> list[str]:
    """The cells of the row of an option, in the table below a heading."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    [line] = [line for line in section.splitlines() if line.startswith(f"| `{first}` |")]
    return [cell.strip() for cell in line.split("|")[1:-1]]


@each_case("option", VALUES)
def test_page_lists_the_wires_that_lack_an_option(option: str) -> None:
    missing = [f"`{wire_api}`" for wire_api in WIRE_APIS if lacks(wire_api, option)]
    assert row(option, "Every field")[2] == (", ".join(missing) or "—")


@each_case("option", VALUES)
def test_page_shows_how_each_wire_writes_an_option(option: str) -> None:
    cells = row(option, "How each wire API writes it")[1:]
    for wire_api, cell in zip(WIRE_APIS, cells, strict=True):
        paths = written(wire_api, option)
        if cell == "—":
            assert not paths, (wire_api, paths)
            continue
        shown = cell.strip("`")
        assert any(path.startswith(shown) for path in paths), (wire_api, shown, paths)


@each_case("option", VALUES)
def test_docstring_names_the_wires_of_an_option(option: str) -> None:
    """D6: what a wire does with an option was in no docstring."""
    stated = re.search(r"Wires: ([^.;]+)", documented_fields()[option])
    assert stated is not None, option
    names = {name.strip() for name in stated[1].replace("all but", "").split(",")}
    if stated[1].startswith("all"):
        names = set(WIRE_APIS) - names
    assert names == {wire_api for wire_api in WIRE_APIS if not lacks(wire_api, option)}


def documented_fields() -> dict[str, str]:
    """The entries of the docstring's `Args`."""
    docstring = inspect.getdoc(Prompt) or ""
    section = docstring.partition("Args:\n")[2].partition("\nRaises:")[0]
    entries: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \w)", section):
        name, _, text = entry.strip().partition(": ")
        entries[name] = " ".join(text.split())
    return entries


def test_every_field_is_in_the_docstring_and_on_the_page() -> None:
    """D6: system prompt, media, limits, stop and cache were undocumented in any guide."""
    fields = set(Prompt.__struct_fields__)
    assert fields == set(VALUES) | OTHERS
    assert set(documented_fields()) == fields
    page = PAGE.partition("## Every field")[2]
    assert [field for field in fields if f"`{field}`" not in page] == []


def test_every_option_has_an_example_that_runs() -> None:
    pages = "\n".join([page.read_text(encoding="utf-8") for page in PAGES])
    examples = "\n".join(re.findall(r"```python\n(.*?)```", pages, re.DOTALL))
    options = [*VALUES, "extra", "headers"]
    assert [name for name in options if f"{name}=" not in examples] == []
