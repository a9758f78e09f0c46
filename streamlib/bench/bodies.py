"""Answers as the bytes of a wire, one chunk an event, written as the providers write them (shared facts: docs/wires)."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any, Final, TypeAlias

from streamlib.bench.answers import USAGE, Answer, Called, Said, Thought
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.items import JsonObject

Body: TypeAlias = Iterator[bytes]

READ, WRITTEN = USAGE


def dumps(value: Any) -> bytes:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def sse(value: JsonObject, event: str | None = None) -> bytes:
    """One server-sent event."""
    return (
        b"event: %s\ndata: %s\n\n" % (event.encode(), dumps(value))
        if event
        else b"data: %s\n\n" % dumps(value)
    )


# --- Anthropic Messages ---


def messages(answer: Answer) -> Body:
    """Named events, content blocks by index."""
    said: JsonObject = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    said |= {
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": READ, "output_tokens": 1},
    }
    yield _named("message_start", message=said)
    for index, part in enumerate(answer):
        block, kind, key = _block(part)
        yield _named("content_block_start", index=index, content_block=block)
        for piece in part.pieces:
            yield _named("content_block_delta", index=index, delta={"type": kind, key: piece})
        if isinstance(part, Thought):
            yield _named(
                "content_block_delta",
                index=index,
                delta={"type": "signature_delta", "signature": "c2lnbmF0dXJl"},
            )
        yield _named("content_block_stop", index=index)
    reason = "tool_use" if _has_calls(answer) else "end_turn"
    yield _named(
        "message_delta",
        delta={"stop_reason": reason, "stop_sequence": None},
        usage={"output_tokens": WRITTEN},
    )
    yield _named("message_stop")


def _named(kind: str, **values: Any) -> bytes:
    return sse({"type": kind, **values}, kind)


def _block(part: Said | Thought | Called) -> tuple[JsonObject, str, str]:
    """A block's start, the kind of its deltas and the key of their text."""
    match part:
        case Said():
            return {"type": "text", "text": ""}, "text_delta", "text"
        case Thought():
            return (
                {"type": "thinking", "thinking": "", "signature": ""},
                "thinking_delta",
                "thinking",
            )
        case Called():
            return (
                {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {}},
                "input_json_delta",
                "partial_json",
            )


def _has_calls(answer: Answer) -> bool:
    return any(isinstance(part, Called) for part in answer)


def kept_alive(answer: Answer) -> Body:
    """Messages, with a comment after every event and a ping after every tenth."""
    for number, event in enumerate(messages(answer)):
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
    return sse(
        {
            **_CHUNK,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        }
    )


def _call_begun(index: int, call: Called) -> bytes:
    function = {"name": call.name, "arguments": ""}
    return _chunk(
        {
            "tool_calls": [
                {"index": index, "id": call.call_id, "type": "function", "function": function}
            ]
        }
    )


def _call_goes_on(index: int, piece: str) -> bytes:
    return _chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def _chat(inner: Body, reason: str) -> Body:
    yield _chunk({"role": "assistant", "content": ""})
    yield from inner
    yield _chunk({}, reason)
    counts = {"prompt_tokens": READ, "completion_tokens": WRITTEN, "total_tokens": READ + WRITTEN}
    yield sse({**_CHUNK, "choices": [], "usage": counts})
    yield b"data: [DONE]\n\n"


def chat(answer: Answer) -> Body:
    """Chunks of one choice, `[DONE]` at the end."""
    return _chat(_chat_parts(answer), "tool_calls" if _has_calls(answer) else "stop")


def _chat_parts(answer: Answer) -> Body:
    calls = 0
    for part in answer:
        if isinstance(part, Called):
            yield _call_begun(calls, part)
            yield from (_call_goes_on(calls, piece) for piece in part.pieces)
            calls += 1
        else:
            key = "reasoning_content" if isinstance(part, Thought) else "content"
            yield from (_chunk({key: piece}) for piece in part.pieces)


def chat_interleaved(answer: Answer) -> Body:
    """Calls that grow by turns."""
    calls = [part for part in answer if isinstance(part, Called)]
    begun = (_call_begun(index, call) for index, call in enumerate(calls))
    turns = zip_longest(*(call.pieces for call in calls))
    grown = (
        _call_goes_on(index, piece)
        for turn in turns
        for index, piece in enumerate(turn)
        if piece is not None
    )
    return _chat(chain(begun, grown), "tool_calls")


