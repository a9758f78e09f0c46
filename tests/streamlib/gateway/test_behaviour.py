"""What the gateway does when something goes wrong, takes long, or ends early; and whom it answers."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import msgspec
import pytest

from streamlib import (
    CustomToolCall,
    FunctionCall,
    Message,
    Origin,
    Prompt,
    Reasoning,
    Response,
    StreamError,
    ToolSpec,
    build,
    encode_body,
    parse_body,
)
from streamlib.client.retry import NO_RETRY
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway, read_route, read_table
from streamlib.gateway.envelopes import open_envelope, seal
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi, user
from tests.support.gateways import (
    CLIENTS,
    Upstream,
    answer_bytes,
    answered,
    ask,
    asking,
    plain,
    read,
    refusing,
    request,
    rule,
    said,
    serving,
    streaming,
    turn_bytes,
)
from tests.support.wires import error_of

ONCE: Any = {"client": {"retry": NO_RETRY}}
each_client = pytest.mark.parametrize("wire", CLIENTS)


# --- errors ---

REFUSALS = [
    (429, ErrorInfo("rate_limited", "slow down"), 429),
    (401, ErrorInfo("authentication", "no such key"), 401),
    (529, ErrorInfo("overloaded", "busy"), {"messages": 529}),
    (400, ErrorInfo("context_window_exceeded", "prompt is too long: 9 tokens > 8 maximum"), 400),
    (404, ErrorInfo("not_found", "no such model"), 404),
    (500, ErrorInfo("server_error", "oh"), 500),
]


@each_client
@pytest.mark.parametrize(
    ("status", "error", "shown"), REFUSALS, ids=[error.kind for _, error, _ in REFUSALS]
)
@pytest.mark.parametrize("whole", [False, True], ids=["stream", "whole"])
async def test_an_http_error_upstream_is_one_of_the_clients_wire(
    wire: WireApi, status: int, error: ErrorInfo, shown: Any, whole: bool
) -> None:
    upstream = Upstream(refusing("messages", status, error, retry_after="7"))
    async with serving(upstream, rule("messages"), **ONCE) as client:
        answer = await ask(client, wire, asking(), whole=whole)
    assert answer.status_code == (shown.get(wire, 503) if isinstance(shown, dict) else shown)
    failure = read(wire, answer, whole=True).error
    assert failure is not None
    assert (failure.kind, failure.retry_after) == (error.kind, 7.0)
    assert error.message in failure.message


@each_client
async def test_what_fails_inside_the_stream_ends_it_in_the_clients_wire(wire: WireApi) -> None:
    """What came before it is there, its usage too."""
    broken = turn_bytes("messages")[:12]
    async with serving(
        Upstream(streaming("messages", *broken)), rule("messages"), **ONCE
    ) as client:
        answer = await ask(client, wire, asking())
    assert answer.status_code == 200
    response = said(wire, answer.content)
    assert response.error is not None
    assert response.text == said("messages", *broken).text
    assert response.calls == []


async def test_a_first_event_that_is_a_failure_is_an_http_error() -> None:
    failed = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    async with serving(Upstream(streaming("messages", failed)), rule("messages"), **ONCE) as client:
        answer = await ask(client, "chat", asking())
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")


async def test_a_fallback_is_asked_before_the_first_byte_and_never_after() -> None:
    rules = RouteRule(
        "*", ("custom:one", "custom:two"), wire_api="messages", base_url="http://upstream"
    )
    busy = refusing("messages", 529, ErrorInfo("overloaded", "busy"))
    upstream = Upstream(busy, streaming("messages", *turn_bytes("messages")))
    async with serving(upstream, rules, **ONCE) as client:
        answer = await ask(client, "chat", asking())
    assert plain(read("chat", answer)) == plain(said("messages", *turn_bytes("messages")))
    assert [upstream.body(at)["model"] for at in (0, 1)] == ["one", "two"]

    upstream = Upstream(
        streaming("messages", *turn_bytes("messages")[:12]),
        streaming("messages", *turn_bytes("messages")),
    )
    async with serving(upstream, rules, **ONCE) as client:
        answer = await ask(client, "chat", asking())
    assert len(upstream.asked) == 1
    assert said("chat", answer.content).error is not None


async def test_the_clients_own_mistake_is_not_tried_elsewhere() -> None:
    rules = RouteRule(
        "*", ("custom:one", "custom:two"), wire_api="messages", base_url="http://upstream"
    )
    upstream = Upstream(
        refusing("messages", 400, ErrorInfo("invalid_request", "max_tokens: too many"))
    )
    async with serving(upstream, rules, **ONCE) as client:
        assert (await ask(client, "chat", asking())).status_code == 400
    assert len(upstream.asked) == 1


@each_client
async def test_what_is_no_request_of_the_wire_is_refused_in_its_words(wire: WireApi) -> None:
    async with serving(Upstream(), rule("messages")) as client:
        url = httpx.URL(request(wire, asking()).url).path
        answer = await client.post(
            url if wire != "gemini" else f"/v1beta{url}", content=b'{"model":'
        )
    assert answer.status_code == 400
    assert error_of(wire, answer.content).kind == "invalid_request"


async def test_words_that_name_a_stored_history_are_refused_by_another_wire() -> None:
    async with serving(Upstream(), rule("messages")) as client:
        answer = await ask(client, "responses", asking(extra={"previous_response_id": "resp_0"}))
    assert (answer.status_code, "previous_response_id" in answer.text) == (400, True)


# --- heads ---


async def test_rate_limits_have_the_names_of_the_clients_wire() -> None:
    given = {
        "anthropic_ratelimit_requests_limit": "50",
        "anthropic_ratelimit_requests_remaining": "49",
    }
    upstream = Upstream(streaming("messages", *turn_bytes("messages"), **given))
    async with serving(upstream, rule("messages")) as client:
        chat, messages = (
            await ask(client, "chat", asking()),
            await ask(client, "messages", asking()),
        )
    assert (
        chat.headers["x-ratelimit-limit-requests"],
        chat.headers["x-ratelimit-remaining-requests"],
    ) == ("50", "49")
    assert messages.headers["anthropic-ratelimit-requests-remaining"] == "49"


@each_client
@pytest.mark.parametrize("whole", [False, True], ids=["stream", "whole"])
async def test_the_answer_is_of_the_model_that_was_asked_for(wire: WireApi, whole: bool) -> None:
    async with serving(
        Upstream(streaming("messages", *turn_bytes("messages"))), rule("messages")
    ) as client:
        answer = await ask(client, wire, asking(), whole=whole)
    assert (read(wire, answer, whole=whole).model, answer.headers["x-streamlib-model"]) == (
        "client-model",
        "custom:model-1",
    )


async def test_what_the_other_wire_cannot_say_is_counted_in_the_head() -> None:
    upstream = Upstream(streaming("messages", *turn_bytes("messages")))
    async with serving(upstream, rule("messages")) as client:
        answer = await ask(client, "chat", asking(seed=7, extra={"logit_bias": {"1": 2}}))
    assert answer.headers["x-streamlib-report"].startswith("dropped=2")
    assert b"logit_bias" not in upstream.asked[0][2]


async def test_a_gemini_client_that_does_not_ask_for_events_gets_an_array() -> None:
    upstream = Upstream(streaming("messages", *turn_bytes("messages")))
    body = request("gemini", asking()).body
    async with serving(upstream, rule("messages"), keep_alive=0.001) as client:
        answer = await client.post(
            "/v1beta/models/client-model:streamGenerateContent", content=body
        )
    assert answer.headers["content-type"] == "application/json"
    assert len(answer.json()) > 5
    assert plain(said("gemini", answer.content)) == plain(said("messages", *turn_bytes("messages")))


# --- time ---


@each_client
async def test_while_the_model_thinks_the_client_is_told_so(wire: WireApi) -> None:
    first, *rest = turn_bytes("gemini")
    upstream = Upstream(streaming("gemini", 0.05, first, 0.05, *rest))
    async with serving(upstream, rule("gemini"), keep_alive=0.01) as client:
        answer = await ask(client, wire, asking())
    sign = {"messages": b"event: ping", "gemini": b"\n"}.get(wire, b": keep-alive")
    assert answer.content.startswith(sign)
    assert answer.content.count(sign) >= 2
    assert plain(read(wire, answer)) == plain(said("gemini", first, *rest))


async def test_after_a_sign_of_life_a_failure_stands_in_the_stream() -> None:
    upstream = Upstream(streaming("messages", 0.05))
    async with serving(upstream, rule("messages"), keep_alive=0.01, **ONCE) as client:
        answer = await ask(client, "chat", asking())
    assert answer.status_code == 200
    assert error_of("chat", answer.content).kind in ("truncated", "server_error")


async def leave(app: Any, wire: WireApi, after: int) -> int:
    """A client that goes after so many messages; how many it got."""
    made = request(wire, asking())
    body = msgspec.json.encode({**msgspec.json.decode(made.body), "stream": True})
    got, gone, sent = 0, anyio.Event(), False
    if not after:
        gone.set()

    async def receive() -> Any:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal got
        await anyio.lowlevel.checkpoint()
        got += 1
        if got >= after:
            gone.set()

    path = httpx.URL(made.url).path
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(b"host", b"localhost")],
        "query_string": b"",
    }
    await app(scope, receive, send)
    return got


async def test_a_client_that_goes_takes_its_upstream_connection_along() -> None:
    chunks = [part for chunk in turn_bytes("messages") for part in (chunk, 0.001)]
    upstream = Upstream(streaming("messages", *chunks, 60.0))
    async with Gateway(RouteTable([rule("messages")]), client={"http": upstream}) as one:
        app = gateway(one)
        for after in range(12):
            with anyio.fail_after(5):
                assert await leave(app, "chat", after) <= after + 3
            assert upstream.open == 0


async def test_the_log_has_one_line_a_request_and_no_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    async with serving(
        Upstream(streaming("messages", *turn_bytes("messages"))), rule("messages")
    ) as client:
        await ask(client, "chat", asking(instructions="the secret plan"))
    lines = [record.getMessage() for record in caplog.records if record.name == "streamlib.gateway"]
    assert len(lines) == 1
    assert "chat client-model -> custom:model-1 at upstream: tool_calls, 12+34 tokens" in lines[0]
    assert not any(word in lines[0] for word in ("secret", "Riga", "Two places"))


# --- who may ask ---


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}]
)
async def test_a_web_page_gets_nothing(headers: dict[str, str]) -> None:
    async with serving(Upstream(), rule("messages")) as client:
        answer = await ask(client, "messages", asking(), **headers)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer t0ken"}, 200),
        ({"x-api-key": "t0ken"}, 200),
        ({"x-goog-api-key": "t0ken"}, 200),
    ],
)
async def test_a_token_is_wanted_wherever_the_sdks_put_their_key(
    headers: dict[str, str], status: int
) -> None:
    async with serving(
        Upstream(streaming("messages", *turn_bytes("messages"))), rule("messages"), token="t0ken"
    ) as client:
        answer = await ask(client, "messages", asking(), **{"host": "gateway.example", **headers})
    assert answer.status_code == status


async def test_nothing_of_the_clients_headers_goes_upstream() -> None:
    upstream = Upstream(streaming("messages", *turn_bytes("messages")))
    mine = {
        "authorization": "Bearer mine",
        "x_api_key": "mine",
        "anthropic_beta": "mine",
        "cookie": "mine",
        "user_agent": "mine",
    }
    async with serving(upstream, rule("messages")) as client:
        await ask(client, "messages", asking(), **mine)
    assert "mine" not in str(upstream.asked[0][1])


async def test_a_key_of_the_route_goes_upstream_and_never_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-canary-1")
    echo = refusing("messages", 401, ErrorInfo("authentication", "no such key: sk-canary-1"))
    upstream = Upstream(echo)
    async with serving(upstream, rule("messages", key_env="UPSTREAM_KEY"), **ONCE) as client:
        answer = await ask(client, "chat", asking())
    assert "sk-canary-1" in str(upstream.asked[0][1])
    assert "sk-canary-1" not in answer.text + str(answer.headers)


async def test_requests_have_a_size_and_a_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Upstream(), rule("messages")) as client:
        deep = b'{"model":"m","messages":' + b"[" * 200 + b"]" * 200 + b"}"
        assert (await client.post("/v1/messages", content=deep)).status_code == 400
        huge = await client.post(
            "/v1/messages", content=b"{}", headers={"content-length": str(33 << 20)}
        )
        assert huge.status_code == 413
        long = await client.post("/v1/chat/completions", content=b" " * (33 << 20))
        assert long.status_code == 413


# --- routes ---


async def test_the_first_route_that_matches_decides() -> None:
    upstream = Upstream(streaming("messages", *turn_bytes("messages")))
    routes = [
        rule("messages", reasoning={"low": "off"}, overrides={"top_k": 3}),
        rule("chat"),
    ]
    async with serving(upstream, *routes) as client:
        await ask(client, "chat", asking())
    assert (upstream.asked[0][0], upstream.body()["top_k"]) == ("http://upstream/v1/messages", 3)
    assert upstream.body().get("thinking", {"type": "disabled"}) == {"type": "disabled"}


async def test_a_model_without_a_route_is_not_found() -> None:
    async with serving(Upstream(), RouteRule("claude-*", "loopback:*")) as client:
        assert (await ask(client, "messages", asking())).status_code == 404


def test_a_route_file_says_what_is_wrong_with_it() -> None:
    assert read_table('[[route]]\nmodel = "a*"\nto = "anthropic:*"')[0].to == ("anthropic:*",)
    for wrong in (
        "[[route]",
        '[[route]]\nmodel = "a"',
        '[[route]]\nmodel = "a"\nto = []',
        '[[route]]\nmodel="a"\nto="b:c"\nuse="x"',
    ):
        with pytest.raises(ValueError, match="the route file: "):
            read_table(wrong)
    with pytest.raises(ValueError, match=r"the route '\*' to antropic:x: unknown provider"):
        RouteTable([read_route("*=antropic:x")])
    with pytest.raises(StreamError, match="NO_SUCH_KEY"):
        RouteTable([RouteRule("*", "anthropic:x", key_env="NO_SUCH_KEY")])


async def test_a_key_that_the_gateway_lacks_is_not_asked_of_its_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    caplog.set_level("INFO", "streamlib.gateway")
    async with serving(Upstream(), RouteRule("*", "anthropic:claude-opus-5")) as client:
        answer = await ask(client, "messages", asking())
    assert (answer.status_code, "ANTHROPIC_API_KEY" in answer.text) == (500, False)
    assert "the gateway has no key" in answer.text
    assert "anthropic needs a key: set ANTHROPIC_API_KEY" in caplog.text


async def test_a_base_url_that_ends_in_v1_twice_is_named() -> None:
    async with serving(Upstream(), rule("messages")) as client:
        answer = await client.post("/v1/v1/messages", content=b"{}")
    assert (answer.status_code, "has no /v1" in answer.text) == (404, True)


async def test_the_models_are_those_of_the_routes() -> None:
    async with serving(
        Upstream((200, {}, [b'{"data":[{"id":"a-1"},{"id":"b-1"}]}'])),
        RouteRule("fast", "custom:x", base_url="http://u"),
        RouteRule("a-*", "custom:*", base_url="http://u"),
    ) as client:
        listed = (await client.get("/v1/models")).json()
        gemini = (await client.get("/v1beta/models")).json()
    assert [one["id"] for one in listed["data"]] == ["fast", "a-1"]
    assert gemini["models"][0]["name"] == "models/fast"


async def test_a_count_of_tokens_is_anthropics_or_says_that_it_is_an_estimate() -> None:
    body = msgspec.json.decode(request("messages", asking()).body)
    async with serving(Upstream(), rule("chat")) as client:
        guess = await client.post("/v1/messages/count_tokens", json=body)
    assert guess.json()["input_tokens"] > 10
    assert guess.headers["x-streamlib-estimate"] == "true"
    upstream = Upstream((200, {}, [b'{"input_tokens":42}']))
    async with serving(
        upstream, RouteRule("*", "anthropic:claude-opus-4-5"), client={"api_key": "k"}
    ) as client:
        exact = await client.post("/v1/messages/count_tokens", json=body)
    assert (exact.json(), "x-streamlib-estimate" in exact.headers) == ({"input_tokens": 42}, False)
    assert upstream.asked[0][0].endswith("/v1/messages/count_tokens")
    assert "max_tokens" not in upstream.body()


# --- state ---


async def test_a_free_form_tool_is_called_freely_though_the_model_knows_only_functions() -> None:
    patch = ToolSpec("patch", "Edits files.", format={"type": "text"})
    call = FunctionCall("call_0", "patch", '{"input":"*** Begin"}', origin=Origin("messages"))
    upstream = Upstream(
        streaming("messages", one_item("messages", call)),
        streaming("messages", *turn_bytes("messages")),
    )
    prompt = Prompt("fix it", tools=[patch])
    async with serving(upstream, rule("messages")) as client:
        first = read("responses", await ask(client, "responses", prompt))
        (made,) = first.calls
        assert isinstance(made, CustomToolCall)
        assert made.input == "*** Begin"
        await ask(client, "responses", answered(prompt, first))
    sent = upstream.body()["messages"]
    assert sent[1]["content"][0]["input"] == {"input": "*** Begin"}
    assert sent[2]["content"][0]["tool_use_id"] == "call_0"


def one_item(wire: WireApi, item: Any) -> bytes:
    """An answer of one item, as a stream."""
    whole = encode_body(wire, Response("r", "m", "completed", (item,), stop_reason="tool_calls"))
    return answer_bytes(wire, parse_body(wire, whole))


async def test_an_edited_thought_is_the_clients_own() -> None:
    upstream = Upstream(streaming("messages", *turn_bytes("messages")))
    async with serving(upstream, rule("messages")) as client:
        first = read("chat", await ask(client, "chat", asking()))
        edited = [
            msgspec.structs.replace(item, content="I changed my mind.")
            if isinstance(item, Reasoning)
            else item
            for item in first.items
        ]
        await ask(
            client, "chat", answered(asking(), msgspec.structs.replace(first, items=tuple(edited)))
        )
    sent = msgspec.json.encode(upstream.body()["messages"]).decode()
    assert "I changed my mind." in sent
    assert "c2lnbmVk" not in sent


@pytest.mark.parametrize(
    "forged",
    [
        "c3RyZWFtbGliLzE6",
        "c3RyZWFtbGliLzE6%%%%",
        seal(user("I am the user"), 0),
        seal(Reasoning("x"), 0)[:-8],
    ],
)
def test_what_is_no_envelope_is_not_opened(forged: str) -> None:
    assert open_envelope(forged) is None


def test_an_envelope_shows_no_address_and_no_account() -> None:
    origin = Origin("messages", "custom", "http://10.0.0.7:9999", "m", "acct-77")
    text = seal(Message("assistant", origin=origin), 0)
    inside = open_envelope(text)
    assert inside is not None
    assert "10.0.0.7" not in repr(inside)
    assert "acct-77" not in repr(inside)


async def test_state_of_one_model_is_never_sent_to_another() -> None:
    """The client moves on to a model of another provider: the thought goes down the ladder, its signature stays behind."""
    upstream = Upstream(streaming("messages", *turn_bytes("messages")))
    elsewhere = RouteRule("other", "anthropic:claude-opus-4-5")
    async with serving(
        upstream, elsewhere, rule("messages"), client={"api_key": {"anthropic": "k"}}
    ) as client:
        first = read("chat", await ask(client, "chat", asking()))
        made = build(
            answered(asking(), first),
            "other",
            provider="custom",
            wire_api="chat",
            base_url="http://127.0.0.1:8900",
        )
        await client.post("/chat/completions", content=made.body)
    assert b"c2lnbmVk" not in upstream.asked[1][2]
    assert upstream.asked[1][0].startswith("https://api.anthropic.com")


async def test_after_a_fallback_answered_its_state_is_its_own() -> None:
    """Two servers of the client's own wire: what the second one signed does not go to the first."""
    rules = RouteRule(
        "*", ("custom:one", "custom:two"), wire_api="messages", base_url="http://upstream"
    )
    busy = refusing("messages", 529, ErrorInfo("overloaded", "busy"))
    answer = streaming("messages", *turn_bytes("messages"))
    upstream = Upstream(busy, answer, answer, busy, answer)
    async with serving(upstream, rules, **ONCE) as client:
        first = read("messages", await ask(client, "messages", asking()))
        await ask(client, "messages", answered(asking(), first))
        await ask(client, "messages", answered(asking(), first))
    assert b"c2lnbmVk" not in upstream.asked[2][2]
    assert (upstream.body(4)["model"], b"c2lnbmVk" in upstream.asked[4][2]) == ("two", True)


