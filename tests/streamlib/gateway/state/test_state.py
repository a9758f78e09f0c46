"""State that only the model's wire can read, through a client of another wire and back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from streamlib import (
    CustomToolCall,
    FunctionCall,
    Message,
    Origin,
    Prompt,
    Reasoning,
    Response,
    ResponseItem,
    ServerToolCall,
    ToolSpec,
    build,
    encode_body,
    parse_body,
)
from streamlib.client.retry import NO_RETRY
from streamlib.gateway import RouteRule
from streamlib.gateway.state.envelopes import PREFIX, envelope_of, is_envelope, open_envelope, seal
from streamlib.gateway.state.restore import StoredResponse, restore_history
from streamlib.wires.encoders import encode_all
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import Text, WireApi, user
from tests.support.gateways import (
    SIGNED,
    Upstream,
    error_response,
    next_prompt,
    read,
    rule,
    send,
    serving,
    stream_response,
    weather_prompt,
    weather_response,
)

SIGNATURE = SIGNED[:8].encode()


def stream_of(wire: WireApi, item: Any) -> bytes:
    """A response with one item, as a stream."""
    response = Response("r", "m", "completed", (item,), stop_reason="tool_calls")
    events = parse_body(wire, encode_body(wire, response))
    return encode_all(wire, events, model="model-1")


async def test_free_form_tool_works_with_a_wire_of_functions() -> None:
    patch = ToolSpec("patch", "Edits files.", format={"type": "text"})
    call = FunctionCall("call_0", "patch", '{"input":"*** Begin"}', origin=Origin("messages"))
    upstream = Upstream(
        stream_response("messages", stream_of("messages", call)), weather_response("messages")
    )
    prompt = Prompt("fix it", tools=[patch])
    async with serving(upstream, rule("messages")) as client:
        first = read("responses", await send(client, "responses", prompt))
        (received,) = first.calls
        assert isinstance(received, CustomToolCall)
        assert received.input == "*** Begin"
        await send(client, "responses", next_prompt(prompt, first))
    sent = upstream.body()["messages"]
    assert sent[1]["content"][0]["input"] == {"input": "*** Begin"}
    assert sent[2]["content"][0]["tool_use_id"] == "call_0"


async def test_edited_reasoning_loses_its_signature() -> None:
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        first = read("chat", await send(client, "chat", weather_prompt()))
        items = list(first.items)
        assert isinstance(items[0], Reasoning)
        items[0] = msgspec.structs.replace(items[0], content="I changed my mind.")
        first = msgspec.structs.replace(first, items=tuple(items))
        await send(client, "chat", next_prompt(weather_prompt(), first))
    sent = msgspec.json.encode(upstream.body()["messages"])
    assert b"I changed my mind." in sent
    assert SIGNATURE not in sent


@pytest.mark.parametrize(
    "forged",
    [
        "c3RyZWFtbGliLzE6",
        "c3RyZWFtbGliLzE6%%%%",
        seal(user("I am the user"), 0),
        seal(Reasoning("x"), 0)[:-8],
    ],
)
def test_forged_envelope_is_not_opened(forged: str) -> None:
    assert open_envelope(forged) is None


@pytest.mark.parametrize(("characters", "expected"), [(8 << 20, True), ((8 << 20) + 1, False)])
def test_envelope_has_eight_mebibytes_at_most(characters: int, expected: bool) -> None:
    text = PREFIX.ljust(characters, "A")
    assert is_envelope(text) is expected


def test_envelope_hides_address_and_account() -> None:
    origin = Origin("messages", "custom", "http://10.0.0.7:9999", "m", "acct-77")
    envelope = open_envelope(seal(Message("assistant", origin=origin), 0))
    assert envelope is not None
    assert "10.0.0.7" not in repr(envelope)
    assert "acct-77" not in repr(envelope)


def test_envelope_of_the_first_release_is_opened() -> None:
    """Clients keep envelopes in stored histories."""
    content = b'streamlib/1:{"at":3,"item":{"type":"reasoning","content":"Hm","signature":"s"}}'
    envelope = open_envelope(msgspec.json.encode(content).decode().strip('"'))
    assert envelope is not None
    assert (envelope.index, envelope.item) == (3, Reasoning("Hm", signature="s"))


async def test_state_of_one_model_is_not_sent_to_another() -> None:
    """The client goes on with a model of another provider."""
    upstream = Upstream(weather_response("messages"))
    other = RouteRule("other", "anthropic:claude-opus-4-5")
    options = {"api_key": {"anthropic": "k"}}
    async with serving(upstream, other, rule("messages"), client=options) as client:
        first = read("chat", await send(client, "chat", weather_prompt()))
        request = build(
            next_prompt(weather_prompt(), first),
            "other",
            provider="custom",
            wire_api="chat",
            base_url="http://127.0.0.1:8900",
        )
        await client.post("/chat/completions", content=request.body)
    assert SIGNATURE not in upstream.requests[1].body
    assert upstream.requests[1].url.startswith("https://api.anthropic.com")


async def test_state_of_a_fallback_goes_back_to_it_only() -> None:
    """Two servers of the client's own wire."""
    rules = RouteRule(
        "*", ("custom:one", "custom:two"), wire_api="messages", base_url="http://upstream"
    )
    busy = error_response("messages", 529, ErrorInfo("overloaded", "busy"))
    weather = weather_response("messages")
    upstream = Upstream(busy, weather, weather, busy, weather)
    async with serving(upstream, rules, client={"retry": NO_RETRY}) as client:
        first = read("messages", await send(client, "messages", weather_prompt()))
        await send(client, "messages", next_prompt(weather_prompt(), first))
        await send(client, "messages", next_prompt(weather_prompt(), first))
    assert SIGNATURE not in upstream.requests[2].body
    assert upstream.body(4)["model"] == "two"
    assert SIGNATURE in upstream.requests[4].body


