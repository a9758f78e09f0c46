"""State for clients that throw it away: their models get the same request as from clients that do
not, and no client gets anything of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    FunctionCall,
    Message,
    Origin,
    Prompt,
    Reasoning,
    ResponseItem,
)
from streamlib.gateway import (
    Gateway,
    MemoryStateStore,
    RouteTable,
    StateUnavailableError,
    gateway,
)
from streamlib.gateway.clients.identity import ClientIdentity, digest_of
from streamlib.gateway.clients.named_clients import NamedClient
from streamlib.gateway.state import client_state
from streamlib.gateway.state.client_state import ClientState, turn_keys
from streamlib.gateway.state.restore import restore_history
from streamlib.gateway.workers import Workers
from streamlib_parsers.items import Text, WireApi, user
from tests.support.cases import each_case
from tests.support.forgetful_clients import KEY, forgetful, reasoning_as_text, signed_response
from tests.support.gateways import (
    SIGNED,
    Upstream,
    next_prompt,
    read,
    rule,
    send,
    serving,
    weather_prompt,
)

SIGNERS: tuple[WireApi, ...] = ("messages", "gemini", "responses")
"""Wires whose models sign or encrypt reasoning."""


async def test_repeated_call_is_found_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A history of some bytes a call must not become one of megabytes a call."""
    monkeypatch.setattr(client_state, "RESTORED_BYTES", 25_000)
    asked: list[int] = []

    class Store(MemoryStateStore):
        async def get(self, client: str, keys: Sequence[str]) -> list[bytes | None]:
            asked.append(len(keys))
            return await super().get(client, keys)

    state, identity = ClientState(Store()), ClientIdentity("alice")
    origin = Origin("messages", "anthropic")
    call = FunctionCall(call_id="toolu_0123456789abcdef", name="f", arguments="{}", origin=origin)
    reasoning = Reasoning(content="r" * 10_000, signature="s", origin=origin)
    await state.store(identity, [user("q")], [reasoning, call])
    history: list[ResponseItem] = [user("q")]
    for _ in range(50):
        history += [msgspec.structs.replace(call), user("a")]
    found = await state.find(identity, history, Workers(), 0)
    assert len(found) == 2
    assert asked[0] < 60  # one by its id, and one for each repetition


async def second_request(client_wire: WireApi, model_wire: WireApi, change: Any) -> bytes:
    """What the model gets in the second turn of a client."""
    upstream = Upstream(signed_response(model_wire))
    async with serving(upstream, rule(model_wire)) as client:
        first = read(client_wire, await send(client, client_wire, weather_prompt(), **KEY))
        prompt = change(next_prompt(weather_prompt(), first))
        await send(client, client_wire, prompt, **KEY)
    return upstream.requests[-1].body


PAIRS = [
    (client, model)
    for client in ("messages", "chat", "responses", "gemini")
    for model in SIGNERS
    if client != model
]


@each_case("client_wire, model_wire", PAIRS)
async def test_forgetful_client_gets_its_reasoning_back(
    client_wire: WireApi, model_wire: WireApi
) -> None:
    expected = await second_request(client_wire, model_wire, lambda prompt: prompt)
    assert SIGNED[:8].encode() in expected
    assert await second_request(client_wire, model_wire, forgetful) == expected


@each_case("client_wire, model_wire", PAIRS)
async def test_text_of_reasoning_gets_its_state_back(
    client_wire: WireApi, model_wire: WireApi
) -> None:
    expected = await second_request(client_wire, model_wire, lambda prompt: prompt)
    assert await second_request(client_wire, model_wire, reasoning_as_text) == expected


