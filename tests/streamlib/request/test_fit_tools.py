"""Native tools stay on their own wire; namespaces are flattened and restored (B1)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from streamlib import (
    FunctionCall,
    Prompt,
    Request,
    Response,
    StreamError,
    ToolSpec,
    accumulate,
    build,
    encode_body,
    encoder,
    parse_body,
    parse_request,
    parser,
    user,
)
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import CustomToolCall, WireApi
from tests.support.cases import each_case
from tests.support.timing import cpu_seconds

TARGETS: Final[list[tuple[WireApi, str]]] = [
    ("messages", "anthropic:claude-opus-5"),
    ("responses", "openai:gpt-6"),
    ("chat", "deepseek:deepseek-v4"),
    ("chat", "openrouter:x/y"),
    ("gemini", "google:gemini-3-pro"),
    ("interactions", "google:gemini-3-pro"),
    ("converse", "bedrock:amazon.nova-2-lite-v1:0"),
    ("converse", "bedrock:anthropic.claude-opus-5"),
    ("invoke", "bedrock:anthropic.claude-opus-5"),
    ("invoke", "bedrock:amazon.nova-2-lite-v1:0"),
    ("invoke", "bedrock:openai.gpt-oss-120b-1:0"),
    ("ollama", "ollama:qwen3"),
    ("cohere", "cohere:command-a-03-2025"),
]

# wire -> tools that no other wire has
NATIVES: Final[dict[WireApi, list[dict[str, Any]]]] = {
    "messages": [
        {"type": "computer_20250124", "name": "computer", "display_width_px": 1},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        {"type": "memory_20250818", "name": "memory"},
        {"type": "mcp_toolset", "mcp_server_name": "fs"},
    ],
    "responses": [
        {"type": "image_generation"},
        {"type": "computer"},
        {"type": "shell"},
        {"type": "local_shell"},
        {"type": "apply_patch"},
        {"type": "mcp", "server_label": "deep", "server_url": "https://x.test"},
        {"type": "tool_search"},
        {"type": "x_search"},
    ],
    "gemini": [{"googleMaps": {}}, {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}],
    "interactions": [
        {"type": "google_maps"},
        {"type": "mcp_server", "name": "fs", "url": "https://x.test"},
    ],
    "converse": [{"systemTool": {"name": "nova_next"}}],
    "chat": [{"type": "builtin_function", "builtin_function": {"name": "$web_search"}}],
}
CLAUDE_ON_BEDROCK: Final = ("bedrock:anthropic.claude-opus-5",)
"""Models that take Claude's own tools on another wire than Messages."""


def built(wire: WireApi, model: str, tools: Any, **settings: Any) -> Request:
    prompt = Prompt(settings.pop("input", "hi"), tools=tools, **settings)
    return build(prompt, model, wire_api=wire, base_url="https://x.test/v1")


def body(request: Request) -> Any:
    return msgspec.json.decode(request.body)


def changes(request: Request) -> list[tuple[str, str]]:
    return [(change.action, change.path) for change in request.report]


def is_home(
    wire: WireApi, target: WireApi, model: str, native: dict[str, Any], *, knows_wire: bool = True
) -> bool:
    """Whether a target takes a native tool of a wire."""
    if wire == target:
        return True
    # Both have a tool of this type: one made by hand is the target's.
    if target == "interactions" and native.get("type") == "tool_search":
        return not knows_wire
    if wire == "messages" and model in CLAUDE_ON_BEDROCK:
        return True
    # InvokeModel has the body of the model's own API.
    inner = {"converse": "nova", "chat": "gpt-oss"}
    return target == "invoke" and wire in inner and inner[wire] in model


@each_case("knows_wire", [True, False])
@each_case("target, model", TARGETS)
@each_case(
    "wire, native", [(wire, native) for wire, natives in NATIVES.items() for native in natives]
)
def test_native_tool_is_sent_only_to_its_own_wire(
    wire: WireApi, native: dict[str, Any], target: WireApi, model: str, knows_wire: bool
) -> None:
    """B1: raw tools of one wire reached the others, which answer 400 or 500."""
    tool = ToolSpec("own", native=native)
    if knows_wire:
        tool = msgspec.structs.replace(tool, native_wire=wire)
    request = built(target, model, [tool])
    text = request.body.decode()
    kind = str(native.get("type") or next(iter(native)))
    if is_home(wire, target, model, native, knows_wire=knows_wire):
        assert kind in text
        assert changes(request) == []
    else:
        assert kind not in text
        assert changes(request) == [("dropped", "/tools/0")]


