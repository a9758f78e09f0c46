"""Handles requests that ask for no response: a count of tokens, or a compaction.

They are handled like responses: logged, counted, recorded, limited, and ended when their client
disconnects or the gateway stops. A compaction takes a slot of its target, because a model writes
it; a count does not.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.asgi import AsgiExchange
from streamlib.gateway.requests.compaction import (
    check_summary,
    compaction_body,
    compaction_usage,
    compacts_itself,
    forwarded_request,
    summary_prompt,
)
from streamlib.gateway.requests.handler import RequestHandler
from streamlib.gateway.targets.pool import Slot
from streamlib.gateway.targets.routes import RouteTarget
from streamlib.gateway.targets.streams import (
    GatewayRequest,
    Services,
    prompt_for,
    restored_prompt,
)
from streamlib.gateway.targets.token_count import count_tokens, counts_itself
from streamlib.gateway.watch.observer import Watch
from streamlib.request.build import Request
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.response import Response
from streamlib_parsers.stream_error import StreamError

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
