"""Applies the rules to a request, and signs a response as the service would.

Signatures are on: Claude's reasoning; the first call of a response and the end of a text of
Gemini 3; thoughts of Interactions; encrypted content and ids of Responses; on Chat, the reasoning
of OpenRouter's Claude and the calls of Google's Gemini.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from streamlib.testing.provider.strict import (
    chat,
    cohere,
    converse,
    gemini,
    interactions,
    invoke,
    messages,
    ollama,
    responses,
)
from streamlib.testing.provider.strict.cached_contents import CacheResponse, cache_response
from streamlib.testing.provider.strict.chat_signatures import (
    message_keys,
    signs_calls,
    signs_reasoning,
)
from streamlib.testing.provider.strict.ledger import Ledger, LedgerResponse, Signed
from streamlib.testing.provider.strict.messages_thinking import THINKING_RULES
from streamlib.testing.provider.strict.messages_tools import TOOL_RULES
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    check,
    string,
)
from streamlib_parsers.events import (
    Completed,
    Created,
    OutputItemAdded,
    OutputItemDone,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    ResponseEvent,
)
from streamlib_parsers.items import (
    FunctionCall,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    WireApi,
)

RULES: Final[dict[WireApi, tuple[Rule, ...]]] = {
    "messages": (
        messages.check_version,
        messages.check_beta_names,
        messages.check_fields,
        *messages.CONTENT_RULES,
        *TOOL_RULES,
        *THINKING_RULES,
    ),
    "responses": responses.RULES,
    "chat": chat.RULES,
    "gemini": gemini.RULES,
    "interactions": interactions.RULES,
    "converse": converse.RULES,
    "invoke": invoke.RULES,
    "ollama": ollama.RULES,
    "cohere": cohere.RULES,
}
"""Wire -> its rules, in the order in which a request is checked."""

SUMMARIES: Final[frozenset[WireApi]] = frozenset({"interactions", "responses"})
"""Wires whose services show reasoning as a summary."""

ID_PREFIXES: Final[tuple[tuple[type[Reasoning | Message | FunctionCall], str], ...]] = (
    (Reasoning, "rs"),
    (Message, "msg"),
    (FunctionCall, "fc"),
)
"""Kind of a Responses item -> prefix of its ids."""


class Refused(NamedTuple):
    """The HTTP response to a request that was refused."""

    status: int
    body: bytes
    headers: dict[str, str]


class StrictProvider:
    """The rules of every wire, and the ledger of one run of the server.

    Attributes:
        ledger: signatures and responses that were issued.
    """

    def __init__(self, account: str = "loopback") -> None:
        """Makes a provider that signs for one account; accounts do not share signatures."""
        self.ledger = Ledger(account)

    def check(
        self, wire_api: WireApi, raw_body: bytes, headers: Mapping[str, str], model: str | None
    ) -> Refused | None:
        """The refusal of a request; None if the service accepts it.

        Args:
            wire_api: the wire of the request.
            raw_body: body of the request.
            headers: headers of the request.
            model: name of the model in the path; None if the body names it.
        """
        try:
            body = msgspec.json.decode(raw_body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _refused(wire_api, Rejection("The request body is not valid JSON."))
        if not isinstance(body, dict):
            return _refused(wire_api, Rejection("The request body is not a JSON object."))
        request = StrictRequest(
            wire_api,
            body,
            {name.lower(): value for name, value in headers.items()},
            model or string(body.get("model")),
            self.ledger,
        )
        try:
            check(RULES[wire_api], request)
        except Rejection as rejection:
            return _refused(wire_api, rejection)
        return None

    def cached(self, method: str, path: str, body: bytes) -> CacheResponse | None:
        """The response to a request about cached content; None for any other path.

        Args:
            method: HTTP method.
            path: path of the request.
            body: body of the request.
        """
        return cache_response(self.ledger, method, path, body)

    def signed(
        self, wire_api: WireApi, events: Sequence[ResponseEvent], raw_body: bytes
    ) -> list[ResponseEvent]:
        """The events of a response with the signatures and ids that the service would add.

        Args:
            wire_api: the wire of the response.
            events: the response.
            raw_body: body of the request, which Responses stores with the response.
        """
        number = self.ledger.next_number()
        body: JsonObject = msgspec.json.decode(raw_body)
        model = string(body.get("model"))
        if wire_api == "chat" and not message_keys(model):
            # OpenAI and Google send no reasoning there, and refuse it in a later request.
            events = _without_reasoning(events)
        signer = _Signer(wire_api, self.ledger, number, events, model)
        signed = [signer.signed(event) for event in events]
        if wire_api == "responses":
            self._store(signer, body)
        return signed

    def _store(self, signer: _Signer, body: JsonObject) -> None:
        """Stores a response that a request may name by its id, unless it has ``store: false``."""
        if body.get("store") is False:
            return
        request = StrictRequest("responses", body, {}, "", self.ledger)
        items = (*responses.conversation(request), *signer.output)
        self.ledger.stored[signer.response_id] = LedgerResponse(items)


class _Signer:
    """Signs the items of one response.

    Attributes:
        response_id: id of the response.
        output: its items as JSON objects of Responses, for storage.
    """

    def __init__(
        self,
        wire_api: WireApi,
        ledger: Ledger,
        number: int,
        events: Sequence[ResponseEvent],
        model: str,
    ) -> None:
        self.response_id = f"resp_{hashlib.sha256(str(number).encode()).hexdigest()[:24]}"
        self.output: list[JsonObject] = []
        self._wire_api: WireApi = wire_api
        self._model = model
        """The model that the request names; on Chat it tells the service."""
        self._ledger = ledger
        self._index = 0
        """Number of items signed so far."""
        self._count = 0
        """Number of items that will be signed in the response."""
        self._reasoning_id: str | None = None
        """Id of the reasoning directly before the next item (Responses)."""
        self._has_signed_call = False
        """Whether the first call of the response was signed (Gemini, and Gemini on Chat)."""
        for event in events:
            if isinstance(event, OutputItemDone) and isinstance(event.item, Reasoning):
                self._count += 1

    def signed(self, event: ResponseEvent) -> ResponseEvent:
        """The event with the id of this response and with a signature on its item."""
        match event:
            case Created():
                return msgspec.structs.replace(event, response_id=self.response_id)
            case Completed():
                return msgspec.structs.replace(event, response_id=self.response_id)
            case OutputItemAdded():
                return msgspec.structs.replace(event, item=self._with_id(event.item, event.index))
            case OutputItemDone():
                item = self._with_id(event.item, event.index)
                return msgspec.structs.replace(event, item=self._signed_item(item))
            case ReasoningContentDelta(index, place, delta) if self._wire_api in SUMMARIES:
                return ReasoningSummaryDelta(index, place, delta, seq=event.seq)
            case _:
                return event

    def _with_id(self, item: ResponseItem, index: int) -> ResponseItem:
        if self._wire_api != "responses":
            return item
        for kind, prefix in ID_PREFIXES:
            if isinstance(item, kind):
                item_id = f"{prefix}_{self.response_id.removeprefix('resp_')}{index:04}"
                return msgspec.structs.replace(item, id=item_id)
        return item

    def _signed_item(self, item: ResponseItem) -> ResponseItem:
        match self._wire_api:
            case "messages" | "converse" | "invoke":
                return self._claude_item(item)
            case "gemini":
                return self._gemini_item(item)
            case "chat":
                return self._chat_item(item)
            case "interactions":
                return self._interactions_item(item)
            case "responses":
                return self._responses_item(item)
            case _:
                return item

    def _signature(self, content: str) -> str:
        record = Signed(self.response_id, self._index, self._count)
        self._index += 1
        return self._ledger.sign(self._wire_api, record, content)

    def _claude_item(self, item: ResponseItem) -> ResponseItem:
        if not isinstance(item, Reasoning):
            return item
        if item.redacted:
            return msgspec.structs.replace(item, encrypted_content=self._signature(""))
        return msgspec.structs.replace(item, signature=self._signature(item.text))

    def _gemini_item(self, item: ResponseItem) -> ResponseItem:
        if isinstance(item, FunctionCall) and not self._has_signed_call:
            self._has_signed_call = True
            signature = self._signature(item.name)
            return msgspec.structs.replace(item, signature=signature)
        if isinstance(item, Message):
            return msgspec.structs.replace(item, signature=self._signature(""))
        return msgspec.structs.replace(item, signature=None)

    def _chat_item(self, item: ResponseItem) -> ResponseItem:
        if isinstance(item, Reasoning) and signs_reasoning(self._model):
            return msgspec.structs.replace(item, signature=self._signature(item.text))
        is_first_call = isinstance(item, FunctionCall) and not self._has_signed_call
        if isinstance(item, FunctionCall) and is_first_call and signs_calls(self._model):
            self._has_signed_call = True
            return msgspec.structs.replace(item, signature=self._signature(item.name))
        return item

    def _interactions_item(self, item: ResponseItem) -> ResponseItem:
        """Signs thoughts only; their text is a summary."""
        if not isinstance(item, Reasoning):
            return item
        signature = self._signature("")
        summary = item.summary or (item.text,)
        return msgspec.structs.replace(item, content="", summary=summary, signature=signature)

    def _responses_item(self, item: ResponseItem) -> ResponseItem:
        if self._reasoning_id is not None and item.id is not None:
            self._ledger.reasoning_before[item.id] = self._reasoning_id
        self._reasoning_id = None
        if isinstance(item, Reasoning):
            self._reasoning_id = item.id
            encrypted_content = self._signature("")
            item = msgspec.structs.replace(
                item,
                signature=None,
                content="",
                summary=item.summary or (item.text,),
                encrypted_content=encrypted_content,
            )
        self.output.append(_stored_item(item))
        return item


def _without_reasoning(events: Sequence[ResponseEvent]) -> list[ResponseEvent]:
    """The events without those of reasoning items."""
    indexes: set[int] = set()
    others: list[ResponseEvent] = []
    for event in events:
        if isinstance(event, OutputItemAdded) and isinstance(event.item, Reasoning):
            indexes.add(event.index)
        if getattr(event, "index", None) not in indexes:
            others.append(event)
    return others


def _stored_item(item: ResponseItem) -> JsonObject:
    """An output item as the input item that the rules of Responses read."""
    match item:
        case Reasoning():
            return {"type": "reasoning", "id": item.id, "summary": []}
        case FunctionCall():
            return {"type": "function_call", "id": item.id, "call_id": item.call_id}
        case _:
            return {"type": "message", "id": item.id, "role": "assistant", "content": []}


def _refused(wire_api: WireApi, rejection: Rejection) -> Refused:
    """The HTTP error, in the format of the wire's service."""
    headers: dict[str, str] = {}
    message = rejection.message
    body: JsonObject
    match wire_api:
        case "messages":
            error = {"type": "invalid_request_error", "message": message}
            body = {"type": "error", "error": error, "request_id": "req_loopback"}
        case "responses" | "chat":
            body = {
                "error": {
                    "message": message,
                    "type": "invalid_request_error",
                    "param": rejection.param,
                    "code": rejection.code,
                }
            }
        case "gemini":
            status = "PERMISSION_DENIED" if rejection.status == 403 else "INVALID_ARGUMENT"
            body = {"error": {"code": rejection.status, "message": message, "status": status}}
        case "interactions":
            body = {"error": {"code": rejection.code or "invalid_request", "message": message}}
        case "converse" | "invoke":
            headers["x-amzn-errortype"] = "ValidationException"
            body = {"message": message}
        case "ollama":
            body = {"error": message}
        case "cohere":
            body = {"id": "loopback", "message": message}
    return Refused(rejection.status, msgspec.json.encode(body), headers)
