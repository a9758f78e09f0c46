"""What the dialect filter knows of one choice of the response."""

from __future__ import annotations

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.items import CustomToolCall, FunctionCall, Reasoning
from streamlib_parsers.open_items import OpenItem


class RecoveredCall:
    """A complete call found in text. Its item stays open until the choice ends."""

    __slots__ = ("has_end", "item", "literal")

    def __init__(self, item: OpenItem, literal: str, *, has_end: bool = True) -> None:
        self.item = item
        """The open item of the call."""
        self.literal = literal
        """The call as the model wrote it."""
        self.has_end = has_end
        """Whether its own end was read. One whose JSON is closed and whose end token is missing
        counts only where the model stopped there."""


class WireCall:
    """A call that the wire itself sent."""

    __slots__ = ("arguments", "name")

    def __init__(self, item: FunctionCall | CustomToolCall) -> None:
        self.name = item.name
        self.arguments: list[str] = []
        """Fragments of the arguments received so far."""
        if isinstance(item, FunctionCall):
            self.arguments.append(item.arguments)
        else:
            self.arguments.append(item.input)


class ChoiceState:
    """The state of one choice (there are several where `n` > 1)."""

    __slots__ = (
        "calls_stand",
        "has_content",
        "has_text",
        "has_wire_reasoning",
        "reasoning",
        "recovered",
        "wire_calls",
    )

    def __init__(self) -> None:
        self.has_content = False
        """Set by the first item or text other than white space."""
        self.has_text = False
        """Set by the first output text other than white space; reset where that text was
        reasoning."""
        self.has_wire_reasoning = False
        """Set where the wire itself sends reasoning: tags of reasoning in text are text then."""
        self.calls_stand = False
        """Set at the end of the choice, where a recovered call is one that the caller must
        answer."""
        self.wire_calls: dict[int, WireCall] = {}
        """The wire's own calls by the wire's index. Beside them recovered calls do not count."""
        self.recovered: list[RecoveredCall] = []
        """Calls found in text, until the end of the choice decides about them."""
        self.reasoning: list[Reasoning] = []
        """Finished reasoning items, searched for calls where the choice ends without any output."""

    def has_wire_call(self, name: str, arguments: str) -> bool:
        """Whether the wire itself sent this call."""
        for call in self.wire_calls.values():
            if call.name == name and _are_equal("".join(call.arguments), arguments):
                return True
        return False


def _are_equal(arguments: str, other: str) -> bool:
    """Whether two argument texts are equal as text or as JSON."""
    if arguments == other:
        return True
    value = decoded(arguments or "{}")
    return value is not None and value == decoded(other or "{}")