def chat_with_xml(answer: Answer) -> Body:
    """Calls written as text, as xAI's older models do; ten characters a chunk."""

    def text() -> Iterator[str]:
        for part in answer:
            if isinstance(part, Called):
                parameters = (
                    f'<xai:parameter name="{key}">{value}</xai:parameter>'
                    for key, value in part.arguments.items()
                )
                yield f'<xai:function_call name="{part.name}">{"".join(parameters)}</xai:function_call>'
            else:
                yield from part.pieces

    whole = "".join(text())
    return _chat(
        (_chunk({"content": whole[at : at + 10]}) for at in range(0, len(whole), 10)), "stop"
    )


# --- OpenAI Responses ---


def responses(answer: Answer) -> Body:
    """Named events, items by output_index; every item once more when it is done, and all of them at the end."""
    number = iter(range(10**9))
    output: list[JsonObject] = []

    def event(kind: str, **values: Any) -> bytes:
        return sse({"type": kind, "sequence_number": next(number), **values}, kind)

    begun = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "tools": [],
        "tool_choice": "auto",
    }
    begun |= {"parallel_tool_calls": True}
    yield event("response.created", response={**begun, "status": "in_progress", "output": []})
    for index, part in enumerate(answer):
        item, done = _item(index, part)
        about = {"item_id": item["id"], "output_index": index}
        yield event("response.output_item.added", output_index=index, item=item)
        for kind, values in _grown(part):
            yield event(kind, **about, **values)
        output.append(done)
        yield event("response.output_item.done", output_index=index, item=done)
    counts: JsonObject = {
        "input_tokens": READ,
        "output_tokens": WRITTEN,
        "total_tokens": READ + WRITTEN,
    }
    counts |= {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    yield event(
        "response.completed",
        response={**begun, "status": "completed", "output": output, "usage": counts},
    )


def _item(index: int, part: Said | Thought | Called) -> tuple[JsonObject, JsonObject]:
    """An item as it begins, and as it ends."""
    whole = "".join(part.pieces)
    item: JsonObject
    match part:
        case Thought():
            item = {"type": "reasoning", "id": f"rs_{index}", "summary": []}
            return item, {**item, "summary": [{"type": "summary_text", "text": whole}]}
        case Said():
            item = {
                "type": "message",
                "id": f"msg_{index}",
                "role": "assistant",
                "status": "in_progress",
                "content": [],
            }
            return item, {
                **item,
                "status": "completed",
                "content": [{"type": "output_text", "text": whole, "annotations": []}],
            }
        case Called():
            item = {
                "type": "function_call",
                "id": f"fc_{index}",
                "call_id": part.call_id,
                "name": part.name,
            }
            item |= {"arguments": "", "status": "in_progress"}
            return item, {**item, "arguments": whole, "status": "completed"}


def _grown(part: Said | Thought | Called) -> Iterator[tuple[str, JsonObject]]:
    """What an item's events say between its beginning and its end."""
    whole = "".join(part.pieces)
    match part:
        case Thought():
            yield (
                "response.reasoning_summary_part.added",
                {"summary_index": 0, "part": {"type": "summary_text", "text": ""}},
            )
            for piece in part.pieces:
                yield "response.reasoning_summary_text.delta", {"summary_index": 0, "delta": piece}
            yield "response.reasoning_summary_text.done", {"summary_index": 0, "text": whole}
            yield (
                "response.reasoning_summary_part.done",
                {"summary_index": 0, "part": {"type": "summary_text", "text": whole}},
            )
        case Said():
            shape = {"type": "output_text", "annotations": []}
            yield "response.content_part.added", {"content_index": 0, "part": {**shape, "text": ""}}
            for piece in part.pieces:
                yield (
                    "response.output_text.delta",
                    {"content_index": 0, "delta": piece, "logprobs": []},
                )
            yield "response.output_text.done", {"content_index": 0, "text": whole, "logprobs": []}
            yield (
                "response.content_part.done",
                {"content_index": 0, "part": {**shape, "text": whole}},
            )
        case Called():
            for piece in part.pieces:
                yield "response.function_call_arguments.delta", {"delta": piece}
            yield "response.function_call_arguments.done", {"arguments": whole}


# --- Gemini ---


def _generated(parts: list[JsonObject], written: int, usage: JsonObject, **more: Any) -> bytes:
    counts = {
        "promptTokenCount": READ,
        "candidatesTokenCount": written,
        "totalTokenCount": READ + written,
        **usage,
    }
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **more}
    return sse(
        {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "m", "responseId": "r"}
    )


