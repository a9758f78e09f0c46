"""Items as the messages of a Cohere request.

    {"role":"assistant","content":[{"type":"thinking",…},{"type":"text",…}],
     "tool_plan":"…","tool_calls":[…],"citations":[…]}
    {"role":"tool","tool_call_id":"…","content":"…"}

Rules have the numbers of the rule table in docs/wires/cohere.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamlib.request.history import IndexedItem, reasoning_text
from streamlib.request.json_objects import merged
from streamlib.request.media import media_type
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.wires.text_documents import is_text, text_of_document
from streamlib_parsers.items import (
    Audio,
    Compaction,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.json_text import dumps

ATTACHED: Final = "[attached to the message above]"
"""Text of the user message that carries the images of a result or of a response."""

MESSAGE_FIELDS: Final = "message"
"""Key in `native` of the first item of an assistant message: the message's own further keys."""


def messages(prompt: Prompt, items: list[IndexedItem], report: Report) -> list[JsonObject]:
    """The messages of a history, after the instructions."""
    conversation = Conversation(report)
    if prompt.instructions:
        conversation.messages.append({"role": "system", "content": prompt.instructions})
    for entry in items:
        conversation.take(entry)
    conversation.flush()
    return conversation.messages


class AssistantMessage:
    """One assistant message while its items are gathered."""

    def __init__(self, response_id: str | None) -> None:
        self.response_id = response_id
        """Id of the response that the items are from, None if unknown."""
        self.contents: list[JsonObject] = []
        """Texts and reasoning, in their order."""
        self.plan = ""
        """The tool plan."""
        self.calls: list[JsonObject] = []
        """`tool_calls` so far."""
        self.citations: list[JsonObject] = []
        """Citations of all contents and of the plan."""
        self.fields: JsonObject = {}
        """Further keys of the message."""

    def body(self, path: str, report: Report) -> JsonObject | None:
        """The wire's object; None if nothing is left to send."""
        sent = self.contents
        body: JsonObject = {"role": "assistant"}
        if self.plan and not self.calls:
            # The wire has a plan only beside calls.
            report.add("changed", path, "a tool plan without a call is sent as text")
            sent = [*sent, {"type": "text", "text": self.plan}]
        if sent:
            body["content"] = sent
        if self.plan and self.calls:
            body["tool_plan"] = self.plan
        if self.calls:
            body["tool_calls"] = self.calls
        if self.citations:
            body["citations"] = self.citations
        body.update(self.fields)
        if not sent and not self.calls:
            return None
        return body


