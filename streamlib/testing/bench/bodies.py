"""Encodes sample responses for each wire, one chunk for each frame.

streamlib's encoders write the frames. Added is what providers send and encoders have no reason to:
pings, padding, times, counts in every chunk, several parts a chunk.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import count, zip_longest
from typing import Any, Final

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.testing.bench.responses import (
    USAGE,
    SampleCall,
    SampleItem,
    SampleReasoning,
    SampleResponse,
    SampleText,
    calls_of,
)
from streamlib.testing.frames import framed
from streamlib.wires.encoders import encoder
from streamlib.wires.event_encoder import EncodedFrame
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import FunctionCall, JsonObject, Message, Origin, Reasoning, WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage

INPUT_TOKENS, OUTPUT_TOKENS = USAGE
SIGNATURE: Final = "c2lnbmF0dXJl"
SIGNED: Final[frozenset[WireApi]] = frozenset({"messages", "invoke", "interactions"})
"""Wires whose samples have signed reasoning."""
SUMMARIES: Final[frozenset[WireApi]] = frozenset({"responses", "interactions"})
"""Wires whose samples show reasoning as a summary."""
LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def body(wire_api: WireApi, response: SampleResponse) -> list[bytes]:
    """A response on a wire."""
    return _written(wire_api, *_encoded(wire_api, _events(wire_api, response)))


def with_keep_alives(response: SampleResponse) -> list[bytes]:
    """Messages, with a comment after every event and a ping after every tenth."""
    ping = encoder("messages").ping()
    chunks: list[bytes] = []
    for number, event in enumerate(body("messages", response)):
        chunks += [event, b": keep-alive\n\n"]
        if number % 10 == 1:
            chunks.append(ping)
    return chunks


def chat_interleaved(response: SampleResponse) -> list[bytes]:
    """Chat, with parallel calls whose deltas alternate."""
    return _written("chat", *_encoded("chat", _alternating(calls_of(response))))


def chat_with_xml(response: SampleResponse) -> list[bytes]:
    """Chat, with calls written as text, as xAI's older models do; ten characters a chunk."""
    texts: list[str] = []
    for item in response:
        if isinstance(item, SampleCall):
            texts.append(_xml_call(item))
        else:
            texts.extend(item.deltas)
    text = "".join(texts)
    deltas = [text[start : start + 10] for start in range(0, len(text), 10)]
    return body("chat", (SampleText(deltas),))


def gemini_parts(response: SampleResponse) -> list[bytes]:
    """Several parts a chunk, signatures, hosted code, counts by modality, as Vertex sends them."""
    frames, end = _encoded("gemini", _events("gemini", response))
    return _written("gemini", list(_with_more_parts(frames)), end)


def aws_frames(response: SampleResponse) -> list[bytes]:
    """Converse in frames of different lengths: the padding is random, as AWS's own."""
    draw = random.Random("padding")  # no secret
    frames, end = _encoded("converse", _events("converse", response))
    for frame in frames:
        frame.value["p"] = LETTERS[: draw.randint(1, len(LETTERS))]
    return _written("converse", frames, end)


# --- events ---


def _events(wire_api: WireApi, response: SampleResponse) -> list[ResponseEvent]:
    """The events of a response on a wire: one item after another."""
    assembler = _started(wire_api)
    for item in response:
        opened = assembler.open(_start_of(item))
        for delta in item.deltas:
            _append(assembler, opened, item, delta)
        if isinstance(item, SampleReasoning) and wire_api in SIGNED:
            opened.item = msgspec.structs.replace(opened.item, signature=SIGNATURE)
        assembler.close(opened)
    return _finished(assembler)


def _alternating(calls: list[SampleCall]) -> list[ResponseEvent]:
    """The events of calls that grow in turns, on Chat."""
    assembler = _started("chat")
    opened = [assembler.open(_start_of(call)) for call in calls]
    for deltas in zip_longest(*(call.deltas for call in calls), fillvalue=""):
        for item, delta in zip(opened, deltas, strict=True):
            assembler.arguments(item, delta)
    for item in opened:
        assembler.close(item)
    return _finished(assembler)


def _started(wire_api: WireApi) -> EventAssembler:
    assembler = EventAssembler(LIMITS, Origin(wire_api))
    assembler.identify("resp_1", "m")
    # What Messages tells at the start; the last counts are those that other wires tell.
    if wire_api in ("messages", "invoke"):
        assembler.usage(Usage(input_tokens=INPUT_TOKENS, output_tokens=1))
    return assembler


