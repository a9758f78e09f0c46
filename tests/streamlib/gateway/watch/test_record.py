"""`--record`: whole exchanges in files, without keys, bounded; `streamlib inspect` opens them."""

from __future__ import annotations

import stat
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from starlette.types import Message, Receive, Scope, Send

from streamlib.cli import main
from streamlib.client.retry import NO_RETRY
from streamlib.gateway import ExchangeFiles, Gateway, RouteRule, RouteTable, gateway
from streamlib.gateway.targets.routes import RouteTo
from streamlib.gateway.watch.observer import Exchange
from streamlib.gateway.watch.record import LIMIT_REACHED, WAITING, Buffered, ExchangeRecord
from streamlib.recording import Chunk, Recording, load_all
from streamlib.recording.masked_bodies import masked_chunks, masked_request
from streamlib_parsers import accumulate
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from tests.support.gateways import (
    CLIENTS,
    Upstream,
    error_response,
    rule,
    send,
    serving,
    stream_or_body,
    stream_response,
    weather_chunks,
    weather_prompt,
    weather_response,
)

TOKEN = "the-gateways-own-token"
KEY = "sk-upstream-4f9a8b7c6d5e4f3a"


def recorded(folder: Path) -> list[list[Recording]]:
    """The recordings of each file, the oldest first."""
    return [load_all(path) for path in files_of(folder)]


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def recording_gateway(
    upstream: Any, folder: Path, *rules: RouteRule, **options: Any
) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    files = ExchangeFiles(folder, **options)
    client = {"api_key": KEY, "base_url": "http://upstream", "retry": NO_RETRY}
    return serving(upstream, *rules, token=TOKEN, record=files, client=client)


@pytest.mark.parametrize("wire", CLIENTS)
@stream_or_body
async def test_exchange_is_recorded_on_both_sides(
    wire: WireApi, stream: bool, tmp_path: Path
) -> None:
    upstream = Upstream(weather_response("messages"))
    folder = tmp_path / str(stream)
    async with recording_gateway(upstream, folder, rule("messages")) as client:
        headers = {"authorization": f"Bearer {TOKEN}"}
        response = await send(client, wire, weather_prompt(), stream=stream, **headers)
    [[ours, theirs]] = recorded(folder)
    assert (ours.wire_api, theirs.wire_api) == (wire, "messages")
    assert (ours.status, theirs.status, ours.end, theirs.end) == (200, 200, None, None)
    assert ours.body == response.content
    assert theirs.body == b"".join(weather_chunks("messages"))
    assert accumulate(theirs.events()).calls
    assert ours.request is not None
    assert theirs.request is not None
    assert b"Weather in both?" in ours.request.body
    assert theirs.request.body == upstream.requests[0].body


async def test_no_file_has_a_key(tmp_path: Path) -> None:
    """The provider repeats the key that it refuses, and the client has another in its prompt."""
    refusal = error_response("chat", 401, ErrorInfo("authentication", f"Incorrect key: {KEY}"))
    upstream = Upstream(refusal, stream_response("chat", *weather_chunks("chat"), KEY.encode()))
    async with recording_gateway(upstream, tmp_path, rule("chat")) as client:
        prompt = weather_prompt(instructions="my key is sk-proj-0123456789abcdef, use it")
        for _ in range(2):
            await send(client, "messages", prompt, x_api_key=TOKEN, cookie="session=abcdefghij")
            await client.post(f"/v1/chat/completions?key={TOKEN}", json={"model": "m"})
    files = files_of(tmp_path)
    assert len(files) == 4
    for path in files:
        text = path.read_bytes()
        for recording in load_all(path):
            assert recording.request is not None
            text += recording.request.body + recording.body
        for secret in (TOKEN, KEY, "sk-proj", "abcdefghij"):
            assert secret.encode() not in text
    assert upstream.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_dummy_key_corrupts_no_recording(tmp_path: Path) -> None:
    """Local gateways need no key, and clients that need one send any."""
    upstream = Upstream(weather_response("chat"))
    files = ExchangeFiles(tmp_path)
    async with serving(upstream, rule("chat"), record=files) as client:
        response = await send(client, "chat", weather_prompt(), authorization="Bearer e")
    [[ours, _]] = recorded(tmp_path)
    assert ours.body == response.content
    assert ours.request is not None
    assert b"Weather in both?" in ours.request.body


