"""Responses in the background: created, resumed, cancelled and deleted by their id."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from streamlib.client.retry import NO_RETRY
from streamlib.durable import Log, LogError, open_log
from streamlib.durable.memory import MemoryEngine
from streamlib.gateway import Gateway, NamedClient, RouteRule, RouteTable, gateway
from streamlib.gateway.clients.identity import digest_of
from streamlib.gateway.clients.limits import MemoryLimits
from streamlib.gateway.requests.background import ID_PREFIX, owner_of
from streamlib_parsers.errors import ErrorInfo
from tests.support.asgi_calls import AsgiCall
from tests.support.asgi_servers import serving_app
from tests.support.cases import each_case
from tests.support.client_limits import Clock
from tests.support.gateways import (
    MODELS,
    Upstream,
    common_fields,
    error_response,
    parse_stream,
    rule,
    send,
    serving,
    stream_response,
    weather_chunks,
    weather_prompt,
    weather_response,
)
from tests.support.served_gateways import connected

BODY: dict[str, Any] = {"model": "client-model", "input": "Weather?", "background": True}
SILENT = 1e9
PATH = "/v1/responses"


def frames_of(response: httpx.Response) -> list[dict[str, Any]]:
    """The data of each server-sent event."""
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


async def ended(client: httpx.AsyncClient, response_id: str) -> dict[str, Any]:
    """The response once it has ended, as one who asks for it again and again finds it."""
    with anyio.fail_after(10):
        while True:
            found: dict[str, Any] = (await client.get(f"{PATH}/{response_id}")).json()
            if found["status"] not in ("queued", "in_progress"):
                return found
            await anyio.sleep(0.005)


async def created(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    """A response that was just created."""
    answer = await client.post(PATH, json={**BODY, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def streamed(client: httpx.AsyncClient, response_id: str, **query: Any) -> httpx.Response:
    return await client.get(f"{PATH}/{response_id}", params={"stream": "true", **query})


@asynccontextmanager
async def serving_log(
    engine: MemoryEngine, upstream: Upstream, **options: Any
) -> AsyncGenerator[tuple[httpx.AsyncClient, Log]]:
    """A gateway in a process of its own, on an engine that several share."""
    async with (
        open_log(engine, lease=0.2, interval=0.001) as log,
        serving(upstream, rule("messages"), log=log, **options) as client,
    ):
        yield client, log


def silent(chunks: int = 6) -> Upstream:
    """A model that says something, and then nothing."""
    return Upstream(stream_response("messages", *weather_chunks("messages")[:chunks], SILENT))


async def has_open(upstream: Upstream, count: int) -> None:
    """Waits until so many responses of the model are being read."""
    with anyio.fail_after(5):
        while upstream.open != count:  # noqa: ASYNC110  # it has no event for it
            await anyio.sleep(0.002)


@each_case("wire", MODELS)
async def test_background_response_is_the_one_of_the_foreground(wire: Any) -> None:
    expected = common_fields(parse_stream(wire, *weather_chunks(wire)))
    async with serving(Upstream(weather_response(wire)), rule(wire), log="memory:") as client:
        queued = await created(client)
        assert (queued["status"], queued["output"], queued["background"]) == ("queued", [], True)
        found = await ended(client, queued["id"])
        stream = await streamed(client, queued["id"])
    assert found["id"] == queued["id"]
    assert found["created_at"] == queued["created_at"]
    assert found["model"] == "client-model"
    assert found["status"] == "completed"
    received = parse_stream("responses", stream.content)
    assert received.response_id == queued["id"]
    assert common_fields(received) == expected


async def test_stream_resumes_after_any_frame() -> None:
    """`sequence_number` counts, and the frames behind each are the same for every reader."""
    upstream = Upstream(weather_response("gemini"))
    async with serving(upstream, rule("gemini"), log="memory:") as client:
        first = await client.post(PATH, json={**BODY, "stream": True})
        frames = frames_of(first)
        response_id = frames[0]["response"]["id"]
        assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
        kinds = [frame["type"] for frame in frames]
        assert kinds[:3] == ["response.created", "response.queued", "response.in_progress"]
        assert kinds.count("response.created") == 1
        assert kinds[-1] == "response.completed"
        objects = [frame["response"] for frame in frames if "response" in frame]
        assert {found["id"] for found in objects} == {response_id}
        assert all(found["background"] for found in objects)
        for after in range(-1, len(frames) + 2):
            query = {} if after < 0 else {"starting_after": after}
            resumed = await streamed(client, response_id, **query)
            assert frames_of(resumed) == frames[after + 1 :]


async def test_events_of_the_provider_are_numbered_too() -> None:
    """An event that only the provider knows has a number of its stream, or none."""
    body = b'event: response.created\ndata: {"type":"response.created","response":{"id":"r"}}\n\n'
    for extra in ('"sequence_number":900,', ""):
        body += b'event: response.new\ndata: {"type":"response.new",%s"x":1}\n\n' % extra.encode()
    body += (
        b'event: response.completed\ndata: {"type":"response.completed","sequence_number":901,'
        b'"response":{"id":"r","status":"completed","output":[]}}\n\n'
    )
    upstream = Upstream(stream_response("responses", body))
    async with serving(upstream, rule("responses"), log="memory:") as client:
        frames = frames_of(await client.post(PATH, json={**BODY, "stream": True}))
    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert [frame["x"] for frame in frames if frame["type"] == "response.new"] == [1, 1]
    sent = upstream.body()
    assert ("background" in sent, sent["store"]) == (False, False)


async def test_response_continues_without_its_client() -> None:
    chunks: list[bytes | float] = []
    for chunk in weather_chunks("messages"):
        chunks += [chunk, 0.002]
    upstream = Upstream(stream_response("messages", *chunks))
    table = RouteTable([rule("messages")])
    async with Gateway(table, client={"http": upstream}, log="memory:") as running:
        app = gateway(running)
        call = AsgiCall(leave_after=3, path=PATH)
        await call(_local(app), json.dumps({**BODY, "stream": True}).encode())
        assert b"response.completed" not in call.body
        response_id = json.loads(call.body.split(b"data: ")[1].split(b"\n")[0])["response"]["id"]
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            found = await ended(client, response_id)
    assert [item["type"] for item in found["output"]][-1] == "function_call"


def _local(app: Any) -> Any:
    """The application under this machine's own name."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "headers": [(b"host", b"localhost")]}, receive, send)

    return call


