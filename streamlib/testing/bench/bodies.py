"""Encodes sample responses for each wire, one chunk for each event, as the providers do.

docs/wires names the sources for their formats.
"""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Iterator
from itertools import count, repeat, zip_longest
from typing import Any, Final, TypeAlias

from streamlib.testing.bench.responses import (
    USAGE,
    SampleCall,
    SampleItem,
    SampleReasoning,
    SampleResponse,
    SampleText,
    calls_of,
)
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.items import JsonObject

Body: TypeAlias = Iterator[bytes]

INPUT_TOKENS, OUTPUT_TOKENS = USAGE
TOTAL_TOKENS: Final = INPUT_TOKENS + OUTPUT_TOKENS


def dumps(value: Any) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def sse(value: JsonObject, event: str | None = None) -> bytes:
    """One server-sent event."""
    if event is None:
        return b"data: %s\n\n" % dumps(value)
    return b"event: %s\ndata: %s\n\n" % (event.encode(), dumps(value))


# --- Anthropic Messages ---


def messages(response: SampleResponse) -> Body:
    """Named events with content blocks by index."""
    message: JsonObject = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
    }
    yield _named("message_start", message=message)
    for index, item in enumerate(response):
        block, kind, key = _block(item)
        yield _named("content_block_start", index=index, content_block=block)
        for text in item.deltas:
            yield _named("content_block_delta", index=index, delta={"type": kind, key: text})
        if isinstance(item, SampleReasoning):
            signature = {"type": "signature_delta", "signature": "c2lnbmF0dXJl"}
            yield _named("content_block_delta", index=index, delta=signature)
        yield _named("content_block_stop", index=index)
    reason = "tool_use" if calls_of(response) else "end_turn"
    yield _named(
        "message_delta",
        delta={"stop_reason": reason, "stop_sequence": None},
        usage={"output_tokens": OUTPUT_TOKENS},
    )
    yield _named("message_stop")


def _named(kind: str, **values: Any) -> bytes:
    return sse({"type": kind, **values}, kind)


def _block(item: SampleItem) -> tuple[JsonObject, str, str]:
    """The start of a block, the type of its deltas, and the key of their text."""
    match item:
        case SampleText():
            return {"type": "text", "text": ""}, "text_delta", "text"
        case SampleReasoning():
            block: JsonObject = {"type": "thinking", "thinking": "", "signature": ""}
            return block, "thinking_delta", "thinking"
        case SampleCall():
            block = {"type": "tool_use", "id": item.call_id, "name": item.name, "input": {}}
            return block, "input_json_delta", "partial_json"


def with_keep_alives(response: SampleResponse) -> Body:
    """Messages, with a comment after every event and a ping after every tenth."""
    for number, event in enumerate(messages(response)):
        yield event
        yield b": keep-alive\n\n"
        if number % 10 == 1:
            yield _named("ping")


# --- Chat Completions ---

_CHUNK: Final = {
    "id": "c-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "system_fingerprint": "fp",
}


def _chunk(delta: JsonObject, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return sse({**_CHUNK, "choices": [choice]})


def _call_start(index: int, call: SampleCall) -> bytes:
    function = {"name": call.name, "arguments": ""}
    start = {"index": index, "id": call.call_id, "type": "function", "function": function}
    return _chunk({"tool_calls": [start]})


def _call_delta(index: int, arguments: str) -> bytes:
    return _chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})


