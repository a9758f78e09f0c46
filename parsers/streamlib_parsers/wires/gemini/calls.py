"""The function calls of one Gemini candidate. They stay open to the end of the stream.

A `functionCall` comes whole, or, from Vertex with `streamFunctionCallArguments`, in parts:

    {"name":"book","willContinue":true}                                                         the call begins; it mostly has no id
    {"partialArgs":[{"jsonPath":"$.city","stringValue":"Par","willContinue":true}],"willContinue":true}
    {"partialArgs":[{"jsonPath":"$.city","stringValue":"is"}],"willContinue":true}
    {"willContinue":true}                                                                       nothing new
    {}                                                                                          the call ends; this part may be missing

Rules. A part with the id, name and arguments of an earlier call repeats it: nothing is added but a signature that was missing. A
part with a name is otherwise a new call, also where it equals another one: identical parallel calls are real, and only an id tells.
A part without a name belongs to the call that is streamed. A call that has an id keeps it in `id`; one without gets a generated `call_id`,
and `id` stays None, because an id that the provider did not give must not be sent back.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import FunctionCall
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.gemini.arguments_by_path import ArgumentsByPath
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

PIECE: Final = frozenset(
    {"jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue"}
)
"""All that a partial argument may say; one that says more cannot be applied."""


class Call:
    """One call.

    by_path: its arguments, as far as they are streamed. final: they, where the deltas did not bring them in order.
    cut: it was said to go on, and did not.
    """

    __slots__ = ("by_path", "cut", "final", "item", "name")

    def __init__(self, item: OpenItem, name: str) -> None:
        self.item = item
        self.name = name
        self.by_path = ArgumentsByPath()
        self.final: str | None = None
        self.cut = False


class Calls:
    """The calls of one candidate. any_whole: one of them can be answered; known once all are closed."""

    def __init__(self, assembly: EventAssembler, choice: int) -> None:
        self.any_whole = False
        self._assembly = assembly
        self._choice = choice
        self._by_item: dict[int, Call] = {}
        self._by_id: dict[str, Call] = {}
        self._streamed: Call | None = None

    def take(self, part: Object) -> None:
        """One part with a `functionCall`."""
        call = present(as_object(part["functionCall"]))
        name, identifier = optional(call, "name") or "", optional(call, "id") or ""
        earlier = self._by_id.get(identifier)
        if earlier is not None and earlier is self._streamed:
            self._go_on(earlier, part, call)
        elif earlier is not None and _repeats(earlier, name, call):
            self._sign(earlier, part)
            self._assembly.notice("repeated_call", f"{name} {identifier}", earlier.item)
        elif name:
            self._new(part, call, name, identifier)
        elif self._streamed is not None:
            self._go_on(self._streamed, part, call)
        elif call.keys() - {"willContinue"} or len(part) > 1:
            self._nameless(part, call, identifier)

    def stop(self, *, by_itself: bool) -> None:
        """A call that should have gone on does not: it is whole if the model stopped by itself, and not inside a string."""
        call = self._streamed
        if call is not None:
            self._end_streamed(call, whole=by_itself and not call.by_path.in_string)

    def close(self, item: OpenItem) -> bool:
        """Closes `item` if it is one of these calls."""
        call = self._by_item.get(item.index)
        if call is None:
            return False
        if call.cut:
            self._assembly.close(item, "incomplete")
        elif call.final is not None:
            final = msgspec.structs.replace(
                item.item, name=call.name, arguments=call.final, status="completed"
            )
            self._assembly.finish_with(item, final)
        else:
            self._assembly.close(item)
        self.any_whole |= item.item.status == "completed"
        return True

    def _new(self, part: Object, call: Object, name: str, identifier: str) -> None:
        self.stop(by_itself=True)
        taken = identifier in self._by_id
        call_id = self._assembly.new_call_id() if taken or not identifier else identifier
        item = self._open(
            FunctionCall(call_id, name, id=identifier or None, **self._state(part, call))
        )
        streamed = "partialArgs" in call or is_true(call, "willContinue")
        made = self._by_item[item.index] = Call(item, name)
        if taken:
            self._assembly.notice(
                "duplicate_call_id", f"an earlier call has the id {identifier} too", item
            )
        elif identifier:
            self._by_id[identifier] = made
        if streamed:
            self._streamed = made
            self._go_on(made, {}, call)
        else:
            self._assembly.arguments(item, arguments_of(call))

    def _go_on(self, streamed: Call, part: Object, call: Object) -> None:
        """More of the call that is streamed."""
        self._sign(streamed, part)
        for piece in as_objects(call.get("partialArgs", b"[]")):
            self._piece(streamed, piece)
        if arguments_of(call).strip() not in {"", "{}"}:
            streamed.final = arguments_of(call)
        if not is_true(call, "willContinue"):
            self._end_streamed(streamed)

    def _piece(self, streamed: Call, piece: Object) -> None:
        text = _put(streamed.by_path, piece)
        if text is None:
            self._assembly.passthrough(
                "partialArgs", {key: as_value(value) for key, value in piece.items()}
            )
            self._assembly.mark_incomplete(
                streamed.item, "a partial argument that cannot be applied"
            )
        else:
            self._assembly.arguments(streamed.item, text)

    def _end_streamed(self, call: Call, *, whole: bool = True) -> None:
        """The streamed call is over."""
        self._streamed = None
        if not whole:
            call.cut = True
        elif call.final is None and call.by_path.replaced:
            call.final = call.by_path.whole()
        elif call.final is None:
            self._assembly.arguments(call.item, call.by_path.finish())

    def _nameless(self, part: Object, call: Object, identifier: str) -> None:
        """Nobody can answer it: it is kept, and never callable."""
        item = self._open(
            FunctionCall(
                identifier or self._assembly.new_call_id(),
                "",
                id=identifier or None,
                **self._state(part, call),
            )
        )
        self._assembly.arguments(item, arguments_of(call))
        self._assembly.notice("nameless_call", "a functionCall without a name", item)
        self._assembly.close(item, "incomplete")

    def _open(self, call: FunctionCall) -> OpenItem:
        return self._assembly.open(msgspec.structs.replace(call, choice=self._choice))

    def _state(self, part: Object, call: Object) -> dict[str, Any]:
        """`partialArgs` become arguments; without a name there is nothing they could be streamed to."""
        streamed = ("willContinue", "partialArgs") if "name" in call else ()
        return state(part, "functionCall", inner=rest(call, "id", "name", "args", *streamed))

    def _sign(self, call: Call, part: Object) -> None:
        """A signature that comes late; the first one stays."""
        signature = optional(part, "thoughtSignature")
        if signature and call.item.item.signature is None:
            call.item.fields.setdefault("signature", signature)


def _repeats(earlier: Call, name: str, call: Object) -> bool:
    arguments, item = arguments_of(call), earlier.item
    same = not arguments or (len(arguments) == item.size and arguments == "".join(item.arguments))
    return same and name in {earlier.name, ""} and "partialArgs" not in call


def _put(by_path: ArgumentsByPath, piece: Object) -> str | None:
    """The text that one partial argument adds, or None where it cannot be applied."""
    path, more = optional(piece, "jsonPath"), is_true(piece, "willContinue")
    if path is None or piece.keys() - PIECE:
        return None
    if piece.get("stringValue", NULL) != NULL:
        return by_path.put(path, as_string(piece["stringValue"]), string=True, more=more)
    value = next(
        (piece[key] for key in ("numberValue", "boolValue") if piece.get(key, NULL) != NULL), None
    )
    if value is None and "nullValue" in piece:
        value = NULL
    if value is not None:
        return by_path.put(path, bytes(value).decode())
    return "" if more else by_path.end_string(path)
