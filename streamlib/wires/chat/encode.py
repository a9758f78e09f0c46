"""Events as a Chat Completions stream or body, as official clients read it.

    data: {…"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}      Created
    data: {…"choices":[{"index":0,"delta":{"content":"Hi"}}]}                       OutputTextDelta
    data: {…"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}              Completed
    data: {…"choices":[],"usage":{…}}                                               Completed, where usage is known
    data: [DONE]                                                                    close

The wire has no blocks, so an item begins and ends with what is said of it. Held back: metadata, until the next chunk; usage, to the
end, since clients add up what they are told more than once. A stream that failed ends with an error and neither finishes nor is done.

`created_at` (unix seconds) is the caller's: an encoder has no clock. Without it `created` is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.request.report import Change, Report
from streamlib.wires.chat.encode_objects import (
    annotation_object,
    audio_object,
    call_extras,
    call_object,
    details_of,
    envelope_of,
    executed_object,
    finish_reason,
    image_object,
    is_call_entry,
    is_own,
    signed,
    tells_more,
    thought_text,
    usage_object,
)
from streamlib.wires.encoders import sse
from streamlib.wires.responses.encode_objects import error_object
from streamlib_parsers.accumulate import Choice, Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import (
    Audio,
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.usage import Usage

__all__ = ["Encoder", "encode_body", "error_body"]

FIRST_ID: Final = "chatcmpl-0"
"""The id of a response that has none: clients want one."""
NO_PLACE: Final = "Chat has no place for it"
CALLS: Final = (FunctionCall, CustomToolCall)


class Encoder:
    """Writes one stream."""

    media_type = "text/event-stream"

    def __init__(
        self,
        *,
        model: str | None = None,
        response_id: str | None = None,
        created_at: int | None = None,
    ) -> None:
        self._losses = Report()
        self._head: JsonObject = {
            "id": "",
            "object": "chat.completion.chunk",
            "created": created_at or 0,
            "model": "",
        }
        self._response_id = response_id or FIRST_ID
        self._model = model or ""
        self._named = False
        self._envelope: JsonObject = {}
        self._usage: Usage | None = None
        self._items: dict[int, ResponseItem] = {}
        self._roles: set[int] = set()
        self._numbers: dict[int, int] = {}
        self._calls: dict[int, int] = {}
        self._ran: dict[str, int] = {}
        self._text: dict[int, int] = {}
        self._paragraphs: set[tuple[int, int]] = set()
        self._refused: set[int] = set()
        self._own = False
        self._done = False

    @property
    def report(self) -> list[Change]:
        """What Chat could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event."""
        return _HANDLERS[type(event)](self, event)

    def close(self) -> bytes:
        """The end mark, after an answer that is whole."""
        return sse(b"[DONE]") if self._done else b""

    # --- chunks ---

    def _chunk(self, choices: list[JsonObject], **values: Any) -> bytes:
        envelope, self._envelope = self._envelope, {}
        return sse({**self._head, "choices": choices, **envelope, **values})

    def _choice(
        self, choice: int, delta: JsonObject, finish: str | None = None, **values: Any
    ) -> bytes:
        """A chunk of one choice; the first of each says who speaks."""
        start = b"" if self._named else self._on_created(Created())
        if choice not in self._roles:
            self._roles.add(choice)
            delta = {"role": "assistant", **delta}
        return start + self._chunk(
            [{"index": choice, "delta": delta, **values, "finish_reason": finish}]
        )

    def _say(self, index: int, **delta: Any) -> bytes:
        return self._choice(self._items[index].choice, delta)

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._named = True
        self._head = {
            **self._head,
            "id": event.response_id or self._response_id,
            "model": event.model or self._model,
        }
        return self._choice(0, {"content": ""})

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        self._envelope.update(envelope_of(event.values, self._losses))
        return b"" if self._named or not self._envelope else self._chunk([])

    def _on_usage(self, event: TokenCount) -> bytes:
        if self._usage is not None and not self._usage.same_numbers(event.usage):
            self._losses.dropped("/usage", "Chat counts once, at the end")
        self._usage = event.usage
        return b""

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = self._items[event.index] = event.item
        self._own |= is_own(item)
        if not isinstance(item, CALLS):
            return b""
        number = self._numbers[event.index] = self._calls.get(item.choice, 0)
        self._calls[item.choice] = number + 1
        self._text.pop(item.choice, None)
        return self._say(
            event.index, tool_calls=[{"index": number, **call_object(item, empty=True)}]
        )

    def _adjacent(self, index: int) -> None:
        """Notes where two items of one kind, with nothing between, become one."""
        choice = self._items[index].choice
        last = self._text.get(choice)
        if (
            last is not None
            and last != index
            and type(self._items[last]) is type(self._items[index])
        ):
            self._losses.dropped(
                "/items", "Chat has no blocks: neighbours of one kind run together"
            )
        self._text[choice] = index

    def _on_text(self, event: OutputTextDelta) -> bytes:
        self._adjacent(event.index)
        if not event.logprobs:
            return self._say(event.index, content=event.delta)
        tokens = {"content": list(event.logprobs), "refusal": None}
        return self._choice(
            self._items[event.index].choice, {"content": event.delta}, logprobs=tokens
        )

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        self._adjacent(event.index)
        if event.logprobs:
            self._losses.dropped("/logprobs", "Chat has no logprobs of thoughts")
        return self._say(event.index, reasoning_content=event.delta)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._losses.dropped("/summary", "a summary is plain reasoning in Chat")
        self._adjacent(event.index)
        paragraph = (event.index, event.summary_index)
        gap = "\n\n" if event.summary_index and paragraph not in self._paragraphs else ""
        self._paragraphs.add(paragraph)
        return self._say(event.index, reasoning_content=gap + event.delta)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._refused.add(self._items[event.index].choice)
        return self._say(event.index, refusal=event.delta)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        number = self._numbers.get(event.index)
        if number is None:
            return b""
        custom = isinstance(self._items[event.index], CustomToolCall)
        said = (
            {"custom": {"input": event.delta}}
            if custom
            else {"function": {"arguments": event.delta}}
        )
        return self._say(
            event.index,
            tool_calls=[{"index": number, **({"type": "custom"} if custom else {}), **said}],
        )

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        own = is_own(self._items[event.index])
        annotation = annotation_object(event.annotation, self._losses, own=own)
        if annotation is None:
            return b""
        self._adjacent(event.index)
        if (
            own and annotation.get("type") == "reference"
        ):  # Mistral: a part between two pieces of text
            return self._say(event.index, content=[annotation])
        return self._say(event.index, annotations=[annotation])

    def _on_media(self, event: MediaDelta) -> bytes:
        """Audio as it comes; an image when it is whole."""
        if (event.media_type or "").startswith("image/"):
            return b""
        if event.media_type:
            self._losses.dropped(
                "/media_type", "Chat does not name the format of audio: the request does"
            )
        said = {"data": event.data, "transcript": event.transcript}
        return self._say(event.index, audio={key: value for key, value in said.items() if value})

    def _on_done(self, event: OutputItemDone) -> bytes:
        handler = _ENDS.get(type(event.item))
        if handler is None:
            self._losses.dropped(f"/{type(event.item).__name__}", NO_PLACE)
            return b""
        return handler(self, event.index, event.item)

    def _end_reasoning(self, index: int, item: Any) -> bytes:
        if not is_own(item):
            if item.signature or item.encrypted_content:
                self._losses.dropped("/signature", "sealed state of another wire stays behind")
            return b""
        keys = details_of(item, textless=True)
        return self._say(index, **keys) if tells_more(keys) else b""

    def _end_message(self, index: int, item: Any) -> bytes:
        out = b""
        for part in item.content:
            if isinstance(part, Image):
                self._text.pop(item.choice, None)
                out += self._say(index, images=[image_object(part)])
            elif isinstance(part, Audio):
                rest = {
                    key: value
                    for key, value in audio_object(part, item.native).items()
                    if key not in ("data", "transcript")
                }
                out += self._say(index, audio=rest) if rest else b""
        if not item.signature:
            return out
        if is_own(item):
            if item.text:
                self._losses.dropped(
                    "/signature",
                    "the signature follows its text, as a text of its own that is empty",
                )
            return out + self._say(index, content="", **signed(item.signature, item.native))
        self._losses.dropped("/signature", "a signature of another wire stays behind")
        return out

    def _end_call(self, index: int, item: Any) -> bytes:
        if item.name != getattr(self._items[index], "name", item.name):
            self._losses.dropped(
                "/name", "a name that became another one stays as it was first told"
            )
        extras = call_extras(item, self._losses)
        return (
            self._say(index, tool_calls=[{"index": self._numbers[index], **extras}])
            if extras
            else b""
        )

    def _end_server_call(self, index: int, item: Any) -> bytes:
        if not is_own(item):
            self._losses.dropped("/server_tools", NO_PLACE)
            return b""
        self._text.pop(item.choice, None)
        number = self._ran[item.call_id] = len(self._ran)
        return self._say(index, executed_tools=[executed_object(item, number)])

    def _end_server_result(self, index: int, item: Any) -> bytes:
        if not is_own(item) or item.call_id not in self._ran:
            self._losses.dropped("/server_tools", NO_PLACE)
            return b""
        self._text.pop(item.choice, None)
        told = {
            "index": self._ran[item.call_id],
            "type": item.name,
            "output": item.output,
            **(item.native or {}),
        }
        return self._say(index, executed_tools=[told])

    def _end_opaque(self, index: int, item: Any) -> bytes:
        if not is_own(item):
            self._losses.dropped(f"/{item.kind}", NO_PLACE)
            return b""
        self._text.pop(item.choice, None)
        return self._say(
            index, **({"tool_calls" if is_call_entry(item.payload) else "content": [item.payload]})
        )

    # --- the end ---

    def _on_completed(self, event: Completed) -> bytes:
        out = b"" if self._named else self._on_created(Created(event.response_id, event.model))
        self._head = {**self._head, "model": event.model or self._head["model"]}
        self._usage = event.usage or self._usage
        if event.stop_sequence is not None:
            self._losses.dropped("/stop_sequence", NO_PLACE)
        for end in event.choices or (
            FinishedChoice(0, event.stop_reason, event.native_stop_reason),
        ):
            refused = end.choice in self._refused
            word = finish_reason(
                end.stop_reason,
                end.native_stop_reason,
                self._losses,
                own=self._own,
                refused=refused,
            )
            out += self._choice(end.choice, {}, word)
        self._done = True
        return out + self._count()

    def _count(self) -> bytes:
        usage = usage_object(self._usage, self._losses, own=self._own)
        return self._chunk([], usage=usage) if usage else b""

    def _on_failed(self, event: Failed) -> bytes:
        return self._count() + sse(error_body(event.error))

    def _on_passthrough(self, event: Passthrough) -> bytes:
        """Clients take every event for a chunk, and stumble over one without choices."""
        self._losses.dropped(
            f"/{event.event}", "an event of no known kind would be taken for a chunk"
        )
        return b""

    def _nothing(self, event: Any) -> bytes:
        """Known, and rightly without bytes: headers carry rate limits, notices are made again by whoever parses."""
        return b""


_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_text,
    ReasoningContentDelta: Encoder._on_reasoning,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    ReasoningSummaryDelta: Encoder._on_summary,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    TokenCount: Encoder._on_usage,
    RefusalDelta: Encoder._on_refusal,
    MediaDelta: Encoder._on_media,
    AnnotationAdded: Encoder._on_annotation,
    Created: Encoder._on_created,
    ResponseMetadata: Encoder._on_metadata,
    Passthrough: Encoder._on_passthrough,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
    RateLimits: Encoder._nothing,
    Notice: Encoder._nothing,
    ItemProgress: Encoder._nothing,
}
_ENDS: Final[dict[type, Callable[[Encoder, int, Any], bytes]]] = {
    Reasoning: Encoder._end_reasoning,
    Message: Encoder._end_message,
    FunctionCall: Encoder._end_call,
    CustomToolCall: Encoder._end_call,
    ServerToolCall: Encoder._end_server_call,
    ServerToolResult: Encoder._end_server_result,
    Opaque: Encoder._end_opaque,
}


# --- whole bodies ---


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    return {"error": error_object(error)}


def encode_body(response: Response, model: str | None, losses: Report) -> bytes:
    """A whole chat.completion, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    whole = Choice(0, response.items, response.stop_reason, response.native_stop_reason)
    body: JsonObject = {
        "id": response.response_id or FIRST_ID,
        "object": "chat.completion",
        "created": 0,
        "model": response.model or model or "",
        "choices": [_body_choice(choice, losses) for choice in response.choices or (whole,)],
        **envelope_of(response.metadata, losses),
    }
    own = any(is_own(item) for choice in response.choices or (whole,) for item in choice.items)
    usage = usage_object(response.usage, losses, own=own)
    return msgspec.json.encode({**body, "usage": usage} if usage else body)