def test_unknown_native_tool_goes_where_it_was_made_for() -> None:
    tool = ToolSpec("new", native={"type": "brand_new"})
    for target, model in (("responses", "openai:gpt-6"), ("chat", "custom:x")):
        wire: Any = target
        assert body(built(wire, model, [tool]))["tools"] == [{"type": "brand_new"}]


def test_wire_named_by_the_caller_wins_over_the_form() -> None:
    """Servers of Chat have tools that look like those of Responses."""
    native = {"type": "web_search"}
    tool = ToolSpec("search", native=native, native_wire="chat")
    assert body(built("chat", "custom:x", [tool]))["tools"] == [native]
    assert "tools" not in body(built("chat", "custom:x", [ToolSpec("search", native=native)]))


def test_function_with_keys_of_responses_is_plain_elsewhere() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    function = {
        "type": "function",
        "name": "later",
        "parameters": schema,
        "strict": False,
        "defer_loading": True,
    }
    request = {"model": "m", "input": "hi", "tools": [function]}
    tools = parse_request("responses", msgspec.json.encode(request)).tools
    sent = built("chat", "deepseek:deepseek-v4", tools)
    assert body(sent)["tools"] == [
        {"type": "function", "function": {"name": "later", "parameters": schema, "strict": False}}
    ]
    assert ("dropped", "/tools/0/options/defer_loading") in changes(sent)


# --- tool choice ---

SEARCH: Final = ToolSpec.hosted("web_search")
CODE: Final = ToolSpec.hosted("code_execution")


@each_case(
    "target, model, sent",
    [
        ("messages", "anthropic:claude-opus-4-5", {"type": "tool", "name": "code_execution"}),
        ("responses", "openai:gpt-6", {"type": "code_interpreter"}),
        ("responses", "xai:grok-5", {"type": "code_interpreter"}),
        ("chat", "openrouter:x/y", None),
        ("chat", "groq:openai/gpt-oss-120b", None),
        ("chat", "deepseek:deepseek-v4", None),
        ("gemini", "google:gemini-3-pro", None),
        ("converse", "bedrock:amazon.nova-2-lite-v1:0", None),
        ("ollama", "ollama:qwen3", None),
    ],
)
@each_case("choice", ["code_execution", "code_interpreter"])
def test_choice_of_a_hosted_tool_per_wire(
    target: WireApi, model: str, sent: Any, choice: str
) -> None:
    native = {"type": "code_interpreter", "container": {"type": "auto"}}
    request = {"model": "m", "input": "hi", "tools": [native]}
    tools = parse_request("responses", msgspec.json.encode(request)).tools
    made = built(target, model, tools, tool_choice=choice)
    assert body(made).get("tool_choice") == sent
    assert "toolChoice" not in made.body.decode()
    assert (("dropped", "/tool_choice") in changes(made)) is (sent is None)


def test_choice_by_type_comes_back_for_its_own_wire() -> None:
    choice = {"type": "web_search_preview"}
    request = {"model": "m", "input": "hi", "tools": [choice], "tool_choice": choice}
    prompt = parse_request("responses", msgspec.json.encode(request))
    sent = build(prompt, "openai:gpt-6")
    assert body(sent)["tool_choice"] == choice
    assert changes(sent) == []
    forced = build(prompt, "anthropic:claude-opus-4-5")
    assert body(forced)["tool_choice"] == {"type": "tool", "name": "web_search"}


@pytest.mark.parametrize("choice", ["required", "auto", "none"])
def test_choice_is_dropped_with_the_last_tool(choice: str) -> None:
    request = built(
        "chat", "deepseek:deepseek-v4", [SEARCH], tool_choice=choice, parallel_tools=False
    )
    assert body(request).keys().isdisjoint({"tools", "tool_choice", "parallel_tool_calls"})
    assert changes(request) == [
        ("dropped", "/tools/0"),
        ("dropped", "/tool_choice"),
        ("dropped", "/parallel_tools"),
    ]


def test_function_named_like_a_hosted_tool_may_be_chosen() -> None:
    tools = [ToolSpec("web_search", "mine"), CODE]
    request = built("chat", "deepseek:deepseek-v4", tools, tool_choice="web_search")
    assert body(request)["tool_choice"] == {"type": "function", "function": {"name": "web_search"}}


