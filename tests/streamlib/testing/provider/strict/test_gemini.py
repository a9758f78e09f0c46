"""Each rule of Gemini refuses what breaks it, and takes the same request without the fault."""

from __future__ import annotations

import base64
from typing import Any, Final

from streamlib.testing.provider.strict import gemini
from streamlib.testing.provider.strict.provider import RULES
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case
from tests.support.strict_cases import LEDGER, Case, check_case, rule_names, signature

NEW: Final = "gemini-3.5-flash"
OLD: Final = "gemini-2.5-flash"
HELLO: Final = {"role": "user", "parts": [{"text": "hi"}]}
TEXT: Final = {"role": "model", "parts": [{"text": "so"}]}
DECLARATION: Final = {"name": "f", "parametersJsonSchema": {"type": "object"}}
TOOL: Final = {"functionDeclarations": [DECLARATION]}


def body(*turns: JsonObject, **fields: Any) -> JsonObject:
    """A request of these turns after one of the user."""
    return {"contents": [HELLO, *turns], **fields}


def part(
    *, name: str = "f", signed: str | None = "issued", call_id: str | None = None
) -> JsonObject:
    """A call: with the signature that was issued with it, another one, or none."""
    call: JsonObject = {"functionCall": {"name": name, "args": {"a": 1.0}}}
    if call_id is not None:
        call["functionCall"]["id"] = call_id
    if signed == "issued":
        call["thoughtSignature"] = signature("gemini", "f")
    elif signed is not None:
        call["thoughtSignature"] = signed
    return call


def calling(*parts: JsonObject) -> JsonObject:
    """A turn of the model."""
    return {"role": "model", "parts": list(parts or (part(),))}


def results(*names: str, **other: Any) -> JsonObject:
    """A turn of function responses."""
    parts: list[JsonObject] = []
    for name in names:
        parts.append({"functionResponse": {"name": name, "response": {"output": "18"}}})
    if other:
        parts.append(other)
    return {"role": "user", "parts": parts}


def settings(**values: Any) -> JsonObject:
    """A request with settings of the generation."""
    return body(generationConfig=values)


def thinking(**values: Any) -> JsonObject:
    """A request with settings of thinking."""
    return settings(thinkingConfig=values)


PLACEHOLDER: Final = base64.b64encode(b"skip_thought_signature_validator").decode()
LOOP: Final = (calling(), results("f"))
SEARCH: Final = {"googleSearch": {}}
SWITCH: Final = {"includeServerSideToolInvocations": True}

LEDGER.cached.update({"cachedContents/1": NEW, "cachedContents/old": OLD})

