"""Gemini requests: every rule of the API is met, changes are reported, history is replayed."""

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
    CacheOptions,
    Compaction,
    CustomToolCall,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    ReasoningOptions,
    Refusal,
    Request,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    StreamError,
    Text,
    ToolSpec,
    accumulate,
    build,
    parse_body,
    parse_request,
    user,
)
from streamlib.wires.gemini.build import NO_SIGNATURE
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

HERE = Origin("gemini")
ELSEWHERE = Origin("messages", "anthropic")
CALL = FunctionCall(
    "fc1", "f", '{"b": 1.0, "a": [1e5]}', id="fc1", signature="CiQB", origin=HERE, response_id="r1"
)
BARE = FunctionCall("call_0", "f", "{}", origin=HERE, response_id="r1")
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
SEARCH = ToolSpec("google_search", native={"googleSearch": {}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/jpeg")
NEW, OLD, PRO = "google:gemini-3.5-flash", "google:gemini-2.5-flash", "google:gemini-2.5-pro"


def built(*items: ResponseItem, model: str = "custom:any", **settings: Any) -> Request:
    target = {"wire_api": "gemini", "base_url": "http://x"} if model.startswith("custom:") else {}
    prompt = Prompt(input=items or (user("hi"),), **settings)
    return build(prompt, model, **target)  # type: ignore[arg-type]


def body(request: Request) -> dict[str, Any]:
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def turns(request: Request) -> list[tuple[str, list[str]]]:
    """Role and the first member of each part."""
    return [
        (turn["role"], [next(iter(part)) for part in turn["parts"]])
        for turn in body(request)["contents"]
    ]


def parts(request: Request, turn: int) -> list[dict[str, Any]]:
    return body(request)["contents"][turn]["parts"]  # type: ignore[no-any-return]


def config(request: Request) -> dict[str, Any]:
    return body(request).get("generationConfig", {})  # type: ignore[no-any-return]


def reasons(request: Request) -> list[str]:
    return [change.reason for change in request.report]


def paths(request: Request) -> set[str]:
    return {change.path for change in request.report}


# --- order and replay ---


def test_arguments_keep_their_bytes() -> None:
    assert b'"args":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


def test_tools_and_system_stand_before_contents() -> None:
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


SERVER = [
    ServerToolCall(
        "c",
        "code_execution",
        '{"language":"PYTHON","code":"1"}',
        id="c",
        signature="c2ln",
        native={"type": "executableCode"},
        origin=HERE,
    ),
    ServerToolResult(
        "c",
        "code_execution",
        {"outcome": "OUTCOME_OK"},
        native={"type": "codeExecutionResult"},
        origin=HERE,
    ),
    ServerToolCall(
        "t",
        "FILE_SEARCH",
        '{"q": 1.0}',
        id="t",
        signature="c2lo",
        native={"type": "toolCall"},
        origin=HERE,
    ),
    ServerToolResult(
        "t",
        "FILE_SEARCH",
        {"result": []},
        id="t",
        native={"type": "toolResponse"},
        signature="c2lp",
        origin=HERE,
    ),
]


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
    (Document(),),
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


# --- turns ---


def test_g1_adjacent_model_turns_are_joined() -> None:
    request = built(user("x"), Message("assistant", [Text("so")]), CALL, CALL.output("y"))
    assert turns(request) == [
        ("user", ["text"]),
        ("model", ["text", "functionCall"]),
        ("user", ["functionResponse"]),
    ]


def test_g1_history_that_begins_with_a_call_gets_a_user_turn() -> None:
    request = built(CALL, CALL.output("y"))
    assert turns(request)[0] == ("user", ["text"])
    assert [(change.action, change.path) for change in request.report] == [("generated", "/input")]


def test_g2_calls_and_results_without_each_other() -> None:
    lost = FunctionCall("gone", "f", "{}").output("lost")
    request = built(user("x"), CALL, lost, user("y"))
    assert turns(request) == [
        ("user", ["text"]),
        ("model", ["functionCall"]),
        ("user", ["functionResponse"]),
        ("user", ["text", "text", "text"]),
    ]
    assert parts(request, 2)[0]["functionResponse"]["response"] == {
        "error": "The call was interrupted: it gave no result."
    }
    assert [change.action for change in request.report] == ["downgraded", "generated"]


def test_g3_results_follow_the_order_of_their_calls() -> None:
    other = FunctionCall("fc2", "g", "{}", id="fc2", origin=HERE, response_id="r1")
    third = FunctionCall("fc3", "h", "{}", origin=HERE, response_id="r1")
    request = built(
        user("x"), CALL, other, third, third.output("3"), other.output("2"), user("go on")
    )
    names = [part["functionResponse"]["name"] for part in parts(request, 2)]
    assert names == ["f", "g", "h"]
    assert ("repaired", "results stand in the order of their calls (G3)") in [
        (change.action, change.reason) for change in request.report
    ]


def test_g4_results_stand_apart_from_user_text() -> None:
    request = built(user("x"), CALL, CALL.output("1"), user("and?"))
    assert turns(request)[2:] == [("user", ["functionResponse"]), ("user", ["text"])]


def test_g4_media_of_a_result_is_in_it_or_follows_it() -> None:
    other = FunctionCall("fc2", "g", "{}", response_id="r1", origin=HERE)
    history = [user("x"), CALL, other, CALL.output([Text("see"), PNG]), other.output("2")]
    newer, older = built(*history, model=NEW), built(*history, model=OLD)
    assert parts(newer, 2)[0]["functionResponse"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    ]
    assert turns(newer)[2:] == [("user", ["functionResponse", "functionResponse"])]
    assert turns(older)[2:] == [
        ("user", ["functionResponse", "functionResponse"]),
        ("user", ["inlineData"]),
    ]
    assert "(G4, G20)" in reasons(older)[-1]


def test_g20_types_that_a_result_cannot_hold_follow_it() -> None:
    request = built(
        user("x"), CALL, CALL.output([Audio(data="AA==", media_type="audio/wav")]), model=NEW
    )
    assert turns(request)[2:] == [("user", ["functionResponse"]), ("user", ["inlineData"])]


def test_result_of_media_alone_has_no_text() -> None:
    response = parts(built(user("x"), CALL, CALL.output([PNG])), 2)[0]["functionResponse"]
    assert (response["response"], len(response["parts"])) == ({}, 1)


def test_g5_first_foreign_call_of_each_step_gets_the_stand_in() -> None:
    first, second = (
        FunctionCall(f"toolu_{n}", "f", "{}", signature="EqQB", origin=ELSEWHERE, response_id="r")
        for n in (1, 2)
    )
    later = FunctionCall("toolu_3", "f", "{}", origin=ELSEWHERE, response_id="r2")
    request = built(
        user("x"),
        first,
        second,
        first.output("1"),
        second.output("2"),
        later,
        later.output("3"),
        model=NEW,
    )
    assert [part.get("thoughtSignature") for part in parts(request, 1)] == [NO_SIGNATURE, None]
    assert parts(request, 3)[0]["thoughtSignature"] == NO_SIGNATURE
    assert [change.path for change in request.report if change.action == "generated"] == [
        "/input/1/signature",
        "/input/5/signature",
    ]
    assert b"EqQB" not in request.body


def test_g5_the_stand_in_is_the_documented_one() -> None:
    assert msgspec.convert(NO_SIGNATURE, bytes) == b"skip_thought_signature_validator"


def test_g5_real_signatures_and_older_models_get_no_stand_in() -> None:
    assert built(user("x"), CALL, CALL.output("y"), model=NEW).report == []
    assert (
        "thoughtSignature" not in parts(built(user("x"), BARE, BARE.output("y"), model=OLD), 1)[0]
    )


@pytest.mark.parametrize(
    "other",
    [
        Origin("gemini", "vertex"),
        Origin("gemini", "google", model="gemini-3.1-pro-preview"),
        Origin("chat", "google"),
    ],
)
def test_g6_signature_of_another_backend_or_model_is_never_sent(other: Origin) -> None:
    foreign = msgspec.structs.replace(CALL, origin=other)
    request = built(user("x"), foreign, foreign.output("y"), model=NEW)
    assert b"CiQB" not in request.body
    assert parts(request, 1)[0]["thoughtSignature"] == NO_SIGNATURE


def test_g7_empty_text_is_dropped_and_reported() -> None:
    request = built(
        user("hi", Text("")), Message("assistant", [Text("")]), Reasoning(""), user("yo")
    )
    assert turns(request) == [("user", ["text", "text"])]
    assert len(reasons(request)) == 3
    assert all("(G7)" in reason for reason in reasons(request))


def test_g8_system_messages_inside_a_conversation_are_user_text() -> None:
    request = built(user("x"), Message("developer", [Text("Be kind.")]))
    assert parts(request, 0)[1] == {"text": "<system>\nBe kind.\n</system>"}
    assert "(G8)" in reasons(request)[0]


def test_leading_system_messages_join_the_instructions() -> None:
    sent = body(built(Message("developer", [Text("two")]), user("x"), instructions="one"))
    assert sent["systemInstruction"] == {"parts": [{"text": "one"}, {"text": "two"}]}


def test_g9_only_ids_of_the_provider_are_sent() -> None:
    request = built(user("x"), CALL, BARE, CALL.output("1"), BARE.output("2"))
    assert [part["functionCall"].get("id") for part in parts(request, 1)] == ["fc1", None]
    assert [part["functionResponse"].get("id") for part in parts(request, 2)] == ["fc1", None]


def test_g14_names_are_fitted_and_mapped_back() -> None:
    call = FunctionCall("c", "1 f", "{}")
    request = built(user("x"), call, call.output("y"), tools=[ToolSpec("1 f")], tool_choice="1 f")
    assert request.names == {"_1_f": "1 f"}
    assert parts(request, 2)[0]["functionResponse"]["name"] == "_1_f"
    assert body(request)["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == ["_1_f"]


def test_g21_g22_results_are_objects_whose_text_stays_text() -> None:
    text = '{"$ref": "part"}'
    request = built(
        user("x"), CALL, BARE, CALL.output(text), BARE.output([Text("a"), Text("b")], is_error=True)
    )
    assert [part["functionResponse"]["response"] for part in parts(request, 2)] == [
        {"output": text},
        {"error": "a\nb"},
    ]


def test_g25_part_without_data_is_dropped_lone_signature_kept() -> None:
    unusual = [
        Opaque("mediaProcessing", {"mediaProcessing": {}, "thoughtSignature": "s"}),
        Opaque("thoughtSignature", {"thoughtSignature": "t"}),
    ]
    request = built(user("x"), *unusual)
    assert parts(request, 1) == [{"thoughtSignature": "t"}]
    assert "(G25)" in reasons(request)[0]


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "nonsense", "null"])
def test_arguments_are_always_an_object(arguments: str) -> None:
    call = FunctionCall("c", "f", arguments)
    request = built(user("x"), call, call.output("y"))
    assert parts(request, 1)[0]["functionCall"]["args"] == {"_raw": arguments}
    assert paths(request) == {"/input/1/arguments"}


# --- content ---


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (PNG, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
        (
            Image(url="https://x/y.webp?a=1"),
            {"fileData": {"mimeType": "image/webp", "fileUri": "https://x/y.webp?a=1"}},
        ),
        (
            Image(url="data:image/gif;base64,R0lGOD"),
            {"inlineData": {"mimeType": "image/gif", "data": "R0lGOD"}},
        ),
        (Image(file_id="files/1"), {"fileData": {"fileUri": "files/1"}}),
        (
            Document(url="gs://b/v", media_type="video/mp4"),
            {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v"}},
        ),
        (
            Document(data="aGk=", media_type="text/plain"),
            {"inlineData": {"mimeType": "text/plain", "data": "aGk="}},
        ),
        (Audio(data="SUQz"), {"inlineData": {"mimeType": "audio/mpeg", "data": "SUQz"}}),
        (Audio(transcript="hi"), {"text": "hi"}),
        (
            Document(
                data="AA==",
                media_type="video/mp4",
                native={"videoMetadata": {"fps": 1}, "inlineData": {"x": 2}},
            ),
            {
                "inlineData": {"mimeType": "video/mp4", "data": "AA==", "x": 2},
                "videoMetadata": {"fps": 1},
            },
        ),
        (Refusal("no"), {"text": "no"}),
    ],
)
def test_images_documents_and_audio_in_every_form(part: Any, sent: dict[str, Any]) -> None:
    assert parts(built(user("x", part)), 0)[1] == sent


def test_file_names_are_sent_if_the_provider_takes_them() -> None:
    document = user("x", Document(data="JVBERi0=", name="a.pdf"))
    assert parts(built(document), 0)[1]["inlineData"]["displayName"] == "a.pdf"
    refused = built(document, model=NEW)
    assert "displayName" not in parts(refused, 0)[1]["inlineData"]
    assert paths(refused) == {"/input/0/content/1/name"}


def test_images_of_the_model_are_replayed_signed() -> None:
    made = Message("assistant", [PNG], signature="s", origin=HERE)
    assert parts(built(user("x"), made), 1) == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "s"}
    ]


