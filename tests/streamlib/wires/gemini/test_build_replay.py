"""Gemini requests: order, replay, and what holds for any history."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Audio,
    Compaction,
    CustomToolCall,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    Refusal,
    Request,
    ResponseItem,
    ServerToolCall,
    Text,
    accumulate,
    parse_body,
    parse_request,
    user,
)
from streamlib_parsers.item_base import unchecked
from tests.support.gemini_builds import (
    BARE,
    CALL,
    ELSEWHERE,
    HERE,
    NEW,
    OLD,
    PNG,
    SERVER,
    TOOL,
    body,
    built,
    parts,
    turns,
)
from tests.support.shared import (
    BODIES,
    CORPUS,
    PAYLOADS,
    SHARED,
    STREAMS,
    Recording,
    each_recording,
    require,
)
from tests.support.wires import parsed

# --- order and replay ---


def test_arguments_keep_their_bytes() -> None:
    assert b'"args":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


def test_tools_and_system_come_before_contents() -> None:
    request = built(tools=[TOOL], instructions="s", tool_choice="auto", temperature=1.0)
    assert list(body(request)) == [
        "systemInstruction",
        "tools",
        "toolConfig",
        "contents",
        "generationConfig",
    ]


def test_call_without_arguments_has_an_empty_object() -> None:
    empty = FunctionCall("c", "f", "")
    assert parts(built(user("x"), empty, empty.output("y")), 1)[0]["functionCall"]["args"] == {}


@pytest.mark.parametrize("signed", [(True, False, False), (True, True, True), (False, True, False)])
def test_signatures_stay_on_their_calls(signed: tuple[bool, ...]) -> None:
    signatures = [f"s{n}" if is_signed else None for n, is_signed in enumerate(signed)]
    calls = [
        msgspec.structs.replace(BARE, call_id=f"c{n}", signature=signature, response_id="r")
        for n, signature in enumerate(signatures)
    ]
    request = built(user("x"), *calls, *(call.output("y") for call in calls))
    assert [part.get("thoughtSignature") for part in parts(request, 1)] == signatures
    assert request.report == []


def test_signed_part_is_not_merged_with_others() -> None:
    items = [
        Reasoning("hm", origin=HERE),
        Message("assistant", [Text("so")], origin=HERE, signature="s1"),
        Message("assistant", [Text("a")], origin=HERE),
        Message("assistant", [Text("b")], origin=HERE),
    ]
    assert parts(built(user("x"), *items), 1) == [
        {"text": "hm", "thought": True},
        {"text": "so", "thoughtSignature": "s1"},
        {"text": "a"},
        {"text": "b"},
    ]


@pytest.mark.parametrize("content", [(), (Text(""),)])
def test_signature_on_empty_text_is_kept(content: tuple[Text, ...]) -> None:
    end = Message("assistant", content, signature="EpoH", origin=HERE)
    request = built(user("x"), Message("assistant", [Text("so")], origin=HERE), end, user("y"))
    assert parts(request, 1) == [{"text": "so"}, {"text": "", "thoughtSignature": "EpoH"}]
    assert request.report == []


def test_signed_reasoning_keeps_its_signature() -> None:
    reasoning = Reasoning("hm", signature="s", origin=HERE)
    assert parts(built(user("x"), reasoning), 1) == [
        {"text": "hm", "thought": True, "thoughtSignature": "s"}
    ]


def test_native_is_sent_in_the_part_and_its_data() -> None:
    called = msgspec.structs.replace(
        CALL, native={"partMetadata": {"k": 1}, "functionCall": {"new": 2}}
    )
    part = parts(built(user("x"), called, CALL.output("y")), 1)[0]
    assert (part["partMetadata"], part["functionCall"]["new"], part["thoughtSignature"]) == (
        {"k": 1},
        2,
        "CiQB",
    )


def test_unknown_part_is_replayed_unchanged() -> None:
    opaque = Opaque("hologram", {"hologram": {"x": [1.0]}, "thoughtSignature": "s"}, origin=HERE)
    assert parts(built(user("x"), opaque), 1) == [opaque.payload]


def test_server_tools_are_replayed_with_their_ids_and_signatures() -> None:
    request = built(user("x"), *SERVER)
    assert parts(request, 1) == [
        {
            "executableCode": {"id": "c", "language": "PYTHON", "code": "1"},
            "thoughtSignature": "c2ln",
        },
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {
            "toolCall": {"id": "t", "toolType": "FILE_SEARCH", "args": {"q": 1.0}},
            "thoughtSignature": "c2lo",
        },
        {
            "toolResponse": {"id": "t", "toolType": "FILE_SEARCH", "response": {"result": []}},
            "thoughtSignature": "c2lp",
        },
    ]
    assert b'"args":{"q": 1.0}' in request.body
    assert body(request)["toolConfig"] == {"includeServerSideToolInvocations": True}


def test_server_tool_of_another_kind_is_text() -> None:
    foreign = ServerToolCall(
        "s", "web_search", '{"q":1}', origin=HERE, native={"type": "web_search_call"}
    )
    request = built(user("x"), foreign)
    assert parts(request, 1) == [{"text": '[web_search {"q":1}]'}]
    assert [change.action for change in request.report] == ["downgraded"]


@each_recording("gemini-generatecontent", [*STREAMS, *BODIES, *PAYLOADS])
def test_recorded_response_is_replayed_exactly(recording: Recording) -> None:
    response = accumulate(parsed(recording))
    if response.status == "failed" or not response.items:
        return
    items = [item for item in response.items if item.status == "completed"]
    request = built(user("x"), *items, *(call.output("y") for call in response.calls), user("z"))
    contents = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])["contents"]
    sent = msgspec.json.decode(contents, type=list[dict[str, msgspec.Raw]])
    again = accumulate(
        parse_body("gemini", msgspec.json.encode({"candidates": [{"content": sent[1]}]}))
    )
    assert [_replayed(item) for item in again.items] == [_replayed(item) for item in items]
    assert request.report == []


def _replayed(item: ResponseItem) -> ResponseItem:
    return msgspec.structs.replace(item, response_id=None, origin=None)


def test_each_request_begins_with_the_previous_one() -> None:
    foreign = FunctionCall("toolu_1", "f", "{}", origin=ELSEWHERE)
    history: list[ResponseItem] = [
        *(
            user("a"),
            Reasoning("hm", origin=HERE),
            CALL,
            CALL.output("1"),
            Message("assistant", [Text("b")]),
            user("c"),
        ),
        *(foreign, foreign.output([Text("2"), PNG]), Message("assistant", [Text("d")]), user("e")),
    ]
    elements = [
        _elements(built(*history[:n], tools=[TOOL], instructions="s", model=NEW))
        for n in (1, 4, 6, 8, 10)
    ]
    for shorter, longer in pairwise(elements):
        assert longer[: len(shorter)] == shorter


def _elements(request: Request) -> list[bytes]:
    sent = body(request)
    content = [(turn["role"], part) for turn in sent["contents"] for part in turn["parts"]]
    return [
        msgspec.json.encode(element)
        for element in (sent["tools"], sent["systemInstruction"], *content)
    ]


def _conversations() -> list[Any]:
    path = CORPUS / "conversations.jsonl"
    if not path.exists():
        return [
            pytest.param(
                None,
                marks=pytest.mark.skip(
                    reason=f"shared test data is absent: {path.name} in {SHARED}"
                ),
                id="absent",
            )
        ]
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [
        pytest.param(record["turns"], id=record["conversation"])
        for record in records
        if record["wire"] == "gemini-generatecontent"
    ]


@pytest.mark.parametrize("names", _conversations())
def test_recorded_conversation_continues_as_its_client_did(names: list[str]) -> None:
    """The next request is the request before, its response, and what the client added."""
    recordings = [Recording(require(CORPUS / name)) for name in names]
    for first, following in pairwise(recordings):
        before = decoded(first.meta["request_json"]).items
        after = decoded(following.meta["request_json"]).items
        response = accumulate(parsed(first))
        added = [
            item
            for item in after[len(before) :]
            if isinstance(item, FunctionCallOutput) or _is_user(item)
        ]
        calls = iter(response.calls)
        added = [
            msgspec.structs.replace(item, call_id=next(calls).call_id)
            if isinstance(item, FunctionCallOutput)
            else item
            for item in added
        ]
        made, sent = built(*before, *response.items, *added), built(*after)
        assert signed_calls(made) == signed_calls(sent)
        assert [role for role, _ in turns(made)] == [role for role, _ in turns(sent)]
        assert (
            body(made)["contents"][: len(turns(built(*before)))] == body(built(*before))["contents"]
        )


def decoded(request: Any) -> Prompt:
    return parse_request("gemini", msgspec.json.encode(request))


def _is_user(item: ResponseItem) -> bool:
    return isinstance(item, Message) and item.role == "user"


def head(signature: str) -> str:
    """The beginning of a signature: some recordings keep no more, some clients use base64url."""
    return re.sub(r"<BASE64 .*head=(.*)>", r"\1", signature).translate(str.maketrans("-_", "+/"))[
        :20
    ]


def signed_calls(request: Request) -> list[Any]:
    """Calls with what they carry, and results by name. Ids of recordings are partly redacted."""
    matches = [
        part
        for turn in body(request)["contents"]
        for part in turn["parts"]
        if {"functionCall", "functionResponse"} & part.keys()
    ]
    return [
        (
            part["functionCall"]["name"],
            part["functionCall"]["args"],
            head(part.get("thoughtSignature") or ""),
        )
        if "functionCall" in part
        else part["functionResponse"]["name"]
        for part in matches
    ]


KINDS = ["think", "signed", "text", "call"]


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=10))
def test_any_interleaving_is_replayed_in_order(kinds: list[str]) -> None:
    items: list[Any] = []
    for n, kind in enumerate(kinds):
        item_of_kind: dict[str, Any] = {
            "think": Reasoning(f"h{n}", origin=HERE, response_id="r"),
            "signed": Message(
                "assistant", [Text("")], signature=f"s{n}", origin=HERE, response_id="r"
            ),
            "text": Message("assistant", [Text(f"t{n}")], origin=HERE, response_id="r"),
            "call": FunctionCall(
                f"c{n}", "f", f'{{"n": {n}.0}}', id=f"c{n}", origin=HERE, response_id="r"
            ),
        }
        items.append(item_of_kind[kind])
    outputs = [item.output("o") for item in items if isinstance(item, FunctionCall)]
    written = parts(built(user("x"), *items, *outputs, user("y")), 1)
    markers = {
        "think": "thought",
        "signed": "thoughtSignature",
        "text": "text",
        "call": "functionCall",
    }
    for kind, part in zip(kinds, written, strict=True):
        assert markers[kind] in part


# --- any history ---

ORIGINS = [
    None,
    HERE,
    ELSEWHERE,
    Origin("gemini", "google", model="gemini-3.5-flash"),
    Origin("chat", "openai"),
]
TEXTS = [
    (),
    (Text(""),),
    (Text("a"),),
    (Text("a"), PNG),
    (Refusal("no"),),
    (Audio(transcript="hi"),),
    (unchecked(Document)(),),
]


@st.composite
def histories(draw: st.DrawFn) -> list[ResponseItem]:
    """Anything that a caller may have stored.

    Calls without results, results without calls, truncated items, state of every origin.
    """
    origin, text = st.sampled_from(ORIGINS), st.sampled_from(TEXTS)
    seal = st.sampled_from([None, "SEAL"])
    status: Any = st.sampled_from(["completed", "completed", "incomplete"])
    call_id, response = st.sampled_from(["a", "b", "c d"]), st.sampled_from([None, "r1", "r2"])
    item: Any = st.one_of(
        st.builds(
            Message,
            role=st.sampled_from(["user", "assistant", "system"]),
            content=text,
            origin=origin,
            signature=seal,
        ),
        st.builds(
            Reasoning,
            content=st.sampled_from(["", "hm"]),
            signature=seal,
            origin=origin,
            response_id=response,
        ),
        st.builds(
            FunctionCall,
            *(call_id, st.sampled_from(["f", "g g"]), st.sampled_from(["", "{}", "[1]", '{"a'])),
            status=status,
            signature=seal,
            origin=origin,
            response_id=response,
            id=st.sampled_from([None, "fc"]),
        ),
        st.builds(
            FunctionCallOutput,
            call_id=call_id,
            output=st.sampled_from(["", "x", (Text("x"), PNG)]),
            is_error=st.booleans(),
        ),
        st.builds(
            CustomToolCall, call_id, st.just("p"), st.just("x"), status=status, response_id=response
        ),
        st.sampled_from(
            [
                *SERVER,
                Opaque("hologram", {"hologram": 1}, origin=HERE),
                Compaction("so far"),
                Compaction(None, "SEAL"),
            ]
        ),
    )
    return draw(st.lists(item, max_size=12))


@given(histories(), st.sampled_from([NEW, OLD]))
def test_no_history_breaks_a_rule_of_turns(items: list[ResponseItem], model: str) -> None:
    before = msgspec.json.encode(items)
    try:
        request = built(*items, user("and?"), model=model)
    finally:
        assert msgspec.json.encode(items) == before
    contents = body(request)["contents"]
    assert {turn["role"] for turn in contents} <= {"user", "model"}
    assert all(
        turn["parts"] and all(part not in ({}, {"text": ""}) for part in turn["parts"])
        for turn in contents
    )
    assert not any(
        turn_before["role"] == turn_after["role"] == "model"
        for turn_before, turn_after in pairwise(contents)
    )
    assert not calls_of(contents[0], "functionCall")
    for turn, following in pairwise(contents):
        called, answered = calls_of(turn, "functionCall"), calls_of(following, "functionResponse")
        assert called == answered
        assert len(answered) in (0, len(following["parts"]))
        first = next((part for part in turn["parts"] if "functionCall" in part), None)
        assert first is None or model == OLD or first.get("thoughtSignature")


def calls_of(turn: dict[str, Any], member: str) -> list[tuple[str, str | None]]:
    return [
        (part[member]["name"], part[member].get("id")) for part in turn["parts"] if member in part
    ]
