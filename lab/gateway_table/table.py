"""What survives between each pair of wires: the table of docs/gateway/translation.md, found by
sending a probe for each feature through the gateway.

    python -m lab.gateway_table        prints the table

A probe is a response with one feature in it. What the model's wire cannot represent itself is no
loss of the gateway's: `-`.
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
from streamlib.gateway.state.translate import EventTranslator
from streamlib.gateway.targets.routes import RouteTarget
from streamlib.gateway.targets.streams import GatewayRequest, prompt_for, restored_prompt
from streamlib.wires.encoders import encode_all
from streamlib_parsers.events import FinishedChoice
from streamlib_parsers.items import ContentPart, Origin, WireApi, user
from streamlib_parsers.usage import Usage
from tests.support.gateways import CLIENTS, MODELS, SIGNED, WEATHER, next_prompt, parse_stream
from tests.support.wires import events_of

CITATION: Final = {
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
HELLO: Final = Message("assistant", [Text("Hello.")])
PNG: Final = "iVBORw0KGgo="


def response_of(*items: ResponseItem, stop_reason: Any = "stop", **fields: Any) -> Response:
    """A complete response."""
    return Response("r1", "m", "completed", items, stop_reason=stop_reason, **fields)


# --- what a client reads ---


def calls_of(response: Response) -> list[tuple[str, Any]]:
    return [(call.name, call.parsed()) for call in response.calls if isinstance(call, FunctionCall)]


def free_form_inputs(response: Response) -> list[str]:
    return [call.input for call in response.calls if isinstance(call, CustomToolCall)]


def texts_in_order(response: Response) -> list[tuple[str, str]]:
    """Texts and reasoning, in order."""
    texts = []
    for item in response.items:
        if isinstance(item, (Message, Reasoning)) and item.text:
            texts.append((type(item).__name__, item.text))
    return texts


def cited_urls(response: Response) -> list[bool]:
    """For each cited text, whether its citation has the URL."""
    cited = []
    for item in response.items:
        if isinstance(item, Message):
            for part in item.content:
                if isinstance(part, Text) and part.annotations:
                    cited.append("https://example.org" in repr(part.annotations))
    return cited


def images_of(response: Response) -> list[bool]:
    return [True for item in response.items if PNG in repr(item)]


def token_counts(response: Response) -> Any:
    return response.usage and (response.usage.input_tokens, response.usage.output_tokens)


def usage_of(name: str) -> Callable[[Response], Any]:
    """Reads a field of the usage."""
    return lambda response: response.usage and getattr(response.usage, name)


def stops_with(reason: str) -> tuple[Response, Callable[[Response], Any]]:
    """A probe for a stop reason."""
    return (
        response_of(HELLO, stop_reason=reason),
        lambda response: response.stop_reason == reason or None,
    )


RESPONSES: Final[dict[str, tuple[Response, Callable[[Response], Any]]]] = {
    "text": (response_of(HELLO), lambda response: response.text),
    "reasoning": (
        response_of(Reasoning("I think."), HELLO),
        lambda response: (response.reasoning, response.text),
    ),
    "parallel calls": (response_of(HELLO, *CALLS, stop_reason="tool_calls"), calls_of),
    "free-form calls": (
        response_of(CustomToolCall("c0", "patch", "*** Begin"), stop_reason="tool_calls"),
        free_form_inputs,
    ),
    "order of texts and reasoning": (
        response_of(
            Reasoning("One."), HELLO, Reasoning("Two."), Message("assistant", [Text("Bye.")])
        ),
        texts_in_order,
    ),
    "citations of URLs": (
        response_of(Message("assistant", [Text("So.", [CITATION])])),
        cited_urls,
    ),
    "refusal parts": (
        response_of(Message("assistant", [Refusal("I will not.")]), stop_reason="refusal"),
        lambda response: response.refusal,
    ),
    "images": (
        response_of(Message("assistant", [Image(PNG, media_type="image/png")])),
        images_of,
    ),
    "input and output tokens": (response_of(HELLO, usage=USAGE), token_counts),
    "tokens read from a cache": (
        response_of(HELLO, usage=USAGE),
        usage_of("cache_read_input_tokens"),
    ),
    "tokens written to a cache": (
        response_of(HELLO, usage=USAGE),
        usage_of("cache_write_input_tokens"),
    ),
    "tokens of reasoning": (
        response_of(Reasoning("I think."), HELLO, usage=USAGE),
        usage_of("reasoning_output_tokens"),
    ),
    "stop: length": stops_with("length"),
    "stop: content filter": stops_with("content_filter"),
    "stop: refusal": stops_with("refusal"),
    "stop: pause": stops_with("pause"),
    "stop sequence": (
        response_of(HELLO, stop_sequence="END"),
        lambda response: response.stop_sequence,
    ),
}
"""Feature -> a response with it, and what the client reads of it."""

# --- what the model gets back ---

SEARCH: Final = ServerToolCall("s0", "web_search", '{"query":"q"}')
SEARCH_RESULT: Final = ServerToolResult(
    "s0",
    "web_search",
    [{"type": "web_search_result", "url": "https://x", "title": "T", "encrypted_content": SIGNED}],
)
NEXT_TURNS: Final[dict[str, tuple[ResponseItem, ...]]] = {
    "next turn: reasoning": (Reasoning("I think."), HELLO),
    "next turn: signed reasoning": (Reasoning("I think.", signature=SIGNED), HELLO, *CALLS),
    "next turn: reasoning between texts": (
        Reasoning("One.", signature=SIGNED),
        HELLO,
        Reasoning("Two.", signature=SIGNED),
        *CALLS,
    ),
    "next turn: encrypted reasoning": (
        Reasoning(encrypted_content=SIGNED, redacted=True),
        HELLO,
        *CALLS,
    ),
    "next turn: signed calls": (msgspec.structs.replace(CALLS[0], signature=SIGNED), CALLS[1]),
    "next turn: signed texts": (msgspec.structs.replace(HELLO, signature=SIGNED),),
    "next turn: the model's own tools": (SEARCH, SEARCH_RESULT, HELLO),
}
"""Feature -> a response with it: the model's next request is compared with the one that there would
be without a gateway."""

# --- from the model to the client ---


def stream_of(model: WireApi, response: Response) -> bytes:
    """The response on the model's wire."""
    events: list[ResponseEvent] = [Created(response.response_id, response.model)]
    for index, original in enumerate(response.items):
        item = msgspec.structs.replace(original, origin=Origin(model))
        events.append(OutputItemAdded(index, skeleton(item)))
        events += deltas(index, item)
        events.append(OutputItemDone(index, item))
    reason = response.stop_reason or "stop"
    choices = (FinishedChoice(0, reason),)
    sequence, usage = response.stop_sequence, response.usage
    events.append(Completed("r1", "m", reason, None, sequence, usage, choices))
    return encode_all(model, events, model="m")


