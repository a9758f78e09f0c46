"""Handles requests that ask for no response: a count of tokens, or a compaction.

They are handled like responses: logged, counted, recorded, limited, and ended when their client
disconnects or the gateway stops. A compaction takes a slot of its target, because a model writes
it; a count does not.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.asgi import AsgiExchange
from streamlib.client import Client
from streamlib.errors import StreamError
from streamlib.gateway.client_state import ClientState
from streamlib.gateway.compaction import (
    check_summary,
    compaction_body,
    compaction_usage,
    compacts_itself,
    forwarded_request,
    summary_prompt,
)
from streamlib.gateway.handler import RequestHandler
from streamlib.gateway.observer import Watch
from streamlib.gateway.request_body import Workers
from streamlib.gateway.routes import RouteTarget
from streamlib.gateway.target_pool import Lease, TargetPool
from streamlib.gateway.target_streams import (
    GatewayRequest,
    failure_before_output,
    prompt_for,
    restored_prompt,
    until_first_output,
)
from streamlib.gateway.token_count import count_tokens, counts_itself
from streamlib.request.build import Request
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.response import Response

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

    async def _try_hops(self) -> None:
        # Targets may count differently: the preferred one will most likely respond.
        hop = self._pool.preferred(self.request.hops)
        size = self.request.size
        if counts_itself(hop):
            self.targets.note_tried(hop)
        try:
            # Envelopes are removed, because no model receives them.
            restored = await self._workers.run(size, restored_prompt, self.request)
            prompt = prompt_for(self.request, restored, hop)
            count, is_estimate = await count_tokens(self._client, prompt, hop, self._workers, size)
        except StreamError as error:
            if counts_itself(hop):
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
        client: Client,
        asgi: AsgiExchange,
        keep_alive: float,
        workers: Workers,
        pool: TargetPool,
        watch: Watch,
        state: ClientState | None = None,
    ) -> None:
        for_summary = msgspec.structs.replace(request, prompt=summary_prompt(request.prompt))
        super().__init__(for_summary, client, asgi, keep_alive, workers, pool, watch, state)
        self._conversation = request
        """The request as it was received."""

    async def _try(self, lease: Lease) -> ErrorInfo | None:
        try:
            if compacts_itself(lease.hop):
                body = await self._forward(lease.hop)
                lease.responded()
            else:
                body = await self._summary(lease)
        except StreamError as error:
            self.targets.watch.failed(error.info)
            return error.info
        await self._send_whole(body)
        return None

    async def _forward(self, hop: RouteTarget) -> bytes:
        """The compaction by a target that has the operation.

        Raises:
            StreamError: the target failed.
        """
        self.targets.note_tried(hop)
        request = await self._workers.run(self.request.size, self._forwarded, hop)
        # Noted before the end: if the client disconnects, its input was used all the same.
        self.targets.note_body(Response())
        try:
            body = await self._client.fetch(request, hop.provider, api_key=hop.key)
        except StreamError as error:
            self.targets.note_body(Response(error=error.info))
            raise
        self.targets.note_body(Response(usage=compaction_usage(body)))
        return body

    def _forwarded(self, hop: RouteTarget) -> Request:
        restored = restored_prompt(self._conversation)
        return forwarded_request(prompt_for(self._conversation, restored, hop), hop)

    async def _summary(self, lease: Lease) -> bytes:
        """The compaction as a summary by a model.

        Raises:
            StreamError: the target failed, or its response is not a complete text.
        """
        stream = await self.targets.open(lease.hop)
        accumulator = Accumulator()
        async with stream:
            batches = aiter(stream.batches())
            first = await until_first_output(batches)
            if failure_before_output(first) is None:
                lease.responded()
            self.targets.watch.received(first)
            for event in first:
                accumulator.feed(event)
            async for batch in batches:
                self.targets.watch.received(batch)
                for event in batch:
                    accumulator.feed(event)
        response = accumulator.response
        failure = check_summary(response)
        if failure is not None:
            raise StreamError(failure)
        return msgspec.json.encode(compaction_body(self._conversation.prompt, response))
