"""What a program wrote that cannot be meant, refused where it is written: which word to write.

Names that belong elsewhere (`Client(timeout=30)`, `Prompt(system=…)`), and values of the wrong
kind. Only what a program writes is checked; what a server or a client sent is taken as it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, get_args

from msgspec import Struct

from streamlib_parsers.hosted_tools import HostedTool
from streamlib_parsers.items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolSpec,
)
from streamlib_parsers.protocol import WIRE_APIS
from streamlib_parsers.stream_error import invalid_request

MEANT: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("system", "system_prompt", "system_instruction", "system_message", "developer"),
        "Prompt(instructions=…)",
    ),
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "max_new_tokens", "num_predict"),
        "Prompt(max_output_tokens=…)",
    ),
    **dict.fromkeys(("messages", "contents", "history"), "Prompt(input=…)"),
    **dict.fromkeys(("functions", "tool"), "Prompt(tools=…)"),
    **dict.fromkeys(
        ("response_format", "text_format", "response_schema", "response_model", "schema"),
        "Prompt(output_schema=…)",
    ),
    **dict.fromkeys(("stop_sequences", "stop_sequence"), "Prompt(stop=…)"),
    **dict.fromkeys(
        ("thinking", "reasoning_effort", "effort", "thinking_budget", "thinking_config"),
        "Prompt(reasoning=…)",
    ),
    "parallel_tool_calls": "Prompt(parallel_tools=…)",
    "function_call": "Prompt(tool_choice=…)",
    "user": "Prompt(user_id=…)",
    "prompt_cache_key": "Prompt(conversation_id=…)",
    "cache_control": "Prompt(cache=…)",
    "top_logprobs": "Prompt(logprobs=…)",
    **dict.fromkeys(("candidate_count", "num_generations"), "Prompt(n=…)"),
    **dict.fromkeys(("extra_body", "options", "extra_params"), "Prompt(extra=…)"),
    **dict.fromkeys(("extra_headers", "default_headers"), "Prompt(headers=…)"),
    **dict.fromkeys(("timeout", "request_timeout"), "Client(deadlines=Deadlines(…))"),
    **dict.fromkeys(("max_retries", "retries"), "Client(retry=RetryPolicy(…))"),
    **dict.fromkeys(("key", "apikey", "token", "auth_token"), "Client(api_key=…)"),
    **dict.fromkeys(("url", "api_base", "endpoint", "host"), "Client(base_url=…)"),
    **dict.fromkeys(
        ("http_client", "transport", "session", "proxy", "proxies", "verify"), "Client(http=…)"
    ),
    **dict.fromkeys(
        ("max_connections", "concurrency", "pool_size", "max_concurrency"), "Client(connections=…)"
    ),
    **dict.fromkeys(
        ("api_key", "base_url", "provider", "wire_api", "strict", "dialects", "account"),
        "client.stream(…, {name}=…)",
    ),
}
"""Name of an option in other libraries, or of one that belongs elsewhere -> where it is written.

