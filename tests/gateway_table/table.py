"""What survives between each pair of wires: found by sending one of each thing through, and written into docs/gateway.md.

    python -m tests.gateway_table        prints the table

A probe is an answer with one thing in it. What the model's wire cannot say itself is no loss of the gateway's: `-`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib import (
    AnnotationAdded,
    Completed,
    Created,
    CustomToolCall,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Image,
    MediaDelta,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    Reasoning,
    ReasoningContentDelta,
    Refusal,
    RefusalDelta,
    Response,
    ResponseEvent,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    accumulate,
    build,
    encode_body,
    parse_request,
)
from streamlib.gateway import RouteRule, RouteTable
from streamlib.gateway.handler import GatewayRequest, prompt_for
from streamlib.gateway.routes import RouteTarget
from streamlib.gateway.translate import EventTranslator
from streamlib.wires.encoders import encode_all
from streamlib_parsers.events import FinishedChoice
from streamlib_parsers.items import Origin, WireApi, user
from streamlib_parsers.usage import Usage
from tests.support.gateways import CLIENTS, MODELS, SIGNED, WEATHER, answered, said
from tests.support.wires import events_of

CITED: Final = {
    "type": "url_citation",
    "url": "https://example.org",
    "title": "T",
    "start_index": 0,
    "end_index": 2,
}
CALLS: Final = (
    FunctionCall("c0", "weather", '{"place":"Riga"}'),
    FunctionCall("c1", "weather", '{"place":"Bonn"}'),
)
USAGE: Final = Usage(
    input_tokens=90,
    output_tokens=20,
    cache_read_input_tokens=30,
    cache_write_input_tokens=40,
    reasoning_output_tokens=5,
)


def items(*said_items: ResponseItem, **more: Any) -> Response:
    """An answer."""
    return Response(
        "r1", "m", "completed", said_items, stop_reason=more.pop("stop_reason", "stop"), **more
    )


HELLO: Final = Message("assistant", [Text("Hello.")])


def usage_of(name: str) -> Callable[[Response], Any]:
    return lambda response: getattr(response.usage, name) if response.usage else None


def texts(response: Response) -> Any:
    """Texts and what stands between them."""
    return [
        (type(item).__name__, getattr(item, "text", ""))
        for item in response.items
        if getattr(item, "text", "")
    ]


ANSWERS: Final[dict[str, tuple[Response, Callable[[Response], Any]]]] = {
    "text": (items(HELLO), lambda r: r.text),
    "thoughts": (items(Reasoning("I think."), HELLO), lambda r: (r.reasoning, r.text)),
    "parallel calls": (
        items(HELLO, *CALLS, stop_reason="tool_calls"),
        lambda r: [(c.name, c.parsed()) for c in r.calls],
    ),
    "free-form calls": (
        items(CustomToolCall("c0", "patch", "*** Begin"), stop_reason="tool_calls"),
        lambda r: [c.input for c in r.calls if isinstance(c, CustomToolCall)],
    ),
    "order of texts and thoughts": (
        items(Reasoning("One."), HELLO, Reasoning("Two."), Message("assistant", [Text("Bye.")])),
        texts,
    ),
    "citations of URLs": (
        items(Message("assistant", [Text("So.", [CITED])])),
        lambda r: [
            "https://example.org" in repr(p.annotations)
            for i in r.items
            if isinstance(i, Message)
            for p in i.content
            if p.annotations
        ],
    ),
    "refusals in words": (
        items(Message("assistant", [Refusal("I will not.")]), stop_reason="refusal"),
        lambda r: r.refusal,
    ),
    "images": (
        items(Message("assistant", [Image("iVBORw0KGgo=", media_type="image/png")])),
        lambda r: [
            "iVBORw0KGgo=" in repr(item) for item in r.items if "iVBORw0KGgo=" in repr(item)
        ],
    ),
    "input and output tokens": (
        items(HELLO, usage=USAGE),
        lambda r: r.usage and (r.usage.input_tokens, r.usage.output_tokens),
    ),
    "tokens read from a cache": (items(HELLO, usage=USAGE), usage_of("cache_read_input_tokens")),
    "tokens written to a cache": (items(HELLO, usage=USAGE), usage_of("cache_write_input_tokens")),
    "tokens of thoughts": (
        items(Reasoning("I think."), HELLO, usage=USAGE),
        usage_of("reasoning_output_tokens"),
    ),
    "stop: length": (
        items(HELLO, stop_reason="length"),
        lambda r: r.stop_reason == "length" or None,
    ),
    "stop: content filter": (
        items(HELLO, stop_reason="content_filter"),
        lambda r: r.stop_reason == "content_filter" or None,
    ),
    "stop: refusal": (
        items(HELLO, stop_reason="refusal"),
        lambda r: r.stop_reason == "refusal" or None,
    ),
    "stop: pause": (items(HELLO, stop_reason="pause"), lambda r: r.stop_reason == "pause" or None),
    "stop sequence": (items(HELLO, stop_sequence="END"), lambda r: r.stop_sequence),
}
"""What the client reads of an answer."""

SEARCH: Final = ServerToolCall("s0", "web_search", '{"query":"q"}')
FOUND: Final = ServerToolResult(
    "s0",
    "web_search",
    [{"type": "web_search_result", "url": "https://x", "title": "T", "encrypted_content": SIGNED}],
)
NEXT_TURNS: Final[dict[str, tuple[ResponseItem, ...]]] = {
    "next turn: thoughts": (Reasoning("I think."), HELLO),
    "next turn: signed thoughts": (Reasoning("I think.", signature=SIGNED), HELLO, *CALLS),
    "next turn: thoughts between texts": (
        Reasoning("One.", signature=SIGNED),
        HELLO,
        Reasoning("Two.", signature=SIGNED),
        *CALLS,
    ),
    "next turn: sealed thoughts": (
        Reasoning(encrypted_content=SIGNED, redacted=True),
        HELLO,
        *CALLS,
    ),
    "next turn: signed calls": (msgspec.structs.replace(CALLS[0], signature=SIGNED), CALLS[1]),
    "next turn: signed texts": (msgspec.structs.replace(HELLO, signature=SIGNED),),
    "next turn: the model's own tools": (SEARCH, FOUND, HELLO),
}
"""What the model is sent back of an answer: compared with the request that there would be without a gateway."""

# --- from the model to the client ---


def streamed(model: WireApi, answer: Response) -> bytes:
    """The answer on the model's wire."""
    made = [msgspec.structs.replace(item, origin=Origin(model)) for item in answer.items]
    reason = answer.stop_reason or "stop"
    events: list[Any] = [Created(answer.response_id, answer.model)]
    for index, item in enumerate(made):
        events += [
            OutputItemAdded(index, begun(item)),
            *deltas(index, item),
            OutputItemDone(index, item),
        ]
    end = Completed(
        "r1", "m", reason, None, answer.stop_sequence, answer.usage, (FinishedChoice(0, reason),)
    )
    return encode_all(model, [*events, end], model="m")