async def test_response_exists_before_its_id_is_given_out() -> None:
    """The trial's finding: an id given out before its log existed."""
    async with serving(silent(0), rule("messages"), log="memory:") as client:
        for _ in range(20):
            found = await created(client)
            assert (await client.get(f"{PATH}/{found['id']}")).json() == found


async def test_cancel_closes_the_upstream_and_may_be_repeated() -> None:
    upstream = silent()
    async with serving(upstream, rule("messages"), log="memory:") as client:
        response_id = (await created(client))["id"]
        await has_open(upstream, 1)
        with anyio.fail_after(3):
            found = (await client.post(f"{PATH}/{response_id}/cancel")).json()
        assert (found["id"], found["status"], upstream.open) == (response_id, "cancelled", 0)
        for again in (client.post(f"{PATH}/{response_id}/cancel"), ended(client, response_id)):
            answer: Any = await again
            assert (answer if isinstance(answer, dict) else answer.json()) == found
        frames = frames_of(await streamed(client, response_id))
    assert frames[-1]["type"] == "response.failed"
    assert frames[-1]["response"]["error"]["message"] == "stopped: user"


async def test_ended_response_is_not_cancelled() -> None:
    async with serving(
        Upstream(weather_response("messages")), rule("messages"), log="memory:"
    ) as client:
        found = await ended(client, (await created(client))["id"])
        answer = await client.post(f"{PATH}/{found['id']}/cancel")
    assert answer.json() == found
    assert found["status"] == "completed"