def test_key_that_begins_as_another_is_masked() -> None:
    secrets = {"k" * length for length in range(8, 40)}
    assert masked_request(b'{"a":"' + b"k" * 39 + b'"}', secrets) == b'{"a":"***"}'


SLASHED = "sk/slash+plus==4f9a8b7c"
COOKIES = {"theme": "of-the-first-cookie", "session": "of-the-second-cookie", "last": "third-one"}


async def test_every_cookie_is_masked(tmp_path: Path) -> None:
    upstream = Upstream(weather_response("chat"))
    cookie = "; ".join([f'{name}="{value}"' for name, value in COOKIES.items()])
    async with serving(upstream, rule("chat"), record=ExchangeFiles(tmp_path)) as client:
        prompt = weather_prompt(instructions=" and ".join(COOKIES.values()))
        await send(client, "chat", prompt, cookie=cookie)
    for recording in recorded(tmp_path)[0]:
        assert recording.request is not None
        assert b"*** and *** and ***" in recording.request.body


ESCAPED = [
    SLASHED,
    SLASHED.replace("/", "\\/"),
    SLASHED.replace("+", "\\u002b").replace("=", "\\u003D"),
    "".join(f"\\u{ord(character):04x}" for character in SLASHED),
]


def test_key_is_masked_however_it_is_written() -> None:
    secrets = {SLASHED}
    for written in ESCAPED:
        body = f'{{"text":"my {written} is","{written}":1}}'.encode()
        assert masked_request(body, secrets) == b'{"text":"my *** is","***":1}'
        # One that was cut at a limit is no JSON.
        assert masked_request(body.replace(b"is", b"\xff"), secrets).startswith(b'{"text":"my ***')
        assert masked_request(body[:-1], secrets) == b'{"text":"my *** is","***":1'
        frames = b'data: {"text":"a\\n\\u00e4"}\n\ndata: ' + body + b"\n\n"
        [chunk] = masked_chunks([Chunk(1.0, frames)], secrets, is_stream=True)
        assert chunk.data == frames.replace(written.encode(), b"***")


def test_key_with_characters_beyond_16_bits_is_masked() -> None:
    key = "pass-\U0001f600-word"
    for written in (key, key.replace("\U0001f600", "\\uD83D\\ude00")):
        assert masked_request(f'{{"a":"{written}"}}'.encode(), {key}) == b'{"a":"***"}'
        [chunk] = masked_chunks([Chunk(0.0, f"data: {written}".encode())], {key}, is_stream=True)
        assert chunk.data == b"data: ***"


def test_body_without_a_key_is_recorded_byte_for_byte() -> None:
    body = b'{ "a": 1.0, "b": "\\u0061" }'
    assert masked_request(body, {"canary-of-a-key"}) == body


def test_other_threads_run_while_escaped_keys_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    yielded: list[float] = []
    monkeypatch.setattr("streamlib.recording.masked_bodies.time.sleep", yielded.append)
    lines = b"data: canary\\/key\n" * 3
    [chunk] = masked_chunks([Chunk(0.0, lines)], {"canary/key"}, is_stream=True)
    assert b"canary" not in chunk.data
    assert yielded == [0, 0, 0]


def test_field_with_the_name_of_a_key_is_masked() -> None:
    tool = {"type": "mcp", "authorization": "plain-word", "headers": {"X-Api-Key": "plain-word"}}
    schema = {"properties": {"password": {"type": "string"}}}
    masked = msgspec.json.decode(masked_request(msgspec.json.encode([tool, schema]), ()))
    assert masked[0] == {"type": "mcp", "authorization": "***", "headers": {"X-Api-Key": "***"}}
    assert masked[1] == schema


def test_key_in_a_list_a_token_and_a_url_are_masked() -> None:
    body = {
        "authorization": ["plain-word", {"a": 1}],
        "X-Vault-Token": "plain-word",
        "max_token": "7",
        "url": "https://me:plain-word@host/?next=sk%2Fslash%2Bplus%3D%3D4f9a8b7c",
    }
    masked = msgspec.json.decode(masked_request(msgspec.json.encode(body), {SLASHED}))
    assert masked == {
        "authorization": ["***", {"a": 1}],
        "X-Vault-Token": "***",
        "max_token": "7",
        "url": "https://***@host/?next=***",
    }