def _body_choice(choice: Choice, losses: Report) -> JsonObject:
    said: JsonObject = {}
    for item in choice.items:
        _BODY.get(type(item), _left_out)(item, said, losses)
    texts: JsonObject = {key: "".join(said.pop(key)) for key in TEXTS if key in said}
    silent = None if "refusal" in texts or said.keys() & {"tool_calls", "audio"} else ""
    message: JsonObject = {"role": "assistant", "content": silent, "refusal": None, **texts, **said}
    own = any(map(is_own, choice.items))
    reason, refused = choice.stop_reason or "other", "refusal" in texts
    word = finish_reason(reason, choice.native_stop_reason, losses, own=own, refused=refused)
    return {"index": choice.index, "message": message, "finish_reason": word}


def _left_out(item: ResponseItem, message: JsonObject, losses: Report) -> None:
    losses.dropped(f"/{type(item).__name__}", NO_PLACE)


TEXTS: Final = ("content", "refusal", "reasoning_content")
"""Keys of a message whose fragments are joined; of the other lists the elements stay apart."""


def _add(said: JsonObject, key: str, *values: Any) -> None:
    said.setdefault(key, []).extend(values)


def _body_message(item: Any, message: JsonObject, losses: Report) -> None:
    for part in item.content:
        match part:
            case Text():
                _add(message, "content", part.text)
                notes = [
                    one
                    for note in part.annotations
                    if (one := annotation_object(note, losses, own=is_own(item)))
                ]
                if notes:
                    _add(message, "annotations", *notes)
            case Refusal():
                _add(message, "refusal", part.refusal)
            case Image():
                _add(message, "images", image_object(part))
            case Audio():
                message["audio"] = audio_object(part, item.native)
            case _:
                losses.dropped("/media", NO_PLACE)
    if item.signature and is_own(item):
        message.update(signed(item.signature, item.native))


def _body_reasoning(item: Any, message: JsonObject, losses: Report) -> None:
    if text := thought_text(item):
        _add(message, "reasoning_content", text)
    for key, value in (details_of(item, textless=False) if is_own(item) else {}).items():
        if isinstance(value, list):
            _add(message, key, *value)
        else:
            message[key] = value


def _body_call(item: Any, message: JsonObject, losses: Report) -> None:
    """A call that was cut has no place in a whole body: there it would look callable."""
    if item.status == "completed":
        extras = call_extras(item, losses)
        _add(message, "tool_calls", {**call_object(item), **extras, **_function(item, extras)})


def _function(item: Any, extras: JsonObject) -> JsonObject:
    """Keys of the function that we do not know stand beside its name and arguments."""
    return (
        {"function": {**call_object(item)["function"], **extras["function"]}}
        if "function" in extras
        else {}
    )


_BODY: Final[dict[type, Callable[[Any, JsonObject, Report], None]]] = {
    Message: _body_message,
    Reasoning: _body_reasoning,
    FunctionCall: _body_call,
    CustomToolCall: _body_call,
}
