"""What a grammar found, on its way to the items: only offered tools, only sound arguments, and the literal text of the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from streamlib_parsers.dialects.code_spans import CodeSpans
from streamlib_parsers.dialects.cursor import Cursor, NoMatch
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.items import JsonObject, ToolSpec


class CallWriter(Protocol):
    """Where one call goes, from its name to its end."""

    def add(self, text: str) -> None:
        """More of its arguments."""
        ...

    def complete(self, literal: str) -> bool:
        """The call is whole; False where it is not to stand and its text is to be given back. Raises `Broken` on bad arguments."""
        ...

    def discard(self) -> None:
        """It is none."""
        ...


class Sink(Protocol):
    """Where text, thoughts and calls go: the items of one answer."""

    def text(self, text: str) -> None:
        """Words for the user."""
        ...

    def thought(self, text: str) -> None:
        """Words of a thought."""
        ...

    def end_thought(self) -> None:
        """The thought was closed."""
        ...

    def unclosed_thought(self, opener: str, held: str) -> None:
        """The text ended in a thought; `held` begins with a call, and waits for the reason why the answer ended."""
        ...

    def reclassify(self) -> None:
        """Everything so far was a thought."""
        ...

    def call(self, name: str, call_id: str) -> CallWriter:
        """A call begins."""
        ...

    def notice(self, code: str, detail: str) -> None:
        """Something odd."""
        ...


class OfferedTools:
    """The tools that may be called, by the names the model knows them by."""

    def __init__(self, tools: Sequence[ToolSpec], names: Mapping[str, str] | None = None) -> None:
        sent = {own: name for name, own in (names or {}).items()}
        self._own: dict[str, str] = {}
        self._schemas: dict[str, JsonObject] = {}
        for tool in tools:
            for name in (tool.name, sent.get(tool.name, tool.name)):
                self._own[name] = tool.name
                self._schemas[name] = tool.schema or {}

    def original_name(self, name: str) -> str | None:
        """The caller's name of the tool; None where it was not offered."""
        return self._own.get(name)

    def schema(self, name: str) -> JsonObject:
        """The schema of the tool's arguments; `{}` where there is none."""
        return self._schemas.get(name, {})


class GrammarSink:
    """The verbs of a grammar.

    markers: the literals with which calls begin, for thoughts that a call ends.
    """

    def __init__(
        self,
        text: Cursor,
        writer: Sink,
        offered: OfferedTools,
        code: CodeSpans,
        markers: tuple[str, ...] = (),
    ) -> None:
        self.markers = markers
        self._code = code
        self._text = text
        self._writer = writer
        self._offered = offered
        self._call: CallWriter | None = None
        self._sink: Callable[[str], object] | None = None
        self._stands = True
        self._held: list[tuple[str, str, StringBuffer]] | None = None

    def schema(self, name: str) -> JsonObject:
        """The schema of a tool's arguments."""
        return self._offered.schema(name)

    def offers(self, name: str) -> bool:
        """Whether the tool was offered."""
        return self._offered.original_name(name) is not None

    # --- calls ---

    def call(self, name: str, call_id: str = "") -> None:
        """A call begins. One of a tool that was not offered is read to its end and given back as text."""
        own = self._offered.original_name(name)
        self._call = self._sink = None
        if own is not None and self._held is not None:
            pieces = StringBuffer()
            self._held.append((own, call_id, pieces))
            self._sink = pieces.add
        elif own is not None:
            self._call = self._writer.call(own, call_id)
            self._sink = self._call.add

    def arguments(self, text: str) -> None:
        """More of its arguments, a JSON object in the end."""
        if self._sink is not None:
            self._sink(text)

    def end_call(self) -> None:
        """The call is whole. What was read so far is settled."""
        if self._held is not None:
            if self._sink is None:
                raise NoMatch
            return
        self._stands = self._call is not None and self._call.complete(self._text.kept())
        self._call = self._sink = None
        self.settle()

    def add_call(self, name: str, arguments: str, call_id: str = "") -> None:
        """A whole call at once."""
        self.call(name, call_id)
        self.arguments(arguments)
        self.end_call()

    def settle(self) -> None:
        """What ends a form is read: it goes the way of the last call before it, to be left out or to come back as text."""
        if self._stands:
            self._text.commit()
        else:
            self.emit_as_text()

    def drop(self, detail: str) -> None:
        """A call without a usable name: nothing can be done with it, and its text says nothing to the user."""
        self._stands = True
        self._text.commit()
        self._writer.notice("leaked_tool_call", detail)

    # --- forms that are only sure at the end of the message ---

    def hold(self) -> None:
        """From here on calls wait: nothing is given out before `release`."""
        self._held = []

    def release(self) -> None:
        """They are calls."""
        held, self._held = self._held or [], None
        for name, call_id, pieces in held:
            self.add_call(name, pieces.text(), call_id)

    # --- text and thoughts ---

    @property
    def in_code(self) -> bool:
        """Whether the text so far ends in code."""
        return self._code.inside

    def emit_text(self, text: str) -> None:
        """Words for the user."""
        if text:
            self._code.say(text)
            self._writer.text(text)

    def text(self, text: str) -> None:
        """Words for the user that stood inside a form."""
        self._text.commit()
        self.emit_text(text)

    def emit_as_text(self) -> None:
        """What was read since the last commit is text."""
        literal = self._text.kept()
        self._text.commit()
        self.emit_text(literal)

    def thought(self, text: str) -> None:
        """Words of a thought."""
        self._text.commit()
        self._writer.thought(text)

    def end_thought(self) -> None:
        """The thought was closed."""
        self._text.commit()
        self._writer.end_thought()

    def unclosed_thought(self, opener: str, held: str = "") -> None:
        """The text ended in a thought."""
        self._text.commit()
        self._writer.unclosed_thought(opener, held)

    def reclassify(self) -> None:
        """Everything so far was a thought."""
        self._text.commit()
        self._writer.reclassify()

    def notice(self, code: str, detail: str) -> None:
        """Something odd."""
        self._writer.notice(code, detail)

    def fail(self) -> None:
        """The grammar broke off: a call that was begun is none."""
        if self._call is not None:
            self._call.discard()
        self._call = self._sink = self._held = None
