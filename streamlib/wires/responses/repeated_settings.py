"""The settings of a request that its response repeats.

Open Responses (specification of 2026-04-24) requires 32 members of a response. This module
makes those that repeat the request; the others describe the response itself.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib_parsers.items import JsonObject

DEFAULTS: Final[JsonObject] = {
    "previous_response_id": None,
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "reasoning": None,
    "user": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": None,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
}
"""The members of a request that a response repeats, and their values where it leaves them out."""

RepeatedSettings: Final = msgspec.defstruct(
    "RepeatedSettings", [(name, Any, None) for name in DEFAULTS]
)
"""These members; others (the input above all) are not decoded."""


def request_settings(body: bytes, *, is_stored: bool) -> JsonObject:
    """The settings of a request as its response repeats them.

    Args:
        body: the body of the request.
        is_stored: whether the server keeps the response, unless the request forbids it.

    Raises:
        msgspec.DecodeError: the body is not a JSON object.
    """
    requested = msgspec.structs.asdict(msgspec.json.decode(body, type=RepeatedSettings))
    settings: JsonObject = {}
    for name, value in requested.items():
        settings[name] = value
        if value is None:
            settings[name] = DEFAULTS.get(name)
    settings["tools"] = [_tool(tool) for tool in settings["tools"]]
    settings["text"] = _text(settings["text"])
    settings["reasoning"] = _reasoning(settings["reasoning"])
    settings["store"] = is_stored and requested["store"] is not False
    if settings["service_tier"] == "auto":
        # `auto` is a choice, not a tier that a response can have used.
        settings["service_tier"] = DEFAULTS["service_tier"]
    return settings


def _tool(tool: Any) -> Any:
    """A function with all its members; any other tool as it is."""
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None, **tool}


def _text(text: Any) -> Any:
    """The options of texts with a format, and a schema's format with all its members."""
    if not isinstance(text, dict):
        return text
    text_format = text.get("format") or DEFAULTS["text"]["format"]
    if text_format.get("type") == "json_schema":
        text_format = {"description": None, **text_format}
        text_format["strict"] = bool(text_format.get("strict"))
    return {**text, "format": text_format}


def _reasoning(reasoning: Any) -> Any:
    if not isinstance(reasoning, dict):
        return None
    return {"effort": None, "summary": None, **reasoning}


def with_settings(settings: JsonObject, envelope: JsonObject) -> JsonObject:
    """The envelope of a response, with the settings in place of what it leaves out."""
    members = {"completed_at": None, **settings}
    for name, value in envelope.items():
        if value is not None or DEFAULTS.get(name) is None:
            members[name] = value
    return members
