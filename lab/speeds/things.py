"""What `lab/speeds/growing.py` works on: as many items, events or envelopes as it asks for."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from streamlib import (
    AnnotationAdded,
    Completed,
    Created,
    FunctionCall,
    FunctionCallArgumentsDelta,
    FunctionCallOutput,
    Message,
    Origin,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    ResponseItem,
    ResponseMetadata,
    ServerToolCall,
    ServerToolResult,
    Text,
    Usage,
    encode_all,
    user,
)
from streamlib.gateway.state.envelopes import seal
from streamlib.recording import Chunk, Recording

ORIGIN: Final = Origin("messages")
WORD: Final = "word "


class Book(msgspec.Struct):
    title: str
    pages: int


class Library(msgspec.Struct):
    books: list[Book]


def library(size: int) -> str:
    """The JSON of so many books."""
    return json.dumps({"books": [{"title": f"Book {n}", "pages": n} for n in range(size)]})


# --- histories ---


def conversation(size: int) -> list[ResponseItem]:
    """Turns of four items, and one turn with as many: a question, reasoning, a call, its output."""
    items = _one_turn(size // 2)
    for number in range(size // 8):
        items += [
            user(f"question {number}"),
            Reasoning(f"thinking {number}", signature="signed", origin=ORIGIN),
            FunctionCall(f"call_{number}", "look", '{"number": 1}'),
            FunctionCallOutput(f"call_{number}", "found"),
        ]
    return items


def _one_turn(size: int) -> list[ResponseItem]:
    """Calls, then their outputs, then texts of the user and of the model."""
    calls = range(size // 4)
    return [
        user("question"),
        *[FunctionCall(f"first_{number}", f"tool {number}", "{}") for number in calls],
        *[FunctionCallOutput(f"first_{number}", "found") for number in calls],
        *[user(f"and {number}") for number in calls],
        *[Message("assistant", (Text(f"text {number}"),)) for number in calls],
    ]


# --- events ---


def numbered(*events: Any) -> list[Any]:
    """A response of these events, with its start and its end."""
    response = [
        Created("r", "m"),
        *events,
        Completed("r", "m", "stop", usage=Usage(input_tokens=1, output_tokens=2)),
    ]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(response)]


def deltas(size: int) -> list[Any]:
    """One text of so many deltas."""
    return numbered(
        OutputItemAdded(0, Message("assistant", status="incomplete")),
        *[OutputTextDelta(0, 0, WORD) for _ in range(size)],
        OutputItemDone(0, Message("assistant", (Text(WORD * size),))),
    )


def _item_events(index: int) -> list[Any]:
    """The events of an item: of reasoning, a text, a call, and a search with its result in turn."""
    match index % 5:
        case 0:
            item: Any = Reasoning("hm", signature="signed", origin=ORIGIN)
            delta: Any = ReasoningContentDelta(index, 0, "hm")
            start: Any = Reasoning(status="incomplete", origin=ORIGIN)
        case 1:
            item = Message("assistant", (Text("hi"),))
            delta = OutputTextDelta(index, 0, "hi")
            start = Message("assistant", status="incomplete")
        case 2:
            item = FunctionCall(f"call_{index}", "look", "{}")
            delta = FunctionCallArgumentsDelta(index, "{}")
            start = FunctionCall(f"call_{index}", "look", status="incomplete")
        case 3:
            native = {"type": "server_tool_use"}
            item = ServerToolCall(f"search_{index}", "web_search", "{}", native=native)
            delta = FunctionCallArgumentsDelta(index, "{}")
            start = msgspec.structs.replace(item, arguments="", status="incomplete")
        case _:
            native = {"type": "web_search_tool_result"}
            item = ServerToolResult(f"search_{index - 1}", "web_search", [], native=native)
            return [OutputItemAdded(index, item), OutputItemDone(index, item)]
    return [OutputItemAdded(index, start), delta, OutputItemDone(index, item)]


def items(size: int) -> list[Any]:
    """So many items, one after the other."""
    events: list[Any] = []
    for index in range(size):
        events += _item_events(index)
    return numbered(*events)


def open_calls(size: int) -> list[Any]:
    """So many calls that are all open until the end, as in Chat Completions."""
    events: list[Any] = []
    for index in range(size):
        call = FunctionCall(f"call_{index}", "look", status="incomplete")
        events.append(OutputItemAdded(index, call))
    events += [FunctionCallArgumentsDelta(index, "{}") for index in range(size)]
    for index in range(size):
        events.append(OutputItemDone(index, FunctionCall(f"call_{index}", "look", "{}")))
    return numbered(*events)


def choices(size: int) -> list[Any]:
    """So many items, half of them of a second choice."""
    events: list[Any] = []
    for index in range(size):
        item = Message("assistant", (Text("hi"),), choice=index % 2)
        events += [OutputItemAdded(index, item), OutputItemDone(index, item)]
    return numbered(*events)


def response(size: int) -> list[Any]:
    """So many items, and a text of so many deltas."""
    events: list[Any] = []
    for index in range(size):
        events += _item_events(index)
    return numbered(
        *events,
        OutputItemAdded(size, Message("assistant", status="incomplete")),
        *[OutputTextDelta(size, 0, WORD) for _ in range(size)],
        OutputItemDone(size, Message("assistant", (Text(WORD * size),))),
    )


def annotations(size: int) -> list[Any]:
    """A text with so many citations."""
    cited = [{"type": "url_citation", "url": f"http://x/{number}"} for number in range(size)]
    return numbered(
        OutputItemAdded(0, Message("assistant", status="incomplete")),
        OutputTextDelta(0, 0, "hi"),
        *[AnnotationAdded(0, 0, annotation) for annotation in cited],
        OutputItemDone(0, Message("assistant", (Text("hi", tuple(cited)),))),
    )


def metadata(size: int) -> list[Any]:
    """So many keys of the envelope, each in an event of its own."""
    return numbered(*[ResponseMetadata({f"key {number}": number}) for number in range(size)])


def run(size: int) -> list[Any]:
    """Responses with a call each, and the outputs between them."""
    events: list[Any] = []
    for number in range(size // 4):
        call_id = f"call_{number}"
        call = FunctionCall(call_id, "look", "{}")
        events += [
            Created(f"r{number}", "m"),
            OutputItemAdded(0, msgspec.structs.replace(call, arguments="", status="incomplete")),
            FunctionCallArgumentsDelta(0, "{}"),
            OutputItemDone(0, call),
            Completed(f"r{number}", "m", "tool_calls"),
            FunctionCallOutput(call_id, "found"),
        ]
    return events


# --- recordings and envelopes ---


def recording(size: int) -> Recording:
    """A response in so many chunks."""
    body = encode_all("messages", deltas(size), model="m")
    step = len(body) // size
    starts = range(0, len(body), step)
    chunks = [Chunk(number * 1e-3, body[at : at + step]) for number, at in enumerate(starts)]
    return Recording(200, {}, tuple(chunks), url="http://x/v1/messages", wire_api="messages")


def _made_by_model(size: int) -> list[Any]:
    made: list[Any] = []
    for number in range(size // 2):
        made.append(Reasoning(f"thinking {number}", signature="signed", origin=ORIGIN))
        made.append(FunctionCall(f"call_{number}", "look", "{}", origin=ORIGIN))
    return made


def sealed(size: int) -> list[Any]:
    """One turn, whose items each hold their envelope."""
    received: list[Any] = [user("question")]
    for index, item in enumerate(_made_by_model(size)):
        envelope = seal(item, index)
        received.append(msgspec.structs.replace(item, signature=envelope, origin=None))
    return received


def sealed_in_a_list(size: int) -> list[Any]:
    """One turn as a Chat client stores it: all envelopes in a list of the first item."""
    made = _made_by_model(size)
    details = [
        {"type": "reasoning.encrypted", "data": seal(item, index)}
        for index, item in enumerate(made)
    ]
    calls = [item for item in made if isinstance(item, FunctionCall)]
    carrier = Reasoning("", native={"reasoning_details": details})
    return [user("question"), carrier, *calls]
