"""Hosted tools in the words of every target, and back (B1, CONTRACT 11 "Hosted tools")."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import pytest
import typing_extensions

from streamlib import HostedTool, Prompt, Request, StreamError, ToolSpec, build
from streamlib.request import hosted_forms, hosted_tools
from streamlib.wires.decoders import parse_request
from streamlib_parsers.hosted_tools import HOSTED_NAMES
from streamlib_parsers.items import WireApi
from tests.support.cases import each_case
from tests.support.sdks import LazySDK

DOMAINS: Final = ["iana.org"]
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "max_uses": {"max_uses": 3},
    "allowed_domains": {"allowed_domains": DOMAINS},
    "blocked_domains": {"blocked_domains": DOMAINS},
    "location": {"location": {"country": "DE", "timezone": "Europe/Berlin"}},
    "stores": {"stores": ["s_1"]},
}
REFUSED: Final = ("allowed_domains", "blocked_domains", "stores")
"""Options that a target without them refuses; without the others the tool is sent."""
PLACE: Final = {"type": "approximate", "country": "DE", "timezone": "Europe/Berlin"}

MAX_USES: Final = {"max_uses": {"max_uses": 3}}
LISTS: Final = {
    "allowed_domains": {"allowed_domains": DOMAINS},
    "blocked_domains": {"blocked_domains": DOMAINS},
}
LOCATION: Final = {"location": {"user_location": PLACE}}


class Declared(NamedTuple):
    """What a target declares.

    Attributes:
        plain: the object without options.
        options: option -> what it adds to the object.
    """

    plain: dict[str, Any]
    options: Mapping[str, Any] = MappingProxyType({})


def within(key: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options in an object of their own."""
    return {name: {key: fields} for name, fields in options.items()}


CLAUDE_SEARCH: Final = Declared(
    {"type": "web_search_20250305", "name": "web_search"}, {**MAX_USES, **LISTS, **LOCATION}
)
OPENROUTER: Final = {
    "web_search": Declared(
        {"type": "openrouter:web_search"},
        within(
            "parameters",
            {
                **MAX_USES,
                **LOCATION,
                "allowed_domains": {"allowed_domains": DOMAINS},
                "blocked_domains": {"excluded_domains": DOMAINS},
            },
        ),
    ),
    "web_fetch": Declared(
        {"type": "openrouter:web_fetch"}, within("parameters", {**MAX_USES, **LISTS})
    ),
    "code_execution": Declared({"type": "openrouter:bash"}),
}
GOOGLE: Final = {
    "web_search": Declared({"googleSearch": {}}),
    "web_fetch": Declared({"urlContext": {}}),
    "code_execution": Declared({"codeExecution": {}}),
    "file_search": Declared(
        {"fileSearch": {}}, {"stores": {"fileSearch": {"fileSearchStoreNames": ["s_1"]}}}
    ),
}