@pytest.mark.parametrize("first", [ToolSpec("web_search", "mine"), SEARCH])
def test_hosted_tool_gives_way_to_a_tool_of_its_name(first: ToolSpec) -> None:
    """Messages refuses two tools of one name."""
    request = built("messages", "anthropic:claude-opus-5", [first, SEARCH])
    assert [tool["name"] for tool in body(request)["tools"]] == ["web_search"]
    assert changes(request) == [("dropped", "/tools/1")]
    request = built("messages", "anthropic:claude-opus-5", [SEARCH, ToolSpec("web_search")])
    assert changes(request) == [("dropped", "/tools/0")]


# --- namespaces ---

SCHEMA: Final = {"type": "object", "properties": {"id": {"type": "string"}}}
NAMESPACE: Final = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [
        {"type": "function", "name": "lookup", "parameters": SCHEMA, "strict": False},
        {"type": "custom", "name": "note"},
    ],
}
TYPED: Final = ToolSpec("crm", "Customers.", tools=[ToolSpec("lookup", schema=SCHEMA)])
FLAT: Final = "crm__lookup"


def decoded(*tools: Any, **fields: Any) -> Prompt:
    request = {"model": "m", "input": "hi", "tools": tools, **fields}
    return parse_request("responses", msgspec.json.encode(request))


def test_namespace_is_sent_to_responses_as_it_came() -> None:
    request = build(decoded(NAMESPACE), "openai:gpt-6")
    assert body(request)["tools"] == [NAMESPACE]
    assert (changes(request), request.namespaces) == ([], {})
    typed = built("responses", "openai:gpt-6", [TYPED])
    assert body(typed)["tools"] == [
        {**NAMESPACE, "tools": [NAMESPACE["tools"][0]]}  # type: ignore[index]
    ]


@each_case(
    "target, model",
    [*((wire, model) for wire, model in TARGETS if wire != "responses"), ("responses", "xai:grok")],
)
def test_namespace_is_flattened_elsewhere(target: WireApi, model: str) -> None:
    """B1: `namespace` objects went raw to Chat and Gemini."""
    prompt = msgspec.structs.replace(decoded(NAMESPACE), model=None)
    request = build(prompt, model, wire_api=target, base_url="https://x.test/v1")
    text = request.body.decode()
    assert FLAT in text
    assert "crm__note" in text
    assert '"namespace"' not in text
    assert request.namespaces == {FLAT: ("crm", "lookup"), "crm__note": ("crm", "note")}
    assert ("changed", "/tools/0") in changes(request)


CALL: Final[dict[WireApi, dict[str, Any]]] = {
    "messages": {
        "type": "message",
        "content": [{"type": "tool_use", "id": "c1", "name": FLAT, "input": {"id": "7"}}],
        "stop_reason": "tool_use",
    },
    "chat": {
        "choices": [
            {
                "message": {
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": FLAT, "arguments": '{"id":"7"}'},
                        }
                    ]
                },
                "finish_reason": "tool_calls",
            }
        ]
    },
    "gemini": {
        "candidates": [
            {
                "content": {"parts": [{"functionCall": {"name": FLAT, "args": {"id": "7"}}}]},
                "finishReason": "STOP",
            }
        ]
    },
}


def answer(wire: WireApi, request: Request, **options: Any) -> Response:
    return accumulate(
        parse_body(
            wire,
            msgspec.json.encode(CALL[wire]),
            names=request.names,
            namespaces=request.namespaces,
            **options,
        )
    )


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        ("messages", "anthropic:claude-opus-5"),
        ("chat", "deepseek:deepseek-v4"),
        ("gemini", "google:gemini-3-pro"),
    ],
)
def test_call_gets_its_namespace_back_and_is_replayed(wire: WireApi, model: str) -> None:
    request = built(wire, model, [TYPED])
    (call,) = answer(wire, request).calls
    assert isinstance(call, FunctionCall)
    assert (call.namespace, call.name, call.parsed()) == ("crm", "lookup", {"id": "7"})
    history = [user("hi"), call, call.output("known")]
    again = built(wire, model, [TYPED], input=history)
    assert again.body.decode().count(FLAT) == 2 + (wire == "gemini")
    native = body(built("responses", "openai:gpt-6", [TYPED], input=history))["input"][1]
    assert (native["name"], native["namespace"]) == ("lookup", "crm")


