"""Ids that a provider stores: each named client may use its own, although all share one account."""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable
from typing import Any, Final

import httpx
import msgspec
import pytest

from streamlib.gateway.clients.stored_ids import brought_ids, named_ids
from streamlib.wires.encoders import encode_all
from streamlib_parsers.events import Completed, Created, ResponseMetadata
from streamlib_parsers.items import Document, Message, ServerToolCall
from streamlib_parsers.response import Response
from tests.streamlib.gateway.clients.test_named_clients import ALICE, BOB, named, serving_clients
from tests.support.cases import each_case
from tests.support.gateways import Upstream, rule, stream_response

CLIENTS: Final = (named("alice", ALICE, ids=("vs_team_*",)), named("bob", BOB))
RESPONSE: Final = encode_all(
    "responses",
    [
        Created("resp_1", "m"),
        ResponseMetadata({"conversation": {"id": "conv_1"}}),
        Completed("resp_1", "m"),
    ],
)
IDS: Final[list[dict[str, Any]]] = [
    {"previous_response_id": "resp_1"},
    {"conversation": "conv_1"},
    {"conversation": {"id": "conv_1"}},
    {"input": [{"type": "item_reference", "id": "resp_1"}]},
]


async def ask(client: httpx.AsyncClient, token: str, fields: dict[str, Any] | bytes) -> int:
    """The status of a request that names ids, or is this body."""
    if not isinstance(fields, bytes):
        fields = msgspec.json.encode({"model": "m", "input": "go on", "stream": True, **fields})
    headers = {"authorization": f"Bearer {token}"}
    response = await client.post("/v1/responses", content=fields, headers=headers)
    return response.status_code


@pytest.mark.parametrize("fields", IDS)
async def test_id_belongs_to_the_client_that_got_it(fields: dict[str, Any]) -> None:
    upstream = Upstream(stream_response("responses", RESPONSE))
    async with serving_clients(upstream, *CLIENTS, rules=(rule("responses"),)) as client:
        assert await ask(client, ALICE, fields) == 404
        assert await ask(client, ALICE, {}) == 200
        assert await ask(client, ALICE, fields) == 200
        assert await ask(client, BOB, fields) == 404
        hidden = msgspec.json.encode({"model": "m", "input": "go on", **fields})
        for name in (b"previous_response_id", b"conversation", b"item_reference"):
            hidden = hidden.replace(name, b"\\u%04x" % name[0] + name[1:])
        assert await ask(client, BOB, hidden) == 404
    assert len(upstream.requests) == 2


async def test_unknown_id_is_no_unknown_model() -> None:
    """An SDK would say that the model does not exist."""
    async with serving_clients(Upstream(), *CLIENTS, rules=(rule("responses"),)) as client:
        body = {"model": "m", "input": "go on", "previous_response_id": "resp_1"}
        headers = {"authorization": f"Bearer {BOB}"}
        response = await client.post("/v1/responses", json=body, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "id_not_found")


async def test_route_file_names_ids_that_a_client_may_use() -> None:
    tools = [{"type": "file_search", "vector_store_ids": ["vs_team_docs"]}]
    upstream = Upstream(stream_response("responses", RESPONSE))
    async with serving_clients(upstream, *CLIENTS, rules=(rule("responses"),)) as client:
        assert await ask(client, ALICE, {"tools": tools}) == 200
        assert await ask(client, BOB, {"tools": tools}) == 404


async def test_owner_may_name_every_id() -> None:
    upstream = Upstream(stream_response("responses", RESPONSE))
    rules = (rule("responses"),)
    async with serving_clients(upstream, *CLIENTS, rules=rules, token="slg_owner") as client:
        assert await ask(client, "slg_owner", {"previous_response_id": "resp_9"}) == 200


