"""Every case through every peer that is installed here, over one scripted server a case; results as
JSON."""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import warnings
from dataclasses import asdict
from importlib import metadata
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from lab.peers import abilities
from lab.peers.cases import CASES, Case
from lab.peers.peer import Ask, Peer, ReportedError
from lab.peers.told import Told, brief, verdict
from tests.support.scripted_server import Script, complete_response, scripted


def peers(modules: list[str]) -> list[Peer]:
    """The adapters of these modules."""
    return [
        peer
        for name in modules
        for peer in importlib.import_module(f"lab.peers.adapters.{name}").PEERS
    ]


def version(peer: Peer) -> str:
    """As installed; ours from its own word, since it may run from a checkout."""
    if peer.version is not None:
        return peer.version()
    if peer.distribution == "streamlib":
        import streamlib

        return streamlib.__version__
    return metadata.version(peer.distribution)


def concerned(peer: Peer, case: Case) -> bool:
    """Whether the case is put to the peer."""
    return (
        case.wire in peer.wires
        and (case.framing or not peer.framing)
        and (peer.replays is not None or not case.replay)
    )


async def told_by(peer: Peer, case: Case, portal: BlockingPortal) -> Told:
    """What it told. The server lives in a thread of its own: some libraries block the loop they run
    on."""
    told = Told()
    with portal.wrap_async_context_manager(scripted(choose=chosen(case))) as server:
        asked = Ask(server.url, case.wire, case.retries, case.leave)
        with anyio.move_on_after(case.patience) as scope:
            try:
                await (peer.replays if case.replay and peer.replays else peer.wires[case.wire])(
                    asked, told
                )
            except Exception as error:  # noqa: BLE001  # what is compared
                told.ended, told.error, told.own = "error", said(error), own(error, peer)
        if scope.cancelled_caught:
            told.ended = "hang"
        told.sent = sent_back(server.requests) if case.replay else []
        told.text, told.requests = brief(told.text), len(server.requests)
        if case.want.closed:  # a connection that is going to be closed has a second for it
            await anyio.sleep(1)
        told.open = server.responding
    return told


def chosen(case: Case) -> Any:
    """The scripts of a case by turns; `{port}` in one is the server's own."""
    turns: list[bytes] = []

    def choose(request: bytes) -> Script:
        if request.startswith(b"POST /api/show"):  # a question about the model, not for the answer
            return complete_response(b"{}", "404 Not Found", "application/json")
        script = case.scripts[min(len(turns), len(case.scripts) - 1)]
        turns.append(request)
        port = next(
            (
                line.rpartition(b":")[2].strip()
                for line in request.split(b"\r\n")
                if line.lower().startswith(b"host:")
            ),
            b"",
        )
        return [
            step.replace(b"{port}", port) if isinstance(step, bytes) and b"{port}" in step else step
            for step in script
        ]

    return choose


def sent_back(requests: list[bytes]) -> list[str]:
    """The assistant's turn in the last request, a label for each block; numbers as they were
    written."""
    if len(requests) < 2:
        return []
    body = json.loads(requests[-1].partition(b"\r\n\r\n")[2], parse_float=str, parse_int=str)
    turns = [turn["content"] for turn in body["messages"] if turn["role"] == "assistant"]
    blocks = [
        block if isinstance(block, dict) else {"type": "text", "text": block}
        for turn in turns
        for block in ([turn] if isinstance(turn, str) else turn)
    ]
    return [label(block) for block in blocks]


def label(block: dict[str, Any]) -> str:
    """One block of Messages."""
    match block.get("type"):
        case "thinking":
            return f"thinking {block.get('thinking')} {block.get('signature')}"
        case "redacted_thinking":
            return f"redacted {block.get('data')}"
        case "tool_use":
            return (
                f"call {block.get('name')} {json.dumps(block.get('input'), separators=(',', ':'))}"
            )
        case kind:
            return f"{kind} {block.get('text', '')}"


def own(error: BaseException, peer: Peer) -> bool:
    """Whether a user who catches the library's errors catches this one."""
    if isinstance(error, ReportedError):
        return True
    errors = error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)
    return all(
        any(base.__module__.split("._")[0].startswith(peer.own) for base in type(one).__mro__)
        for one in errors
    )


def said(error: BaseException) -> str:
    """An error in a line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


async def everything(modules: list[str], only: list[str]) -> dict[str, Any]:
    """All results: peer -> version and what each case came to."""
    results: dict[str, Any] = {}
    for peer in peers(modules):
        rows: dict[str, Any] = {}
        with start_blocking_portal("asyncio") as portal:
            first = next(case for case in CASES if concerned(peer, case))
            await told_by(
                peer, first._replace(patience=300), portal
            )  # what it loads when it is first asked is not its answer
            for case in CASES:
                if concerned(peer, case) and (not only or case.id in only):
                    rows[case.id] = asdict(await told_by(peer, case, portal))
        results[peer.name] = {
            "distribution": peer.distribution,
            "version": version(peer),
            "abilities": abilities.found(peer.distribution),
            "told": rows,
        }
        sys.stderr.write(f"{peer.name} {version(peer)}: {len(rows)} cases\n")
    return results


async def on_trio(modules: list[str]) -> dict[str, str]:
    """The verdict on an ordinary answer where the event loop is trio: peer -> word."""
    words: dict[str, str] = {}
    with start_blocking_portal("asyncio") as portal:
        for peer in peers(modules):
            if peer.version is not None:  # no Python: only its adapter would run on trio
                continue
            ordinary = next(case for case in CASES if concerned(peer, case))
            words[peer.name] = verdict(await told_by(peer, ordinary, portal), ordinary.want).word
    return words


def main() -> None:
    """`python -m lab.peers.running OUT MODULE… [-- CASE…]`: in the environment that has these
    peers."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    out, *words = sys.argv[1:]
    modules, _, only = (
        (words, None, [])
        if "--" not in words
        else (words[: words.index("--")], None, words[words.index("--") + 1 :])
    )
    results = anyio.run(everything, modules, only)
    for name, word in anyio.run(on_trio, modules, backend="trio").items():
        results[name]["trio"] = word
    with open(out, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1, ensure_ascii=True, default=str)
    os._exit(0)  # threads of a library that hung are not waited for


if __name__ == "__main__":
    main()
