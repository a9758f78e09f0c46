"""Providers: lookup by name, every provider's requests, and the generated page and snapshots.

After a change of values run `python -m lab.provider_pages` and read the differences.
"""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlib
from lab.provider_pages.pages import PAGE, regenerated
from streamlib import (
    Change,
    Prompt,
    Provider,
    ReasoningOptions,
    StreamError,
    ToolSpec,
    build,
    register,
    user,
)
from streamlib.client.auth import STYLES
from streamlib.client.origins import is_own_origin, origin_of
from streamlib.providers import find, for_model, known, provider, shipped
from streamlib.providers.models import CLAUDE, Traits, traits
from streamlib.providers.names import Charset, fit_names
from streamlib.providers.websocket import WebSocketSettings
from streamlib.request.effort import level
from streamlib.request.provider_steps import STEPS
from streamlib.request.schemas import typed_schema
from streamlib_parsers import CustomToolCall, FunctionCall, FunctionCallOutput
from tests.support.cases import each_case
from tests.support.provider_cases import (
    MODELS,
    WEATHER,
    build_request,
    formatted,
    history,
    path_of,
    prompts,
    providers,
    snapshot,
)
from tests.support.quirks import ABSENT, QUIRKS, Quirk, value_at
from tests.support.sdks import reader_of
from tests.support.shared import ROOT

EACH = pytest.mark.parametrize("service", providers(), ids=lambda service: service.name)


