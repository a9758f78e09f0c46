"""Builds a request to Ollama's native /api/chat from a `Prompt`.

    {"role":"user","content":"…","images":["<base64>"]}
    {"role":"assistant","content":"…","thinking":"…","tool_calls":[{"id":"…","function":{…}}]}
    {"role":"tool","tool_name":"f","tool_call_id":"…","content":"…"}

O1 content is one text; images are base64 and are beside it
O2 arguments are an object, in their own bytes
O3 results in the order of their calls: older servers match them by nothing else
O4 settings of the model are in `options`
O5 thinking is on, off, or one of three levels
O6 no tool choice, no URLs, no audio
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from streamlib.request.history import CALLS, OUTPUTS, IndexedItem, turn_fields
from streamlib.request.json_objects import without_keys
from streamlib.request.media import media_type
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib.wires.arguments import as_object
from streamlib.wires.ollama.settings import SETTINGS, wire_tool
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
    Origin,
    Reasoning,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.stream_error import invalid_request

CALLER: Final = Origin("ollama")
"""Origin of the items of a decoded request; items of responses also name their provider."""

SEPARATOR: Final = "\n\n"
"""Separates a caller's texts, which are joined into one."""

ATTACHED: Final = "[attached to the message above]"
"""Text of the user message that carries the images of a result or of a response."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body.

    Args:
        prompt: the settings; its own input is not read.
        items: the repaired and downgraded history, with positions in the prompt's input.
        context: the target, and the report that is filled.

    Returns:
        The body, without headers of its own.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is no message to send.
    """
    report = context.report
    body: JsonObject = {"model": context.target.model}
    if prompt.tools:
        body["tools"] = [wire_tool(tool, index, report) for index, tool in enumerate(prompt.tools)]
    body["messages"] = _messages(prompt, items, report)
    body["stream"] = prompt.stream is not False
    body.update(SETTINGS.write(prompt, context))
    return BuiltRequest(body)


# --- messages ---


def _messages(prompt: Prompt, items: list[IndexedItem], report: Report) -> list[JsonObject]:
    conversation = Conversation(report)
    # An empty text also counts: it replaces the system prompt of the model's own file.
    if prompt.instructions is not None:
        conversation.messages.append({"role": "system", "content": prompt.instructions})
    for entry in _in_call_order(items):
        conversation.take(entry)
    conversation.flush()
    if not prompt.items and prompt.extra_wire == "ollama":
        # A client's own request without messages: the server loads the model, or unloads it.
        return conversation.messages
    if not conversation.messages:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    return conversation.messages


def _in_call_order(items: list[IndexedItem]) -> list[IndexedItem]:
    """O3: sorts each run of results by the positions of their calls."""
    call_order: dict[str, int] = {}
    for index, entry in enumerate(items):
        if isinstance(entry.item, CALLS):
            call_order[entry.item.call_id] = index
    result: list[IndexedItem] = []
    run: list[tuple[int, IndexedItem]] = []
    for entry in items:
        if isinstance(entry.item, OUTPUTS):
            run.append((call_order.get(entry.item.call_id, 0), entry))
            continue
        result += _sorted_results(run)
        run = []
        result.append(entry)
    return result + _sorted_results(run)


def _sorted_results(run: list[tuple[int, IndexedItem]]) -> list[IndexedItem]:
    # Sorted by the call alone: results of one call keep their order.
    run.sort(key=lambda ranked: ranked[0])
    return [entry for _, entry in run]


MessageField: TypeAlias = Literal["content", "thinking", "tool_calls", "images"]


