"""`agent` without an event loop: a run in the thread of a `SyncClient`.

with agent(client, "Weather in Paris?", [get_weather], model=MODEL) as run:
    for event in run: ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from streamlib.client.options import wrap_key_of
from streamlib.client.sync import SyncClient
from streamlib.pipeline.sync_stream import SyncPipeline
from streamlib.request.conversation import History
from streamlib.request.prompt import Prompt
from streamlib.request.report import Change
from streamlib.tools.calls import Tool
from streamlib.tools.loop import AgentRun
from streamlib.tools.piped_run import AgentOptions
from streamlib_parsers import PendingCall, Response, ResponseItem, RunEvent
from streamlib_parsers.usage import Usage


class SyncAgentRun(SyncPipeline[RunEvent]):
    """Several responses as one iterator: an `AgentRun`, with `with` and `for`.

    It runs in the client's thread: coroutine functions among the tools run there, others in worker
    threads. Tools may use the client. Leaving the block, also by Ctrl-C, closes the connection and
    cancels running calls.

    Args:
        client: sends the requests.
        prompt: see `AgentRun`.
        tools: see `AgentRun`.
        model: see `AgentRun`.
        **options: those of `AgentRun`.
    """

    def __init__(
        self,
        client: SyncClient,
        prompt: Prompt | str | Sequence[ResponseItem],
        tools: Sequence[Tool] = (),
        model: str | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        wrap_key_of(options)
        client._create_transport()
        self._loop = client._connections.loop
        self._run = AgentRun(client._client, prompt, tools, model, **options)
        super().__init__(client._hosted(self._run))

    @property
    def response(self) -> Response:
        """The current response, as far as it was delivered; after the end the last one."""
        return self._run.response

    @property
    def history(self) -> History:
        """The conversation so far: see `AgentRun.history`."""
        return self._run.history

    @property
    def usage(self) -> Usage | None:
        """The tokens of all responses so far: see `AgentRun.usage`."""
        return self._run.usage

    @property
    def pending(self) -> list[PendingCall]:
        """Calls that no tool or handler is for: see `AgentRun.pending`."""
        return self._run.pending

    @property
    def recovered(self) -> Sequence[Change]:
        """What was taken out of a refused history: see `AgentRun.recovered`."""
        return self._run.recovered

    def stop(self) -> None:
        """Ends the run where it is, without an exception, as `AgentRun.stop`; from any thread."""
        if self._loop.is_usable:
            self._loop.call(self._stop)
        elif self.is_new or self._loop.is_own_thread:
            self._run.stop()

    async def _stop(self) -> None:
        self._run.stop()