def skeleton(item: ResponseItem) -> ResponseItem:
    """The item before its deltas."""
    match item:
        case Message():
            return msgspec.structs.replace(item, content=(), signature=None)
        case Reasoning():
            # Encrypted reasoning has no deltas.
            if item.redacted:
                return item
            return msgspec.structs.replace(item, content="", summary=())
        case FunctionCall() | ServerToolCall():
            return msgspec.structs.replace(item, arguments="")
        case CustomToolCall():
            return msgspec.structs.replace(item, input="")
        case _:
            return item


def deltas(index: int, item: ResponseItem) -> list[ResponseEvent]:
    """The whole content of an item as deltas."""
    match item:
        case Reasoning() if item.content:
            return [ReasoningContentDelta(index, 0, item.content)]
        case FunctionCall() | ServerToolCall():
            return [FunctionCallArgumentsDelta(index, item.arguments)]
        case CustomToolCall():
            return [FunctionCallArgumentsDelta(index, item.input)]
        case Message():
            events: list[ResponseEvent] = []
            for content_index, part in enumerate(item.content):
                events += part_deltas(index, content_index, part)
            return events
        case _:
            return []


def part_deltas(index: int, content_index: int, part: ContentPart) -> list[ResponseEvent]:
    match part:
        case Text():
            events: list[ResponseEvent] = [OutputTextDelta(index, content_index, part.text)]
            for annotation in part.annotations:
                events.append(AnnotationAdded(index, content_index, annotation))
            return events
        case Refusal():
            return [RefusalDelta(index, content_index, part.refusal)]
        case Image():
            return [MediaDelta(index, content_index, part.media_type, part.data)]
        case _:
            raise AssertionError(f"no probe has this part: {part}")