class AssistantMessage:
    """One assistant message while its items are gathered."""

    def __init__(self) -> None:
        self.response_id: str | None = None
        """Id of the response of the item added last, None if unknown."""
        self.texts: list[str] = []
        """The message's text so far, in fragments."""
        self.reasoning: list[str] = []
        """The text of its reasoning so far, in fragments."""
        self.images: list[str] = []
        """Images that the message of a request had."""
        self.fields: JsonObject = {}
        """Further keys of the message."""
        self.calls: list[JsonObject] = []
        """`tool_calls` so far. Once there is one, every item until its result belongs here."""

    def accepts(self, response_id: str | None, field: MessageField) -> bool:
        """Whether an item of a response belongs to this message, in one of its fields."""
        if response_id is not None and response_id == self.response_id:
            return True
        if self.calls:
            return True
        if response_id != self.response_id:
            return False
        return not self.texts or field not in ("content", "thinking")

    def loses_order(self, field: MessageField) -> bool:
        """Whether an item added now has a position that the message cannot express."""
        if self.calls:
            return field != "tool_calls"
        return field == "thinking" and bool(self.texts)

    def body(self) -> JsonObject:
        """The wire's object."""
        body: JsonObject = {
            **self.fields,
            "role": "assistant",
            "content": "".join(self.texts),
        }
        if self.reasoning:
            body["thinking"] = "".join(self.reasoning)
        if self.images:
            body["images"] = self.images
        if self.calls:
            body["tool_calls"] = self.calls
        return body