def test_flat_name_that_is_taken_gets_another() -> None:
    tools = [TYPED, ToolSpec(FLAT, "mine")]
    request = built("chat", "deepseek:deepseek-v4", tools)
    names = [tool["function"]["name"] for tool in body(request)["tools"]]
    assert len(set(names)) == 2
    assert names[1] == FLAT
    assert request.namespaces == {names[0]: ("crm", "lookup")}
    (call,) = answer("chat", request).calls
    assert (getattr(call, "namespace", ""), call.name) == (None, FLAT)


def test_three_tools_of_one_flat_name_stay_three() -> None:
    """The second and the third got one name, so calls of one became calls of the other."""
    tools = [
        ToolSpec("a__b__c"),
        ToolSpec("a", tools=[ToolSpec("b__c")]),
        ToolSpec("a__b", tools=[ToolSpec("c")]),
    ]
    history = [user("hi"), FunctionCall("1", "b__c", "{}", namespace="a")]
    request = built("messages", "anthropic:claude-opus-5", tools, input=history)
    names = [tool["name"] for tool in body(request)["tools"]]
    assert len(set(names)) == 3
    assert request.namespaces == {names[1]: ("a", "b__c"), names[2]: ("a__b", "c")}
    assert body(request)["messages"][1]["content"][0]["name"] == names[1]


def build_seconds(tools: list[ToolSpec], history: list[Any]) -> float:
    """The shortest of three: other programs run, too."""
    model = "anthropic:claude-opus-5"
    return cpu_seconds(lambda: built("messages", model, tools, input=history), tries=3)


@pytest.mark.timing
def test_flattening_is_linear_in_tools_and_calls() -> None:
    """Each call was compared with each tool: 4,000 of both took 2.4 s."""
    seconds: list[float] = []
    for count in (1000, 4000):
        members = [ToolSpec(f"t{number}") for number in range(count)]
        history: list[Any] = [user("hi")]
        for number in range(count):
            call = FunctionCall(f"c{number}", f"t{number}", "{}", namespace="ns")
            history += [call, call.output("ok")]
        seconds.append(build_seconds([ToolSpec("ns", tools=members)], history))
    assert seconds[1] < 8 * seconds[0]  # quadratic: 14


@each_case("parameters", ["x", 1, [1]])
@each_case("target, model", TARGETS)
def test_schema_that_is_not_an_object_is_invalid(
    target: WireApi, model: str, parameters: Any
) -> None:
    """Builders for Responses and Gemini raised `AttributeError`."""
    native = {"type": "function", "name": "f", "parameters": parameters}
    tool = ToolSpec("f", native=native, native_wire="ollama")
    if target == "ollama":
        tool = msgspec.structs.replace(tool, native_wire="chat")
    with pytest.raises(StreamError, match="/tools/0/native/parameters") as caught:
        built(target, model, [tool])
    assert caught.value.kind == "invalid_request"


@each_case("in_namespace", [False, True])
@each_case("schema", ["x", 1, [1], True])
@each_case("target, model", TARGETS)
def test_schema_of_another_type_names_its_tool(
    target: WireApi, model: str, schema: Any, in_namespace: bool
) -> None:
    """Builders for Responses and Gemini raised `AttributeError`: a gateway answered 500."""
    tool, path = ToolSpec("f", schema=schema), "/tools/0/schema"
    if in_namespace:
        tool, path = ToolSpec("ns", tools=[tool]), "/tools/0/tools/0/schema"
    # As a client sent it: a program's own is refused where it is written.
    prompt = unchecked(Prompt)("hi", tools=[tool])
    with pytest.raises(StreamError, match=path) as caught:
        build(prompt, model, wire_api=target, base_url="https://x.test/v1")
    assert caught.value.kind == "invalid_request"


def test_report_points_into_the_callers_prompt() -> None:
    """Tools that are left out or flattened before it change the index that a builder sees."""
    odd = ToolSpec("odd", schema={"properties": {}})
    tools = [SEARCH, ToolSpec("crm", tools=[ToolSpec("a"), odd]), odd, ToolSpec("a.b")]
    request = built("chat", "deepseek:deepseek-v4", tools)
    assert changes(request) == [
        ("dropped", "/tools/0"),
        ("changed", "/tools/1"),
        ("renamed", "/tools/3/name"),
        ("changed", "/tools/1/tools/1/schema"),
        ("changed", "/tools/2/schema"),
    ]