def test_free_form_call_is_sent_as_one_string() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    request = built(
        user("x"), call, call.output("ok"), tools=[ToolSpec("patch", format={"type": "text"})]
    )
    assert parts(request, 1)[0]["functionCall"]["args"] == {"input": "*** Begin"}
    assert body(request)["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"][
        "required"
    ] == ["input"]


@pytest.mark.parametrize(
    ("foreign", "sent"),
    [
        (Reasoning("hm", signature="EqQB", origin=ELSEWHERE), [{"text": "<think>\nhm\n</think>"}]),
        (Reasoning(encrypted_content="gAAA", origin=Origin("responses")), []),
        (
            Message(
                "assistant", [Text("so", [{"type": "cite"}])], signature="EqQB", origin=ELSEWHERE
            ),
            [{"text": "so"}],
        ),
        (
            ServerToolCall("s", "web_search", "{}", origin=Origin("responses")),
            [{"text": "[web_search {}]"}],
        ),
        (Opaque("computer_call", {"type": "computer_call"}, origin=Origin("responses")), []),
        (Compaction(None, "gAAA"), []),
    ],
)
def test_foreign_state_is_downgraded_and_reported(foreign: Any, sent: list[Any]) -> None:
    request = built(user("x"), foreign, user("y"), model=NEW)
    assert [
        part
        for turn in body(request)["contents"]
        if turn["role"] == "model"
        for part in turn["parts"]
    ] == sent
    assert [change.action for change in request.report] == ["downgraded" if sent else "dropped"]
    assert b"EqQB" not in request.body
    assert b"gAAA" not in request.body