def events_for_client(client: WireApi, model: WireApi, stream: bytes) -> list[ResponseEvent]:
    """The model's stream as the client's encoder gets it."""
    return translated(client, model, events_of(model, stream, origin=target(model).resolved.origin))


def translated(client: WireApi, model: WireApi, events: list[ResponseEvent]) -> list[ResponseEvent]:
    if client == model:
        return events
    translator = EventTranslator(client, frozenset({(None, "patch")}))
    translated_events: list[ResponseEvent] = []
    for event in events:
        translated_events += translator.feed(event)
    return translated_events


def client_response(client: WireApi, model: WireApi, stream: bytes) -> Response:
    """What the client reads of the model's stream."""
    events = events_for_client(client, model, stream)
    return parse_stream(client, encode_all(client, events, model="m"))


# --- and back ---


def route(model: WireApi) -> RouteTable:
    return RouteTable([RouteRule("*", "custom:m", wire_api=model, base_url="http://up")])


def target(model: WireApi) -> RouteTarget:
    table = route(model)
    return table.targets(table.rules[0], "m")[0]


SUNNY: Final = "sunny in weather"
PROMPT: Final = Prompt([user("Go.")], tools=[WEATHER], max_output_tokens=9000, reasoning="low")


def _messages_outputs(calls: list[Any]) -> list[Any]:
    content = [
        {"type": "tool_result", "tool_use_id": call.call_id, "content": SUNNY} for call in calls
    ]
    return [{"role": "user", "content": content}]


def _chat_outputs(calls: list[Any]) -> list[Any]:
    return [{"role": "tool", "tool_call_id": call.call_id, "content": SUNNY} for call in calls]


def _responses_outputs(calls: list[Any]) -> list[Any]:
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": SUNNY} for call in calls
    ]


def _gemini_outputs(calls: list[Any]) -> list[Any]:
    parts = []
    for call in calls:
        output = {"id": call.id, "name": call.name, "response": {"output": SUNNY}}
        parts.append({"functionResponse": output})
    return [{"role": "user", "parts": parts}]


def _interactions_outputs(calls: list[Any]) -> list[Any]:
    return [
        {"type": "function_result", "call_id": call.call_id, "name": call.name, "result": SUNNY}
        for call in calls
    ]


STORED_MESSAGES: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "messages": lambda body: [{"role": "assistant", "content": body["content"]}],
    "chat": lambda body: [body["choices"][0]["message"]],
    "responses": lambda body: body["output"],
    "gemini": lambda body: [body["candidates"][0]["content"]],
    "interactions": lambda body: body["steps"],
    "cohere": lambda body: [body["message"]],
}
"""What a client puts into its history of a response body: all of it, as the providers document."""

OUTPUT_MESSAGES: Final[dict[str, Callable[[list[Any]], list[Any]]]] = {
    "messages": _messages_outputs,
    "chat": _chat_outputs,
    "responses": _responses_outputs,
    "gemini": _gemini_outputs,
    "interactions": _interactions_outputs,
    "cohere": _chat_outputs,
}
"""What a client puts into its history for the outputs of calls."""