The options of a prompt are not listed: those are found by their own names."""


def refuse_unknown(
    callee: str,
    names: Iterable[str],
    known: Collection[str],
    fields: Collection[str] = (),
    unnamed: int = 0,
) -> None:
    """Refuses names that are no options, and values without a name.

    Args:
        callee: whose options they should be.
        names: what was written.
        known: its options.
        fields: the options of a prompt, where `callee` has others.
        unnamed: how many values have no name. The first one is often a key: none is repeated.

    Raises:
        TypeError: it says where the option is, or the nearest one.
    """
    if unnamed:
        raise TypeError(f"{callee} takes its options by name: write {callee}(api_key=…)")
    for name in names:
        if name in known:
            continue
        meant = MEANT.get(name, "").format(name=name)
        if name in fields:
            meant = f"Prompt({name}=…)"
        if not meant:
            near = get_close_matches(name, [*known, *fields], 1)
            meant = f"{near[0]}=…" if near else f"one of {', '.join(known)}"
        raise TypeError(f"{callee} has no option {name!r}: write {meant}")


def check_word(name: str, value: Any, known: Sequence[str], meant: Mapping[str, str] = {}) -> None:
    """Refuses a word that is none of some; None is always taken.

    Args:
        name: the option.
        value: what was written.
        known: what it can be.
        meant: words of other libraries -> the word to write.

    Raises:
        ValueError: it has the words, and the nearest.
    """
    if value is None or value in known:
        return
    text = str(value)
    near = [meant[text]] if text in meant else get_close_matches(text, known, 1)
    hint = f": write {near[0]!r}" if near else ""
    raise ValueError(f"{name} is one of {', '.join(known)}, not {value!r:.100}{hint}")


def check_callable(name: str, value: Any, description: str) -> None:
    """Refuses what cannot be called; None is always taken.

    Raises:
        TypeError: it has the name, and what to write.
    """
    if value is not None and not callable(value):
        raise TypeError(f"{name} is {description}, not {value!r:.100}")


def check_kind(
    name: str, value: Any, kind: type[Any] | tuple[type[Any], ...], description: str
) -> None:
    """Refuses a value of another class; None is always taken.

    Raises:
        TypeError: it has the name, and what to write.
    """
    if value is None:
        return
    is_number = isinstance(value, bool) and kind is not bool
    if is_number or not isinstance(value, kind):
        raise TypeError(f"{name} is {description}, not {value!r:.100}")


def check_switches(**values: bool | None) -> None:
    """Refuses what is neither True nor False: any text, also "no", would count as True.

    Raises:
        TypeError: it has the name, and what to write.
    """
    for name, value in values.items():
        check_kind(name, value, bool, "True or False")


FIELDS: Final[dict[str, tuple[type[Any] | tuple[type[Any], ...], str]]] = {
    "instructions": (str, "a text"),
    "tool_choice": (str, 'a text: "auto", "required", "none", or the name of a tool'),
    "parallel_tools": (bool, "True or False"),
    "verbosity": (str, 'a text: "low", "medium" or "high"'),
    "metadata": (dict, "a dict of texts"),
    "service_tier": (str, "a text"),
    "conversation_id": (str, "a text"),
    "user_id": (str, "a text"),
    "extra": (dict, "a dict, the fields of the wire"),
    "model": (str, "a text, provider:model"),
    "stream": (bool, "True or False"),
    "background": (bool, "True or False"),
    "name": (str, "a text"),
    "version": (str, "a text"),
    "max_output_tokens": (int, "a whole number"),
    "top_k": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "n": (int, "a whole number"),
    "logprobs": (int, "a whole number"),
    "thinking_mismatch": (str, 'a text: "error" or "drop_block"'),
    "extra_wire": (str, "the name of a wire"),
}
"""Field of a prompt -> what it is made of, and in words."""

LEAST: Final = {
    "max_output_tokens": -2,
    "temperature": 0,
    "top_p": 0,
    "top_k": -1,
    "n": 0,
    "logprobs": -1,
}
"""Field of a prompt -> the least number that any provider takes. Below zero: Ollama's words for no
limit (-1) and a full context (-2), vLLM's for all tokens."""

MOST: Final = {"top_p": 1, "temperature": 10}
"""Field of a prompt -> the greatest number that means something: a share; ten times what services
take at most is a percentage, and 5 the most that people give local models."""

FLOATS: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty")

CHECKED: Final = (*FIELDS, *FLOATS)
"""Every field of a prompt that is in one of these tables."""

CHOICES: Final[dict[str, Sequence[str]]] = {
    "verbosity": ("low", "medium", "high"),
    "thinking_mismatch": ("error", "drop_block"),
    "extra_wire": WIRE_APIS,
}
"""Field of a prompt -> the words that it can be."""

ROLES: Final = frozenset(get_args(Role))

ROLES_ELSEWHERE: Final = {
    **dict.fromkeys(("ai", "model", "bot"), "'assistant'"),
    "human": "'user'",
    **dict.fromkeys(("tool", "function"), "`call.output(…)`"),
}
"""Role of another library -> what to write."""


