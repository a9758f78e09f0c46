"""Named clients at the gateway: their tokens, models and limits, on every wire."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import anyio.to_thread
import httpx
import msgspec
import pytest

from streamlib import Prompt
from streamlib.gateway import Gateway, NamedClient, RouteRule, RouteTable, gateway, read_file
from streamlib.gateway.clients.identity import digest_of
from streamlib.gateway.clients.limits import Balance, ClientLimits, MemoryLimits
from streamlib.gateway.clients.named_clients import ClientTable, new_token
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from tests.support.asgi_servers import serving_app
from tests.support.client_limits import Clock
from tests.support.gateways import (
    ProviderResponse,
    Upstream,
    each_client,
    error_response,
    read,
    rule,
    send,
    stream_or_body,
    stream_response,
    weather_chunks,
    weather_response,
)
from tests.support.sdks import LazySDK, anthropic, openai

genai: Final = LazySDK("google.genai")
ALICE: Final = "slg_alice-of-the-tests"
BOB: Final = "slg_bob-of-the-tests"
PROMPT: Final = Prompt("Hello", max_output_tokens=50)


def named(name: str, token: str, **options: Any) -> NamedClient:
    return NamedClient(name, digest_of(token), **options)


@asynccontextmanager
async def serving_clients(
    upstream: Upstream,
    *clients: NamedClient,
    rules: tuple[RouteRule, ...] = (),
    token: str | None = None,
    limits: ClientLimits | None = None,
) -> AsyncGenerator[httpx.AsyncClient]:
    """A gateway in this process that knows these clients."""
    table = RouteTable(rules or [rule("messages")], clients=clients)
    async with Gateway(table, client={"http": upstream}, limits=limits) as running:
        transport = httpx.ASGITransport(gateway(running, token=token))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield client


def as_client(token: str) -> dict[str, str]:
    return {"x_api_key": token}


# --- who may ----


def test_client_of_a_route_file_is_read() -> None:
    digest = digest_of(ALICE)
    file = read_file(
        f'[[client]]\nname = "alice"\ntoken_sha256 = "{digest}"\nmodels = ["claude-*"]\n'
        "requests_per_minute = 60\ntokens_per_minute = 200000\n"
    )
    assert file.client == [NamedClient("alice", digest, ("claude-*",), 60, 200_000)]
    assert ClientTable(file.client).find(["other", ALICE]) is file.client[0]


async def test_client_may_have_two_tokens_while_one_is_replaced() -> None:
    """Both are the same client: with the same limits, and what is kept for it."""
    digests = ", ".join(f'"{digest_of(token)}"' for token in (ALICE, BOB))
    file = read_file(f'[[client]]\nname = "alice"\ntoken_sha256 = [{digests}]\n')
    [alice] = file.client
    table = ClientTable(file.client)
    assert [table.find([token]) for token in (ALICE, BOB, "other")] == [alice, alice, None]
    with pytest.raises(ValueError, match="alice and bob have the same token"):
        ClientTable([alice, named("bob", BOB)])
    upstream = Upstream(weather_response("messages"))
    limited = msgspec.structs.replace(alice, requests_per_minute=1)
    async with serving_clients(upstream, limited) as client:
        for token, status in ((ALICE, 200), (BOB, 429)):
            response = await send(client, "messages", PROMPT, **as_client(token))
            assert response.status_code == status


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ('name = "a"\ntoken_sha256 = []', "token_sha256 is 64"),
        ('name = "a"\ntoken_sha256 = ["{digest}", "slg_a-token-by-mistake"]', "token_sha256 is 64"),
        ('name = "a b"\ntoken_sha256 = "{digest}"', "a client's name"),
        ('name = "a"\ntoken_sha256 = "slg_a-token-by-mistake"', "token_sha256 is 64"),
        ('name = "a"\ntoken_sha256 = "{digest}"\nrequests_per_minute = 0', "at least 1"),
        ('name = "a"\ntoken_sha256 = "{digest}"\ntokens = 1', "unknown field"),
        ('name = "a"', "token_sha256"),
    ],
)
def test_client_without_sense_is_refused(fields: str, message: str) -> None:
    text = "[[client]]\n" + fields.replace("{digest}", digest_of(ALICE))
    with pytest.raises(ValueError, match=message) as raised:
        read_file(text)
    assert "mistake" not in str(raised.value)


def test_clients_have_names_and_tokens_of_their_own() -> None:
    with pytest.raises(ValueError, match="the name alice"):
        RouteTable(clients=[named("alice", ALICE), named("alice", BOB)])
    with pytest.raises(ValueError, match="alice and bob have the same token"):
        RouteTable(clients=[named("alice", ALICE), named("bob", ALICE)])


def test_new_tokens_are_long_and_never_the_same() -> None:
    tokens = {new_token().reveal() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"slg_[A-Za-z0-9_-]{43}", token) for token in tokens)


@each_client
async def test_client_needs_its_token(wire: WireApi) -> None:
    upstream = Upstream(weather_response("messages"))
    async with serving_clients(upstream, named("alice", ALICE), token="of-the-owner") as client:
        for token, status in ((ALICE, 200), ("of-the-owner", 200), (BOB, 401), ("", 401)):
            response = await send(client, wire, PROMPT, **as_client(token))
            assert response.status_code == status
        refused = await send(client, wire, PROMPT)
    failure = read(wire, refused, stream=False).error
    assert failure is not None
    assert (refused.status_code, failure.kind) == (401, "authentication")


async def test_names_are_logged_and_tokens_never(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    upstream = Upstream(weather_response("messages"))
    clients = [named("alice", ALICE), named("bob", BOB, models=("other",))]
    async with serving_clients(upstream, *clients) as client:
        await send(client, "chat", PROMPT, authorization=f"Bearer {ALICE}")
        await client.post(f"/v1beta/models/m:generateContent?key={ALICE}", json={"contents": []})
        await send(client, "messages", PROMPT, **as_client(BOB))
        await send(client, "messages", PROMPT, **as_client("slg_of-nobody"))
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("stream")]
    text = "\n".join(lines)
    assert re.search(r"req_\w+ chat client-model -> custom:model-1 at upstream for alice: ", text)
    assert re.search(r"req_\w+ gemini .* for alice: ", text)
    assert re.search(r"req_\w+ messages for bob refused: no route", text)
    for secret in (ALICE, BOB, "of-nobody", digest_of(ALICE)):
        assert secret not in text


@pytest.mark.parametrize(("token", "status"), [(ALICE, 403), (BOB, 401), ("of-the-owner", 200)])
async def test_metrics_are_the_owners(token: str, status: int) -> None:
    async with serving_clients(
        Upstream(weather_response("messages")), named("alice", ALICE), token="of-the-owner"
    ) as client:
        response = await client.get("/metrics", headers={"x-api-key": token})
        probe = await client.get("/health")
    assert (response.status_code, probe.status_code) == (status, 200)


async def test_page_is_closed_to_clients_without_the_owners_token() -> None:
    async with serving_clients(
        Upstream(weather_response("messages")), named("alice", ALICE)
    ) as client:
        for headers in ({}, {"x-api-key": ALICE}):
            assert (await client.get("/live", headers=headers)).status_code in {401, 403}
        page = await client.get("/")
    assert "client-model" not in page.text


# --- models ---


@each_client
async def test_client_asks_only_the_models_that_it_sees(wire: WireApi) -> None:
    upstream = Upstream(weather_response("messages"))
    clients = [named("alice", ALICE, models=("client-*",)), named("bob", BOB, models=("gpt-*",))]
    async with serving_clients(upstream, *clients) as client:
        allowed = await send(client, wire, PROMPT, **as_client(ALICE))
        refused = await send(client, wire, PROMPT, stream=False, **as_client(BOB))
    failure = read(wire, refused, stream=False).error
    assert failure is not None
    assert (allowed.status_code, refused.status_code, failure.kind) == (200, 404, "not_found")
    assert len(upstream.requests) == 1


async def test_client_sees_its_models_in_the_list() -> None:
    rules = tuple(
        RouteRule(name, "custom:m", wire_api="chat", base_url="http://upstream")
        for name in ("claude-1", "gpt-1", "gpt-2")
    )
    upstream = Upstream(weather_response("chat"))
    clients = [named("alice", ALICE, models=("gpt-*", "o?")), named("bob", BOB)]
    async with serving_clients(upstream, *clients, rules=rules) as client:
        names: list[list[str]] = []
        for token in (ALICE, BOB):
            response = await client.get("/v1/models", headers={"x-api-key": token})
            names.append([model["id"] for model in response.json()["data"]])
        counted = await client.post(
            "/v1/messages/count_tokens",
            json={"model": "claude-1", "messages": [{"role": "user", "content": "Hello"}]},
            headers={"x-api-key": ALICE},
        )
    assert names == [["gpt-1", "gpt-2"], ["claude-1", "gpt-1", "gpt-2"]]
    assert counted.status_code == 404


# --- limits ---


@each_client
@stream_or_body
async def test_request_over_the_limit_gets_the_wires_error(wire: WireApi, stream: bool) -> None:
    clock = Clock()
    upstream = Upstream(weather_response("messages"))
    limited = named("alice", ALICE, requests_per_minute=2, tokens_per_minute=10_000)
    async with serving_clients(upstream, limited, limits=MemoryLimits(clock)) as client:
        asking = partial(send, client, wire, PROMPT, stream=stream, **as_client(ALICE))
        served = [await asking(), await asking()]
        refused = await asking()
        clock.now += int(refused.headers["retry-after"])
        later = await asking()
    assert [response.status_code for response in served] == [200, 200]
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
    assert later.status_code == 200
    failure = read(wire, refused, stream=False).error
    assert failure is not None
    assert (failure.kind, failure.retryable, failure.retry_after) == ("rate_limited", True, 30)
    assert "alice 2 requests a minute" in failure.message
    if wire == "messages":
        assert served[0].headers["anthropic-ratelimit-requests-remaining"] == "1"
        assert refused.headers["anthropic-ratelimit-requests-limit"] == "2"
        assert refused.headers["anthropic-ratelimit-requests-remaining"] == "0"
        reset = datetime.fromisoformat(refused.headers["anthropic-ratelimit-requests-reset"])
        assert 50 < (reset - datetime.now(UTC)).total_seconds() < 61
    else:
        assert served[0].headers["x-ratelimit-remaining-requests"] == "1"
        assert refused.headers["x-ratelimit-limit-requests"] == "2"
        assert refused.headers["x-ratelimit-remaining-requests"] == "0"
        assert refused.headers["x-ratelimit-reset-requests"] == "60s"
        assert refused.headers["x-ratelimit-limit-tokens"] == "10000"


@each_client
async def test_limits_of_the_owners_key_are_not_a_clients(wire: WireApi) -> None:
    answered = stream_response(
        "messages",
        *weather_chunks("messages"),
        anthropic_ratelimit_requests_limit="4000",
        anthropic_ratelimit_requests_remaining="3999",
    )
    async with serving_clients(
        Upstream(answered), named("alice", ALICE, tokens_per_minute=500), named("bob", BOB)
    ) as client:
        limited = await send(client, wire, PROMPT, **as_client(ALICE))
        unlimited = await send(client, wire, PROMPT, **as_client(BOB))
    prefix = "anthropic-ratelimit-{}-limit" if wire == "messages" else "x-ratelimit-limit-{}"
    assert prefix.format("requests") not in limited.headers
    assert limited.headers[prefix.format("tokens")] == "500"
    assert unlimited.headers[prefix.format("requests")] == "4000"


async def tokens_left(client: httpx.AsyncClient) -> int:
    """What is left, by the headers of a request that costs almost nothing."""
    response = await send(client, "chat", Prompt("x"), **as_client(ALICE))
    return int(response.headers["x-ratelimit-remaining-tokens"])


async def test_estimate_is_corrected_by_the_reported_usage() -> None:
    upstream = Upstream(weather_response("messages"))
    limited = named("alice", ALICE, tokens_per_minute=1000)
    async with serving_clients(upstream, limited, limits=MemoryLimits(Clock())) as client:
        first = await send(client, "chat", Prompt("x" * 2000), **as_client(ALICE))
        # The headers were sent before the end: they have the estimate.
        assert 480 <= int(first.headers["x-ratelimit-remaining-tokens"]) < 500
        left = await tokens_left(client)
    assert 1000 - 46 - 20 < left <= 1000 - 46, "12 tokens of input and 34 of output were reported"


@pytest.mark.parametrize("is_forwarded", [True, False])
async def test_compaction_uses_the_tokens_of_its_client(
    is_forwarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    own = {"id": "r", "output": [], "usage": {"input_tokens": 900, "output_tokens": 50}}
    upstream = Upstream(weather_response("messages"))
    rules = (rule("messages"),)
    if is_forwarded:
        upstream = Upstream(ProviderResponse(200, {}, [msgspec.json.encode(own)]))
        rules = (RouteRule("*", "openai:gpt-5", wire_api="responses"),)
    limited = named("alice", ALICE, tokens_per_minute=600)
    statuses: list[int] = []
    async with serving_clients(
        upstream, limited, rules=rules, limits=MemoryLimits(Clock())
    ) as client:
        client.headers["x-api-key"] = ALICE
        # Its estimate is above the limit, so it needs a full bucket.
        body = {"model": "m", "input": "x" * 2600}
        for _ in range(2):
            response = await client.post("/v1/responses/compact", json=body)
            statuses.append(response.status_code)
    assert statuses == [200, 429]


async def test_usage_above_the_limit_refuses_the_next_request() -> None:
    upstream = Upstream(weather_response("messages"))
    clock = Clock()
    limited = named("alice", ALICE, tokens_per_minute=40)
    async with serving_clients(upstream, limited, limits=MemoryLimits(clock)) as client:
        asking = partial(send, client, "responses", PROMPT, **as_client(ALICE))
        statuses = [(await asking()).status_code, (await asking()).status_code]
        clock.now += 60
        statuses.append((await asking()).status_code)
    assert statuses == [200, 429, 200]


async def test_failed_request_gives_its_tokens_back() -> None:
    failing = error_response("messages", 400, ErrorInfo("invalid_request", "no"))
    limited = named("alice", ALICE, tokens_per_minute=1000)
    async with serving_clients(
        Upstream(failing, weather_response("messages")), limited, limits=MemoryLimits(Clock())
    ) as client:
        failed = await send(client, "chat", Prompt("x" * 2000), **as_client(ALICE))
        left = await tokens_left(client)
    assert failed.status_code == 400
    assert left > 980


async def test_cancelled_response_costs_what_was_received() -> None:
    chunks = weather_chunks("messages")
    limited = named("alice", ALICE, tokens_per_minute=100_000)
    upstream = Upstream(stream_response("messages", *chunks[:-2], 60.0), weather_response("chat"))
    limits = MemoryLimits(Clock())
    async with serving_clients(upstream, limited, limits=limits) as client:
        with anyio.move_on_after(0.3):
            await send(client, "messages", Prompt("x" * 4000), **as_client(ALICE))
        balance = await limits.take(limited, 0)
    assert balance.tokens is not None
    # `message_start` reported 12 tokens of input; signed reasoning, a text and two calls came.
    assert 100_000 - 12 - 30 < balance.tokens < 100_000 - 12 - 10


async def test_cancelled_admission_gives_its_tokens_back() -> None:
    """A server has taken them when its answer is still on its way."""

    class Distant(MemoryLimits):
        async def take(self, client: NamedClient, tokens: int) -> Balance:
            balance = await super().take(client, tokens)
            await anyio.sleep(0.2)
            return balance

    limits = Distant(Clock())
    limited = named("alice", ALICE, tokens_per_minute=100_000)
    upstream = Upstream(weather_response("messages"))
    async with serving_clients(upstream, limited, limits=limits) as client:
        with anyio.move_on_after(0.1):
            await send(client, "messages", Prompt("x" * 4000), **as_client(ALICE))
        balance = await limits.take(limited, 0)
    assert balance.tokens is not None
    # The estimate was 1,000. Before the request ended, the provider may have counted 12, and its
    # first output may have come: the gateway reads that far before it waits for its client.
    assert balance.tokens >= 100_000 - 12 - 1


# --- official SDKs ---

HELLO: Final[list[Any]] = [{"role": "user", "content": "Hello"}]


def errors_of(asking: list[Callable[[], Any]]) -> list[tuple[type[Exception], dict[str, str]]]:
    """What the SDKs raise, with the headers that they offer."""
    errors: list[tuple[type[Exception], dict[str, str]]] = []
    for ask in asking:
        try:
            ask()
        except Exception as error:  # noqa: BLE001 - the SDKs have no common one
            response = getattr(error, "response", None)
            errors.append((type(error), dict(getattr(response, "headers", {}))))
    return errors


def errors_of_usual_sdks(url: str) -> list[tuple[type[Exception], dict[str, str]]]:
    with (
        anthropic.Anthropic(base_url=url, api_key=ALICE, max_retries=0) as claude,
        openai.OpenAI(base_url=f"{url}/v1", api_key=ALICE, max_retries=0) as gpt,
    ):
        return errors_of(
            [
                partial(claude.messages.create, model="m", max_tokens=9, messages=HELLO),
                partial(gpt.chat.completions.create, model="m", messages=HELLO),
                partial(gpt.responses.create, model="m", input="Hello"),
            ]
        )


def errors_of_googles_sdk(url: str) -> list[tuple[type[Exception], dict[str, str]]]:
    types = genai.types
    options = types.HttpOptions(
        base_url=url, timeout=20_000, retry_options=types.HttpRetryOptions(attempts=1)
    )
    with genai.Client(api_key=ALICE, http_options=options) as gemini:
        return errors_of(
            [
                partial(gemini.models.generate_content, model="m", contents="Hello"),
                partial(gemini.interactions.create, model="m", input="Hello"),
            ]
        )


async def errors_over_the_limit(ask: Callable[[str], Any]) -> Any:
    """What SDKs raise whose client has used its one request of this minute."""
    limits = MemoryLimits(Clock())
    limited = named("alice", ALICE, requests_per_minute=1)
    await limits.take(limited, 0)
    app = gateway(Gateway(RouteTable([rule("messages")], clients=[limited]), limits=limits))
    async with serving_app(app) as server:
        return await anyio.to_thread.run_sync(ask, server.url)


@pytest.mark.usefixtures("asgi_server")
async def test_official_sdks_read_the_limit() -> None:
    errors = await errors_over_the_limit(errors_of_usual_sdks)
    kinds = [kind for kind, _ in errors]
    assert kinds == [anthropic.RateLimitError, openai.RateLimitError, openai.RateLimitError]
    assert [headers["retry-after"] for _, headers in errors] == ["60"] * 3
    assert errors[0][1]["anthropic-ratelimit-requests-limit"] == "1"
    assert errors[1][1]["x-ratelimit-limit-requests"] == "1"


@pytest.mark.real  # importing it takes seconds
@pytest.mark.usefixtures("asgi_server")
async def test_googles_sdk_reads_the_limit() -> None:
    (content, _), (interaction, _) = await errors_over_the_limit(errors_of_googles_sdk)
    assert content is genai.errors.ClientError
    assert "RateLimit" in interaction.__name__
