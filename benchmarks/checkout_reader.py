"""Reads streams with the parsers on PYTHONPATH: `python -P checkout_reader.py`.

It answers as `node/race.mjs` does. It imports nothing of this checkout, so that the parsers of any
version can be measured by the same code.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
from base64 import b64decode
from typing import Any

import streamlib_parsers
from streamlib_parsers import accumulate, parser


def seconds(wire: Any, chunks: list[bytes], window: float) -> float:
    """CPU seconds for reading once: the mean of as many readings as take `window` seconds."""
    spent = 0.0
    runs = 0
    while runs == 0 or spent < window:
        start = time.process_time()
        parse = parser(wire)
        for chunk in chunks:
            parse.feed(chunk)
        parse.close()
        spent += time.process_time() - start
        runs += 1
    return spent / runs


def outcome(wire: Any, chunks: list[bytes]) -> dict[str, Any]:
    """Text of the response and arguments of its calls."""
    parse = parser(wire)
    events: list[Any] = []
    for chunk in chunks:
        events += parse.feed(chunk)
    response = accumulate([*events, *parse.close()])
    arguments: list[Any] = []
    for call in response.calls:
        text = getattr(call, "arguments", None)
        if text is not None:
            arguments.append(parsed(text))
    return {"text": response.text, "arguments": arguments}


def parsed(text: str) -> Any:
    """The value of a JSON text; the text itself where it is none."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def main() -> None:
    """Responds to each line of standard input."""
    gc.collect()
    gc.freeze()
    bodies: dict[str, list[bytes]] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        reply: dict[str, Any] = {}
        try:
            if "load" in asked:
                bodies[asked["load"]] = [b64decode(chunk) for chunk in asked["chunks"]]
            elif "time" in asked:
                chunks = bodies[asked["body"]]
                reply = {"seconds": seconds(asked["wire"], chunks, asked["seconds"])}
            elif "read" in asked:
                reply = outcome(asked["wire"], bodies[asked["body"]])
            else:
                reply = {"from": str(streamlib_parsers.__file__)}
        except Exception:  # noqa: BLE001  # the process that asked shows it
            reply = {"error": traceback.format_exc()}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
