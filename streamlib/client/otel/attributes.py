"""OpenTelemetry's GenAI conventions: their names, and attributes as pure functions.

The conventions are in status Development, so their names change. All of them are in the tables of
this file, in those of `metrics.py` and in `Usage.as_otel`, as of `REVISION`.
"""

from __future__ import annotations

import importlib
from typing import Any, Final
from urllib.parse import urlsplit

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.build import Request
from streamlib.request.json_objects import without_none
from streamlib.request.prompt import Prompt
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import Compaction, WireApi
from streamlib_parsers.stream_error import StreamError

REVISION: Final = "024a4f944a1291fcb627c9c47da69e79868dd15e"
"""The commit of open-telemetry/semantic-conventions-genai (2026-11) that the names are from."""

PROVIDER_NAMES: Final = {
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "xai": "x_ai",
    "moonshot": "moonshot_ai",
    "mistral": "mistral_ai",
}
"""Provider name here -> name in the conventions, where the two differ."""

OLDER_PROVIDER_NAMES: Final = {"azure.ai.openai": "az.ai.openai", "x_ai": "xai"}
"""Provider name in the conventions -> the one that ``gen_ai.system`` had, where the two differ."""

REQUEST_ATTRIBUTES: Final = {
    "max_output_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
}
"""Field of `Prompt` -> attribute."""

OLDER_NAMES: Final = {
    "gen_ai.provider.name": "gen_ai.system",
    "gen_ai.usage.cache_write.input_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
"""Attribute -> the name that it had before."""


def operation_name(wire_api: WireApi | None) -> str:
    """What the conventions call a request of a wire."""
    return "generate_content" if wire_api in ("gemini", "interactions") else "chat"


def provider_name(provider: str | None) -> str:
    """What the conventions call a provider."""
    return PROVIDER_NAMES.get(provider or "custom", provider or "custom")


def request_attributes(prompt: Prompt | None, request: Request) -> dict[str, Any]:
    """Attributes that are known when the request is sent.

    A setting has the value that is sent: a builder changes some, and adds what the wire requires.
    One that is left out has the value that was asked for, and `streamlib.request.changes` names it.

    Args:
        prompt: what the request was built from; None where the caller gave a `Request`.
        request: what is sent.
    """
    sent = decoded(request, "parse_settings", prompt)
    wanted = prompt or sent
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": operation_name(request.wire_api),
        "gen_ai.provider.name": provider_name(request.origin.provider),
        "gen_ai.request.model": request.model,
        # A body that streams by its URL alone (Gemini, Bedrock) decodes to the same True.
        "gen_ai.request.stream": True if sent.stream is not False else None,
        "gen_ai.request.stop_sequences": list(sent.stop or wanted.stop) or None,
        "gen_ai.request.previous_response.id": _previous_response(sent, request),
        "gen_ai.prompt.name": wanted.name,
        "gen_ai.prompt.version": None if wanted.name is None else wanted.version,
        "streamlib.request.changes": _changed_settings(request) or None,
        **_conversation(wanted, sent),
        **prompt_settings(wanted),
        **without_none(prompt_settings(sent)),
        **_server(request.url),
    }
    return without_none(attributes)


def prompt_settings(prompt: Prompt) -> dict[str, Any]:
    """The attributes of a prompt's settings; None stands for unknown ones."""
    attributes: dict[str, Any] = {}
    for field, attribute in REQUEST_ATTRIBUTES.items():
        attributes[attribute] = getattr(prompt, field)
    if prompt.thinking is not None:
        attributes["gen_ai.request.reasoning.level"] = prompt.thinking.effort
    if prompt.n != 1:
        attributes["gen_ai.request.choice.count"] = prompt.n
    if prompt.output_schema is not None:
        attributes["gen_ai.output.type"] = "json"
    return attributes


def span_attributes(response: Response) -> dict[str, Any]:
    """Attributes of a response, complete or not.

    One without a terminal event has the finish reason `error`.
    """
    finish_reasons = [
        choice.native_stop_reason or choice.stop_reason or "other" for choice in response.choices
    ]
    attributes: dict[str, Any] = {
        "gen_ai.response.id": response.response_id,
        "gen_ai.response.model": response.model,
        "gen_ai.response.finish_reasons": finish_reasons or None,
    }
    if response.error:
        attributes["gen_ai.response.finish_reasons"] = ["error"]
        attributes["error.type"] = response.error.kind
    if response.timing:
        first_chunk = response.timing.first_token
        if first_chunk is None and response.error is None:  # a response without a token
            first_chunk = response.timing.first_byte
        attributes["gen_ai.response.time_to_first_chunk"] = first_chunk
    if response.usage:
        attributes.update(response.usage.as_otel())
    return without_none(attributes)


def with_older_names(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, and beside those that were renamed their older names."""
    older = {name: attributes[new] for new, name in OLDER_NAMES.items() if new in attributes}
    if "gen_ai.system" in older:
        older["gen_ai.system"] = OLDER_PROVIDER_NAMES.get(
            older["gen_ai.system"], older["gen_ai.system"]
        )
    return {**attributes, **older}


def decoded(request: Request, reader: str, otherwise: Prompt | None = None) -> Prompt:
    """What a request says, as it was sent.

    Args:
        request: the request.
        reader: the function of `wires.decoders` that reads it.
        otherwise: the result where it cannot be read.
    """
    # By name at run time: clients and wires do not import each other.
    decoders: Any = importlib.import_module("streamlib.wires.decoders")
    path = urlsplit(request.url).path
    try:
        sent: Prompt = getattr(decoders, reader)(
            request.wire_api, request.body, headers=request.headers, path=path
        )
    except StreamError:  # `Prompt.extra`, and a request of the caller's own, may hold anything
        return otherwise or Prompt()
    return sent


def _changed_settings(request: Request) -> list[str]:
    """What the report says of settings: ``dropped /seed``."""
    changes: list[str] = []
    for change in request.report:
        if not change.path.startswith(("/input", "/tools")):
            changes.append(f"{change.action} {change.path}")
    return changes


def _previous_response(sent: Prompt, request: Request) -> Any:
    """The id of the response that the request continues."""
    for field in WIRE_SPECS[request.wire_api].stored_history:
        if field.startswith("previous_"):
            return (sent.extra or {}).get(field)
    return None


def _conversation(prompt: Prompt, sent: Prompt) -> dict[str, Any]:
    """Attributes of the conversation: the caller's id, or that of one which the provider keeps."""
    conversation_id: Any = prompt.conversation_id
    if conversation_id is None:
        conversation_id = (sent.extra or {}).get("conversation")
    if isinstance(conversation_id, dict):
        conversation_id = conversation_id.get("id")
    attributes: dict[str, Any] = {"gen_ai.conversation.id": conversation_id}
    if any(isinstance(item, Compaction) for item in prompt.items):
        attributes["gen_ai.conversation.compacted"] = True
    return attributes


def _server(url: str) -> dict[str, Any]:
    """Address and port of the server."""
    parts = urlsplit(url)
    if parts.hostname is None:
        return {}
    default = 80 if parts.scheme == "http" else 443
    return {"server.address": parts.hostname, "server.port": parts.port or default}
