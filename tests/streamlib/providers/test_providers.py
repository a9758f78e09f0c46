"""Providers: names and how they are looked up, what each one's requests look like, and that the pages say what the values say.

After a change: `python -m tests.provider_pages`, and read what differs.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlib
from streamlib import Change, Prompt, Provider, StreamError, ToolSpec, build, register, user
from streamlib.client.auth import STYLES
from streamlib.client.origins import is_own_origin, origin_of
from streamlib.providers import find, for_model, known, provider, shipped
from streamlib.providers.models import Traits, traits
from streamlib.request.provider_steps import STEPS
from streamlib.request.typed_schemas import typed_schema
from streamlib_parsers import CustomToolCall, FunctionCall, FunctionCallOutput
from tests.provider_pages.pages import PAGE, regenerated
from tests.support.provider_cases import (
    MODELS,
    WEATHER,
    asked,
    history,
    path_of,
    prompts,
    providers,
    snapshot,
    written,
)
from tests.support.quirks import ABSENT, QUIRKS, Quirk, at

EACH = pytest.mark.parametrize("one", providers(), ids=lambda one: one.name)


@pytest.fixture(autouse=True)
def _registered_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr("streamlib.providers._registered", {})


# --- names ---


def test_no_two_providers_share_a_name() -> None:
    names = [name for one in providers() for name in (one.name, *one.aliases)]
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
def test_a_model_is_found_by_the_name_or_alias_of_its_provider(
    model: str, name: str, rest: str
) -> None:
    found, left = find(model)
    assert (found.name, left) == (name, rest)


def test_the_longest_known_name_before_a_colon_wins() -> None:
    register(Provider(name="corp", base_url="https://a.example"))
    register(Provider(name="corp:eu", base_url="https://b.example"))
    assert [
        (find(f"corp:{rest}")[0].name, find(f"corp:{rest}")[1]) for rest in ("eu:m", "eu", "us:m")
    ] == [
        ("corp:eu", "m"),
        ("corp", "eu"),
        ("corp", "us:m"),
    ]


@pytest.mark.parametrize(
    ("name", "near"),
    [("antropic", "anthropic"), ("open-router", "openrouter"), ("deepsek", "deepseek")],
)
def test_an_unknown_provider_is_an_error_with_the_names_that_are_near(name: str, near: str) -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt("hi"), f"{name}:m")
    assert (caught.value.kind, caught.value.code) == ("invalid_request", "unknown_provider")
    assert name in str(caught.value)
    assert near in str(caught.value)


def test_where_nothing_is_near_all_names_are_given() -> None:
    with pytest.raises(StreamError, match=r"one of .*anthropic.*zai"):
        provider("0000000000")


def test_a_name_without_a_colon_is_told_how_a_model_is_written() -> None:
    with pytest.raises(StreamError, match="provider:model"):
        build(Prompt("hi"), "claude-opus-5")


def test_three_lines_register_a_provider() -> None:
    mine = Provider(name="acme", base_url="https://api.acme.example/v1", key_env=("ACME_API_KEY",))
    register(mine)
    assert build(Prompt("hi"), "acme:m").url == "https://api.acme.example/v1/chat/completions"


def test_your_provider_comes_before_a_registered_one_and_that_before_ours() -> None:
    ours = shipped()["mistral"]
    register(msgspec.structs.replace(ours, base_url="https://registered.example"))
    assert provider("mistral").base_url == "https://registered.example"
    given = msgspec.structs.replace(ours, base_url="https://given.example")
    assert known([given])["mistralai"].base_url == "https://given.example"
    assert (
        build(Prompt("hi"), "mistral:m", providers=(given,)).url
        == "https://given.example/chat/completions"
    )


# --- values ---


@EACH
def test_a_file_of_values_is_sound(one: Provider) -> None:
    assert one.wires
    assert one.auth in {*STYLES, "aws", "none"}
    assert set(one.prepare) <= set(STEPS)
    for url in (one.base_url, *one.wire_urls.values(), *one.other_urls):
        local = one.key_optional
        assert not url or url.startswith("https://") or local
    variant: dict[str, Any]
    for start, variant in one.model_overrides.items():
        changed = for_model(one, f"{start}-x")
        assert [getattr(changed, field) for field in variant] == list(variant.values())


@EACH
def test_a_providers_own_addresses_get_its_keys(one: Provider) -> None:
    for url in (one.base_url, *one.wire_urls.values(), *one.other_urls):
        if url and "{" not in url:
            assert is_own_origin(one, origin_of(url))
    assert is_own_origin(one, "https://evil.example:443") is (not one.base_url)


def test_the_longest_beginning_of_a_models_name_says_what_differs() -> None:
    base = Provider(name="x", model_overrides={"a": {"base_url": "1"}, "a-b": {"base_url": "2"}})
    assert [
        for_model(base, model).base_url for model in ("c", "a", "a-b-c", "vendor/A-B", "ba")
    ] == ["", "1", "2", "2", ""]


def test_what_is_refused_while_a_model_thinks_is_sent_when_it_does_not() -> None:
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
def test_a_conversations_name_goes_into_a_header_on_every_wire(wire: Any) -> None:
    mine = Provider(
        name="x",
        wires=("chat", "responses", "messages"),
        base_url="https://x.example",
        conversation_header="x-conv",
    )
    assert (
        build(Prompt("x", conversation_id="c 1"), "m", provider=mine, wire_api=wire).headers[
            "x-conv"
        ]
        == "c 1"
    )


@pytest.mark.parametrize("name", ["a\r\nb: c", "é", "a\x00", " a", ""])
def test_a_conversations_name_never_breaks_a_header(name: str) -> None:
    mine = Provider(name="x", base_url="https://x.example", conversation_header="x-conv")
    request = build(Prompt("x", conversation_id=name), "m", provider=mine)
    assert "x-conv" not in request.headers
    assert [change.path for change in request.report] == (["/conversation_id"] if name else [])


def test_a_step_that_does_not_exist_is_named() -> None:
    mine = Provider(name="x", base_url="https://x.example", prepare=("nothing",))
    with pytest.raises(StreamError, match="'nothing'"):
        build(Prompt("x"), "m", provider=mine)


def test_steps_leave_what_they_were_given() -> None:
    prompt = Prompt([user("x")], instructions="i", tools=[WEATHER])
    for name in ("qwen-portal", "minimax", "moonshot", "copilot"):
        asked(name, prompt)
    assert WEATHER.strict
    assert prompt == Prompt([user("x")], instructions="i", tools=[WEATHER])


# --- model gates ---


@pytest.mark.parametrize(
    ("model", "gate", "value"),
    [
        ("gpt-5-mini", "completion_tokens", True),
        ("gpt-4o", "completion_tokens", False),
        ("o1-mini", "developer_role", False),
        ("o3", "developer_role", True),
        ("claude-opus-4-7", "sampling", False),
        ("anthropic/claude-sonnet-4.6", "sampling", True),
        ("DeepSeek-V4-Pro", "thinking_default", True),
        ("deepseek-chat", "thinking_default", False),
        ("kimi-k3", "thinking_off", ""),
        ("grok-4.3", "efforts", ("low", "medium", "high")),
        ("x-ai/grok-4-fast-non-reasoning", "thinking", ()),
        ("nobody-knows-it", "sampling", True),
    ],
)
def test_what_a_model_takes_stands_in_a_table(model: str, gate: str, value: Any) -> None:
    assert getattr(traits(model), gate) == value


def test_a_users_table_comes_first() -> None:
    mine = {"gpt-5": Traits(completion_tokens=False, developer_role=False)}
    prompt = Prompt(
        [streamlib.Message("developer", [streamlib.Text("x")]), user("y")], max_output_tokens=9
    )
    ours, theirs = (
        json.loads(build(prompt, "openai:gpt-5", wire_api="chat", models=table).body)
        for table in (None, mine)
    )
    assert (ours["messages"][0]["role"], theirs["messages"][0]["role"]) == ("developer", "system")
    github = json.loads(build(prompt, "github:openai/gpt-5", models=mine).body)
    assert (github["max_tokens"], "max_completion_tokens" in github) == (9, False)


# --- requests ---


@EACH
def test_requests_are_those_of_the_snapshot(one: Provider) -> None:
    assert written(snapshot(one)) == path_of(one).read_text(encoding="utf-8"), (
        "python -m tests.provider_pages"
    )


def test_every_snapshot_has_its_provider() -> None:
    assert {path.stem for path in path_of(providers()[0]).parent.iterdir()} == {
        one.name for one in providers()
    }


CASES = [
    pytest.param(
        one.name, wire, case, id=f"{one.name}-{wire}-{case.replace(', ', '-').replace(' ', '-')}"
    )
    for one in providers()
    for wire in one.wires
    for case in prompts(one.name, wire)
]


@pytest.mark.parametrize(("name", "wire", "case"), CASES)
def test_every_provider_builds_a_request_that_its_wire_reads_back(
    name: str, wire: Any, case: str
) -> None:
    prompt = prompts(name, wire)[case]
    request = asked(name, prompt, wire=wire)
    read = streamlib.parse_request(wire, request.body, headers=request.headers)
    assert read.model == json.loads(request.body).get("model")
    assert (
        read.model == MODELS.get(name, "model")
        or quote(MODELS.get(name, "model"), safe="") in request.url
    )
    dropped = any(change == Change("dropped", "/tools", change.reason) for change in request.report)
    assert [tool.name for tool in read.tools] == (
        [] if dropped else [tool.name for tool in prompt.tools]
    )
    calls = [item for item in read.items if isinstance(item, (FunctionCall, CustomToolCall))]
    outputs = [item for item in read.items if isinstance(item, FunctionCallOutput)]
    assert len(calls) == len(outputs) == (1 if prompt.tools else 0)
    assert [(call.name, call.parsed()) for call in calls] == [
        ("get_weather", {"city": "Paris"})
    ] * len(calls)


@pytest.mark.parametrize(
    ("name", "wire", "case"), [case for case in CASES if case.values[1] in ("chat", "responses")]
)
def test_openais_own_types_read_what_is_sent(name: str, wire: Any, case: str) -> None:
    pydantic = pytest.importorskip(
        "pydantic", reason="pydantic is not installed: requests are not read by the official types"
    )
    pytest.importorskip(
        "openai", reason="openai is not installed: requests are not read by the official types"
    )
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    kind = {
        "chat": chat.CompletionCreateParamsStreaming,
        "responses": responses.ResponseCreateParamsStreaming,
    }[wire]
    body = json.loads(asked(name, prompts(name, wire)[case], wire=wire).body)
    for message in body.get("messages", ()):
        if isinstance(message.get("content"), list):  # Mistral's own part
            message["content"] = [part for part in message["content"] if part["type"] != "thinking"]
    for item in body.get("input", ()):
        if (
            item["type"] == "reasoning"
        ):  # the types want an id, the API refuses that of a response it has not stored
            item.setdefault("id", "rs_1")
    pydantic.TypeAdapter(kind).validate_python(body)


@pytest.mark.parametrize("name", [one.name for one in providers() if "chat" in one.wires])
def test_a_conversation_that_goes_on_keeps_what_was_sent(name: str) -> None:
    said = streamlib.Message(
        "assistant",
        [streamlib.Text("18 degrees.")],
        origin=streamlib.Origin("chat", name),
        response_id="r2",
    )
    turns = [
        *history(name, "chat"),
        said,
        user("And Rome?"),
        *history(name, "chat")[1:3],
        FunctionCallOutput("call_1", "20 degrees"),
    ]
    sent = [
        json.loads(
            asked(name, Prompt(turns[:end], instructions="i", tools=[WEATHER]), wire="chat").body
        )
        for end in (1, 4, 6, 9)
    ]
    for shorter, longer in pairwise(sent):
        assert longer["messages"][: len(shorter["messages"])] == shorter["messages"]
        assert longer.get("tools") == shorter.get("tools")


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.id)
def test_a_quirk(quirk: Quirk) -> None:
    request = quirk.request()
    assert {pointer: at(request, pointer) for pointer in quirk.body} == quirk.body
    assert {name: request.headers.get(name, ABSENT) for name in quirk.headers} == quirk.headers
    assert quirk.url in (None, request.url)
    assert set(quirk.reported) <= {change.path for change in request.report}


def test_every_provider_with_a_peculiarity_has_a_row() -> None:
    plain = {"loopback", "vertex", "moonshot-cn", "minimax-cn"}  # no values of their own
    assert {one.name for one in providers()} - plain == {quirk.provider for quirk in QUIRKS}


def test_rows_are_named_once() -> None:
    assert len({quirk.id for quirk in QUIRKS}) == len(QUIRKS)


# --- pages ---


def test_the_page_says_what_the_values_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert regenerated(page) == page, "python -m tests.provider_pages"


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
def test_a_schema_says_the_type_of_every_node(schema: Any, fitted: Any) -> None:
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
def test_no_schema_is_too_odd_and_one_that_fits_stays(schema: Any) -> None:
    fitted = typed_schema(schema)
    assert typed_schema(fitted) == fitted
    if isinstance(schema, dict):
        asked("moonshot", Prompt("x", tools=[ToolSpec("f", schema=schema)]))


def test_schemas_that_fit_are_not_reported() -> None:
    tool = ToolSpec(
        "f", schema={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    )
    assert asked("moonshot", Prompt("x", tools=[tool])).report == []