def _chat(inner: Body, reason: str) -> Body:
    """Chunks of one choice between the first chunk and `[DONE]`."""
    yield _chunk({"role": "assistant", "content": ""})
    yield from inner
    yield _chunk({}, reason)
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": TOTAL_TOKENS,
    }
    yield sse({**_CHUNK, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def chat(response: SampleResponse) -> Body:
    """Chunks of one choice, `[DONE]` at the end."""
    reason = "tool_calls" if calls_of(response) else "stop"
    return _chat(_chat_items(response), reason)


def _chat_items(response: SampleResponse) -> Body:
    calls = 0
    for item in response:
        if isinstance(item, SampleCall):
            yield _call_start(calls, item)
            for arguments in item.deltas:
                yield _call_delta(calls, arguments)
            calls += 1
        else:
            key = "reasoning_content" if isinstance(item, SampleReasoning) else "content"
            for text in item.deltas:
                yield _chunk({key: text})


def chat_interleaved(response: SampleResponse) -> Body:
    """Parallel calls whose deltas alternate."""
    return _chat(_interleaved_calls(calls_of(response)), "tool_calls")


def _interleaved_calls(calls: list[SampleCall]) -> Body:
    for index, call in enumerate(calls):
        yield _call_start(index, call)
    for deltas in zip_longest(*(call.deltas for call in calls)):
        for index, arguments in enumerate(deltas):
            if arguments is not None:
                yield _call_delta(index, arguments)


def chat_with_xml(response: SampleResponse) -> Body:
    """Calls written as text, as xAI's older models do; ten characters a chunk."""
    return _chat(_xml_chunks(response), "stop")


def _xml_chunks(response: SampleResponse) -> Body:
    texts: list[str] = []
    for item in response:
        if isinstance(item, SampleCall):
            texts.append(_xml_call(item))
        else:
            texts.extend(item.deltas)
    text = "".join(texts)
    for start in range(0, len(text), 10):
        yield _chunk({"content": text[start : start + 10]})


def _xml_call(call: SampleCall) -> str:
    parameters = "".join(
        f'<xai:parameter name="{key}">{value}</xai:parameter>'
        for key, value in call.arguments.items()
    )
    return f'<xai:function_call name="{call.name}">{parameters}</xai:function_call>'


# --- OpenAI Responses ---


def responses(response: SampleResponse) -> Body:
    """Named events with items by output_index; done items are repeated, all of them at the end."""
    sequence_number = 0

    def event(kind: str, **values: Any) -> bytes:
        nonlocal sequence_number
        encoded = sse({"type": kind, "sequence_number": sequence_number, **values}, kind)
        sequence_number += 1
        return encoded

    envelope = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    yield event("response.created", response={**envelope, "status": "in_progress", "output": []})
    output: list[JsonObject] = []
    for index, item in enumerate(response):
        added, done = _output_item(index, item)
        yield event("response.output_item.added", output_index=index, item=added)
        for kind, values in _item_events(item):
            yield event(kind, item_id=added["id"], output_index=index, **values)
        output.append(done)
        yield event("response.output_item.done", output_index=index, item=done)
    usage = {
        "input_tokens": INPUT_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
        "total_tokens": TOTAL_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    complete = {**envelope, "status": "completed", "output": output, "usage": usage}
    yield event("response.completed", response=complete)


def _output_item(index: int, item: SampleItem) -> tuple[JsonObject, JsonObject]:
    """An item when it is added, and when it is done."""
    text = "".join(item.deltas)
    added: JsonObject
    match item:
        case SampleReasoning():
            added = {"type": "reasoning", "id": f"rs_{index}", "summary": []}
            return added, {**added, "summary": [{"type": "summary_text", "text": text}]}
        case SampleText():
            added = {
                "type": "message",
                "id": f"msg_{index}",
                "role": "assistant",
                "status": "in_progress",
                "content": [],
            }
            part = {"type": "output_text", "text": text, "annotations": []}
            return added, {**added, "status": "completed", "content": [part]}
        case SampleCall():
            added = {
                "type": "function_call",
                "id": f"fc_{index}",
                "call_id": item.call_id,
                "name": item.name,
                "arguments": "",
                "status": "in_progress",
            }
            return added, {**added, "arguments": text, "status": "completed"}


def _item_events(item: SampleItem) -> Iterator[tuple[str, JsonObject]]:
    """The events of an item between its start and its end: types and fields."""
    text = "".join(item.deltas)
    match item:
        case SampleReasoning():
            index: JsonObject = {"summary_index": 0}
            part: JsonObject = {"type": "summary_text", "text": ""}
            yield "response.reasoning_summary_part.added", {**index, "part": part}
            for delta in item.deltas:
                yield "response.reasoning_summary_text.delta", {**index, "delta": delta}
            yield "response.reasoning_summary_text.done", {**index, "text": text}
            done = {**part, "text": text}
            yield "response.reasoning_summary_part.done", {**index, "part": done}
        case SampleText():
            index = {"content_index": 0}
            shape: JsonObject = {"type": "output_text", "annotations": []}
            part = {**shape, "text": ""}
            yield "response.content_part.added", {**index, "part": part}
            for delta in item.deltas:
                yield "response.output_text.delta", {**index, "delta": delta, "logprobs": []}
            yield "response.output_text.done", {**index, "text": text, "logprobs": []}
            yield "response.content_part.done", {**index, "part": {**shape, "text": text}}
        case SampleCall():
            for delta in item.deltas:
                yield "response.function_call_arguments.delta", {"delta": delta}
            yield "response.function_call_arguments.done", {"arguments": text}


# --- Gemini ---


def _gemini_chunk(
    parts: list[JsonObject], output_tokens: int, usage: JsonObject, **fields: Any
) -> bytes:
    counts = {
        "promptTokenCount": INPUT_TOKENS,
        "candidatesTokenCount": output_tokens,
        "totalTokenCount": INPUT_TOKENS + output_tokens,
        **usage,
    }
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **fields}
    chunk = {
        "candidates": [candidate],
        "usageMetadata": counts,
        "modelVersion": "m",
        "responseId": "r",
    }
    return sse(chunk)


def _text_part(item: SampleText | SampleReasoning, text: str) -> JsonObject:
    if isinstance(item, SampleReasoning):
        return {"text": text, "thought": True}
    return {"text": text}


def _call_part(call: SampleCall) -> JsonObject:
    return {"functionCall": {"id": call.call_id, "name": call.name, "args": call.arguments}}


def gemini(response: SampleResponse) -> Body:
    """One part and the token counts in each chunk; calls are never split."""
    output_tokens = 0
    for item in response:
        if isinstance(item, SampleCall):
            continue
        for text in item.deltas:
            yield _gemini_chunk([_text_part(item, text)], output_tokens, {})
            output_tokens += 1
    parts = [_call_part(call) for call in calls_of(response)]
    yield _gemini_chunk(parts or [{"text": ""}], OUTPUT_TOKENS, {}, finishReason="STOP")


def gemini_parts(response: SampleResponse) -> Body:
    """Several parts a chunk, signatures, hosted code, counts by modality, as Vertex sends them."""
    details = {
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": INPUT_TOKENS}],
        "trafficType": "ON_DEMAND",
    }
    output_tokens = 0
    for item in response:
        if isinstance(item, SampleCall):
            code = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
            result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
            call = {**_call_part(item), "thoughtSignature": "c2ln"}
            yield _gemini_chunk([code, result, call], output_tokens, details)
            continue
        for start in range(0, len(item.deltas), 4):
            parts = [_text_part(item, text) for text in item.deltas[start : start + 4]]
            yield _gemini_chunk(parts, output_tokens, details)
            output_tokens += 4
    yield _gemini_chunk([{"text": ""}], OUTPUT_TOKENS, details, finishReason="STOP")


# --- Gemini Interactions ---


def interactions(response: SampleResponse) -> Body:
    """Named events with steps by index, and an end mark."""
    interaction = {"id": "v1_1", "object": "interaction", "model": "m", "status": "in_progress"}
    yield _interactions_event("interaction.created", interaction=interaction)
    for index, item in enumerate(response):
        yield _interactions_event("step.start", index=index, step=_interactions_step(item))
        for text in item.deltas:
            yield _interactions_event(
                "step.delta", index=index, delta=_interactions_delta(item, text)
            )
        if isinstance(item, SampleReasoning):
            signature = {"type": "thought_signature", "signature": "c2lnbmF0dXJl"}
            yield _interactions_event("step.delta", index=index, delta=signature)
        yield _interactions_event("step.stop", index=index)
    usage = {
        "total_input_tokens": INPUT_TOKENS,
        "total_output_tokens": OUTPUT_TOKENS,
        "total_tokens": TOTAL_TOKENS,
    }
    status = "requires_action" if calls_of(response) else "completed"
    yield _interactions_event(
        "interaction.completed", interaction={**interaction, "status": status, "usage": usage}
    )
    yield b"event: done\ndata: [DONE]\n\n"


def _interactions_event(kind: str, **values: Any) -> bytes:
    return sse({**values, "event_type": kind}, kind)


def _interactions_step(item: SampleItem) -> JsonObject:
    match item:
        case SampleText():
            return {"type": "model_output"}
        case SampleReasoning():
            return {"type": "thought"}
        case SampleCall():
            call = {"type": "function_call", "id": item.call_id, "name": item.name}
            return {**call, "arguments": {}}


def _interactions_delta(item: SampleItem, text: str) -> JsonObject:
    match item:
        case SampleText():
            return {"type": "text", "text": text}
        case SampleReasoning():
            return {"type": "thought_summary", "content": {"type": "text", "text": text}}
        case SampleCall():
            return {"type": "arguments_delta", "arguments": text}


# --- Cohere ---


def cohere(response: SampleResponse) -> Body:
    """Named events; contents and calls each have their own indexes."""
    yield _cohere_event("message-start", {"role": "assistant", "content": []}, id="c1")
    counts = {"content": 0, "tool-call": 0}
    for item in response:
        kind = "tool-call" if isinstance(item, SampleCall) else "content"
        index = counts[kind]
        counts[kind] += 1
        yield _cohere_event(f"{kind}-start", _cohere_start(item), index=index)
        for text in item.deltas:
            yield _cohere_event(f"{kind}-delta", _cohere_delta(item, text), index=index)
        yield sse({"type": f"{kind}-end", "index": index}, f"{kind}-end")
    reason = "TOOL_CALL" if counts["tool-call"] else "COMPLETE"
    tokens = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    end = {"finish_reason": reason, "usage": {"tokens": tokens}}
    yield sse({"type": "message-end", "delta": end}, "message-end")
    yield b"data: [DONE]\n\n"


def _cohere_start(item: SampleItem) -> JsonObject:
    if isinstance(item, SampleCall):
        function = {"name": item.name, "arguments": ""}
        return {"tool_calls": {"id": item.call_id, "type": "function", "function": function}}
    key = "text" if isinstance(item, SampleText) else "thinking"
    return {"content": {"type": key, key: ""}}


def _cohere_delta(item: SampleItem, text: str) -> JsonObject:
    if isinstance(item, SampleCall):
        return {"tool_calls": {"function": {"arguments": text}}}
    return {"content": {"text" if isinstance(item, SampleText) else "thinking": text}}


def _cohere_event(kind: str, message: JsonObject, **values: Any) -> bytes:
    return sse({"type": kind, **values, "delta": {"message": message}}, kind)


# --- Bedrock ---

_PADDING: Final = "abcdefghij"


def _frame(kind: str, padding: str = _PADDING, **values: Any) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, dumps({**values, "p": padding}))


def _converse(response: SampleResponse, paddings: Iterator[str]) -> Body:
    yield _frame("messageStart", role="assistant")
    for index, item in enumerate(response):
        # Converse has start events only for calls.
        if isinstance(item, SampleCall):
            start = {"toolUse": {"toolUseId": item.call_id, "name": item.name}}
            yield _frame("contentBlockStart", contentBlockIndex=index, start=start)
        for text in item.deltas:
            delta = _converse_delta(item, text)
            yield _frame("contentBlockDelta", next(paddings), contentBlockIndex=index, delta=delta)
        yield _frame("contentBlockStop", contentBlockIndex=index)
    yield _frame("messageStop", stopReason="tool_use" if calls_of(response) else "end_turn")
    usage = {
        "inputTokens": INPUT_TOKENS,
        "outputTokens": OUTPUT_TOKENS,
        "totalTokens": TOTAL_TOKENS,
    }
    yield _frame("metadata", usage=usage, metrics={"latencyMs": 1})


def _converse_delta(item: SampleItem, text: str) -> JsonObject:
    match item:
        case SampleText():
            return {"text": text}
        case SampleReasoning():
            return {"reasoningContent": {"text": text}}
        case SampleCall():
            return {"toolUse": {"input": text}}


def converse(response: SampleResponse) -> Body:
    """AWS frames, all with the same padding."""
    return _converse(response, repeat(_PADDING))


def aws_frames(response: SampleResponse) -> Body:
    """AWS frames of different lengths: the padding is random, as AWS's own."""
    return _converse(response, _random_paddings())


def _random_paddings() -> Iterator[str]:
    draw = random.Random("padding")  # no secret
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    while True:
        yield alphabet[: draw.randint(1, len(alphabet))]


def invoke(response: SampleResponse) -> Body:
    """The events of Messages, as base64 in AWS frames."""
    headers = {
        ":event-type": "chunk",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    for event in messages(response):
        data = event.partition(b"data: ")[2].strip()
        yield encode_message(headers, dumps({"bytes": b64encode(data).decode()}))


# --- Ollama ---


def ollama(response: SampleResponse) -> Body:
    """JSON lines, each with a time; calls are never split."""
    times = _times()
    for item in response:
        if isinstance(item, SampleCall):
            continue
        key = "thinking" if isinstance(item, SampleReasoning) else "content"
        for text in item.deltas:
            yield _line(next(times), {"content": "", key: text})
    message: JsonObject = {"content": ""}
    calls = [_ollama_call(call) for call in calls_of(response)]
    if calls:
        message["tool_calls"] = calls
    yield _line(next(times), message)
    yield _line(
        next(times),
        {"content": ""},
        done=True,
        done_reason="stop",
        prompt_eval_count=INPUT_TOKENS,
        eval_count=OUTPUT_TOKENS,
    )


def _ollama_call(call: SampleCall) -> JsonObject:
    return {"id": call.call_id, "function": {"name": call.name, "arguments": call.arguments}}


def _times() -> Iterator[str]:
    """Times as Ollama writes them, one every 20.003 milliseconds."""
    for number in count():
        seconds, nanoseconds = divmod(number * 20_003_000, 1_000_000_000)
        minutes, seconds = divmod(seconds, 60)
        yield f"2026-11-23T07:{minutes:02}:{seconds:02}.{nanoseconds:09}Z"


def _line(time: str, message: JsonObject, **fields: Any) -> bytes:
    line = {
        "model": "m",
        "created_at": time,
        "message": {"role": "assistant", **message},
        "done": False,
        **fields,
    }
    return dumps(line) + b"\n"
