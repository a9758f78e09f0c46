"""The cases: bytes on a wire, written after the conditions of CASES.md (numbers) and
vectors/faults.json (names); what must be told."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from lab.peers.told import Want, brief
from tests.support.response_bodies import (
    CALL,
    COMPLETE_BODY,
    DONE,
    HELLO,
    HELLO_TEXT,
    LAST,
    MESSAGE,
    OPENED,
    OVERLOADED,
    PING,
    START,
    arguments,
    aws,
    block,
    converse,
    error_body,
    finish,
    named,
    response_end,
    sse,
    stop,
    text,
)
from tests.support.scripted_server import (
    END,
    FIN,
    HANG,
    RST,
    Repeat,
    Script,
    Step,
    chunk,
    complete_response,
    head,
)


class Case(NamedTuple):
    """One condition. framing: only how bytes become events is asked, so readers of SSE take part
    too."""

    id: str
    source: str
    wire: str
    condition: str
    scripts: tuple[Script, ...]
    want: Want
    retries: int = 0
    framing: bool = False
    replay: bool = False
    """The conversation goes on: what counts is how the response is sent back."""
    leave: bool = False
    """The reader leaves when it has seen some text."""
    patience: float = 30.0
    """Seconds after which it counts as a hang; every library was told to allow one second of
    silence."""


AWS: Final = "application/vnd.amazon.eventstream"
TYPES: Final = {"converse": AWS, "ollama": "application/x-ndjson"}


def streamed(wire: str, *pieces: bytes, then: Sequence[Step] = (END,)) -> Script:
    """A stream of these pieces, one HTTP chunk each."""
    return [
        head(content_type=TYPES.get(wire, "text/event-stream")),
        *(chunk(piece) for piece in pieces),
        *then,
    ]


def case(
    id: str,  # noqa: A002
    source: str,
    wire: str,
    condition: str,
    *pieces: bytes,
    want: Want,
    then: Sequence[Step] = (END,),
    **more: Any,
) -> Case:
    """A case of one answer."""
    return Case(id, source, wire, condition, (streamed(wire, *pieces, then=then),), want, **more)


def raw(
    id: str,  # noqa: A002
    source: str,
    wire: str,
    condition: str,
    *scripts: Script,
    want: Want,
    **more: Any,
) -> Case:
    """A case whose HTTP is written out."""
    return Case(id, source, wire, condition, scripts, want, **more)


ALL: Final = Want(text=HELLO_TEXT)
ERROR: Final = Want(error="")
BUSY: Final = Want(error="overloaded")


# --- small answers: Chat with its whole envelope, which some readers insist on, and the wires that
# bodies.py does not write ---


def part(delta: Any = None, finish_reason: str | None = None) -> bytes:
    """A chunk of one choice."""
    choice = {"index": 0, "delta": delta or {}, "logprobs": None, "finish_reason": finish_reason}
    return sse({**ENVELOPE, "choices": [choice]})


def calls(*pieces: Any) -> bytes:
    """A chunk with pieces of calls."""
    return part({"tool_calls": list(pieces)})


ENVELOPE: Final = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
CHAT: Final = (
    part({"role": "assistant", "content": "Hello"})
    + part({"content": " there"})
    + part(finish_reason="stop")
    + DONE
)


def gemini(*parts: Any, finish_reason: str | None = None, **more: Any) -> bytes:
    """A chunk of one candidate."""
    candidate = {
        "index": 0,
        "content": {"role": "model", "parts": list(parts)},
        **({"finishReason": finish_reason} if finish_reason else {}),
    }
    return sse({"candidates": [candidate], "responseId": "r-1", "modelVersion": "m-1", **more})


def ollama(message: Any, *, done: bool = False, **more: Any) -> bytes:
    """A line."""
    head_ = {"model": "m-1", "created_at": "2026-01-01T00:00:00Z"}
    tail = {"done_reason": "stop", "prompt_eval_count": 7, "eval_count": 5} if done else {}
    return (
        json.dumps(
            {**head_, "message": {"role": "assistant", **message}, "done": done, **tail, **more}
        ).encode()
        + b"\n"
    )


def item(index: int, kind: str, event: str = "added", **values: Any) -> bytes:
    """An output item of Responses begins or ends."""
    return named(f"response.output_item.{event}", output_index=index, item={"type": kind, **values})


def function(index: int, name: str, pieces: Sequence[str]) -> bytes:
    """A whole function call of Responses."""
    call = {
        "id": f"fc_{index}",
        "call_id": f"call_{index}",
        "name": name,
        "arguments": "",
        "status": "in_progress",
    }
    deltas = [
        named(
            "response.function_call_arguments.delta",
            item_id=f"fc_{index}",
            output_index=index,
            delta=piece,
        )
        for piece in pieces
    ]
    done = named(
        "response.function_call_arguments.done",
        item_id=f"fc_{index}",
        output_index=index,
        name=name,
        arguments="".join(pieces),
    )
    ended = item(
        index,
        "function_call",
        "done",
        **{**call, "arguments": "".join(pieces), "status": "completed"},
    )
    return item(index, "function_call", **call) + b"".join(deltas) + done + ended


MESSAGE_ITEM: Final = {"id": "msg_1", "role": "assistant", "content": [], "status": "in_progress"}
PART: Final = {"type": "output_text", "text": "", "annotations": []}
TEXT_PLACE: Final = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
FULL: Final = {
    "object": "response",
    "created_at": 1,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 7,
        "output_tokens": 5,
        "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
CREATED: Final = named(
    "response.created",
    response={
        **FULL,
        "id": "resp_1",
        "model": "m-1",
        "status": "in_progress",
        "output": [],
        "usage": None,
    },
)
"""With all fields that the service sends: a reader that validates them insists on those."""

RESPONSES_HELLO: Final = (
    CREATED
    + item(0, "message", **MESSAGE_ITEM)
    + named("response.content_part.added", **TEXT_PLACE, part=PART)
    + named("response.output_text.delta", **TEXT_PLACE, delta="Hello", logprobs=[])
    + named("response.output_text.delta", **TEXT_PLACE, delta=" there", logprobs=[])
)
SAID_ITEM: Final = {
    **MESSAGE_ITEM,
    "type": "message",
    "status": "completed",
    "content": [{**PART, "text": HELLO_TEXT}],
}
RESPONSES_TAIL: Final = (
    named("response.output_text.done", **TEXT_PLACE, text=HELLO_TEXT, logprobs=[])
    + named("response.content_part.done", **TEXT_PLACE, part={**PART, "text": HELLO_TEXT})
    + item(
        0, "message", "done", **{key: value for key, value in SAID_ITEM.items() if key != "type"}
    )
)
RESPONSES_END: Final = response_end("completed", **{**FULL, "output": [SAID_ITEM]})
RESPONSES: Final = RESPONSES_HELLO + RESPONSES_TAIL + RESPONSES_END
GEMINI_HELLO: Final = gemini({"text": "Hello"}) + gemini({"text": " there"})
GEMINI: Final = GEMINI_HELLO + gemini({"text": ""}, finish_reason="STOP")
CONVERSE_HELLO: Final = converse("messageStart", role="assistant") + converse(
    "contentBlockDelta", contentBlockIndex=0, delta={"text": HELLO_TEXT}
)
CONVERSE_USAGE: Final = converse(
    "metadata",
    usage={"inputTokens": 7, "outputTokens": 5, "totalTokens": 12},
    metrics={"latencyMs": 1},
)
CONVERSE_END: Final = (
    converse("contentBlockStop", contentBlockIndex=0)
    + converse("messageStop", stopReason="end_turn")
    + CONVERSE_USAGE
)
CONVERSE: Final = CONVERSE_HELLO + CONVERSE_END
OLLAMA_HELLO: Final = ollama({"content": "Hello"}) + ollama({"content": " there"})
OLLAMA: Final = OLLAMA_HELLO + ollama({"content": ""}, done=True)

HELLOS: Final = {
    "messages": HELLO,
    "chat": part({"role": "assistant", "content": "Hello"}) + part({"content": " there"}),
    "responses": RESPONSES_HELLO,
    "gemini": GEMINI_HELLO,
    "converse": CONVERSE_HELLO,
    "ollama": OLLAMA_HELLO,
}
WHOLES: Final = {
    "messages": MESSAGE,
    "chat": CHAT,
    "responses": RESPONSES,
    "gemini": GEMINI,
    "converse": CONVERSE,
    "ollama": OLLAMA,
}
WIRES: Final = tuple(WHOLES)


def thought(index: int, said: str, signature: str) -> bytes:
    """A signed thought of Messages."""
    deltas = [{"type": "thinking_delta", "thinking": said}] if said else []
    pieces = [
        named("content_block_delta", index=index, delta=delta)
        for delta in (*deltas, {"type": "signature_delta", "signature": signature})
    ]
    return block(index, "thinking", thinking="", signature="") + b"".join(pieces) + stop(index)


def tool(index: int, name: str, *pieces: str, kind: str = "tool_use") -> bytes:
    """A call of Messages."""
    return (
        block(
            index,
            kind,
            id=f"{'srv' if kind == 'server_tool_use' else ''}toolu_{index}",
            name=name,
            input={},
        )
        + b"".join(arguments(piece, index) for piece in pieces)
        + stop(index)
    )


def index_call(
    index: int | None, name: str | None = None, ident: str | None = None, pieces: Any = ""
) -> dict[str, Any]:
    """A piece of a call of Chat."""
    named_ = {"name": name} if name else {}
    return {
        **({} if index is None else {"index": index}),
        **({"id": ident, "type": "function"} if ident else {}),
        "function": {**named_, "arguments": pieces},
    }


F: Final = ("f", {"a": 1})
G: Final = ("g", {"b": 2})
CALLS_END: Final = part(finish_reason="tool_calls") + DONE
PAGE: Final = (
    b"<html><head><title>Just a moment</title></head><body>" + b"x" * 400 + b"</body></html>"
)

BASELINE: Final = tuple(
    case(f"plain-{wire}", "", wire, "an ordinary response", WHOLES[wire], want=ALL)
    for wire in WIRES
)

ENDS: Final = (
    *(
        case(
            f"eof-{wire}",
            "29; eof-no-terminal-clean",
            wire,
            "the body ends after some text, without the terminal event",
            HELLOS[wire],
            want=ERROR,
        )
        for wire in WIRES
    ),
    case(
        "eof-mid-chunk",
        "eof-mid-chunk",
        "chat",
        "connection closed inside an HTTP chunk",
        HELLOS["chat"],
        want=ERROR,
        then=(b"400\r\ndata: {", FIN),
    ),
    case(
        "eof-mid-frame",
        "",
        "converse",
        "the body ends inside a frame",
        CONVERSE_HELLO,
        CONVERSE_END[:40],
        want=ERROR,
    ),
    case(
        "rst",
        "rst-mid",
        "messages",
        "connection reset after some text",
        HELLO,
        want=ERROR,
        then=(RST,),
    ),
    case(
        "30",
        "30; no-final-blank",
        "messages",
        "the last blank line is missing, the rest is complete",
        HELLO,
        stop(),
        finish(),
        LAST[:-1],
        want=ALL,
    ),
    case(
        "30-responses",
        "30; no-final-blank",
        "responses",
        "the last blank line after response.completed is missing: the response is complete",
        RESPONSES[:-1],
        want=Want(text=HELLO_TEXT, tokens=(7, 5)),
    ),
    case(
        "done-missing",
        "done-missing",
        "chat",
        "finish_reason was sent, [DONE] was not",
        CHAT.removesuffix(DONE),
        want=ALL,
    ),
    case(
        "10",
        "10",
        "chat",
        "arguments end inside a string, then [DONE]",
        calls(index_call(0, "f", "a", '{"a": "x')),
        DONE,
        want=Want(calls=(), may_fail=True),
    ),
    case(
        "args-cut",
        "tool-args-cut",
        "messages",
        "arguments truncated by max_tokens: no callable call",
        CALL,
        arguments('{"city": "Par'),
        stop(),
        finish("max_tokens"),
        LAST,
        want=Want(cut=True),
    ),
    case(
        "after-terminal",
        "after-terminal",
        "messages",
        "the whole stream is sent twice",
        MESSAGE,
        LAST,
        want=ALL,
    ),
)

NO_STREAMS: Final = (
    *(
        raw(
            f"html-{wire}",
            "html-200",
            wire,
            "status 200, a page of HTML",
            complete_response(PAGE, content_type="text/html"),
            want=ERROR,
        )
        for wire in ("messages", "chat", "responses", "gemini")
    ),
    raw(
        "json-error",
        "json-200",
        "messages",
        "status 200, an error as JSON",
        complete_response(
            error_body("overloaded_error", "Overloaded"), content_type="application/json"
        ),
        want=BUSY,
    ),
    raw(
        "json-error-chat",
        "json-200",
        "chat",
        "status 200, an error as JSON",
        complete_response(
            b'{"error":{"message":"server overloaded","type":"server_error"}}',
            content_type="application/json",
        ),
        want=BUSY,
    ),
    raw(
        "json-whole",
        "json-200-ok",
        "messages",
        "status 200, a complete JSON response instead of a stream",
        complete_response(COMPLETE_BODY, content_type="application/json"),
        want=ALL,
    ),
    *(
        case(f"empty-{wire}", "empty-200", wire, "status 200, an empty body", want=ERROR)
        for wire in ("messages", "chat", "responses", "gemini", "converse")
    ),
    case(
        "comments",
        "only-comments",
        "chat",
        "nothing but comments",
        b": ping\n\n",
        b": ping\n\n",
        want=ERROR,
    ),
)

IN_BAND: Final = (
    case(
        "31",
        "31; error-event",
        "messages",
        "an overloaded error after some text",
        HELLO,
        OVERLOADED,
        want=BUSY,
    ),
    case(
        "31-first",
        "31; error-event-first",
        "messages",
        "an overloaded error as the first event",
        OVERLOADED,
        want=BUSY,
    ),
    case(
        "32",
        "32; error-in-chunk",
        "chat",
        "an error chunk in mid-stream",
        HELLOS["chat"],
        sse({"error": {"message": "overloaded upstream", "code": 502}, "choices": []}),
        DONE,
        want=BUSY,
    ),
    case(
        "32-finish",
        "32",
        "chat",
        "an error chunk with finish_reason error (OpenRouter)",
        HELLOS["chat"],
        sse(
            {
                **ENVELOPE,
                "error": {"code": 502, "message": "overloaded upstream"},
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
            }
        ),
        DONE,
        want=BUSY,
    ),
    case(
        "failed",
        "response-failed",
        "responses",
        "response.failed after some text",
        RESPONSES_HELLO,
        response_end("failed", **FULL, error={"code": "server_error", "message": "overloaded"}),
        want=BUSY,
    ),
    case(
        "incomplete",
        "response-failed",
        "responses",
        "response.incomplete: the reason is reported",
        RESPONSES_HELLO,
        RESPONSES_TAIL,
        response_end(
            "incomplete",
            **{**FULL, "output": [SAID_ITEM]},
            incomplete_details={"reason": "max_output_tokens"},
        ),
        want=Want(text=HELLO_TEXT, stop=("length", "max_output_tokens", "incomplete")),
    ),
    case(
        "28",
        "28; aws-exception",
        "converse",
        "an exception frame in mid-stream",
        CONVERSE_HELLO,
        aws(
            {"message": "overloaded"},
            message_type="exception",
            exception_type="throttlingException",
            content_type="application/json",
        ),
        want=BUSY,
    ),
    case(
        "33",
        "33",
        "gemini",
        "MALFORMED_FUNCTION_CALL and no content",
        sse(
            {
                "candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}],
                "modelVersion": "m-1",
            }
        ),
        want=Want(text="", stop=("malformed_function_call", "error"), may_fail=True),
    ),
    case(
        "blocked",
        "33",
        "gemini",
        "the prompt was blocked: no candidates",
        sse({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m-1"}),
        want=Want(text="", stop=("content_filter", "safety", "blocked")),
    ),
)

PAYLOADS: Final = (
    case(
        "bad-json",
        "bad-json",
        "messages",
        "one event whose JSON is broken",
        HELLO,
        b'event: content_block_delta\ndata: {"type": "content_block_delta", oops\n\n',
        LAST,
        want=ERROR,
    ),
    case(
        "bad-json-chat",
        "bad-json",
        "chat",
        "one event whose JSON is broken",
        HELLOS["chat"],
        b"data: {oops\n\n",
        part(finish_reason="stop"),
        DONE,
        want=ERROR,
    ),
    case(
        "bad-json-gemini",
        "bad-json",
        "gemini",
        "one event whose JSON is broken",
        GEMINI_HELLO,
        b"data: {oops\n\n",
        gemini({"text": ""}, finish_reason="STOP"),
        want=ERROR,
    ),
    case(
        "scalar",
        "json-scalar",
        "chat",
        "an event that is a number",
        HELLOS["chat"],
        b"data: 1\n\n",
        part(finish_reason="stop"),
        DONE,
        want=ERROR,
    ),
    case(
        "deep",
        "deep-json",
        "messages",
        "JSON 100,000 levels deep",
        HELLO,
        b'event: x\ndata: {"type":"content_block_delta","index":0,"delta":'
        + b'{"a":' * 100_000
        + b"1"
        + b"}" * 100_001
        + b"\n\n",
        want=ERROR,
    ),
    case(
        "35",
        "35; unknown-event",
        "messages",
        "an unknown event, an id that is not msg_…",
        MESSAGE.replace(b'"msg_1"', b'"gen-77"').replace(LAST, named("brand_new", a=1) + LAST),
        want=ALL,
    ),
    case(
        "35-responses",
        "35; unknown-event",
        "responses",
        "an unknown event in mid-stream",
        RESPONSES_HELLO,
        named("response.brand_new.delta", output_index=0, delta="?"),
        RESPONSES_TAIL,
        RESPONSES_END,
        want=ALL,
    ),
    case(
        "unknown-block",
        "unknown-block",
        "messages",
        "a block of an unknown kind before the text",
        START,
        block(0, "hologram", depth=3),
        stop(),
        block(1),
        text(HELLO_TEXT, 1),
        stop(1),
        finish(),
        LAST,
        want=ALL,
    ),
    case(
        "unknown-delta",
        "unknown-delta",
        "messages",
        "a delta of an unknown kind",
        HELLO,
        named("content_block_delta", index=0, delta={"type": "new_delta"}),
        stop(),
        finish(),
        LAST,
        want=ALL,
    ),
    case(
        "34",
        "34",
        "chat",
        "choices null, then choices [], then delta null",
        sse({**ENVELOPE, "choices": None}),
        sse({**ENVELOPE, "choices": []}),
        HELLOS["chat"],
        sse({**ENVELOPE, "choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}),
        DONE,
        want=ALL,
    ),
    case(
        "nan",
        "",
        "chat",
        "NaN in a field that nobody reads",
        HELLOS["chat"],
        part(finish_reason="stop").replace(b'"created": 1', b'"created": 1, "score": NaN'),
        DONE,
        want=ALL,
    ),
    case(
        "surrogates",
        "",
        "chat",
        "an emoji whose two halves are in two deltas",
        part({"content": "@"}).replace(b"@", b"\\ud83d"),
        part({"content": "@"}).replace(b"@", b"\\ude00"),
        part(finish_reason="stop"),
        DONE,
        want=Want(text="😀"),
    ),
)

STATES: Final = (
    case(
        "dup-start",
        "dup-start",
        "messages",
        "a block starts twice",
        HELLO,
        block(0),
        text("again"),
        stop(),
        finish(),
        LAST,
        want=ERROR,
    ),
    case(
        "no-start",
        "delta-no-start",
        "messages",
        "text of a block that never started",
        START,
        text("lost"),
        finish(),
        LAST,
        want=ERROR,
    ),
    case(
        "after-stop",
        "delta-after-stop",
        "messages",
        "text of a block that has ended",
        HELLO,
        stop(),
        text("late"),
        finish(),
        LAST,
        want=ERROR,
    ),
    case(
        "negative",
        "index-negative",
        "messages",
        "index -1",
        START,
        block(-1),
        text("x", -1),
        stop(-1),
        finish(),
        LAST,
        want=ERROR,
    ),
    case(
        "string",
        "index-string",
        "messages",
        'the index is the text "0": accepted',
        START,
        block(0),
        text("Hello", "0"),
        text(" there", "0"),
        stop(),
        finish(),
        LAST,
        want=ALL,
    ),
    case(
        "jump",
        "index-jump",
        "messages",
        "index 7 after 0",
        START,
        block(0),
        text("Hello"),
        stop(),
        block(7),
        text(" there", 7),
        stop(7),
        finish(),
        LAST,
        want=ALL,
    ),
    case(
        "interleaved",
        "interleaved",
        "messages",
        "deltas of two blocks alternate",
        START,
        block(0),
        block(1),
        text("Hel"),
        text("!", 1),
        text("lo there"),
        stop(1),
        stop(),
        finish(),
        LAST,
        want=Want(text=HELLO_TEXT + "!"),
    ),
)

CALLS: Final = (
    case(
        "1",
        "1",
        "responses",
        "two calls, output_index 1 and 2",
        CREATED,
        item(0, "reasoning", id="rs_1", summary=[]),
        item(0, "reasoning", "done", id="rs_1", summary=[]),
        function(1, "f", ['{"a"', ":1}"]),
        function(2, "g", ['{"b":2}']),
        response_end("completed", **FULL),
        want=Want(calls=(F, G)),
    ),
    case(
        "2",
        "2",
        "ollama",
        "two calls in one line, without index",
        ollama(
            {
                "content": "",
                "tool_calls": [
                    {"function": {"name": "f", "arguments": {"a": 1}}},
                    {"function": {"name": "g", "arguments": {"b": 2}}},
                ],
            }
        ),
        ollama({"content": ""}, done=True),
        want=Want(calls=(F, G)),
    ),
    case(
        "3",
        "3; tool-same-index",
        "chat",
        "two calls with the same index and different ids",
        calls(index_call(0, "f", "a", '{"a":1}')),
        calls(index_call(0, "g", "b", '{"b":2}')),
        CALLS_END,
        want=Want(calls=(F, G)),
    ),
    case(
        "4",
        "4",
        "chat",
        "two calls with the same index and no id: complete JSON, then a new name",
        calls(index_call(0, "f", None, '{"a":1}')),
        calls(index_call(0, "g", None, '{"b":2}')),
        CALLS_END,
        want=Want(calls=(F, G)),
    ),
    case(
        "5",
        "5",
        "chat",
        "fragments of two calls alternate, with ids only in the first",
        calls(index_call(0, "f", "a", '{"a"')),
        calls(index_call(1, "g", "b", '{"b"')),
        calls(index_call(0, pieces=":1}")),
        calls(index_call(1, pieces=":2}")),
        CALLS_END,
        want=Want(calls=(F, G)),
    ),
    case(
        "6",
        "6",
        "messages",
        "a call without arguments: no delta at all",
        START,
        tool(0, "f"),
        finish("tool_use"),
        LAST,
        want=Want(calls=(("f", {}),)),
    ),
    case(
        "6-chat",
        "6",
        "chat",
        "a call whose arguments are null",
        calls(index_call(0, "f", "a", None)),
        CALLS_END,
        want=Want(calls=(("f", {}),)),
    ),
    case(
        "9",
        "9",
        "messages",
        "a search by the server, then text",
        START,
        tool(0, "web_search", '{"query"', ':"x"}', kind="server_tool_use"),
        block(1, "web_search_tool_result", tool_use_id="srvtoolu_0", content=[]),
        stop(1),
        block(2),
        text(HELLO_TEXT, 2),
        stop(2),
        finish(),
        LAST,
        want=Want(text=HELLO_TEXT, calls=()),
    ),
    case(
        "8",
        "8",
        "gemini",
        "one call with all its arguments",
        gemini({"functionCall": {"name": "f", "args": {"a": 1}}}, finish_reason="STOP"),
        want=Want(calls=(F,)),
    ),
    case(
        "11",
        "11",
        "gemini",
        "a call with a signature, then a chunk that only finishes",
        gemini({"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"}),
        gemini({"text": ""}, finish_reason="STOP"),
        want=Want(calls=(F,), signatures=("c2ln",)),
    ),
    case(
        "object",
        "tool-args-object",
        "chat",
        "arguments as an object, not as text",
        calls(index_call(0, "f", "a", {"a": 1})),
        CALLS_END,
        want=Want(calls=(F,)),
    ),
    case(
        "name-late",
        "tool-name-late",
        "chat",
        "the name is in the second fragment",
        calls({"index": 0, "id": "a", "type": "function", "function": {"arguments": ""}}),
        calls(index_call(0, "f", None, '{"a":1}')),
        CALLS_END,
        want=Want(calls=(F,)),
    ),
    case(
        "converse-call",
        "",
        "converse",
        "a call in fragments",
        converse("messageStart", role="assistant"),
        converse(
            "contentBlockStart",
            contentBlockIndex=0,
            start={"toolUse": {"toolUseId": "t", "name": "f"}},
        ),
        converse("contentBlockDelta", contentBlockIndex=0, delta={"toolUse": {"input": '{"a"'}}),
        converse("contentBlockDelta", contentBlockIndex=0, delta={"toolUse": {"input": ":1}"}}),
        converse("contentBlockStop", contentBlockIndex=0),
        converse("messageStop", stopReason="tool_use"),
        CONVERSE_USAGE,
        want=Want(calls=(F,)),
    ),
)

REASONING: Final = (
    case(
        "12",
        "12",
        "messages",
        "reasoning, call, reasoning, call: in this order",
        START,
        thought(0, "first", "s1"),
        tool(1, "f", '{"a":1}'),
        thought(2, "second", "s2"),
        tool(3, "g", '{"b":2}'),
        finish("tool_use"),
        LAST,
        want=Want(
            calls=(F, G), order=("reasoning", "call", "reasoning", "call"), signatures=("s1", "s2")
        ),
    ),
    case(
        "13",
        "13",
        "messages",
        "call, call, text: in this order",
        START,
        tool(0, "f", '{"a":1}'),
        tool(1, "g", '{"b":2}'),
        block(2),
        text(HELLO_TEXT, 2),
        stop(2),
        finish("tool_use"),
        LAST,
        want=Want(text=HELLO_TEXT, calls=(F, G), order=("call", "call", "text")),
    ),
    case(
        "16",
        "16",
        "messages",
        "a signature without reasoning text is kept",
        START,
        thought(0, "", "s1"),
        block(1),
        text(HELLO_TEXT, 1),
        stop(1),
        finish(),
        LAST,
        want=Want(text=HELLO_TEXT, signatures=("s1",)),
    ),
    case(
        "17",
        "17",
        "converse",
        "the same on Converse",
        converse("messageStart", role="assistant"),
        converse(
            "contentBlockDelta",
            contentBlockIndex=0,
            delta={"reasoningContent": {"signature": "s1"}},
        ),
        converse("contentBlockStop", contentBlockIndex=0),
        converse("contentBlockDelta", contentBlockIndex=1, delta={"text": HELLO_TEXT}),
        converse("contentBlockStop", contentBlockIndex=1),
        converse("messageStop", stopReason="end_turn"),
        CONVERSE_USAGE,
        want=Want(text=HELLO_TEXT, signatures=("s1",)),
    ),
    case(
        "23",
        "23",
        "gemini",
        "three calls, the first one signed",
        gemini(
            {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "g", "args": {"b": 2}}},
            {"functionCall": {"name": "f", "args": {"a": 1}}},
            finish_reason="STOP",
        ),
        want=Want(calls=(F, G, F), signatures=("c2ln",)),
    ),
    case(
        "24",
        "24",
        "gemini",
        "a signature on an empty text after the response",
        gemini({"text": "why", "thought": True}),
        gemini({"text": HELLO_TEXT}),
        gemini({"text": "", "thoughtSignature": "c2ln"}, finish_reason="STOP"),
        want=Want(text=HELLO_TEXT, reasoning="why", signatures=("c2ln",)),
    ),
    case(
        "reasoning",
        "25",
        "chat",
        "reasoning_content and content in one response",
        part({"reasoning_content": "why"}),
        HELLOS["chat"],
        part(finish_reason="stop"),
        DONE,
        want=Want(text=HELLO_TEXT, reasoning="why"),
    ),
)


def replayed(id: str, source: str, condition: str, *pieces: bytes, sent: tuple[str, ...]) -> Case:  # noqa: A002
    """An answer of Messages, and how its turn must stand in the next request."""
    return raw(
        id,
        source,
        "messages",
        condition,
        streamed("messages", START, *pieces, finish("tool_use"), LAST),
        complete_response(MESSAGE),
        want=Want(sent=sent),
        replay=True,
    )


REPLAYS: Final = (
    replayed(
        "r-12",
        "12",
        "reasoning, call, reasoning, call: sent back in order, signatures with their reasoning",
        thought(0, "first", "s1"),
        tool(1, "f", '{"a":1}'),
        thought(2, "second", "s2"),
        tool(3, "g", '{"b":2}'),
        sent=("thinking first s1", 'call f {"a":"1"}', "thinking second s2", 'call g {"b":"2"}'),
    ),
    replayed(
        "r-13",
        "13",
        "text, call, text, call: sent back in this order",
        block(0) + text("one") + stop(),
        tool(1, "f", '{"a":1}'),
        block(2) + text("two", 2) + stop(2),
        tool(3, "g", '{"b":2}'),
        sent=("text one", 'call f {"a":"1"}', "text two", 'call g {"b":"2"}'),
    ),
    replayed(
        "r-16",
        "16",
        "a signature with empty reasoning: sent back",
        thought(0, "", "s1"),
        tool(1, "f", '{"a":1}'),
        sent=("thinking  s1", 'call f {"a":"1"}'),
    ),
    replayed(
        "r-redacted",
        "15",
        "redacted reasoning between two others: sent back at its place",
        thought(0, "first", "s1"),
        block(1, "redacted_thinking", data="c2VhbGVk") + stop(1),
        thought(2, "second", "s2"),
        tool(3, "f", '{"a":1}'),
        sent=("thinking first s1", "redacted c2VhbGVk", "thinking second s2", 'call f {"a":"1"}'),
    ),
    replayed(
        "r-7",
        "6, 7",
        "a call without arguments: sent back with an empty input",
        tool(0, "f"),
        sent=("call f {}",),
    ),
    replayed(
        "r-46",
        "46",
        "arguments in an unusual order, 1.0 and 1e5: the same text is sent back, or the cache of "
        "the prompt is lost",
        tool(0, "f", '{"b":1.0,', '"a":1e5}'),
        sent=('call f {"b":"1.0","a":"1e5"}',),
    ),
)

USAGE: Final = (
    case(
        "43",
        "43",
        "messages",
        "usage is sent several times, cumulative",
        START,
        block(0),
        text(HELLO_TEXT),
        stop(),
        finish(tokens=3),
        finish(tokens=5),
        LAST,
        want=Want(text=HELLO_TEXT, tokens=(7, 5)),
    ),
    case(
        "42",
        "42",
        "messages",
        "the client leaves after the first event: the input tokens are known",
        HELLO,
        want=Want(tokens=(7, 1)),
        then=(HANG,),
        leave=True,
    ),
    case(
        "usage-last",
        "34",
        "chat",
        "usage in a last chunk without choices",
        HELLOS["chat"],
        part(finish_reason="stop"),
        sse(
            {
                **ENVELOPE,
                "choices": [],
                "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
            }
        ),
        DONE,
        want=Want(text=HELLO_TEXT, tokens=(7, 5)),
    ),
)

LINES: Final = (
    case(
        "bytes",
        "47",
        "chat",
        "every byte in a chunk of its own, characters of four bytes",
        *(
            bytes([byte])
            for byte in part({"content": "한국 😀"}).replace(
                b"\\ud55c\\uad6d \\ud83d\\ude00", "한국 😀".encode()
            )
            + part(finish_reason="stop")
            + DONE
        ),
        want=Want(text="한국 😀"),
        framing=True,
    ),
    case(
        "u2028",
        "",
        "chat",
        "U+2028 inside the JSON, unescaped",
        part({"content": "@"}).replace(b"@", "a\u2028b".encode()),
        part(finish_reason="stop"),
        DONE,
        want=Want(text="a\u2028b"),
        framing=True,
    ),
    case(
        "bom", "", "chat", "a byte order mark first", b"\xef\xbb\xbf" + CHAT, want=ALL, framing=True
    ),
    case(
        "cr",
        "",
        "chat",
        "lines end with CR only",
        CHAT.replace(b"\n", b"\r"),
        want=ALL,
        framing=True,
    ),
    case(
        "no-space",
        "",
        "chat",
        "no space after data:",
        CHAT.replace(b"data: ", b"data:"),
        want=ALL,
        framing=True,
    ),
    case(
        "no-space-gemini",
        "",
        "gemini",
        "no space after data:",
        GEMINI.replace(b"data: ", b"data:"),
        want=ALL,
    ),
    case(
        "several",
        "",
        "chat",
        "one event in several data lines",
        CHAT.replace(b', "delta"', b',\ndata: "delta"'),
        want=ALL,
        framing=True,
    ),
    case(
        "id",
        "",
        "chat",
        "an id line first, then keep-alive blank lines",
        b"id: 7\n" + CHAT.replace(b"\n\n", b"\n\n\n\n"),
        want=ALL,
        framing=True,
    ),
    case(
        "retry",
        "",
        "chat",
        "a retry line in a block of its own",
        b"retry: 3000\n\n" + CHAT,
        want=ALL,
        framing=True,
    ),
    case(
        "utf8",
        "",
        "chat",
        "one byte in the text that is not UTF-8",
        part({"content": "a@b"}).replace(b"@", b"\xff"),
        part(finish_reason="stop"),
        DONE,
        want=Want(text="a\ufffdb"),
        framing=True,
    ),
    raw(
        "charset",
        "ct-charset-1252",
        "chat",
        "charset=windows-1252, the bytes are UTF-8",
        [
            head(content_type="text/event-stream; charset=windows-1252"),
            chunk(
                part({"content": "@"}).replace(b"@", "Grüße".encode())
                + part(finish_reason="stop")
                + DONE
            ),
            END,
        ],
        want=Want(text="Grüße"),
        framing=True,
    ),
    raw(
        "no-type",
        "ct-missing",
        "chat",
        "no content-type",
        complete_response(CHAT, content_type=None),
        want=ALL,
        framing=True,
    ),
    raw(
        "type-case",
        "ct-case",
        "chat",
        "Text/Event-Stream; Charset=UTF-8",
        complete_response(CHAT, content_type="Text/Event-Stream; Charset=UTF-8"),
        want=ALL,
        framing=True,
    ),
    raw(
        "gzip",
        "gzip",
        "chat",
        "compressed with gzip",
        complete_response(gzip.compress(CHAT), content_encoding="gzip"),
        want=ALL,
        framing=True,
    ),
    case(
        "done-in-text",
        "",
        "chat",
        "the model writes [DONE] in its text",
        part({"content": "say [DONE] or"}),
        part({"content": " not"}),
        part(finish_reason="stop"),
        DONE,
        want=Want(text="say [DONE] or not"),
    ),
    case(
        "data-only",
        "",
        "messages",
        "events without an event: line",
        b"".join(line + b"\n\n" for line in MESSAGE.split(b"\n") if line.startswith(b"data: ")),
        want=ALL,
    ),
)

HTTP: Final = (
    raw(
        "429-hour",
        "429-hour",
        "messages",
        "429, retry-after: 3600: not waited for",
        complete_response(
            error_body("rate_limit_error"), "429 Too Many", "application/json", retry_after="3600"
        ),
        want=Want(error="", requests=1),
        retries=2,
    ),
    raw(
        "429-then-ok",
        "429-s",
        "messages",
        "429, retry-after: 1, then a response",
        complete_response(
            error_body("rate_limit_error"), "429 Too Many", "application/json", retry_after="1"
        ),
        complete_response(MESSAGE),
        want=Want(text=HELLO_TEXT, requests=2),
        retries=2,
    ),
    raw(
        "529-then-ok",
        "529",
        "messages",
        "529, then a response",
        complete_response(error_body("overloaded_error"), "529 Overloaded", "application/json"),
        complete_response(MESSAGE),
        want=Want(text=HELLO_TEXT, requests=2),
        retries=2,
    ),
    raw(
        "36",
        "36; fail-after-first-event",
        "messages",
        "an error after text: the request is not sent again",
        streamed("messages", HELLO, OVERLOADED),
        complete_response(MESSAGE),
        want=Want(error="", requests=1),
        retries=2,
    ),
    raw(
        "307",
        "307-cross",
        "messages",
        "307 to another host: the prompt is not sent there",
        [
            (
                b"HTTP/1.1 307 Temporary Redirect\r\nlocation: "
                b"http://localhost:{port}/v1/messages\r\ncontent-length: 0\r\n\r\n"
            )
        ],
        complete_response(MESSAGE),
        want=Want(error="", requests=1),
    ),
    raw(
        "307-same",
        "307-same",
        "messages",
        "308 to another path of the same host: followed",
        [b"HTTP/1.1 308 Permanent Redirect\r\nlocation: /v2/messages\r\ncontent-length: 0\r\n\r\n"],
        complete_response(MESSAGE),
        want=ALL,
    ),
    case(
        "40",
        "40; break-early",
        "messages",
        "the client leaves: the connection is closed",
        OPENED,
        text("x"),
        want=Want(closed=True),
        then=(Repeat(chunk(text("x")), 0.02),),
        leave=True,
    ),
)

HANGS: Final = (
    case(
        "37",
        "37; ping-forever",
        "chat",
        "endless comments after some text",
        HELLOS["chat"],
        want=ERROR,
        then=(Repeat(chunk(b": ping\n\n"), 0.05),),
        patience=12,
    ),
    case(
        "37-ping",
        "37; ping-event-forever",
        "messages",
        "endless ping events after some text",
        HELLO,
        want=ERROR,
        then=(Repeat(chunk(PING), 0.05),),
        patience=12,
    ),
    case(
        "37-first",
        "37",
        "chat",
        "endless comments and nothing else",
        want=ERROR,
        then=(Repeat(chunk(b": ping\n\n"), 0.05),),
        patience=12,
    ),
    case(
        "39",
        "39; stall",
        "chat",
        "silence after some text",
        HELLOS["chat"],
        want=ERROR,
        then=(HANG,),
    ),
    raw(
        "39-headers",
        "39; silence-before-headers",
        "chat",
        "the request is accepted, and no response is sent",
        [HANG],
        want=ERROR,
    ),
    case(
        "line",
        "line-1GiB",
        "chat",
        "a line that never ends",
        b"data: ",
        want=ERROR,
        then=(Repeat(chunk(b"x" * 500_000), 0.005),),
        patience=12,
        framing=True,
    ),
    case(
        "45",
        "45",
        "chat",
        "arguments in 20,000 fragments of one character",
        calls(index_call(0, "f", "a", '{"a":"')),
        *(b"".join(calls(index_call(0, pieces="x")) for _ in range(1_000)) for _ in range(20)),
        calls(index_call(0, pieces='"}')),
        CALLS_END,
        want=Want(calls=(("f", {"a": "x" * 20_000}),)),
        patience=300,
    ),
    case(
        "45-messages",
        "45",
        "messages",
        "arguments in 20,000 fragments of one character",
        CALL,
        arguments('{"a":"'),
        *(arguments("x") * 1_000 for _ in range(20)),
        arguments('"}'),
        stop(),
        finish("tool_use"),
        LAST,
        want=Want(calls=(("get_weather", {"a": "x" * 20_000}),)),
        patience=300,
    ),
    case(
        "big",
        "",
        "chat",
        "one event of 30 MiB",
        part({"content": "x" * (30 << 20)}),
        part(finish_reason="stop"),
        DONE,
        want=Want(text=brief("x" * (30 << 20))),
        patience=300,
    ),
)

THEMES: Final[tuple[tuple[str, tuple[Case, ...]], ...]] = (
    ("Ordinary responses", BASELINE),
    ("How streams end", ENDS),
    ("Responses that are not streams", NO_STREAMS),
    ("Errors inside the stream", IN_BAND),
    ("Payloads", PAYLOADS),
    ("Broken protocol", STATES),
    ("Tool calls", CALLS),
    ("Reasoning, order, signatures", REASONING),
    ("The response sent back in the next turn", REPLAYS),
    ("Usage", USAGE),
    ("Lines and bytes", LINES),
    ("HTTP and retries", HTTP),
    ("Silence, slow bytes, sizes", HANGS),
)
CASES: Final = tuple(one for _, cases in THEMES for one in cases)
