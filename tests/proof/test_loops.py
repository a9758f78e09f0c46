"""Promise 15: the same events on asyncio and on trio, and how many async tests run on both."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import anyio.lowlevel
import msgspec
import pytest

from streamlib.client import Client
from streamlib.client.stream import ResponseStream
from streamlib_parsers import parser
from tests.proof.streams import own
from tests.support.clients import MemoryTransport, make_client, make_request
from tests.support.metrics import figure
from tests.support.partitions import byte_by_byte
from tests.support.response_bodies import OVERLOADED
from tests.support.shared import ROOT

pytestmark = [pytest.mark.slow]
ENCODE = msgspec.json.Encoder()
GENERATED: Final = re.compile(rb"call_[0-9a-f]{16}")

AIOHTTP: Final = "aiohttp runs on asyncio alone; the same test with httpx runs on both"
OWN_CANCELLATION: Final = "asyncio's own cancellation, which no shield stops; trio has none"
SDK: Final = "the official client or the server that it meets runs on asyncio alone"
COMMAND: Final = "`streamlib gateway` runs uvicorn: asyncio"
MANY: Final = "every pair of wires or every partition: fewer of them run on both loops elsewhere"
ONE_LOOP: Final = {
    "test_bytes_after_a_response_answer_no_other_prompt": AIOHTTP,
    "test_deadline_holds_against_a_drip": AIOHTTP,
    "test_deadline_holds_against_a_flood": AIOHTTP,
    "test_deadline_holds_against_dripping_headers": AIOHTTP,
    "test_drip_after_the_end_delays_a_response_briefly": AIOHTTP,
    "test_aiohttp_refuses_a_proxy_of_socks": AIOHTTP,
    "test_error_on_trio_names_the_alternative": "what aiohttp's users are told on trio",
    "test_response_without_leftovers_keeps_its_connection": AIOHTTP,
    "test_asyncios_own_cancellation_ends_the_run": OWN_CANCELLATION,
    "test_cancellation_is_raised_after_closing_completes": OWN_CANCELLATION,
    "test_cancellation_wins_over_a_failure_to_close": OWN_CANCELLATION,
    "test_a_cancelled_asyncio_task_leaves_the_socket_usable": OWN_CANCELLATION,
    "test_a_task_cancelled_as_it_should_read_wakes_another": OWN_CANCELLATION,
    "test_cancelled_task_of_a_function_is_an_error": OWN_CANCELLATION,
    "test_unshielded_cancellation_leaves_nothing_open": OWN_CANCELLATION,
    "test_django_serves_streams": "Django runs on asyncio alone",
    "test_framework_serves_streams": "Litestar and FastAPI are served by uvicorn: asyncio",
    "test_killed_worker_is_replaced_until_the_port_closes": COMMAND,
    "test_sigterm_waits_for_a_background_response": COMMAND,
    "test_certificates_are_those_of_openssl": AIOHTTP,
    "test_no_cookie_is_sent_back": AIOHTTP,
    "test_no_password_of_netrc_is_sent": AIOHTTP,
    "test_proxy_is_not_used_for_excluded_hosts": AIOHTTP,
    "test_proxy_of_the_environment_is_used": AIOHTTP,
    "test_proxy_without_a_password_gets_none_of_netrc": AIOHTTP,
    "test_native_cancellation_leaves_no_socket": OWN_CANCELLATION,
    "test_no_request_of_a_conversation_is_refused": MANY,
    "test_no_request_of_signed_chat_is_refused": MANY,
    "test_saved_recording_replays_equal_for_every_partition": MANY,
    "test_openai_sdk_continues_and_steers": SDK,
    "test_openai_sdk_is_served": SDK,
    "test_sdk_raises_what_the_strict_provider_refuses": SDK,
    "test_sdk_streams_calls_and_sends_them_back": SDK,
    "test_sdk_uses_responses_in_the_background": SDK,
    "test_second_sigterm_ends_streams_at_once": COMMAND,
    "test_sighup_and_sigterm_do_what_they_should": COMMAND,
    "test_every_transport_decodes": AIOHTTP,
    "test_half_sent_requests_leave_room_for_others": COMMAND,
    "test_sighup_reads_the_keys_of_files_again": COMMAND,
    "test_websocket_client_gets_a_message": COMMAND,
    "test_sqlite_is_closed_behind_a_thread_that_uses_it": OWN_CANCELLATION,
    "test_sqlite_is_closed_where_that_is_cancelled": OWN_CANCELLATION,
    "test_stop_in_a_callback_of_the_loop_ends_the_run": "callbacks of asyncio's loop",
    "test_the_official_sdk_raises_on_a_failed_stream": SDK,
    "test_the_official_sdk_reads_an_encoded_stream_and_body": SDK,
    "test_the_official_sdk_reads_recordings_of_every_wire": SDK,
}
"""Tests that run on one loop, or with some of their parameters, and what has no other loop."""


async def log(wire: Any, *steps: bytes | BaseException) -> list[bytes]:
    """The events of these bytes through a response stream."""

    async def bytes_of() -> AsyncIterator[bytes]:
        for step in steps:
            await anyio.lowlevel.checkpoint()
            if isinstance(step, BaseException):
                raise step
            yield step

    async with ResponseStream.from_chunks(bytes_of(), parser(wire), errors="event") as stream:
        return [ENCODE.encode(event) async for event in stream]


async def request_log(wire: Any, body: bytes) -> list[bytes]:
    """The events of a complete request, retries included."""
    http = MemoryTransport([body])
    if wire == "messages":
        http = MemoryTransport([OVERLOADED], [body])
    client: Client = make_client("http://memory.example", http, errors="event")
    async with client, client.stream(make_request("http://memory.example", wire)) as stream:
        events = [ENCODE.encode(event) async for event in stream]
    # The client gives calls without an id a random one, which differs between any two responses.
    return [GENERATED.sub(b"call", event) for event in events]


def test_15_both_loops_give_the_same_events() -> None:
    logs = different = 0
    for recorded in own():
        wire, body = recorded.wire, recorded.body
        runs: list[tuple[Any, ...]] = [(request_log, wire, body)]
        for size in (7, 100, 10_000):
            runs.append((log, wire, *byte_by_byte(body, size)))
        for offset in range(1, len(body), max(1, len(body) // 20)):
            runs.append((log, wire, body[:offset], ConnectionResetError()))
        for run in runs:
            different += anyio.run(*run, backend="asyncio") != anyio.run(*run, backend="trio")
            logs += 1
    figure("logs", logs)
    figure("differences", different)
    assert different == 0


def test_15_async_tests_run_on_both_loops() -> None:
    """All but those that `ONE_LOOP` names, each with what has no other loop."""
    arguments = [
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not real",
        "tests/streamlib",
        "tests/examples",
    ]
    process = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loops: dict[str, set[str]] = {}
    for line in process.stdout.splitlines():
        match = re.search(r"[\[-](asyncio|trio)[\]-]", line)
        if match:
            name = f"{line[: match.start(1)]}*{line[match.end(1) :]}"
            loops.setdefault(name, set()).add(match[1])
    alone: set[str] = set()
    both = tied = 0
    for name, backends in loops.items():
        function = name.split("[")[0].rpartition("::")[2]
        if backends == {"asyncio", "trio"}:
            both += 1
            continue
        alone.add(function)
        if function in ONE_LOOP:
            tied += 1
    for function in sorted(alone):
        figure(f"one loop only/{function}")
    figure("async tests", len(loops))
    figure("async tests on both loops, %", 100 * both / len(loops))
    figure("async tests on both, where both can, %", 100 * both / (len(loops) - tied))
    assert both > 300
    assert alone == {*ONE_LOOP}
