"""OpenAI Responses: the life of an item, from `output_item.added` to its final version.

The API sends each item complete in `output_item.done`, and all of them once more in the event that
ends the stream. Either may be missing: a call whose name comes with its end, `output: []` from the
Codex backend, items that are only in the last event, text of an item that was never added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib_parsers.assembler import EventAssembler, text_changes
from streamlib_parsers.errors import malformed
from streamlib_parsers.events import StopReason
from streamlib_parsers.item_text import call_text, part_text
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
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
from streamlib_parsers.json_text import (
    DECODE_ERRORS,
    decode_any,
    mark_surrogates,
    scrub,
    string_at,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.responses.events import (
    ItemAdded,
    ItemDone,
    ItemEvent,
    list_of_objects,
    name_of,
    nonempty_string,
)
from streamlib_parsers.wires.responses.items import (
    HOSTED,
    agent_name,
    item_of,
    known_parts,
    names_agent,
    outline,
    unknown_parts,
)
from streamlib_parsers.wires.responses.slots import Slots

INCOMPLETE_REASONS: Final[dict[str, StopReason]] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
"""Stop reasons by `incomplete_details.reason`; every other (max_messages, steered) is `other`."""

NAMED: Final = (FunctionCall, CustomToolCall)

PENDING: Final = (*NAMED, *BUILT_IN_CALLS)
"""Classes of calls that wait for the caller's output."""


