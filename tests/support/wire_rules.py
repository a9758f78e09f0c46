"""Rules of each wire for requests, as checks of the body, and checks by the official SDKs' types.

check(request)     raises AssertionError if a rule of the wire is violated
official(request)  False if the wire has no official types; raises if they refuse the request
elements(request)  elements that caches and bound thinking need: a prefix of the next request's
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import pytest

from streamlib import FunctionCall, FunctionCallOutput, Prompt, Request, parse_request
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.items import CustomToolCall, CustomToolCallOutput
from tests.support.sdks import reader_of

CALLS: Final = (FunctionCall, CustomToolCall)
OUTPUTS: Final = (FunctionCallOutput, CustomToolCallOutput)
ITEMS: Final[dict[str, str]] = {
    "responses": "input",
    "gemini": "contents",
    "interactions": "input",
}
"""Where a body holds the conversation; on all other wires under `messages`."""
SETTINGS: Final = (
    "system",
    "systemInstruction",
    "system_instruction",
    "instructions",
    "tools",
    "toolConfig",
)
MARKERS: Final = ("cache_control", "cachePoint")

Object = dict[str, Any]


def body_of(request: Request) -> Object:
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def read_back(request: Request) -> Prompt:
    return parse_request(request.wire_api, request.body, path=urlsplit(request.url).path)


def turns_of(request: Request) -> list[Object]:
    return body_of(request)[ITEMS.get(request.wire_api, "messages")]  # type: ignore[no-any-return]


# --- the prefix ---


def elements(request: Request) -> list[str]:
    """Settings that a cache covers, then each part with its role, as JSON without cache markers."""
    body = _unmarked(body_of(request))
    result: list[Any] = [[key, body.get(key)] for key in SETTINGS]
    for turn in body[ITEMS.get(request.wire_api, "messages")]:
        result += _parts(turn)
    return [json.dumps(element) for element in result]


def _parts(turn: Object) -> list[Any]:
    key = "parts" if "parts" in turn else "content"
    if not isinstance(turn.get(key), list):
        return [turn]
    beside = {name: value for name, value in turn.items() if name not in (key, "role")}
    result: list[Any] = [[turn.get("role"), part] for part in turn[key]]
    if beside:
        result.append(beside)
    return result


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(inner) for key, inner in value.items() if key not in MARKERS}
    if isinstance(value, list):
        return [
            _unmarked(inner)
            for inner in value
            if not (isinstance(inner, dict) and "cachePoint" in inner)
        ]
    return value


# --- the rules ---


def check(request: Request) -> None:
    """Checks every rule of the request's wire."""
    assert turns_of(request)
    _pairs(request)
    RULES[request.wire_api](turns_of(request))


def _pairs(request: Request) -> None:
    """Each call has one output after it, each output a call before it, and ids fit the wire."""
    charset, waiting, used = WIRE_SPECS[request.wire_api].call_ids, set[str](), set[str]()
    for item in read_back(request).items:
        if isinstance(item, CALLS):
            assert item.call_id not in used, item
            assert re.fullmatch(f"[{charset.allowed}]{{1,{charset.longest}}}", item.call_id), item
            waiting.add(item.call_id)
            used.add(item.call_id)
        elif isinstance(item, OUTPUTS):
            waiting.remove(item.call_id)
    assert not waiting


def _messages(turns: list[Object]) -> None:
    _alternate([turn["role"] for turn in turns])
    for turn in turns:
        assert turn["content"]
        for block in turn["content"]:
            assert block["type"] != "text" or block["text"].strip()
            assert block["type"] != "thinking" or block["signature"]
    kinds = [[block["type"] for block in turn["content"]] for turn in turns]
    assert all(_leads(row, "tool_result") for row in kinds)
    ids = [
        [(block["type"], block.get("id") or block.get("tool_use_id")) for block in turn["content"]]
        for turn in turns
    ]
    _answered_next(ids, "tool_use", "tool_result")


def _converse(turns: list[Object]) -> None:
    assert turns[0]["role"] == "user"
    _alternate([turn["role"] for turn in turns])
    for turn in turns:
        assert turn["content"]
        assert all(len(block) == 1 for block in turn["content"])
        assert all(block.get("text", "x").strip() for block in turn["content"])
    assert all(
        _leads([next(iter(block)) for block in turn["content"]], "toolResult")
        for turn in turns
        if turn["role"] == "user"
    )
    blocks = [[next(iter(block.items())) for block in turn["content"]] for turn in turns]
    ids = [
        [
            (kind, value["toolUseId"])
            for kind, value in row
            if kind in ("toolUse", "toolResult") and "type" not in value
        ]
        for row in blocks
    ]
    _answered_next(ids, "toolUse", "toolResult")