async def test_deleted_response_is_gone() -> None:
    upstream = silent()
    async with serving(upstream, rule("messages"), log="memory:") as client:
        path = f"{PATH}/{(await created(client))['id']}"
        await has_open(upstream, 1)
        assert (await client.delete(path)).json()["deleted"] is True
        await has_open(upstream, 0)
        for method, suffix in (("GET", ""), ("DELETE", ""), ("POST", "/cancel")):
            assert (await client.request(method, path + suffix)).status_code == 404


async def test_response_of_another_client_is_not_there() -> None:
    key = {"authorization": "Bearer one"}
    others: list[dict[str, str]] = [
        {},
        {"authorization": "Bearer two"},
        {"x-api-key": "two"},
        {**key, "openai-project": "other"},
    ]
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages"), log="memory:") as client:
        answer = await client.post(PATH, json=BODY, headers=key)
        path = f"{PATH}/{answer.json()['id']}"
        unknown = await client.get(f"{PATH}/{ID_PREFIX}{'0' * 32}", headers=key)
        for headers in others:
            for method, suffix in (("GET", ""), ("DELETE", ""), ("POST", "/cancel")):
                refused = await client.request(method, path + suffix, headers=headers)
                assert refused.status_code == unknown.status_code == 404
            stream = await client.get(f"{path}?stream=true", headers=headers)
            assert stream.status_code == 404
        # The same key is the same client, in whichever header it comes.
        for headers in (key, {"x-api-key": "one"}):
            assert (await client.get(path, headers=headers)).status_code == 200


async def test_limit_of_running_responses_holds_while_they_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamlib.gateway.requests.background.RUNNING_LIMIT", 2)
    statuses: list[int] = []
    async with serving(silent(0), rule("messages"), log="memory:") as client:

        async def start() -> None:
            statuses.append((await client.post(PATH, json=BODY)).status_code)

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(start)
        refused = await client.post(PATH, json={**BODY, "previous_response_id": "resp_1"})
    assert sorted(statuses) == [200, 200, 503, 503, 503]
    assert refused.status_code == 503


async def test_response_that_cannot_start_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamlib.gateway.requests.background.RUNNING_LIMIT", 1)
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages"), log="memory:") as client:
        bad = await client.post(PATH, json={**BODY, "conversation": "conv_1"})
        good = await client.post(PATH, json=BODY)
    assert (bad.status_code, good.status_code) == (400, 200)


async def test_named_client_keeps_its_responses_with_a_new_token() -> None:
    """As it keeps the state that is stored for it: both know it by its name."""

    def table(token: str) -> RouteTable:
        return RouteTable([rule("messages")], clients=[NamedClient("alice", digest_of(token))])

    upstream = Upstream(weather_response("messages"))
    async with Gateway(table("old"), client={"http": upstream}, log="memory:") as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            answer = await client.post(PATH, json=BODY, headers={"x-api-key": "old"})
            await running.use(table("new"))
            path = f"{PATH}/{answer.json()['id']}"
            found = await client.get(path, headers={"x-api-key": "new"})
    assert found.status_code == 200


async def test_cancelled_start_gives_its_tokens_back() -> None:
    class Slow(MemoryEngine):
        async def ask(self, *_: Any, **__: Any) -> Any:
            await anyio.sleep_forever()

    alice = NamedClient("alice", digest_of("ab"), tokens_per_minute=100_000)
    limits = MemoryLimits(Clock())
    table = RouteTable([rule("messages")], clients=[alice])
    async with (
        open_log(Slow()) as log,
        Gateway(table, client={"http": silent()}, log=log, limits=limits) as running,
    ):
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            with anyio.move_on_after(0.1) as scope:
                body = {**BODY, "input": "x" * 4000}
                await client.post(PATH, json=body, headers={"x-api-key": "ab"})
        balance = await limits.take(alice, 0)
    assert scope.cancelled_caught
    assert balance.tokens == 100_000


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer dummy"}])
async def test_key_in_the_query_tells_clients_apart(headers: dict[str, str]) -> None:
    """Access control takes it out of the query, so that no server logs it."""
    clients = [NamedClient(name, digest_of(f"slg_{name}")) for name in ("alice", "bob")]
    table = RouteTable([rule("messages")], clients=clients)
    upstream = Upstream(weather_response("messages"))
    async with Gateway(table, client={"http": upstream}, log="memory:") as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            client.headers.update(headers)
            answer = await client.post(f"{PATH}?key=slg_alice", json=BODY)
            path = f"{PATH}/{answer.json()['id']}"
            statuses = []
            for name in ("bob", "alice"):
                statuses.append((await client.get(f"{path}?key=slg_{name}")).status_code)
    assert statuses == [404, 200]


