"""A response that grows in a notebook's cell while it streams.

    await display(client.stream("Explain monads", model="anthropic:claude-opus-5"))

The text is shown as Markdown, in blocks: those that cannot change any more are outputs of their
own, and only the last one is drawn again, ten times a second at most. So a long response costs a
notebook little, and its file holds each text once.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

import anyio

from streamlib.display.notebook_items import Block, block_markdown, blocks
from streamlib_parsers.events import (
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)
from streamlib_parsers.items import Message, Reasoning
from streamlib_parsers.redaction import redact

PAINT_SECONDS: Final = 0.1
"""Seconds between two drawings."""

BLOCK_LENGTH: Final = 1500
"""Characters from which a block ends at its next boundary. JupyterLab shows 50 outputs of a cell:
blocks must not be too many either."""

CODE_LENGTH: Final = 8000
"""Characters from which a block without a boundary, as of code, goes on in another one."""


class CellOutput(Protocol):
    """One output of a cell."""

    def update(self, markdown: str) -> None:
        """Replaces what is shown."""
        ...


class ShownStream(AbstractAsyncContextManager[AsyncIterable[ResponseEvent]], Protocol):
    """What can be shown: the stream of a response, or a pipeline of its events."""

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        ...

    def batches(self) -> AsyncIterator[Sequence[ResponseEvent]]:
        """The events, in lists as they arrived together."""
        ...

    def text(self) -> AsyncIterator[str]:
        """The fragments of the text."""
        ...


MakeOutput = Callable[[str], CellOutput]
"""Shows Markdown as a new output of the cell."""


async def display(stream: ShownStream) -> None:
    """Shows a stream in the running cell until it ends.

    Reasoning is folded, tags and images in the text are shown as text, keys are masked. Without a
    notebook the text is written to the standard output. `stream.response` has the response.

    Args:
        stream: one that was not entered yet, which is closed at the end; or an open one, whose
            events from here on are shown.

    Raises:
        StreamError: the stream failed, after everything that arrived was shown.
    """
    if stream.is_new:
        async with stream:
            await _show(stream)
    else:
        await _show(stream)


async def _show(stream: ShownStream) -> None:
    make_output = notebook_output()
    if make_output is None:
        await _write(stream)
        return
    cell = LiveCell(make_output)
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_keep_painting, cell)
        try:
            async for batch in stream.batches():
                for event in batch:
                    cell.feed(event)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001  # raised below, outside of the group
            failure = error
        finally:
            group.cancel_scope.cancel()
            cell.paint()
    if failure is not None:
        raise failure


async def _keep_painting(cell: LiveCell) -> None:
    while True:
        await anyio.sleep(PAINT_SECONDS)
        cell.paint()


async def _write(stream: ShownStream) -> None:
    """The text as it arrives, for a terminal: without what would move its cursor."""
    async for text in stream.text():
        printable = [letter for letter in text if letter.isprintable() or letter in "\n\t"]
        sys.stdout.write("".join(printable))
        sys.stdout.flush()
    sys.stdout.write("\n")


def notebook_output() -> MakeOutput | None:
    """Makes outputs of the running cell; None where no notebook runs."""
    # A notebook's kernel has imported it; nothing else should.
    ipython: Any = sys.modules.get("IPython")
    if ipython is None:
        return None
    shell = ipython.get_ipython()
    if not hasattr(shell, "kernel"):  # IPython in a terminal, which draws nothing again
        return None

    def make(markdown: str) -> CellOutput:
        return _NotebookOutput(ipython.display, markdown)

    return make


class _NotebookOutput:
    """An output of a cell that can be replaced."""

    def __init__(self, ipython_display: Any, markdown: str) -> None:
        bundle = _bundle(markdown)
        self._handle: Any = ipython_display.display(bundle, raw=True, display_id=True)

    def update(self, markdown: str) -> None:
        """See `CellOutput`."""
        self._handle.update(_bundle(markdown), raw=True)


def _bundle(markdown: str) -> dict[str, str]:
    return {"text/markdown": markdown, "text/plain": markdown}


class _Growing:
    """One output: what it shows, and what it should show."""

    def __init__(self, label: str, style: str) -> None:
        self.block = Block(label, "", style)
        self.fragments: list[str] = []
        """Deltas after the block's text."""
        self.has_changed = True
        """Whether it must be drawn again."""
        self.output: CellOutput | None = None
        """None until it is drawn the first time."""

    def add(self, text: str) -> None:
        """Appends to its text."""
        self.fragments.append(text)
        self.has_changed = True

    def join(self) -> None:
        """Moves the deltas into the block."""
        if self.fragments:
            text = self.block.text + "".join(self.fragments)
            self.fragments.clear()
            self.block = self.block._replace(text=text)


