"""The live display of a stream in a cell: blocks, their number, and how often they are drawn."""

from __future__ import annotations

import sys
import types
from typing import Any

import anyio
import pytest

import streamlib
from streamlib.display.notebook import BLOCK_LENGTH, CODE_LENGTH, LiveCell, display, finished_part
from streamlib.display.notebook_text import fragments
from streamlib_parsers import (
    FunctionCall,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    Text,
)
from streamlib_parsers.stream_error import StreamError
from tests.support.client_streams import stream_over
from tests.support.response_bodies import HELLO, MESSAGE, OPENED, finish, stop, text

MESSAGE_END = [stop(), finish(), b'event: message_stop\ndata: {"type":"message_stop"}\n\n']


class FakeOutput:
    """An output of a cell."""

    def __init__(self, markdown: str, cell: FakeCell) -> None:
        self.shown = [markdown]
        self._cell = cell

    def update(self, markdown: str) -> None:
        self.shown.append(markdown)
        self._cell.drawn.append(markdown)


class FakeCell:
    """A cell that keeps its outputs, and everything that was drawn."""

    def __init__(self) -> None:
        self.outputs: list[FakeOutput] = []
        self.drawn: list[str] = []

    def make(self, markdown: str) -> FakeOutput:
        self.outputs.append(FakeOutput(markdown, self))
        self.drawn.append(markdown)
        return self.outputs[-1]

    @property
    def text(self) -> str:
        return "".join([output.shown[-1] for output in self.outputs])


def feed_text(cell: LiveCell, chunks: list[str]) -> None:
    """A message in deltas, drawn after each."""
    cell.feed(OutputItemAdded(index=0, item=Message("assistant")))
    for chunk in chunks:
        cell.feed(OutputTextDelta(index=0, content_index=0, delta=chunk))
        cell.paint()
    cell.feed(OutputItemDone(index=0, item=Message("assistant", [Text("".join(chunks))])))
    cell.paint()


def test_finished_blocks_are_drawn_no_more() -> None:
    """Each block is an output; only the last one is updated, and nothing is shown twice."""
    paragraphs = [f"Paragraph {n} " + "word " * 80 + "\n\n" for n in range(40)]
    fake = FakeCell()
    feed_text(LiveCell(fake.make), paragraphs)
    full = "".join(paragraphs)
    assert fake.text.split() == full.split()
    assert 5 < len(fake.outputs) <= 16
    drawn = sum(len(markdown) for markdown in fake.drawn)
    assert drawn < 5 * len(full)


def test_a_boundary_is_never_inside_code_or_a_list() -> None:
    code = "```py\n" + "x = 1\n\ny = 2\n" * 200 + "```\n"
    assert finished_part(code) == ("", code)
    listed = "- item\n\n  more of it\n\n" + "  and more of it\n\n" * 200
    assert finished_part(listed) == ("", listed)
    finished, rest = finished_part("a" * BLOCK_LENGTH + "\n\n" + code)
    assert (finished, rest) == ("a" * BLOCK_LENGTH + "\n\n", code)
    for end in ("```", "````"):
        closed = code.removesuffix("```\n") + f"{end}\n\n"
        assert finished_part(closed + "after") == (closed, "after"), end


