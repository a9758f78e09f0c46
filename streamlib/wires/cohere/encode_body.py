"""Encodes a response as a non-streaming body of Cohere's v2 chat."""

from __future__ import annotations

import msgspec

from streamlib.request.report import Report
from streamlib.wires.cohere.build_messages import listed_citations, placed_citation
from streamlib.wires.cohere.encode_envelope import (
    cohere_usage,
    error_body,
    finish_reason,
    metadata_fields,
)
from streamlib.wires.cohere.encode_items import (
    call_object,
    has_place,
    is_plan,
    own_fields,
    report_losses,
    signature_fields,
)
from streamlib.wires.generated_ids import new_id
from streamlib.wires.reasoning_text import reasoning_text
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ResponseItem,
    Text,
)

__all__ = ["encode_body", "error_body"]


class _Body:
    """The message of a response while its items are added."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.contents: list[JsonObject] = []
        self.plans: list[str] = []
        self.calls: list[JsonObject] = []
        self.citations: list[JsonObject] = []

    def add(self, item: ResponseItem) -> None:
        """Adds one item of choice 0."""
        report_losses(item, self._report)
        match item:
            case Message():
                self._message(item)
            case Reasoning():
                text = reasoning_text(item)
                signature = signature_fields(item)
                if text or signature:
                    fields = own_fields(item) | signature
                    citations = fields.pop("citations", ())
                    self.contents.append({"type": "thinking", "thinking": text, **fields})
                    self._cite(citations, len(self.contents) - 1)
            case FunctionCall() | CustomToolCall() if item.status == "completed":
                self.calls.append(call_object(item, self._report))
            case FunctionCall() | CustomToolCall():
                reason = "an incomplete call is left out: it would look callable"
                self._report.dropped("/incomplete", reason)
            case Opaque():
                self.contents.append({"type": item.kind, **item.payload})
            case _:
                raise TypeError(f"{type(item).__name__} is never part of a response")

    def _message(self, item: Message) -> None:
        if is_plan(item):
            if self.plans:
                self._report.dropped("/tool_plan", "Cohere has one tool plan: texts are joined")
            self.plans.append(item.text)
            for part in item.content:
                if isinstance(part, Text):
                    self._cite(part.annotations, None)
            return
        fields = own_fields(item)
        for part in item.content or (Text(""),):
            if isinstance(part, Text):
                self.contents.append({"type": "text", "text": part.text, **fields})
                self._cite(part.annotations, len(self.contents) - 1)
            elif isinstance(part, Refusal):
                self._report.dropped("/refusal", "a refusal is plain text in Cohere")
                self.contents.append({"type": "text", "text": part.refusal})

    def _cite(self, citations: object, position: int | None) -> None:
        for citation in listed_citations(citations):
            if "sources" in citation:
                self.citations.append(placed_citation(citation, position))

    def message(self) -> JsonObject:
        """The wire's object."""
        message: JsonObject = {"role": "assistant"}
        if self.contents:
            message["content"] = self.contents
        if self.plans:
            message["tool_plan"] = "".join(self.plans)
        if self.calls:
            message["tool_calls"] = self.calls
        if self.citations:
            message["citations"] = self.citations
        return message


def encode_body(response: Response, model: str | None, report: Report) -> bytes:
    """Returns a chat response, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    if response.model or model:
        report.dropped("/model", "Cohere's responses name no model")
    body_parts = _Body(report)
    for item in response.items:
        if has_place(item, report):
            body_parts.add(item)
    reason = finish_reason(
        response.stop_reason or "other",
        response.native_stop_reason,
        response.stop_sequence,
        report,
    )
    body: JsonObject = {
        # First, so that a key of another wire cannot replace one of ours.
        **metadata_fields(response.metadata),
        "id": response.response_id or new_id(""),
        "finish_reason": reason,
        "message": body_parts.message(),
    }
    usage = cohere_usage(response.usage, report)
    if usage is not None:
        body["usage"] = usage
    return msgspec.json.encode(body)
