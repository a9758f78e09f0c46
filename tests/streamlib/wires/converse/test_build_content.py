"""Content of Converse requests: each rule that makes the API answer 400 is met."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    Audio,
    CacheMark,
    CacheOptions,
    Compaction,
    Document,
    FunctionCall,
    Image,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    Request,
    ServerToolCall,
    Text,
    ToolSpec,
    build,
    user,
)
from tests.support.converse_builds import (
    CALL,
    CLAUDE,
    HERE,
    KIMI,
    LLAMA,
    NEWEST,
    NOVA,
    NOVA_2,
    PDF,
    PNG,
    REDACTED,
    REPLY,
    SIGNED,
    TOOL,
    body,
    built,
    fields,
    reasons,
    turns,
)

# --- rules about content and order ---


def test_b1_calls_in_the_history_bring_their_tools() -> None:
    request = built(user("x"), CALL, CALL.output("y"))
    assert body(request)["toolConfig"] == {
        "tools": [
            {
                "toolSpec": {
                    "name": "f",
                    "inputSchema": {"json": {"type": "object", "properties": {}}},
                }
            }
        ]
    }
    assert fields(request)["tool_choice"] == {"type": "none"}
    assert [(change.action, change.path) for change in request.report] == [("generated", "/tools")]


def test_b2_blank_text_is_dropped_and_reported() -> None:
    request = built(user("hi"), Message("assistant", [Text(" \n")]), user("yo"))
    assert turns(request) == [("user", ["text", "text"])]
    assert reasons(request) == ["blank text"]


@pytest.mark.parametrize("output", ["", " ", [], [Text("")], [Image(url="https://x/y.png")]])
def test_b3_a_result_is_never_empty(output: Any) -> None:
    request = built(user("x"), CALL, CALL.output(output), tools=[TOOL])
    assert body(request)["messages"][2]["content"][0]["toolResult"]["content"] == [
        {"text": "(no output)"}
    ]
    assert "a result is never empty" in reasons(request)[-1]


def test_b4_a_conversation_starts_with_a_user_turn() -> None:
    request = built(REPLY, user("x"))
    assert body(request)["messages"][0] == {"role": "user", "content": [{"text": "."}]}
    assert [change.action for change in request.report] == ["generated"]


def test_b5_adjacent_turns_of_one_role_are_one() -> None:
    assert turns(built(user("a"), user("b"), REPLY, REPLY, user("c"))) == [
        ("user", ["text", "text"]),
        ("assistant", ["text"] * 2),
        ("user", ["text"]),
    ]


def test_b6_each_call_has_its_result_first_in_the_next_turn() -> None:
    """CASES 51."""
    other = FunctionCall("tooluse_2", "f", "{}")
    orphan = FunctionCall("gone", "f", "{}").output("lost")
    request = built(user("x"), CALL, other, user("and?"), other.output("2"), orphan, tools=[TOOL])
    assert turns(request)[1:] == [
        ("assistant", ["toolUse", "toolUse"]),
        ("user", ["toolResult", "toolResult", "text", "text", "text"]),
    ]
    assert {change.action for change in request.report} == {"generated", "repaired", "downgraded"}


def test_b7_tool_results_have_their_own_turn_for_some_models() -> None:
    mixed = built(user("x"), CALL, CALL.output("1"), user("and?"), tools=[TOOL])
    assert turns(mixed)[-1] == ("user", ["toolResult", "text"])
    split = built(user("x"), CALL, CALL.output("1"), user("and?"), tools=[TOOL], model=LLAMA)
    assert turns(split)[-3:] == [
        ("user", ["toolResult"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]


@pytest.mark.parametrize("call_id", ["functions.f:0", "a b", "x" * 80, "", "é"])
def test_b8_call_ids_fit_alike_on_call_and_result(call_id: str) -> None:
    """CASES 50."""
    call = FunctionCall(call_id, "f", "{}")
    sent = body(built(user("x"), call, call.output("y")))["messages"]
    fitted = sent[1]["content"][0]["toolUse"]["toolUseId"]
    assert fitted == sent[2]["content"][0]["toolResult"]["toolUseId"]
    assert set(fitted) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def test_b8_ids_of_kimi_are_replayed_unchanged_to_it() -> None:
    call = FunctionCall("functions.f:0", "f", "{}", origin=HERE)
    request = built(user("x"), call, call.output("y"), tools=[TOOL], model=KIMI)
    assert body(request)["messages"][1]["content"][0]["toolUse"]["toolUseId"] == "functions.f:0"
    assert request.report == []


def test_b8_ids_that_are_equal_once_cleaned_stay_distinct() -> None:
    """CASES 50."""
    first, second = FunctionCall("a.b", "f", "{}"), FunctionCall("a:b", "f", "{}")
    sent = body(built(user("x"), first, second, first.output("1"), second.output("2")))["messages"]
    ids = [block["toolUse"]["toolUseId"] for block in sent[1]["content"]]
    assert len(set(ids)) == 2
    assert ids == [block["toolResult"]["toolUseId"] for block in sent[2]["content"]]


def test_b9_tool_names_are_fitted_and_mapped_back() -> None:
    call = FunctionCall("c", "my.tool", "{}")
    request = built(
        user("x"), call, call.output("y"), tools=[ToolSpec("my.tool")], tool_choice="my.tool"
    )
    sent = body(request)
    assert request.names == {"my_tool": "my.tool"}
    assert sent["toolConfig"]["toolChoice"] == {"tool": {"name": "my_tool"}}
    assert sent["messages"][1]["content"][0]["toolUse"]["name"] == "my_tool"


def test_b10_tools_have_object_schemas_and_no_empty_text() -> None:
    request = built(
        tools=[
            ToolSpec("a"),
            ToolSpec("b", "", {"anyOf": []}),
            ToolSpec("c", "does", {"type": "object"}, True),
        ]
    )
    specs = [tool["toolSpec"] for tool in body(request)["toolConfig"]["tools"]]
    assert [spec["inputSchema"]["json"]["type"] for spec in specs] == ["object"] * 3
    assert specs[1]["inputSchema"]["json"] == {"type": "object", "anyOf": []}
    assert [spec.get("description") for spec in specs] == [None, None, "does"]
    assert specs[2]["strict"] is True
    assert [change.path for change in request.report] == ["/tools/1/schema"]


def test_b11_document_names_are_plain_and_unique() -> None:
    names = ["a.pdf", "a.pdf", "  x  y ", None, "日本", "z" * 300, "ok (1) [2]-3"]
    documents = [msgspec.structs.replace(PDF, name=name) for name in names]
    request = built(user("read", *documents))
    sent = [block["document"]["name"] for block in body(request)["messages"][0]["content"][1:]]
    assert sent == [
        "a-pdf",
        "a-pdf (2)",
        "x y",
        "document",
        "document (2)",
        "z" * 200,
        "ok (1) [2]-3",
    ]
    assert {change.action for change in request.report} == {"renamed", "generated"}


def test_b12_a_document_has_text_beside_it() -> None:
    request = built(user("", PDF))
    assert turns(request) == [("user", ["document", "text"])]
    assert turns(built(user("read", PDF))) == [("user", ["text", "document"])]
    assert [change.action for change in request.report] == ["generated"]


def test_b13_images_and_documents_are_in_user_turns_only() -> None:
    request = built(user("x"), Message("assistant", [Text("see"), PNG]), user("y"))
    assert turns(request)[1] == ("assistant", ["text"])
    assert "user turns only" in reasons(request)[0]


def test_b13_audio_of_the_model_is_sent_as_its_transcript() -> None:
    audio = Message("assistant", [Audio(data="AAAA", transcript="hello")])
    request = built(user("x"), audio, user("y"))
    assert body(request)["messages"][1]["content"] == [{"text": "hello"}]
    assert [change.action for change in request.report] == ["changed"]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (PNG, {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}),
        (
            Image(
                url="s3://bucket-1/k.gif",
                media_type="image/gif",
                native={"bucketOwner": "123456789012"},
            ),
            None,
        ),
        (
            Document(data="aGk=", media_type="text/plain", name="n"),
            {"document": {"format": "txt", "source": {"bytes": "aGk="}, "name": "n"}},
        ),
        (
            Document(data="aGk=", name="n.md"),
            {"document": {"format": "md", "source": {"bytes": "aGk="}, "name": "n-md"}},
        ),
        (
            Document(data="aGk=", media_type="text/x-python", name="n"),
            {"document": {"format": "txt", "source": {"bytes": "aGk="}, "name": "n"}},
        ),
        (
            Audio(data="AAAA", media_type="audio/mpeg"),
            {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}},
        ),
        (Audio(transcript="hello"), {"text": "hello"}),
    ],
)
def test_b13_media_of_every_format_and_source(part: Any, block: Any) -> None:
    sent = body(built(user("x", part)))["messages"][0]["content"][1]
    assert sent == (
        block
        or {
            "image": {
                "format": "gif",
                "source": {
                    "s3Location": {"uri": "s3://bucket-1/k.gif", "bucketOwner": "123456789012"}
                },
            }
        }
    )


def test_documents_keep_their_context_and_citations() -> None:
    part = msgspec.structs.replace(
        PDF, native={"context": "c", "citations": {"enabled": True}, "detail": "high"}
    )
    sent = body(built(user("x", part)))["messages"][0]["content"][1]["document"]
    assert (sent["context"], sent["citations"]) == ("c", {"enabled": True})
    assert "detail" not in sent


@pytest.mark.parametrize(
    "part",
    [
        Image(url="https://x/y.png"),
        Image(file_id="f"),
        Image(data="AAAA", media_type="image/tiff"),
        Document(url="https://x"),
    ],
)
def test_b13_unsupported_media_are_dropped_and_reported(part: Any) -> None:
    request = built(user("x", part))
    assert turns(request) == [("user", ["text"])]
    assert request.report[0].path == "/input/0"


def test_tool_results_carry_images_documents_and_json() -> None:
    parts = [Text('{"a":1}', native={"json": {"a": 1}}), PNG, PDF]
    content = body(built(user("x"), CALL, CALL.output(parts)))["messages"][2]["content"][0][
        "toolResult"
    ]["content"]
    assert [next(iter(block)) for block in content] == ["json", "image", "document"]


def test_b15_reasoning_is_replayed_to_claude_only() -> None:
    for model, members in (
        (CLAUDE, ["reasoningContent"] * 2 + ["text"]),
        (NOVA_2, ["text"]),
        (LLAMA, ["text"]),
    ):
        request = built(user("x"), SIGNED, REDACTED, REPLY, user("y"), model=model)
        assert turns(request)[1] == ("assistant", members)
        assert len(request.report) == 3 - len(members)


def test_b15_kimi_gets_its_reasoning_as_text() -> None:
    content = body(built(user("x"), Reasoning("hm", origin=HERE), REPLY, user("y"), model=KIMI))[
        "messages"
    ][1]["content"]
    assert content[0] == {"text": "<think>\nhm\n</think>"}


def test_t10_unsigned_reasoning_is_text_for_claude() -> None:
    unsigned = Reasoning("hm", origin=HERE)
    assert turns(built(user("x"), unsigned, user("y")))[1] == ("assistant", ["text"])


def test_t10_unsigned_reasoning_is_kept_for_local_servers() -> None:
    prompt = Prompt([user("x"), Reasoning("hm", origin=HERE), REPLY, user("y")])
    request = build(prompt, "custom:any", wire_api="converse", base_url="http://x")
    assert turns(request)[1] == ("assistant", ["reasoningContent", "text"])


def test_b18_the_status_of_a_result_is_sent_by_family() -> None:
    for model, status in ((CLAUDE, "error"), (NOVA, "error"), (LLAMA, None)):
        request = built(
            user("x"), CALL, CALL.output("no", is_error=True), tools=[TOOL], model=model
        )
        assert body(request)["messages"][2]["content"][0]["toolResult"].get("status") == status
        assert [change.path for change in request.report] == (
            [] if status else ["/input/2/is_error"]
        )
    assert (
        "status"
        not in body(built(user("x"), CALL, CALL.output("yes")))["messages"][2]["content"][0][
            "toolResult"
        ]
    )


def test_b20_a_final_assistant_text_does_not_end_in_blanks() -> None:
    assert body(built(user("x"), Message("assistant", [Text("so \n")])))["messages"][1][
        "content"
    ] == [{"text": "so"}]


def test_b21_the_system_prompt_is_user_text_for_some_models() -> None:
    request = built(instructions="Be terse.", model="amazon.titan-text-express-v1")
    assert "system" not in body(request)
    assert body(request)["messages"][0]["content"] == [{"text": "Be terse."}, {"text": "hi"}]
    assert "the model takes no system prompt" in reasons(request)[0]


def test_a13_models_without_prefill_get_a_user_turn_last() -> None:
    request = built(user("x"), REPLY, model="us.anthropic.claude-opus-4-6")
    assert turns(request)[-1] == ("user", ["text"])
    assert [change.action for change in request.report] == ["generated"]


def test_a14_a_request_does_not_end_with_reasoning() -> None:
    model = NEWEST.replace("opus-5", "3-7-sonnet")
    request = built(user("x"), REPLY, SIGNED, model=model, reasoning="low")
    assert turns(request)[-2:] == [("assistant", ["text"]), ("user", ["text"])]


def test_a15_earlier_server_call_without_result_is_dropped() -> None:
    call = ServerToolCall("s1", "nova_grounding", "{}", origin=HERE)
    request = built(user("x"), call, REPLY, user("y"), REPLY, user("w"), model=NOVA_2)
    assert turns(request)[1] == ("assistant", ["text"])
    assert "without its result" in reasons(request)[0]


def test_a17_system_messages_within_the_conversation() -> None:
    inside = [user("x"), REPLY, Message("system", [Text("Be kind.")])]
    assert turns(built(*inside, model=NEWEST))[-1] == ("system", ["text"])
    older = built(*inside)
    assert turns(older)[-1] == ("user", ["text"])
    assert "no system message here" in reasons(older)[0]
    assert turns(built(*inside, model=NOVA))[-1] == ("user", ["text"])


def test_leading_system_messages_join_the_instructions() -> None:
    sent = body(built(Message("developer", [Text("two")]), user("x"), instructions="one"))
    assert sent["system"] == [{"text": "one"}, {"text": "two"}]


@pytest.mark.parametrize(
    ("foreign", "members"),
    [
        (Reasoning("hm", signature="s", origin=Origin("messages")), ["text"]),
        (
            Reasoning(
                "hm",
                signature="s",
                origin=Origin("converse", "bedrock", model="us.anthropic.claude-sonnet-5"),
            ),
            ["text"],
        ),
        (Reasoning(encrypted_content="gAAA", origin=Origin("responses")), []),
        (Reasoning(redacted=True, encrypted_content="Emw", origin=Origin("converse", "other")), []),
        (ServerToolCall("s", "web_search", "{}", origin=Origin("responses")), ["text"]),
        (Opaque("computer_call", {"type": "computer_call"}, origin=Origin("responses")), []),
    ],
)
def test_state_of_another_origin_is_downgraded_and_reported(
    foreign: Any, members: list[str]
) -> None:
    request = built(user("x"), foreign, user("y"))
    sent = []
    for role, sent_members in turns(request):
        if role == "assistant":
            sent.extend(sent_members)
    assert sent == members
    assert [change.action for change in request.report] == ["downgraded" if members else "dropped"]
    assert b"gAAA" not in request.body
    assert b"Emw" not in request.body


def test_a_compaction_without_origin_is_user_text() -> None:
    request = built(Compaction("before that"), user("x"))
    assert turns(request) == [("user", ["text", "text"])]
    assert [change.action for change in request.report] == ["downgraded"]


# --- caching ---


def points(request: Request) -> list[str]:
    """The lists with cache points: `tools`, `system`, or the index of a turn."""
    sent = body(request)
    lists = {
        "tools": sent.get("toolConfig", {}).get("tools", []),
        "system": sent.get("system", []),
    }
    for index, turn in enumerate(sent["messages"]):
        lists[str(index)] = turn["content"]
    positions = []
    for position, blocks in lists.items():
        positions.extend(position for block in blocks if "cachePoint" in block)
    return positions


def test_b14_auto_marks_tools_system_and_the_last_turn() -> None:
    settings = {"instructions": "s", "tools": [TOOL], "cache": "auto"}
    assert points(built(user("a"), REPLY, user("b"), **settings)) == ["tools", "system", "2"]
    assert points(built(user("a"), REPLY, user("b"), model=NOVA, **settings)) == ["system", "2"]
    refused = built(user("a"), model=LLAMA, **settings)
    assert points(refused) == []
    assert [change.path for change in refused.report] == ["/cache"]


def test_b14_at_most_four_breakpoints_each_after_its_item() -> None:
    history = [
        Message("system", [Text("s")]),
        user("a"),
        REPLY,
        user("b"),
        SIGNED,
        REPLY,
        user("c"),
    ]
    request = built(*history, cache=CacheOptions("1h", range(7)))
    assert points(request) == [
        "2",
        "3",
        "4",
    ]  # reasoning and reply are one turn: behind the reply, none behind the reasoning
    assert body(request)["messages"][2]["content"][-1] == {
        "cachePoint": {"type": "default", "ttl": "1h"}
    }
    assert points(built(*history, cache=CacheOptions(None, [0]))) == ["system"]


def test_b14_points_of_instructions_and_tools_count() -> None:
    turns = [user("a"), REPLY, user("b"), REPLY, user("c"), REPLY, user("d")]
    cache = CacheOptions(None, range(7), instructions=CacheMark())
    request = built(*turns, cache=cache, instructions="s")
    assert points(request) == ["system", "4", "5", "6"]
    own = ToolSpec("x", native={"cachePoint": {"type": "default"}}, native_wire="converse")
    request = built(*turns, cache=cache, instructions="s", tools=[TOOL, own])
    assert points(request) == ["tools", "system", "5", "6"]


def test_b14_no_cache_point_directly_after_a_document() -> None:
    request = built(user("read", PDF), cache="auto")
    assert turns(request) == [("user", ["text", "cachePoint", "document"])]


def test_b14_an_unknown_lifetime_is_dropped_and_reported() -> None:
    request = built(cache=CacheOptions("24h"))
    assert body(request)["messages"][0]["content"][-1] == {"cachePoint": {"type": "default"}}
    assert [change.path for change in request.report] == ["/cache/ttl"]
