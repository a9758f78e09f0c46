"""Bodies to measure with: about 2,000 deltas of thought, text and three tool calls on each wire, the same words every time."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

from streamlib_parsers.framing.eventstream import encode_message

Json = dict[str, Any]

THOUGHTS, TEXTS, CALLS, PIECES = 600, 1000, 3, 130
THOUGHT, WORD, PIECE = " some thinking words", " some more text words", '"abcdefgh",'
ARGUMENTS: Final = '{"a":[' + PIECE * PIECES + "1]}"
"""What each call's pieces add up to."""


def pieces() -> Iterator[str]:
    """The arguments of one call, as they are dripped."""
    yield '{"a":['
    yield from [PIECE] * PIECES
    yield "1]}"


def sse(value: Json, event: str | None = None) -> bytes:
    """One server-sent event."""
    data = json.dumps(value, separators=(",", ":")).encode()
    return b"event: %s\ndata: %s\n\n" % (event.encode(), data) if event else b"data: %s\n\n" % data


def messages() -> Iterator[bytes]:
    """Anthropic Messages."""

    def event(kind: str, **values: Any) -> bytes:
        return sse({"type": kind, **values}, kind)

    def block(index: int, content: Json, deltas: Iterator[Json]) -> Iterator[bytes]:
        yield event("content_block_start", index=index, content_block=content)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)

    yield event("message_start", message={"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}})
    yield from block(0, {"type": "thinking", "thinking": ""}, ({"type": "thinking_delta", "thinking": THOUGHT} for _ in range(THOUGHTS)))
    yield from block(1, {"type": "text", "text": ""}, ({"type": "text_delta", "text": WORD} for _ in range(TEXTS)))
    for n in range(CALLS):
        call = {"type": "tool_use", "id": f"call_{n}", "name": "f", "input": {}}
        yield from block(2 + n, call, ({"type": "input_json_delta", "partial_json": piece} for piece in pieces()))
    yield event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 2000})
    yield event("message_stop")


