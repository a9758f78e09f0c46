"""Tools: running the calls of a response, and the loop of requests and calls.

outputs = await run_calls(response, [get_weather])

async with agent(client, "Weather in Paris?", [get_weather], model=MODEL) as run:
    async for event in run: ...
"""

from __future__ import annotations

from streamlib.tools.calls import Handlers, Tool, Toolbox, needs_approval, run_calls
from streamlib.tools.loop import AgentRun

__all__ = ["AgentRun", "Handlers", "Tool", "Toolbox", "agent", "needs_approval", "run_calls"]

agent = AgentRun
"""Makes a run, to be used with `async with`; see `AgentRun`."""