# (wire, "provider:model") -> tool -> declaration. What is missing, the target lacks.
TARGETS: Final[dict[tuple[WireApi, str], dict[str, Declared]]] = {
    ("messages", "anthropic:claude-opus-5"): {
        "web_search": CLAUDE_SEARCH,
        "web_fetch": Declared(
            {"type": "web_fetch_20250910", "name": "web_fetch"}, {**MAX_USES, **LISTS}
        ),
        "code_execution": Declared({"type": "code_execution_20250825", "name": "code_execution"}),
    },
    ("messages", "vertex-anthropic:claude-opus-5"): {"web_search": CLAUDE_SEARCH},
    ("messages", "bedrock:anthropic.claude-opus-5"): {},
    ("responses", "openai:gpt-6"): {
        "web_search": Declared({"type": "web_search"}, {**within("filters", LISTS), **LOCATION}),
        "code_execution": Declared({"type": "code_interpreter", "container": {"type": "auto"}}),
        "file_search": Declared({"type": "file_search"}, {"stores": {"vector_store_ids": ["s_1"]}}),
    },
    ("responses", "xai:grok-5"): {
        "web_search": Declared(
            {"type": "web_search"},
            {
                "allowed_domains": {"filters": {"allowed_domains": DOMAINS}},
                "blocked_domains": {"filters": {"excluded_domains": DOMAINS}},
                **LOCATION,
            },
        ),
        "code_execution": Declared({"type": "code_interpreter"}),
        "file_search": Declared({"type": "file_search"}, {"stores": {"vector_store_ids": ["s_1"]}}),
    },
    ("responses", "openrouter:x/y"): OPENROUTER,
    ("chat", "openrouter:x/y"): OPENROUTER,
    ("chat", "groq:openai/gpt-oss-120b"): {
        "web_search": Declared({"type": "browser_search"}),
        "code_execution": Declared({"type": "code_interpreter"}),
    },
    ("chat", "groq:qwen/qwen3-32b"): {},
    ("chat", "deepseek:deepseek-v4"): {},
    ("chat", "openai:gpt-6"): {},
    ("gemini", "google:gemini-3-pro"): GOOGLE,
    ("interactions", "google:gemini-3-pro"): {
        "web_search": Declared({"type": "google_search"}),
        "web_fetch": Declared({"type": "url_context"}),
        "code_execution": Declared({"type": "code_execution"}),
        "file_search": Declared(
            {"type": "file_search"}, {"stores": {"file_search_store_names": ["s_1"]}}
        ),
    },
    ("interactions", "vertex:gemini-3-pro"): {
        "web_search": Declared({"type": "google_search"}),
        "web_fetch": Declared({"type": "url_context"}),
        "code_execution": Declared({"type": "code_execution"}),
    },
    ("gemini", "vertex:gemini-3-pro"): {
        "web_search": Declared(
            {"googleSearch": {}}, {"blocked_domains": {"googleSearch": {"excludeDomains": DOMAINS}}}
        ),
        "web_fetch": GOOGLE["web_fetch"],
        "code_execution": GOOGLE["code_execution"],
    },
    ("converse", "bedrock:amazon.nova-2-lite-v1:0"): {
        "web_search": Declared({"systemTool": {"name": "nova_grounding"}}),
        "code_execution": Declared({"systemTool": {"name": "nova_code_interpreter"}}),
    },
    ("converse", "bedrock:anthropic.claude-opus-5"): {},
    ("invoke", "bedrock:anthropic.claude-opus-5"): {},
    ("ollama", "ollama:qwen3"): {},
    ("cohere", "cohere:command-a-03-2025"): {},
}

MATRIX: Final = [
    (wire, model, tool, option)
    for wire, model in TARGETS
    for tool in HOSTED_NAMES
    for option in OPTIONS
]


def built(wire: WireApi, model: str, *tools: ToolSpec, **settings: Any) -> Request:
    prompt = Prompt("hi", tools=tools, **settings)
    return build(prompt, model, wire_api=wire, base_url="https://x.test/v1")


def sent_tools(request: Request) -> list[Any]:
    body = msgspec.json.decode(request.body)
    if request.wire_api == "converse":
        return list((body.get("toolConfig") or {}).get("tools") or ())
    return list(body.get("tools") or ())


def changes(request: Request) -> list[tuple[str, str]]:
    return [(change.action, change.path) for change in request.report]


@each_case("wire, model, name, option", MATRIX)
def test_every_tool_and_option_for_every_target(
    wire: WireApi, model: str, name: Any, option: str
) -> None:
    """B1: in the target's words, dropped and reported, or refused; never in another's words."""
    tool = ToolSpec.hosted(name, **OPTIONS[option])
    declared = TARGETS[wire, model].get(name)
    if declared is None:
        request = built(wire, model, tool)
        assert sent_tools(request) == []
        assert changes(request) == [("dropped", "/tools/0")]
        return
    needs_stores = "stores" in declared.options
    is_missing = option != "plain" and option not in declared.options
    if (is_missing and option in REFUSED) or (needs_stores and option != "stores"):
        with pytest.raises(StreamError) as caught:
            built(wire, model, tool)
        assert (caught.value.info.kind, caught.value.info.code) == (
            "invalid_request",
            "hosted_tool",
        )
        return
    request = built(wire, model, tool)
    assert sent_tools(request) == [{**declared.plain, **declared.options.get(option, {})}]
    if is_missing:
        assert changes(request) == [("dropped", f"/tools/0/{option}")]
        return
    assert changes(request) == []
    prompt = parse_request(wire, request.body, path=f"/model/{model}/converse")
    assert [spec.provider_run for spec in prompt.tools] == [tool.provider_run]
    again = build(prompt, model, wire_api=wire, base_url="https://x.test/v1")
    assert sent_tools(again) == sent_tools(request)


