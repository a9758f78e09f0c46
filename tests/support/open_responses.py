"""The cases of the Open Responses compliance suite, written anew, and what they check.

What each case sends and demands is a fact of openresponses/openresponses (Apache-2.0,
``src/lib/compliance-tests.ts``): twelve cases, of which two need a hosted tool and are optional.
Every body and every event is validated with the types of `openresponses_types`, which are generated
from the specification of 2026-04-24.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias

from openresponses_types import types
from pydantic import BaseModel

Json: TypeAlias = dict[str, Any]

MEMBERS: Final = frozenset({*types.ResponseResource.model_fields, "user"})
"""The 32 members that a response must have. `user` is of the first version of the specification,
and not in the types."""

ERROR_TYPES: Final = frozenset(
    {
        "cancelled",
        "insufficient_quota",
        "invalid_request_error",
        "rate_limit_exceeded",
        "server_error",
        "service_unavailable_error",
    }
)
"""What OpenAI writes: no client of OpenAI knows the standard's own names (`invalid_request`,
`too_many_requests`)."""

ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


def _event_models() -> dict[str, type[BaseModel]]:
    models: dict[str, type[BaseModel]] = {}
    for name, model in vars(types).items():
        if name.endswith("StreamingEvent"):
            names: Any = model.model_fields["type"].annotation
            [name_of_event] = names
            models[name_of_event.value] = model
    return models


EVENTS: Final = _event_models()
"""The 24 kinds of events, by `type`."""


class ServedResponse(NamedTuple):
    """What a server sent: chunks of a body, as it wrote them."""

    status: int
    chunks: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


Post: TypeAlias = Callable[[Json], Awaitable[ServedResponse]]
"""Sends a request to `/v1/responses`."""


# --- validation ---


def check_response(response: Json) -> None:
    """Fails unless all required members are there, with their types."""
    assert response.keys() >= MEMBERS, MEMBERS - response.keys()
    if response["usage"] is not None:
        assert "cached_tokens" in response["usage"]["input_tokens_details"]
        assert "reasoning_tokens" in response["usage"]["output_tokens_details"]
    for item in response["output"]:
        assert item["id"]
        assert item["status"] in ("in_progress", "completed", "incomplete")
    _validate(types.ResponseResource, _in_the_types(response))


def _in_the_types(response: Json) -> Json:
    """The response without what the specification allows and the types do not have.

    Those are hosted tools, tools and items of `slug:type`, and the choice of such a tool.
    """
    known = {
        **response,
        "output": [item for item in response["output"] if _is_standard(item)],
        "tools": [tool for tool in response["tools"] if tool["type"] == "function"],
    }
    choice = response["tool_choice"]
    if isinstance(choice, dict) and choice["type"] not in ("function", "allowed_tools"):
        known["tool_choice"] = "required"
    return known


def check_event(event: Json) -> None:
    """Fails unless an event is one of the standard's, with its members."""
    if isinstance(event.get("item"), dict) and not _is_standard(event["item"]):
        assert event["item"]["id"]
        return
    if "response" in event:
        check_response(event["response"])
        event = {**event, "response": _in_the_types(event["response"])}
    _validate(EVENTS[event["type"]], event)


def check_error(body: Json) -> None:
    """Fails unless a body is an error in the form of the standard."""
    error = body["error"]
    assert error["type"] in ERROR_TYPES
    _validate(types.ErrorPayload, error)


def _is_standard(item: Json) -> bool:
    """Whether the types have this item: hosted tools and `slug:type` are not among them."""
    return item["type"] in ("message", "function_call", "function_call_output", "reasoning")


def _validate(model: type[BaseModel], value: Json) -> None:
    model.model_validate_json(json.dumps(value), strict=True)


def read_stream(served: ServedResponse) -> list[Json]:
    """The events of a stream, each checked: one write each, its name, its number, `[DONE]`."""
    events: list[Json] = []
    frames = served.body.decode().split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    for frame in frames[:-2]:
        name, data = frame.split("\n")
        event: Json = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == len(events)
        check_event(event)
        events.append(event)
    # The suite's reader loses an event that is split over two reads.
    assert all(chunk.endswith(b"\n\n") for chunk in served.chunks if chunk)
    return events


# --- asking ---


async def ask(post: Post, **body: Any) -> Json:
    """The response to a request, checked."""
    served = await post({"model": "test-model", "stream": False, **body})
    response: Json = json.loads(served.body)
    if served.status != 200:
        check_error(response)
    assert served.status == 200, response
    check_response(response)
    return response


async def ask_stream(post: Post, **body: Any) -> list[Json]:
    """The events of the response to a request, checked."""
    served = await post({"model": "test-model", "stream": True, **body})
    assert served.status == 200, served.body
    return read_stream(served)