class Conversation:
    """Takes the items in order and writes the messages."""

    def __init__(self, report: Report) -> None:
        self.messages: list[JsonObject] = []
        """The messages written so far."""
        self._report = report
        self._assistant: AssistantMessage | None = None
        """The assistant message being gathered, None between them."""
        self._path = ""
        """JSON pointer of the last gathered item in the prompt."""
        self._images: list[JsonObject] = []
        """Images that a tool or assistant message cannot hold, for the next user message."""

    def take(self, entry: IndexedItem) -> None:
        """Converts the next item."""
        match entry.item:
            case Message(role="assistant") as item:
                self._assistant_message(item, entry)
            case Message() as item:
                self._message(item, entry.path)
            case Reasoning() as item:
                self._reasoning(item, entry)
            case FunctionCall() as item:
                self._call(item, item.arguments, entry)
            case CustomToolCall() as item:
                self._report.add("changed", entry.path, 'a free-form call, sent as {"input": …}')
                self._call(item, dumps({"input": item.input}), entry)
            case FunctionCallOutput() | CustomToolCallOutput() as item:
                self._output(item, entry.path)
            case Compaction() as item:
                self._compaction(item, entry.path)
            case Opaque() as item:
                self._gather(entry).contents.append({"type": item.kind, **item.payload})
            case ServerToolCall() | ServerToolResult() as item:
                self._report.dropped(entry.path, f"Cohere has no {type(item).__name__}")
            case _ as item:
                raise TypeError(f"{type(item).__name__} must be converted to text first")

    def flush(self) -> None:
        """Writes what is gathered and buffered."""
        self._end_assistant()
        if self._images:
            text = {"type": "text", "text": ATTACHED}
            self.messages.append({"role": "user", "content": [text, *self._images]})
            self._images = []

    # --- messages of the caller ---

    def _message(self, item: Message, path: str) -> None:
        self.flush()
        role = "user" if item.role == "user" else "system"
        sent = _contents(item.content, path, self._report)
        if role == "system":
            sent = self._texts_only(sent, path)
        if not sent:
            self._report.dropped(path, "a message without content")
            return
        body = {"role": role, "content": _shortened(sent)}
        self.messages.append({**body, **(item.native or {})})

    def _texts_only(self, sent: list[JsonObject], path: str) -> list[JsonObject]:
        texts = [body for body in sent if body["type"] == "text"]
        if len(texts) != len(sent):
            self._report.dropped(path, "a system message is text")
        return texts

    def _output(self, item: FunctionCallOutput | CustomToolCallOutput, path: str) -> None:
        # Not `flush`: images of earlier results wait until the last result is written.
        self._end_assistant()
        sent: Any = item.output
        if not isinstance(item.output, str):
            sent = self._result_contents(item.output, path)
        if item.is_error:
            reason = "stated in the text: Cohere has no is_error"
            self._report.add("changed", f"{path}/is_error", reason)
            if isinstance(sent, str):
                sent = f"[error] {sent}".strip()
            else:
                sent = [{"type": "text", "text": "[error]"}, *sent]
        body = {"role": "tool", "tool_call_id": item.call_id, "content": sent}
        self.messages.append({**body, **(item.native or {})})

    def _result_contents(self, parts: Iterable[ContentPart], path: str) -> list[JsonObject] | str:
        """Contents of a result: texts and documents; images follow in a user message."""  # rule H3
        results: list[JsonObject] = []
        for body in _contents(parts, path, self._report):
            if body["type"] == "image_url":
                reason = "images of a result are sent in a user message after it"
                self._report.add("changed", path, reason)
                self._images.append(body)
            else:
                results.append(body)
        return results or ""

    def _compaction(self, item: Compaction, path: str) -> None:
        if not item.content:
            self._report.dropped(path, "an encrypted compaction")
            return
        self._report.add("changed", path, "Cohere has no compaction: sent as user text")
        self.flush()
        self.messages.append({"role": "user", "content": item.content})

    # --- messages of the model ---

    def _gather(self, entry: IndexedItem, *, is_call: bool = False) -> AssistantMessage:
        """The message that the item belongs to; begins a new one if needed."""
        response_id = entry.item.response_id
        assistant = self._assistant
        is_other = assistant is not None and assistant.response_id != response_id
        # After a call, every item until its result belongs here.
        if assistant is None or (is_other and not assistant.calls):
            self.flush()
            assistant = self._assistant = AssistantMessage(response_id)
        elif assistant.calls and not is_call:
            reason = "contents are sent before the calls: their order is lost"
            self._report.add("changed", entry.path, reason)
        self._path = entry.path
        fields = dict((entry.item.native or {}).get(MESSAGE_FIELDS, {}))
        assistant.citations += fields.pop("citations", ())
        assistant.fields.update(fields)
        return assistant

    def _end_assistant(self) -> None:
        if self._assistant is None:
            return
        body = self._assistant.body(self._path, self._report)
        self._assistant = None
        if body is not None:
            self.messages.append(body)

    def _assistant_message(self, item: Message, entry: IndexedItem) -> None:
        if not item.content:
            self._report.dropped_message(entry.path)
            return
        if item.phase == "commentary" and all(isinstance(part, Text) for part in item.content):
            self._plan(item, entry)
            return
        for index, part in enumerate(item.content):
            path = f"{entry.path}/content/{index}"
            body = _content(part, path, self._report)
            if body is None:
                continue
            if isinstance(part, Image):
                reason = "images of a response are sent in a user message after it"
                self._report.add("changed", path, reason)
                self._images.append(body)
                continue
            assistant = self._gather(entry)
            assistant.contents.append({**body, **_own_fields(item)})
            if isinstance(part, Text):
                position = len(assistant.contents) - 1
                assistant.citations += self._citations(part.annotations, path, position)

    def _plan(self, item: Message, entry: IndexedItem) -> None:
        assistant = self._gather(entry)
        if assistant.plan:
            reason = "a message has one tool plan: its texts are joined"
            self._report.add("changed", entry.path, reason)
        assistant.plan += item.text
        for part in item.content:
            if isinstance(part, Text):
                assistant.citations += self._citations(part.annotations, entry.path, None)

    def _reasoning(self, item: Reasoning, entry: IndexedItem) -> None:
        text = reasoning_text(item)
        if not text and not item.signature:
            self._report.dropped(entry.path, "reasoning without text")
            return
        assistant = self._gather(entry)
        fields = _own_fields(item)
        citations = fields.pop("citations", ())
        if item.signature:
            # Cohere itself has no signatures: a gateway that signed gets its signature back.
            fields["signature"] = item.signature
        assistant.contents.append({"type": "thinking", "thinking": text, **fields})
        position = len(assistant.contents) - 1
        assistant.citations += self._citations(citations, entry.path, position)

    def _citations(self, annotations: Any, path: str, position: int | None) -> list[JsonObject]:
        """Cohere's citations of one content; those of other wires are dropped."""
        citations: list[JsonObject] = []
        if not isinstance(annotations, (list, tuple)):
            # Not Cohere's list, but another value under the same key.
            self._report.dropped(f"{path}/citations", "no list of citations")
            return citations
        for annotation in annotations:
            is_citation = isinstance(annotation, dict)
            if not is_citation or "sources" not in annotation or "start" not in annotation:
                self._report.dropped(f"{path}/annotations", "a citation of another wire")
                continue
            citations.append(placed_citation(annotation, position))
        return citations

    def _call(
        self, item: FunctionCall | CustomToolCall, arguments: str, entry: IndexedItem
    ) -> None:
        function = {"name": item.name, "arguments": arguments or "{}"}
        call: JsonObject = {"id": item.call_id, "type": "function"}
        call = merged({**call, "function": function}, _own_fields(item))
        self._gather(entry, is_call=True).calls.append(call)