OWN_OPTIONS: Final[list[tuple[WireApi, str, dict[str, Any]]]] = [
    (
        "messages",
        "anthropic:claude-opus-5",
        {
            "type": "web_search_20260318",
            "name": "web_search",
            "max_uses": 2,
            "allowed_domains": DOMAINS,
            "allowed_callers": ["direct"],
            "response_inclusion": "excluded",
        },
    ),
    (
        "messages",
        "anthropic:claude-opus-5",
        {"type": "web_fetch_20260318", "name": "web_fetch", "url_sources": {"user": True}},
    ),
    (
        "responses",
        "openai:gpt-6",
        {
            "type": "web_search_2025_08_26",
            "filters": {"allowed_domains": DOMAINS},
            "search_context_size": "low",
            "external_web_access": False,
            "user_location": {"type": "approximate"},
        },
    ),
    (
        "responses",
        "openai:gpt-6",
        {
            "type": "file_search",
            "vector_store_ids": ["vs_1"],
            "filters": {"type": "eq", "key": "k", "value": 1},
            "max_num_results": 3,
        },
    ),
    (
        "responses",
        "openai:gpt-6",
        {"type": "code_interpreter", "container": {"type": "auto", "memory_limit": "4g"}},
    ),
    (
        "gemini",
        "google:gemini-3-pro",
        {"googleSearch": {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z"}}},
    ),
    (
        "interactions",
        "google:gemini-3-pro",
        {"type": "google_search", "search_types": ["image_search"]},
    ),
    (
        "chat",
        "openrouter:x/y",
        {"type": "openrouter:web_search", "parameters": {"engine": "exa", "max_uses": 1}},
    ),
    ("converse", "bedrock:amazon.nova-2-lite-v1:0", {"systemTool": {"name": "nova_grounding"}}),
]


def request_body(wire: WireApi, tools: list[Any], **fields: Any) -> bytes:
    """A request of a wire with tools in its own words."""
    body: dict[str, Any] = {"model": "m", "tools": tools, **fields}
    message = {"role": "user", "content": "hi"}
    if wire in ("responses", "interactions"):
        body["input"] = "hi"
    elif wire == "gemini":
        body["contents"] = [{"role": "user", "parts": [{"text": "hi"}]}]
    elif wire == "converse":
        body = {
            "messages": [{"role": "user", "content": [{"text": "hi"}]}],
            "toolConfig": {"tools": tools},
        }
    else:
        body |= {"messages": [message], "max_tokens": 5}
    return msgspec.json.encode(body)


@each_case("wire, model, native", OWN_OPTIONS)
def test_own_options_survive_the_way_through(
    wire: WireApi, model: str, native: dict[str, Any]
) -> None:
    """Invariant 12: all leaves of a declaration come back for its own wire."""
    prompt = parse_request(wire, request_body(wire, [native]))
    assert prompt.tools[0].provider_run is not None
    request = build(prompt, model, wire_api=wire, base_url="https://x.test/v1")
    assert sent_tools(request) == [native]
    assert [change for change in request.report if change.path.startswith("/tools")] == []


def test_edited_limits_win_over_the_wires_own_object() -> None:
    native = {
        "type": "web_search_20260318",
        "name": "web_search",
        "max_uses": 2,
        "response_inclusion": "excluded",
    }
    tool = parse_request("messages", request_body("messages", [native])).tools[0]
    edited = msgspec.structs.replace(
        tool, provider_run=HostedTool("web_search", max_uses=1, allowed_domains=DOMAINS)
    )
    request = built("messages", "anthropic:claude-opus-5", edited)
    assert sent_tools(request) == [{**native, "max_uses": 1, "allowed_domains": DOMAINS}]
    assert changes(request) == []


def test_translated_tool_reports_the_options_it_loses() -> None:
    native = {
        "type": "web_search_20260318",
        "name": "web_search",
        "max_uses": 2,
        "allowed_domains": DOMAINS,
        "response_inclusion": "excluded",
    }
    tools = parse_request("messages", request_body("messages", [native])).tools
    request = built("responses", "openai:gpt-6", *tools)
    assert sent_tools(request) == [{"type": "web_search", "filters": {"allowed_domains": DOMAINS}}]
    assert changes(request) == [
        ("dropped", "/tools/0/max_uses"),
        ("dropped", "/tools/0/native/response_inclusion"),
    ]


@each_case(
    "wire, native",
    [
        ("responses", {"type": "web_search", "external_web_access": False}),
        (
            "responses",
            {
                "type": "code_interpreter",
                "container": {"type": "auto", "network_policy": {"type": "disabled"}},
            },
        ),
        (
            "messages",
            {"type": "web_fetch_20260318", "name": "web_fetch", "url_sources": {"user": True}},
        ),
        ("gemini", {"googleSearch": {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z"}}}),
    ],
)
@each_case(
    "target, model",
    [
        ("messages", "anthropic:claude-opus-5"),
        ("responses", "openai:gpt-6"),
        ("gemini", "google:gemini-3-pro"),
    ],
)
def test_tool_with_another_restriction_stays_at_home(
    wire: WireApi, native: dict[str, Any], target: WireApi, model: str
) -> None:
    """A restriction without a portable field is never lifted: the tool is left out."""
    tools = parse_request(wire, request_body(wire, [native])).tools
    request = built(target, model, *tools)
    if wire == target:
        assert sent_tools(request) == [native]
    else:
        assert sent_tools(request) == []
        assert changes(request) == [("dropped", "/tools/0")]


def test_unknown_filter_is_never_lifted() -> None:
    """It was left out silently, because `filters` has options that are known."""
    native = {"type": "web_search", "filters": {"allowed_domains": DOMAINS, "only_hosts": ["a.b"]}}
    tools = parse_request("responses", request_body("responses", [native])).tools
    assert sent_tools(built("responses", "openai:gpt-6", *tools)) == [native]
    request = built("messages", "anthropic:claude-opus-5", *tools)
    assert sent_tools(request) == []
    assert changes(request) == [("dropped", "/tools/0")]
    assert "filters.only_hosts" in request.report[0].reason


def test_unknown_parameter_is_reported() -> None:
    """It was left out silently, because `parameters` has options that are known."""
    native = {"type": "openrouter:web_search", "parameters": {"max_uses": 2, "engine": "exa"}}
    tools = parse_request("chat", request_body("chat", [native])).tools
    request = built("messages", "anthropic:claude-opus-5", *tools)
    assert [tool["max_uses"] for tool in sent_tools(request)] == [2]
    assert changes(request) == [("dropped", "/tools/0/native/parameters/engine")]


def test_lost_options_of_a_container_are_named_one_by_one() -> None:
    container = {"type": "auto", "memory_limit": "4g", "file_ids": ["file_1"]}
    native = {"type": "code_interpreter", "container": container}
    tools = parse_request("responses", request_body("responses", [native])).tools
    request = built("messages", "anthropic:claude-opus-5", *tools)
    assert changes(request) == [
        ("dropped", "/tools/0/native/container/memory_limit"),
        ("dropped", "/tools/0/native/container/file_ids"),
    ]


@pytest.mark.parametrize("options", [1, "x", [1], True])
def test_options_that_are_not_an_object_are_none(options: Any) -> None:
    """Another wire's builder raised `AttributeError`."""
    native = {"googleSearch": options}
    tools = parse_request("gemini", request_body("gemini", [native])).tools
    (sent,) = sent_tools(built("messages", "anthropic:claude-opus-5", *tools))
    assert sent["type"] == "web_search_20250305"


@pytest.mark.parametrize("index", [0, 2])
def test_error_of_an_edited_tool_names_it(index: int) -> None:
    """The error named `/tools`, and not which."""
    native = {"type": "web_search_20250305", "name": "web_search", "max_uses": "many"}
    others = [ToolSpec(f"other_{number}") for number in range(index)]
    tools = [*others, ToolSpec("web_search", native=native)]
    with pytest.raises(StreamError, match=f"/tools/{index}: max_uses is a number"):
        built("messages", "anthropic:claude-opus-5", *tools)


def test_stores_of_another_provider_are_refused() -> None:
    native = {"type": "file_search", "vector_store_ids": ["vs_1"]}
    tools = parse_request("responses", request_body("responses", [native])).tools
    with pytest.raises(StreamError, match="stores of file_search"):
        built("gemini", "google:gemini-3-pro", *tools)
    assert sent_tools(built("messages", "anthropic:claude-opus-5", *tools)) == []


def test_both_lists_of_domains_are_refused_where_one_fits() -> None:
    tool = ToolSpec.hosted("web_search", allowed_domains=["a.b"], blocked_domains=["c.a.b"])
    with pytest.raises(StreamError, match="not both"):
        built("messages", "anthropic:claude-opus-5", tool)
    filters = {"allowed_domains": ["a.b"], "blocked_domains": ["c.a.b"]}
    request = built("responses", "openai:gpt-6", tool)
    assert sent_tools(request) == [{"type": "web_search", "filters": filters}]


def test_perplexity_marks_blocked_domains_with_a_minus() -> None:
    declaration = hosted_tools.PERPLEXITY["web_search"]
    tool = HostedTool("web_search", blocked_domains=DOMAINS)
    native = hosted_forms.declare(declaration, tool)
    assert native == {"type": "web_search", "filters": {"search_domain_filter": ["-iana.org"]}}
    assert hosted_forms.read_hosted("responses", native) == tool


@pytest.mark.parametrize("domains", ["iana.org", [1], {"a": 1}])
def test_restriction_of_another_type_is_not_a_request(domains: Any) -> None:
    native = {"type": "web_search_20250305", "name": "web_search", "allowed_domains": domains}
    with pytest.raises(StreamError, match="invalid_request"):
        parse_request("messages", request_body("messages", [native]))


def test_mistakes_in_a_hosted_tool_are_named() -> None:
    wrong: Any = "browse"
    with pytest.raises(ValueError, match="web_search, web_fetch"):
        ToolSpec.hosted(wrong)
    with pytest.raises(TypeError, match="allowed_domains is a list"):
        ToolSpec.hosted("web_search", allowed_domains="iana.org")
    with pytest.raises(ValueError, match="not 'street'"):
        ToolSpec.hosted("web_search", location={"street": "x"})


def test_every_declaration_names_its_source() -> None:
    for tools in (*hosted_tools.WIRE_TOOLS.values(), *hosted_tools.PROVIDER_TOOLS.values()):
        for declaration in tools.values():
            assert "2026" in declaration.source


# --- the types of the official SDKs ---

anthropic_types: Final = LazySDK("anthropic.types.tool_union_param")
openai_types: Final = LazySDK("openai.types.responses.tool_param")
google_types: Final = LazySDK("google.genai.types")

SEARCHES: Final = [
    ToolSpec.hosted("web_search", max_uses=3, allowed_domains=DOMAINS, **OPTIONS["location"]),
    ToolSpec.hosted("code_execution"),
]
FETCH: Final = ToolSpec.hosted("web_fetch", blocked_domains=DOMAINS)
FILES: Final = ToolSpec.hosted("file_search", stores=["s_1"])


def types_by_name(union: Any) -> dict[str, Any]:
    """The members of a union of TypedDicts by each literal of their `type`."""
    members: dict[str, Any] = {}
    for member in typing.get_args(union):
        hints = typing_extensions.get_type_hints(member)
        for kind in typing.get_args(hints.get("type")):
            members[kind] = member
    return members


@pytest.mark.parametrize(
    ("wire", "model", "tools", "union"),
    [
        (
            "messages",
            "anthropic:claude-opus-5",
            [*SEARCHES, FETCH],
            lambda: anthropic_types.ToolUnionParam,
        ),
        ("responses", "openai:gpt-6", [*SEARCHES, FILES], lambda: openai_types.ToolParam),
    ],
    ids=["anthropic", "openai"],
)
def test_sdk_has_the_fields_that_are_sent(
    wire: WireApi, model: str, tools: list[ToolSpec], union: Callable[[], Any]
) -> None:
    known = types_by_name(union())
    for native in sent_tools(built(wire, model, *tools)):
        member = known[native["type"]]
        assert member.__required_keys__ <= native.keys()
        assert native.keys() <= typing_extensions.get_type_hints(member).keys()


@pytest.mark.parametrize(
    ("tools", "union"),
    [
        (hosted_tools.ANTHROPIC, lambda: anthropic_types.ToolUnionParam),
        (hosted_tools.OPENAI, lambda: openai_types.ToolParam),
    ],
    ids=["anthropic", "openai"],
)
def test_sdk_has_every_version_of_the_table(
    tools: hosted_tools.Tools, union: Callable[[], Any]
) -> None:
    """A version that the SDK adds is missing in the table, until it is a row."""
    known = types_by_name(union())
    for name, declaration in tools.items():
        stem = declaration.types[0].partition("_2")[0]
        versions = {kind for kind in known if str(kind).startswith(stem)}
        assert set(declaration.types) == versions, name


def test_google_sdk_takes_the_declarations() -> None:
    tools = [ToolSpec.hosted("web_search"), ToolSpec.hosted("code_execution"), FILES]
    fetch = ToolSpec.hosted("web_fetch")
    for native in sent_tools(built("gemini", "google:gemini-3-pro", *tools, fetch)):
        assert google_types.Tool.model_validate(native)
    blocked = ToolSpec.hosted("web_search", blocked_domains=DOMAINS)
    (native,) = sent_tools(built("gemini", "vertex:gemini-3-pro", blocked))
    assert google_types.Tool.model_validate(native).google_search.exclude_domains == DOMAINS
