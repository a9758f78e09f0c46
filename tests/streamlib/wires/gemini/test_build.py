"""Gemini requests: the rules of turns, the address and the official names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    Audio,
    FunctionCall,
    Image,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    StreamError,
    Text,
    ToolSpec,
    accumulate,
    build,
    parse_body,
    user,
)
from streamlib.wires.gemini.build import NO_SIGNATURE
from tests.support.gemini_builds import (
    BARE,
    CALL,
    ELSEWHERE,
    HERE,
    NEW,
    OLD,
    PNG,
    SEARCH,
    SERVER,
    TOOL,
    body,
    built,
    parts,
    paths,
    reasons,
    turns,
)

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
    assert ("repaired", "results are put in the order of their calls") in [
        (change.action, change.reason) for change in request.report
    ]


def test_g4_results_are_separate_from_user_text() -> None:
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
    assert "follows it as a user turn" in reasons(older)[-1]


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
    reasoning = "reasoning without text or signature"
    assert sorted(reasons(request)) == ["empty text", "empty text", reasoning]


def test_g8_system_messages_inside_a_conversation_are_user_text() -> None:
    request = built(user("x"), Message("developer", [Text("Be kind.")]))
    assert parts(request, 0)[1] == {"text": "<system>\nBe kind.\n</system>"}
    assert "no system message amid a conversation" in reasons(request)[0]


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
    assert parts(request, 1) == [
        {"mediaProcessing": {}, "thoughtSignature": "s"},
        {"thoughtSignature": "t"},
    ]
    assert reasons(request) == []
    unsigned = built(user("x"), Opaque("mediaProcessing", {"mediaProcessing": {}}))
    assert "a part without data" in reasons(unsigned)[0]


@pytest.mark.parametrize("beside", [{}, {"partMetadata": {"a": 1}}])
def test_signed_part_without_text_goes_back_unchanged(beside: dict[str, Any]) -> None:
    part = {"thought": True, "thoughtSignature": "c2ln", **beside}
    content = {"role": "model", "parts": [part, {"text": "Hi"}]}
    received = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    response = accumulate(parse_body("gemini", msgspec.json.encode(received)))
    request = built(user("x"), *response.items, user("y"))
    assert parts(request, 1) == [part, {"text": "Hi"}]
    assert reasons(request) == []


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "nonsense", "null"])
def test_arguments_are_always_an_object(arguments: str) -> None:
    call = FunctionCall("c", "f", arguments)
    request = built(user("x"), call, call.output("y"))
    assert parts(request, 1)[0]["functionCall"]["args"] == {"_raw": arguments}
    assert paths(request) == {"/input/1/arguments"}


# --- the request ---


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
