"""Requests of Bedrock Converse: the shapes of botocore's `bedrock-runtime`.

Source SHAPES: `botocore/data/bedrock-runtime`, where optional members and their meaning are; API is
the page "Converse" of docs.aws.amazon.com/bedrock.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec
import pytest

from lab.fidelity.compare import Body, Equivalent, WireTable, drop_nulls
from lab.fidelity.sdk_types import BotocoreReader
from lab.fidelity.shapes import Struct
from streamlib import Prompt, Request, Traits, build
from streamlib.wires.converse.build_cache import NOT_CACHEABLE

MODEL: Final = "us.anthropic.claude-any"
"""A Claude without known limits: it takes all that Converse has."""
MODELS: Final = {MODEL: Traits()}
VALUES: Final = {
    "maxTokens": (4096,),
    "stopSequences": ("END", " "),
    "uri": ("s3://bucket/key",),
    "JsonSchemaDefinition.schema": ('{"type":"object","properties":{"a":{"type":"null"}}}',),
    "ToolInputSchema.json": ({"type": "object"},),
    "additionalModelRequestFields": ({"any": [1.0]},),
}
MODEL_FIELDS: Final = "additionalModelRequestFields"
OBJECT: Final = {"type": "object"}
OF_ASSISTANT: Final = frozenset({"toolUse", "reasoningContent", "citationsContent"})
MEMBERS_OF_ROLE: Final = {
    "assistant": OF_ASSISTANT | {"text", "cachePoint"},
    "system": frozenset({"text", "cachePoint", "toolAddition", "toolRemoval"}),
}
"""Members that a role may hold; any other stands in user turns."""
LEFT_OUT: Final = frozenset({"modelId"})
"""The model is in the path."""


@cache
def request_type() -> Struct:
    """The input of ConverseStream."""
    pytest.importorskip("botocore", reason="its shapes are the types of requests")
    from tests.support.bedrock_readers import operation  # imports botocore

    return BotocoreReader(VALUES, LEFT_OUT).struct(operation("ConverseStream").input_shape)


def build_again(prompt: Prompt) -> Request:
    """A request to Bedrock, for the model of the path."""
    return build(
        prompt, f"bedrock:{MODEL}", wire_api="converse", base_url="http://127.0.0.1", models=MODELS
    )


# --- completing a drawn body ---


def complete(body: Body) -> None:
    """Makes it a request that the API takes: each block in a role that may hold it (B13).

    Calls have results and results calls, the first turn is the user's, text stands beside a
    document, and cache points behind what they cache.
    """
    for blocks in (body.get("system"), body.get("toolConfig", {}).get("tools")):
        if blocks:
            blocks[:] = _without_stray_points(blocks)
    config = body.get("toolConfig", {})
    if config and not config["tools"]:
        config["tools"].append({"toolSpec": {"name": "f", "inputSchema": {"json": OBJECT}}})
    if "system" in body and not body["system"]:
        del body["system"]
    turns: list[Body] = [{"role": "user", "content": [{"text": "hi"}]}]
    for number, turn in enumerate(body.get("messages", ())):
        for role, blocks in _by_role(turn):
            turns += _completed_turn(role, blocks, f"call{number}_{len(turns)}")
    body["messages"] = turns
    # so that the items of a turn, which a report names, are those of the same turn
    join_turns(body)


def _by_role(turn: Body) -> list[tuple[str, list[Body]]]:
    """The blocks of a turn in runs of the roles that may hold them."""
    runs: list[tuple[str, list[Body]]] = []
    for block in _without_stray_points(turn["content"]):
        member = next(iter(block))
        if member == "citationsContent":
            # without a text it would be blank (B2)
            block[member].setdefault("content", [{"text": "text"}])
        role = turn["role"]
        if member in OF_ASSISTANT:
            role = "assistant"
        elif member not in MEMBERS_OF_ROLE.get(role, {member}):
            role = "user"
        if member == "cachePoint" and runs:
            role = runs[-1][0]
        if not runs or runs[-1][0] != role:
            runs.append((role, []))
        runs[-1][1].append(block)
    return runs


def _without_stray_points(blocks: list[Body]) -> list[Body]:
    """Blocks without cache points that stand first, or where none may stand (B14)."""
    kept: list[Body] = []
    for block in blocks:
        before = next(iter(kept[-1])) if kept else "cachePoint"
        if "cachePoint" not in block or before not in NOT_CACHEABLE:
            kept.append(block)
    return kept


def _completed_turn(role: str, blocks: list[Body], call_id: str) -> list[Body]:
    called: list[str] = []
    answered: list[str] = []
    server_results: list[Body] = []
    for index, block in enumerate(blocks):
        if "toolUse" in block and "type" in block["toolUse"]:
            block["toolUse"]["toolUseId"] = f"{call_id}_{index}"
            # the provider's own result stands in the same turn (A15)
            server_results.append(_result(f"{call_id}_{index}"))
        elif "toolUse" in block:
            block["toolUse"]["toolUseId"] = f"{call_id}_{index}"
            called.append(f"{call_id}_{index}")
        elif "toolResult" in block:
            block["toolResult"]["toolUseId"] = f"{call_id}_{index}"
            answered.append(f"{call_id}_{index}")
    blocks += server_results
    turns: list[Body] = [{"role": role, "content": blocks}]
    if role == "user" and answered:
        # results stand first (B6)
        blocks.sort(key=_is_no_result)
        turns.insert(0, {"role": "assistant", "content": [_call(name) for name in answered]})
    if role == "user" and any("document" in block for block in blocks):
        blocks.append({"text": "beside"})
    if role == "assistant" and "reasoningContent" in blocks[-1]:
        blocks.append({"text": "end"})
    if role == "assistant" and called:
        turns.append({"role": "user", "content": [_result(name) for name in called]})
    return turns


def _is_no_result(block: Body) -> bool:
    return "toolResult" not in block


def _call(call_id: str) -> Body:
    return {"toolUse": {"toolUseId": call_id, "name": "text", "input": {}}}


def _result(call_id: str) -> Body:
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": "done"}]}}


# --- equivalent forms ---


def join_turns(body: Body) -> None:
    """Adjacent turns of one role are one turn."""
    turns: list[Body] = []
    for turn in body["messages"]:
        if turns and turns[-1]["role"] == turn["role"]:
            turns[-1]["content"] = [*turns[-1]["content"], *turn["content"]]
        else:
            turns.append(turn)
    body["messages"] = turns


def drop_defaults(body: Body) -> None:
    """Fields with the value that they have when they are absent."""
    for turn in body["messages"]:
        for block in turn["content"]:
            result = block.get("toolResult", {})
            if result.get("status") == "success":
                del result["status"]


def drop_empty(body: Body) -> None:
    """Objects whose members are all optional, and absent; no text."""
    for tool in body.get("toolConfig", {}).get("tools", ()):
        # the API refuses an empty one
        if tool.get("toolSpec", {}).get("description") == "":
            del tool["toolSpec"]["description"]
    if body.get("inferenceConfig", {}).get("stopSequences") == []:
        del body["inferenceConfig"]["stopSequences"]
    body["system"] = [block for block in body.get("system", ()) if block.get("text") != ""]
    if not body["system"]:
        del body["system"]
    for key in ("inferenceConfig", "outputConfig", "requestMetadata", MODEL_FIELDS):
        if body.get(key) == {}:
            del body[key]


def join_citations(body: Body) -> None:
    """`citationsContent` with one text."""
    for turn in body["messages"]:
        for block in turn["content"]:
            cited = block.get("citationsContent", {}).get("content")
            if cited:
                cited[:] = [{"text": "".join(part["text"] for part in cited)}]
            if cited and not block["citationsContent"].get("citations"):
                block["text"] = block.pop("citationsContent")["content"][0]["text"]


def read_schema(body: Body) -> None:
    """The schema of the output, which is JSON text inside the JSON."""
    definition = body
    for key in ("outputConfig", "textFormat", "structure", "jsonSchema"):
        definition = definition.get(key, {})
    if "schema" in definition:
        definition["schema"] = msgspec.json.decode(definition["schema"])


EQUIVALENTS: Final = (
    Equivalent("null / absent", "SHAPES: no member is null", drop_nulls),
    Equivalent(
        "adjacent turns of one role / one turn",
        "API: roles alternate; the builder joins them",
        join_turns,
    ),
    Equivalent(
        "{}, no stop sequences, an empty description or text of system / absent",
        "SHAPES: every member is optional, SystemContentBlock.text has at least one character; "
        "WIRE B10",
        drop_empty,
    ),
    Equivalent(
        "several texts of citationsContent / one; without citations / a text block",
        "docs/wires/converse.md: fragments of one text, which the parser joins",
        join_citations,
    ),
    Equivalent("a schema as text / as JSON", "SHAPES: JsonSchemaDefinition.schema", read_schema),
    Equivalent("toolResult.status: success / absent", "API, ToolResultBlock", drop_defaults),
)
REPORTED: Final[dict[str, tuple[str, ...]]] = {
    "messages": ("/input", "/cache/breakpoints", "/tools"),
    "system": ("/instructions", "/input", "/cache/breakpoints", "/cache/instructions"),
    "inferenceConfig/maxTokens": ("/max_output_tokens",),
    "inferenceConfig/temperature": ("/temperature",),
    "inferenceConfig/topP": ("/top_p",),
    "inferenceConfig/stopSequences": ("/stop",),
    "toolConfig/tools": ("/tools",),
    "toolConfig/toolChoice": ("/tool_choice",),
    "outputConfig": ("/output_schema", "/extra/outputConfig"),
    "additionalModelRequestFields": (
        "/reasoning",
        "/top_k",
        "/tools",
        "/extra/additionalModelRequestFields",
    ),
    "requestMetadata": ("/metadata",),
    "serviceTier": ("/service_tier",),
}
TABLE: Final = WireTable(
    wire_api="converse",
    request=request_type,
    build=build_again,
    complete=complete,
    equivalents=EQUIVALENTS,
    added={
        r"/additionalModelResponseFieldPaths/\d+": "ours: Claude names its stop sequence and "
        "counts its reasoning only if it is asked (docs/wires/converse.md)",
        r".*/document/format": "SHAPES make it optional, the API wants one; it is the guessed one",
        r"/outputConfig/.*/additionalProperties": "the docs of structured outputs: required",
        r"/toolConfig/tools/\d+/toolSpec/.*": "B1: calls in the history need their tools",
    },
    reported=REPORTED,
    turns="messages",
    path=f"/model/{MODEL}/converse-stream",
)