@pytest.fixture(autouse=True)
def _registered_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes what a test registers."""
    monkeypatch.setattr("streamlib.providers._registered", {})


# --- names ---


def test_no_two_providers_share_a_name() -> None:
    names = [name for service in providers() for name in (service.name, *service.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("model", "name", "rest"),
    [
        ("anthropic:claude-opus-5", "anthropic", "claude-opus-5"),
        ("claude:claude-opus-5", "anthropic", "claude-opus-5"),
        ("github:openai/gpt-4.1", "github", "openai/gpt-4.1"),
        ("openai-codex:gpt-5.4", "openai-codex", "gpt-5.4"),
        ("qwen-portal:qwen3-coder-plus", "qwen-portal", "qwen3-coder-plus"),
        ("huggingface:org/name:together", "huggingface", "org/name:together"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
        ("bedrock:us.anthropic.claude-opus-5-v1:0", "bedrock", "us.anthropic.claude-opus-5-v1:0"),
        ("llama.cpp:any", "llamacpp", "any"),
    ],
)
def test_find_reads_the_name_or_alias_of_the_provider(model: str, name: str, rest: str) -> None:
    service, model_name = find(model)
    assert (service.name, model_name) == (name, rest)


def test_find_prefers_the_longest_known_name() -> None:
    register(Provider(name="corp", base_url="https://a.example"))
    register(Provider(name="corp:eu", base_url="https://b.example"))
    expected = {
        "corp:eu:m": ("corp:eu", "m"),
        "corp:eu": ("corp", "eu"),
        "corp:us:m": ("corp", "us:m"),
    }
    for model, names in expected.items():
        service, model_name = find(model)
        assert (service.name, model_name) == names


@pytest.mark.parametrize(
    ("name", "similar"),
    [("antropic", "anthropic"), ("open-router", "openrouter"), ("deepsek", "deepseek")],
)
def test_unknown_provider_error_lists_similar_names(name: str, similar: str) -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt("hi"), f"{name}:m")
    assert (caught.value.kind, caught.value.code) == ("invalid_request", "unknown_provider")
    assert name in str(caught.value)
    assert similar in str(caught.value)


def test_unknown_provider_error_lists_all_if_none_is_similar() -> None:
    with pytest.raises(StreamError, match=r"one of .*anthropic.*zai"):
        provider("0000000000")


def test_model_without_a_colon_error_shows_the_format() -> None:
    with pytest.raises(StreamError, match="provider:model"):
        build(Prompt("hi"), "claude-opus-5")


@each_case(
    "model, suggestion",
    [
        ("openai/gpt-5", ": write 'openai:gpt-5'"),
        ("nobody/gpt-5", ""),
        ("openai", ""),
        ("Claude-opus-5", ": write 'anthropic:Claude-opus-5'"),
        ("some-model", ""),
    ],
)
def test_error_suggests_the_provider_of_a_model(model: str, suggestion: str) -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt("hi"), model)
    assert str(caught.value).partition(": write")[1:] == suggestion.partition(": write")[1:]


def test_register_takes_three_lines() -> None:
    mine = Provider(name="acme", base_url="https://api.acme.example/v1", key_env=("ACME_API_KEY",))
    register(mine)
    assert build(Prompt("hi"), "acme:m").url == "https://api.acme.example/v1/chat/completions"


def test_given_provider_wins_over_registered_over_shipped() -> None:
    mistral = shipped()["mistral"]
    register(msgspec.structs.replace(mistral, base_url="https://registered.example"))
    assert provider("mistral").base_url == "https://registered.example"
    own = msgspec.structs.replace(mistral, base_url="https://own.example")
    assert known([own])["mistralai"].base_url == "https://own.example"
    request = build(Prompt("hi"), "mistral:m", providers=(own,))
    assert request.url == "https://own.example/chat/completions"


# --- names that a wire takes ---

LED = Charset("a-z0-9_", 12, lead="a-z_")
SHORT = Charset("a-z0-9", 12, shortest=2)


@each_case(
    "name, charset, fitted",
    [
        ("abc", LED, "abc"),
        ("", LED, "_"),
        ("1a", LED, "_1a"),
        ("a b", LED, "a_b"),
        ("a" * 12, LED, "a" * 12),
        ("a b456789012", LED, "a_b456789012"),
        ("ab" * 7, LED, "aba_" + sha256(b"ab" * 7).hexdigest()[:8]),
        ("ab", SHORT, "ab"),
        ("a", SHORT, sha256(b"a").hexdigest()[:12]),
    ],
)
def test_name_is_changed_where_the_wire_refuses_it(
    name: str, charset: Charset, fitted: str
) -> None:
    assert fit_names([name], charset).get(name, name) == fitted


@given(st.lists(st.text("aB1_ é", max_size=15)), st.sampled_from([LED, SHORT, Charset()]))
def test_names_fit_and_stay_apart(names: list[str], charset: Charset) -> None:
    changed = fit_names(names, charset)
    fitted = [changed.get(name, name) for name in dict.fromkeys(names)]
    assert len({*fitted}) == len(fitted)
    for name in fitted:
        assert charset.shortest <= len(name) <= charset.longest
        assert fit_names([name], charset) == {}


# --- values ---


@EACH
def test_provider_values_are_consistent(service: Provider) -> None:
    assert service.wires
    assert service.auth in {*STYLES, "aws", "none"}
    assert set(service.prepare) <= set(STEPS)
    for url in (service.base_url, *service.wire_urls.values(), *service.other_urls):
        local = service.key_optional
        assert not url or url.startswith("https://") or local
    variant: dict[str, Any]
    for start, variant in service.model_overrides.items():
        changed = for_model(service, f"{start}-x")
        assert [getattr(changed, field) for field in variant] == list(variant.values())


def test_servers_of_open_models_leave_calls_in_the_text() -> None:
    """A dialect is looked for in what these send; the others' calls are typed."""
    servers = {service.name for service in providers() if not service.parses_calls}
    own = {"llamacpp", "lmstudio", "ollama", "sglang", "vllm", "custom"}
    hosts = {"deepinfra", "fireworks", "huggingface", "nous", "novita", "nvidia", "openrouter"}
    assert servers == own | hosts | {"sambanova", "together", "xai"}


@EACH
def test_own_addresses_get_the_keys(service: Provider) -> None:
    for url in (service.base_url, *service.wire_urls.values(), *service.other_urls):
        if url and "{" not in url:
            assert is_own_origin(service, origin_of(url))
    assert is_own_origin(service, "https://evil.example:443") is (not service.base_url)


def test_for_model_uses_the_longest_prefix() -> None:
    base = Provider(name="x", model_overrides={"a": {"base_url": "1"}, "a-b": {"base_url": "2"}})
    assert [
        for_model(base, model).base_url for model in ("c", "a", "a-b-c", "vendor/A-B", "ba")
    ] == ["", "1", "2", "2", ""]


def test_unsupported_when_thinking_is_sent_without_thinking() -> None:
    mine = Provider(
        name="x", base_url="https://x.example", unsupported_when_thinking={"temperature": "why"}
    )
    gates = {
        "thinker": Traits(thinking_default=True),
        "never": Traits(thinking=(), thinking_default=True),
    }

    def sent(model: str, reasoning: Any) -> bool:
        request = build(
            Prompt("x", temperature=0.1, reasoning=reasoning), model, provider=mine, models=gates
        )
        return b"temperature" in request.body

    assert [sent("thinker", level) for level in (None, "high", "off")] == [False, False, True]
    assert [sent("other", level) for level in (None, "high", "off")] == [True, False, True]
    assert sent("never", None)