FILES: Final = "https://generativelanguage.googleapis.com/v1beta/files"
REQUESTS: Final[list[tuple[dict[str, Any], list[str]]]] = [
    ({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}, ["cntr_1"]),
    ({"tools": [{"container": {"type": "auto", "file_ids": ["a", "b"]}}]}, ["a", "b"]),
    ({"input": [{"content": [{"type": "input_image", "file_id": "file_1"}]}]}, ["file_1"]),
    ({"container": {"id": "container_1", "skills": []}}, ["container_1"]),
    ({"cachedContent": "cachedContents/1"}, ["cachedContents/1"]),
    ({"previous_interaction_id": "v1_1"}, ["v1_1"]),
    ({"input": [{"id": "msg_1"}, {"type": None, "id": "msg_2"}]}, ["msg_1", "msg_2"]),
    ({"prompt": {"id": "pmpt_1", "version": "2"}}, ["pmpt_1"]),
    ({"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]}, ["audio_1"]),
    ({"audio": {"voice": {"id": "voice_1"}, "format": "wav"}}, ["voice_1"]),
    ({"input": [{"type": "image_generation_call", "id": "ig_1"}]}, ["ig_1"]),
    ({"input": [{"type": "image_generation_call", "id": "ig_1", "result": None}]}, ["ig_1"]),
    ({"input": [{"type": "image_generation_call", "id": "ig_1", "result": "aGk="}]}, []),
    ({"container": {"skills": [{"type": "custom", "skill_id": "skill_1"}]}}, ["skill_1"]),
    ({"container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}}, []),
    # Google's services read both forms of a name.
    ({"cached_content": "cachedContents/1"}, ["cachedContents/1"]),
    ({"previousInteractionId": "v1_1"}, ["v1_1"]),
    ({"tools": [{"fileSearch": {"fileSearchStoreNames": ["stores/1"]}}]}, ["stores/1"]),
    ({"tools": [{"type": "file_search", "file_search_store_names": ["s/1"]}]}, ["s/1"]),
    ({"parts": [{"fileData": {"fileUri": f"{FILES}/1"}}]}, [f"{FILES}/1"]),
    ({"parts": [{"file_data": {"file_uri": "gs://bucket/1"}}]}, ["gs://bucket/1"]),
    ({"input": [{"type": "image", "uri": "files/1"}]}, ["files/1"]),
    ({"type": "tool_use", "input": {"type": "image", "uri": "gs://b/1"}}, ["gs://b/1"]),
    ({"source": {"type": "url", "url": "gs://bucket/1"}}, ["gs://bucket/1"]),
    # Anybody may read these.
    ({"parts": [{"fileData": {"fileUri": "https://youtu.be/1"}}]}, []),
    ({"input": [{"type": "image", "uri": "https://example.org/files/1.png"}]}, []),
    # Names of the caller's own.
    ({"input": [{"role": "user", "content": "Hello", "id": "msg_1"}]}, []),
    ({"content": [{"type": "tool_use", "input": {"file_id": "1", "url": "gs://b/1"}}]}, []),
    ({"parts": [{"functionCall": {"args": {"container": "1"}}}]}, []),
    ({"parts": [{"functionResponse": {"response": {"file_id": "1"}}}]}, []),
    ({"messages": [{"content": [{"input": {"id": "42"}}]}], "previous_response_id": None}, []),
    ({"prompt": "a cat", "audio": {"voice": "alloy"}}, []),
    ({"tools": [{"parameters": {"properties": {"file_id": {"type": "string"}}}}]}, []),
    ({"metadata": {"file_id": "mine"}}, []),
    ({"previous_response_id": None, "input": "file_id"}, []),
]


@each_case("fields, expected", REQUESTS)
def test_ids_are_found_wherever_a_wire_has_them(
    fields: dict[str, Any], expected: list[str]
) -> None:
    assert named_ids(json.dumps(fields).encode(), CLIENTS[1]) == expected


def test_search_of_a_large_body_takes_little_time() -> None:
    """A pattern took half a second for two megabytes, while nothing else could run."""
    body = json.dumps({"input": "Lorem ipsum dolor sit amet. " * 70_000}).encode()

    def seconds(read: Callable[[], object]) -> float:
        return min(timeit.repeat(read, number=1, repeat=3))

    decoding = seconds(lambda: msgspec.json.decode(body))
    assert seconds(lambda: named_ids(body, CLIENTS[1])) < 50 * decoding


def test_response_brings_the_ids_that_it_names() -> None:
    native = {"container_id": "cntr_1", "outputs": [{"file_id": "file_1"}]}
    call = ServerToolCall("ci_1", "code_interpreter", "{}", id="ci_1", native=native)
    video = Message("assistant", (Document(url=f"{FILES}/2", media_type="video/mp4"),))
    items = (call, video)
    response = Response("resp_1", "m", items=items, metadata={"container": {"id": "c_2"}})
    brought = {"resp_1", "ci_1", "cntr_1", "file_1", f"{FILES}/2", "c_2"}
    assert set(brought_ids(response)) == brought