def _start_of(item: SampleItem) -> Message | Reasoning | FunctionCall:
    match item:
        case SampleText():
            return Message("assistant")
        case SampleReasoning():
            return Reasoning()
        case SampleCall():
            return FunctionCall(item.call_id, item.name)


def _append(assembler: EventAssembler, opened: OpenItem, item: SampleItem, delta: str) -> None:
    match item:
        case SampleText():
            assembler.text(opened, delta)
        case SampleReasoning():
            if assembler.origin.wire_api in SUMMARIES:
                assembler.summary(opened, delta)
            else:
                assembler.reasoning(opened, delta)
        case SampleCall():
            assembler.arguments(opened, delta)


def _finished(assembler: EventAssembler) -> list[ResponseEvent]:
    assembler.usage(Usage(input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS))
    assembler.complete("tool_calls" if assembler.has_call else "stop")
    return assembler.take()


def _xml_call(call: SampleCall) -> str:
    parameters = "".join(
        f'<xai:parameter name="{key}">{value}</xai:parameter>'
        for key, value in call.arguments.items()
    )
    return f'<xai:function_call name="{call.name}">{parameters}</xai:function_call>'


# --- frames ---


def _encoded(
    wire_api: WireApi, events: Iterable[ResponseEvent]
) -> tuple[list[EncodedFrame], bytes]:
    """The frames of the events, and the end mark."""
    frames: list[EncodedFrame] = []

    def collect(value: Any, name: str) -> bytes:
        frames.append(EncodedFrame(name, value))
        return b""

    gateway = WIRE_SPECS[wire_api].gateway
    # Clients of Responses refuse an object without it.
    dated: dict[str, Any] = {"created_at": 1} if gateway is not None and gateway.is_dated else {}
    encode = encoder(wire_api, write=collect, **dated)
    for event in events:
        encode.feed(event)
    return frames, encode.close()


def _written(wire_api: WireApi, frames: Iterable[EncodedFrame], end: bytes) -> list[bytes]:
    """The chunks of a body, with what its provider adds to each frame."""
    times = _times()
    output_tokens = count()
    chunks: list[bytes] = []
    for name, value in frames:
        match wire_api:
            case "chat":
                value.setdefault("system_fingerprint", "fp")
            case "gemini":
                value.setdefault("usageMetadata", _gemini_counts(next(output_tokens)))
            case "converse":
                value.setdefault("p", LETTERS[:10])
            case "ollama":
                value["created_at"] = next(times)
            case _:
                pass
        chunks.append(framed(wire_api, msgspec.json.encode(value), name))
    return [*chunks, end] if end else chunks


def _gemini_counts(output_tokens: int) -> JsonObject:
    return {
        "promptTokenCount": INPUT_TOKENS,
        "candidatesTokenCount": output_tokens,
        "totalTokenCount": INPUT_TOKENS + output_tokens,
    }


def _times() -> Iterator[str]:
    """Times as Ollama writes them, one every 20.003 milliseconds."""
    for number in count():
        seconds, nanoseconds = divmod(number * 20_003_000, 1_000_000_000)
        minutes, seconds = divmod(seconds, 60)
        yield f"2026-11-23T07:{minutes:02}:{seconds:02}.{nanoseconds:09}Z"


def _with_more_parts(frames: Iterable[EncodedFrame]) -> Iterator[EncodedFrame]:
    """Chunks of Gemini with four texts each; before a signed call, code that Google ran."""
    code = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
    texts: list[JsonObject] = []
    for frame in frames:
        content = frame.value["candidates"][0]["content"]
        (part,) = content["parts"]
        if "functionCall" in part:
            content["parts"] = [code, result, {**part, "thoughtSignature": SIGNATURE}]
            texts = []
        elif 0 < len(texts) < 4 and "finishReason" not in frame.value["candidates"][0]:
            texts.append(part)
            continue
        else:
            texts = content["parts"] = [part]
        frame.value["usageMetadata"] = {
            **frame.value.get("usageMetadata", _gemini_counts(0)),
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": INPUT_TOKENS}],
            "trafficType": "ON_DEMAND",
        }
        yield frame
