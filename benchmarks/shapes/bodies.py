"""Makes bodies of a wire whose deltas have the statistics of recorded ones.

Each wire has a writer: it takes items with their deltas, and yields one chunk for each event. What
differs from delta to delta in recordings differs here as often and by as much: lengths, keys,
padding, random text. The order is drawn with a seed, so that every machine makes the same bytes.
"""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from benchmarks.shapes.statistics import PERCENTILES, Statistics
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.items import JsonObject

WORDS: Final = "a stream of words as models write them, some of them longer, naïve or “quoted”"
LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
COUNTS: Final = (502, 137)
"""Tokens of the input and of the output."""

TEXT: Final = "text"
REASONING: Final = "reasoning"
CALL: Final = "call"
KINDS: Final = 3

MODEL: Final = "model-of-2026-11-24"


class Delta(NamedTuple):
    """What is drawn for one delta.

    Attributes:
        text: what it brings.
        around: bytes beside it, where the wire leaves a choice.
        keys: keys of its JSON, where the wire leaves a choice.
        spaces: spaces before its last brace.
        obfuscation: random text, or None.
    """

    text: str
    around: int
    keys: int
    spaces: int
    obfuscation: str | None


class Item(NamedTuple):
    """An item of the response: `TEXT`, `REASONING` or `CALL`, with its deltas."""

    kind: str
    deltas: Sequence[Delta]

    @property
    def text(self) -> str:
        """All of its text."""
        return "".join(delta.text for delta in self.deltas)


Writer: TypeAlias = Callable[[Sequence[Item]], Iterator[bytes]]


def body(wire: str, statistics: Statistics, size: int) -> list[bytes]:
    """A response of so many events, one chunk for each."""
    writer = WRITERS[wire]

    def others(items: int) -> int:
        """Events that are no deltas, in a response of so many items."""
        return len(list(writer(_items(statistics, items, 0))))

    # As many items as leave the share of deltas that recordings have.
    items = KINDS
    of_an_item = (others(11) - others(1)) / 10
    if of_an_item:
        room = size * (1 - statistics.deltas) - others(1)
        items = 1 + max(0, round(room / of_an_item))
    made = writer(_items(statistics, items, max(1, size - others(items))))
    return [_with_line_end(chunk, statistics) for chunk in made]


def _with_line_end(chunk: bytes, statistics: Statistics) -> bytes:
    if statistics.crlf > 0.5:
        return chunk.removesuffix(b"\n\n") + b"\r\n\r\n"
    return chunk


def _items(statistics: Statistics, count: int, deltas: int) -> list[Item]:
    """So many items, which share the deltas; kinds as often as recordings have their deltas."""
    shares = {
        TEXT: 1 - statistics.reasoning - statistics.arguments,
        REASONING: statistics.reasoning,
        CALL: statistics.arguments,
    }
    kinds: list[str] = []
    for number in range(count):
        # The kind that lacks most of its share so far.
        kinds.append(max(shares, key=lambda kind: (number + 1) * shares[kind] - kinds.count(kind)))
    drawn = iter(_deltas(statistics, deltas))
    items: list[Item] = []
    for number, kind in enumerate(kinds):
        own = deltas * (number + 1) // count - deltas * number // count
        items.append(Item(kind, _of_kind(kind, [next(drawn) for _ in range(own)])))
    return items


def _of_kind(kind: str, deltas: list[Delta]) -> list[Delta]:
    """The deltas; those of a call are fragments of one JSON object."""
    if kind != CALL or not deltas:
        return deltas
    length = sum(len(delta.text) for delta in deltas)
    arguments = ('{"a":"' + LETTERS * length)[: max(0, length - 2)] + '"}'
    if length < len('{"a":""}'):
        arguments = "{}".ljust(length)
    fragments: list[Delta] = []
    for delta in deltas:
        fragments.append(delta._replace(text=arguments[: len(delta.text)]))
        arguments = arguments[len(delta.text) :]
    last = fragments[-1]
    return [*fragments[:-1], last._replace(text=last.text + arguments)]