def test_json_that_is_nested_too_deeply_is_not_kept() -> None:
    deep = b"[" * 210 + b'"sk-proj-0123456789abcdef"' + b"]" * 210
    assert b"sk-proj" not in masked_request(deep, ())


async def test_key_in_a_path_is_masked(tmp_path: Path) -> None:
    files = ExchangeFiles(tmp_path)
    async with serving(Upstream(), rule("chat"), record=files) as client:
        await client.post(f"/v1/{SLASHED}/x", json={}, headers={"x-api-key": SLASHED})
    [[ours]] = recorded(tmp_path)
    assert ours.url == "/v1/***/x"


async def test_key_in_a_report_is_masked(tmp_path: Path) -> None:
    """A field that is left out is named with its path."""
    upstream = Upstream(weather_response("chat"))
    async with serving(upstream, rule("chat"), record=ExchangeFiles(tmp_path)) as client:
        body = {"model": "m", "input": "Hello", SLASHED: True}
        await client.post("/v1/responses", json=body, headers={"x-api-key": SLASHED})
    [[ours, _]] = recorded(tmp_path)
    assert ours.request is not None
    paths = [change.path for change in ours.request.changes]
    assert paths
    assert not [path for path in paths if "plus==4f9a" in path]


def kept_bytes(recordings: list[list[Recording]]) -> int:
    size = 0
    for recording in [one for exchange in recordings for one in exchange]:
        size += len(recording.body)
        if recording.request is not None:
            size += len(recording.request.body)
    return size


async def test_all_exchanges_together_are_bounded(tmp_path: Path) -> None:
    chunks: list[bytes | float] = [*weather_chunks("chat"), 0.05, b"data: [DONE]\n\n"]
    upstream = Upstream(stream_response("chat", *chunks))
    files = ExchangeFiles(tmp_path, buffered_bytes=20_000)
    async with (
        serving(upstream, rule("chat"), record=files) as client,
        anyio.create_task_group() as group,
    ):
        for _ in range(12):
            group.start_soon(send, client, "chat", weather_prompt())
    together = recorded(tmp_path)
    assert len(together) == 12
    assert 0 < kept_bytes(together) <= 20_000
    assert LIMIT_REACHED in {exchange[0].end for exchange in together}
    # What was written makes room for the next.
    async with serving(upstream, rule("chat"), record=files) as client:
        response = await send(client, "chat", weather_prompt())
    assert (recorded(tmp_path)[-1][0].end, recorded(tmp_path)[-1][0].body) == (
        None,
        response.content,
    )


def test_chunks_cost_more_than_their_bytes() -> None:
    """A stream in chunks of one byte took a hundred times what it was bounded to."""
    record = ExchangeRecord(
        path="/",
        method="POST",
        headers={},
        clock=lambda: 0.0,
        started_at=0.0,
        secrets=set(),
        room=10_000,
        buffered=Buffered(1_000_000),
    )
    assert sum(record.keep(b"x") for _ in range(10_000)) < 100