def begun(item: Any) -> Any:
    """The item before its deltas. A sealed thought has none."""
    empty: dict[type, dict[str, Any]] = {
        Message: {"content": (), "signature": None},
        Reasoning: {} if getattr(item, "redacted", False) else {"content": "", "summary": ()},
        FunctionCall: {"arguments": ""},
        CustomToolCall: {"input": ""},
        ServerToolCall: {"arguments": ""},
    }
    return msgspec.structs.replace(item, **empty.get(type(item), {}))


def deltas(index: int, item: Any) -> list[Any]:
    """Everything that is said of it."""
    match item:
        case Reasoning() if item.content:
            return [ReasoningContentDelta(index, 0, item.content)]
        case FunctionCall() | ServerToolCall():
            return [FunctionCallArgumentsDelta(index, item.arguments)]
        case CustomToolCall():
            return [FunctionCallArgumentsDelta(index, item.input)]
        case Message():
            return [
                delta
                for at, part in enumerate(item.content)
                for delta in part_deltas(index, at, part)
            ]
        case _:
            return []


def part_deltas(index: int, at: int, part: Any) -> list[Any]:
    match part:
        case Text():
            return [
                OutputTextDelta(index, at, part.text),
                *(AnnotationAdded(index, at, note) for note in part.annotations),
            ]
        case Refusal():
            return [RefusalDelta(index, at, part.refusal)]
        case _:
            return [MediaDelta(index, at, part.media_type, part.data)]


def crossed(client: WireApi, model: WireApi, stream: bytes) -> list[ResponseEvent]:
    """The model's stream as the client's encoder gets it."""
    return crossed_events(client, model, events_of(model, stream, origin=hop(model).target.origin))


def crossed_events(
    client: WireApi, model: WireApi, events: list[ResponseEvent]
) -> list[ResponseEvent]:
    crossing = None if client == model else EventTranslator(client, frozenset({"patch"}))
    return events if crossing is None else [one for event in events for one in crossing.feed(event)]


def got(client: WireApi, model: WireApi, stream: bytes) -> Response:
    """What the client reads."""
    return said(client, encode_all(client, crossed(client, model, stream), model="m"))


# --- and back ---


def route(model: WireApi) -> RouteTable:
    return RouteTable([RouteRule("*", "custom:m", wire_api=model, base_url="http://up")])


def hop(model: WireApi) -> RouteTarget:
    table = route(model)
    return table.hops(table.rules[0], "m")[0]


