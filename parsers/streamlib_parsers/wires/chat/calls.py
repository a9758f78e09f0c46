"""Tool calls of Chat Completions: assigns each fragment to its call.

By the schema every fragment has an `index`; `id` and `name` come once, the argument text in
fragments:

    {"index":0,"id":"call_1","function":{"name":"f","arguments":""}}   -> OutputItemAdded
    {"index":0,"function":{"arguments":"{\\"a\\":"}}                   -> FunctionCallArgumentsDelta
    {"index":1,"id":"call_2","function":{"name":"g","arguments":"{}"}} another call; both stay open

Servers leave out the index, the id or both, number every call 0, repeat ids and names in each
chunk, send `{}` or `null` as a placeholder for arguments that follow, encode the arguments twice,
or send an object instead of text. The wire does not mark the end of a call, and a complete JSON
text can be the prefix of the intended one, so calls are closed at the end of the response.

Buffered: arguments until the call has a name; the placeholder `{}` until the next fragment shows
whether it was one; text that begins with a quotation mark (arguments encoded twice) until the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import limit_exceeded, malformed
from streamlib_parsers.items import CustomToolCall, FunctionCall
from streamlib_parsers.json_text import DECODE_ERRORS
from streamlib_parsers.open_items import OpenItem

__all__ = ["MAX_INDEX", "CallKind", "CallState", "Calls", "JsonDepth"]

MAX_INDEX: Final = 1_000_000
"""A greater index is malformed. No list is padded up to an index."""

PLACEHOLDER: Final = "{}"
"""Arguments that some servers send first, before the fragments of the real ones."""

_MARKS: Final = re.compile(r'\\(?:.|\Z)|["{}\[\]]', re.DOTALL)

CallKind: TypeAlias = type[FunctionCall] | type[CustomToolCall]


class JsonDepth:
    """Tracks whether JSON received in fragments is complete: no bracket and no string is open.

    Takes linear time, and keeps none of the text.
    """

    __slots__ = ("_depth", "_in_escape", "_in_string", "_started")

    def __init__(self) -> None:
        self._depth = 0
        """Open brackets; changes with each bracket outside a string."""
        self._in_string = False
        """A string is open; toggled by each quotation mark that is not escaped."""
        self._in_escape = False
        """The last fragment ended with the backslash of an escape."""
        self._started = False
        """Anything but white space was received; stays true."""

    def feed(self, text: str) -> None:
        """Read the next fragment."""
        if self._in_escape and text:
            self._in_escape = False
            text = text[1:]
        for mark in _MARKS.findall(text):
            if mark[0] == "\\":
                # A backslash alone is the last character: what it escapes is in the next fragment.
                self._in_escape = len(mark) == 1
            elif mark == '"':
                self._in_string = not self._in_string
            elif self._in_string:
                continue
            elif mark in "{[":
                self._depth += 1
            else:
                self._depth -= 1
        # White space alone is not complete JSON, though nothing is open.
        if text and not text.isspace():
            self._started = True

    @property
    def is_complete(self) -> bool:
        """Whether the text received so far is complete JSON."""
        return self._started and self._depth == 0 and not self._in_string


class CallState:
    """One call while it is open."""

    __slots__ = (
        "buffered",
        "buffered_size",
        "call_id",
        "deferred_fields",
        "depth",
        "is_json_value",
        "is_quoted",
        "item",
        "kind",
        "name",
        "streaming",
    )

    def __init__(self, kind: CallKind) -> None:
        self.kind = kind
        self.call_id: str | None = None
        """The wire's id; the first one is kept."""
        self.name = ""
        """The name so far; assigned by each fragment that has one."""
        self.item: OpenItem | None = None
        """None until the name is known."""
        # A response may have thousands of calls, most of which have neither of these.
        self.deferred_fields: dict[str, Any] | None = None
        """Fields of the item that no delta carries; merged from every fragment."""
        self.buffered: list[str] | None = None
        """Argument fragments not emitted yet; None when they were emitted or replaced."""
        self.buffered_size = 0
        """Number of all characters buffered so far; limited like emitted arguments."""
        self.streaming = False
        """Arguments were emitted; from then on nothing is buffered."""
        self.is_quoted = False
        """The text began with a quotation mark: the arguments may be encoded twice."""
        self.is_json_value = False
        """The arguments came as a JSON value, which is complete; no text is added to it."""
        self.depth: JsonDepth | None = None
        """Set by the first `is_complete`; before, the text is not scanned."""

    @property
    def is_empty(self) -> bool:
        """Whether no argument text was received yet."""
        if self.buffered:
            return False
        return self.item is None or not self.item.arguments

    @property
    def is_waiting(self) -> bool:
        """Whether the buffered text may turn out not to be the arguments."""
        return not self.is_json_value and (self.is_quoted or self.buffered == [PLACEHOLDER])

    @property
    def is_complete(self) -> bool:
        """Whether the arguments could be complete. The text is scanned from the first use on."""
        if self.depth is None:
            self.depth = JsonDepth()
            if self.item is not None:
                for fragment in self.item.arguments:
                    self.depth.feed(fragment)
            for fragment in self.buffered or ():
                self.depth.feed(fragment)
        return self.depth.is_complete

    def set_fields(self, *, signature: str | None, native: dict[str, Any]) -> None:
        """Set fields that came beside the arguments."""
        if not (signature or native):
            return
        fields = self.deferred_fields or {}
        if signature:
            fields["signature"] = signature
        if native:
            earlier: dict[str, Any] = fields.get("native", {})
            # A later chunk repeats keys without their values.
            newer = {key: value for key, value in native.items() if value or key not in earlier}
            fields["native"] = earlier | newer
        self.deferred_fields = fields
        if self.item is not None:
            self.item.fields.update(fields)

    def starts_new_call(self, call_id: str | None, name: str | None, arguments: str | None) -> bool:
        """Whether a fragment with this call's index belongs to another call."""
        opens_object = arguments is not None and arguments.startswith("{")
        if call_id and self.call_id and call_id != self.call_id:
            # Some servers generate a new id for every chunk (T6), some number every call 0 (T7):
            # another id is another call only if this one is complete, empty or of another name.
            if name and (name != self.name or self.is_empty or self.is_complete):
                return True
            return opens_object and self.is_complete
        if name and self.name and not call_id:
            # Some servers repeat the name in every chunk (T5): the arguments must be complete too,
            # and the name another one or a new object started. `{}` may still be the placeholder.
            is_other = name != self.name or (opens_object and self.buffered != [PLACEHOLDER])
            return is_other and self.is_complete
        return False


