"""The conversation of a page's request, which the readers of both protocols fill."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from streamlib.request.conversation import History
from streamlib.request.report import Report
from streamlib.web.request_body import UIRequestLimits
from streamlib.web.request_tools import RequestTools, UICall, UIOutput, output_of
from streamlib.web.sealing import Seal
from streamlib.web.ui_parts import call_input
from streamlib_parsers.items import (
    JsonObject,
    Message,
    Origin,
    Refusal,
    ResponseItem,
    Text,
    ToolSpec,
)

ItemT = TypeVar("ItemT", bound=ResponseItem)

NOT_OFFERED: Final = "the server offers no such tool"
NO_CALL: Final = "the output of a call that the conversation does not have"
SECOND_OUTPUT: Final = "a second output of one call"
DENIED: Final = "the user did not allow this call"
"""The output of a call that was denied without a reason."""
UNSIGNED: Final = "reasoning without a signature: no provider takes it back"
NOT_SEALED: Final = "this server did not seal it for this user, or it was changed"
CHANGED: Final = "the page changed what is sealed"


class ToolApproval(Struct, frozen=True, kw_only=True):
    """What a user decided about a call that had to be approved.

    Attributes:
        id: the id of the approval.
        call_id: the call, which is in the history without an output if it was approved.
        name: the tool.
        approved: whether it may run.
        reason: what the user wrote.
    """

    id: str
    call_id: str
    name: str
    approved: bool
    reason: str | None = None


class RequestContext(Struct, frozen=True, kw_only=True):
    """What is the same for every message of a request.

    Attributes:
        offered: the tools whose calls are accepted.
        limits: limits of the body.
        report: receives what was left out.
        takes_urls: whether files are accepted by URL.
        origin: where signed state of the conversation was made; None: not known.
        seal: opens state that the page keeps sealed; None: it has none.
        is_transcript: no page sent it: it is a conversation that the caller kept, and may hold
            instructions and reasoning without a signature.
    """

    offered: RequestTools
    limits: UIRequestLimits
    report: Report
    takes_urls: bool
    origin: Origin | None
    seal: Seal | None
    is_transcript: bool = False


class ParsedRequest:
    """The conversation of a request while its messages are read."""

    def __init__(self, context: RequestContext) -> None:
        self.context = context
        self.history = History()
        """The conversation so far; each message appends to it."""
        self.tools: list[ToolSpec] = []
        """The tools that the page offers."""
        self.approvals: list[ToolApproval] = []
        self.chat_id: str | None = None
        self.message_id: str | None = None
        self.run_id: str | None = None
        self.parent_run_id: str | None = None
        self.trigger: str | None = None
        self.continues: str | None = None
        """The id of the page's message that the response continues."""
        self.continued_calls: list[str] = []
        """Ids of the calls in the newest message of the page; of an AG-UI thread, of all calls."""
        self.state: Any = None
        self.context_entries: list[JsonObject] = []
        self.resume: list[JsonObject] = []
        self.extra: JsonObject = {}
        self._calls: dict[str, UICall] = {}
        """Call id -> its newest call that has no output yet."""
        self._positions: dict[str, int] = {}
        """Call id -> index in the history, for calls that `add_call` appended."""
        self._answered: set[str] = set()
        """Ids of calls that have an output."""
        self._dropped: set[str] = set()
        """Ids of calls that are left out."""

    def dropped(self, path: str, reason: str) -> None:
        """Reports something that is left out."""
        self.context.report.dropped(path, reason)

    def unsealed(self, text: str, kind: type[ItemT], path: str) -> ItemT | None:
        """The item in a sealed text of the page; None, and a report, if it cannot be opened."""
        item: ResponseItem | None = None
        if self.context.seal is not None:
            item = self.context.seal.open(text)
        if isinstance(item, kind):
            return item
        self.dropped(path, NOT_SEALED)
        return None

    def sealed_message(self, text: str, shown: str, path: str) -> Message | None:
        """The message in a sealed text, if the page shows its words as they were."""
        item = self.unsealed(text, Message, path)
        if item is None:
            return None
        # Files of the message are parts of their own.
        parts = tuple([part for part in item.content if isinstance(part, (Text, Refusal))])
        item = replace(item, content=parts)
        texts = [part.text if isinstance(part, Text) else part.refusal for part in parts]
        if "".join(texts) == shown:
            return item
        self.dropped(path, CHANGED)
        return None

    def sealed_call(self, text: str, call: UICall, path: str) -> UICall:
        """The call in a sealed text, whatever arguments the page has; else the page's call."""
        item = self.unsealed(text, type(call), path)
        if item is None or (item.name, item.status) != (call.name, call.status):
            return call
        if call_input(item)[0] != call_input(call)[0]:
            self.dropped(path, CHANGED)
        return replace(item, call_id=call.call_id)

    def add(self, item: ResponseItem) -> None:
        """Appends an item."""
        self.history.append(item)

    def add_user(self, parts: list[Any], path: str) -> None:
        """Appends a message of the user, unless nothing of it is left."""
        if parts:
            self.add(Message("user", tuple(parts)))
        else:
            self.dropped(path, "a message without content")

    def note_call(self, call: UICall) -> None:
        """Records a call that an output may follow."""
        self._calls[call.call_id] = call

    def waiting_call(self, call_id: str) -> UICall | None:
        """The call of this id if it has no output yet."""
        return self._calls.get(call_id)

    def note_dropped_call(self, call_id: str) -> None:
        """Records a call that is left out, so that its output is left out too."""
        self._dropped.add(call_id)

    def add_call(self, call: UICall) -> None:
        """Appends a call that an output may follow."""
        self.note_call(call)
        self._positions[call.call_id] = len(self.history)
        self.add(call)

    def mark_incomplete(self, call_id: str) -> None:
        """Marks a call that the page has as truncated."""
        call = self._calls.pop(call_id, None)
        if call is not None:
            self.history[self._positions[call_id]] = replace(call, status="incomplete")

    def output(self, call_id: str, value: Any, *, is_error: bool, path: str) -> UIOutput | None:
        """The output of a call; None, and a report, if no call waits for it."""
        call = self._calls.pop(call_id, None)
        if call is None:
            reason = NO_CALL
            if call_id in self._dropped:
                reason = NOT_OFFERED
            if call_id in self._answered:
                reason = SECOND_OUTPUT
            self.dropped(path, reason)
            return None
        self._answered.add(call_id)
        return output_of(call, value, is_error=is_error)