CASES: Final = (
    Case(
        gemini.check_call_ids,
        body(calling(part(call_id="c")), results("f"), calling(part(call_id="c")), results("f")),
        body(*LOOP, *LOOP),
        "Duplicate tool call found for call id c",
        NEW,
    ),
    Case(gemini.check_fields, body(max_tokens=9), body(), 'Unknown name "maxTokens"', NEW),
    Case(
        gemini.check_fields,
        body({"role": "model", "parts": [{"text": "so", "signature": "x"}]}),
        body(TEXT),
        "Unknown name \"signature\" at 'contents[1].parts[0]'",
        NEW,
    ),
    Case(gemini.check_contents, {"contents": []}, body(), "contents is not specified", NEW),
    Case(
        gemini.check_contents,
        body({"role": "assistant", "parts": [{"text": "so"}]}),
        body(TEXT),
        "Please use a valid role: user, model.",
        NEW,
    ),
    Case(
        gemini.check_contents,
        body({"role": "model", "parts": []}),
        body(TEXT),
        "contents.parts must not be empty",
        NEW,
    ),
    Case(
        gemini.check_contents,
        body({"role": "model", "parts": [{"text": ""}]}),
        body({"role": "model", "parts": [{"text": "", "thoughtSignature": PLACEHOLDER}]}),
        "must have one initialized field",
        NEW,
    ),
    Case(
        gemini.check_calls,
        body(calling(part(name="a b", signed=PLACEHOLDER)), results("a b")),
        body(*LOOP),
        "Invalid function name",
        NEW,
    ),
    Case(
        gemini.check_calls,
        body(
            calling(),
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": "18"}}]},
        ),
        body(*LOOP),
        "google.protobuf.Struct",
        NEW,
    ),
    Case(
        gemini.check_call_places,
        body(TEXT, *LOOP),
        body(*LOOP),
        "function call turn comes immediately after a user turn",
        NEW,
    ),
    Case(
        gemini.check_pairing,
        body(results("f")),
        body(*LOOP),
        "response turn comes immediately after a function call turn",
        NEW,
    ),
    Case(
        gemini.check_pairing,
        body(calling(part(), part(signed=None)), results("f")),
        body(calling(part(), part(signed=None)), results("f", "f")),
        "number of function response parts is equal",
        NEW,
    ),
    Case(
        gemini.check_pairing,
        body(calling(), results("f", text="and?")),
        body(*LOOP),
        "number of function response parts is equal",
        NEW,
    ),
    Case(
        gemini.check_signatures,
        body(calling(part(signed="c2lnbmVk")), results("f")),
        body(*LOOP),
        "Thought signature is not valid",
        NEW,
    ),
    Case(
        gemini.check_signatures,
        body(calling(part(name="g")), results("g")),
        body(calling(part(name="g", signed=PLACEHOLDER)), results("g")),
        "Thought signature is not valid",
        NEW,
    ),
    Case(
        gemini.check_signed_calls,
        body(calling(part(signed=None)), results("f")),
        body(calling(part(signed=None)), results("f"), HELLO),
        "missing a thought_signature",
        NEW,
    ),
    Case(
        gemini.check_thinking,
        thinking(thinkingBudget=-1, thinkingLevel="LOW"),
        thinking(thinkingLevel="LOW"),
        "only one of thinking budget and thinking level",
        NEW,
    ),
    Case(
        gemini.check_thinking_level,
        thinking(thinkingLevel="LOW"),
        thinking(thinkingBudget=1024),
        "Thinking level LOW is not supported",
        OLD,
    ),
    Case(
        gemini.check_thinking_budget,
        thinking(thinkingBudget=0),
        thinking(thinkingBudget=128),
        "Budget 0 is invalid",
        "gemini-2.5-pro",
    ),
    Case(
        gemini.check_settings,
        settings(presencePenalty=1),
        settings(temperature=1),
        "Penalty is not enabled",
        NEW,
    ),
    Case(
        gemini.check_settings,
        settings(stopSequences=["a"] * 6),
        settings(stopSequences=["a"] * 5),
        "at most 5",
        NEW,
    ),
    Case(
        gemini.check_tools,
        body(tools=[{"type": "web_search_20250305"}]),
        body(tools=[SEARCH]),
        "Unknown name \"type\" at 'tools[0]'",
        NEW,
    ),
    Case(
        gemini.check_tools,
        body(
            tools=[
                {
                    "functionDeclarations": [
                        {
                            "name": "f",
                            "parameters": {"type": "OBJECT", "additionalProperties": False},
                        }
                    ]
                }
            ]
        ),
        body(tools=[TOOL]),
        'Unknown name "additionalProperties"',
        NEW,
    ),
    Case(
        gemini.check_tools,
        body(tools=[TOOL, SEARCH]),
        body(tools=[TOOL, SEARCH], toolConfig=SWITCH),
        "include_server_side_tool_invocations",
        NEW,
    ),
    Case(
        gemini.check_tools,
        body(tools=[TOOL, SEARCH]),
        body(tools=[SEARCH]),
        "cannot be combined",
        OLD,
    ),
    Case(
        gemini.check_tool_config,
        body(toolConfig={"functionCallingConfig": {"mode": "ANY"}}),
        body(tools=[TOOL], toolConfig={"functionCallingConfig": {"mode": "ANY"}}),
        "without function_declarations",
        NEW,
    ),
    Case(
        gemini.check_cached_content,
        body(cachedContent="cachedContents/1", tools=[TOOL]),
        body(cachedContent="cachedContents/1"),
        "CachedContent can not be used",
        NEW,
    ),
    Case(
        gemini.check_cached_content,
        body(cachedContent="cachedContents/2"),
        body(cachedContent="projects/p/locations/l/cachedContents/1"),
        "CachedContent not found (or permission denied)",
        NEW,
    ),
    Case(
        gemini.check_cached_content,
        body(cachedContent="cachedContents/old"),
        body(cachedContent="cachedContents/1"),
        "(models/gemini-2.5-flash) has to be the same",
        NEW,
    ),
)


@each_case("case", CASES)
def test_rule_refuses_its_fault_and_nothing_else(case: Case) -> None:
    check_case("gemini", case)


def test_every_rule_has_a_case() -> None:
    assert rule_names(RULES["gemini"]) == rule_names(case.rule for case in CASES)
