"""Conversations in logs: any number of servers show the same ones, and any may die.

    python examples/web/app.py --log redis://127.0.0.1:6379 --port 8000
    python examples/web/app.py --log redis://127.0.0.1:6379 --port 8001

Each response of the model has a log of its own, `web-{conversation}-{turn}-{step}`: what led to it
is the log's `meta`, the question or the outputs of the tools. So the logs are the conversation, and
no server has anything of its own. An answer goes on when every tab has left.
"""

import logging
import time
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup
from common import (
    BUSY,
    NOT_LAST,
    EntryEncoder,
    Place,
    Question,
    Stop,
    get_weather,
    question_event,
    refusal,
)
from starlette.responses import JSONResponse, Response

from streamlib import (
    Accumulator,
    CallOutput,
    Client,
    ErrorInfo,
    Failed,
    Prompt,
    ResponseItem,
    StreamError,
    ToolSpec,
    encoder,
    run_calls,
    user,
)
from streamlib import Response as ModelResponse
from streamlib.durable import Head, Log, LogError
from streamlib.web import StreamResponse

log_of_errors = logging.getLogger("examples.web")
POLL = 0.2
"""Seconds between two looks for a log that does not exist yet."""

LOST = ErrorInfo("truncated", "the server that ran the tools is gone", retryable=True)


class LoggedTab:
    """A tab that reads a conversation: what `StreamResponse` sends."""

    def __init__(self, chat: "LoggedChat", name: str, after: int) -> None:
        self.chat, self.name, self.after = chat, name, after

    async def __aenter__(self) -> "LoggedTab":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is held: another server may go on."""

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        return self.batches()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Yield a greeting, then the entries that the tab does not have."""
        is_gone = self.after > 0 and await self.chat.head(self.name, 0, 0) is None
        if is_gone:
            self.after = 0
        hello = {"type": "hello", "reset": is_gone}
        yield [msgspec.json.encode({"n": 0, "at": time.time(), "event": hello})]
        # The numbers are the same on every server: they are counted from the first log.
        number = 0
        try:
            async for events, at in self.chat.events(self.name):
                entries: list[bytes] = []
                for event in events:
                    number += 1
                    if number > self.after:
                        entry = {"n": number, "at": at, "event": msgspec.Raw(event.strip())}
                        entries.append(msgspec.json.encode(entry))
                if entries:
                    yield entries
        except LogError as error:
            log_of_errors.warning("a tab was sent away: %s", error)  # it comes back