def check_fields(prompt: Struct) -> None:
    """Checks the values of a prompt that a program made.

    Raises:
        TypeError: a value of the wrong kind.
        ValueError: a value that no provider takes.
    """
    for name in CHECKED:
        value: Any = getattr(prompt, name)
        if value is not None:  # few are given
            _check_field(name, value)
    metadata: Mapping[Any, Any] = getattr(prompt, "metadata", None) or {}
    for key, text in metadata.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"metadata[{key!r}] is a text, not {text!r:.100}: write {str(text)!r}")


def _check_field(name: str, value: Any) -> None:
    if name in FIELDS:
        check_kind(name, value, *FIELDS[name])
    least, most = LEAST.get(name, -math.inf), MOST.get(name, math.inf)
    if name in LEAST and not least <= value <= most:
        limit = f" to {most}" if name in MOST else ""
        raise ValueError(f"{name} is a number from {max(least, 0)}{limit}, not {value!r}")
    if name in FLOATS and not math.isfinite(value):
        raise ValueError(f"{name} is a finite number, from 0, not {value!r}")
    if name in CHOICES:
        check_word(name, value, CHOICES[name])


def tool_of(value: Any, index: int) -> ToolSpec:
    """What stands in `Prompt.tools` as a tool: a function becomes one.

    Raises:
        TypeError: it is neither a tool nor a function; it says what to write.
    """
    if isinstance(value, ToolSpec):
        return value
    if isinstance(value, HostedTool):
        meant = f"`ToolSpec.hosted({value.name!r})`"
    elif isinstance(value, str):
        meant = f"`ToolSpec.hosted({value!r})`, or the function itself"
    elif callable(value):
        return ToolSpec.of(value)
    else:
        meant = "`ToolSpec`, or the function itself"
    raise TypeError(f"tools[{index}] is a {type(value).__name__}; made by {meant}")


def check_tools(tools: Iterable[ToolSpec]) -> None:
    """Refuses two functions of one name: a call could mean either.

    Raises:
        ValueError: it has the name.
    """
    names: set[tuple[str, bool]] = set()
    for tool in tools:
        if tool.native is not None or tool.provider_run is not None:
            continue
        _check_tool(tool)
        # A free-form tool has calls of a kind of their own.
        name = (tool.name, tool.format is None)
        if name in names:
            raise ValueError(
                f"tools has two tools named {tool.name!r}: "
                "give one of them another, `ToolSpec.of(function, name=…)`"
            )
        names.add(name)


def _check_tool(tool: ToolSpec) -> None:
    """Refuses a tool whose fields are of the wrong kind.

    Raises:
        TypeError: it has the field, and what to write.
    """
    name: Any = tool.name
    if not isinstance(name, str) or not name:
        raise TypeError(
            f"ToolSpec.name is a text, not {name!r:.100}: a function becomes a tool with "
            "`ToolSpec.of(function)`"
        )
    description: Any = tool.description
    if isinstance(description, Mapping):
        raise TypeError(
            f"ToolSpec.description is a text, not {description!r:.100}: "
            "write the schema as ToolSpec(name, schema={…})"
        )
    check_kind("ToolSpec.description", description, str, "a text")
    check_kind("ToolSpec.strict", tool.strict, bool, "True or False")
    schema: Any = tool.schema
    # True is a JSON Schema; the wires that do not take it say so.
    if schema is not None and not isinstance(schema, (Mapping, bool)):
        meant = "`json.loads(…)` of it" if isinstance(schema, str) else "`ToolSpec.of(function)`"
        raise TypeError(f"ToolSpec.schema is a dict, not {schema!r:.100}: write {meant}")


TOOL_CHOICES: Final = ("auto", "required", "none")
TOOL_CHOICES_ELSEWHERE: Final = {"any": "required", "force": "required", "off": "none"}
"""Word of another wire -> the word to write."""