@pytest.mark.parametrize("wire", ["chat", "responses", "messages"])
def test_conversation_header_is_sent_on_every_wire(wire: Any) -> None:
    mine = Provider(
        name="x",
        wires=("chat", "responses", "messages"),
        base_url="https://x.example",
        conversation_header="x-conv",
    )
    prompt = Prompt("x", conversation_id="c 1")
    request = build(prompt, "m", provider=mine, wire_api=wire)
    assert request.headers["x-conv"] == "c 1"


@pytest.mark.parametrize("name", ["a\r\nb: c", "é", "a\x00", " a", ""])
def test_conversation_header_rejects_invalid_values(name: str) -> None:
    mine = Provider(name="x", base_url="https://x.example", conversation_header="x-conv")
    request = build(Prompt("x", conversation_id=name), "m", provider=mine)
    assert "x-conv" not in request.headers
    paths = [change.path for change in request.report]
    if name:
        assert paths == ["/conversation_id"]
    else:
        assert paths == []


def test_unknown_step_error_names_the_step() -> None:
    mine = Provider(name="x", base_url="https://x.example", prepare=("nothing",))
    with pytest.raises(StreamError, match="'nothing'"):
        build(Prompt("x"), "m", provider=mine)


def test_steps_do_not_change_the_prompt() -> None:
    prompt = Prompt([user("x")], instructions="i", tools=[WEATHER])
    for name in ("qwen-portal", "minimax", "moonshot", "copilot"):
        build_request(name, prompt)
    assert WEATHER.strict
    assert prompt == Prompt([user("x")], instructions="i", tools=[WEATHER])


# --- traits ---


@each_case(
    "model, trait, value",
    [
        ("gpt-5-mini", "completion_tokens", True),
        ("gpt-4o", "completion_tokens", False),
        ("o1-mini", "developer_role", False),
        ("o3", "developer_role", True),
        ("claude-opus-4-7", "sampling", False),
        ("anthropic/claude-sonnet-4.6", "sampling", True),
        ("anthropic/claude-opus-4.5", "schemas", True),
        ("Claude-Sonnet-4.5", "schemas", True),
        ("claude-opus-4.8", "sampling", False),
        ("claude-3.7-sonnet", "schemas", False),
        ("DeepSeek-V4-Pro", "thinking_default", True),
        ("deepseek-chat", "thinking_default", False),
        ("kimi-k3", "thinking_off", ""),
        ("grok-4.3", "efforts", ("low", "medium", "high")),
        ("x-ai/grok-4-fast-non-reasoning", "thinking", ()),
        ("nobody-knows-it", "sampling", True),
        # From gpt-5.1 to gpt-5.4 they think where a level is asked for.
        ("gpt-5", "thinking_default", True),
        ("gpt-5.1", "thinking_default", False),
        ("gpt-5.2", "thinking_default", False),
        ("gpt-5.3", "thinking_default", False),
        ("gpt-5.4", "thinking_default", False),
        ("gpt-5.5", "thinking_default", True),
        ("gpt-6", "thinking_default", True),
        ("gemini-2.5-pro", "penalties", True),
        ("gemini-3-pro", "penalties", False),
        ("gemini-3-pro", "sampling", True),
        ("gemini-3.5-flash-lite", "sampling", False),
        ("gemini-3.6-flash", "sampling", False),
        ("gemini-3.7-flash", "sampling", False),
        ("gemini-3.8-flash", "sampling", False),
        ("gemini-4-flash", "sampling", False),
        ("gemini-4-argon", "sampling", False),
        ("gemini-4-carbon", "sampling", False),
    ],
)
def test_traits_of_known_models(model: str, trait: str, value: Any) -> None:
    assert getattr(traits(model), trait) == value


def test_newer_claudes_take_system_messages_and_less_else() -> None:
    system: set[str] = set()
    sampling: set[str] = set()
    prefill: set[str] = set()
    for name in CLAUDE:
        if traits(name).prefill:
            prefill.add(name.removeprefix("claude-"))
        if traits(name).system_role:
            system.add(name.removeprefix("claude-"))
        if traits(name).sampling:
            sampling.add(name.removeprefix("claude-"))
    fables = {"fable-5", "fable-5-1", "fable-5-2", "mythos-5", "mythos-5-1", "mythos-5-2"}
    assert system == {"opus-4-8", "opus-5", "opus-5-5", *fables}
    opus = {"opus-4", "opus-4-1", "opus-4-5", "opus-4-6"}
    sonnet = {"sonnet-4", "sonnet-4-5", "sonnet-4-6"}
    assert sampling == {"3", "3-7", "haiku-4-5", *opus, *sonnet}
    assert prefill == sampling - {"opus-4-6", "sonnet-4-6"}


