"""Streams that outlive a request, a connection and a process: logs of events.

    async with open_log("sqlite:///logs.db") as log:
        await log.create(log_id)                                # in the request
        await log.write(log_id, client.stream(prompt, model))   # in a task that outlives it
        async for entry in log.read(log_id, after=cursor): ...  # anywhere, as often as you like

One process writes. Any number of readers, anywhere, get the same events once each, up to one
terminal event. `Log.stop` works from anywhere. If a writer dies, its readers end the log.
"""

from streamlib.durable.log import Head, Log, open_log
from streamlib.durable.records import Engine, Entry, LogError

__all__ = ["Engine", "Entry", "Head", "Log", "LogError", "open_log"]
