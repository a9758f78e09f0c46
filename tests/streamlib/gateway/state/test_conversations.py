"""Recorded conversations through the gateway, turn by turn: what the model signed comes back to it
as if there were no gateway.

The client stores each response as its wire's documentation says, and sends all of them with every
turn. Each conversation for one client's wire by default; `-m slow` takes all four.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from lab.gateway_table.table import (
    OUTPUT_MESSAGES,
    PROMPT,
    STORED_MESSAGES,
    SUNNY,
    conversation_of,
    plain_texts,
    received_request,
    target,
    translated,
)
from streamlib import Response, ResponseEvent, accumulate, build, encode_body
from streamlib_parsers.events import OutputItemAdded, OutputItemDone
from streamlib_parsers.items import FunctionCall, WireApi
from tests.streamlib.wires.test_conversations import conversations
from tests.support.gateways import CLIENTS
from tests.support.shared import WIRES, Recording
from tests.support.wires import parsed

STATE_KEYS: Final = {
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "redactedContent",
    "reasoning_opaque",
}
"""Keys of state that only the model's wire can read; `data` is another in the objects below."""

STATE_OBJECTS: Final = ("redacted_thinking", "reasoning.encrypted")
"""Values of `type`."""


def state(value: Any) -> Iterator[str]:
    """All signed and encrypted state in a request, in order."""
    if isinstance(value, dict):
        has_data = value.get("type") in STATE_OBJECTS
        for key, element in value.items():
            is_state = key in STATE_KEYS or (key == "data" and has_data)
            if is_state and isinstance(element, str) and element:
                yield element
            else:
                yield from state(element)
    elif isinstance(value, list):
        for element in value:
            yield from state(element)


def complete_turns(turns: tuple[Recording, ...]) -> list[Recording]:
    """The turns with a complete response, all on one wire that the library has."""
    first = turns[0]
    if first.wire not in WIRES.values():
        return []
    complete = []
    for turn in turns:
        if turn.wire == first.wire and accumulate(parsed(turn)).error is None:
            complete.append(turn)
    return complete


def last_requests(client: WireApi, turns: list[Recording]) -> tuple[Any, Any]:
    """The last request of a conversation: without a gateway, and through it."""
    model: Any = turns[0].wire
    direct_items = list(PROMPT.items)
    first_request = build(
        PROMPT, "m", provider="custom", wire_api=client, base_url="http://gateway"
    )
    client_body = msgspec.json.decode(first_request.body)
    for turn in turns:
        events = [with_origin(event, model) for event in parsed(turn)]
        response = accumulate(events)
        calls = completed_calls(response)
        direct_items += response.items
        direct_items += [call.output(SUNNY) for call in calls]
        client_response = accumulate(translated(client, model, events))
        stored = STORED_MESSAGES[client](msgspec.json.decode(encode_body(client, client_response)))
        conversation = conversation_of(client_body)
        conversation.extend(stored)
        if calls:
            conversation.extend(OUTPUT_MESSAGES[client](calls))
    direct = build(
        msgspec.structs.replace(PROMPT, input=tuple(direct_items)),
        "m",
        provider="custom",
        wire_api=model,
        base_url="http://up",
    )
    through_gateway = received_request(client, model, msgspec.json.encode(client_body))
    return msgspec.json.decode(direct.body), msgspec.json.decode(through_gateway)


def completed_calls(response: Response) -> list[FunctionCall]:
    calls = []
    for item in response.items:
        if isinstance(item, FunctionCall) and item.status == "completed":
            calls.append(item)
    return calls


def with_origin(event: ResponseEvent, model: WireApi) -> ResponseEvent:
    """The event, its item made by the target of the route."""
    if not isinstance(event, (OutputItemAdded, OutputItemDone)):
        return event
    item = msgspec.structs.replace(event.item, origin=target(model).resolved.origin)
    return msgspec.structs.replace(event, item=item)


def end_signatures(body: Any) -> set[str]:
    """Signatures of texts that end a response of Gemini: it recommends them, and refuses none.

    A Messages client does not get them: there a response does not end with an envelope.
    """
    signatures: set[str] = set()
    for turn in body.get("contents", ()):
        last = turn["parts"][-1]
        if turn["role"] == "model" and "text" in last and "thoughtSignature" in last:
            signatures.add(last["thoughtSignature"])
    return signatures


def check_conversation(client: WireApi, turns: list[Recording], counts: Counter[str]) -> str | None:
    """Counts the result of a conversation; returns a message if state was lost."""
    direct, received = last_requests(client, turns)
    expected_state, received_state = list(state(direct)), list(state(received))
    if client == "messages":
        missing = end_signatures(direct).difference(received_state)
        expected_state = [value for value in expected_state if value not in missing]
    if expected_state:
        counts["with signed state"] += 1
    if plain_texts(conversation_of(direct)) == plain_texts(conversation_of(received)):
        counts["complete request equal"] += 1
    if expected_state == received_state:
        counts["state intact"] += 1
        return None
    counts["state lost"] += 1
    first = turns[0]
    numbers = f"{len(expected_state)} {len(received_state)}"
    return f"{client} <- {first.wire} {first.path.name}: {numbers}"


def run(clients: int) -> Counter[str]:
    """Runs each conversation for some of the client wires."""
    counts: Counter[str] = Counter()
    lost: list[str] = []
    for number, turns in enumerate(conversations()):
        complete = complete_turns(turns)
        wires = CLIENTS
        if clients == 1:
            wires = (CLIENTS[number % 4],)
        for client in wires:
            if not complete:
                counts["no complete response"] += 1
                continue
            message = check_conversation(client, complete, counts)
            if message is not None:
                lost.append(message)
    assert not lost, lost
    # Otherwise there would be nothing to lose.
    assert counts["with signed state"] > 20 * clients, counts
    return counts


def test_signed_state_comes_back_to_the_model() -> None:
    print(f"\nconversations: {dict(run(1))}")  # noqa: T201  # the result


@pytest.mark.slow
def test_signed_state_comes_back_from_every_client() -> None:
    print(f"\nconversations: {dict(run(4))}")  # noqa: T201
