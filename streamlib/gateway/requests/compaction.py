"""`POST /v1/responses/compact`: a conversation as its user messages and one item that stands for
everything else.

OpenAI compacts itself. Any other model is asked for a summary, which goes into an envelope; the
next request has it as text, for whichever model it goes to.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from streamlib.gateway.state.envelopes import seal
from streamlib.gateway.targets.routes import RouteTarget
from streamlib.request.build import Request, build_for
from streamlib.request.endpoints import url_below
from streamlib.request.prompt import Prompt
from streamlib.wires.encoders import encode_body
from streamlib.wires.responses.build_parts import input_part
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import Compaction, JsonObject, Message, Origin, user
from streamlib_parsers.json_text import DECODE_ERRORS
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.responses.envelope import usage

COMPACTED: Final = (
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "service_tier",
    "image",
)
"""Keys of a Responses request that OpenAI's endpoint takes; others are refused there."""

REQUEST: Final = (
    "Summarise this conversation so that a reader who has seen nothing of it, apart from the "
    "user's messages, can go on with the work. Name the goal, every decision with its reason, what "
    "is done, what is still open, and each fact that is needed again: files, commands, names, "
    "numbers, error messages. Write the summary alone."
)

SUMMARY_ORIGIN: Final = Origin("responses", "streamlib-gateway")
"""No target has it, so each gets the summary as text."""


def compacts_itself(target: RouteTarget) -> bool:
    """Whether a target has an endpoint that compacts."""
    return target.provider.name == "openai" and target.resolved.wire_api == "responses"


def forwarded_request(prompt: Prompt, target: RouteTarget) -> Request:
    """The request for a target's own compaction.

    Raises:
        StreamError: it cannot be built.
    """
    request = build_for(msgspec.structs.replace(prompt, stream=None), target.resolved)
    body = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    taken = msgspec.json.encode({key: body[key] for key in COMPACTED if key in body})
    return msgspec.structs.replace(request, url=url_below(request.url, "/compact"), body=taken)


def compaction_usage(body: bytes) -> Usage | None:
    """What a target's own compaction has used; None where its body does not say."""
    try:
        value = msgspec.json.decode(body)
    except DECODE_ERRORS:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("usage"), dict):
        return None
    return usage(value["usage"])


def summary_prompt(prompt: Prompt) -> Prompt:
    """The prompt that asks a model for the summary.

    The tools stay: providers refuse calls of tools that a request does not have.
    """
    tool_choice = "none" if prompt.tools else None
    return msgspec.structs.replace(
        prompt,
        input=(*prompt.items, user(REQUEST)),
        tool_choice=tool_choice,
        output_schema=None,
        stream=None,
    )


def check_summary(response: Response) -> ErrorInfo | None:
    """Why a response cannot serve as a summary; None if it can."""
    if response.status == "completed" and response.text:
        return None
    if response.error is not None:
        return response.error
    # A summary that was truncated at its token limit would take the rest of the history with it.
    if response.text:
        message = f"the model's summary is not complete: {response.stop_reason}"
        return ErrorInfo("generation_failed", message, retryable=True, code=response.stop_reason)
    return ErrorInfo("generation_failed", "the model wrote no summary", retryable=True)


def compaction_body(conversation: Prompt, response: Response) -> JsonObject:
    """The response body: the user's messages, then the summary in an envelope.

    Args:
        conversation: what was compacted.
        response: the summary.
    """
    output: list[JsonObject] = []
    for item in conversation.items:
        if isinstance(item, Message) and item.role == "user":
            output.append(_user_message(item))
    summary = Compaction(response.text, origin=SUMMARY_ORIGIN)
    output.append(
        {
            "id": f"cmp_{secrets.token_hex(16)}",
            "type": "compaction",
            "encrypted_content": seal(summary, 0),
        }
    )
    encoded: Mapping[str, Any] = msgspec.json.decode(encode_body("responses", response))
    return {
        "id": f"resp_{secrets.token_hex(16)}",
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": output,
        "usage": encoded.get("usage"),
    }


def _user_message(message: Message) -> JsonObject:
    return {
        "id": f"msg_{secrets.token_hex(16)}",
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": [input_part(part) for part in message.content],
    }