def _gemini(turns: list[Object]) -> None:
    assert turns[0]["role"] == "user" or not any(
        "functionCall" in part for part in turns[0]["parts"]
    )
    assert all(turn["parts"] and turn["role"] in ("user", "model") for turn in turns)
    names = [
        [(kind, part[kind]["name"]) for part in turn["parts"] for kind in FUNCTIONS if kind in part]
        for turn in turns
    ]
    _answered_next(names, *FUNCTIONS)
    for turn in turns:
        kinds = {"functionResponse" in part for part in turn["parts"]}
        assert len(kinds) == 1, "results stand apart from what the user says"


def _interactions(steps: list[Object]) -> None:
    calls: list[str] = []
    for step in steps:
        kind = step["type"]
        assert kind != "thought" or step["signature"]
        if kind in ("user_input", "model_output"):
            assert step["content"]
            assert all(content.get("text", "x") for content in step["content"])
        if kind == "function_call":
            calls.append(step["id"])
        elif kind == "function_result":
            calls.remove(step["call_id"])
        else:
            assert not calls or kind != "user_input", "results follow their calls"
    assert not calls


FUNCTIONS: Final = ("functionCall", "functionResponse")


BESIDE: Final = ("tool_calls", "refusal", "audio", "reasoning_content")


def _chat(turns: list[Object]) -> None:
    for turn in turns:
        content = turn.get("content")
        assert (
            content or turn["role"] in ("tool", "system") or any(turn.get(key) for key in BESIDE)
        ), turn
        assert not isinstance(content, list) or all(
            part["type"] != "text" or part["text"] for part in content
        )
    _results_follow(turns, [turn.get("tool_call_id") for turn in turns])


def _ollama(turns: list[Object]) -> None:
    assert all(isinstance(turn.get("content", ""), str) for turn in turns)
    assert all(
        isinstance(call["function"]["arguments"], dict)
        for turn in turns
        for call in turn.get("tool_calls", ())
    )
    _results_follow(turns, [turn.get("tool_call_id") for turn in turns])


def _results_follow(turns: list[Object], ids: list[str | None]) -> None:
    """The tool messages right behind a message are those of its calls, no fewer and no more."""
    for index, turn in enumerate(turns):
        if turn["role"] != "tool":
            end = next(
                (n for n in range(index + 1, len(turns)) if turns[n]["role"] != "tool"), len(turns)
            )
            assert sorted(call["id"] for call in turn.get("tool_calls") or ()) == sorted(
                map(str, ids[index + 1 : end])
            )


def _responses(items: list[Object]) -> None:
    for item, after in pairwise([*items, {}]):
        kind = item.get("type", "message")
        assert None not in item.values()
        assert kind != "message" or item["content"]
        assert kind != "reasoning" or item.get("encrypted_content") or item.get("content")
        assert kind != "reasoning" or (after and after.get("role", "assistant") == "assistant")
        assert "id" not in item or kind not in ("message", "reasoning", "function_call")


def _alternate(roles: list[str]) -> None:
    assert all(role != following for role, following in pairwise(roles)), roles


def _leads(kinds: list[str], first: str) -> bool:
    """Whether those of the kind `first` stand before all others."""
    return kinds == sorted(kinds, key=lambda kind: kind != first)


def _answered_next(turns: list[list[tuple[str, Any]]], call: str, result: str) -> None:
    """The calls of each turn are those whose results the next turn has."""
    for turn, after in pairwise([[], *turns, []]):
        called = [name for kind, name in turn if kind == call]
        assert sorted(called) == sorted(name for kind, name in after if kind == result), (
            turn,
            after,
        )


def _cohere(messages: list[Object]) -> None:
    waiting: list[str] = []
    for message in messages:
        role = message["role"]
        if role == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, "results follow their calls"
        assert message.get("content") or message.get("tool_calls")
        assert not message.get("tool_plan") or message.get("tool_calls")
        assert all(content.get("text", "x") for content in _contents(message))
        waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting


def _contents(message: Object) -> list[Object]:
    content = message.get("content")
    return content if isinstance(content, list) else []


RULES: Final[dict[str, Callable[[list[Object]], None]]] = {
    "messages": _messages,
    "invoke": _messages,
    "converse": _converse,
    "gemini": _gemini,
    "interactions": _interactions,
    "chat": _chat,
    "responses": _responses,
    "ollama": _ollama,
    "cohere": _cohere,
}


