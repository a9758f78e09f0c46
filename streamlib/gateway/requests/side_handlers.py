"""Handles requests that ask for no response: a count of tokens, or a compaction.

A compaction (`POST /v1/responses/compact`) is the conversation as its user messages and one item
that stands for everything else. OpenAI compacts itself. Any other model is asked for a summary,
which goes into an envelope; the next request has it as text, for whichever model it goes to.

They are handled like responses: logged, counted, recorded, limited, and ended when their client
disconnects or the gateway stops. A compaction takes a slot of its target, because a model writes
it; a count does not.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from streamlib.asgi import AsgiExchange
from streamlib.client import Client
from streamlib.client.token_endpoint import counted_tokens
from streamlib.gateway.requests.handler import RequestHandler
from streamlib.gateway.state.envelopes import seal
from streamlib.gateway.targets.pool import Slot
from streamlib.gateway.targets.routes import RouteTarget
from streamlib.gateway.targets.streams import (
    GatewayRequest,
    Services,
    prompt_for,
    restored_prompt,
)
from streamlib.gateway.watch.observer import Watch
from streamlib.gateway.workers import Workers
from streamlib.request.build import Request, build_for
from streamlib.request.endpoints import url_below
from streamlib.request.prompt import Prompt
from streamlib.request.token_count import count_request, endpoint_of, estimated_tokens
from streamlib.wires.encoders import encode_body
from streamlib.wires.responses.build_parts import input_part
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import Compaction, JsonObject, Message, Origin, WireApi, user
from streamlib_parsers.json_text import DECODE_ERRORS
from streamlib_parsers.response import Response
from streamlib_parsers.stream_error import StreamError
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


ESTIMATE: Final = "x-streamlib-estimate"
"""Response header that marks a count as an estimate."""

COUNT_KEYS: Final[dict[WireApi, str]] = {
    "messages": "input_tokens",
    "responses": "input_tokens",
    "gemini": "totalTokens",
}
"""Wire -> key of the count in its response."""


class CountHandler(RequestHandler):
    """Handles a count of tokens."""

    async def _try_targets(self) -> None:
        # Targets may count differently: the preferred one will most likely respond.
        target = self._services.pool.preferred(self.request.targets)
        size = self.request.size
        if counts_itself(target):
            self.targets.note_tried(target)
        try:
            # Envelopes are removed, because no model receives them.
            restored = await self._services.workers.run(size, restored_prompt, self.request)
            prompt = prompt_for(self.request, restored, target)
            count, is_estimate = await count_tokens(
                self._services.client, prompt, target, self._services.workers, size
            )
        except StreamError as error:
            if counts_itself(target):
                self.targets.watch.failed(error.info)
            await self._send_error(error.info)
            return
        wire_api = self.request.wire_api
        body: JsonObject = {COUNT_KEYS[wire_api]: count}
        if wire_api == "responses":
            body = {"object": "response.input_tokens", **body}
        headers = {ESTIMATE: "true"} if is_estimate else {}
        await self._send_whole(msgspec.json.encode(body), headers=headers)


class CompactionHandler(RequestHandler):
    """Handles a compaction: by the target itself, else as a summary that a model writes."""

    def __init__(
        self,
        request: GatewayRequest,
        asgi: AsgiExchange,
        services: Services,
        watch: Watch,
    ) -> None:
        for_summary = msgspec.structs.replace(request, prompt=summary_prompt(request.prompt))
        super().__init__(for_summary, asgi, services, watch)
        self._conversation = request
        """The request as it was received."""

    async def _try(self, slot: Slot) -> ErrorInfo | None:
        try:
            if compacts_itself(slot.target):
                body = await self._forward(slot.target)
                slot.responded()
            else:
                body = await self._summary(slot)
        except StreamError as error:
            return error.info
        await self._send_whole(body)
        return None

    async def _forward(self, target: RouteTarget) -> bytes:
        """The compaction by a target that has the operation.

        Raises:
            StreamError: the target failed.
        """
        self.targets.note_tried(target)
        request = await self._services.workers.run(self.request.size, self._forwarded, target)
        # Noted before the end: if the client disconnects, its input was used all the same.
        self.targets.note_body(Response())
        try:
            body = await self._services.client.fetch(request, target.provider, api_key=target.key)
        except StreamError as error:
            self.targets.watch.failed(error.info)
            self.targets.note_body(Response(error=error.info))
            raise
        self.targets.note_body(Response(usage=compaction_usage(body)))
        return body

    def _forwarded(self, target: RouteTarget) -> Request:
        restored = restored_prompt(self._conversation)
        return forwarded_request(prompt_for(self._conversation, restored, target), target)

    async def _summary(self, slot: Slot) -> bytes:
        """The compaction as a summary by a model.

        Raises:
            StreamError: the target failed, or its response is not a complete text.
        """
        accumulator = Accumulator()
        async with self.targets.opened(slot) as opened:
            if opened.failure is not None:
                raise StreamError(opened.failure)
            async for batch in opened:
                self.targets.watch.received(batch)
                for event in batch:
                    accumulator.feed(event)
        response = accumulator.response
        failure = check_summary(response)
        if failure is not None:
            self.targets.watch.failed(failure)
            raise StreamError(failure)
        return msgspec.json.encode(compaction_body(self._conversation.prompt, response))


# --- counts of tokens ---


def counts_itself(target: RouteTarget) -> bool:
    """Whether a target's provider counts the tokens of its requests."""
    return endpoint_of(target.resolved) is not None


async def count_tokens(
    client: Client, prompt: Prompt, target: RouteTarget, workers: Workers, size: int
) -> tuple[int, bool]:
    """Counts the tokens of a prompt, whose request had a body of `size` bytes.

    Returns:
        The count, and whether it is an estimate: of a provider that cannot count.

    Raises:
        StreamError: the provider refused to count.
    """
    request = await workers.run(size, count_request, prompt, target.resolved)
    fetch = partial(client.fetch, provider=target.provider, api_key=target.key)
    counted = await counted_tokens(fetch, request)
    if counted is not None:
        return counted.tokens, False
    return await workers.run(size, estimated_tokens, prompt), True
