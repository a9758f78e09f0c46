"""The recording that the casts are drawn from: a scripted response, over HTTP and with its times.

The text was written for the pictures, and the loopback provider sends it as a model would.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamlib import Client, Reasoning
from streamlib.recording import Recorder, save
from streamlib.testing import Behaviour, Turn, running

RECORDING: Final = Path(__file__).with_name("rivers.jsonl")
QUESTION: Final = "Compare three rivers, and add them up in Python"
THOUGHT: Final = "A table for the lengths, then two lines of Python."
TEXT: Final = """\
Three rivers, by length:

| river  |   length | flows into        |
| ------ | -------: | ----------------- |
| Nile   | 6,650 km | the Mediterranean |
| Amazon | 6,400 km | the Atlantic      |
| Rhine  | 1,233 km | the North Sea     |

The **Amazon** carries by far the most *water*. Together:

```python
lengths = [6650, 6400, 1233]
print(f"{sum(lengths):,} km")
```

- It prints `14,283 km`.
- About a third of the way around the Earth.
"""
PACE: Final = 0.045
"""Seconds between two events."""


async def record() -> None:
    """Asks the loopback provider, and keeps what it sent."""
    turn = Turn([Reasoning(THOUGHT), TEXT], pace=PACE)
    async with running(Behaviour(turns=[turn])) as url, Recorder() as recorder:
        async with Client(http=recorder, base_url=url) as client:
            await client.respond(QUESTION, "loopback:scripted")
        [recording] = recorder.recordings
    save(recording, RECORDING)