@each_case("stream", [True, False])
async def test_state_is_stored_of_streams_and_of_bodies(stream: bool) -> None:
    upstream = Upstream(signed_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        response = await send(client, "chat", weather_prompt(), stream=stream, **KEY)
        first = read("chat", response, stream=stream)
        await send(client, "chat", forgetful(next_prompt(weather_prompt(), first)), **KEY)
    assert SIGNED.encode() in upstream.requests[-1].body


@each_case("headers", [{}, {"authorization": "Bearer eve"}])
async def test_no_other_client_gets_the_state(headers: dict[str, str]) -> None:
    """Without a token nothing tells a client from others: it has no state."""
    upstream = Upstream(signed_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        first = read("chat", await send(client, "chat", weather_prompt(), **KEY))
        prompt = forgetful(next_prompt(weather_prompt(), first))
        await send(client, "chat", prompt, **headers)
        await send(client, "chat", prompt, **KEY)
    other, own = upstream.requests[-2:]
    assert SIGNED.encode() not in other.body
    assert SIGNED.encode() in own.body


async def test_client_without_a_token_has_no_state() -> None:
    store = MemoryStateStore()
    upstream = Upstream(signed_response("messages"))
    async with serving(upstream, rule("messages"), state=store) as client:
        await send(client, "chat", weather_prompt())
        assert store.size == 0
        await send(client, "chat", weather_prompt(), **KEY)
        assert store.size > 0


async def test_edited_reasoning_stays_the_clients() -> None:
    def edited(prompt: Prompt) -> Prompt:
        items = list(reasoning_as_text(prompt).items)
        for index, item in enumerate(items):
            if isinstance(item, Reasoning):
                items[index] = msgspec.structs.replace(item, content="I changed my mind.")
        return msgspec.structs.replace(prompt, input=tuple(items))

    sent = await second_request("chat", "messages", edited)
    assert b"I changed my mind." in sent
    assert SIGNED[:8].encode() not in sent
    assert b"so two calls" not in sent


async def test_question_tells_equal_calls_apart() -> None:
    """Ids that a server counts are equal in two conversations of one client."""
    upstream = Upstream(signed_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        first = read("chat", await send(client, "chat", weather_prompt(), **KEY))
        other = weather_prompt(input=[user("Weather elsewhere?")])
        await send(client, "chat", forgetful(next_prompt(other, first)), **KEY)
    assert SIGNED.encode() not in upstream.requests[-1].body


async def test_text_before_a_question_may_change() -> None:
    """Gemini CLI puts a list of files there, which it makes anew when a session is resumed."""
    upstream = Upstream(signed_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        before = weather_prompt(input=[user("Files: a", Text("Weather?"))])
        first = read("gemini", await send(client, "gemini", before, **KEY))
        after = weather_prompt(input=[user("Files: a, b", Text("Weather?"))])
        await send(client, "gemini", forgetful(next_prompt(after, first)), **KEY)
    assert SIGNED.encode() in upstream.requests[-1].body


@each_case("call_id", ["look_1795407629815_0", "0123456789abcdef0123"])
async def test_call_with_an_id_of_the_clients_own_is_found(call_id: str) -> None:
    """Gemini's calls have none: Gemini CLI makes up ids, and loses signatures on a resume."""
    state = ClientState(MemoryStateStore())
    identity = ClientIdentity(token_digest="a")
    origin = Origin("gemini")
    history: list[ResponseItem] = [user("Go.")]
    sent: list[ResponseItem] = [user("Go.")]
    for number in range(2):
        # The same call twice: the second has a signature of its own.
        call = FunctionCall(f"call_{number}", "look", "{}", signature=str(number), origin=origin)
        await state.store(identity, history, [call])
        history += [call, call.output("done")]
        received = FunctionCall(f"{call_id}{number}", "look", "{ }", id=f"{call_id}{number}")
        sent += [received, received.output("done")]
    stored = await state.find(identity, sent, Workers(), 0)
    restored = restore_history(sent, {}, stored)
    calls = [item for item in restored if isinstance(item, FunctionCall)]
    assert [call.signature for call in calls] == ["0", "1"]
    assert [call.call_id for call in calls] == [f"{call_id}0", f"{call_id}1"]
    assert calls[0].id == calls[0].call_id


async def test_other_question_finds_no_equal_call() -> None:
    state = ClientState(MemoryStateStore())
    identity = ClientIdentity(token_digest="a")
    call = FunctionCall("call_0", "look", "{}", signature="s", origin=Origin("gemini"))
    await state.store(identity, [user("Go.")], [call])
    for question, count in (("Go.", 1), ("Stay.", 0)):
        stored = await state.find(identity, [user(question), call], Workers(), 0)
        assert len(stored) == count


async def test_named_clients_with_equal_conversations_stay_apart() -> None:
    """Equal questions, texts, calls and ids: each client gets its own signature back."""
    signatures = {"ada": "c2lnbmVkIGZvciBhZGE=", "bob": "c2lnbmVkIGZvciBib2I="}
    clients = [NamedClient(name, digest_of(f"token of {name}")) for name in signatures]
    upstream = Upstream(*(signed_response("messages", text) for text in signatures.values()))
    table = RouteTable([rule("messages")], clients=clients)
    async with (
        Gateway(table, client={"http": upstream}) as running,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(gateway(running)), base_url="http://127.0.0.1:8900"
        ) as client,
    ):
        keys = {name: {"x-api-key": f"token of {name}"} for name in signatures}
        first = {
            name: read("chat", await send(client, "chat", weather_prompt(), **keys[name]))
            for name in signatures
        }
        assert first["ada"].calls[0].call_id == first["bob"].calls[0].call_id
        for name, signature in signatures.items():
            prompt = forgetful(next_prompt(weather_prompt(), first[name]))
            await send(client, "chat", prompt, **keys[name])
            sent = upstream.requests[-1].body.decode()
            others = set(signatures.values()) - {signature}
            assert signature in sent
            assert not any(other in sent for other in others)


# --- two clients with equal conversations ---

IDENTITIES = (
    ClientIdentity(token_digest="a"),
    ClientIdentity(token_digest="b"),
    ClientIdentity(name="a"),
    ClientIdentity(name="a b"),
    ClientIdentity(),
)
call_ids = st.sampled_from(["call_0", "call_1", "call_1234567890abcdefghij"])
texts = st.sampled_from(["", "Hello.", "x" * 300])
conversations = st.lists(st.tuples(call_ids, texts), min_size=1, max_size=4)
moves = st.lists(
    st.tuples(st.integers(0, len(IDENTITIES) - 1), st.booleans()), min_size=2, max_size=12
)


def model_turn(call_id: str, text: str, signature: str) -> list[ResponseItem]:
    items: list[ResponseItem] = [Reasoning("Hm.", signature=signature)]
    if text:
        items.append(Message("assistant", [Text(text)]))
    return [*items, FunctionCall(call_id, "look", "{}")]


@given(conversation=conversations, steps=moves)
def test_state_never_reaches_another_client(
    conversation: list[tuple[str, str]], steps: list[tuple[int, bool]]
) -> None:
    """All clients have the same questions, texts and ids, in any order of requests."""

    async def run() -> None:
        state = ClientState(MemoryStateStore())
        for number, (client, stores) in enumerate(steps):
            identity = IDENTITIES[client]
            history: list[ResponseItem] = [user("Go.")]
            for call_id, text in conversation:
                turn = model_turn(call_id, text, f"of {client}: {number}")
                if stores:
                    await state.store(identity, history, turn)
                history += turn[1:]
                history.append(FunctionCall(call_id, "look", "{}").output("done"))
            stored = await state.find(identity, history, Workers(), 0)
            for responses in stored.values():
                for response in responses:
                    for envelope in response.envelopes:
                        assert str(envelope.item.signature).startswith(f"of {client}: ")
            if identity.key is None:
                assert not stored
            elif stores:
                assert stored

    anyio.run(run)


def test_turn_keys_are_bounded_and_the_newest_first() -> None:
    items: list[ResponseItem] = [user("Go.")]
    for number in range(5000):
        items += [FunctionCall(f"call_{number}", "look", "{}")]
        items.append(FunctionCall(f"call_{number}", "look", "{}").output("done"))
    keys = turn_keys(items)
    assert len(keys) == 4096
    assert keys[0].call is not None
    assert keys[0].call.call_id == "call_4999"


# --- a store that fails ---


class FailingStore(MemoryStateStore):
    """A store whose server is gone."""

    asked = 0

    async def get(self, client: str, keys: Any) -> list[bytes | None]:
        self.asked += 1
        raise StateUnavailableError("gone")

    async def put(self, client: str, key: str, value: bytes) -> None:
        self.asked += 1
        raise StateUnavailableError("gone")


async def test_failing_store_costs_no_response() -> None:
    store = FailingStore()
    upstream = Upstream(signed_response("messages"))
    async with serving(upstream, rule("messages"), state=store) as client:
        for _ in range(3):
            first = read("chat", await send(client, "chat", weather_prompt(), **KEY))
            assert first.status == "completed"
    # It is left alone for a while.
    assert store.asked == 1
