"""Tools: running the calls of a response, and the loop of requests and calls.

outputs = await run_calls(response, [get_weather])

async with agent(client, "Weather in Paris?", [get_weather], model=MODEL) as run:
    async for event in run: ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from streamlib.client import Client
from streamlib.client.options import wrap_key_of
from streamlib.request.prompt import Prompt
from streamlib.tools.calls import Handlers, Tool, Toolbox, needs_approval, run_calls
from streamlib.tools.loop import AgentRun
from streamlib.tools.piped_run import AgentOptions
from streamlib_parsers.items import ResponseItem

if TYPE_CHECKING:
    from streamlib.client.sync import SyncClient
    from streamlib.tools.sync_run import SyncAgentRun

__all__ = [
    "AgentOptions",
    "AgentRun",
    "Handlers",
    "Tool",
    "Toolbox",
    "agent",
    "needs_approval",
    "run_calls",
]


@overload
def agent(
    client: Client,
    prompt: Prompt | str | Sequence[ResponseItem],
    tools: Sequence[Tool] = (),
    model: str | None = None,
    **options: Unpack[AgentOptions],
) -> AgentRun: ...
@overload
def agent(
    client: SyncClient,
    prompt: Prompt | str | Sequence[ResponseItem],
    tools: Sequence[Tool] = (),
    model: str | None = None,
    **options: Unpack[AgentOptions],
) -> SyncAgentRun: ...
def agent(
    client: Any,
    prompt: Prompt | str | Sequence[ResponseItem],
    tools: Sequence[Tool] = (),
    model: str | None = None,
    **options: Unpack[AgentOptions],
) -> AgentRun | SyncAgentRun:
    """Makes a run, to be used with `async with`; with the client of a `SyncClient`, with `with`.

        async with agent(client, "Weather in Paris?", [get_weather], model=MODEL) as run:
            async for event in run: ...

    Args:
        client: sends the requests: a `Client` or a `SyncClient`.
        prompt: a prompt, a history or a text: see `AgentRun`.
        tools: functions and other tools: see `run_calls`.
        model: see `Client.stream`.
        **options: ``max_turns``, ``limit``, ``timeout``, ``handlers`` and ``approve`` of
            `AgentRun`, and the options of `Client.stream`.

    Raises:
        StreamError: the request cannot be built.
        TypeError: it is no client, or an element of `tools` is no tool.
        ValueError: ``max_turns`` or ``limit`` is less than 1, or two tools have the same name.
    """
    wrap_key_of(options)
    if not isinstance(client, Client):
        # Imported here: with a `Client` nothing of it is needed.
        from streamlib.client.sync import SyncClient
        from streamlib.tools.sync_run import SyncAgentRun

        if isinstance(client, SyncClient):
            return SyncAgentRun(client, prompt, tools, model, **options)
    return AgentRun(client, prompt, tools, model, **options)
