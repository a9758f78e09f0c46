"""What a dialect is, and what leads from its grammars to the items of a message.

A dialect is a name and its grammars, each a table of literals and one way to read them. A grammar
is a frozen Struct: its fields are the table, its `read` the way. Grammars live in `grammars/`, the
dialects made of them in `definitions.py`; a caller makes one of the same parts and passes it to
`parser(dialects=...)`.

Of what a grammar reads, only calls of offered tools with valid arguments go on; the literal text of
everything else comes back.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib_parsers.dialects.code_spans import CodeSpans
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.items import JsonObject, ToolSpec

NAME: Final = string.ascii_letters + string.digits + "_"
"""The characters with which a tool's name begins."""

Position: TypeAlias = Literal["anywhere", "line", "start", "orphan"]
"""Where an opener counts; never inside code.

anywhere: in any text. line: at the start of a line. start: after nothing but white space in the
message. orphan: where the response has only text before it, and no space or quote is directly
before it.
"""


class Opener(Struct, frozen=True):
    """A literal that begins a grammar.

    Args:
        marker: the literal.
        where: the position in which it counts.
        keep: its first characters that are text, and only tell what must be before it.
    """

    marker: str
    where: Position = "anywhere"
    keep: int = 0


class Grammar(Protocol):
    """One syntax of a dialect."""

    @property
    def openers(self) -> Sequence[Opener]:
        """The literals that begin it."""
        ...

    @property
    def first(self) -> str:
        """The characters that may follow the opener, white space aside; "" means any.

        It tells apart the grammars that share an opener, as five do with `<tool_call>`.
        """
        ...

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Reads on after the opener (`text.opener`) and reports to `sink`.

        Raises:
            NoMatch: this is not a call; the text read so far is emitted as it was written.
        """
        ...


class Dialect(Struct, frozen=True):
    """How a family of models writes tool calls or reasoning into its text.

    Args:
        name: the name in `parser(dialects=...)`.
        grammars: its syntaxes.
        in_thoughts: whether models of the family write calls into their reasoning and stop there
            with an ordinary reason. For others a call in reasoning counts only where the wire
            itself reports that the response stopped for calls.
        opens_inside: whether reasoning begins before the first character of the response, because
            the chat template wrote the opening tag.
    """

    name: str
    grammars: Sequence[Grammar]
    in_thoughts: bool = True
    opens_inside: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "grammars", tuple(self.grammars))


def anywhere(*markers: str) -> tuple[Opener, ...]:
    """Openers that count in any position."""
    return tuple(Opener(marker) for marker in markers)


class CallWriter(Protocol):
    """Receives one call, from its name to its end."""

    def add(self, text: str) -> None:
        """A fragment of its arguments."""
        ...

    def complete(self, literal: str, *, has_end: bool) -> bool:
        """The call was read.

        Args:
            literal: the call as the model wrote it.
            has_end: False where its JSON is closed, but the message ended before its end token.

        Returns:
            False where it does not count and `literal` must be emitted as text.

        Raises:
            NoMatch: the arguments are not JSON.
        """
        ...

    def discard(self, detail: str = "") -> bool:
        """Not a complete call after all.

        Args:
            detail: for the Notice about the incomplete item; "" for none.

        Returns:
            Whether arguments were emitted, so that there is an incomplete item.
        """
        ...


class Sink(Protocol):
    """Receives the text, reasoning and calls found in one message."""

    def text(self, text: str) -> None:
        """Output text."""
        ...

    def reasoning(self, text: str) -> None:
        """A fragment of reasoning."""
        ...

    def end_reasoning(self) -> None:
        """The end of the reasoning was read."""
        ...

    def unclosed_reasoning(self, opener: str, rest: str) -> None:
        """The text ended inside reasoning that was not closed.

        Args:
            opener: the opening tag, with the white space after it.
            rest: the end of the reasoning, from a call at the start of a line on. Not emitted yet:
                the stop reason decides whether it is a call.
        """
        ...

    def reclassify(self) -> None:
        """All text of the message so far was reasoning."""
        ...

    def begin_citation(self) -> None:
        """Cited text begins."""
        ...

    def end_citation(self, sources: str) -> None:
        """Cited text ends.

        Args:
            sources: what is cited, as the model wrote it.
        """
        ...

    def call(self, name: str, call_id: str) -> CallWriter:
        """A call of an offered tool begins."""
        ...

    def notice(self, code: str, detail: str) -> None:
        """An anomaly."""
        ...


class OfferedTools:
    """The tools that may be called, by the names the model knows them by."""

    def __init__(self, tools: Sequence[ToolSpec], names: Mapping[str, str] | None = None) -> None:
        """Indexes the tools.

        Args:
            tools: the tools offered.
            names: sent tool name -> the caller's own name.
        """
        sent_names = {original: sent for sent, original in (names or {}).items()}
        self._original_names: dict[str, str] = {}
        self._schemas: dict[str, JsonObject] = {}
        for tool in tools:
            # Under both names: the model was given the sent one, but may know the original one from
            # the prompt.
            for name in (tool.name, sent_names.get(tool.name, tool.name)):
                self._original_names[name] = tool.name
                self._schemas[name] = tool.schema or {}

    def original_name(self, name: str) -> str | None:
        """The caller's own name of the tool; None where it was not offered."""
        return self._original_names.get(name)

    def schema(self, name: str) -> JsonObject:
        """The JSON schema of the tool's arguments; `{}` where there is none."""
        return self._schemas.get(name, {})