def listed_citations(citations: Any) -> list[JsonObject]:
    """The citations of reasoning, without other values under the same key."""
    if not isinstance(citations, (list, tuple)):
        return []
    return [citation for citation in citations if isinstance(citation, dict)]


def placed_citation(citation: JsonObject, position: int | None) -> JsonObject:
    """The citation with the index of the content that it is in now.

    The wire leaves the index out if the message has only one content.
    """
    if position is None or ("content_index" not in citation and position == 0):
        return citation
    return {**citation, "content_index": position}


def _own_fields(item: Any) -> JsonObject:
    """Further keys of the wire's object, without those of its message."""
    return {key: value for key, value in (item.native or {}).items() if key != MESSAGE_FIELDS}


def _shortened(sent: list[JsonObject]) -> Any:
    """One plain text is written as a string, which every server takes."""
    if len(sent) == 1 and sent[0].keys() == {"type", "text"}:
        return sent[0]["text"]
    return sent


# --- contents ---


def _contents(parts: Iterable[ContentPart], path: str, report: Report) -> list[JsonObject]:
    """The contents of a message; empty texts are left out."""  # rule H2
    sent: list[JsonObject] = []
    for index, part in enumerate(parts):
        body = _content(part, f"{path}/content/{index}", report)
        if body is not None:
            sent.append(body)
    return sent


def _content(part: ContentPart, path: str, report: Report) -> JsonObject | None:
    """One content; None, and reported, if nothing of the part can be sent."""
    native = part.native or {}
    match part:
        case Text() if "type" in native:
            # A content of a kind that has no part type is kept complete in `native`.
            return native
        case Text():
            return _text(part.text, native, path, report)
        case Refusal():
            return _text(part.refusal, {}, path, report)
        case Image():
            return _image(part, path, report)
        case Document(data=str(data)) if is_text(media_type(part)):
            report.add("changed", path, "a document of text is sent as text")
            return _text(text_of_document(data, part.name or media_type(part)), {}, path, report)
        case Audio(transcript=str(transcript)):
            report.add("changed", path, "Cohere takes no audio: its transcript is sent")
            return _text(transcript, {}, path, report)
        case _:
            report.dropped(path, f"Cohere takes no {type(part).__name__.lower()}")
            return None


def _text(text: str, native: JsonObject, path: str, report: Report) -> JsonObject | None:
    if not text:
        report.dropped(path, "empty text")
        return None
    return {"type": "text", "text": text, **native}


def _image(part: Image, path: str, report: Report) -> JsonObject | None:
    url = part.url
    if part.data:
        url = f"data:{media_type(part)};base64,{part.data}"
    if not url:
        report.dropped(path, "an image stored by another provider")
        return None
    if part.name:
        report.dropped(f"{path}/name", "Cohere has no name of an image")
    return {"type": "image_url", "image_url": {"url": url, **(part.native or {})}}
