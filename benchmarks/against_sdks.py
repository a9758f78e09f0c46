"""`feed` against the official SDKs' raw streams, on the same bytes, by turns. Prints one row a wire and chunking.

python -m benchmarks.against_sdks [--rounds 7] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.workloads import WORKLOADS, chunked
from streamlib_parsers import parser

Contestant = Callable[[list[bytes]], float]
"""Takes chunks; the CPU seconds it needed."""


def ours(wire: Any) -> Contestant:
    """The parser with its whole state machine."""

    def run(chunks: list[bytes]) -> float:
        began = time.process_time()
        parse = parser(wire)
        for chunk in chunks:
            parse.feed(chunk)
        parse.close()
        return time.process_time() - began

    return run


def _mock(chunks: list[bytes]) -> Any:
    import httpx2

    async def body() -> Any:
        for chunk in chunks:
            yield chunk

    headers = {"content-type": "text/event-stream"}
    return httpx2.AsyncClient(transport=httpx2.MockTransport(lambda request: httpx2.Response(200, headers=headers, content=body())))


def _drained(start: Callable[[Any], Any]) -> Contestant:
    """Times the reading of a stream that `start` opens over a mock transport; opening it is not counted."""

    async def run(chunks: list[bytes]) -> float:
        async with _mock(chunks) as http:
            stream = await start(http)
            began = time.process_time()
            async for _ in stream:
                pass
            return time.process_time() - began

    return lambda chunks: asyncio.run(run(chunks))


def _anthropic(http: Any) -> Any:
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="none", http_client=http)
    return client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}], stream=True)


def _openai_chat(http: Any) -> Any:
    import openai

    client = openai.AsyncOpenAI(api_key="none", http_client=http)
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True)


def _openai_responses(http: Any) -> Any:
    import openai

    return openai.AsyncOpenAI(api_key="none", http_client=http).responses.create(model="m", input="x", stream=True)


def _google(chunks: list[bytes]) -> float:
    from google import genai
    from google.genai import types

    async def run() -> float:
        async with _mock(chunks) as http:
            options = types.HttpOptions(httpx_async_client=http, api_version="v1beta")
            stream = await genai.Client(api_key="none", http_options=options).aio.models.generate_content_stream(model="m", contents="x")
            began = time.process_time()
            async for _ in stream:
                pass
            return time.process_time() - began

    return asyncio.run(run())


def _botocore(chunks: list[bytes]) -> float:
    import botocore.session
    from botocore.eventstream import EventStream

    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model("ConverseStream").output_shape.members["stream"]
    from botocore.parsers import EventStreamJSONParser

    class Raw:
        def stream(self) -> Any:
            return iter(chunks)

        def close(self) -> None:
            """Nothing is open."""

    began = time.process_time()
    for _ in EventStream(Raw(), shape, EventStreamJSONParser(), "ConverseStream"):
        pass
    return time.process_time() - began


PEERS: dict[str, tuple[str, Contestant]] = {
    "messages": ("anthropic", _drained(_anthropic)),
    "chat": ("openai", _drained(_openai_chat)),
    "responses": ("openai", _drained(_openai_responses)),
    "gemini": ("google-genai", _google),
    "converse": ("botocore", _botocore),
}


def race(wire: str, chunks: list[bytes], count: int, rounds: int) -> dict[str, Any]:
    """Both by turns; microseconds of CPU an event of the wire, best of the rounds."""
    name, peer = PEERS[wire]
    mine = ours(wire)
    times = [(mine(chunks), mine(chunks), peer(chunks)) for _ in range(rounds)]
    best_mine, best_peer = min(min(first, second) for first, second, _ in times), min(other for _, _, other in times)
    return {
        "wire": wire,
        "peer": name,
        "ours_us": best_mine / count * 1e6,
        "peer_us": best_peer / count * 1e6,
        "ratio": best_peer / best_mine,
    }


def main(argv: list[str] | None = None) -> int:
    """Every wire, both chunkings."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--json", action="store_true")
    asked = arguments.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for wire in PEERS:
        events = list(WORKLOADS[wire]())
        for chunking, chunks in (("16 KiB", chunked(events)), ("an event", events)):
            row = {"chunks": chunking, **race(wire, chunks, len(events), asked.rounds)}
            rows.append(row)
            if not asked.json:
                sys.stdout.write("{wire:10} {chunks:9} ours {ours_us:6.2f} us  {peer:13} {peer_us:7.2f} us  {ratio:6.1f} x\n".format(**row))
    if asked.json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