def _call_part(call: Called) -> JsonObject:
    return {"functionCall": {"id": call.call_id, "name": call.name, "args": call.arguments}}


def gemini(answer: Answer) -> Body:
    """A part a chunk, counts in every chunk; calls come whole."""
    written = 0
    for part in answer:
        if not isinstance(part, Called):
            for piece in part.pieces:
                yield _generated(
                    [
                        {"text": piece, "thought": True}
                        if isinstance(part, Thought)
                        else {"text": piece}
                    ],
                    written,
                    {},
                )
                written += 1
    calls = [_call_part(part) for part in answer if isinstance(part, Called)]
    yield _generated(calls or [{"text": ""}], WRITTEN, {}, finishReason="STOP")


def gemini_parts(answer: Answer) -> Body:
    """Several parts a chunk, signatures, code that Google runs, and counts by modality, as Vertex sends them."""
    details = {
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": READ}],
        "trafficType": "ON_DEMAND",
    }
    written = 0
    for part in answer:
        if isinstance(part, Called):
            code = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
            ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
            yield _generated(
                [code, ran, {**_call_part(part), "thoughtSignature": "c2ln"}], written, details
            )
            continue
        for at in range(0, len(part.pieces), 4):
            kind = {"thought": True} if isinstance(part, Thought) else {}
            yield _generated(
                [{"text": piece, **kind} for piece in part.pieces[at : at + 4]], written, details
            )
            written += 4
    yield _generated([{"text": ""}], WRITTEN, details, finishReason="STOP")


# --- Bedrock ---


def _frame(kind: str, padding: str = "abcdefghij", **values: Any) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, dumps({**values, "p": padding}))


def _converse(answer: Answer, paddings: Iterator[str]) -> Body:
    yield _frame("messageStart", role="assistant")
    for index, part in enumerate(answer):
        if isinstance(part, Called):
            start = {"toolUse": {"toolUseId": part.call_id, "name": part.name}}
            yield _frame("contentBlockStart", contentBlockIndex=index, start=start)
        for piece in part.pieces:
            yield _frame(
                "contentBlockDelta",
                next(paddings),
                contentBlockIndex=index,
                delta=_delta(part, piece),
            )
        yield _frame("contentBlockStop", contentBlockIndex=index)
    yield _frame("messageStop", stopReason="tool_use" if _has_calls(answer) else "end_turn")
    counts = {"inputTokens": READ, "outputTokens": WRITTEN, "totalTokens": READ + WRITTEN}
    yield _frame("metadata", usage=counts, metrics={"latencyMs": 1})


def _delta(part: Said | Thought | Called, piece: str) -> JsonObject:
    match part:
        case Said():
            return {"text": piece}
        case Thought():
            return {"reasoningContent": {"text": piece}}
        case Called():
            return {"toolUse": {"input": piece}}


def converse(answer: Answer) -> Body:
    """AWS frames, one padding for all."""
    return _converse(answer, iter(lambda: "abcdefghij", None))


def aws_frames(answer: Answer) -> Body:
    """AWS frames, each of another length: the padding is as random as AWS's own."""
    draw = random.Random("padding")  # noqa: S311  # no secret
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return _converse(answer, iter(lambda: alphabet[: draw.randint(1, len(alphabet))], None))


def invoke(answer: Answer) -> Body:
    """The Messages events, base64 in AWS frames."""
    headers = {
        ":event-type": "chunk",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    for event in messages(answer):
        data = event.partition(b"data: ")[2].strip()
        yield encode_message(headers, dumps({"bytes": b64encode(data).decode()}))


# --- Ollama ---


def ollama(answer: Answer) -> Body:
    """JSON lines; calls come whole."""
    for part in answer:
        if not isinstance(part, Called):
            key = "thinking" if isinstance(part, Thought) else "content"
            yield from (_line({"content": "", key: piece}) for piece in part.pieces)
    calls = [part for part in answer if isinstance(part, Called)]
    made = [
        {"id": call.call_id, "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    yield _line({"content": "", **({"tool_calls": made} if made else {})})
    yield _line(
        {"content": ""}, done=True, done_reason="stop", prompt_eval_count=READ, eval_count=WRITTEN
    )


def _line(message: JsonObject, **more: Any) -> bytes:
    return (
        dumps(
            {
                "model": "m",
                "created_at": "t",
                "message": {"role": "assistant", **message},
                "done": False,
                **more,
            }
        )
        + b"\n"
    )