def check_tool_choice(choice: str | None, tools: Iterable[ToolSpec]) -> None:
    """Refuses the name of a tool that is not offered.

    Raises:
        StreamError: `invalid_request`; it has the names that are.
    """
    if choice is None or choice in TOOL_CHOICES:
        return
    names: list[str] = [*TOOL_CHOICES]
    for tool in tools:
        if tool.native is not None:
            return  # some are called by the name of their type
        names += [tool.name, *[member.name for member in tool.tools]]
    if choice not in names:
        near = [TOOL_CHOICES_ELSEWHERE.get(choice), *get_close_matches(choice, names, 1)]
        meant = next((f"{name!r}, or " for name in near if name), "")
        raise invalid_request(
            f"tool_choice is {choice!r}, which is no tool of this request: "
            f"write {meant}one of {', '.join(map(repr, names))}",
            "tool_choice",
        )


def check_items(items: Iterable[Any]) -> None:
    """Checks the items of a prompt, and the messages among them that a program made.

    Raises:
        TypeError: not an item, or not a part in a message.
        ValueError: a message with a role that does not exist.
    """
    for index, item in enumerate(items):
        if not isinstance(item, Item):
            raise TypeError(f"input[{index}] is a {type(item).__name__}; {item_meant(item)}")
        # An item that was received may hold what this version does not know.
        if item.origin is not None or item.response_id is not None:
            continue
        if type(item) is Message:
            _check_message(item, index)
        elif type(item) in (FunctionCall, CustomToolCall):
            _check_call(item, index)
        elif type(item) in (FunctionCallOutput, CustomToolCallOutput):
            _check_output(item, index)
        elif type(item) is Reasoning:
            _check_reasoning(item, index)


def _check_message(message: Message, index: int) -> None:
    role: Any = message.role
    if role not in ROLES:
        if role in ROLES_ELSEWHERE:
            meant = ROLES_ELSEWHERE[role]
        else:
            near = get_close_matches(str(role), ROLES, 1) or sorted(ROLES)
            meant = " or ".join(map(repr, near))
        raise ValueError(f"input[{index}] has the role {role!r}: write {meant}")
    for part in message.content:
        _check_part(part, index, "write `user(…)` with texts and parts (Image, Document, Audio)")


def _check_part(part: Any, index: int, meant: str) -> None:
    if not isinstance(part, Part):
        raise TypeError(f"input[{index}] has a {type(part).__name__} in its content: {meant}")
    text: Any = getattr(part, "text", "")
    if isinstance(part, Text) and not isinstance(text, str):
        raise TypeError(f"input[{index}] has Text({text!r:.100}): the text of a Text is a str")


def _check_call(call: Any, index: int) -> None:
    field = "arguments" if isinstance(call, FunctionCall) else "input"
    for name in ("call_id", "name", field):
        value = getattr(call, name)
        if isinstance(value, str):
            continue
        hint = ": write `json.dumps(…)`" if isinstance(value, Mapping) else ""
        raise TypeError(f"input[{index}].{name} is a text, not {value!r:.100}{hint}")


def _check_reasoning(reasoning: Reasoning, index: int) -> None:
    check_kind(f"input[{index}].content", reasoning.content, str, "a text")
    summary: Any = reasoning.summary
    if isinstance(summary, str) or not all(isinstance(text, str) for text in summary):
        raise TypeError(f"input[{index}].summary is a list of texts, not {summary!r:.100}")


def _check_output(output: Any, index: int) -> None:
    meant = "write `call.output(…)`, which takes any value"
    if not isinstance(output.call_id, str):
        raise TypeError(f"input[{index}].call_id is a text, not {output.call_id!r:.100}: {meant}")
    if isinstance(output.output, Mapping):
        raise TypeError(f"input[{index}].output is a text, not {output.output!r:.100}: {meant}")
    if not isinstance(output.output, str):
        for part in output.output:
            _check_part(part, index, meant)


def item_meant(value: Any) -> str:
    """What to write in place of a value that is no item."""
    if isinstance(value, (str, Part)):
        return "write `user(…)`"
    if isinstance(value, Mapping):
        return (
            "made by `streamlib.user(…)` and its like, `parse_request`, or, of the messages of "
            "another library, `streamlib.history.load_transcript`"
        )
    if hasattr(value, "items") and hasattr(value, "usage"):
        return "write `*response.items`"
    return "made by `streamlib.user(…)` and its like, or `parse_request`"