# --- the official types ---


def official(request: Request) -> bool:
    """Whether an official SDK checked the request. Ollama's types check
    nothing; Cohere's do in ``tests/real``.

    Raises:
        Exception: the SDK's own, if it refuses the request.
    """
    check_types = OFFICIAL_CHECKS.get(request.wire_api)
    if check_types:
        check_types(request)
    return check_types is not None


def _by_anthropic(request: Request) -> None:
    body = body_of(request)
    for turn in body["messages"]:
        # A system message inside the conversation is newer than some releases of the SDK.
        _validate(
            "anthropic.types.beta.BetaMessageParam",
            {**turn, "role": "user" if turn["role"] == "system" else turn["role"]},
        )
    _each("anthropic.types.beta.BetaToolUnionParam", body.get("tools", ()))


CALLERS: Final = ("user", "system", "developer")


def _by_openai_responses(request: Request) -> None:
    body = body_of(request)
    # The types require ids that only stored responses have: the API does not.
    items: list[Object] = []
    for item in body["input"]:
        required: Object = {}
        if item.get("role") not in CALLERS:
            required["id"] = ""
            if "role" in item:
                required["status"] = "completed"
        items.append({**required, **item})
    _each("openai.types.responses.ResponseInputItemParam", items)
    _each("openai.types.responses.ToolParam", body.get("tools", ()))


def _by_openai_chat(request: Request) -> None:
    body = body_of(request)
    _each("openai.types.chat.ChatCompletionMessageParam", body["messages"])
    _each("openai.types.chat.ChatCompletionToolUnionParam", body.get("tools", ()))


def _by_genai(request: Request) -> None:
    types = pytest.importorskip("google.genai.types", reason="the official SDK checks the request")
    body = body_of(request)
    for key, kind in (("contents", types.Content), ("tools", types.Tool)):
        for value in body.get(key, ()):
            kind.model_validate(value)
    types.GenerationConfig.model_validate(body.get("generationConfig", {}))


def _by_genai_interactions(request: Request) -> None:
    types = "google.genai._gaos.types.interactions"
    body = body_of(request)
    for step in body["input"]:
        # The types of responses are stricter than those of requests: an open union takes anything.
        _interactions_type(types, STEP_CLASSES[step["type"]], step)
    for tool in body.get("tools", ()):
        _interactions_type(types, TOOL_CLASSES.get(tool["type"], "Function"), tool)
    _interactions_type(types, "GenerationConfig", body.get("generation_config", {}))


STEP_CLASSES: Final = {
    "user_input": "UserInputStep",
    "model_output": "ModelOutputStep",
    "thought": "ThoughtStep",
    "function_call": "FunctionCallStep",
    "function_result": "FunctionResultStep",
    "google_search_call": "GoogleSearchCallStep",
    "google_search_result": "GoogleSearchResultStep",
}
TOOL_CLASSES: Final = {"google_search": "GoogleSearch", "code_execution": "CodeExecution"}


def _interactions_type(module: str, name: str, value: Object) -> None:
    types = pytest.importorskip(module, reason="the official SDK checks the request")
    kind = getattr(types, name)
    kind.model_validate(value)
    assert value.keys() <= {field.alias or key for key, field in kind.model_fields.items()}, value


def _by_botocore(request: Request) -> None:
    pytest.importorskip("botocore", reason="the official SDK checks the request")
    importlib.import_module("tests.support.bedrock_readers").validated(request)


def _each(name: str, values: Iterable[Any]) -> None:
    for value in values:
        _validate(name, value)


def _validate(name: str, value: Any) -> None:
    _drain(_adapter(name).validate_python(value))


@cache
def _adapter(name: str) -> Any:
    module, _, kind = name.rpartition(".")
    types = pytest.importorskip(module, reason="the official SDK checks the request")
    return reader_of(getattr(types, kind))


def _drain(value: Any) -> None:
    """Iterables are checked while they are read."""
    if isinstance(value, dict):
        value = value.values()
    if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
        for inner in value:
            _drain(inner)


OFFICIAL_CHECKS: Final[dict[str, Callable[[Request], None]]] = {
    "messages": _by_anthropic,
    "invoke": _by_anthropic,
    "responses": _by_openai_responses,
    "chat": _by_openai_chat,
    "gemini": _by_genai,
    "interactions": _by_genai_interactions,
    "converse": _by_botocore,
}
