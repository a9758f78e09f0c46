"""The loop by hand of docs/agents.md, with every kind of call that a caller must answer."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from streamlib import Response, ResponseItem, user
from tests.support.built_in_calls import CALLS, OUTPUTS, answer
from tests.support.clients import MemoryTransport, make_client
from tests.support.responses_frames import completed, created, done, message
from tests.support.shared import ROOT

EXAMPLES = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/agents.md").read_text("utf-8"), re.DOTALL
)
(LOOP,) = [example for example in EXAMPLES if "async def agent(" in example]


def documented() -> dict[str, Any]:
    """The names that the page's example of a loop defines."""
    names: dict[str, Any] = {}
    exec(LOOP.replace("anyio.run(main)", ""), names)
    return names


def response(item: dict[str, Any]) -> list[bytes]:
    return [created(), done(item), completed(item)]


async def run_loop(
    transport: MemoryTransport, names: dict[str, Any], turns: int = 20
) -> tuple[Response, list[ResponseItem]]:
    client = make_client("http://faulty", transport, wire_api="responses")
    history: list[ResponseItem] = [user("x")]
    async with client:
        ended = await names["agent"](client, "faulty:model", history, turns)
    return ended, history


@pytest.mark.parametrize("name", CALLS)
async def test_loop_answers_each_kind_of_call(name: str) -> None:
    """B5: no such call could be answered."""
    transport = MemoryTransport(response(CALLS[name]), response(message("Done.", item_id="m")))
    names = documented()

    async def run(call: Any) -> ResponseItem:
        return answer(call)

    names["run"] = run
    ended, _ = await run_loop(transport, names)
    assert (ended.text, len(transport.sent)) == ("Done.", 2)
    last = msgspec.json.decode(transport.sent[1][3])
    assert last["input"][1:] == [CALLS[name], OUTPUTS[name]]


@pytest.mark.parametrize("name", CALLS)
async def test_loop_stops_at_a_call_it_cannot_answer(name: str) -> None:
    """B5: it sent the same paid request for ever."""
    transport = MemoryTransport(response(CALLS[name]))
    with pytest.raises(NotImplementedError, match=r"nothing answers a \w+"):
        await run_loop(transport, documented())
    assert len(transport.sent) == 1


@pytest.mark.parametrize("name", CALLS)
async def test_loop_that_answers_nothing_ends(name: str) -> None:
    """B5: each request differs from the one before it, and the loop has a limit."""
    transport = MemoryTransport(response(CALLS[name]))
    names: dict[str, Any] = {}
    answers = "        history += [await run(call) for call in response.pending]\n"
    assert answers in LOOP
    exec(LOOP.replace(answers, "").replace("anyio.run(main)", ""), names)
    with pytest.raises(RuntimeError, match="after 4 turns"):
        await run_loop(transport, names, turns=4)
    bodies = [sent[3] for sent in transport.sent]
    assert len(set(bodies)) == len(bodies) == 4