def test_long_flat_name_is_fitted_and_restored() -> None:
    long = "mcp__" + "server_" * 9
    tool = ToolSpec(f"{long}__", tools=[ToolSpec("read", schema=SCHEMA)])
    request = built("chat", "deepseek:deepseek-v4", [tool])
    (sent,) = [tool["function"]["name"] for tool in body(request)["tools"]]
    assert len(sent) <= 64
    assert request.names == {sent: f"{long}__read"}
    chunk = {**CALL["chat"]["choices"][0]["message"]["tool_calls"][0]["function"], "name": sent}
    call_body = {
        "choices": [
            {
                "message": {"tool_calls": [{"id": "c", "type": "function", "function": chunk}]},
                "finish_reason": "tool_calls",
            }
        ]
    }
    events = parse_body(
        "chat",
        msgspec.json.encode(call_body),
        names=request.names,
        namespaces=request.namespaces,
    )
    (call,) = accumulate(events).calls
    assert (getattr(call, "namespace", ""), call.name) == (f"{long}__", "read")


def test_call_in_text_gets_its_namespace_back() -> None:
    """A dialect reads the flat name, with the types of the namespace's function."""
    tool = ToolSpec(
        "crm",
        tools=[
            ToolSpec("add", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
        ],
    )
    request = built("chat", "custom:x", [tool])
    parameter = "<parameter=n>\n7\n</parameter>"
    text = f"<tool_call>\n<function=crm__add>\n{parameter}\n</function>\n</tool_call>"
    message = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    events = parse_body(
        "chat",
        msgspec.json.encode(message),
        tools=[tool],
        dialects=("qwen3_coder",),
        namespaces=request.namespaces,
    )
    (call,) = accumulate(events).calls
    assert (getattr(call, "namespace", ""), call.name) == ("crm", "add")
    assert msgspec.json.decode(getattr(call, "arguments", "")) == {"n": 7}


@each_case("stream", [True, False])
@each_case("wire", ["messages", "chat", "gemini", "converse", "ollama"])
def test_encoder_writes_the_flat_name(wire: WireApi, stream: bool) -> None:
    """Without it two tools of one name in two namespaces would look alike."""
    call = {"type": "function_call", "call_id": "c1", "namespace": "crm", "name": "lookup"}
    response = {
        "id": "resp_1",
        "status": "completed",
        "output": [{**call, "id": "fc_1", "status": "completed", "arguments": '{"id":"7"}'}],
    }
    events = parse_body("responses", msgspec.json.encode(response))
    (received,) = accumulate(events).calls
    assert getattr(received, "namespace", "") == "crm"
    if stream:
        encode = encoder(wire, model="m")
        data = b"".join(encode.feed(event) for event in events) + encode.close()
        wire_parser = parser(wire, namespaces={FLAT: ("crm", "lookup")})
        back = [*wire_parser.feed(data), *wire_parser.close()]
    else:
        data = encode_body(wire, accumulate(events), model="m")
        back = parse_body(wire, data, namespaces={FLAT: ("crm", "lookup")})
    assert FLAT.encode() in data
    (restored,) = accumulate(back).calls
    assert (getattr(restored, "namespace", ""), restored.name) == ("crm", "lookup")


def test_function_that_a_search_loaded_keeps_its_name() -> None:
    """OpenAI reports it in a namespace of its own name, which no request declares."""
    call = FunctionCall("c1", "later", "{}", "later")
    history = [user("hi"), call, call.output("ok")]
    sent = body(built("chat", "deepseek:deepseek-v4", [ToolSpec("later")], input=history))
    names = [made["function"]["name"] for made in sent["messages"][1]["tool_calls"]]
    assert names == ["later"]


def test_custom_call_keeps_its_namespace_on_responses() -> None:
    call = CustomToolCall("c1", "note", "text", "crm")
    history = [user("hi"), call, call.output("ok")]
    sent = body(built("responses", "openai:gpt-6", [TYPED], input=history))["input"][1]
    assert (sent["name"], sent["namespace"]) == ("note", "crm")


def test_restriction_inside_a_namespace_is_refused_too() -> None:
    member = ToolSpec.hosted("web_search", allowed_domains=["iana.org"])
    with pytest.raises(StreamError, match="/tools/0/tools/0/allowed_domains"):
        built("gemini", "google:gemini-3-pro", [ToolSpec("n", tools=[member])])