async def test_log_that_is_not_a_response_is_not_served() -> None:
    engine = MemoryEngine()
    async with serving_log(engine, Upstream()) as (client, log):
        await log.create("chat-7")
        await log.create(ID_PREFIX + "0" * 32)
        for name in ("chat-7", ID_PREFIX + "0" * 32, "resp_0", "%00", "x" * 500):
            assert (await client.get(f"{PATH}/{name}")).status_code == 404


async def test_failure_of_every_target_is_the_end_of_the_response() -> None:
    busy = error_response("messages", 529, ErrorInfo("overloaded", "busy"))
    upstream = Upstream(busy)
    async with serving(
        upstream, rule("messages"), log="memory:", client={"retry": NO_RETRY}
    ) as client:
        found = await ended(client, (await created(client))["id"])
        frames = frames_of(await streamed(client, found["id"]))
    assert (found["status"], found["error"]["code"]) == ("failed", "server_error")
    assert frames[-1]["type"] == "response.failed"


async def test_second_target_responds_if_the_first_fails() -> None:
    busy = error_response("messages", 529, ErrorInfo("overloaded", "busy"), retry_after="37")
    two = RouteRule("*", ("custom:a", "custom:b"), wire_api="messages", base_url="http://upstream")
    upstream = Upstream(busy, weather_response("messages"))
    async with serving(upstream, two, log="memory:", client={"retry": NO_RETRY}) as client:
        found = await ended(client, (await created(client))["id"])
        assert (found["status"], len(upstream.requests)) == ("completed", 2)
        # The first has to rest, so the next response has the second from its start.
        found = await ended(client, (await created(client))["id"])
    assert found["status"] == "completed"
    assert [upstream.body(index)["model"] for index in range(3)] == ["a", "b", "b"]


async def test_invalid_request_is_refused_at_once() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"store": False}, "background requires store"),
        ({"background_options": {"completion_window": "8h"}}, "runs at once here"),
        ({"previous_response_id": ID_PREFIX + "0" * 32}, "send the history itself"),
        ({"conversation": "conv_1"}, "only responses providers store"),
    ]
    async with serving(Upstream(), rule("messages"), log="memory:") as client:
        for body, message in cases:
            answer = await client.post(PATH, json={**BODY, **body})
            assert (answer.status_code, message in answer.text) == (400, True), answer.text
        path = f"{PATH}/{(await created(client))['id']}"
        for number in ("x", "-2", "1.5", "9" * 30):
            assert (
                await client.get(f"{path}?stream=true&starting_after={number}")
            ).status_code == 400


async def test_background_without_a_log_is_never_dropped() -> None:
    upstream = Upstream(weather_response("responses"))
    async with serving(upstream, rule("messages")) as client:
        refused = await client.post(PATH, json=BODY)
        missing = await client.get(f"{PATH}/resp_0")
    assert (refused.status_code, "background" in refused.text) == (400, True)
    assert (missing.status_code, "--log" in missing.text) == (404, True)
    async with serving(upstream, rule("responses")) as client:
        await client.post(PATH, json=BODY)
    assert upstream.body()["background"] is True


async def test_keep_alives_are_sent_while_a_response_is_silent() -> None:
    chunks = weather_chunks("messages")
    upstream = Upstream(stream_response("messages", 0.05, *chunks))
    async with serving(upstream, rule("messages"), log="memory:", keep_alive=0.01) as client:
        answer = await client.post(PATH, json={**BODY, "stream": True})
    assert answer.content.count(b": keep-alive") >= 2
    assert parse_stream("responses", answer.content).stop_reason == "tool_calls"