def next_request(client: WireApi, model: WireApi, stream: bytes) -> bytes:
    """The request that the model gets after the client has sent the response back."""
    response = accumulate(events_for_client(client, model, stream))
    stored = STORED_MESSAGES[client](msgspec.json.decode(encode_body(client, response)))
    request = build(PROMPT, "m", provider="custom", wire_api=client, base_url="http://gateway")
    body = msgspec.json.decode(request.body)
    conversation = conversation_of(body)
    conversation.extend(stored)
    calls = client_response(client, model, stream).calls
    if calls:
        conversation.extend(OUTPUT_MESSAGES[client](calls))
    return received_request(client, model, msgspec.json.encode(body))


def received_request(client: WireApi, model: WireApi, body: bytes) -> bytes:
    """What the model gets of a client's request."""
    request = GatewayRequest(
        wire_api=client,
        prompt=parse_request(client, body, path="/v1beta/models/m:generateContent"),
        rule=route(model).rules[0],
        targets=[target(model)],
        is_stream=True,
        request_id="r",
    )
    prompt = prompt_for(request, restored_prompt(request), target(model))
    return build(prompt, "m", provider="custom", wire_api=model, base_url="http://up").body


def direct_request(model: WireApi, stream: bytes) -> bytes:
    """The same without a gateway."""
    response = parse_stream(model, stream, origin=target(model).resolved.origin)
    prompt = next_prompt(PROMPT, response)
    return build(prompt, "m", provider="custom", wire_api=model, base_url="http://up").body


def conversation_of(body: Any) -> Any:
    """The conversation in a request."""
    return next(body[key] for key in ("messages", "input", "contents") if key in body)


def plain_texts(value: Any) -> Any:
    """A JSON value with each list of one text as that text: wires take both."""
    if isinstance(value, dict):
        return {key: plain_texts(element) for key, element in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) == 1 and isinstance(value[0], dict) and value[0].keys() <= {"type", "text"}:
        return value[0].get("text", value)
    return [plain_texts(element) for element in value]


# --- the table ---


def verdict(client: WireApi, model: WireApi, name: str) -> str:
    """`yes`, `no`, or `-` where the model's wire does not have the feature."""
    if name in RESPONSES:
        return response_verdict(client, model, name)
    return next_turn_verdict(client, model, name)


def response_verdict(client: WireApi, model: WireApi, name: str) -> str:
    """Whether the client reads the feature as a client of the model's own wire does."""
    response, read_feature = RESPONSES[name]
    stream = stream_of(model, response)
    expected = read_feature(parse_stream(model, stream))
    if not expected or expected != read_feature(response):
        return "-"
    if read_feature(client_response(client, model, stream)) == expected:
        return "yes"
    return "no"


def next_turn_verdict(client: WireApi, model: WireApi, name: str) -> str:
    """Whether the model's next request is the one without a gateway."""
    items = NEXT_TURNS[name]
    stream = stream_of(model, response_of(*items))
    direct = direct_request(model, stream)
    parsed_kinds = {type(item) for item in parse_stream(model, stream).items}
    if not {type(item) for item in items} <= parsed_kinds:
        return "-"
    if SIGNED in repr(items) and SIGNED.encode() not in direct:
        return "-"
    expected = plain_texts(conversation_of(msgspec.json.decode(direct)))
    received = msgspec.json.decode(next_request(client, model, stream))
    if plain_texts(conversation_of(received)) == expected:
        return "yes"
    return "no"


def lost(client: WireApi, model: WireApi) -> str:
    """The features that this client does not get of this model, by name."""
    if client == model:
        return "—"  # responses of the same wire are sent unchanged
    names = [name for name in (*RESPONSES, *NEXT_TURNS) if verdict(client, model, name) == "no"]
    return ", ".join(names) or "nothing"


def table() -> str:
    """The table in Markdown: models are rows, clients are columns."""
    header = " | ".join(f"{client} client" for client in CLIENTS)
    lines = [f"| model | {header} |", f"|---|{'---|' * len(CLIENTS)}"]
    for model in MODELS:
        cells = " | ".join(lost(client, model) for client in CLIENTS)
        lines.append(f"| {model} | {cells} |")
    return "\n".join(lines)
