"""A recorded Converse request decodes into a `Prompt` that builds the same request again."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest

from streamlib import (
    CacheMark,
    CacheOptions,
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
    Text,
    build,
    parse_request,
)
from streamlib.providers.models import Traits, traits
from tests.support.bedrock_readers import request_of, validated
from tests.support.cases import each_case
from tests.support.shared import BODIES, PAYLOADS, STREAMS, Recording, each_recording

MODEL = "us.anthropic.claude-opus-4-6"
PATH = "/model/us.anthropic.claude-opus-4-6/converse-stream"
EXPLAINED = {
    "additionalModelResponseFieldPaths": "added by the builder: reasoning usage, stop sequences",
    "outputConfig": "the schema is JSON text, with other blanks",
}
"""Settings that may differ, and why."""


def decoded(request: Any, path: str = PATH) -> Prompt:
    return parse_request("converse", json.dumps(request).encode(), path=path)


def rebuilt(prompt: Prompt, models: dict[str, Traits] | None = None) -> dict[str, Any]:
    request = build(
        prompt,
        prompt.model or MODEL,
        provider="custom",
        wire_api="converse",
        base_url="http://x",
        models=models,
    )
    return validated(request)


def plain(value: Any) -> Any:
    """Without keys that mean the same as no key, and without cache points.

    A `Prompt` knows only those behind items.
    """
    if isinstance(value, list):
        return [plain(inner) for inner in value if not is_cache_point(inner)]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, inner in value.items():
        plain_inner = plain(inner)
        if (key, inner) != ("status", "success") and plain_inner not in (None, [], {}):
            result[key] = plain_inner
    return result


def is_cache_point(value: Any) -> bool:
    return isinstance(value, dict) and "cachePoint" in value


def turns(request: Any) -> list[Any]:
    """Runs of one role; without the text of documents, which is rebuilt as bytes."""
    runs: list[Any] = []
    for turn in plain(request)["messages"]:
        if runs and runs[-1][0] == turn["role"]:
            runs[-1][1].extend(turn["content"])
        else:
            runs.append((turn["role"], list(turn["content"])))
    for _, blocks in runs:
        for block in blocks:
            block.get("document", {}).get("source", {}).pop("text", None)
    return runs


@each_recording("bedrock-converse", [*STREAMS, *BODIES, *PAYLOADS])
def test_a_recorded_request_is_rebuilt_block_for_block(recording: Recording) -> None:
    body, path = request_of(recording)
    if not body:
        return
    prompt = parse_request("converse", body, path=path)
    request, again = json.loads(body), rebuilt(prompt)
    assert prompt.stream is path.endswith("-stream")
    ours = turns(again)
    for _, blocks in ours:
        for block in blocks:
            if "text/plain" in str(prompt.items) and "document" in block:
                block["document"]["source"].pop("bytes", None)
    assert ours == turns(request)
    for key in (request.keys() | again.keys()) - EXPLAINED.keys() - {"messages"}:
        assert (plain(again.get(key)) or None) == (plain(request.get(key)) or None), key


REQUEST = {
    "system": [{"text": "Be terse."}, {"text": "And kind."}, {"cachePoint": {"type": "default"}}],
    "inferenceConfig": {
        "maxTokens": 100,
        "temperature": 0.5,
        "topP": 0.9,
        "stopSequences": ["END"],
    },
    "toolConfig": {
        "tools": [
            {
                "toolSpec": {
                    "name": "f",
                    "description": "d",
                    "inputSchema": {"json": {"type": "object"}},
                    "strict": True,
                }
            },
            {"systemTool": {"name": "nova_grounding"}},
            {"cachePoint": {"type": "default"}},
        ],
        "toolChoice": {"any": {}},
    },
    "additionalModelRequestFields": {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
        "top_k": 4,
        "anthropic_beta": ["context-1m-2025-08-07"],
    },
    "additionalModelResponseFieldPaths": ["/stop_sequence"],
    "guardrailConfig": {"guardrailIdentifier": "abc123", "guardrailVersion": "DRAFT"},
    "requestMetadata": {"team": "a"},
    "serviceTier": {"type": "flex"},
    "outputConfig": {
        "textFormat": {
            "type": "json_schema",
            "structure": {"jsonSchema": {"schema": '{"type":"object"}', "name": "answer"}},
        },
    },
    "messages": [
        {"role": "user", "content": [{"text": "hi"}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "EqQB"}}},
                {"reasoningContent": {"redactedContent": "RXU4"}},
                {"text": "so "},
                {
                    "citationsContent": {
                        "content": [{"text": "20 days"}],
                        "citations": [{"title": "policy"}],
                    }
                },
                {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1.0}}},
                {"hologram": {"x": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "t1",
                        "content": [{"text": "18C"}],
                        "status": "error",
                    }
                },
                {"cachePoint": {"type": "default", "ttl": "1h"}},
                {"text": "so?"},
                {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}},
                {
                    "document": {
                        "format": "txt",
                        "name": "n",
                        "source": {"text": "hi"},
                        "context": "c",
                        "citations": {"enabled": True},
                    }
                },
                {"guardContent": {"text": {"text": "look", "qualifiers": ["query"]}}},
                {"searchResult": {"source": "s", "title": "t", "content": []}},
            ],
        },
    ],
}


def test_every_setting_is_decoded() -> None:
    prompt = decoded(REQUEST)
    assert (prompt.model, prompt.stream, prompt.max_output_tokens) == (MODEL, True, 100)
    assert (prompt.temperature, prompt.top_p, prompt.top_k, prompt.stop) == (0.5, 0.9, 4, ("END",))
    assert (prompt.instructions, prompt.items[0]) == (
        "Be terse.",
        Message("system", [Text("And kind.")], origin=Origin("converse")),
    )
    assert prompt.thinking == ReasoningOptions(effort="high", display="summarized")
    assert [(tool.name, tool.strict, tool.native is not None) for tool in prompt.tools] == [
        ("f", True, False),
        ("web_search", None, True),
    ]
    assert (prompt.tool_choice, prompt.parallel_tools, prompt.service_tier, prompt.metadata) == (
        "required",
        None,
        "flex",
        {"team": "a"},
    )
    assert prompt.output_schema == {"type": "object"}
    assert prompt.cache == CacheOptions(breakpoints=(0, 8), lifetimes={0: None, 8: "1h"})
    assert prompt.extra is not None
    assert prompt.headers == {"anthropic-beta": "context-1m-2025-08-07"}
    assert prompt.extra.keys() == {
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "outputConfig",
    }


def test_an_assistant_turn_is_decoded_as_it_was_received() -> None:
    items: Any = decoded(REQUEST).items[1:]
    kinds = [
        Message,
        Reasoning,
        Reasoning,
        Message,
        Message,
        FunctionCall,
        Opaque,
        FunctionCallOutput,
        Message,
        Opaque,
    ]
    assert [type(item) for item in items] == kinds
    assert (items[1].signature, items[2].encrypted_content, items[5].arguments) == (
        "EqQB",
        "RXU4",
        '{"a": 1.0}',
    )
    assert items[4].content[0].annotations == ({"title": "policy"},)
    assert {item.origin for item in items[1:7]} == {Origin("converse")}


def test_a_user_turn_is_decoded_part_by_part() -> None:
    items: Any = decoded(REQUEST).items[8:]
    assert (items[0].output, items[0].is_error) == ("18C", True)
    text, image, document, guarded = items[1].content
    assert (text, image.data, image.media_type) == (Text("so?"), "iVBORw0KGgo=", "image/png")
    assert (document.data, document.media_type, document.name) == ("aGk=", "text/plain", "n")
    native = {"context": "c", "citations": {"enabled": True}, "source": "text"}
    assert document.native == native
    assert guarded == Text("look", native={"guardContent": {"qualifiers": ["query"]}})
    assert (items[2].kind, items[2].native) == ("searchResult", {"role": "user"})


def members(request: Any) -> list[list[str]]:
    """The kinds of the blocks of each turn."""
    kinds = []
    for turn in request["messages"]:
        kinds.append([next(iter(block)) for block in turn["content"]])
    return kinds


def test_the_complete_request_is_rebuilt() -> None:
    request: Any = copy.deepcopy(REQUEST)
    request["messages"][1]["content"].pop()  # botocore does not know `hologram`
    # The request has every field at once: Opus 4.6 would refuse its two samplings, and them and its
    # forced choice beside thinking, which the builder leaves out.
    takes_everything = traits(MODEL)
    takes_everything = msgspec.structs.replace(
        takes_everything,
        sampling_while_thinking=True,
        forced_while_adaptive=True,
        both_samplings=True,
    )
    again = rebuilt(decoded(request), {MODEL: takes_everything})
    assert members(again) == members(request)
    assert again["messages"][2]["content"][-2] == {
        "guardContent": {"text": {"text": "look", "qualifiers": ["query"]}}
    }
    for key in (
        "inferenceConfig",
        "toolConfig",
        "additionalModelRequestFields",
        "guardrailConfig",
        "requestMetadata",
        "serviceTier",
    ):
        assert plain(again[key]) == plain(request[key]), key
    assert again["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["name"] == "answer"


@each_case(
    "fields, reasoning",
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 4000}}, ReasoningOptions(budget=4000)),
        ({"thinking": {"type": "disabled"}}, "off"),
        (
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}},
            ReasoningOptions(effort="low"),
        ),
        ({"reasoningConfig": {"type": "disabled"}}, "off"),
        ({"reasoning_effort": "high"}, ReasoningOptions(effort="high")),
        ({"reasoning": {"effort": "none"}}, ReasoningOptions(effort="off")),
        ({"reasoning_config": "medium"}, ReasoningOptions(effort="medium")),
        ({}, None),
    ],
)
def test_thinking_of_every_family_is_decoded(fields: Any, reasoning: Any) -> None:
    prompt = decoded(
        {
            "messages": [{"role": "user", "content": [{"text": "x"}]}],
            "additionalModelRequestFields": fields,
        }
    )
    assert prompt.reasoning == reasoning
    assert prompt.extra is None


@pytest.mark.parametrize(
    ("config", "fields", "choice"),
    [
        ({"auto": {}}, {}, ("auto", None)),
        ({"tool": {"name": "f"}}, {}, ("f", None)),
        (None, {"tool_choice": {"type": "none"}}, ("none", None)),
        (
            None,
            {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
            ("required", False),
        ),
        (None, {}, (None, None)),
    ],
)
def test_tool_choice_is_decoded_from_both_fields(config: Any, fields: Any, choice: Any) -> None:
    request = {
        "messages": [],
        "toolConfig": {"tools": [], "toolChoice": config},
        "additionalModelRequestFields": fields,
    }
    prompt = decoded(request)
    assert (prompt.tool_choice, prompt.parallel_tools) == choice


def test_a_cache_point_after_the_instructions_is_typed() -> None:
    """B3: it moved to the end of the turns."""
    request = {
        "messages": [{"role": "user", "content": [{"text": "x"}]}],
        "system": [{"text": "s"}, {"cachePoint": {"type": "default"}}],
    }
    assert decoded(request).cache == CacheOptions(instructions=CacheMark())


def test_results_of_every_kind_are_decoded() -> None:
    content = [
        {"json": {"a": 1}},
        {"image": {"format": "gif", "source": {"s3Location": {"uri": "s3://bucket-1/k"}}}},
        {"video": {"format": "mp4"}},
    ]
    turn = {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": content}}]}
    output: Any = decoded({"messages": [turn]}).items[0].output  # type: ignore[union-attr]
    assert output[0] == Text('{"a":1}', native={"json": {"a": 1}})
    assert isinstance(output[1], Image)
    assert (output[1].url, output[2].native) == ("s3://bucket-1/k", {"video": {"format": "mp4"}})


def test_unknown_key_of_a_source_is_sent_again() -> None:
    source = {"bytes": "iVBORw0KGgo=", "checksum": {"value": "x"}}
    content = [{"text": "see"}, {"image": {"format": "png", "source": source}}]
    prompt = decoded({"messages": [{"role": "user", "content": content}]})
    request = json.loads(build(prompt, f"bedrock:{MODEL}", wire_api="converse").body)
    assert request["messages"][0]["content"] == content


def test_a_document_of_chunks_is_kept_as_opaque() -> None:
    block = {
        "document": {
            "format": "txt",
            "name": "n",
            "source": {"content": [{"text": "a"}, {"text": "b"}]},
        }
    }
    items = decoded({"messages": [{"role": "user", "content": [block, {"text": "x"}]}]}).items
    assert isinstance(items[0], Opaque)
    assert not any(isinstance(part, Document) for part in getattr(items[1], "content", ()))


def test_the_path_names_the_model_percent_encoded() -> None:
    request = {"messages": [{"role": "user", "content": [{"text": "x"}]}]}
    prompt = decoded(request, "/model/us.amazon.nova-lite-v1%3A0/converse")
    assert (prompt.model, prompt.stream) == ("us.amazon.nova-lite-v1:0", False)