def test_readable_compaction_is_user_text() -> None:
    request = built(Compaction("We spoke of x."), user("y"))
    assert parts(request, 0)[0] == {"text": "We spoke of x."}
    assert [change.action for change in request.report] == ["downgraded"]


# --- tools ---


def test_functions_are_one_tool_and_hosted_tools_separate() -> None:
    sent = body(
        built(tools=[SEARCH, TOOL, ToolSpec("g"), ToolSpec("url", native={"urlContext": {}})])
    )["tools"]
    assert [next(iter(tool)) for tool in sent] == [
        "googleSearch",
        "functionDeclarations",
        "urlContext",
    ]
    assert sent[1]["functionDeclarations"] == [
        {
            "name": "f",
            "description": "does f",
            "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
        {"name": "g"},
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        ("f", {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ],
)
def test_tool_choice_in_the_wires_terms(choice: str, sent: dict[str, Any]) -> None:
    assert (
        body(built(tools=[TOOL], tool_choice=choice))["toolConfig"]["functionCallingConfig"] == sent
    )


@pytest.mark.parametrize("tools", [[], [SEARCH]])
def test_g15_no_function_calling_config_without_functions(tools: list[ToolSpec]) -> None:
    request = built(tools=tools, tool_choice="required")
    assert "toolConfig" not in body(request)
    assert "(G15)" in reasons(request)[0]
    assert built(tools=tools, tool_choice="auto").report == []


def test_g16_cached_content_stands_alone() -> None:
    request = built(
        tools=[TOOL],
        tool_choice="auto",
        instructions="s",
        extra={"cachedContent": "cachedContents/1"},
    )
    assert body(request).keys() == {"contents", "cachedContent"}
    assert paths(request) == {"/tools", "/tool_choice", "/instructions"}


def test_g17_hosted_tools_beside_functions() -> None:
    assert body(built(tools=[TOOL, SEARCH], model=NEW))["toolConfig"] == {
        "includeServerSideToolInvocations": True
    }
    older = built(tools=[TOOL, SEARCH], model=OLD)
    assert [next(iter(tool)) for tool in body(older)["tools"]] == ["functionDeclarations"]
    assert paths(older) == {"/tools/1"}
    assert "googleSearch" in body(built(tools=[SEARCH], model=OLD))["tools"][0]


def test_g17_vertex_does_not_know_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    request = built(tools=[TOOL, SEARCH], model="vertex:gemini-3.5-flash")
    assert "toolConfig" not in body(request)
    assert request.report == []


def test_g12_refused_schema_keywords_move_and_are_reported() -> None:
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {
            "const": {"const": "a"},
            "n": {"type": "integer", "exclusiveMinimum": 3, "description": "count"},
            "mail": {"type": ["string", "null"], "format": "email"},
            "day": {"anyOf": [{"type": "string", "format": "date"}, {"examples": [1]}]},
        },
    }
    request = built(tools=[ToolSpec("f", schema=schema)])
    assert body(request)["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == {
        "type": "object",
        "properties": {
            "const": {"enum": ["a"]},
            "n": {"type": "integer", "description": "count (exclusiveMinimum: 3)"},
            "mail": {"type": ["string", "null"], "description": "(format: email)"},
            "day": {
                "anyOf": [{"type": "string", "format": "date"}, {"description": "(examples: [1])"}]
            },
        },
    }
    under = "/tools/0/schema/properties"
    assert paths(request) == {f"{under}/n", f"{under}/mail", f"{under}/day/anyOf/1"}


@pytest.mark.parametrize(
    "schema", [None, {}, {"type": "object"}, {"type": "object", "properties": {}, "required": []}]
)
def test_g13_function_without_arguments_has_no_parameters(schema: Any) -> None:
    assert body(built(tools=[ToolSpec("f", schema=schema)]))["tools"] == [
        {"functionDeclarations": [{"name": "f"}]}
    ]


def test_parameters_are_an_object() -> None:
    request = built(tools=[ToolSpec("f", schema={"anyOf": [{"type": "object"}]})])
    assert (
        body(request)["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["type"]
        == "object"
    )
    assert paths(request) == {"/tools/0/schema"}


def test_unsupported_tool_settings_are_reported() -> None:
    assert paths(built(tools=[ToolSpec("f", strict=True)], parallel_tools=False)) == {
        "/tools/0/strict",
        "/parallel_tools",
    }


# --- settings ---


@pytest.mark.parametrize(
    ("model", "reasoning", "thinking", "reported"),
    [
        ("gemini-3.5-flash", "high", {"includeThoughts": True, "thinkingLevel": "HIGH"}, False),
        ("gemini-3.5-flash", "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}, True),
        ("gemini-3.5-flash", "off", {"thinkingLevel": "MINIMAL"}, True),
        ("gemini-3.5-flash", 0, {"thinkingLevel": "MINIMAL"}, True),
        ("gemini-3.5-flash", 3000, {"includeThoughts": True, "thinkingLevel": "MEDIUM"}, True),
        ("gemini-3.5-flash", -1, {"includeThoughts": True}, False),
        (
            "gemini-3.1-pro-preview",
            "minimal",
            {"includeThoughts": True, "thinkingLevel": "LOW"},
            True,
        ),
        ("gemini-3.1-pro-preview", "off", {"thinkingLevel": "LOW"}, True),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}, False),
        ("gemini-2.5-flash", "medium", {"includeThoughts": True, "thinkingBudget": 10_000}, False),
        ("gemini-2.5-flash", "max", {"includeThoughts": True, "thinkingBudget": 24_576}, False),
        ("gemini-2.5-flash", -1, {"includeThoughts": True, "thinkingBudget": -1}, False),
        ("gemini-2.5-flash", 99_999, {"includeThoughts": True, "thinkingBudget": 24_576}, True),
        ("gemini-2.5-pro", "off", {"thinkingBudget": 128}, True),
        ("gemini-2.5-pro", 1, {"includeThoughts": True, "thinkingBudget": 128}, True),
        ("gemini-2.5-flash-image", "high", None, True),
        ("gemini-2.0-flash", "high", None, True),
        ("gemma-3-27b-it", "low", None, True),
        (
            "gemini-3.5-flash",
            ReasoningOptions("low", display="omitted"),
            {"thinkingLevel": "LOW"},
            False,
        ),
        ("gemini-3.5-flash", ReasoningOptions(), {"includeThoughts": True}, False),
        (
            "gemini-3.5-flash",
            ReasoningOptions("low", 5000),
            {"includeThoughts": True, "thinkingLevel": "LOW"},
            True,
        ),
        (
            "gemini-2.5-flash",
            ReasoningOptions("low", 5000),
            {"includeThoughts": True, "thinkingBudget": 5000},
            True,
        ),
        (
            "a-model-of-tomorrow",
            "xhigh",
            {"includeThoughts": True, "thinkingLevel": "XHIGH"},
            False,
        ),
        ("a-model-of-tomorrow", 5000, {"includeThoughts": True, "thinkingBudget": 5000}, False),
        ("a-model-of-tomorrow", "off", {"thinkingBudget": 0}, False),
    ],
)
def test_g10_g11_each_model_gets_the_form_of_thinking_it_takes(
    model: str, reasoning: Any, thinking: Any, reported: bool
) -> None:
    request = built(reasoning=reasoning, model=f"google:{model}")
    assert config(request).get("thinkingConfig") == thinking
    assert bool(request.report) is reported
    assert all(path.startswith("/reasoning") for path in paths(request))


def test_g18_output_schema_beside_tools() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    newer, older = (built(tools=[TOOL], output_schema=schema, model=model) for model in (NEW, OLD))
    assert config(newer) == {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert config(older) == {}
    assert paths(older) == {"/output_schema"}
    assert "responseJsonSchema" in config(built(output_schema=schema, model=OLD))


def test_g23_sampling_only_for_models_that_take_it() -> None:
    settings = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
    }
    assert config(built(**settings, model=PRO)) == {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 3,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
    }
    assert paths(built(**settings, model=NEW)) == {"/presence_penalty", "/frequency_penalty"}
    assert paths(built(**settings, model="google:gemini-3.6-flash")) == {
        f"/{name}" for name in settings
    }


def test_g24_at_most_five_stop_sequences() -> None:
    request = built(stop=["", *"abcdef"])
    assert config(request)["stopSequences"] == ["a", "b", "c", "d", "e"]
    assert "(G24)" in reasons(request)[0]


def test_plain_settings_have_their_wire_names() -> None:
    request = built(
        seed=7, n=2, max_output_tokens=9, logprobs=3, service_tier="flex", metadata={"team": "a"}
    )
    assert config(request) == {
        "seed": 7,
        "candidateCount": 2,
        "maxOutputTokens": 9,
        "responseLogprobs": True,
        "logprobs": 3,
    }
    assert (body(request)["serviceTier"], body(request)["labels"]) == ("flex", {"team": "a"})
    assert request.report == []
    assert config(built(logprobs=0)) == {"responseLogprobs": True}


def test_settings_the_wire_lacks_are_reported() -> None:
    request = built(
        verbosity="low", user_id="u", cache=CacheOptions("1h"), metadata={"team": "a"}, model=NEW
    )
    assert paths(request) == {"/verbosity", "/user_id", "/cache", "/metadata"}
    assert built(cache="auto", conversation_id="c").report == []


def test_extra_is_merged_over_the_body() -> None:
    extra = {
        "safetySettings": [],
        "generationConfig": {"responseModalities": ["IMAGE"]},
        "toolConfig": {"retrievalConfig": {}},
    }
    sent = body(built(temperature=0.5, tools=[TOOL], tool_choice="auto", extra=extra))
    assert sent["generationConfig"] == {"temperature": 0.5, "responseModalities": ["IMAGE"]}
    assert sent["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}, "retrievalConfig": {}}
    assert sent["safetySettings"] == []


# --- the request ---


def test_empty_input_is_an_invalid_request() -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt(), NEW)
    assert caught.value.kind == "invalid_request"


def test_g27_developer_api_url_is_v1beta() -> None:
    path = "/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
    assert built(model=NEW).url == f"https://generativelanguage.googleapis.com{path}"


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_urls_of_vertex(location: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", location)
    gemini, claude = (
        built(model="vertex:gemini-3.5-flash"),
        built(model="vertex-anthropic:claude-opus-5"),
    )
    resource = f"projects/my-project/locations/{location}/publishers"
    path = f"{resource}/google/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
    assert gemini.url == f"https://{host}/v1beta1/{path}"
    assert (
        claude.url
        == f"https://{host}/v1/{resource}/anthropic/models/claude-opus-5:streamRawPredict"
    )
    assert ("model" in body(claude), body(claude)["anthropic_version"], claude.report) == (
        False,
        "vertex-2023-10-16",
        [],
    )


@pytest.mark.parametrize("project", [None, "", "a/b", "a b", "@evil"])
def test_vertex_without_a_project_names_what_it_needs(
    project: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    if project is not None:
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project)
    with pytest.raises(StreamError, match="project") as caught:
        built(model="vertex:gemini-3.5-flash")
    assert caught.value.kind == "invalid_request"


def test_given_base_url_needs_no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    request = build(
        Prompt(input="x"),
        "vertex:gemini-3.5-flash",
        base_url="https://aiplatform.googleapis.com/v1/publishers/google",
    )
    assert request.url.startswith("https://aiplatform.googleapis.com/v1/publishers/google/models/")


def test_official_sdk_knows_every_name_sent() -> None:
    types = pytest.importorskip(
        "google.genai.types",
        reason="the official SDK checks the names; it comes with the dev extra",
    )
    items = [
        user("x", PNG, Image(url="https://x/y.png")),
        Reasoning("hm", origin=HERE),
        CALL,
        CALL.output([Text("a"), PNG]),
        *SERVER,
    ]
    request = built(
        *items,
        tools=[TOOL, SEARCH],
        tool_choice="f",
        reasoning="high",
        output_schema={"type": "object"},
        n=2,
        logprobs=1,
    )
    sent = body(request)
    for content in sent["contents"]:
        types.Content.model_validate(content)
    for tool in sent["tools"]:
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(sent["toolConfig"])
    types.GenerationConfig.model_validate(sent["generationConfig"])