def test_code_that_is_split_is_closed_and_opened_again() -> None:
    for mark in ("```", "~~~~"):
        code = f"{mark}python\n" + "x = 1\n" * (CODE_LENGTH // 6)
        finished, rest = finished_part(code + "y = 2")
        assert finished == f"{code}{mark}"
        assert rest == f"{mark}python\ny = 2"


def test_long_arguments_are_split_at_a_line() -> None:
    fake = FakeCell()
    cell = LiveCell(fake.make)
    cell.feed(OutputItemAdded(index=0, item=Reasoning()))
    for _ in range(3):
        cell.feed(ReasoningContentDelta(index=0, content_index=0, delta="one\ntwo"))
        cell.paint()
    assert len(fake.outputs) == 1
    cell.feed(ReasoningContentDelta(0, 0, "three\n" * (CODE_LENGTH // 6)))
    cell.paint()
    cell.feed(ReasoningContentDelta(0, 0, "four"))
    cell.paint()
    assert len(fake.outputs) == 2
    assert "four" in fake.outputs[1].shown[-1]


@pytest.mark.parametrize(
    "line",
    ["value = 12345\n" * 10, "\n" * 100, "~~~ no end\n" * 10],
    ids=["code", "empty", "tilde"],
)
def test_long_code_continues_in_another_block_of_code(line: str) -> None:
    fake = FakeCell()
    lines = ["```python\n", *[line] * (3 * CODE_LENGTH // len(line)), "```\n"]
    cell = LiveCell(fake.make)
    cell.feed(OutputItemAdded(index=0, item=Message("assistant")))
    for n, chunk in enumerate(lines):
        cell.feed(OutputTextDelta(index=0, content_index=0, delta=chunk))
        if n % 10 == 0:
            cell.paint()
    cell.paint()
    assert len(fake.outputs) >= 3
    parts = [part for output in fake.outputs for part in fragments(output.shown[-1])]
    assert {(part.is_code, part.language) for part in parts if part.text.strip()} <= {
        (True, "python")
    }
    assert max(len(output.shown[-1]) for output in fake.outputs) < 2 * CODE_LENGTH


def test_long_text_without_boundaries_is_split() -> None:
    fake = FakeCell()
    feed_text(LiveCell(fake.make), ["word " * 200] * 50)
    assert fake.text.split() == ["word"] * 10_000
    assert sum(len(markdown) for markdown in fake.drawn) < 10 * 50_000


def test_reasoning_and_calls_are_shown() -> None:
    fake = FakeCell()
    cell = LiveCell(fake.make)
    cell.feed(OutputItemAdded(index=0, item=Reasoning()))
    cell.feed(ReasoningContentDelta(index=0, content_index=0, delta="I <b>think</b>."))
    cell.feed(OutputItemDone(index=0, item=Reasoning("I <b>think</b>.")))
    cell.feed(OutputItemAdded(index=1, item=FunctionCall("c", "weather")))
    cell.feed(OutputItemDone(index=1, item=FunctionCall("c", "weather", '{"city": "Paris"}')))
    cell.paint()
    cell.paint()
    folded, call = [output.shown for output in fake.outputs]
    assert len(folded) == 1
    assert folded[0].startswith("<details><summary>reasoning</summary>")
    assert "&lt;b&gt;think" in folded[0]
    assert call == ['```\nweather({"city": "Paris"})\n```']


def test_what_a_model_writes_stays_text_and_keys_are_masked() -> None:
    fake = FakeCell()
    feed_text(LiveCell(fake.make), ["![x](http://evil", ".example/) <script> sk-ant-012345678"])
    assert "![" not in fake.text
    assert "<script" not in fake.text
    assert "sk-ant" not in fake.text


# --- with a stream ---


class FakeIPython(types.ModuleType):
    """As much of IPython as the display uses, with a kernel."""

    def __init__(self, *, kernel: bool = True) -> None:
        super().__init__("IPython")
        self.bundles: list[tuple[str, dict[str, str]]] = []
        self.times: list[float] = []
        shell = types.SimpleNamespace(kernel=None) if kernel else types.SimpleNamespace()
        self.get_ipython = lambda: shell
        self.display = types.SimpleNamespace(display=self._display)

    def _display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.bundles.append(("new", bundle))
        return types.SimpleNamespace(update=self._update)

    def _update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.times.append(anyio.current_time())
        self.bundles.append(("update", bundle))


async def test_stream_is_drawn_ten_times_a_second_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ipython = FakeIPython()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    chunks: list[Any] = [OPENED]
    for n in range(40):
        chunks += [text(f"{n} "), 0.008]
    stream = stream_over(*chunks, stop(), finish(), MESSAGE[-1:])
    began = anyio.current_time()
    with pytest.raises(StreamError):
        await display(stream)
    seconds = anyio.current_time() - began
    assert len(ipython.bundles) <= seconds * 10 + 2
    assert len(ipython.bundles) >= 2
    assert ipython.bundles[0][0] == "new"
    assert {kind for kind, _ in ipython.bundles[1:]} == {"update"}
    # The failure came after everything was shown.
    last = ipython.bundles[-1][1]
    assert last["text/markdown"].split() == [str(n) for n in range(40)]
    assert last["text/plain"] == last["text/markdown"]
    assert stream.response.status == "failed"


async def test_display_closes_a_stream_and_returns_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A value at the end of a cell would show the text once more."""
    ipython = FakeIPython()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    stream = stream_over(MESSAGE)
    assert await display(stream) is None  # type: ignore[func-returns-value]
    assert (stream.response.status, stream.response.text) == ("completed", "Hello there")
    assert [bundle["text/markdown"] for _, bundle in ipython.bundles] == ["Hello there"]
    assert isinstance(stream.response, streamlib.Response)
    async with stream_over(MESSAGE) as entered:
        event = await anext(entered)
        while not isinstance(event, OutputTextDelta):
            event = await anext(entered)
        await display(entered)
        assert entered.response.status == "completed"


async def test_a_cancelled_display_keeps_what_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the stop button of a notebook does it."""
    ipython = FakeIPython()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    stream = stream_over(HELLO, 60.0)
    with anyio.move_on_after(0.03):
        await display(stream)
    assert ipython.bundles[-1][1]["text/markdown"] == "Hello there"
    assert stream.response.status == "cancelled"


async def test_without_a_notebook_the_text_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chunks = [OPENED, text("a\x1b[31mb\n"), text("c"), *MESSAGE_END]
    for ipython in (None, FakeIPython(kernel=False)):
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        await display(stream_over(*chunks))
        assert capsys.readouterr().out == "a[31mb\nc\n"