def test_callers_traits_win_over_the_librarys() -> None:
    mine = {"gpt-5": Traits(completion_tokens=False, developer_role=False)}
    prompt = Prompt(
        [streamlib.Message("developer", [streamlib.Text("x")]), user("y")], max_output_tokens=9
    )
    roles: list[str] = []
    for table in (None, mine):
        request = build(prompt, "openai:gpt-5", wire_api="chat", models=table)
        roles.append(json.loads(request.body)["messages"][0]["role"])
    assert roles == ["developer", "system"]
    github = json.loads(build(prompt, "github:openai/gpt-5", models=mine).body)
    assert (github["max_tokens"], "max_completion_tokens" in github) == (9, False)


# --- requests ---


@EACH
def test_requests_equal_the_snapshot(service: Provider) -> None:
    assert formatted(snapshot(service)) == path_of(service).read_text(encoding="utf-8"), (
        "python -m lab.provider_pages"
    )


def test_every_snapshot_has_its_provider() -> None:
    assert {path.stem for path in path_of(providers()[0]).parent.iterdir()} == {
        service.name for service in providers()
    }


CASES = [
    (service.name, wire, case)
    for service in providers()
    for wire in service.wires
    for case in prompts(service.name, wire)
]


@each_case("name, wire, case", CASES)
def test_every_request_is_read_back_by_its_wire(name: str, wire: Any, case: str) -> None:
    prompt = prompts(name, wire)[case]
    request = build_request(name, prompt, wire=wire)
    read = streamlib.parse_request(wire, request.body, headers=request.headers)
    assert read.model == json.loads(request.body).get("model")
    assert (
        read.model == MODELS.get(name, "model")
        or quote(MODELS.get(name, "model"), safe="") in request.url
    )
    tool_names = [tool.name for tool in prompt.tools]
    # Perplexity accepts no tools.
    if any(change == Change("dropped", "/tools", change.reason) for change in request.report):
        tool_names = []
    assert [tool.name for tool in read.tools] == tool_names
    calls = [item for item in read.items if isinstance(item, (FunctionCall, CustomToolCall))]
    outputs = [item for item in read.items if isinstance(item, FunctionCallOutput)]
    assert len(calls) == len(outputs) == int(bool(prompt.tools))
    for call in calls:
        assert (call.name, call.parsed()) == ("get_weather", {"city": "Paris"})


@each_case("name, wire, case", [case for case in CASES if case[1] in ("chat", "responses")])
def test_openais_own_types_read_every_request(name: str, wire: Any, case: str) -> None:
    pytest.importorskip(
        "openai", reason="openai is not installed: requests are not read by the official types"
    )
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    official: Any = chat.CompletionCreateParamsStreaming
    if wire == "responses":
        official = responses.ResponseCreateParamsStreaming
    body = json.loads(build_request(name, prompts(name, wire)[case], wire=wire).body)
    for message in body.get("messages", ()):
        if isinstance(message.get("content"), list):  # Mistral's own part
            message["content"] = [part for part in message["content"] if part["type"] != "thinking"]
    for item in body.get("input", ()):
        if item["type"] == "reasoning":
            # The types require an id, the API refuses that of a response it has not stored.
            item.setdefault("id", "rs_1")
    reader_of(official).validate_python(body)


@pytest.mark.parametrize(
    "name", [service.name for service in providers() if "chat" in service.wires]
)
def test_continued_conversation_keeps_its_prefix(name: str) -> None:
    message = streamlib.Message(
        "assistant",
        [streamlib.Text("18 degrees.")],
        origin=streamlib.Origin("chat", name),
        response_id="r2",
    )
    turns = [
        *history(name, "chat"),
        message,
        user("And Rome?"),
        *history(name, "chat")[1:3],
        FunctionCallOutput("call_1", "20 degrees"),
    ]
    bodies: list[dict[str, Any]] = []
    for end in (1, 4, 6, 9):
        prompt = Prompt(turns[:end], instructions="i", tools=[WEATHER])
        bodies.append(json.loads(build_request(name, prompt, wire="chat").body))
    for shorter, longer in pairwise(bodies):
        assert longer["messages"][: len(shorter["messages"])] == shorter["messages"]
        assert longer.get("tools") == shorter.get("tools")


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.id)
def test_quirk(quirk: Quirk) -> None:
    request = quirk.request()
    assert {pointer: value_at(request, pointer) for pointer in quirk.body} == quirk.body
    assert {name: request.headers.get(name, ABSENT) for name in quirk.headers} == quirk.headers
    assert quirk.url in (None, request.url)
    assert set(quirk.reported) <= {change.path for change in request.report}