KEPT: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "messages": lambda body: [{"role": "assistant", "content": body["content"]}],
    "chat": lambda body: [body["choices"][0]["message"]],
    "responses": lambda body: body["output"],
    "gemini": lambda body: [body["candidates"][0]["content"]],
}
"""What a client puts into its history of an answer: as the provider's documentation says, the whole of it."""
OUTPUTS: Final[dict[str, Callable[[list[Any]], list[Any]]]] = {
    "messages": lambda calls: [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": c.call_id, "content": SUNNY} for c in calls
            ],
        }
    ],
    "chat": lambda calls: [
        {"role": "tool", "tool_call_id": c.call_id, "content": SUNNY} for c in calls
    ],
    "responses": lambda calls: [
        {"type": "function_call_output", "call_id": c.call_id, "output": SUNNY} for c in calls
    ],
    "gemini": lambda calls: [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": c.id, "name": c.name, "response": {"output": SUNNY}}}
                for c in calls
            ],
        }
    ],
}
SUNNY: Final = "sunny in weather"
PROMPT: Final = Prompt([user("Go.")], tools=[WEATHER], max_output_tokens=9000, reasoning="low")


def next_request(client: WireApi, model: WireApi, stream: bytes) -> bytes:
    """The request that the model gets after the client has sent the answer back."""
    whole = msgspec.json.decode(encode_body(client, accumulate(crossed(client, model, stream))))
    calls = got(client, model, stream).calls
    body = msgspec.json.decode(
        build(PROMPT, "m", provider="custom", wire_api=client, base_url="http://gateway").body
    )
    conversation_of(body).extend([*KEPT[client](whole), *(OUTPUTS[client](calls) if calls else [])])
    return received(client, model, msgspec.json.encode(body))


def received(client: WireApi, model: WireApi, body: bytes) -> bytes:
    """What the model gets of a client's request."""
    read = parse_request(client, body, path="/v1beta/models/m:generateContent")
    asked = GatewayRequest(
        wire_api=client,
        prompt=read,
        rule=route(model).rules[0],
        hops=[hop(model)],
        is_stream=True,
        request_id="r",
    )
    return build(
        prompt_for(asked, hop(model)), "m", provider="custom", wire_api=model, base_url="http://up"
    ).body


def direct_request(model: WireApi, stream: bytes) -> bytes:
    """The same without a gateway."""
    response = said(model, stream, origin=hop(model).target.origin)
    return build(
        answered(PROMPT, response), "m", provider="custom", wire_api=model, base_url="http://up"
    ).body


def conversation_of(body: Any) -> Any:
    return next(body[key] for key in ("messages", "input", "contents") if key in body)


def alone(value: Any) -> Any:
    """A text that stands alone is the same in a list of one."""
    if (
        isinstance(value, list)
        and len(value) == 1
        and isinstance(value[0], dict)
        and value[0].keys() <= {"type", "text"}
    ):
        return value[0].get("text", value)
    if isinstance(value, dict):
        return {key: alone(one) for key, one in value.items()}
    return [alone(one) for one in value] if isinstance(value, list) else value


# --- the table ---


def verdict(client: WireApi, model: WireApi, name: str) -> str:
    """`yes`, `no`, or `-` where the model's wire has no such thing."""
    if name in ANSWERS:
        answer, look = ANSWERS[name]
        stream = streamed(model, answer)
        wanted = look(said(model, stream))
        return (
            "-"
            if not wanted or wanted != look(answer)
            else "yes"
            if wanted == look(got(client, model, stream))
            else "no"
        )
    stream = streamed(model, items(*NEXT_TURNS[name]))
    direct = direct_request(model, stream)
    kinds = {type(item) for item in said(model, stream).items}
    unsaid = {type(item) for item in NEXT_TURNS[name]} - kinds or (
        SIGNED in repr(NEXT_TURNS[name]) and SIGNED.encode() not in direct
    )
    if unsaid:
        return "-"
    sent = [
        alone(conversation_of(msgspec.json.decode(body)))
        for body in (direct, next_request(client, model, stream))
    ]
    return "yes" if sent[0] == sent[1] else "no"


def lost(client: WireApi, model: WireApi) -> str:
    """What this client does not get of this model's answers. The same wire goes through as it is."""
    if client == model:
        return "—"
    return (
        ", ".join(name for name in (*ANSWERS, *NEXT_TURNS) if verdict(client, model, name) == "no")
        or "nothing"
    )


def table() -> str:
    """What is lost of each pair, by name."""
    rows = [
        f"| model | {' | '.join(f'{client} client' for client in CLIENTS)} |",
        f"|---|{'---|' * len(CLIENTS)}",
    ]
    return "\n".join(
        [
            *rows,
            *(
                f"| {model} | {' | '.join(lost(client, model) for client in CLIENTS)} |"
                for model in MODELS
            ),
        ]
    )
