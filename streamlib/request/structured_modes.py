"""Structured output by other means than the wire's own: a tool's arguments, or JSON mode.

    structured="tool"        a tool `structured_output` whose arguments are the output; it has to be
                             called, or any tool where the prompt has tools of its own
    structured="json_mode"   JSON of any form, with the schema after the instructions

The caller chooses one; nothing here happens by itself. A builder reports what its wire lacks of
these, such as a tool choice or a JSON mode.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT
from streamlib.structured.schemas import WRAPPER_KEY, object_schema
from streamlib_parsers.items import JsonObject, ToolSpec
from streamlib_parsers.outputs import OUTPUT_TOOL
from streamlib_parsers.stream_error import invalid_request

DESCRIPTION: Final = "Takes the final answer. Call it once, when the answer is complete."
"""Description of the tool, where the schema has none."""

INSTRUCTIONS: Final = (
    "Answer with one JSON object and nothing else: no other text before or behind it. "
    "It follows this JSON Schema:\n"
)


def with_structured_mode(prompt: Prompt, report: Report) -> Prompt:
    """The prompt with the tool or the instructions in place of its schema.

    Raises:
        StreamError: `invalid_request`, where the tool could not be called.
    """
    schema = prompt.schema
    if prompt.structured is None:
        return prompt
    if schema is None or prompt.structured == "native":
        return replace(prompt, structured=None)
    fitted = object_schema(schema)
    if fitted is not schema:
        reason = f"only an object can be asked for here: the value stands at {WRAPPER_KEY!r} in one"
        report.add("changed", "/output_schema", reason)
    if prompt.structured == "tool":
        return _with_tool(prompt, fitted)
    text = INSTRUCTIONS + msgspec.json.encode(fitted).decode("utf-8")
    if prompt.instructions:
        text = f"{prompt.instructions}\n\n{text}"
    return replace(prompt, output_schema=ANY_OBJECT, instructions=text, structured=None)


def _with_tool(prompt: Prompt, schema: JsonObject) -> Prompt:
    if any(tool.name == OUTPUT_TOOL for tool in prompt.tools):
        raise invalid_request(f"structured='tool' has a tool {OUTPUT_TOOL} of its own", "tools")
    choice = prompt.tool_choice
    if choice == "none":
        raise invalid_request(
            "structured='tool' needs a call of a tool, which tool_choice='none' forbids"
        )
    if choice is None and prompt.tools:
        choice = "required"
    elif choice is None:
        choice = OUTPUT_TOOL
    description = schema.get("description")
    if not isinstance(description, str):
        description = DESCRIPTION
    tool = ToolSpec(OUTPUT_TOOL, description, schema)
    return replace(
        prompt,
        tools=(*prompt.tools, tool),
        tool_choice=choice,
        output_schema=None,
        structured=None,
    )
