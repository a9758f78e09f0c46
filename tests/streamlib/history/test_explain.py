"""Two requests, and what a prompt cache can do with the second: each rule by a pair."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from streamlib import (
    CacheMark,
    CacheOptions,
    Document,
    FunctionCall,
    Image,
    Message,
    Origin,
    Prompt,
    Reasoning,
    Request,
    Response,
    ResponseItem,
    ServerToolCall,
    StreamError,
    Text,
    ToolSpec,
    Usage,
    build,
    user,
)
from streamlib.history import CacheExplanation, explain_cache
from streamlib.providers.cache_rules import CACHE_RULES, WIRE_RULES, cache_rule
from streamlib.testing.strategies import histories
from streamlib_parsers.items import JsonObject, WireApi
from tests.support.cases import each_case
from tests.support.thorough import THOROUGH

CLAUDE = "anthropic:claude-sonnet-5"
OPENAI = "openai:gpt-5.6"
OLDER = "openai:gpt-5.4"
LONG = "A long manual, word by word. " * 400
"""About 2,900 tokens: more than most minimums."""
PNG = Image("iVBORw0KGgo=", media_type="image/png")
ASKED: tuple[ResponseItem, ...] = (user("one"), Message("assistant", (Text("1"),)), user("two"))


def tool(name: str, schema: JsonObject | None = None) -> ToolSpec:
    return ToolSpec(name, f"Does {name}.", schema or {"type": "object", "properties": {}})


def request(
    model: str = CLAUDE,
    items: Sequence[ResponseItem] = ASKED,
    *,
    body: JsonObject | None = None,
    **settings: Any,
) -> Request:
    """A request with a long system prompt and a cache, as `build` makes it; `body` is merged."""
    settings.setdefault("instructions", LONG)
    settings.setdefault("cache", "auto")
    wire_api = settings.pop("wire_api", None)
    return build(Prompt(items, extra=body, **settings), model, wire_api=wire_api)


def explained(before: Request, after: Request, elapsed: float = 10) -> CacheExplanation:
    return explain_cache(before, after, elapsed)


def raw(
    body: JsonObject, wire_api: WireApi = "messages", model: str = "claude-sonnet-5"
) -> Request:
    """A request with this body."""
    provider = "anthropic" if wire_api == "messages" else "openai"
    origin = Origin(wire_api, provider, model=model)
    data = json.dumps(body).encode()
    return Request("POST", "https://x", {}, data, [], wire_api, model, origin)


def more(*items: ResponseItem) -> tuple[ResponseItem, ...]:
    return (*ASKED, Message("assistant", (Text("2"),)), *items)


# --- nothing is lost ---


@pytest.mark.parametrize("model", [CLAUDE, OPENAI, OLDER, "google:gemini-2.5-pro", "xai:grok-4"])
def test_request_that_goes_on_loses_nothing(model: str) -> None:
    found = explained(request(model), request(model, more(user("three"))))
    assert (found.path, found.cause, found.reason, found.lost_bytes) == (None, None, None, 0)
    assert found.expected_read.high > 2000


def test_marks_are_exact_and_other_caches_a_range() -> None:
    marked = explained(request(), request(items=more(user("three"))))
    assert marked.expected_read.low == marked.expected_read.high > 2000
    assert 0 < marked.expected_write.low == marked.expected_write.high < 100
    automatic = explained(request(OLDER), request(OLDER, more(user("three"))))
    assert (automatic.expected_read.low, automatic.expected_write) == (0, (0, 0))


def test_what_is_no_part_of_a_prefix_loses_nothing() -> None:
    for model in (CLAUDE, OPENAI):
        later = request(model, max_output_tokens=77, metadata={}, user_id="u")
        assert explained(request(model), later).cause is None


def test_marks_and_forms_that_mean_the_same_are_no_difference() -> None:
    text = {"type": "text", "text": LONG}
    first = {"system": LONG, "messages": [{"role": "user", "content": "one"}]}
    mark = {"cache_control": {"type": "ephemeral"}}
    block = {"text": "one", "type": "text", **mark}
    second = {"messages": [{"content": [block], "role": "user"}], "system": [{**text, **mark}]}
    assert explained(raw(first), raw(second)).path is None


# --- parts that differ ---

FIRST = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
SECOND = {"properties": {"b": {"type": "string"}, "a": {"type": "string"}}, "type": "object"}
TOOLS = [tool("f", FIRST), tool("g")]

EDITED = (user("ONE"), *ASKED[1:])

PARTS = [
    ({"tools": TOOLS[::-1]}, "/tools/0", "tool order", "tools_changed"),
    ({"tools": [tool("f", SECOND), TOOLS[1]]}, "/tools/0", "keys of a schema", "tools_changed"),
    ({"tools": [*TOOLS, tool("h")]}, "/tools/2", "a tool was added", "tools_changed"),
    ({"tools": TOOLS[:1]}, "/tools/1", "a tool was removed", "tools_changed"),
    ({"tools": [TOOLS[0], tool("g", FIRST)]}, "/tools/1", "a tool changed", "tools_changed"),
    ({"instructions": LONG + "!"}, "/system/0", "system text", "system_changed"),
    ({"items": EDITED}, "/messages/0/content/0", "an edit", "messages_changed"),
    ({"items": ASKED[2:]}, "/messages/0/content/0", "a removal", "messages_changed"),
    ({"items": ASKED[:1]}, "/messages/1/content/0", "a removal", "messages_changed"),
    (
        {"items": (user("zero"), ASKED[1], *ASKED)},
        "/messages/0/content/0",
        "an insertion",
        "messages_changed",
    ),
]


@each_case("changed, path, cause, reason", PARTS)
def test_first_part_that_differs_is_named(
    changed: dict[str, Any], path: str, cause: str, reason: str
) -> None:
    settings: dict[str, Any] = {"tools": TOOLS, **changed}
    found = explained(request(tools=TOOLS), request(**settings))
    assert (found.path, found.reason) == (path, reason)
    assert found.cause is not None
    assert found.cause.startswith(cause)
    assert found.lost_bytes > 0


@each_case(
    "changed, path, reason",
    [
        ({"tools": TOOLS[::-1]}, "/tools/0", "tools_changed"),
        ({"instructions": "Other."}, "/instructions", "input_changed"),
        ({"items": EDITED}, "/input/0/content/0", "input_changed"),
        ({"conversation_id": "c2"}, "/prompt_cache_key", "prompt_cache_key_changed"),
        ({"reasoning": "high"}, "/reasoning/effort", "reasoning_effort_changed"),
        ({"verbosity": "low"}, "/text/verbosity", "verbosity_changed"),
        ({"output_schema": FIRST}, "/text/format", "text_format_changed"),
        ({"service_tier": "flex"}, "/service_tier", "service_tier_changed"),
    ],
)
@each_case("model", [OPENAI, OLDER])
def test_openai_has_words_of_its_own(
    model: str, changed: dict[str, Any], path: str, reason: str
) -> None:
    settings: dict[str, Any] = {"tools": TOOLS, "conversation_id": "c1"}
    found = explained(request(model, **settings), request(model, **{**settings, **changed}))
    assert (found.path, found.reason) == (path, reason)


def test_compaction_is_named() -> None:
    compacted = {"type": "compaction", "encrypted_content": "gAAA"}
    first = {"input": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}
    second = {"input": [compacted, {"role": "user", "content": "c"}]}
    found = explained(raw(first, "responses", "gpt-5.6"), raw(second, "responses", "gpt-5.6"))
    assert (found.path, found.reason) == ("/input/0", "context_compacted")


def test_tools_are_before_the_system_prompt_in_any_body() -> None:
    tools = [{"name": "f", "input_schema": {}}]
    first = {"messages": [], "system": "a", "tools": tools}
    second = {"system": "b", "messages": [], "tools": [{"name": "g", "input_schema": {}}]}
    assert explained(raw(first), raw(second)).path == "/tools/0"


def test_own_downgrade_is_named() -> None:
    thought = Reasoning("Hm.", signature="s", origin=Origin("messages", "other"), response_id="r")
    kept = Reasoning("Hm.", signature="s", origin=Origin("messages"), response_id="r")
    answer = Message("assistant", (Text("1"),), response_id="r")
    first = request(items=(user("a"), kept, answer, user("b")))
    second = request(items=(user("a"), thought, answer, user("b")))
    found = explained(first, second)
    assert found.cause is not None
    assert found.cause.startswith("our own downgrade: downgraded /input/1")
    assert (found.path, found.reason) == ("/messages/1/content/0", "messages_changed")


def test_own_repair_of_the_earlier_request_is_named() -> None:
    """Its call had no output yet, so that one of ours stood there."""
    call = FunctionCall("c", "f", "{}")
    waiting, answered = (user("a"), call), (user("a"), call, call.output("1"))
    found = explained(request(items=waiting), request(items=answered))
    assert found.cause is not None
    assert found.cause.startswith("our own downgrade: generated")
    assert "of the earlier request" in found.cause
    assert found.path == "/messages/2/content/0"


# --- settings ---

SETTINGS = [
    ({"tool_choice": "required"}, "/tool_choice", "unavailable", True),
    ({"reasoning": "high"}, "/thinking", "unavailable", True),
    ({"output_schema": FIRST}, "/output_config/format", "system_changed", False),
    ({"body": {"speed": "fast"}}, "/speed", "model_changed", False),
    ({"body": {"output_config": {"effort": "low"}}}, "/output_config/effort", "unavailable", True),
    ({"items": (user("one", PNG), *ASKED[1:])}, "/messages/0/content/1", "unavailable", True),
]


@pytest.mark.parametrize(("changed", "path", "reason", "keeps_system"), SETTINGS)
def test_setting_that_invalidates_is_named(
    changed: dict[str, Any], path: str, reason: str, keeps_system: bool
) -> None:
    cache = CacheOptions(instructions=CacheMark(), automatic=CacheMark())
    settings: dict[str, Any] = {"tools": TOOLS, "cache": cache, "reasoning": "off"}
    found = explained(request(**settings), request(**{**settings, **changed}))
    assert (found.path, found.reason) == (path, reason)
    assert found.cause is not None
    assert found.cause.startswith("a setting that invalidates")
    assert (found.expected_read.low > 2000) == keeps_system


def test_web_search_keeps_the_tools_alone() -> None:
    marked = ToolSpec("f", LONG, FIRST, cache=CacheMark())
    search = ToolSpec.hosted("web_search")
    found = explained(request(tools=[marked]), request(tools=[marked, search]))
    assert (found.path, found.reason) == ("/tools/1", "system_changed")
    assert found.cause == "a setting that invalidates: web search on"
    assert 2000 < found.expected_read.low < 4000


def test_citations_keep_the_tools_alone() -> None:
    text = Document(data=b"text", media_type="text/plain")
    cited = Document(data=b"text", media_type="text/plain", native={"citations": {"enabled": True}})
    found = explained(request(items=[user("a", text)]), request(items=[user("a", cited)]))
    assert found.cause == "a setting that invalidates: citations on"
    assert (found.reason, found.expected_read) == ("system_changed", (0, 0))


@pytest.mark.parametrize("model", [CLAUDE, OPENAI, "deepseek:deepseek-chat"])
def test_other_model_account_and_server_have_other_caches(model: str) -> None:
    first = request(model)
    newer = model.replace("5", "4") if model != "deepseek:deepseek-chat" else "deepseek:other"
    found = explained(first, request(newer))
    assert (found.path, found.reason, found.expected_read) == ("/model", "model_changed", (0, 0))
    prompt = Prompt(ASKED, instructions=LONG, cache="auto")
    found = explained(build(prompt, model, account="a"), build(prompt, model, account="b"))
    assert (found.cause, found.expected_read) == ("another account", (0, 0))
    found = explained(first, build(prompt, model, base_url="https://other.example"))
    assert (found.reason, found.expected_read) == ("endpoint_changed", (0, 0))


def test_model_in_the_url_has_no_path() -> None:
    first, second = request("google:gemini-2.5-pro"), request("google:gemini-2.5-flash")
    assert (explained(first, second).path, explained(first, second).reason) == (
        None,
        "model_changed",
    )


def test_other_conversation_of_xai_has_another_cache() -> None:
    first = request("xai:grok-4")
    headers = {**first.headers, "x-grok-conv-id": "c2"}
    found = explained(first, replace(first, headers=headers))
    assert (found.path, found.reason) == (None, "prompt_cache_key_changed")
    # What stands before each request is read whatever follows it: recorded.
    assert found.expected_read == (0, 128)


# --- marks, minimums, lifetimes ---


def test_missing_mark_is_named() -> None:
    for first, second in ((None, "auto"), ("auto", None)):
        found = explained(request(cache=first), request(cache=second))
        assert (found.reason, found.expected_read) == ("mark_missing", (0, 0))
        assert (found.expected_write.low > 0) == (second == "auto")
        assert found.cause is not None
        assert found.cause.startswith("a missing mark")


@pytest.mark.parametrize(
    ("ttl", "elapsed", "is_read"),
    [(None, 300, True), (None, 301, False), ("1h", 3600, True), ("1h", 3601, False)],
)
def test_expired_mark_is_named(ttl: str | None, elapsed: float, is_read: bool) -> None:
    cache = CacheOptions(ttl)
    found = explained(request(cache=cache), request(items=more(user("x")), cache=cache), elapsed)
    assert (found.expected_read.high > 0) == is_read
    assert found.path is None
    if not is_read:
        assert found.reason == "expired"
        assert found.cause is not None
        assert found.cause.startswith("an expired mark")


def test_longer_mark_outlives_the_shorter() -> None:
    cache = CacheOptions(instructions=CacheMark("1h"), automatic=CacheMark("5m"))
    items = (user(LONG), *ASKED[1:])
    found = explained(request(items=items, cache=cache), request(items=items, cache=cache), 400)
    assert found.reason == "expired"
    assert 2000 < found.expected_read.low == found.expected_read.high < 4000


@pytest.mark.parametrize(("added", "is_read"), [(18, True), (30, False)])
def test_entries_over_20_blocks_back_are_not_found(added: int, is_read: bool) -> None:
    items = [*ASKED]
    for number in range(added // 2):
        items += [Message("assistant", (Text(f"a{number}"),)), user(f"b{number}")]
    found = explained(request(), request(items=items))
    assert (found.expected_read.high > 0) == is_read
    assert (found.reason == "look_back_exceeded") != is_read
    assert is_read or found.cause == "over 20 blocks since a written mark"


MINIMUMS = [
    ("anthropic:claude-opus-5", 512),
    ("anthropic:claude-fable-5-1", 512),
    ("anthropic:claude-mythos-5", 512),
    ("anthropic:claude-opus-4-8", 1024),
    ("anthropic:claude-sonnet-5", 1024),
    ("anthropic:claude-sonnet-4-6", 1024),
    ("anthropic:claude-opus-4-1", 1024),
    ("anthropic:claude-opus-4-7", 2048),
    ("anthropic:claude-opus-4-5", 4096),
    ("anthropic:claude-opus-4-6", 4096),
    ("anthropic:claude-haiku-4-5", 4096),
    ("bedrock:us.anthropic.claude-haiku-4-5-v1:0", 4096),
    ("bedrock:amazon.nova-lite-v1:0", 1000),
    ("openrouter:anthropic/claude-opus-4.7", 2048),
    ("openai:gpt-4o", 1024),
    ("openai:gpt-5.6", 1024),
    ("google:gemini-3-pro", 4096),
    ("google:gemini-2.5-flash", 2048),
]


@pytest.mark.parametrize(("model", "minimum"), MINIMUMS)
def test_prompt_under_the_minimum_is_not_kept(
    model: str, minimum: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far below it; and above it something is expected. What is hidden is up to 1,024 tokens."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    provider, _, name = model.partition(":")
    assert cache_rule("messages", provider, name).minimum == minimum
    cache = CacheOptions(breakpoints=[0])
    short, long = "word " * (minimum // 8), "word " * (minimum * 2)
    for text, is_kept in ((short, False), (long, True)):
        first = request(model, [user(text)], instructions=None, cache=cache)
        found = explained(
            first, request(model, [user(text), *ASKED], instructions=None, cache=cache)
        )
        if cache_rule("chat", provider, name).how == "automatic":
            assert found.expected_read.low == 0
        elif not is_kept:
            assert (found.reason, found.expected_read.high) == ("below_minimum", 0)
        assert found.expected_read.high > 0 or not is_kept


def test_breakpoints_are_exact_and_need_no_look_back() -> None:
    cache = CacheOptions(breakpoints=[0])
    explicit = {"prompt_cache_options": {"mode": "explicit"}}
    items = [user(LONG), *ASKED * 20]
    first = request(OPENAI, [user(LONG)], cache=cache, body=explicit, instructions=None)
    second = request(OPENAI, items, cache=cache, body=explicit, instructions=None)
    found = explained(first, second)
    assert found.cause is None
    assert 2000 < found.expected_read.low == found.expected_read.high
    none = request(OPENAI, items, cache=None, body=explicit, instructions=None)
    assert explained(none, second).reason == "mark_missing"


@pytest.mark.parametrize(("marks", "is_read"), [(79, True), (80, False)])
@pytest.mark.parametrize("first_mark", [0, 1])
def test_latest_80_breakpoints_are_looked_for(marks: int, is_read: bool, first_mark: int) -> None:
    """Those behind the text that was kept; its own mark may stand there again."""
    texts = [user(LONG), *[user(f"text {number}") for number in range(marks)]]
    options: Any = {"body": {"prompt_cache_options": {"mode": "explicit"}}, "instructions": None}
    first = request(OPENAI, texts[:1], cache=CacheOptions(breakpoints=[0]), **options)
    marked = CacheOptions(breakpoints=range(first_mark, marks + 1))
    found = explained(first, request(OPENAI, texts, cache=marked, **options))
    assert (found.expected_read.high > 0) == is_read
    assert (found.reason == "look_back_exceeded") != is_read
    assert is_read or found.cause == "over 80 blocks since a written mark"


def test_last_marks_are_written_one_less_with_the_implicit() -> None:
    texts = [user(LONG), *[user(f"text {number}") for number in range(4)]]
    cache = CacheOptions(breakpoints=range(5))
    for mode, count in (("explicit", 4), ("implicit", 3)):
        body = {"prompt_cache_options": {"mode": mode}}
        first = request(OPENAI, texts, cache=cache, body=body, instructions=None)
        # Only the first text is the same.
        later = [texts[0], user("other"), *texts[2:]]
        found = explained(first, request(OPENAI, later, cache=cache, body=body, instructions=None))
        assert found.expected_read == (0, 0)
        # The second has a mark too, which is written where there are four.
        later = [*texts[:2], user("other"), *texts[3:]]
        found = explained(first, request(OPENAI, later, cache=cache, body=body, instructions=None))
        assert (found.expected_read.low > 2000) == (count == 4)
        early = request(OPENAI, texts[:count], cache=cache, body=body, instructions=None)
        assert explained(early, first).expected_read.low > 2000


def test_implicit_breakpoint_is_a_range() -> None:
    cache = CacheOptions(breakpoints=[0])
    items = [user(LONG), *ASKED]
    found = explained(
        request(OPENAI, items, cache=cache, instructions=None),
        request(OPENAI, [*items, *more(user("x"))], cache=cache, instructions=None),
    )
    assert 2000 < found.expected_read.low < found.expected_read.high


@pytest.mark.parametrize(
    ("model", "cache", "elapsed", "low", "high"),
    [
        (OPENAI, CacheOptions(), 1801, False, True),  # it may be there longer
        (OPENAI, CacheOptions("12h"), 1801, False, True),
        (OLDER, "auto", 601, False, True),
        (OLDER, "auto", 86_401, False, False),
        ("openai:gpt-5.5", "auto", 601, False, True),
    ],
)
def test_lifetime_of_openai(model: str, cache: Any, elapsed: float, low: bool, high: bool) -> None:
    later = request(model, more(user("x")), cache=cache)
    found = explained(request(model, cache=cache), later, elapsed)
    assert (found.expected_read.low > 0, found.expected_read.high > 0) == (low, high)
    is_over = not (cache == CacheOptions("12h") or model == "openai:gpt-5.5")
    assert (found.reason == "expired") == is_over


def test_steps_are_those_without_an_exception() -> None:
    assert {name for name, rule in CACHE_RULES.items() if rule.step > 1} == {"kimi-", "moonshot-"}
    found = explained(request("moonshot:kimi-k2"), request("moonshot:kimi-k2", more(user("x"))))
    assert found.expected_read.high % 64 == 0


def test_every_rule_is_dated() -> None:
    for rule in (*CACHE_RULES.values(), *WIRE_RULES.values()):
        assert rule.read_on.startswith("2026-")
        assert rule.source


# --- what is known of the earlier request ---


def test_usage_replaces_the_estimate() -> None:
    usage = Usage(2010, 300, cache_read_input_tokens=1500, cache_write_input_tokens=500)
    items = (user("Explain. " * 500),)
    later = (*items, Message("assistant", (Text("so"),)), user("And?"))
    found = explain_cache(
        request(items=items, instructions=None),
        request(items=later, instructions=None),
        60,
        response=Response(usage=usage),
        tokens=2410,
    )
    assert (found.expected_read, found.expected_write) == ((2000, 2000), (400, 400))


def test_automatic_cache_may_hold_the_turn_of_the_model() -> None:
    """The later request has it; what the user says then was in no request yet."""
    highs: list[int] = []
    for answer, question in (("2", "x"), (LONG, "x"), ("2", LONG)):
        items = (*ASKED, Message("assistant", (Text(answer),)), user(question))
        highs.append(explained(request(OLDER), request(OLDER, items)).expected_read.high)
    assert highs[1] > highs[0] + 2000
    assert highs[2] == highs[0]


@pytest.mark.parametrize("marked", [(None, "auto"), ("auto", None), ("auto", "auto")])
def test_tool_of_the_provider_is_cached_without_a_mark(marked: tuple[Any, Any]) -> None:
    """It caches between its own samplings; with marks, less may be read than the sum."""
    called = Response(items=(ServerToolCall("s", "web_search"),), usage=Usage(5000, 10))
    before, after = (request(cache=cache) for cache in marked)
    found = explain_cache(before, after, response=called)
    assert found.cause is None
    assert found.expected_read.low == 0
    assert found.expected_read.high >= 5000


def test_nothing_is_read_of_what_was_not_written() -> None:
    usage = Usage(900, 1, cache_read_input_tokens=0, cache_write_input_tokens=0)
    found = explain_cache(request(), request(), response=Response(usage=usage))
    assert (found.reason, found.expected_read) == ("below_minimum", (0, 0))


def test_stored_history_needs_the_usage() -> None:
    state = {"previous_response_id": "resp_1"}
    first, second = request(OPENAI, body=state), request(OPENAI, [user("c")], body=state)
    with pytest.raises(ValueError, match=r"^before: it begins with what openai stores"):
        explained(first, second)
    usage = Response(usage=Usage(5000, 10))
    assert explain_cache(first, second, response=usage).cause is None
    assert explained(request(OPENAI), second).cause is None


def test_content_that_google_keeps_needs_the_usage() -> None:
    stored = {"cachedContent": "cachedContents/1"}
    first = request("google:gemini-2.5-pro", instructions=None, body=stored)
    second = request("google:gemini-2.5-pro", more(), instructions=None, body=stored)
    with pytest.raises(ValueError, match=r"^before: it begins with what google stores"):
        explained(first, second)
    usage = Response(usage=Usage(5000, 10, cache_read_input_tokens=4900))
    found = explain_cache(first, second, response=usage)
    assert (found.cause, found.expected_read) == (None, (4900, 5010))
    other = request("google:gemini-2.5-pro", body={"cachedContent": "cachedContents/2"})
    assert explain_cache(first, other, response=usage).path == "/cachedContent"


def test_gemini_before_2_5_keeps_nothing_by_itself() -> None:
    first = request("google:gemini-2.0-flash", instructions=LONG * 4)
    assert explained(first, first).expected_read == (0, 0)
    newer = request("google:gemini-2.5-flash", instructions=LONG * 4)
    assert explained(newer, newer).expected_read.high > 10_000


def test_rules_may_be_your_own() -> None:
    rules = {"claude-sonnet-5": replace(cache_rule("messages", None, "claude-"), minimum=1)}
    short = request(instructions="Short.")
    assert explained(short, short).reason == "below_minimum"
    assert explain_cache(short, short, rules=rules).expected_read.low > 1
    assert explain_cache(request(OPENAI), request(OPENAI), rules=rules).rule.minimum == 1024


# --- wrong input ---


def test_prompts_are_no_requests() -> None:
    with pytest.raises(TypeError, match="before is a Request, as `build` returns it, not a Prompt"):
        explain_cache(Prompt("a"), request())  # type: ignore[arg-type]


def test_requests_of_different_providers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^after: it goes to openai, and `before` to anthropic"):
        explained(request(), request(OPENAI))


def test_requests_of_different_wires_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^after: it is a request of chat, and `before` one of"):
        explained(request(OPENAI), request(OPENAI, wire_api="chat"))


@pytest.mark.parametrize(
    ("elapsed", "error"),
    [(-1, ValueError), (float("nan"), ValueError), ("5", TypeError), (True, TypeError)],
)
def test_time_that_cannot_be_meant_is_refused(elapsed: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="elapsed is a number of seconds"):
        explained(request(), request(), elapsed)


def test_body_that_is_no_object_is_refused() -> None:
    broken = raw({})
    for data in (b"", b"[]", b'{"a":'):
        broken = Request("POST", "https://x", {}, data, [], "messages", broken.model, broken.origin)
        with pytest.raises(ValueError, match=r"^after: the body of the request is no JSON object"):
            explained(raw({}), broken)


@pytest.mark.parametrize("depth", [900, 100_000])
def test_body_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    data = b'{"messages": [{"role": "user", "content": ' + b"[" * depth + b"]" * depth + b"}]}"
    with pytest.raises(ValueError, match=r"^before: .* is nested too deeply"):
        explained(replace(raw({}), body=data), raw({}))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": None, "tools": None, "system": None},
        {"messages": [1, None, "x", {"role": None}, {"content": [None, 3]}], "tools": [1, None]},
        {"messages": {"a": 1}, "system": {"b": 2}, "cache_control": 5},
        {"messages": [{"role": "user", "content": [{"cache_control": 1}, {"cachePoint": []}]}]},
    ],
)
def test_malformed_bodies_are_compared(body: JsonObject) -> None:
    assert explained(raw(body), raw(body)).path is None
    str(explained(raw(body), raw({"messages": [{"role": "user", "content": "a"}]})))


def test_explanation_is_readable() -> None:
    text = str(explained(request(), request(instructions="Other.")))
    assert text.startswith("system text (system_changed) at /system/0\nExpected: 0 tokens read")


# --- any conversation, on any wire ---

WIRES: dict[WireApi, str] = {
    "messages": "anthropic:claude-opus-5",
    "responses": "openai:gpt-5.6",
    "chat": "openai:gpt-5.4",
    "gemini": "google:gemini-2.5-pro",
    "interactions": "google:gemini-2.5-pro",
    "converse": "bedrock:anthropic.claude-opus-4-8",
    "invoke": "bedrock:anthropic.claude-opus-4-8",
    "ollama": "ollama:qwen3:4b",
    "cohere": "cohere:command-a-03-2025",
}


@pytest.mark.parametrize("wire_api", WIRES)
@settings(max_examples=60 if THOROUGH else 25)
@given(data=st.data())
def test_conversation_that_goes_on_loses_nothing(wire_api: WireApi, data: st.DataObject) -> None:
    """Whatever it holds; what our own builder changes is named as such."""
    items = data.draw(histories(wire_api, turns=4, images=False))
    questions = [
        index
        for index, item in enumerate(items)
        if isinstance(item, Message) and item.role == "user"
    ]
    end = data.draw(st.sampled_from(questions)) + 1 if questions else len(items)
    try:
        requests = [
            build(
                Prompt(part, instructions=LONG, tools=TOOLS, cache="auto"),
                WIRES[wire_api],
                wire_api=wire_api,
                base_url="http://127.0.0.1:8800",
            )
            for part in (items[:end], items)
        ]
    except StreamError:
        return  # nothing to send
    same = explained(requests[0], requests[0])
    assert (same.path, same.lost_bytes) == (None, 0)
    found = explained(requests[0], requests[1])
    if found.path is not None:
        assert found.cause is not None
        assert found.cause.startswith("our own downgrade")
    assert 0 <= found.expected_read.low <= found.expected_read.high
    assert 0 <= found.expected_write.low <= found.expected_write.high


def test_many_system_messages_cost_time_in_proportion() -> None:
    """Were all parts looked at for each, this would take a minute."""
    turns = [{"role": "system", "content": "a"}] * 20_000
    body = {"model": "gpt-4o", "messages": [*turns, {"role": "user", "content": "b"}]}
    before = raw(body, "chat", "gpt-4o")
    start = time.process_time()
    assert explained(before, before).path is None
    assert time.process_time() - start < 10


def test_fields_beside_the_content_are_compared() -> None:
    """Calls of Chat. A field that is null or empty is no part of what the model reads."""

    def with_turn(**fields: Any) -> Request:
        turn = {"role": "assistant", "content": "Looking.", **fields}
        messages = [{"role": "user", "content": "b"}, turn, {"role": "user", "content": "c"}]
        return raw({"model": "gpt-5.4", "messages": messages}, "chat", "gpt-5.4")

    def calling(arguments: str) -> Request:
        function = {"name": "f", "arguments": arguments}
        return with_turn(tool_calls=[{"id": "c", "type": "function", "function": function}])

    assert explained(calling("{}"), calling("{}")).path is None
    assert explained(calling("{}"), calling('{"a": 1}')).path == "/messages/1/tool_calls"
    assert explained(with_turn(), with_turn(refusal=None, tool_calls=[], name="")).path is None
