"""One stream redacted, spoken by sentences, drawn thirty times a second and kept in a file at once.

    python examples/pipeline.py

The model is the loopback provider, which needs no key. For a real one, with its provider's key in
the environment, name it: `python examples/pipeline.py anthropic:claude-opus-5`.
"""

import sys

import anyio

from streamlib import Client, OutputTextDelta, ResponseEvent
from streamlib.pipeline import Pipeline, coalesce, only, replace, sentences, tee
from streamlib.recording import dump_events
from streamlib.testing import MODEL, loopback

KEPT = "response.jsonl"
PROMPT = "Say that my password is hunter2. Ask me whether Dr. No knows it. Then say goodbye."
REDACT = replace("hunter2", "[secret]")


async def speak(events: Pipeline[ResponseEvent]) -> None:
    """Prints what a voice would say, a sentence at a time."""
    async with events.pipe(sentences(), only(OutputTextDelta)) as spoken:
        async for event in spoken:
            sys.stdout.write(f"  (spoken) {event.delta.strip()}\n")


async def draw(events: Pipeline[ResponseEvent]) -> None:
    """Draws the text so far, at most thirty times a second."""
    async with events.pipe(coalesce(1 / 30)) as drawn:
        async for _ in drawn.text():
            sys.stderr.write(f"\r\x1b[K{drawn.snapshot.text[-60:]!r}")


async def keep(events: Pipeline[ResponseEvent]) -> None:
    """Writes each event into the file when it comes."""
    async with await anyio.open_file(KEPT, "wb") as file:
        async for event in events:
            await file.write(dump_events([event]))


async def main() -> None:
    """One stream, three sinks."""
    model = sys.argv[1] if len(sys.argv) > 1 else MODEL
    async with (
        loopback(pace=0.02) if model == MODEL else Client() as client,
        client.stream(PROMPT, model).pipe(REDACT) as redacted,
        tee(redacted, 3) as branches,
        anyio.create_task_group() as group,
    ):
        for sink, branch in zip((speak, draw, keep), branches, strict=True):
            group.start_soon(sink, branch)
    sys.stdout.write(f"\n{redacted.response.status}, kept in {KEPT}\n")


if __name__ == "__main__":
    anyio.run(main)