def _deltas(statistics: Statistics, count: int) -> list[Delta]:
    draw = random.Random(count)  # the order of a benchmark, no secret
    characters = _spread(statistics.characters, count, draw)
    spaces = _spread(statistics.spaces, count, draw)
    around = _steps(statistics.around, count)
    keys = _steps(statistics.keys, count)
    is_escaped = _share(statistics.escaped, count, draw)
    is_obfuscated = _share(statistics.obfuscated, count, draw)
    obfuscation = iter(_spread(statistics.obfuscation, sum(is_obfuscated), draw))
    made: list[Delta] = []
    for number in range(count):
        random_text = LETTERS[: next(obfuscation)] if is_obfuscated[number] else None
        text = _text(characters[number], number, escaped=is_escaped[number])
        made.append(Delta(text, around[number], keys[number], spaces[number], random_text))
    return made


def _text(length: int, number: int, *, escaped: bool) -> str:
    start = number * 7 % len(WORDS)
    text = (WORDS[start:] + WORDS * (length // len(WORDS) + 1))[:length].replace('"', "'")
    return text[:-1] + "\n" if escaped else text


def _spread(values: Sequence[int], count: int, draw: random.Random) -> list[int]:
    """So many values with these percentiles, in a drawn order."""
    spread: list[int] = []
    for number in range(count):
        percentile = (number + 0.5) / count * 100
        above = next((n for n, p in enumerate(PERCENTILES) if p > percentile), len(values) - 1)
        low, high = PERCENTILES[above - 1], PERCENTILES[above]
        part = min(1.0, (percentile - low) / (high - low))
        spread.append(round(values[above - 1] + part * (values[above] - values[above - 1])))
    draw.shuffle(spread)
    return spread


def _steps(values: Sequence[int], count: int) -> list[int]:
    """So many values: the percentiles 10, 30, 50, 70 and 90, each for a fifth of the body.

    Keys and ids differ from server to server, and hardly from delta to delta of one response.
    """
    return [values[1 + 2 * (number * 5 // count)] for number in range(count)]


def _share(share: float, count: int, draw: random.Random) -> list[bool]:
    chosen = [number < round(share * count) for number in range(count)]
    draw.shuffle(chosen)
    return chosen


def _filled(write: Callable[[str], bytes], delta: Delta) -> bytes:
    """An event whose bytes beside the text are those drawn, by text of that length in an id."""
    other = len(write("").replace(b"\n\n", b"\r\n\r\n")) - len(_encoded(delta))
    missing = delta.around - other
    return write((LETTERS * (missing // len(LETTERS) + 1))[: max(0, missing)])


def dumps(value: Any) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def sse(value: JsonObject, event: str | None = None) -> bytes:
    """One server-sent event."""
    if event is None:
        return b"data: %s\n\n" % dumps(value)
    return b"event: %s\ndata: %s\n\n" % (event.encode(), dumps(value))


def _encoded(delta: Delta) -> bytes:
    return dumps(delta.text)[1:-1]


# --- Anthropic Messages ---


def messages(items: Sequence[Item]) -> Iterator[bytes]:
    """Named events, padded with spaces, and a ping for each tenth."""
    usage = {"input_tokens": COUNTS[0], "cache_creation_input_tokens": 0}
    usage["cache_read_input_tokens"] = 0
    lifetimes = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}
    start: JsonObject = {"model": MODEL, "id": "msg_01PSvJdjd5keNSD63VHjYzex", "type": "message"}
    start |= {"role": "assistant", "content": [], "stop_reason": None, "stop_sequence": None}
    counted: JsonObject = {**usage, "cache_creation": lifetimes, "output_tokens": 4}
    start["usage"] = {**counted, "service_tier": "standard"}
    yield _named("message_start", message=start)
    yield b'event: ping\ndata: {"type": "ping"}\n\n'
    for index, item in enumerate(items):
        block, kind, key = _block(item.kind)
        yield _named("content_block_start", 9, index=index, content_block=block)
        for delta in item.deltas:
            change = {"type": kind, key: delta.text}
            yield _named("content_block_delta", delta.spaces, index=index, delta=change)
        if item.kind == REASONING:
            signature = {"type": "signature_delta", "signature": LETTERS * 5}
            yield _named("content_block_delta", 3, index=index, delta=signature)
        yield _named("content_block_stop", 6, index=index)
    usage["output_tokens"] = COUNTS[1]
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _named("message_delta", 2, delta=end, usage=usage)
    yield _named("message_stop", 12)


def _named(kind: str, spaces: int = 0, **values: Any) -> bytes:
    data = dumps({"type": kind, **values})[:-1] + b" " * spaces + b"}"
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)


def _block(kind: str) -> tuple[JsonObject, str, str]:
    """The start of a block, the type of its deltas, and the key of their text."""
    if kind == TEXT:
        return {"type": "text", "text": ""}, "text_delta", "text"
    if kind == REASONING:
        thinking = {"type": "thinking", "thinking": "", "signature": ""}
        return thinking, "thinking_delta", "thinking"
    call = {"type": "tool_use", "id": "toolu_01UYxUYC2zRPY8wiutnF48eP", "name": "add", "input": {}}
    return {**call, "caller": {"type": "direct"}}, "input_json_delta", "partial_json"


# --- OpenAI Responses ---


def responses(items: Sequence[Item]) -> Iterator[bytes]:
    """Named events with numbers, long ids and random text."""
    number = 0

    def event(kind: str, **values: Any) -> bytes:
        nonlocal number
        number += 1
        return sse({"type": kind, "sequence_number": number - 1, **values}, kind)

    envelope = _response_envelope()
    yield event("response.created", response={**envelope, "status": "in_progress", "output": []})
    yield event("response.in_progress", response={**envelope, "status": "in_progress"})
    output: list[JsonObject] = []
    for index, item in enumerate(items):
        # Some servers have ids of 15 characters, most of 53.
        length = 15 if item.kind == REASONING else 53
        item_id = f"{item.kind[:3]}_{index:0{length - 4}}"
        place = {"item_id": item_id, "output_index": index}
        added, done, before, kind, after = _response_item(item, item_id)
        yield event("response.output_item.added", output_index=index, item=added)
        for name, values in before:
            yield event(name, **place, **values)
        name, values = kind
        for delta in item.deltas:
            own = {**place, **values, "delta": delta.text}
            if delta.obfuscation is not None:
                own["obfuscation"] = delta.obfuscation
            yield event(name, **own)
        for name, values in after:
            yield event(name, **place, **values)
        output.append(done)
        yield event("response.output_item.done", output_index=index, item=done)
    usage = {"input_tokens": COUNTS[0], "output_tokens": COUNTS[1], "total_tokens": sum(COUNTS)}
    details = {"input_tokens_details": {"cached_tokens": 0}}
    details["output_tokens_details"] = {"reasoning_tokens": 0}
    end = {"status": "completed", "output": output, "usage": {**usage, **details}}
    yield event("response.completed", response={**envelope, **end})


def _response_envelope() -> JsonObject:
    nulls = ["error", "incomplete_details", "instructions", "max_output_tokens", "max_tool_calls"]
    nulls += ["previous_response_id", "prompt_cache_key", "safety_identifier", "user"]
    envelope: JsonObject = {"id": f"resp_{7:050}", "object": "response", "created_at": 1773346205}
    envelope |= {"model": MODEL, "background": False, "parallel_tool_calls": True, "store": True}
    envelope |= {"temperature": 1.0, "top_p": 1.0, "top_logprobs": 0, "truncation": "disabled"}
    envelope |= {"text": {"format": {"type": "text"}, "verbosity": "medium"}, "metadata": {}}
    envelope |= {"tool_choice": "auto", "tools": [], "service_tier": "default"}
    envelope["reasoning"] = {"effort": "medium", "summary": None}
    return envelope | dict.fromkeys(nulls)


Named: TypeAlias = tuple[str, JsonObject]


def _response_item(
    item: Item, item_id: str
) -> tuple[JsonObject, JsonObject, list[Named], Named, list[Named]]:
    """An item as added and as done, and its events: before the deltas, the delta, after them."""
    text = item.text
    added: JsonObject
    if item.kind == CALL:
        added = {"id": item_id, "type": "function_call", "status": "in_progress", "arguments": ""}
        added |= {"call_id": "call_oviize2n33oviize2n33aaaa", "name": "add"}
        done = {**added, "status": "completed", "arguments": text}
        end = {"arguments": text}
        kind = "response.function_call_arguments"
        return added, done, [], (f"{kind}.delta", {}), [(f"{kind}.done", end)]
    shape: JsonObject = {"type": "summary_text"}
    place: JsonObject = {"summary_index": 0}
    extra: JsonObject = {}
    kind, part_kind = "response.reasoning_summary_text", "reasoning_summary_part"
    added = {"id": item_id, "type": "reasoning", "summary": []}
    done = {**added, "summary": [{**shape, "text": text}]}
    if item.kind == TEXT:
        shape = {"type": "output_text", "annotations": [], "logprobs": []}
        place = {"content_index": 0}
        kind, part_kind, extra = "response.output_text", "content_part", {"logprobs": []}
        added = {"id": item_id, "type": "message", "status": "in_progress", "content": []}
        added["role"] = "assistant"
        done = {**added, "status": "completed", "content": [{**shape, "text": text}]}
    before = [(f"response.{part_kind}.added", {**place, "part": {**shape, "text": ""}})]
    after = [
        (f"{kind}.done", {**place, "text": text, **extra}),
        (f"response.{part_kind}.done", {**place, "part": {**shape, "text": text}}),
    ]
    return added, done, before, (f"{kind}.delta", {**place, **extra}), after


# --- Chat Completions ---

CHAT_KEYS: Final = (
    ("choice", "logprobs", None),
    ("chunk", "system_fingerprint", "fp_oviize2n33"),
    ("delta", "role", "assistant"),
    ("chunk", "service_tier", "default"),
    ("chunk", "usage", None),
    ("choice", "native_finish_reason", None),
    ("chunk", "provider", "Provider"),
    ("delta", "refusal", None),
    ("choice", "token_ids", None),
    ("chunk", "prompt_token_ids", None),
)
"""Keys that servers add to the nine of every chunk, the most frequent first: place, key, value."""


def chat(items: Sequence[Item]) -> Iterator[bytes]:
    """Chunks with more or fewer keys, ids of any length, a chunk with the usage, `[DONE]`."""
    yield _chunk({"role": "assistant", "content": ""}, LETTERS[:38])
    for index, item in enumerate(items):
        if item.kind == CALL:
            call: JsonObject = {"index": index, "id": "call_oviize2n33oviize2n33aaaa"}
            call |= {"type": "function", "function": {"name": "add", "arguments": ""}}
            yield _chunk({"tool_calls": [call]}, LETTERS[:38])
        for delta in item.deltas:
            yield _chat_delta(item.kind, index, delta)
    yield _chunk({}, LETTERS[:38], "stop")
    counts = {"prompt_tokens": COUNTS[0], "completion_tokens": COUNTS[1]}
    usage = {**counts, "total_tokens": sum(COUNTS), "prompt_tokens_details": {"cached_tokens": 0}}
    usage["completion_tokens_details"] = {"reasoning_tokens": 0, "audio_tokens": 0}
    yield sse({**_chat_envelope(LETTERS[:38]), "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _chat_delta(kind: str, index: int, delta: Delta) -> bytes:
    places: dict[str, JsonObject] = {"chunk": {}, "choice": {}, "delta": {}}
    keys = 9
    change: JsonObject = {"content": delta.text}
    if kind == REASONING:
        change = {"reasoning_content": delta.text}
    elif kind == CALL:
        change = {"tool_calls": [{"index": index, "function": {"arguments": delta.text}}]}
        keys += 3
    if delta.obfuscation is not None:
        places["chunk"]["obfuscation"] = delta.obfuscation
        keys += 1
    for place, key, value in CHAT_KEYS[: max(0, delta.keys - keys)]:
        places[place][key] = value
    change = {**places["delta"], **change}

    def write(name: str) -> bytes:
        return _chunk(change, name, None, places["choice"], places["chunk"])

    return _filled(write, delta)


def _chat_envelope(name: str) -> JsonObject:
    envelope = {"id": name, "object": "chat.completion.chunk", "created": 1773346205}
    return {**envelope, "model": MODEL}


def _chunk(
    delta: JsonObject,
    name: str,
    finish: str | None = None,
    choice: JsonObject = {},  # noqa: B006  # never changed
    chunk: JsonObject = {},  # noqa: B006  # never changed
) -> bytes:
    made = {"index": 0, "delta": delta, **choice, "finish_reason": finish}
    return sse({**_chat_envelope(name), "choices": [made], **chunk})


# --- Gemini ---

GEMINI_USAGE: Final[tuple[JsonObject, ...]] = (
    {"promptTokenCount": COUNTS[0]},
    {"totalTokenCount": sum(COUNTS)},
    {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": COUNTS[0]}]},
    {"candidatesTokenCount": COUNTS[1]},
    {"thoughtsTokenCount": 52},
    {"serviceTier": "standard"},
    {"toolUsePromptTokenCount": 3},
    {"trafficType": "ON_DEMAND"},
    {"candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": COUNTS[1]}]},
)
"""Counts that chunks have more or fewer of, the most frequent first."""

SIGNED: Final = 450
"""From so many bytes beside its text on, a chunk holds a signature."""


def gemini(items: Sequence[Item]) -> Iterator[bytes]:
    """Chunks with counts by modality, some with a signature; a call is one chunk for itself."""
    for number, item in enumerate(items, start=1):
        for delta in item.deltas:
            yield _gemini_delta(item, delta)
        # What ends an item is its signature, without a text.
        end = {"text": "", "thoughtSignature": LETTERS * 5}
        finish = "STOP" if number == len(items) else None
        yield _gemini_sse({"parts": [end], "role": "model"}, 20, LETTERS[:23], finish)


def _gemini_delta(item: Item, delta: Delta) -> bytes:
    part: JsonObject = {"text": delta.text}
    if item.kind == REASONING:
        part["thought"] = True
    elif item.kind == CALL:
        # A whole call: its fragments are JSON only together.
        room = len(delta.text) - len('{"a":""}')
        arguments = {"a": (LETTERS * (room // len(LETTERS) + 1))[:room]} if room >= 0 else {}
        part = {"functionCall": {"name": "add", "args": arguments}}
    is_signed = delta.around >= SIGNED

    def write(fill: str) -> bytes:
        if is_signed:
            signed = {**part, "thoughtSignature": fill}
            return _gemini_sse({"parts": [signed], "role": "model"}, delta.keys, LETTERS[:23])
        return _gemini_sse({"parts": [part], "role": "model"}, delta.keys, fill)

    return _filled(write, delta)


def _gemini_sse(content: JsonObject, keys: int, name: str, finish: str | None = None) -> bytes:
    candidate: JsonObject = {"content": content}
    if finish:
        candidate["finishReason"] = finish
    if keys > 12:
        candidate["index"] = 0
    usage: JsonObject = {}
    chunk = {"candidates": [candidate], "usageMetadata": usage}
    chunk |= {"modelVersion": MODEL, "responseId": name}
    for count in GEMINI_USAGE:
        if _keys(chunk) >= keys:
            break
        usage.update(count)
    data = json.dumps(chunk, separators=(",", ": "), ensure_ascii=False)
    return b"data: %s\n\n" % data.encode()


def _keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    if isinstance(value, list):
        return sum(map(_keys, value))
    return 0


# --- Gemini Interactions ---

STEP_USAGE: Final[JsonObject] = {
    "input_tokens_by_modality": [{"modality": "text", "tokens": COUNTS[0]}],
    "total_cached_tokens": 0,
    "total_input_tokens": COUNTS[0],
    "total_output_tokens": COUNTS[1],
    "total_tokens": sum(COUNTS),
    "total_thought_tokens": 0,
    "total_tool_use_tokens": 0,
}


def interactions(items: Sequence[Item]) -> Iterator[bytes]:
    """Named events of steps; most of them are no deltas."""
    envelope = {"id": "v1_" + LETTERS * 2, "model": MODEL, "object": "interaction"}
    yield _step("interaction.created", interaction={**envelope, "status": "in_progress"})
    update = {"interaction_id": envelope["id"], "status": "in_progress"}
    yield _step("interaction.status_update", **update)
    for index, item in enumerate(items):
        step: JsonObject = {"type": {TEXT: "model_output", REASONING: "thought"}.get(item.kind)}
        if item.kind == CALL:
            step = {"type": "function_call", "id": "oviize2n", "name": "add", "arguments": {}}
        yield _step("step.start", index=index, step=step)
        for delta in item.deltas:
            extra = {"metadata": {"usage": STEP_USAGE}} if delta.keys > 7 else {}
            yield _step("step.delta", delta=_step_delta(item.kind, delta), index=index, **extra)
        if item.kind == REASONING:
            signature = {"signature": LETTERS * 5, "type": "thought_signature"}
            yield _step("step.delta", delta=signature, index=index)
        yield _step("step.stop", index=index)
        # Recorded responses are short: beside a delta, most of their events are these.
        for _ in range(4):
            yield _step("interaction.status_update", **update)
    end = {"service_tier": "standard", "status": "completed", "usage": STEP_USAGE}
    end["created"] = end["updated"] = "2026-11-24T00:00:00Z"
    yield _step("interaction.completed", interaction={**envelope, **end})
    yield b"event: done\ndata: [DONE]\n\n"


def _step(kind: str, **values: Any) -> bytes:
    return sse({"event_type": kind, **values}, kind)


def _step_delta(kind: str, delta: Delta) -> JsonObject:
    if kind == REASONING:
        return {"content": {"text": delta.text, "type": "text"}, "type": "thought_summary"}
    if kind == CALL:
        return {"arguments": delta.text, "type": "arguments_delta"}
    return {"text": delta.text, "type": "text"}


# --- Bedrock ---


def converse(items: Sequence[Item]) -> Iterator[bytes]:
    """AWS frames with random text."""
    yield _frame("messageStart", LETTERS[:46], role="assistant")
    for index, item in enumerate(items):
        if item.kind == CALL:
            start = {"toolUse": {"name": "add", "toolUseId": "tooluse_oviize2n33oviize2n33aa"}}
            yield _frame("contentBlockStart", LETTERS[:20], contentBlockIndex=index, start=start)
        for delta in item.deltas:
            change: JsonObject = {"text": delta.text}
            if item.kind == REASONING:
                change = {"reasoningContent": change}
            elif item.kind == CALL:
                change = {"toolUse": {"input": delta.text}}
            values: JsonObject = {"contentBlockIndex": index, "delta": change}
            yield _frame("contentBlockDelta", delta.obfuscation or "", **values)
        yield _frame("contentBlockStop", LETTERS[:33], contentBlockIndex=index)
    yield _frame("messageStop", LETTERS[:12], stopReason="end_turn")
    counts = {"inputTokens": COUNTS[0], "outputTokens": COUNTS[1], "totalTokens": sum(COUNTS)}
    usage = {**counts, "serverToolUsage": {}}
    yield _frame("metadata", LETTERS[:36], metrics={"latencyMs": 547}, usage=usage)


def _frame(kind: str, padding: str | None, *, short: bool = False, **values: Any) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    if short:
        del headers[":content-type"]
    if padding is not None:
        values["p"] = padding
    return encode_message(headers, dumps(values))


INVOKE_KEYS: Final = ("prompt_token_count", "generation_token_count", "stop_reason")
"""Keys of a chunk beside its text."""

SHORT_FRAME: Final = 200
"""Of so few bytes beside its text, a chunk is in a frame without a content type."""


def invoke(items: Sequence[Item]) -> Iterator[bytes]:
    """Chunks of a model family with a text in each, as base64 in AWS frames: two thirds are."""
    for item in items:
        for delta in item.deltas:
            yield _generation(delta.text, delta.around, delta.obfuscation)
        # A token that is no text.
        yield _generation("", 230, LETTERS[:33])
    metrics = {"inputTokenCount": COUNTS[0], "outputTokenCount": COUNTS[1]}
    metrics |= {"invocationLatency": 1967, "firstByteLatency": 1603}
    end: JsonObject = {"generation": "", "prompt_token_count": COUNTS[0]}
    end |= {"generation_token_count": COUNTS[1], "stop_reason": "stop"}
    end["amazon-bedrock-invocationMetrics"] = metrics
    yield _frame("chunk", LETTERS[:33], bytes=b64encode(dumps(end)).decode())


def _generation(text: str, around: int, padding: str | None) -> bytes:
    """A chunk with as many of the keys as fit into the bytes around its text."""
    own = len(text.encode()) + len(padding or "")
    made = b""
    for count in range(len(INVOKE_KEYS) + 1):
        value = {"generation": text, **dict.fromkeys(INVOKE_KEYS[:count])}
        data = b64encode(dumps(value)).decode()
        made = _frame("chunk", padding, short=around < SHORT_FRAME, bytes=data)
        if len(made) - own >= around:
            break
    return made


# --- Cohere ---


def cohere(items: Sequence[Item]) -> Iterator[bytes]:
    """Named events; contents and calls each have their own indexes."""
    opened: JsonObject = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}
    name = "d5576672-a472-485f-89a3-dac4e4cb8072"
    yield _cohere("message-start", {**opened, "citations": []}, id=name)
    indexes = {"content": 0, "tool-call": 0}
    for item in items:
        kind = "tool-call" if item.kind == CALL else "content"
        index = indexes[kind]
        indexes[kind] += 1
        key = "text" if item.kind == TEXT else "thinking"
        start: JsonObject = {"content": {"type": key, key: ""}}
        if item.kind == CALL:
            function = {"name": "add", "arguments": ""}
            call = {"id": "add_wf0rc70sqj7v", "type": "function", "function": function}
            start = {"tool_calls": call}
        yield _cohere(f"{kind}-start", start, index=index)
        for delta in item.deltas:
            change: JsonObject = {"content": {key: delta.text}}
            if item.kind == CALL:
                change = {"tool_calls": {"function": {"arguments": delta.text}}}
            yield _cohere(f"{kind}-delta", change, index=index)
        yield sse({"type": f"{kind}-end", "index": index}, f"{kind}-end")
    counts = {"input_tokens": COUNTS[0], "output_tokens": COUNTS[1]}
    usage = {"billed_units": counts, "tokens": counts, "cached_tokens": 0}
    end = {"finish_reason": "COMPLETE", "usage": usage}
    yield sse({"type": "message-end", "delta": end}, "message-end")
    yield b"data: [DONE]\n\n"


def _cohere(kind: str, message: JsonObject, **values: Any) -> bytes:
    return sse({"type": kind, **values, "delta": {"message": message}}, kind)


# --- Ollama ---


def ollama(items: Sequence[Item]) -> Iterator[bytes]:
    """JSON lines, each with its time."""
    number = 0
    for item in items:
        key = "thinking" if item.kind == REASONING else "content"
        for delta in item.deltas:
            number += 1
            yield _line(number, {"content": "", key: delta.text})
    times = {"total_duration": 1455899000, "load_duration": 29496583, "eval_count": COUNTS[1]}
    times |= {"prompt_eval_count": COUNTS[0], "prompt_eval_duration": 18515458}
    yield _line(number + 1, {"content": ""}, done_reason="stop", done=True, **times)


def _line(number: int, message: JsonObject, **fields: Any) -> bytes:
    time = f"2026-11-24T07:{number // 3000:02}:{number // 50 % 60:02}.{number % 50 * 20003:06}Z"
    line = {"model": "gpt-oss", "created_at": time, "message": {"role": "assistant", **message}}
    return dumps({**line, **({"done": False} | fields)}) + b"\n"


WRITERS: Final[dict[str, Writer]] = {
    "messages": messages,
    "responses": responses,
    "chat": chat,
    "gemini": gemini,
    "interactions": interactions,
    "converse": converse,
    "invoke": invoke,
    "cohere": cohere,
    "ollama": ollama,
}