async def test_stopped_gateway_ends_its_responses() -> None:
    """Another gateway on the same log serves the end."""
    engine = MemoryEngine()
    upstream = silent()
    async with serving_log(engine, Upstream()) as (other, _):
        async with serving_log(engine, upstream) as (client, _):
            response_id = (await created(client))["id"]
            await has_open(upstream, 1)
        assert upstream.open == 0
        found = await ended(other, response_id)
    assert (found["status"], found["error"]["code"]) == ("failed", "cancelled")
    assert found["error"]["message"] == "the writer was cancelled"


async def test_other_gateway_reads_and_cancels() -> None:
    engine = MemoryEngine()
    upstream = silent()
    async with (
        serving_log(engine, upstream) as (client, _),
        serving_log(engine, Upstream()) as (other, _),
    ):
        response_id = (await created(client))["id"]
        found = (await other.post(f"{PATH}/{response_id}/cancel")).json()
        assert found["status"] == "cancelled"
        here = await streamed(client, response_id)
        there = await streamed(other, response_id)
    assert here.content == there.content
    assert upstream.open == 0


async def test_dead_gateway_is_noticed_by_one_who_only_polls() -> None:
    engine = MemoryEngine()
    async with serving_log(engine, Upstream()) as (other, log):
        async with serving_log(engine, silent(0)) as (client, _):
            response_id = (await created(client))["id"]
            meta = (await log.head(response_id)).meta
        copy = ID_PREFIX + "1" * 32
        stored = {**meta["response"], "response_id": copy}
        # As the log of a gateway that was killed: nobody writes it.
        owner = owner_of({"headers": []}, copy)
        await log.create(copy, {"response": stored, "owner": owner})
        found = await ended(other, copy)
    assert (found["status"], found["error"]["code"]) == ("failed", "server_error")


async def test_log_that_is_away_is_a_503() -> None:
    class Away(MemoryEngine):
        async def ask(self, *_: Any, **__: Any) -> Any:
            raise LogError("unavailable", "the network is cut")

        read = ask

    async with serving_log(Away(), Upstream()) as (client, _):
        answer = await client.post(PATH, json=BODY)
        found = await client.get(f"{PATH}/{ID_PREFIX}{'0' * 32}")
    assert (answer.status_code, found.status_code) == (503, 503)


async def test_foreground_of_a_gateway_with_a_log_is_unchanged() -> None:
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages"), log="memory:") as client:
        stream = await send(client, "responses", weather_prompt())
        false = await client.post(PATH, json={**BODY, "background": False})
    assert parse_stream("responses", stream.content).stop_reason == "tool_calls"
    assert false.json()["status"] == "completed"


@pytest.mark.usefixtures("asgi_server")
async def test_stream_over_a_socket_breaks_and_resumes() -> None:
    chunks: list[bytes | float] = []
    for chunk in weather_chunks("messages"):
        chunks += [chunk, 0.005]
    upstream = Upstream(stream_response("messages", *chunks))
    app = gateway(Gateway(RouteTable([rule("messages")]), client={"http": upstream}, log="memory:"))
    async with serving_app(app) as server, httpx.AsyncClient(base_url=server.url) as client:
        body = json.dumps({**BODY, "stream": True})
        # By hand: httpx leaves generators behind where a stream is left before its end.
        request = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
        text = b""
        async with await connected(server.url) as connection:
            await connection.send((request + body).encode())
            while text.count(b"\n\n") < 4:
                text += await connection.receive()
        lines = [line for line in text.split(b"\n\n") if b"\ndata: " in line]
        seen = [json.loads(line.partition(b"\ndata: ")[2]) for line in lines[:4]]
        response_id = seen[0]["response"]["id"]
        rest = frames_of(await streamed(client, response_id, starting_after=3))
        whole = frames_of(await streamed(client, response_id))
    assert seen + rest == whole
    assert whole[-1]["type"] == "response.completed"