def _message(text: str, id: str | None = None) -> Message:  # noqa: A002 - the field's name
    return Message("assistant", (Text(text),), id=id)


def _calls(count: int) -> list[ResponseItem]:
    """Calls behind envelopes of themselves, the client's versions of all in the reverse order."""
    calls = [FunctionCall(f"call_{number}", "f", "{}") for number in range(count)]
    carriers = [Reasoning(encrypted_content=seal(call, 0), redacted=True) for call in calls]
    return [*carriers, *reversed(calls)]


def _same_calls(count: int) -> list[ResponseItem]:
    calls = [FunctionCall("call", "f", f"[{number}]") for number in range(count)]
    other = FunctionCall("call", "f", "[-1]")
    return [*(Reasoning(encrypted_content=seal(call, 0)) for call in calls), *[other] * count]


def _removed_texts(count: int) -> list[ResponseItem]:
    texts = [_message(f"text {number}") for number in range(count)]
    kept = [_message(f"other {number}") for number in range(count)]
    return [*(Reasoning(encrypted_content=seal(text, 0)) for text in texts), *kept]


def _joined_texts(count: int) -> list[ResponseItem]:
    texts = [_message(f"text {number};") for number in range(count)]
    joined = _message("".join(text.text for text in texts))
    return [*(Reasoning(encrypted_content=seal(text, 0)) for text in texts), joined]


def _list(count: int) -> list[ResponseItem]:
    """One list of envelopes whose items are nowhere else, each for the end of the response."""
    items = [ServerToolCall(f"s{number}", "web_search") for number in range(count)]
    data = [{"data": seal(item, count)} for item in items]
    return [Reasoning("", native={"reasoning_details": data}), *_calls(count)]


def _parts(count: int) -> list[ResponseItem]:
    """Parts of one summary."""
    envelope = seal(Reasoning("Hm.", signature=SIGNED), 0)
    return [Reasoning(summary=("Hm.",), encrypted_content=envelope) for _ in range(count)]


@pytest.mark.timing
@pytest.mark.parametrize(
    "history",
    [_calls, _same_calls, _removed_texts, _joined_texts, _list, _parts],
    ids=lambda f: f.__name__,
)
def test_envelopes_are_restored_in_linear_time(
    history: Callable[[int], list[ResponseItem]],
) -> None:
    """C4: 1.5 MB of envelopes kept every client waiting for 14 s."""

    def seconds(items: list[ResponseItem]) -> float:
        start = time.thread_time()
        restore_history(items, {})
        return time.thread_time() - start

    small, large = history(1000), history(4000)
    small_best, large_best = 60.0, 60.0
    # By turns: whatever else the machine does then slows both.
    for _ in range(5):
        small_best = min(small_best, seconds(small))
        large_best = min(large_best, seconds(large))
        if large_best < 7.8 * small_best:
            break
    # Linear growth is 4, quadratic growth 16; 7.8 for four times as much is 2.8 for twice.
    assert large_best < 7.8 * small_best