def check_completed(response: Json) -> None:
    assert response["status"] == "completed"
    assert response["completed_at"] is not None
    assert response["output"]


def kinds(response: Json) -> list[str]:
    return [item["type"] for item in response["output"]]


def message(text: Any, role: str = "user") -> Json:
    return {"type": "message", "role": role, "content": text}


TOOL: Final[Json] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a place.",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    },
}

PIXEL: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF: Final = "data:application/pdf;base64,JVBERi0xLjEKdHJhaWxlcgo8PCA+PgolJUVPRg=="


# --- the cases ---


async def basic_response(post: Post) -> None:
    check_completed(await ask(post, input=[message("Say hello.")]))


async def streaming_response(post: Post) -> None:
    events = await ask_stream(post, input=[message("Count to five.")])
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    check_completed(events[-1]["response"])


async def system_prompt(post: Post) -> None:
    check_completed(
        await ask(post, input=[message("Talk like a pirate.", "system"), message("Hi")])
    )


async def tool_calling(post: Post) -> None:
    response = await ask(post, input=[message("What is the weather in Rome?")], tools=[TOOL])
    assert "function_call" in kinds(response)
    assert response["tools"] == [{**TOOL, "strict": response["tools"][0]["strict"]}]


async def tool_calling_streaming(post: Post) -> None:
    events = await ask_stream(post, input=[message("Weather in Rome?")], tools=[TOOL])
    names = [event["type"] for event in events]
    assert "response.function_call_arguments.delta" in names
    assert "response.function_call_arguments.done" in names
    for state in ("added", "done"):
        items = [event["item"] for event in events if event["type"].endswith(f"_item.{state}")]
        assert "function_call" in [item["type"] for item in items]


async def function_call_roundtrip(post: Post) -> None:
    choice = {"type": "function", "name": "get_weather"}
    first = await ask(post, input="Weather in Rome?", tools=[TOOL], tool_choice=choice)
    assert first["tool_choice"] == choice
    [call] = [item for item in first["output"] if item["type"] == "function_call"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "18 degrees"}
    second = await ask(post, previous_response_id=first["id"], input=[output])
    check_completed(second)
    assert "18 degrees" in second["output"][-1]["content"][0]["text"]


async def image_input(post: Post) -> None:
    parts = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": PIXEL},
    ]
    check_completed(await ask(post, input=[message(parts)]))


async def file_input(post: Post) -> None:
    parts = [
        {"type": "input_text", "text": "What is the title?"},
        {"type": "input_file", "filename": "title.pdf", "file_data": PDF},
    ]
    check_completed(await ask(post, input=[message(parts)]))


async def multi_turn(post: Post) -> None:
    history = [message("I am Ada."), message("Hello Ada.", "assistant"), message("Who am I?")]
    check_completed(await ask(post, input=history))


async def previous_response_id(post: Post) -> None:
    first = await ask(post, input="The word is papaya.")
    second = await ask(post, input="What is the word?", previous_response_id=first["id"])
    check_completed(second)
    assert second["previous_response_id"] == first["id"]
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


async def file_search(post: Post) -> None:
    tool = {"type": "file_search", "vector_store_ids": ["vs_1"]}
    include = ["file_search_call.results"]
    response = await ask(
        post, input="Search.", tools=[tool], tool_choice={"type": "file_search"}, include=include
    )
    assert "file_search_call" in kinds(response)


async def offline_web_search(post: Post) -> None:
    tool = {"type": "web_search", "external_web_access": False}
    include = ["web_search_call.action.sources"]
    response = await ask(
        post, input="Search.", tools=[tool], tool_choice={"type": "web_search"}, include=include
    )
    assert "web_search_call" in kinds(response)


CASES: Final[dict[str, Callable[[Post], Awaitable[None]]]] = {
    "basic-response": basic_response,
    "streaming-response": streaming_response,
    "system-prompt": system_prompt,
    "tool-calling": tool_calling,
    "tool-calling-streaming": tool_calling_streaming,
    "function-call-roundtrip": function_call_roundtrip,
    "image-input": image_input,
    "file-input": file_input,
    "multi-turn": multi_turn,
    "previous-response-id": previous_response_id,
}

HOSTED_CASES: Final[dict[str, Callable[[Post], Awaitable[None]]]] = {
    "file-search": file_search,
    "offline-web-search": offline_web_search,
}
"""The optional cases: the server runs a tool of its own."""


async def failed_cases(post: Post) -> dict[str, str]:
    """Runs the cases that are not optional; returns what each failed with."""
    failed: dict[str, str] = {}
    for name, case in CASES.items():
        try:
            await case(post)
        except (AssertionError, ValueError) as error:
            failed[name] = str(error)
    return failed