def _nothing_to_close() -> None:
    """What is called before a call is opened once the response is over."""


class Calls:
    """The calls of one choice, in order of start."""

    def __init__(
        self, assembler: EventAssembler, choice: int, before_open: Callable[[], None]
    ) -> None:
        """Create the list.

        Args:
            assembler: receives the events.
            choice: index of the choice.
            before_open: called before a call is opened, so that the text before it is closed.
        """
        self._assembler = assembler
        self._choice = choice
        self._before_open = before_open
        self._states: list[CallState] = []
        """All calls, also those without a name so far."""
        self._by_index: dict[int, CallState] = {}
        """The newest call of each index."""
        self._by_id: dict[str, CallState] = {}
        """The newest call of each id of the wire."""
        self._last: CallState | None = None
        """The call of the last fragment; fragments with neither index nor id continue it."""
        self.running: dict[int | None, OpenItem] = {}
        """Calls by index whose plain argument fragments may be emitted without `add`.

        The machine's fast path uses it. Updated by every `add`: a call whose text is buffered,
        scanned or complete is not in it.
        """
        self.started = False
        """Whether any call was received."""
        self.completed = 0
        """Number of calls with complete arguments; known after `close`."""

    def add(
        self,
        index: int | None,
        call_id: str | None,
        name: str | None,
        arguments: str | None,
        kind: CallKind = FunctionCall,
        *,
        is_json_value: bool = False,
    ) -> CallState | None:
        """Add one fragment.

        Args:
            index: index of the call, if the server sent one.
            call_id: id of the call, if the fragment has one.
            name: name of the tool, if the fragment has one.
            arguments: argument text.
            kind: item class of the call.
            is_json_value: `arguments` is a complete JSON value in the provider's bytes.

        Returns:
            The call, or None if an empty fragment belongs to none.
        """
        call = self._find(index, call_id, name, arguments)
        if call is None:
            if not (call_id or name or arguments):
                return None
            call = self._new(index, kind)
        self._last = call
        if call_id and not call.call_id:  # the first one stays (T6)
            self._set_id(call, call_id)
        if name:
            self._set_name(call, name)
        if arguments and not call.is_json_value:
            if is_json_value:
                self._set_json_value(call, arguments)
            else:
                self._append(call, arguments)
        self._update_running(index, call)
        return call

    def _find(
        self, index: int | None, call_id: str | None, name: str | None, arguments: str | None
    ) -> CallState | None:
        """The call that a fragment continues, or None if it starts one."""
        if index is None:
            if call_id:
                return self._by_id.get(call_id)
            if name:
                return None
            return self._last  # without index and id it continues the call touched last (T1)
        call = self._by_index.get(index)
        if call is None or not (call_id or name):
            return call
        if call.starts_new_call(call_id, name, arguments):
            return None
        return call

    def _new(self, index: int | None, kind: CallKind) -> CallState:
        # Calls without a name are not opened yet, so the assembler cannot count them.
        if len(self._states) >= self._assembler.limits.items:
            raise limit_exceeded("items", self._assembler.limits.items)
        if index is not None and not 0 <= index <= MAX_INDEX:
            raise malformed(f"the index of a tool call is {index}")
        call = CallState(kind)
        self.started = True
        self._states.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _update_running(self, index: int | None, call: CallState) -> None:
        self.running.pop(index, None)
        if index is None or call.item is None:
            return
        # A scanned call needs `add`, which feeds its depth.
        if call.streaming and not call.is_json_value and call.depth is None:
            self.running[index] = call.item

    # --- id and name ---

    def _set_id(self, call: CallState, call_id: str) -> None:
        call.call_id = call_id
        self._by_id[call_id] = call
        if call.item is not None:  # it was opened with a generated id
            call.item.fields["call_id"] = call_id

    def _set_name(self, call: CallState, name: str) -> None:
        """Assign the name; append it where it continues a name split over two chunks."""
        if call.item is None:
            call.name = name
            self._before_open()
            self._open(call)
            self._release(call)
            return
        if name == call.name:
            return
        # Servers that repeat the name send it complete. One that differs before any argument came,
        # and does not begin with the name so far, is its second fragment.
        if call.is_empty and not name.startswith(call.name):
            call.name += name
        else:
            call.name = name
        call.item.fields["name"] = self._assembler.original_tool_name(call.name)
        self._assembler.notice(
            "call_renamed", f"the name of the call became {call.name}", call.item
        )

    def _open(self, call: CallState) -> OpenItem:
        call_id = call.call_id or self._generate_id()
        item = self._assembler.open(call.kind(call_id=call_id, name=call.name, choice=self._choice))
        if call.deferred_fields:
            item.fields.update(call.deferred_fields)
        call.item = item
        return item

    def _generate_id(self) -> str:
        """A generated id that the wire did not use for another call (T15, T16)."""
        call_id = self._assembler.new_call_id()
        for _ in range(len(self._by_id)):
            if call_id not in self._by_id:
                break
            call_id = self._assembler.new_call_id()
        return call_id

    # --- arguments ---

    def _append(self, call: CallState, text: str) -> None:
        if call.depth is not None:
            call.depth.feed(text)
        if call.streaming and call.item is not None:
            self._assembler.arguments(call.item, text)
        else:
            self._buffer(call, text)

    def _set_json_value(self, call: CallState, text: str) -> None:
        """Replace buffered text by a JSON value; ignore the value once text was emitted."""
        if not call.streaming:
            # Text and a value cannot both be right; the value is complete.
            call.is_json_value = True
            call.buffered = None
            call.depth = None
            self._buffer(call, text)

    def _buffer(self, call: CallState, text: str) -> None:
        if not call.buffered and call.kind is FunctionCall:
            # `null` means no arguments yet (T10). Free text of a custom tool is never special.
            if text.strip() == "null":
                return
            call.is_quoted = text.lstrip().startswith('"') and not call.is_json_value
        elif call.buffered == [PLACEHOLDER] and text.lstrip().startswith("{"):
            # The real arguments follow the placeholder (T13).
            call.buffered = None
            call.depth = None
        call.buffered = call.buffered or []
        call.buffered.append(text)
        call.buffered_size += len(text)
        if call.buffered_size > self._assembler.limits.argument_bytes:
            raise limit_exceeded("argument_bytes", self._assembler.limits.argument_bytes)
        self._release(call)

    def _release(self, call: CallState) -> None:
        """Emit the buffered text once the call has a name and the text is known to be arguments."""
        if call.item is not None and call.buffered and not call.is_waiting:
            self._emit_buffered(call, call.item)

    def _emit_buffered(self, call: CallState, item: OpenItem) -> None:
        call.streaming = True
        buffered = call.buffered or ()
        call.buffered = None
        for fragment in buffered:
            self._assembler.arguments(item, fragment)

    # --- the end ---

    def flush(self) -> None:
        """Emit what is still buffered, at the end. May be called twice.

        A call without a name is opened, but never callable.
        """
        # It refers to the choice, and the choice to this: both would wait for the collector.
        self._before_open = _nothing_to_close
        for call in self._states:
            self._emit_rest(call)

    def close(self) -> None:
        """Close every call."""
        # All text is emitted before the first call is closed, so that a call without a name is
        # opened, and its notice comes, before any other call is done.
        items = [self._emit_rest(call) for call in self._states]
        for item in items:
            if self._assembler.close(item) == "completed":
                self.completed += 1

    def _emit_rest(self, call: CallState) -> OpenItem:
        item = call.item or self._open_nameless(call)
        if call.is_quoted:
            self._unquote(call, item)
        self._emit_buffered(call, item)
        return item

    def _open_nameless(self, call: CallState) -> OpenItem:
        item = self._open(call)
        # Its arguments may be valid JSON, which would make it completed.
        item.forced_incomplete = True
        self._assembler.notice("nameless_call", "the call has no name", item)
        return item

    def _unquote(self, call: CallState, item: OpenItem) -> None:
        """Decode arguments that were encoded twice: a JSON string that holds an object."""
        try:
            inner = msgspec.json.decode("".join(call.buffered or ()), type=str)
            # Only if it holds an object: other strings may be the arguments themselves.
            msgspec.json.decode(inner, type=dict[str, msgspec.Raw])
        except DECODE_ERRORS:
            return  # not encoded twice (T11): the text is emitted as received
        call.buffered = [inner]
        self._assembler.notice(
            "arguments_unquoted", "the arguments were JSON inside a JSON string", item
        )
