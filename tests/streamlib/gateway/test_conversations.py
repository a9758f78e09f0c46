"""Recorded conversations through the gateway, turn by turn: what the model signed comes back to it as if there were no gateway.

The client keeps each answer as its wire's documentation says, and sends everything again with every turn. Each conversation for one
client's wire by default; `-m slow` takes all four.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from streamlib import Response, accumulate, build, encode_body
from streamlib_parsers.items import FunctionCall, ResponseItem, WireApi
from tests.gateway_table.table import (
    KEPT,
    OUTPUTS,
    PROMPT,
    SUNNY,
    alone,
    conversation_of,
    crossed_events,
    hop,
    received,
)
from tests.streamlib.wires.test_conversations import conversations
from tests.support.gateways import CLIENTS
from tests.support.shared import WIRES, Recording
from tests.support.wires import parsed

SEALED: Final = {
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "redactedContent",
    "reasoning_opaque",
}
"""Keys that hold what only the model's wire can read. `data` is one beside `redacted_thinking`."""


def state(value: Any) -> Iterator[str]:
    """Everything sealed in a request, in order."""
    if isinstance(value, dict):
        for key, one in value.items():
            if (
                isinstance(one, str)
                and one
                and (
                    key in SEALED
                    or (
                        key == "data"
                        and value.get("type") in ("redacted_thinking", "reasoning.encrypted")
                    )
                )
            ):
                yield one
            else:
                yield from state(one)
    elif isinstance(value, list):
        for one in value:
            yield from state(one)


def answers(turns: tuple[Recording, ...]) -> list[Recording]:
    """The turns that answered whole, all on one wire of ours."""
    if turns[0].wire not in WIRES.values():
        return []
    return [
        turn
        for turn in turns
        if turn.wire == turns[0].wire and accumulate(parsed(turn)).error is None
    ]


def unique(response: Response, turn: int) -> Response:
    """Recordings number their calls anew in every turn."""
    return msgspec.structs.replace(
        response, items=tuple(_numbered(item, turn) for item in response.items), choices=()
    )


def _numbered(item: Any, turn: int) -> ResponseItem:
    return (
        msgspec.structs.replace(item, call_id=f"{item.call_id}_{turn}")
        if isinstance(item, FunctionCall)
        else item
    )


def bodies(client: WireApi, turns: list[Recording]) -> tuple[Any, Any]:
    """The last request without a gateway, and with it."""
    model: Any = turns[0].wire
    direct = list(PROMPT.items)
    body = msgspec.json.decode(
        build(PROMPT, "m", provider="custom", wire_api=client, base_url="http://gateway").body
    )
    for turn in turns:
        events = [with_origin(event, model) for event in parsed(turn)]
        whole = msgspec.json.decode(
            encode_body(client, accumulate(crossed_events(client, model, events)))
        )
        response = accumulate(events)
        calls = [
            item
            for item in response.items
            if isinstance(item, FunctionCall) and item.status == "completed"
        ]
        direct += [*response.items, *(call.output(SUNNY) for call in calls)]
        conversation_of(body).extend(
            [*KEPT[client](whole), *(OUTPUTS[client](calls) if calls else [])]
        )
    wanted = build(
        msgspec.structs.replace(PROMPT, input=tuple(direct)),
        "m",
        provider="custom",
        wire_api=model,
        base_url="http://up",
    )
    return msgspec.json.decode(wanted.body), msgspec.json.decode(
        received(client, model, msgspec.json.encode(body))
    )


def with_origin(event: Any, model: WireApi) -> Any:
    item = getattr(event, "item", None)
    return (
        event
        if item is None
        else msgspec.structs.replace(
            event, item=msgspec.structs.replace(item, origin=hop(model).target.origin)
        )
    )


def run(clients: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    lost: list[str] = []
    for number, turns in enumerate(conversations()):
        whole = answers(turns)
        for client in CLIENTS[number % 4 :][:1] if clients == 1 else CLIENTS:
            if not whole:
                counts["no whole answer"] += 1
                continue
            wanted, got = bodies(client, whole)
            equal = list(state(wanted)) == list(state(got))
            counts["state intact" if equal else "state lost"] += 1
            counts["with signed state"] += any(True for _ in state(wanted))
            counts["the whole request equal"] += alone(conversation_of(wanted)) == alone(
                conversation_of(got)
            )
            if not equal:
                lost.append(
                    f"{client} <- {whole[0].wire} {whole[0].path.name}: {len(list(state(wanted)))} {len(list(state(got)))}"
                )
    assert not lost, lost
    assert counts["with signed state"] > 20 * clients, counts  # else there was nothing to lose
    return counts


def test_what_models_signed_comes_back_to_them() -> None:
    print(f"\nconversations: {dict(run(1))}")  # noqa: T201  # the figure of this proof


@pytest.mark.slow
def test_what_models_signed_comes_back_to_them_from_every_client() -> None:
    print(f"\nconversations: {dict(run(4))}")  # noqa: T201