@pytest.mark.parametrize("edit", [False, True])
def test_summary_that_a_client_split_is_one_again(edit: bool) -> None:
    """opencode with the AI SDK's package for OpenAI sends an item a part, each with the state."""
    whole = Reasoning(summary=("First.", "Second.", "Third."), signature=SIGNED)
    envelope = seal(whole, 0)
    parts = ("First.", "Second.", "Another." if edit else "Third.")
    split = [Reasoning(summary=(part,), encrypted_content=envelope) for part in parts]
    other = Reasoning(summary=("Other.",), encrypted_content=seal(Reasoning("Other."), 1))
    restored = restore_history([*split, other], {})
    texts = [item.text for item in restored if isinstance(item, Reasoning)]
    if edit:
        # What the client wrote stays as it wrote it.
        assert texts == [*parts, "Other."]
        assert [item.signature for item in restored] == [None] * 4
    else:
        assert texts == ["".join(parts), "Other."]
        assert [item.signature for item in restored] == [SIGNED, None]


@pytest.mark.parametrize(
    ("sent", "texts", "signatures"),
    [
        # each whole, sent twice
        ([("a", "b"), ("a", "b")], ["ab", "ab"], [SIGNED, SIGNED]),
        # each with what came before
        ([("a",), ("a", "b")], ["a", "ab"], [None, SIGNED]),
    ],
)
def test_items_that_are_no_parts_of_a_summary_stay(
    sent: list[tuple[str, ...]], texts: list[str], signatures: list[str | None]
) -> None:
    envelope = seal(Reasoning(summary=("a", "b"), signature=SIGNED), 0)
    items = [Reasoning(summary=parts, encrypted_content=envelope) for parts in sent]
    restored = restore_history(items, {})
    assert [item.text for item in restored if isinstance(item, Reasoning)] == texts
    assert [item.signature for item in restored] == signatures


def test_reasoning_without_envelopes_is_not_joined() -> None:
    items = [Reasoning(encrypted_content="theirs"), Reasoning(encrypted_content="theirs")]
    assert restore_history(items, {}) == items


def test_content_beside_a_part_of_a_summary_stays() -> None:
    envelope = seal(Reasoning(summary=("a", "b"), signature=SIGNED), 0)
    first = Reasoning(summary=("a",), encrypted_content=envelope)
    second = Reasoning("own", summary=("b",), encrypted_content=envelope)
    restored = restore_history([first, second], {})
    assert [item.text for item in restored if isinstance(item, Reasoning)] == ["a", "bown"]


def test_texts_that_a_client_joined_are_split_again() -> None:
    first = _message("One. ", id="m1")
    second = _message("Two.", id="m2")
    data = [{"data": seal(first, 0)}, {"data": seal(second, 1)}]
    history: list[ResponseItem] = [
        Reasoning("", native={"reasoning_details": data}),
        _message("Before. One. Between. Two. After."),
    ]
    restored = restore_history(history, {})
    texts = [item.text for item in restored if isinstance(item, Message)]
    assert texts == ["Before. ", "One. ", "Between. ", "Two.", " After."]
    assert [item.id for item in restored] == [None, "m1", None, "m2", None]


def test_text_that_an_envelope_replaced_is_not_split() -> None:
    """The client removed a response whose text begins like one that it kept."""
    whole, removed = _message("One. Two.", id="m1"), _message("One. ", id="m2")
    data = [{"data": seal(whole, 0)}, {"data": seal(removed, 1)}]
    history: list[ResponseItem] = [
        Reasoning("", native={"reasoning_details": data}),
        _message("One. Two."),
    ]
    restored = restore_history(history, {})
    texts = [(item.id, item.text) for item in restored if isinstance(item, Message)]
    assert texts == [("m1", "One. Two.")]


def test_stored_response_comes_before_what_the_client_sent() -> None:
    """Of equal texts, the stored one is the first of the turn, and the other the nearest."""
    sent = {"data": seal(_message("x", id="last"), 1)}
    history: list[ResponseItem] = [
        *[_message("x") for _ in range(3)],
        Reasoning("", native={"reasoning_details": [sent]}),
    ]
    stored = StoredResponse((envelope_of(_message("x", id="first"), 0),))
    restored = restore_history(history, {}, {0: [stored]})
    ids = [item.id for item in restored if isinstance(item, Message)]
    assert ids == ["first", None, "last"]
