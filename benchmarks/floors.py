"""The floor of each wire: the minimum of work that typed Python needs to read its bytes.

It finds the frames, decodes the needed fields of each into a struct, and makes one event of it. It
neither checks nor stores anything: order, brackets, limits, checksums, errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from benchmarks.contestants import Outcome, parsed_arguments

Payloads = Callable[[Iterable[bytes]], Iterator[bytes]]

# --- frames ---


def sse_payloads(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The data of server-sent events whose lines end in a line feed, without the terminator."""
    rest = b""
    for chunk in chunks:
        *frames, rest = (rest + chunk).split(b"\n\n")
        for frame in frames:
            payload = frame[frame.index(b"data: ") + 6 :]
            if payload != b"[DONE]":
                yield payload


def line_payloads(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a body."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def aws_payloads(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The payloads of AWS messages; headers and checksums are skipped."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        start, size = 0, len(data)
        while size - start >= 12:
            end = start + int.from_bytes(data[start : start + 4], "big")
            if end > size:
                break
            headers = int.from_bytes(data[start + 4 : start + 8], "big")
            yield data[start + 12 + headers : end - 4]
            start = end
        rest = data[start:]


PAYLOADS: Final[dict[str, Payloads]] = {
    "messages": sse_payloads,
    "responses": sse_payloads,
    "chat": sse_payloads,
    "gemini": sse_payloads,
    "interactions": sse_payloads,
    "converse": aws_payloads,
    "invoke": aws_payloads,
    "ollama": line_payloads,
    "cohere": sse_payloads,
}

# --- typed structs, and one event ---


class FloorEvent(Struct, frozen=True, gc=False):
    """The event of a floor: text of an item, or arguments of a call."""

    kind: str
    index: int
    delta: str


class _MessagesDelta(Struct, gc=False):
    text: str = ""
    partial_json: str = ""
    thinking: str = ""


class _Messages(Struct, gc=False):
    type: str
    index: int = 0
    delta: _MessagesDelta | None = None


def _messages_event(frame: _Messages) -> FloorEvent:
    delta = frame.delta
    if delta is None:
        return FloorEvent("", frame.index, "")
    if delta.text:
        return FloorEvent("text", frame.index, delta.text)
    if delta.partial_json:
        return FloorEvent("arguments", frame.index, delta.partial_json)
    return FloorEvent("reasoning", frame.index, delta.thinking)


class _Function(Struct, gc=False):
    arguments: str = ""


class _ChatCall(Struct, gc=False):
    index: int
    function: _Function


class _ChatDelta(Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_ChatCall] | None = None


class _Choice(Struct, gc=False):
    delta: _ChatDelta
    finish_reason: str | None = None


class _Chat(Struct, gc=False):
    choices: list[_Choice]
    usage: Raw = Raw()


def _chat_event(frame: _Chat) -> FloorEvent:
    if not frame.choices:
        return FloorEvent("", 0, "")
    delta = frame.choices[0].delta
    if delta.content:
        return FloorEvent("text", 0, delta.content)
    if delta.tool_calls:
        call = delta.tool_calls[0]
        return FloorEvent("arguments", call.index, call.function.arguments)
    return FloorEvent("reasoning", 0, delta.reasoning_content or "")


class _Responses(Struct, gc=False):
    type: str
    output_index: int = 0
    delta: str = ""


_RESPONSES_KINDS: Final = {
    "response.output_text.delta": "text",
    "response.function_call_arguments.delta": "arguments",
}


def _responses_event(frame: _Responses) -> FloorEvent:
    kind = _RESPONSES_KINDS.get(frame.type, "")
    return FloorEvent(kind, frame.output_index, frame.delta)


class _GeminiCall(Struct, gc=False):
    args: Raw


class _GeminiPart(Struct, gc=False):
    text: str = ""
    thought: bool = False
    functionCall: _GeminiCall | None = None  # noqa: N815  # the wire's name


class _GeminiContent(Struct, gc=False):
    parts: list[_GeminiPart]


class _Candidate(Struct, gc=False):
    content: _GeminiContent
    finishReason: str | None = None  # noqa: N815  # the wire's name


class _Gemini(Struct, gc=False):
    candidates: list[_Candidate]
    usageMetadata: Raw = Raw()  # noqa: N815  # the wire's name


def _gemini_event(frame: _Gemini) -> FloorEvent | list[FloorEvent]:
    parts = frame.candidates[0].content.parts
    if len(parts) > 1:
        return [_gemini_part(index, part) for index, part in enumerate(parts)]
    return _gemini_part(0, parts[0])


def _gemini_part(index: int, part: _GeminiPart) -> FloorEvent:
    if part.functionCall is not None:
        return FloorEvent("arguments", index, bytes(part.functionCall.args).decode())
    if part.thought:
        return FloorEvent("reasoning", 0, part.text)
    return FloorEvent("text", 0, part.text)


class _StepDelta(Struct, gc=False):
    type: str
    text: str = ""
    arguments: str = ""
    content: _MessagesDelta | None = None


class _Interactions(Struct, gc=False):
    event_type: str = ""
    index: int = 0
    delta: _StepDelta | None = None


def _interactions_event(frame: _Interactions) -> FloorEvent:
    delta = frame.delta
    if delta is None:
        return FloorEvent("", frame.index, "")
    if delta.text:
        return FloorEvent("text", frame.index, delta.text)
    if delta.arguments:
        return FloorEvent("arguments", frame.index, delta.arguments)
    if delta.content is not None:
        return FloorEvent("reasoning", frame.index, delta.content.text)
    return FloorEvent("", frame.index, "")


class _CohereCall(Struct, gc=False):
    function: _Function


class _CohereMessage(Struct, gc=False):
    content: _MessagesDelta | list[object] | None = None
    tool_calls: _CohereCall | None = None


class _CohereDelta(Struct, gc=False):
    message: _CohereMessage | None = None


class _Cohere(Struct, gc=False):
    type: str
    index: int = 0
    delta: _CohereDelta | None = None


def _cohere_event(frame: _Cohere) -> FloorEvent:
    message = frame.delta.message if frame.delta is not None else None
    if message is None:
        return FloorEvent("", frame.index, "")
    if message.tool_calls is not None:
        return FloorEvent("arguments", frame.index, message.tool_calls.function.arguments)
    content = message.content
    if not isinstance(content, _MessagesDelta):
        return FloorEvent("", frame.index, "")
    if content.text:
        return FloorEvent("text", frame.index, content.text)
    return FloorEvent("reasoning", frame.index, content.thinking)


class _ToolUse(Struct, gc=False):
    input: str = ""


class _ConverseDelta(Struct, gc=False):
    text: str = ""
    toolUse: _ToolUse | None = None  # noqa: N815  # the wire's name
    reasoningContent: _MessagesDelta | None = None  # noqa: N815  # the wire's name


class _Converse(Struct, gc=False):
    contentBlockIndex: int = 0  # noqa: N815  # the wire's name
    delta: _ConverseDelta | None = None


def _converse_event(frame: _Converse) -> FloorEvent:
    delta = frame.delta
    index = frame.contentBlockIndex
    if delta is None:
        return FloorEvent("", index, "")
    if delta.text:
        return FloorEvent("text", index, delta.text)
    if delta.toolUse is not None:
        return FloorEvent("arguments", index, delta.toolUse.input)
    return FloorEvent(
        "reasoning", index, delta.reasoningContent.text if delta.reasoningContent else ""
    )


class _OllamaFunction(Struct, gc=False):
    arguments: Raw


class _OllamaCall(Struct, gc=False):
    function: _OllamaFunction


class _OllamaMessage(Struct, gc=False):
    content: str = ""
    thinking: str = ""
    tool_calls: list[_OllamaCall] | None = None


class _Ollama(Struct, gc=False):
    message: _OllamaMessage
    done: bool = False


def _ollama_event(frame: _Ollama) -> FloorEvent | list[FloorEvent]:
    message = frame.message
    if message.tool_calls:
        calls: list[FloorEvent] = []
        for index, call in enumerate(message.tool_calls):
            arguments = bytes(call.function.arguments).decode()
            calls.append(FloorEvent("arguments", index, arguments))
        return calls
    if message.content:
        return FloorEvent("text", 0, message.content)
    return FloorEvent("reasoning", 0, message.thinking)


class _Invoke(Struct, gc=False):
    payload: bytes = msgspec.field(name="bytes")
    """msgspec decodes base64."""


_FLOORS: Final[dict[str, tuple[Any, Callable[[Any], Any]]]] = {
    "messages": (_Messages, _messages_event),
    "responses": (_Responses, _responses_event),
    "chat": (_Chat, _chat_event),
    "gemini": (_Gemini, _gemini_event),
    "interactions": (_Interactions, _interactions_event),
    "converse": (_Converse, _converse_event),
    "invoke": (_Messages, _messages_event),
    "ollama": (_Ollama, _ollama_event),
    "cohere": (_Cohere, _cohere_event),
}
"""Wire -> type that its frames are decoded into, and function that makes an event."""


def floor(wire: str) -> Callable[[Iterable[bytes]], Iterator[Any]]:
    """The floor of a wire, as a function from chunks to events."""
    struct, event_of = _FLOORS[wire]
    decode = msgspec.json.Decoder(struct).decode
    payloads = PAYLOADS[wire]
    if wire == "invoke":
        outer = msgspec.json.Decoder(_Invoke).decode

        def read_invoke(chunks: Iterable[bytes]) -> Iterator[Any]:
            for payload in payloads(chunks):
                yield event_of(decode(outer(payload).payload))

        return read_invoke

    def read(chunks: Iterable[bytes]) -> Iterator[Any]:
        for payload in payloads(chunks):
            yield event_of(decode(payload))

    return read


def join_floor(events: Iterable[Any]) -> Outcome:
    """Text and calls of a floor's events."""
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for event in events:
        for single in event if isinstance(event, list) else (event,):
            if single.kind == "text":
                texts.append(single.delta)
            elif single.kind == "arguments":
                fragments.append((single.index, single.delta))
    return Outcome("".join(texts), parsed_arguments(fragments))
