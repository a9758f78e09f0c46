"""Figures of Responses over WebSocket, as JSON.

python -m lab.websocket [--interleavings 1000] [--storm 1000] [--garbage 500]
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from typing import Any

import anyio

from lab.websocket.garbage import garbage
from lab.websocket.interleavings import differing_lanes
from lab.websocket.replays import EXPECTED, replay
from lab.websocket.storm import storm
from tests.support.websocket_scripts import conversations, received


async def replays() -> dict[str, Any]:
    """Replays every conversation, then each with a socket lost before every frame."""
    whole = 0
    cuts = 0
    dishonest: list[str] = []
    for name, conversation in conversations().items():
        played = await replay(name, conversation)
        if (played.texts, played.ends) == EXPECTED[name] and not played.problems:
            whole += 1
        for cut in range(len(received(conversation))):
            lost = await replay(name, conversation, cut)
            cuts += 1
            if lost.problems or not (lost.refused or any(lost.ends)):
                dishonest.append(f"{name} before frame {cut}: {lost.problems} {lost.ends}")
    return {"replayed": whole, "of": len(EXPECTED), "lost sockets": cuts, "dishonest": dishonest}


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m lab.websocket", description=__doc__)
    parser.add_argument("--interleavings", type=int, default=1000)
    parser.add_argument("--storm", type=int, default=1000)
    parser.add_argument("--garbage", type=int, default=500)
    options = parser.parse_args()
    result: dict[str, Any] = {}
    for backend in ("asyncio", "trio"):
        result[backend] = anyio.run(partial(replays), backend=backend)
        result[backend]["storm"] = anyio.run(partial(storm, options.storm), backend=backend)
        result[backend]["garbage"] = anyio.run(partial(garbage, options.garbage), backend=backend)
    differing = differing_lanes(options.interleavings)
    result["interleavings"] = {"count": options.interleavings, "differing lanes": differing}
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


main()
