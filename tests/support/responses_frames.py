"""Synthetic frames and items of the Responses wire, and the invariants of its event lists."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    Response,
    ResponseEvent,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.items import BUILT_IN_CALLS

Json = dict[str, Any]


def frame(kind: str, **values: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (
        kind.encode(),
        json.dumps({"type": kind, **values}).encode(),
    )


def about(kind: str, index: int = 0, item_id: str = "it_0", **values: Any) -> bytes:
    return frame(f"response.{kind}", item_id=item_id, output_index=index, **values)


def added(item: Json | None, index: int = 0) -> bytes:
    return frame("response.output_item.added", output_index=index, item=item)


def done(item: Json | None, index: int = 0) -> bytes:
    return frame("response.output_item.done", output_index=index, item=item)


def created(**values: Any) -> bytes:
    return frame(
        "response.created",
        response={
            "id": "resp_1",
            "model": "gpt-x",
            "status": "in_progress",
            "output": [],
            **values,
        },
    )


def completed(*output: Json, kind: str = "completed", **values: Any) -> bytes:
    return frame(
        f"response.{kind}",
        response={
            "id": "resp_1",
            "model": "gpt-x",
            "status": kind,
            "output": list(output),
            **values,
        },
    )


def message(*texts: str, item_id: str = "it_0", **values: Any) -> Json:
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": parts,
        **values,
    }


def reasoning(*summary: str, item_id: str = "it_0", **values: Any) -> Json:
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        **values,
    }


def call(
    arguments: str = "",
    name: str = "f",
    item_id: str = "it_0",
    call_id: str = "call_1",
    **values: Any,
) -> Json:
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
        **values,
    }


def hosted(kind: str, item_id: str = "it_0", **values: Any) -> Json:
    return {"type": kind, "id": item_id, "status": "completed", **values}


def same(item: Json) -> Json:
    """Returns an item without `status`, which depends on the event it came in."""
    return {key: value for key, value in item.items() if key != "status"}


def text(delta: str, index: int = 0, **values: Any) -> bytes:
    return about("output_text.delta", index, content_index=0, delta=delta, **values)


def arguments(delta: str, index: int = 0, **values: Any) -> bytes:
    return about("function_call_arguments.delta", index, delta=delta, **values)


def events_of(*chunks: bytes, **options: Any) -> list[ResponseEvent]:
    p = parser("responses", **options)
    return [*(event for chunk in chunks for event in p.feed(chunk)), *p.close()]


def response_of(*chunks: bytes) -> Response:
    return accumulate(events_of(*chunks))


def body_of(body: Json | bytes, **options: Any) -> list[ResponseEvent]:
    return parse_body(
        "responses", body if isinstance(body, bytes) else json.dumps(body).encode(), **options
    )


def body(**values: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-x",
        "status": "completed",
        "output": [message("Hi")],
        **values,
    }


def of(kind: type, events: Iterable[ResponseEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def finals(events: Iterable[ResponseEvent]) -> list[Any]:
    return [event.item for event in events if isinstance(event, OutputItemDone)]


def failure(events: list[ResponseEvent]) -> Any:
    last = events[-1]
    assert isinstance(last, Failed)
    assert len(of(Failed, events)) == 1
    return last.error


WEB: Json = {"type": "search", "query": "q", "n": 1.0}
NESTED: Json = {
    "error": {
        "type": "insufficient_quota",
        "code": "insufficient_quota",
        "message": "no credits",
        "param": None,
    }
}

PLAIN = [
    created(service_tier="auto"),
    added(reasoning(item_id="rs")),
    about(
        "reasoning_summary_part.added",
        item_id="rs",
        summary_index=0,
        part={"type": "summary_text", "text": ""},
    ),
    about("reasoning_summary_text.delta", item_id="rs", summary_index=0, delta="Pläne 🌳"),
    done(reasoning("Pläne 🌳 machen", item_id="rs", encrypted_content="gAA")),
    added(message(item_id="m"), 1),
    about("content_part.added", 1, "m", content_index=0, part={"type": "output_text", "text": ""}),
    about("output_text.delta", 1, "m", content_index=0, delta="Grüß"),
    about(
        "output_text.annotation.added", 1, "m", content_index=0, annotation={"type": "url_citation"}
    ),
    about("output_text.done", 1, "m", content_index=0, text="Grüße"),
    done(message("Grüße", item_id="m"), 1),
    added(hosted("web_search_call", item_id="ws"), 2),
    about("web_search_call.searching", 2, "ws"),
    done(hosted("web_search_call", item_id="ws", action=WEB), 2),
    added(call(item_id="fc"), 3),
    about("function_call_arguments.delta", 3, "fc", delta='{"city":"'),
    about("function_call_arguments.delta", 3, "fc", delta='Köln"}'),
    about("function_call_arguments.done", 3, "fc", arguments='{"city":"Köln"}'),
    done(call('{"city":"Köln"}', item_id="fc"), 3),
    completed(
        *(
            reasoning("Pläne 🌳 machen", item_id="rs"),
            message("Grüße", item_id="m"),
            hosted("web_search_call", item_id="ws", action=WEB),
        ),
        call('{"city":"Köln"}', item_id="fc"),
        usage={"input_tokens": 9, "output_tokens": 4},
    ),
]
FAILING = [*PLAIN[:8], frame("error", **NESTED), completed(kind="failed", error=NESTED["error"])]
UNUSUAL = [
    *PLAIN[:8],
    frame("response.hologram", x="\ud83d"),
    added(None, 9),
    b"data: [DONE]\n\n",
    added({"type": "zork", "id": "z"}, 9),
]
SYNTHETIC_STREAMS = {
    "plain": b"".join(PLAIN),
    "failing": b"".join(FAILING),
    "unusual": b"".join(UNUSUAL),
}


def check_invariants(events: list[ResponseEvent]) -> None:
    """Checks an event list.

    Items are bracketed, there is one terminal event, and joined deltas equal the final text unless
    a notice names the item.
    """
    assert [event for event in events if isinstance(event, (Completed, Failed))] == [events[-1]]
    texts: dict[int, list[str]] = {}
    ended: dict[int, Any] = {}
    for event in events:
        index = getattr(event, "index", None)
        if isinstance(event, OutputItemAdded):
            assert event.index == len(texts)
            texts[event.index] = []
        elif index is not None and not isinstance(event, Notice):
            assert index in texts
            assert index not in ended
            if isinstance(event, OutputItemDone):
                ended[event.index] = event.item
            elif isinstance(
                event, (OutputTextDelta, FunctionCallArgumentsDelta, ReasoningContentDelta)
            ):
                texts[event.index].append(event.delta)
    assert texts.keys() == ended.keys()
    replaced = {event.index for event in of(Notice, events) if event.code == "text_replaced"}
    for index, item in ended.items():
        joined = next(
            (getattr(item, name) for name in ("arguments", "input", "text") if hasattr(item, name)),
            "",
        )
        # A built-in call comes in one piece.
        if not isinstance(item, (Reasoning, *BUILT_IN_CALLS)) and index not in replaced:
            assert "".join(texts[index]) == joined