class LoggedChat:
    """The conversations of all servers on one log; `tasks` outlives every request."""

    def __init__(
        self, client: Client, model: str, tasks: TaskGroup, log: Log, lease: float
    ) -> None:
        self.client, self.model, self.tasks, self.log = client, model, tasks, log
        self.patience = 2 * lease
        """Seconds for which the next step of a turn may be missing."""

    def find(self, name: str) -> str:
        """Return a conversation: here its name is all that there is."""
        return name[:64]

    # --- what a page asks for ---

    async def ask(self, name: str, question: Question) -> Response:
        """Start a turn, unless one runs, here or elsewhere."""
        turn = 0
        histories: list[list[ResponseItem]] = []
        while (head := await self.head(name, turn, 0)) is not None:
            earlier = msgspec.convert(head.meta["question"], Question)
            if not await self.is_over(name, turn, earlier):
                return refusal(409, BUSY)
            if earlier.replaces is not None and histories:
                histories.pop()
            histories.append(await self.history(name, turn, earlier))
            turn += 1
        if question.replaces not in (None, turn - 1):
            return refusal(409, NOT_LAST)
        if question.replaces is not None:
            histories.pop()
        meta = {"question": msgspec.to_builtins(question)}
        try:
            # Before the page hears of it; if two ask at the same time, one of them is refused.
            await self.log.create(log_id(name, turn, 0), meta)
        except LogError as error:
            return refusal(409 if error.kind == "held" else 503, BUSY)
        asked = [item for history in histories for item in history]
        asked.append(user(question.text))
        self.tasks.start_soon(self.run_turn, name, turn, question, asked)
        return JSONResponse({"turn": turn})

    async def follow(self, name: str, place: Place) -> Response:
        """Send a tab the entries that it does not have, and each that comes."""
        return StreamResponse(LoggedTab(self, name, place.after), EntryEncoder())  # type: ignore[arg-type]

    async def stop(self, name: str, _: Stop) -> Response:
        """Close the connection to the model, on whichever server it is."""
        newest: str | None = None
        for turn in count():
            if await self.head(name, turn, 0) is None:
                break
            for step in count():
                if await self.head(name, turn, step) is None:
                    break
                newest = log_id(name, turn, step)
        if newest is not None:
            await self.log.stop(newest)
        return JSONResponse({})

    # --- writing ---

    async def run_turn(
        self, name: str, turn: int, question: Question, asked: list[ResponseItem]
    ) -> None:
        """Send requests until the model calls no more tools, or somebody stops it."""
        try:
            tools = [ToolSpec.of(get_weather)] if question.tools else []
            for step in count():
                reasoning = "low" if question.think else None
                prompt = Prompt(asked, tools=tools, reasoning=reasoning)
                self.tasks.start_soon(self.write, log_id(name, turn, step), prompt)
                response = await self.response(name, turn, step)
                if not goes_on(response, question):
                    return
                outputs = await run_calls(response, [get_weather])
                asked = [*asked, *response.items, *outputs]
                meta = {"outputs": msgspec.to_builtins(outputs)}
                await self.log.create(log_id(name, turn, step + 1), meta)
        except LogError as error:
            log_of_errors.warning("the turn ended: %s", error)

    async def write(self, name: str, prompt: Prompt) -> None:
        """Write one response to its log."""
        try:
            stream: Any = self.client.stream(prompt, self.model, errors="event")
        except StreamError as error:
            stream = failing(error.info)  # the request could not be built
        try:
            await self.log.write(name, stream)
        except LogError as error:
            log_of_errors.warning("the log %s: %s", name, error)

    # --- reading ---

    async def head(self, name: str, turn: int, step: int) -> Head | None:
        """Return the head of a log; None if there is none."""
        try:
            return await self.log.head(log_id(name, turn, step))
        except LogError as error:
            if error.kind != "gone":
                raise
            return None

    async def response(self, name: str, turn: int, step: int) -> ModelResponse:
        """Return a response, once it has ended."""
        accumulator = Accumulator()
        async for entry in self.log.read(log_id(name, turn, step)):
            accumulator.feed(entry.event)
        return accumulator.response

    async def is_over(self, name: str, turn: int, question: Question) -> bool:
        """Return whether no response of a turn is written, and none follows."""
        for step in count():
            head = await self.wait_for(name, turn, step)
            if head is None:
                break
            if head.state != "closed":
                return False
            if not goes_on(await self.response(name, turn, step), question):
                break
        return True

    async def history(self, name: str, turn: int, question: Question) -> list[ResponseItem]:
        """Return what a turn adds to the history; a turn that failed adds nothing."""
        items: list[ResponseItem] = [user(question.text)]
        for step in count():
            head = await self.head(name, turn, step)
            if head is None:
                break
            items += outputs_of(head)
            response = await self.response(name, turn, step)
            if response.error is not None and not is_stopped(response.error):
                return []
            items += response.items
        return items

    async def events(self, name: str) -> AsyncIterator[tuple[list[bytes], float | None]]:
        """Yield what tabs are shown, from the first turn on, and when it came; never ends.

        The time is None of what was written before: only those who were there know it.
        """
        for turn in count():
            is_new = False
            while (head := await self.head(name, turn, 0)) is None:
                is_new = True
                await anyio.sleep(POLL)
            question = msgspec.convert(head.meta["question"], Question)
            yield [question_event(question, turn)], time.time() if is_new else None
            async for events in self.turn_events(name, turn, question):
                yield events, time.time() if is_new else None

    async def turn_events(
        self, name: str, turn: int, question: Question
    ) -> AsyncIterator[list[bytes]]:
        """Yield what tabs are shown of a turn after its question."""
        encode = encoder("jsonl", public=True, run=True)
        error: ErrorInfo | None = None
        for step in count():
            head = await self.wait_for(name, turn, step)
            if head is None:
                error = LOST
                yield [encode.feed(Failed(error))]
                break
            if step:
                yield [encode.feed(output) for output in outputs_of(head)]
            accumulator = Accumulator()
            async for entries in self.log.read(log_id(name, turn, step)).batches():
                events = [entry.event for entry in entries]
                for event in events:
                    accumulator.feed(event)
                last = events[-1]
                if isinstance(last, Failed) and is_stopped(last.error):
                    events.pop()  # `turn_ended` says it
                yield [encode.feed(event) for event in events]
            error = accumulator.response.error
            if not goes_on(accumulator.response, question):
                break
        reason = "done"
        if error is not None:
            reason = "stopped" if is_stopped(error) else "failed"
        yield [msgspec.json.encode({"type": "turn_ended", "reason": reason})]

    async def wait_for(self, name: str, turn: int, step: int) -> Head | None:
        """Wait for a log and return its head; None if its server seems to be gone."""
        with anyio.move_on_after(self.patience):
            while True:
                head = await self.head(name, turn, step)
                if head is not None:
                    return head
                await anyio.sleep(POLL)
        return None


def log_id(name: str, turn: int, step: int) -> str:
    """Return the id of the log of one response."""
    return f"web-{name}-{turn}-{step}"


def goes_on(response: ModelResponse, question: Question) -> bool:
    """Whether another response of the same turn follows."""
    return response.error is None and question.tools and bool(response.pending)


def is_stopped(error: ErrorInfo) -> bool:
    """Whether somebody pressed Stop."""
    return error.kind == "cancelled" and error.code == "user"


def outputs_of(head: Head) -> list[Any]:
    """Return the outputs of tools that led to a response."""
    return msgspec.convert(head.meta.get("outputs", []), list[CallOutput])


async def failing(error: ErrorInfo) -> AsyncIterator[Failed]:
    """Yield the failure of a request that was not sent."""
    yield Failed(error)