class OutputItems:
    """The items of one response."""

    def __init__(self, assembler: EventAssembler) -> None:
        # Every item that was opened, by index and id.
        self.slots = Slots()
        # The text parts that got logprobs from deltas, as (item index, part index).
        self.logprobs_streamed: set[tuple[int, int]] = set()
        self._assembler = assembler
        # Ids of the complete calls that wait for the caller's output, in order of arrival.
        self._open_calls: dict[str, None] = {}
        # Whether a finished message of the agent that was asked had text, or a refusal.
        self._has_text = False
        self._has_refusal = False
        # Items of which an event named another agent, by index: each is reported once.
        self._misnamed: set[int] = set()
        # Calls that were added without a name, by output_index and id, until their `.done`.
        self._unnamed: dict[tuple[int | None, str | None], ResponseItem] = {}

    # --- start ---

    def added(self, event: ItemAdded, data: bytes) -> None:
        """Reads `output_item.added`. Text in it already counts as the item's first delta."""
        block, raw = self._read(event.item)
        if not block or self._is_repeated(block, event, data):
            return
        item = self._item(block, raw, event)
        if isinstance(item, NAMED) and not item.name:
            # Nothing is emitted before the name is known: it may come with the `.done`.
            self.slots.add_nameless(item.id or event.item_id)
            self._unnamed[event.output_index, item.id or event.item_id] = item
            self._assembler.before_close = self._close_unnamed
            return
        opened = self._open(item, string_at(block, "type"), event.output_index)
        # Arguments that are a JSON value (`action`) are emitted with the `.done`, all at once.
        arguments = call_text(item)
        if arguments and arguments not in block.values():
            return
        for emit, before, after, part in text_changes(opened.item, item):
            emit(self._assembler, opened, after[len(before) :], part)

    def placeholder(self, item: Message | Reasoning, event: ItemEvent) -> OpenItem | None:
        """Opens an item whose text came although it was never added (OpenRouter: `item: null`).

        Returns:
            The item; None where it is done already.
        """
        if self.slots.is_done(event.output_index, event.item_id):
            return None
        # The type that the last event is matched by.
        kind = "message" if isinstance(item, Message) else "reasoning"
        item = msgspec.structs.replace(item, id=event.item_id, agent=agent_name(event.agent))
        return self._open(item, kind, event.output_index)

    def _item(self, block: JsonObject, raw: bytes, event: ItemAdded | ItemDone) -> ResponseItem:
        """The item of an event; it is of the event's agent where it names none itself."""
        item = item_of(block, raw, self._assembler.offered)
        if event.agent is None or names_agent(block):
            return item
        return msgspec.structs.replace(item, agent=agent_name(event.agent))

    def find(self, output_index: int | None, item_id: str | None, agent: Any) -> OpenItem | None:
        """The open item of an event, whose `agent` names the item's where nothing else does."""
        opened = self.slots.find(output_index, item_id)
        name = agent_name(agent)
        if opened is None or name is None or name == opened.agent:
            return opened
        is_unnamed = opened.agent is None and not names_agent(opened.item.native or {})
        # Without an address the item is the newest one, which may be another agent's.
        if is_unnamed and self.slots.is_addressed(output_index, item_id):
            opened.name_agent(name)
        else:
            self._note_agent(opened, name)
        return opened

    def _with_agent(self, opened: OpenItem, final: ResponseItem, block: JsonObject) -> ResponseItem:
        """The final version, which may lack the agent of the item, or name another one."""
        if final.agent is None and not names_agent(block):
            return msgspec.structs.replace(final, agent=opened.agent)
        self._note_agent(opened, final.agent)
        opened.name_agent(final.agent)
        return final

    def _note_agent(self, opened: OpenItem, agent: str | None) -> None:
        """Reports that a further agent was named for an item. The item's own agent counts."""
        if opened.index not in self._misnamed:
            self._misnamed.add(opened.index)
            detail = f"{agent or 'the root'} beside {opened.agent or 'the root'}"
            self._assembler.notice("other_agent", detail, opened)

    def _open(self, item: ResponseItem, kind: str, output_index: int | None) -> OpenItem:
        if type(item) in PENDING and not getattr(item, "call_id", ""):
            item = msgspec.structs.replace(item, call_id=self._assembler.new_call_id())
        opened = self._assembler.open(outline(item))
        # The code of a program is not JSON, but its item is complete nevertheless.
        opened.free_text = kind in HOSTED and HOSTED[kind].free_text
        self.slots.add(opened, kind, output_index)
        return opened

    def _read(self, item: Raw) -> tuple[JsonObject, bytes]:
        """The item and its bytes; `{}` for null, which holds nothing."""
        raw = bytes(item)
        try:
            block = msgspec.json.decode(raw)
        except DECODE_ERRORS:
            raw = mark_surrogates(raw) or raw
            block = decode_any(raw)
        if block is None:
            return {}, raw
        if not isinstance(block, dict):
            raise malformed("an item is not a JSON object", raw)
        if self._assembler.surrogates is not None:
            block = scrub(block)
        return block, raw

    def _is_repeated(self, block: JsonObject, event: ItemAdded | ItemDone, data: bytes) -> bool:
        """Returns whether the item was added before; if so, passes the event through."""
        if not self.slots.is_repeated(event.output_index, nonempty_string(block, "id")):
            return False
        kind = string_at(block, "type")
        self._assembler.notice("repeated_item", f"{kind} {event.output_index}")
        self._assembler.passthrough(name_of(event), decode_any(data), agent_name(event.agent))
        return True

    # --- end ---

    def done(self, event: ItemDone, data: bytes) -> None:
        """Reads `output_item.done`: the final version, whatever came before."""
        block, raw = self._read(event.item)
        if not block:
            return
        item = self._item(block, raw, event)
        item_id = nonempty_string(block, "id") or event.item_id
        opened = self.slots.find(event.output_index, item_id)
        if opened is None:
            if self._is_repeated(block, event, data):
                return
        elif type(opened.item) is not type(item):
            if opened.item.id == item_id:  # it was opened as one kind and is done as another
                self._assembler.close(opened, "incomplete")
                self.slots.end(opened, None)
            opened = None
        self._forget_unnamed(event.output_index, item_id)
        if opened is None:
            opened = self._open(item, string_at(block, "type"), event.output_index)
        self._finish(opened, item, block)

    def _forget_unnamed(self, output_index: int | None, item_id: str | None) -> None:
        """Removes the call that was added without a name, now that it came again.

        It is the one at the same index or with the same id; a missing id is not shared with
        another missing one, unless the index is the same.
        """
        for key in list(self._unnamed):
            known_index, known_id = key
            is_same_index = output_index is not None and output_index == known_index
            is_same_id = item_id is not None and item_id == known_id
            if is_same_index or is_same_id or key == (output_index, item_id):
                del self._unnamed[key]

    def _close_unnamed(self) -> None:
        """Emits the calls that never got a name: nobody can answer them, but they are not lost."""
        for item in self._unnamed.values():
            if self._assembler.item_count < self._assembler.limits.items:
                opened = self._open(item, "", None)
                self._assembler.notice("nameless_call", "the call never got a name", opened)
                self._assembler.close(opened, "incomplete")
        self._unnamed.clear()

    def _finish(self, opened: OpenItem, final: ResponseItem, block: JsonObject) -> None:
        """Ends an item with its final version, and emits the parts that no item type holds."""
        if final.agent != opened.agent:
            final = self._with_agent(opened, final, block)
        streamed = opened.item
        # The kinds that most items have come first: each `isinstance` takes its time.
        if isinstance(final, Message):
            self._add_logprobs(opened, final, block)
            self._annotate(opened, final)
        elif isinstance(final, Reasoning):
            final = _without_repetition(opened, final)
        elif isinstance(final, NAMED) and isinstance(streamed, NAMED):
            final = msgspec.structs.replace(
                final,
                call_id=final.call_id or streamed.call_id,
                name=final.name or streamed.name,
            )
            if not final.name:
                detail = "a call without a name cannot be answered"
                self._assembler.notice("nameless_call", detail, opened)
                final = msgspec.structs.replace(final, status="incomplete")
        elif isinstance(final, BUILT_IN_CALLS) and isinstance(streamed, BUILT_IN_CALLS):
            call_id = final.call_id or streamed.call_id
            final = msgspec.structs.replace(final, call_id=call_id)
        self._assembler.finish_with(opened, final)
        self.slots.end(opened, final.id)
        for part in unknown_parts(block):
            part = msgspec.structs.replace(part, agent=opened.agent)  # noqa: PLW2901
            self._assembler.close(self._assembler.open(part))
        self._note_outcome(opened.item)

    def _add_logprobs(self, opened: OpenItem, final: Message, block: JsonObject) -> None:
        """Emits the logprobs that no delta brought: a complete body has them in its parts only."""
        missing: dict[int, list[JsonObject]] = {}
        for index, wire_part in enumerate(known_parts(block)):
            logprobs = list_of_objects(wire_part.get("logprobs"))
            is_streamed = (opened.index, index) in self.logprobs_streamed
            if logprobs and isinstance(final.content[index], Text) and not is_streamed:
                missing[index] = logprobs
        if not missing:
            return
        last = max(missing)
        for emit, streamed, text, index in text_changes(opened.snapshot("incomplete"), final):
            if index > last:
                break
            rest = text[len(streamed) :] if text.startswith(streamed) else ""
            if index in missing:
                self._assembler.text(opened, rest, index, missing[index])
            else:
                # A part before it whose text no delta brought: parts come in their order.
                emit(self._assembler, opened, rest, index)

    def _annotate(self, opened: OpenItem, final: Message) -> None:
        """Emits the citations that no event brought."""
        for index, part in enumerate(final.content):
            # Opened for every part, also a refusal, so that positions equal the final version's.
            open_part = opened.part(index)
            annotations = getattr(part, "annotations", ())
            for annotation in annotations[len(open_part.annotations) :]:
                self._assembler.annotation(opened, annotation, index)

    def add_missing_items(
        self, items: Any, read_raws: Callable[[], list[Raw]], *, complete: bool
    ) -> None:
        """Finishes the items that were never done, from the event that ends the stream.

        Args:
            items: all items of the response.
            read_raws: returns the bytes of each. Of most responses none is missing.
            complete: whether the response is complete. Then an item that is not among `items` ends
                completed if its own text arrived in full.
        """
        if not isinstance(items, list):
            items = []
        slots = self.slots.match([_kind_of(item) for item in items])
        raws: list[Raw] = []
        for index, slot in enumerate(slots):
            opened = None
            if slot is not None:
                opened = slot.open
                if opened is None:
                    continue  # done already
            raws = raws or read_raws()
            if index >= len(raws):
                raise malformed("the items of the response cannot be read")
            block, item_bytes = self._read(raws[index])
            if not block:
                continue
            item = item_of(block, item_bytes, self._assembler.offered)
            # In a response that is not complete, an item's own status is the only sign of its end.
            if not complete and block.get("status") not in (None, "completed"):
                item = msgspec.structs.replace(item, status="incomplete")
            self._forget_unnamed(index, item.id)
            if opened is None:
                opened = self._open(item, string_at(block, "type"), None)
            self._finish(opened, item, block)
        if complete:
            self._close_open()

    def _close_open(self) -> None:
        """Closes the items that no event ended, in a response that is complete.

        Completed are those of which a text arrived in full; the others may lack their end.
        """
        for slot in self.slots.all:
            opened = slot.open
            if opened is None:
                continue
            if slot.finished:
                self._assembler.close(opened)
                self._note_outcome(opened.item)
            else:
                detail = f"no event ended the {slot.kind or 'item'} {slot.id or opened.index}"
                self._assembler.notice("unclosed_item", detail, opened)

    # --- stop reason ---

    def _note_outcome(self, item: ResponseItem) -> None:
        """Records what the stop reason depends on."""
        if isinstance(item, Message):
            if item.agent is None:
                for part in item.content:
                    is_refusal = isinstance(part, Refusal)
                    self._has_refusal = self._has_refusal or is_refusal
                    self._has_text = self._has_text or bool(part_text(part, Text))
        elif isinstance(item, PENDING) and item.status == "completed":
            self._open_calls[item.call_id] = None
        elif isinstance(item, Opaque) and item.answers is not None:
            # The provider ran the call itself.
            self._open_calls.pop(item.answers, None)

    def stop_reason(self, status: str, details: Any) -> tuple[StopReason, str | None]:
        """Infers the stop reason, which the wire does not have.

        Args:
            status: the final status of the response.
            details: `incomplete_details`.

        Returns:
            The stop reason, and the wire's own value for it.
        """
        if status == "incomplete":
            reason = details.get("reason") if isinstance(details, dict) else None
            native = f"incomplete:{reason}" if reason else status
            return INCOMPLETE_REASONS.get(str(reason), "other"), native
        if status != "completed":
            return "other", status or None
        if self._open_calls:
            return "tool_calls", status
        if self._has_refusal and not self._has_text:
            return "refusal", status
        return "stop", status


def _kind_of(item: Any) -> str:
    if isinstance(item, dict):
        return string_at(item, "type")
    return ""


def _without_repetition(opened: OpenItem, final: Reasoning) -> Reasoning:
    """The final version without the words that deltas brought into its other field.

    Some servers stream `reasoning_text` and repeat it in `summary` when the item is done, or stream
    a summary and repeat it in `content`. It stays where it was streamed.
    """
    streamed = opened.snapshot("incomplete")
    if not isinstance(streamed, Reasoning):
        return final
    # Checked first, since removing blanks from long texts is slow.
    if final.summary and streamed.content and not streamed.summary:
        if _without_blanks("".join(final.summary)) == _without_blanks(streamed.content):
            return msgspec.structs.replace(final, summary=())
    elif final.content and streamed.summary and not streamed.content:
        if _without_blanks(final.content) == _without_blanks("".join(streamed.summary)):
            return msgspec.structs.replace(final, content="")
    return final


def _without_blanks(text: str) -> str:
    """The text without blanks: paragraphs are joined by different ones."""
    return "".join(text.split())
