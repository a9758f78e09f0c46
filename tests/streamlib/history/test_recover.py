"""A history that is refused for its signatures is made sendable, and every change is reported."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from streamlib import (
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    user,
)
from streamlib.history import fit, recover
from streamlib.testing.provider.strict import StrictProvider
from streamlib_parsers.items import WireApi
from tests.streamlib.testing.provider.strict.test_builders import (
    CALLING,
    FINAL,
    MODELS,
    refusal,
    request_of,
    response,
)

MADE = Origin("messages", "anthropic")
OTHER = "bm90IGlzc3VlZCBieSBhbnlib2R5"
UNSIGNED = ("ollama", "cohere", "chat")
SIGNED: list[ResponseItem] = [
    user("a"),
    Reasoning("Hm.", signature="sig", origin=MADE, response_id="r"),
    Reasoning(encrypted_content="gAAA", origin=MADE, response_id="r"),
    Message("assistant", (Text("so"),), id="m1", origin=MADE, response_id="r"),
    FunctionCall("c", "f", "{}", id="fc", signature="sig", origin=MADE, response_id="r"),
    FunctionCallOutput("c", "1"),
]


def poisoned(items: list[ResponseItem]) -> list[ResponseItem]:
    """The items with state that does not verify: what was signed, or encrypted, was changed."""
    changed: list[ResponseItem] = []
    for item in items:
        if item.signature:
            item = replace(item, signature=OTHER)  # noqa: PLW2901
        if isinstance(item, Reasoning) and item.encrypted_content:
            item = replace(item, encrypted_content=OTHER)  # noqa: PLW2901
        changed.append(item)
    return changed


def conversations(
    provider: StrictProvider, wire_api: WireApi, model: str
) -> list[list[ResponseItem]]:
    """A conversation at a provider: within a loop of calls, and after it."""
    history: list[ResponseItem] = [user("Go.")]
    called = response(provider, request_of(wire_api, model, history, {}), CALLING)
    history += called.items
    history += [call.output("done") for call in called.calls]
    within = list(history)
    history += response(provider, request_of(wire_api, model, history, {}), FINAL).items
    return [within, [*history, user("And?")]]


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.parametrize("wire_api", MODELS)
def test_poisoned_history_becomes_sendable(wire_api: WireApi) -> None:
    provider = StrictProvider()
    refused: list[str] = []
    for model in MODELS[wire_api]:
        for items in conversations(provider, wire_api, model):
            history = poisoned(items)
            reason = refusal(provider, request_of(wire_api, model, history, {}))
            recovered = recover(history)
            assert refusal(provider, request_of(wire_api, model, recovered, {})) is None
            if reason is not None:
                refused.append(reason)
                assert recovered.report
    assert bool(refused) == (wire_api not in UNSIGNED)


def test_every_change_is_reported_and_nothing_else_is_lost() -> None:
    before = list(SIGNED)
    recovered = recover(SIGNED)
    assert before == SIGNED
    assert [(change.action, change.path) for change in recovered.report] == [
        ("downgraded", "/input/1"),
        ("dropped", "/input/2"),
        ("downgraded", "/input/4"),
    ]
    assert all(change.breaks_prefix for change in recovered.report)
    assert [type(item).__name__ for item in recovered] == [
        *["Message"] * 3,
        "FunctionCall",
        "FunctionCallOutput",
    ]
    assert not any(item.signature or item.id for item in recovered)
    assert "Hm." in str(recovered[1])


def test_history_without_state_is_unchanged() -> None:
    history: list[ResponseItem] = [user("a"), Message("assistant", (Text("b"),), id="m"), user("c")]
    recovered = recover(history)
    assert (recovered, recovered.report) == (history, [])
    assert recover(recover(SIGNED)) == recover(SIGNED)
    assert recover([]).report == []


def test_history_of_something_else_is_refused() -> None:
    items: Any = [{"role": "user", "content": "a"}]
    with pytest.raises(TypeError, match=r"input\[0\] is a dict"):
        recover(items)
    with pytest.raises(TypeError, match=r"input\[0\] is a dict"):
        fit(items, 10)


def test_tools_of_the_provider_become_text_and_compactions_stay() -> None:
    compaction = Compaction("", encrypted_content="gAAA", origin=MADE)
    result = {"content": [{"encrypted_content": "x", "title": "t"}]}
    history: list[ResponseItem] = [
        compaction,
        ServerToolCall("s", "web_search", "{}", origin=MADE),
        ServerToolResult("s", "web_search", result, origin=MADE),
    ]
    recovered = recover(history)
    assert recovered[0] == compaction
    assert [type(item) for item in recovered[1:]] == [Message, Message]
    assert "encrypted" not in str(recovered[2])