class Conversation:
    """Takes the items in order and writes the messages."""

    def __init__(self, report: Report) -> None:
        self.messages: list[JsonObject] = []
        """The messages written so far."""
        self._report = report
        self._assistant: AssistantMessage | None = None
        """The assistant message being gathered, None between them."""
        self._names: dict[str, str] = {}
        """Call id -> name of the tool, which the result repeats."""
        self._images: list[str] = []
        """Images that a tool or assistant message cannot hold, for the next user message."""

    def take(self, entry: IndexedItem) -> None:
        """Converts the next item."""
        match entry.item:
            case Message() as item:
                self._message(item, entry)
            case FunctionCall() as item:
                self._call(item, entry)
            case FunctionCallOutput() | CustomToolCallOutput() as item:
                self._output(item, entry)
            case Reasoning() as item:
                self._reasoning(item, entry)
            case CustomToolCall() as item:
                self._custom_call(item, entry)
            case Compaction() as item:
                self._compaction(item, entry)
            case ServerToolCall() | ServerToolResult() | Opaque() as item:
                self._report.dropped(entry.path, f"Ollama has no {type(item).__name__}")
            case _ as item:
                raise TypeError(f"{type(item).__name__} must be converted to text first")

    def flush(self) -> None:
        """Writes what is gathered and buffered."""
        self._end_assistant()
        if self._images:
            self.messages.append({"role": "user", "content": ATTACHED, "images": self._images})
            self._images = []

    def _end_assistant(self) -> None:
        if self._assistant is not None:
            self.messages.append(self._assistant.body())
            self._assistant = None

    def _message(self, item: Message, entry: IndexedItem) -> None:
        """O1: text and images."""
        texts = self._texts(item.content, entry)
        images = _images(item.content)
        if item.role == "assistant":
            self._assistant_message("".join(texts), images, entry)
            return
        self.flush()
        text = SEPARATOR.join(texts)
        if not text and not images:
            self._report.dropped_message(entry.path)
            return
        # Templates of models know no `developer`.
        role = "system" if item.role == "developer" else item.role
        body: JsonObject = {"role": role, "content": text}
        if images:
            body["images"] = images
        body.update(item.native or {})
        self.messages.append(body)

    def _assistant_message(self, text: str, images: list[str], entry: IndexedItem) -> None:
        # An empty one too: the turns of user and assistant alternate.
        if text or not images:
            self._gather(entry, "content").texts.append(text)
        elif images:
            self._gather(entry, "images")
        if images and entry.item.origin == CALLER:
            self._gather(entry, "images").images += images
        elif images:
            self._report.add(
                "changed", entry.path, "images of a response are sent in a user message after it"
            )
            self._images += images

    def _gather(self, entry: IndexedItem, field: MessageField) -> AssistantMessage:
        """The message that the item belongs to; begins a new one if needed."""
        response_id = entry.item.response_id
        assistant = self._assistant
        if assistant is None or not assistant.accepts(response_id, field):
            self.flush()
            assistant = self._assistant = AssistantMessage()
        elif assistant.loses_order(field):
            self._report.add(
                "changed",
                entry.path,
                "a message has one text and one reasoning: the order within the response is lost",
            )
        assistant.response_id = response_id
        assistant.fields.update(turn_fields(entry.item))
        return assistant

    def _reasoning(self, item: Reasoning, entry: IndexedItem) -> None:
        """Reasoning goes back in the message of the text that it led to."""
        text = item.content or SEPARATOR.join(item.summary)
        if text:
            self._gather(entry, "thinking").reasoning.append(text)
        else:
            self._report.dropped(entry.path, "reasoning without text")

    def _call(self, item: FunctionCall, entry: IndexedItem) -> None:
        """O2: a call with its arguments as an object."""
        # `message` holds keys of the message around the call.
        native = without_keys(item.native or {}, "message")
        function: JsonObject = {
            "name": item.name,
            "arguments": as_object(item, entry.path, self._report),
        }
        function.update(native.pop("function", {}))
        call = {"id": item.call_id, "type": "function", **native, "function": function}
        self._add_call(call, entry)

    def _custom_call(self, item: CustomToolCall, entry: IndexedItem) -> None:
        self._report.add("changed", entry.path, 'a free-form call, sent as {"input": …}')
        function = {"name": item.name, "arguments": {"input": item.input}}
        self._add_call({"id": item.call_id, "type": "function", "function": function}, entry)

    def _add_call(self, call: JsonObject, entry: IndexedItem) -> None:
        self._names[call["id"]] = call["function"]["name"]
        self._gather(entry, "tool_calls").calls.append(call)

    def _output(self, item: FunctionCallOutput | CustomToolCallOutput, entry: IndexedItem) -> None:
        # Not `flush`: images of earlier results wait until the last result is written.
        self._end_assistant()
        native: JsonObject = dict(item.native or {})
        if isinstance(item.output, str):
            text = item.output
        else:
            text = SEPARATOR.join(self._texts(item.output, entry))
            images = _images(item.output)
            if images and item.origin == CALLER:
                native["images"] = images
            elif images:
                self._report.add(
                    "changed", entry.path, "images of a result are sent in a user message after it"
                )
                self._images += images
        if item.is_error:
            self._report.add(
                "changed", f"{entry.path}/is_error", "stated in the text: Ollama has no is_error"
            )
            text = f"[error] {text}".strip()
        name = self._names.get(item.call_id, "")
        body = {"role": "tool", "tool_name": name, "tool_call_id": item.call_id, "content": text}
        self.messages.append({**body, **native})

    def _compaction(self, item: Compaction, entry: IndexedItem) -> None:
        if not item.content:
            self._report.dropped(entry.path, "an encrypted compaction")
            return
        self._report.add("changed", entry.path, "Ollama has no compaction: sent as user text")
        self.flush()
        self.messages.append({"role": "user", "content": item.content})

    def _texts(self, content: Sequence[ContentPart], entry: IndexedItem) -> list[str]:
        """The texts of the parts that are, or can be sent as, text."""
        texts = [self._text(part, entry) for part in content]
        return [text for text in texts if text]

    def _text(self, part: ContentPart, entry: IndexedItem) -> str:
        match part:
            case Text():
                return part.text
            case Refusal():
                return part.refusal
            case Document(data=str(data)) if is_text(media_type(part)):
                self._report.add("changed", entry.path, "a document of text is sent as text")
                return text_of_document(data, part.name or media_type(part))
            case Image(data=str()):
                # Sent beside the text (O1).
                return ""
            case Audio(transcript=str(transcript)):
                self._report.dropped(entry.path, "Ollama takes no audio: its transcript is sent")
                return transcript
            case _:
                kind = type(part).__name__.lower()
                self._report.dropped(
                    entry.path, f"Ollama takes no such {kind}: images as bytes only"
                )
                return ""


def _images(content: Sequence[ContentPart]) -> list[str]:
    return [part.data for part in content if isinstance(part, Image) and part.data]