class _DeferredCall:
    """A call read between `defer_calls` and `release_calls`."""

    __slots__ = ("arguments", "call_id", "name")

    def __init__(self, name: str, call_id: str) -> None:
        self.name = name
        self.call_id = call_id
        self.arguments = StringBuffer()


class GrammarSink:
    """What a grammar reports to."""

    def __init__(
        self,
        text: TextCursor,
        sink: Sink,
        tools: OfferedTools,
        code: CodeSpans,
        markers: tuple[str, ...] = (),
    ) -> None:
        self.markers = markers
        """The literals that begin calls, for reasoning that is ended by a call."""
        self.marks: tuple[str, ...] = ()
        """The literals that are around output text."""
        self._code = code
        self._text = text
        self._sink = sink
        self._tools = tools
        self._call: CallWriter | None = None
        """The call that is being read; None between calls, and for a tool that was not offered."""
        self._add_arguments: Callable[[str], object] | None = None
        """Takes the arguments of that call; None where they are only read over."""
        self._call_stands = True
        """Whether the last call counts. If not, the text after it, up to the section's end, is
        emitted as well."""
        self.is_reasoning = False
        """Set where the message begins inside reasoning although it begins like a call."""
        self.expects_call = False
        """Whether the message began like a call: if that is none of an offered tool, it is
        reasoning."""
        self._deferred: list[_DeferredCall] | None = None
        """Calls since `defer_calls`; None where calls are reported at once."""

    def schema(self, name: str) -> JsonObject:
        """The JSON schema of a tool's arguments."""
        return self._tools.schema(name)

    def offers(self, name: str) -> bool:
        """Whether the tool was offered."""
        return self._tools.original_name(name) is not None

    # --- calls ---

    def call(self, name: str, call_id: str = "", *, opener_size: int | None = None) -> None:
        """A call begins.

        One of a tool that was not offered is read to its end and emitted as text.

        Args:
            name: of the tool, as the model wrote it.
            call_id: as the model wrote it; "" for none.
            opener_size: how many characters since the last commit are not searched again if this
                turns out not to be a call; None: all.
        """
        original_name = self._tools.original_name(name)
        self._call = self._add_arguments = None
        if original_name is None:
            # Read to its end all the same: that tells which text is the call's, and which follows.
            return
        if self._deferred is not None:
            deferred = _DeferredCall(original_name, call_id)
            self._deferred.append(deferred)
            self._add_arguments = deferred.arguments.add
        else:
            self._call = self._sink.call(original_name, call_id)
            self._add_arguments = self._call.add
            # Where the arguments do not match, what is before them must not be searched again:
            # the same call would be begun twice.
            self._text.opener = self._text.uncommitted()[:opener_size]

    def arguments(self, text: str) -> None:
        """A fragment of the call's arguments, which together are a JSON object."""
        if self._add_arguments is not None:
            self._add_arguments(text)

    def end_call(self, *, has_end: bool = True) -> None:
        """The call was read: what was read so far is decided.

        Args:
            has_end: False where the message ended before the call's end token. Such a call counts
                only where the model itself stopped there.

        Raises:
            NoMatch: its arguments are not JSON, or a deferred call is of a tool that was not
                offered.
        """
        if self._deferred is not None:
            if self._add_arguments is None:
                raise NoMatch  # all calls of such a message are calls, or none is
            return
        if self.expects_call and self._call is None:
            raise NoMatch  # reasoning about the call of a tool that was not offered
        self.expects_call = False
        self._call_stands = False
        # `complete` raises for arguments that are not JSON: then the call stays open to be
        # discarded.
        if self._call is not None:
            self._call_stands = self._call.complete(self._text.uncommitted(), has_end=has_end)
        self._call = self._add_arguments = None
        self.end_section()

    def add_call(
        self, name: str, arguments: str, call_id: str = "", *, has_end: bool = True
    ) -> None:
        """A complete call at once; see `end_call`."""
        self.call(name, call_id)
        self.arguments(arguments)
        self.end_call(has_end=has_end)

    def end_section(self) -> None:
        """The end of a section of calls was read: left out after a call that counts, else text."""
        if self._call_stands:
            self._text.commit()
        else:
            self.emit_as_text()

    def drop_call(self, detail: str) -> None:
        """A call without a usable name.

        Left out with a Notice, for its text tells the user nothing.
        """
        self._call_stands = True  # the end of its section is left out, too
        self._text.commit()
        self._sink.notice("leaked_tool_call", detail)

    def expect_call(self) -> None:
        """The message begins like a call, where reasoning would be."""
        self.expects_call = True
        self.emit_as_text()

    # --- grammars that are only certain at the end of the message ---

    def defer_calls(self) -> None:
        """From here on calls are kept until `release_calls`."""
        self._deferred = []

    def release_calls(self) -> None:
        """The deferred calls are calls."""
        deferred, self._deferred = self._deferred or [], None
        for call in deferred:
            self.add_call(call.name, call.arguments.text(), call.call_id)

    # --- text and reasoning ---

    @property
    def in_code(self) -> bool:
        """Whether the text so far ends inside code."""
        return self._code.inside

    def emit_text(self, text: str) -> None:
        """Output text that is not part of what was read since the last commit."""
        if text:
            # Only what is shown counts for code: a fence inside a call's arguments opens none.
            self._code.add(text)
            self._sink.text(text)

    def text(self, text: str) -> None:
        """Output text between the tokens of a grammar."""
        self._text.commit()
        self.emit_text(text)

    def emit_as_text(self) -> None:
        """What was read since the last commit is output text."""
        literal = self._text.uncommitted()
        self._text.commit()
        self.emit_text(literal)

    def reasoning(self, text: str) -> None:
        """A fragment of reasoning."""
        self._text.commit()
        self._sink.reasoning(text)

    def end_reasoning(self) -> None:
        """The end of the reasoning was read."""
        self._text.commit()
        self._sink.end_reasoning()

    def unclosed_reasoning(self, opener: str, rest: str = "") -> None:
        """The text ended inside reasoning; see `Sink.unclosed_reasoning`."""
        self._text.commit()
        self._sink.unclosed_reasoning(opener, rest)

    def reclassify(self) -> None:
        """All text of the message so far was reasoning."""
        self._text.commit()
        self._sink.reclassify()

    def begin_citation(self) -> None:
        """Cited text begins."""
        self._sink.begin_citation()

    def end_citation(self, sources: str) -> None:
        """Cited text ends; see `Sink.end_citation`."""
        self._sink.end_citation(sources)

    def notice(self, code: str, detail: str) -> None:
        """An anomaly."""
        self._sink.notice(code, detail)

    def discard_call(self, detail: str = "") -> bool:
        """Discards the call that a grammar began and did not complete: it did not match.

        Args:
            detail: for the Notice about the incomplete item; "" for none.

        Returns:
            Whether there is an incomplete item, because arguments were emitted.
        """
        has_item = False
        if self._call is not None:
            has_item = self._call.discard(detail)
        self._call = self._add_arguments = self._deferred = None
        return has_item

    @property
    def has_named_tool(self) -> bool:
        """Whether the grammar has read the name of an offered tool that is not complete yet."""
        return self._add_arguments is not None
