"""The agent loop: one short file, to be copied and changed where it does not fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Unpack

import anyio
from msgspec.structs import replace

from streamlib.client import Client, StreamOptions
from streamlib.client.options import wrap_key_of
from streamlib.request.prompt import Prompt
from streamlib.tools.calls import Approve, Handlers, Tool, Toolbox, question_after
from streamlib.tools.piped_run import PipedRun, check_async, check_run
from streamlib.tools.rounds import Round, unanswered_calls
from streamlib_parsers import ErrorInfo, PendingCall, ResponseItem, RunEvent
from streamlib_parsers.stream_error import StreamError, invalid_request


class AgentRun(PipedRun):
    """Several responses as one async iterator: their events, and between them outputs of calls.

    Entering it sends the first request, and raises what the provider refuses (401, 429). Leaving it
    closes the connection and cancels running calls. The same task does both, with `async with`.

    Args:
        client: sends the requests.
        prompt: a prompt, a history or a text. Its `tools` are offered too; a `tool_choice` that
            forces a call is for the first response alone.
        tools: see `run_calls`.
        model: see `Client.stream`.
        max_turns: most responses. Calls of the last run, then `limit_exceeded` (``max_turns``).
        limit: calls that run at the same time.
        timeout: seconds that a call may take.
        handlers: functions for kinds of calls; see `run_calls`.
        recover: sends a refused history once more without what does not verify (`recovered`).
        approve: decides about calls; see `run_calls`. With it, calls at the end of the prompt that
            wait for an output come first: a page's user has decided since (`UIRequest.approve`).
        name: the agent's name, for telemetry.
        **options: the options of `Client.stream`, for each request.
    """

    def __init__(
        self,
        client: Client,
        prompt: Prompt | str | Sequence[ResponseItem],
        tools: Sequence[Tool] = (),
        model: str | None = None,
        *,
        max_turns: int = 20,
        limit: int = 8,
        timeout: float | None = None,
        handlers: Handlers | None = None,
        approve: Approve | None = None,
        name: str | None = None,
        recover: bool = False,
        **options: Unpack[StreamOptions],
    ) -> None:
        wrap_key_of(options)
        check_run(max_turns=max_turns, name=name, recover=recover, others=options)
        self.pending: list[PendingCall] = []
        """Calls that no tool or handler is for: they ended the run, and wait for your outputs."""
        self._toolbox = Toolbox(
            tools, limit=limit, timeout=timeout, handlers=handlers, approve=approve
        )
        self._recovers = recover
        first = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
        self._prompt = replace(first, tools=(*first.tools, *self._toolbox.specs()))
        self._send = partial(check_async(client).stream, model=model, **options)
        self._stream = self._send(self._prompt)  # the current response; after the end the last
        self._watch = self._watched(client, self._prompt, name)
        self._turns_left = max_turns - 1
        self._round = Round(unanswered_calls(first.items) if approve is not None else ())
        if self._round.calls:
            self._turns_left += 1  # their response was of an earlier run
        self._state = "response"
        self._ready: deque[RunEvent] = deque()  # outputs to deliver, or events of a refusal

    async def __aenter__(self) -> AgentRun:
        # It lives as long as the block: within `__anext__` it would cross scopes of the caller.
        self._group = await anyio.create_task_group().__aenter__()
        self._watch.entered()
        try:
            if self._is_stopped:  # before it was entered
                await self._stream.aclose()
            elif self._round.calls:
                self._start_calls()
                return self
            await self._enter()
        except BaseException as error:
            await self.__aexit__(type(error), error)
            raise
        return self

    async def __anext__(self) -> RunEvent:
        while not self._ready:
            if self._state == "response":
                try:
                    return await anext(self._stream)
                except StopAsyncIteration:
                    self._end_response()
                except StreamError as error:
                    self._end_stopped(error)
            elif self._state == "calls":
                await self._arrived.wait()
                self._arrived = anyio.Event()
            elif self._state == "answered" and not self._is_stopped:
                await self._next_request()
            else:
                raise StopAsyncIteration
        return self._ready.popleft()

    def _end_response(self) -> None:
        self._state = "ended"
        self._round = self._round.after(self.response)
        is_asked = self._round.errors or question_after(self.response, self._prompt)
        if self._is_stopped:
            self._ready.extend(self._stream.rest())
        elif self.response.unfinished or is_asked:
            self._start_calls()

    async def _next_request(self) -> None:
        self._state = "ended"
        self.pending = self._round.pending
        if self.pending:
            return
        self._round.check(self.response)
        if self._turns_left < 1:
            message = "the model called tools in the last turn that `max_turns` allows"
            raise StreamError(ErrorInfo("limit_exceeded", message, code="max_turns"), self.response)
        question = question_after(self.response, self._prompt)
        prompt = replace(self._prompt, input=[*self.history, *question])
        if prompt.tool_choice not in ("auto", "none"):  # forced again, it would call for ever
            prompt = replace(prompt, tool_choice=None)
        stream = self._send(prompt)
        if stream.request.body == self._stream.request.body:
            raise invalid_request("the next request would repeat this one", "repeated_request")
        self._watch.responded(self.response)
        self._spent = self.usage
        self._prompt, self._stream, self._round = prompt, stream, self._round.next()
        self._turns_left -= 1
        self._state = "response"
        await self._enter()