def test_every_provider_with_own_values_has_a_quirk() -> None:
    plain = {"loopback", "vertex", "moonshot-cn", "minimax-cn"}  # no values of their own
    assert {service.name for service in providers()} - plain == {quirk.provider for quirk in QUIRKS}


def test_quirk_names_are_unique() -> None:
    assert len({quirk.id for quirk in QUIRKS}) == len(QUIRKS)


# --- pages ---


def test_limits_of_websockets_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "websocket.md").read_text(encoding="utf-8")
    written: dict[str, list[str]] = {}
    for line in page.splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) == 4:
            written[cells[3]] = cells[1:3]
    openai = shipped()["openai"].websocket
    assert openai == shipped()["loopback"].websocket
    assert openai is not None
    for column, settings in enumerate((openai, WebSocketSettings())):
        shown = {
            "lanes": str(settings.lanes or "none"),
            "in_flight": str(settings.in_flight),
            "seconds": f"{(settings.seconds or 0) / 60:g} minutes",
            "buffered_bytes": f"{settings.buffered_bytes / 2**20:g} MiB",
        }
        assert {field: written[field][column] for field in shown} == shown


def test_page_equals_the_generated_one() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert regenerated(page) == page, "python -m lab.provider_pages"


# --- Moonshot's schemas ---


@pytest.mark.parametrize(
    ("schema", "fitted"),
    [
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"type": ["null"]}, {"type": "string"}),
        ({"enum": ["a", None, ""]}, {"enum": ["a"], "type": "string"}),
        ({"enum": [None], "type": "string"}, {"type": "string"}),
        ({"enum": [1, 2]}, {"enum": [1, 2], "type": "integer"}),
        ({"const": True}, {"const": True, "type": "boolean"}),
        ({"const": ["a"]}, {"const": ["a"], "type": "array"}),
        ({"enum": ["", 2]}, {"enum": [2], "type": "integer"}),
        ({"enum": []}, {"type": "string"}),
        (
            {"oneOf": [{"type": "string"}], "minimum": 1},
            {"oneOf": [{"type": "string"}], "minimum": 1, "type": "number"},
        ),
        ({"items": {}}, {"items": {"type": "string"}, "type": "array"}),
        (
            {"properties": {"a": {"type": "number"}}, "required": ["a", "b"]},
            {"properties": {"a": {"type": "number"}}, "required": ["a"], "type": "object"},
        ),
        ({"type": "object", "required": None}, {"type": "object", "required": []}),
        (
            {"type": "string", "anyOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        (
            {"anyOf": [{"type": "null"}, {"type": "integer"}], "title": "T"},
            {"title": "T", "type": "integer"},
        ),
        ({"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}),
        ({"type": "string", "nullable": True}, {"type": "string"}),
        (
            {"additionalProperties": False},
            {"additionalProperties": False, "type": "object", "required": []},
        ),
        (True, True),
    ],
)
def test_typed_schema_gives_every_node_a_type(schema: Any, fitted: Any) -> None:
    assert typed_schema(schema) == fitted
    assert typed_schema(fitted) == fitted


KEYWORDS = (
    "type",
    "properties",
    "required",
    "items",
    "anyOf",
    "allOf",
    "enum",
    "const",
    "additionalProperties",
    "nullable",
    "$ref",
    "minimum",
)
SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["string", "object", "null", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(SCHEMAS)
def test_typed_schema_is_idempotent_on_random_schemas(schema: Any) -> None:
    fitted = typed_schema(schema)
    assert typed_schema(fitted) == fitted
    if isinstance(schema, dict):
        build_request("moonshot", Prompt("x", tools=[ToolSpec("f", schema=schema)]))


def test_fitting_schemas_are_not_reported() -> None:
    tool = ToolSpec(
        "f", schema={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    )
    assert build_request("moonshot", Prompt("x", tools=[tool])).report == []


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (0, "minimal"),
        (1024, "minimal"),
        (1025, "low"),
        (2048, "low"),
        (10_000, "medium"),
        (16_384, "high"),
        (32_768, "xhigh"),
        (32_769, "max"),
    ],
)
def test_budget_gives_the_first_level_with_as_many(budget: int, expected: str) -> None:
    assert level(ReasoningOptions(budget=budget)) == expected