class LiveCell:
    """What a cell shows of a stream. `feed` collects, `paint` draws what changed.

    Args:
        make_output: shows Markdown as a new output.
    """

    def __init__(self, make_output: MakeOutput) -> None:
        self._make_output = make_output
        self._open: dict[int, _Growing] = {}
        """Index of an item to the output that its deltas go to."""
        self._waiting: list[_Growing] = []
        """Outputs that may still change, in order; the finished ones were drawn and forgotten."""

    def feed(self, event: ResponseEvent) -> None:
        """Takes the next event."""
        match event:
            case OutputItemAdded(index=index, item=Reasoning()):
                self._begin(index, "reasoning", "folded")
            case OutputItemAdded(index=index, item=Message(role=role)):
                self._begin(index, role, "text")
            case (
                OutputTextDelta(index=index, delta=delta)
                | RefusalDelta(index=index, delta=delta)
                | ReasoningContentDelta(index=index, delta=delta)
                | ReasoningSummaryDelta(index=index, delta=delta)
            ):
                growing = self._open.get(index)
                if growing is not None and delta:
                    growing.add(delta)
            case OutputItemDone(index=index, item=item):
                if self._open.pop(index, None) is None:
                    for block in blocks([item]):
                        self._append(block)
            case _:
                pass

    def _begin(self, index: int, label: str, style: str) -> None:
        growing = _Growing(label, style)
        self._open[index] = growing
        self._waiting.append(growing)

    def _append(self, block: Block) -> None:
        """Adds an output that is complete."""
        growing = _Growing(block.label, block.style)
        growing.add(block.text)
        self._waiting.append(growing)

    def paint(self) -> None:
        """Draws what changed since the last time."""
        still_open: list[_Growing] = []
        for growing in self._waiting:
            last = self._paint_one(growing)
            if last in self._open.values():
                still_open.append(last)
        self._waiting = still_open

    def _paint_one(self, growing: _Growing) -> _Growing:
        """Draws an output; returns it, or the one that goes on with its text."""
        while True:
            growing.join()
            text = growing.block.text
            if not growing.has_changed or not text:
                return growing
            finished, rest = "", text
            if growing.block.style == "text":
                finished, rest = finished_part(text)
            elif len(text) >= CODE_LENGTH:
                finished, rest = _split_at_line(text)
            if not finished:
                self._draw(growing)
                return growing
            growing.block = growing.block._replace(text=finished)
            self._draw(growing)
            following = _Growing(growing.block.label, growing.block.style)
            following.add(rest)
            for index, candidate in self._open.items():
                if candidate is growing:
                    self._open[index] = following
                    break
            growing = following

    def _draw(self, growing: _Growing) -> None:
        block = growing.block
        markdown = block_markdown(block._replace(text=redact(block.text)))
        growing.has_changed = False
        if growing.output is None:
            growing.output = self._make_output(markdown)
        else:
            growing.output.update(markdown)


def finished_part(text: str) -> tuple[str, str]:
    """Splits a growing Markdown text where what is before cannot change any more.

    Such a boundary is an empty line between two blocks, outside of code, that no indented line
    follows: that could belong to the block before. A long block without one is split between two
    lines; code goes on behind a fence of its own.

    Returns:
        The finished part, "" where the text is short or has no boundary, and the rest.
    """
    if len(text) < BLOCK_LENGTH:
        return "", text
    boundary, fence = _last_boundary(text)
    if boundary:
        return text[:boundary], text[boundary:]
    if len(text) < CODE_LENGTH:
        return "", text
    finished, rest = _split_at_line(text)
    if not fence:
        return finished, rest
    if finished.count("\n") < 2:  # nothing but the line of the fence
        return "", text
    return finished + fence[: _run_length(fence)], f"{fence}\n{rest}"


def _last_boundary(text: str) -> tuple[int, str]:
    """Offset of the last boundary, 0 without one, and the line that opened a block of code."""
    fence = ""
    boundary = 0
    position = 0
    after_empty = False
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if fence:
            if _closes(stripped, fence):
                fence = ""
        else:
            if after_empty and not line.startswith((" ", "\t", "\n")):
                boundary = position
            if stripped.startswith(("```", "~~~")):
                fence = stripped
        after_empty = not stripped
        position += len(line)
    return boundary, fence


def _closes(line: str, fence: str) -> bool:
    """Whether a line without blanks around it ends the block of code that `fence` opened."""
    return bool(line) and set(line) == {fence[0]} and len(line) >= _run_length(fence)


def _split_at_line(text: str) -> tuple[str, str]:
    """Splits a long text after its last complete line, or at its end if it has one line."""
    end = text.rfind("\n") + 1
    if end == 0:
        return text, ""
    return text[:end], text[end:]


def _run_length(fence: str) -> int:
    """Number of characters of the fence itself."""
    return len(fence) - len(fence.lstrip(fence[0]))