def chat() -> Iterator[bytes]:
    """OpenAI Chat Completions."""

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "fp"}
        return sse({**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"reasoning_content": THOUGHT}) for _ in range(THOUGHTS))
    yield from (chunk({"content": WORD}) for _ in range(TEXTS))
    for n in range(CALLS):
        yield chunk({"tool_calls": [{"index": n, "id": f"call_{n}", "type": "function", "function": {"name": "f", "arguments": ""}}]})
        yield from (chunk({"tool_calls": [{"index": n, "function": {"arguments": piece}}]}) for piece in pieces())
    yield chunk({}, "tool_calls")
    usage = {"prompt_tokens": 9, "completion_tokens": 2000, "total_tokens": 2009}
    yield sse({"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def responses() -> Iterator[bytes]:
    """OpenAI Responses."""
    number = iter(range(1_000_000))
    output: list[Json] = []

    def event(kind: str, **values: Any) -> bytes:
        return sse({"type": kind, "sequence_number": next(number), **values}, kind)

    def item(index: int, begun: Json, deltas: Iterator[bytes], done: Json) -> Iterator[bytes]:
        yield event("response.output_item.added", output_index=index, item=begun)
        yield from deltas
        output.append(done)
        yield event("response.output_item.done", output_index=index, item=done)

    yield event("response.created", response={"id": "resp_1", "model": "m", "status": "in_progress", "output": []})
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    summed = {**thought, "summary": [{"type": "summary_text", "text": THOUGHT * THOUGHTS}]}
    told = (event("response.reasoning_summary_text.delta", **place, delta=THOUGHT) for _ in range(THOUGHTS))
    yield from item(0, thought, told, summed)
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    place = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    whole = {**said, "status": "completed", "content": [{"type": "output_text", "text": WORD * TEXTS, "annotations": []}]}
    yield from item(1, said, (event("response.output_text.delta", **place, delta=WORD, logprobs=[]) for _ in range(TEXTS)), whole)
    for n in range(CALLS):
        call = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": "f", "arguments": "", "status": "in_progress"}
        dripped = (
            event("response.function_call_arguments.delta", item_id=f"fc_{n}", output_index=2 + n, delta=piece) for piece in pieces()
        )
        yield from item(2 + n, call, dripped, {**call, "arguments": ARGUMENTS, "status": "completed"})
    usage = {"input_tokens": 9, "output_tokens": 2000, "total_tokens": 2009}
    yield event("response.completed", response={"id": "resp_1", "model": "m", "status": "completed", "output": output, "usage": usage})


def gemini() -> Iterator[bytes]:
    """Gemini generateContent: calls come whole."""

    def chunk(parts: list[Json], written: int, **more: Any) -> bytes:
        usage = {"promptTokenCount": 9, "candidatesTokenCount": written, "totalTokenCount": 9 + written}
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **more}
        return sse({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"})

    yield from (chunk([{"text": THOUGHT, "thought": True}], n) for n in range(THOUGHTS))
    yield from (chunk([{"text": WORD}], THOUGHTS + n) for n in range(TEXTS))
    calls = [{"functionCall": {"id": f"call_{n}", "name": "f", "args": json.loads(ARGUMENTS)}} for n in range(CALLS)]
    yield chunk(calls, 2000, finishReason="STOP")


def converse() -> Iterator[bytes]:
    """Bedrock ConverseStream."""

    def frame(kind: str, **values: Any) -> bytes:
        headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
        return encode_message(headers, json.dumps({**values, "p": "abcdefghij"}, separators=(",", ":")).encode())

    def deltas(index: int, given: Iterator[Json]) -> Iterator[bytes]:
        yield from (frame("contentBlockDelta", contentBlockIndex=index, delta=delta) for delta in given)
        yield frame("contentBlockStop", contentBlockIndex=index)

    yield frame("messageStart", role="assistant")
    yield from deltas(0, ({"reasoningContent": {"text": THOUGHT}} for _ in range(THOUGHTS)))
    yield from deltas(1, ({"text": WORD} for _ in range(TEXTS)))
    for n in range(CALLS):
        yield frame("contentBlockStart", contentBlockIndex=2 + n, start={"toolUse": {"toolUseId": f"call_{n}", "name": "f"}})
        yield from deltas(2 + n, ({"toolUse": {"input": piece}} for piece in pieces()))
    yield frame("messageStop", stopReason="tool_use")
    yield frame("metadata", usage={"inputTokens": 9, "outputTokens": 2000, "totalTokens": 2009}, metrics={"latencyMs": 1})


def invoke() -> Iterator[bytes]:
    """Bedrock Invoke: the Messages events, base64 in AWS frames."""
    for event in messages():
        data = event.partition(b"data: ")[2].strip()
        headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
        yield encode_message(headers, json.dumps({"bytes": b64encode(data).decode()}).encode())


def ollama() -> Iterator[bytes]:
    """Ollama: calls come whole."""

    def line(message: Json, **more: Any) -> bytes:
        return (
            json.dumps({"model": "m", "created_at": "t", "message": {"role": "assistant", **message}, "done": False, **more}).encode()
            + b"\n"
        )

    yield from (line({"content": "", "thinking": THOUGHT}) for _ in range(THOUGHTS))
    yield from (line({"content": WORD}) for _ in range(TEXTS))
    calls = [{"id": f"call_{n}", "function": {"name": "f", "arguments": json.loads(ARGUMENTS)}} for n in range(CALLS)]
    yield line({"content": "", "tool_calls": calls})
    yield line({"content": ""}, done=True, done_reason="stop", prompt_eval_count=9, eval_count=2000)


WORKLOADS: Final[dict[str, Callable[[], Iterator[bytes]]]] = {
    "messages": messages,
    "chat": chat,
    "responses": responses,
    "gemini": gemini,
    "converse": converse,
    "invoke": invoke,
    "ollama": ollama,
}


def chunked(events: list[bytes], size: int = 16 * 1024) -> list[bytes]:
    """The same bytes in chunks of `size`, as a fast network gives them."""
    body = b"".join(events)
    return [body[at : at + size] for at in range(0, len(body), size)]
