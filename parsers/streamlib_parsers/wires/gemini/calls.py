"""The function calls of one Gemini candidate. They stay open to the end of the stream.

A `functionCall` comes complete, or, from Vertex with ``streamFunctionCallArguments``, in parts:

    {"name":"book","willContinue":true}               the call starts; it mostly has no id
    {"partialArgs":[{"jsonPath":"$.city","stringValue":"Par","willContinue":true}],
     "willContinue":true}
    {"partialArgs":[{"jsonPath":"$.city","stringValue":"is"}],"willContinue":true}
    {"willContinue":true}                             nothing new
    {}                                                the call ends; this part may be missing

A part with the id, name and arguments of an earlier call repeats it: only a signature that was
missing is taken. Otherwise a part with a name is a new call, also where it equals another one:
identical parallel calls exist, and only an id shows a repetition. A part without a name belongs
to the streamed call. A call that has an id keeps it in `id`; one without gets a generated
`call_id`, and `id` stays None, because an id that the provider did not send must not be sent back.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import FunctionCall
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.gemini.arguments_by_path import ArgumentsByPath
from streamlib_parsers.wires.gemini.chunks import TypedCall
from streamlib_parsers.wires.gemini.parts import (
    NULL,
    Object,
    arguments_of,
    as_object,
    as_objects,
    as_string,
    as_value,
    is_true,
    optional,
    present,
    rest,
    state,
)

TYPED_KEYS: Final = ("id", "name", "args")
NAMED_KEYS: Final = (*TYPED_KEYS, "willContinue", "partialArgs")
"""Keys of a call without a name, and of one with it, that have a field."""

PARTIAL_KEYS: Final = frozenset(
    {"jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue"}
)
"""All known keys of a partial argument; one with any other cannot be applied."""


class Call:
    """One call while it is open."""

    __slots__ = ("by_path", "final_arguments", "is_truncated", "item", "name")

    def __init__(self, item: OpenItem, name: str) -> None:
        self.item = item
        self.name = name
        self.by_path = ArgumentsByPath()
        """The arguments streamed so far."""
        self.final_arguments: str | None = None
        """The complete arguments, if the joined deltas differ from them; None until known."""
        self.is_truncated = False
        """Set if the stream ended although the call should have continued."""


class Calls:
    """The calls of one candidate."""

    def __init__(self, assembler: EventAssembler, choice: int) -> None:
        self.any_completed = False
        """Whether any call is complete, so that it can be answered; known once all are closed."""
        self._assembler = assembler
        self._choice = choice
        self._by_item: dict[int, Call] = {}
        """The calls by the index of their item."""
        self._by_id: dict[str, Call] = {}
        """The first call of each id of the wire."""
        self._streamed: Call | None = None
        """The call whose parts are being received, if any."""

    def read(self, part: Object) -> None:
        """Read one part with a `functionCall`."""
        call = present(as_object(part["functionCall"]))
        name = optional(call, "name") or ""
        wire_id = optional(call, "id") or ""
        earlier = self._by_id.get(wire_id)
        # Before the others: parts of a streamed call may repeat its id and name.
        if earlier is not None and earlier is self._streamed:
            self._continue(earlier, part, call)
        elif earlier is not None and _repeats(earlier, name, call):
            self._sign(earlier, part)
            self._assembler.notice("repeated_call", f"{name} {wire_id}", earlier.item)
        elif name:
            # Partial arguments become arguments, so they stay in no `native`.
            inner = rest(call, *NAMED_KEYS)
            started = self._start(name, wire_id, state(part, "functionCall", inner=inner))
            if "partialArgs" in call or is_true(call, "willContinue"):
                self._streamed = started
                self._continue(started, {}, call)  # the signature of the part is in its state
            else:
                self._assembler.arguments(started.item, arguments_of(call))
        elif self._streamed is not None:
            self._continue(self._streamed, part, call)
        elif call.keys() - {"willContinue"} or len(part) > 1:
            self._add_nameless(part, call, wire_id)
        # Else it is the end of a call that has ended already.

    def add(self, call: TypedCall, fields: dict[str, Any]) -> bool:
        """Add a complete call of a new id, or of none; returns False for any other.

        Args:
            call: the call.
            fields: further fields of its item.
        """
        wire_id = call.id or ""
        if not call.name or call.willContinue or call.partialArgs or wire_id in self._by_id:
            return False
        started = self._start(call.name, wire_id, fields)
        if call.args != NULL:
            arguments = bytes(call.args).decode("utf-8", "replace")
            self._assembler.arguments(started.item, arguments)
        return True

    @property
    def is_streaming(self) -> bool:
        """Whether a call is streamed that has not ended."""
        return self._streamed is not None

    def stop(self, *, by_model: bool) -> None:
        """End the streamed call, although its last part announced another.

        The part that ends it may be missing: it is complete if the model itself went on or stopped
        (`by_model`), and its arguments did not end inside a string.
        """
        call = self._streamed
        if call is not None:
            self._end_streamed(call, is_complete=by_model and not call.by_path.in_string)

    def close(self, item: OpenItem) -> bool:
        """Close `item` if it is one of these calls; returns whether it was."""
        call = self._by_item.get(item.index)
        if call is None:
            return False
        if call.is_truncated:
            self._assembler.close(item, "incomplete")
        elif call.final_arguments is not None:
            final = msgspec.structs.replace(
                item.item, name=call.name, arguments=call.final_arguments, status="completed"
            )
            # Emits a missing tail as a delta, or Notice("text_replaced").
            self._assembler.finish_with(item, final)
        else:
            self._assembler.close(item)
        if item.item.status == "completed":
            self.any_completed = True
        return True

    def _start(self, name: str, wire_id: str, fields: dict[str, Any]) -> Call:
        self.stop(by_model=True)
        is_duplicate = wire_id in self._by_id
        call_id = wire_id
        # Call ids must be unique in a history; the wire's stays in `id`.
        if is_duplicate or not wire_id:
            call_id = self._assembler.new_call_id()
        item = self._open(call_id, name, wire_id, fields)
        started = Call(item, name)
        self._by_item[item.index] = started
        if is_duplicate:
            self._assembler.notice(
                "duplicate_call_id", f"an earlier call has the id {wire_id} too", item
            )
        elif wire_id:
            self._by_id[wire_id] = started
        return started

    def _continue(self, streamed: Call, part: Object, call: Object) -> None:
        """Read a further part of the streamed call."""
        self._sign(streamed, part)
        for partial in as_objects(call.get("partialArgs", b"[]")):
            self._apply(streamed, partial)
        # A last part may bring all arguments at once; `{}` means none.
        if arguments_of(call).strip() not in {"", "{}"}:
            streamed.final_arguments = arguments_of(call)
        if not is_true(call, "willContinue"):
            self._end_streamed(streamed)

    def _apply(self, streamed: Call, partial: Object) -> None:
        text = _put(streamed.by_path, partial)
        if text is None:
            values = {key: as_value(value) for key, value in partial.items()}
            self._assembler.passthrough("partialArgs", values)
            self._assembler.mark_incomplete(
                streamed.item, "a partial argument that cannot be applied"
            )
        else:
            self._assembler.arguments(streamed.item, text)

    def _end_streamed(self, call: Call, *, is_complete: bool = True) -> None:
        self._streamed = None
        if not is_complete:
            call.is_truncated = True
        elif call.final_arguments is not None:
            return
        elif call.by_path.replaced:
            call.final_arguments = call.by_path.object_text()
        else:
            self._assembler.arguments(call.item, call.by_path.finish())

    def _add_nameless(self, part: Object, call: Object, wire_id: str) -> None:
        """Add a call without a name: it is kept, but nobody can answer it."""
        call_id = wire_id or self._assembler.new_call_id()
        # Without a name there is no call that partial arguments could be added to.
        typed = NAMED_KEYS if "name" in call else TYPED_KEYS
        fields = state(part, "functionCall", inner=rest(call, *typed))
        item = self._open(call_id, "", wire_id, fields)
        self._assembler.arguments(item, arguments_of(call))
        self._assembler.notice("nameless_call", "a functionCall without a name", item)
        self._assembler.close(item, "incomplete")

    def _open(self, call_id: str, name: str, wire_id: str, fields: dict[str, Any]) -> OpenItem:
        opened = FunctionCall(call_id, name, id=wire_id or None, choice=self._choice, **fields)
        return self._assembler.open(opened)

    def _sign(self, call: Call, part: Object) -> None:
        """Take a signature that comes late; the first one is kept."""
        signature = optional(part, "thoughtSignature")
        if signature and call.item.item.signature is None:
            call.item.fields.setdefault("signature", signature)


def _repeats(earlier: Call, name: str, call: Object) -> bool:
    """Whether a part with the id of `earlier` only repeats that call."""
    if name not in {earlier.name, ""} or "partialArgs" in call:
        return False
    arguments = arguments_of(call)
    if not arguments:
        return True
    # Sizes are compared first: joining every time would take quadratic time.
    item = earlier.item
    return len(arguments) == item.size and arguments == "".join(item.arguments)


def _put(by_path: ArgumentsByPath, partial: Object) -> str | None:
    """The text that one partial argument adds, or None where it cannot be applied."""
    path = optional(partial, "jsonPath")
    more = is_true(partial, "willContinue")
    if path is None or partial.keys() - PARTIAL_KEYS:
        return None
    if partial.get("stringValue", NULL) != NULL:
        return by_path.put(path, as_string(partial["stringValue"]), is_string=True, more=more)
    for key in ("numberValue", "boolValue"):
        if partial.get(key, NULL) != NULL:
            return by_path.put(path, bytes(partial[key]).decode())
    if "nullValue" in partial:
        return by_path.put(path, "null")
    # Without a value it only shows whether the string at the path continues.
    if more:
        return ""
    return by_path.end_string(path)