async def test_exchange_that_cannot_wait_frees_its_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk is too slow: here nothing is written, because the files were not entered."""
    files = ExchangeFiles(tmp_path, buffered_bytes=1000)
    scope: Scope = {"path": "/", "method": "POST", "headers": [], "query_string": b""}

    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * 500}

    async def send_nothing(message: Message) -> None:
        """Takes part of the response."""

    for number in range(WAITING + 1):
        exchange = Exchange(request_id=f"req_{number}", wire_api="chat")
        receiving, _ = files.watch(exchange.request_id, scope, receive, send_nothing)
        if number == WAITING:
            await receiving()
            assert not files._buffered.take(1000)
        files.ended(exchange)
    assert f"req_{WAITING} is not recorded: the disk is too slow" in caplog.text
    assert files._buffered.take(1000)


async def test_refusal_is_recorded_with_its_response(tmp_path: Path) -> None:
    """It is written once it was sent, however slowly its client reads."""
    table = RouteTable([RouteRule("m", "custom:m", base_url="http://upstream")])
    async with Gateway(table, record=ExchangeFiles(tmp_path)) as running:
        app = gateway(running)

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            async def slow_send(message: Message) -> None:
                await anyio.sleep(0.1)
                await send(message)

            await app(scope, receive, slow_send)

        transport = httpx.ASGITransport(slow)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            response = await send(client, "chat", weather_prompt())
    [[ours]] = recorded(tmp_path)
    assert (response.status_code, ours.status, ours.end) == (404, 404, None)
    assert ours.body == response.content


async def test_files_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    upstream = Upstream(weather_response("chat"))
    async with recording_gateway(upstream, folder, rule("chat")) as client:
        await send(client, "chat", weather_prompt(), x_api_key=TOKEN)
    [path] = files_of(folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_each_target_that_was_tried_is_recorded(tmp_path: Path) -> None:
    busy = error_response("chat", 529, ErrorInfo("overloaded", "busy"))
    targets = (
        RouteTo("custom:a", base_url="http://a/v1", wire_api="chat"),
        RouteTo("custom:b", base_url="http://b/v1", wire_api="chat"),
    )
    upstream = Upstream(busy, weather_response("chat"))
    async with serving(
        upstream,
        RouteRule("*", targets),
        record=ExchangeFiles(tmp_path),
        client={"retry": NO_RETRY},
    ) as client:
        await send(client, "chat", weather_prompt())
    [[ours, first, second]] = recorded(tmp_path)
    assert [one.status for one in (ours, first, second)] == [200, 529, 200]
    assert [one.url.partition("/v1")[0] for one in (first, second)] == ["http://a", "http://b"]


@pytest.mark.parametrize(
    ("options", "kept"), [({"files": 3}, 3), ({"folder_bytes": 1}, 1), ({"files": 100}, 6)]
)
async def test_oldest_files_go_first(options: dict[str, int], kept: int, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not ours", encoding="utf-8")
    upstream = Upstream(weather_response("chat"))
    for _ in range(2):  # what an earlier run has left counts too
        async with recording_gateway(upstream, tmp_path, rule("chat"), **options) as client:
            for _ in range(3):
                await send(client, "chat", weather_prompt(), x_api_key=TOKEN)
    assert len(files_of(tmp_path)) == kept + 1
    assert other.exists()


async def test_no_more_files_go_than_must(tmp_path: Path) -> None:
    upstream = Upstream(weather_response("chat"))
    async with recording_gateway(upstream, tmp_path, rule("chat")) as client:
        for _ in range(5):
            await send(client, "chat", weather_prompt(), x_api_key=TOKEN)
    sizes = [path.stat().st_size for path in files_of(tmp_path)]
    # There is no place for the sixth beside these five, but beside four of them.
    room = sum(sizes) + min(sizes) // 2
    async with recording_gateway(upstream, tmp_path, rule("chat"), folder_bytes=room) as client:
        await send(client, "chat", weather_prompt(), x_api_key=TOKEN)
    assert len(files_of(tmp_path)) == 5


async def test_large_exchange_is_recorded_up_to_its_limit(tmp_path: Path) -> None:
    upstream = Upstream(weather_response("chat"))
    options = {"exchange_bytes": 6000}
    async with recording_gateway(upstream, tmp_path, rule("chat"), **options) as client:
        response = await send(client, "chat", weather_prompt(), x_api_key=TOKEN)
    [[ours, theirs]] = recorded(tmp_path)
    assert "[DONE]" in response.text
    assert ours.end == LIMIT_REACHED
    bodies = [one.body + (one.request.body if one.request else b"") for one in (ours, theirs)]
    assert 0 < sum(len(body) for body in bodies) <= 6000


async def test_recorded_exchange_is_inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream = Upstream(weather_response("messages"))
    async with recording_gateway(upstream, tmp_path, rule("messages")) as client:
        await send(client, "responses", weather_prompt(), x_api_key=TOKEN)
    [path] = files_of(tmp_path)
    assert main(["inspect", "--json", str(path)]) == 0
    lines = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["terminal"] for line in lines] == ["completed", "completed"]
    assert [len(line["tool_calls"]) for line in lines] == [2, 2]
    assert main(["inspect", str(path)]) == 0
    assert "request " in capsys.readouterr().out


async def test_gateway_serves_when_nothing_can_be_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "gone"
    upstream = Upstream(weather_response("chat"))
    async with recording_gateway(upstream, folder, rule("chat")) as client:
        folder.rmdir()
        response = await send(client, "chat", weather_prompt(), x_api_key=TOKEN)
    assert "[DONE]" in response.text
    assert "is not recorded: FileNotFoundError" in caplog.text