# --- inside ---


async def test_a_mistake_of_ours_is_an_error_of_the_clients_wire(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("streamlib.gateway.handler.prompt_for", broken)
    async with serving(Upstream(), rule("messages")) as client:
        answer = await ask(client, "chat", asking())
    assert (answer.status_code, error_of("chat", answer.content).kind) == (500, "server_error")
    assert "failed inside the gateway" in caplog.text


async def test_texts_that_grow_at_once_are_told_one_after_the_other_where_there_are_no_blocks() -> (
    None
):
    block = '{"type":"content_block_%s","index":%d,%s}'
    lines = [
        '{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}',
        *(block % ("start", at, '"content_block":{"type":"text","text":""}') for at in (0, 1)),
        *(
            block % ("delta", at, f'"delta":{{"type":"text_delta","text":"{word}"}}')
            for at, word in ((0, "Hel"), (1, "B"), (0, "lo "))
        ),
        *(block % ("stop", at, '"x":0') for at in (0, 1)),
        '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}',
        '{"type":"message_stop"}',
    ]
    stream = "".join(f"data: {line}\n\n" for line in lines).encode()
    async with serving(Upstream(streaming("messages", stream)), rule("messages")) as client:
        for wire in CLIENTS:
            assert said(wire, (await ask(client, wire, asking())).content).text == "Hello B"
