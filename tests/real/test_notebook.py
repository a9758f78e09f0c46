"""A real kernel runs the cells of docs/sync.md, README's first example, and the display."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from lab.real.counterparts import KERNEL, absence
from tests.docs.test_readme import BLOCK
from tests.real.conftest import ABSENT
from tests.support.shared import ROOT

pytestmark = pytest.mark.real

CELL_MARK: Final = "a cell of a notebook"
SECONDS: Final = 60.0
"""For one cell."""


@dataclass
class Ran:
    """What a cell sent to its notebook."""

    printed: str = ""
    error: str = ""
    result: dict[str, str] = field(default_factory=dict)
    """MIME type to the value at the end of the cell."""
    displays: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """"new" or "update", the id, and MIME type to content; in order."""

    def take(self, message: Any) -> None:
        """Takes a message of the kernel."""
        content = message["content"]
        match message["msg_type"]:
            case "stream":
                self.printed += content["text"]
            case "error":
                self.error = f"{content['ename']}: {content['evalue']}"
            case "execute_result":
                self.result = content["data"]
            case "display_data" | "update_display_data" as kind:
                step = "new" if kind == "display_data" else "update"
                name = content["transient"]["display_id"]
                self.displays.append((step, name, content["data"]))


class Kernel:
    """A running kernel."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str) -> Ran:
        """Runs a cell to its end."""
        ran = Ran()
        self.client.execute_interactive(code, timeout=SECONDS, output_hook=ran.take)
        return ran


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """One kernel for all tests: it takes seconds to start."""
    why = absence(KERNEL)
    if why is not None:
        pytest.skip(f"{ABSENT}: {KERNEL}, {why}")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT))
    try:
        started = Kernel(manager, client)
        started.run(f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'parsers')!r}]")
        yield started
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_cells_of_the_page_do_what_it_shows(kernel: Kernel) -> None:
    page = (ROOT / "docs" / "sync.md").read_text(encoding="utf-8")
    cells = [block for block in BLOCK.finditer(page) if CELL_MARK in (block["mark"] or "")]
    assert len(cells) == 4
    for cell in cells:
        ran = kernel.run(cell["code"])
        assert ran.error == ""
        assert ran.printed.strip() == (cell["printed"] or "").strip()
    assert "Hello there" in kernel.run("response").result["text/html"]


RESPONDING: Final = """
import functools
import streamlib
from anyio.from_thread import start_blocking_portal
from streamlib.testing import running

threads = start_blocking_portal()  # the kernel's own loop stands still while SyncClient waits
server = threads.__enter__().wrap_async_context_manager(running())
url = server.__enter__()
streamlib.SyncClient = functools.partial(streamlib.SyncClient, base_url=url, api_key="key")
"""
"""The loopback provider responds to a client that asks a real one."""


def test_anyio_run_fails_in_a_cell(kernel: Kernel) -> None:
    assert "Already running asyncio" in kernel.run("import anyio\nanyio.run(anyio.sleep, 0)").error


def test_first_example_of_the_readme_runs_in_a_cell(kernel: Kernel) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = next(iter(BLOCK.finditer(readme)))
    assert kernel.run(RESPONDING).error == ""
    ran = kernel.run(example["code"])
    assert ran.error == ""
    assert "You said: Name three rivers" in ran.printed


LONG: Final = """
import time
from streamlib.display import display
from streamlib.testing import MODEL, loopback

paragraph = "word " * 100 + "![x](http://evil.example/) <b>\\n\\n"
async with loopback(turns=[paragraph * 20], pace=0.001) as client:
    began = time.monotonic()
    stream = client.stream("Talk", model=MODEL)
    await display(stream)
    seconds = time.monotonic() - began
print(seconds)
"""


def test_display_draws_finished_blocks_once_and_the_last_seldom(kernel: Kernel) -> None:
    ran = kernel.run(LONG)
    assert ran.error == ""
    names = [name for step, name, _ in ran.displays if step == "new"]
    assert len(names) == len(set(names)) >= 5
    open_name = ""
    for step, name, bundle in ran.displays:
        if step == "new":
            open_name = name
        assert name == open_name  # an earlier block is never drawn again
        assert "![" not in bundle["text/markdown"]
        assert "<b>" not in bundle["text/markdown"]
    updates = len(ran.displays) - len(names)
    assert updates <= float(ran.printed) * 10 + 1
    last = {name: bundle["text/markdown"] for _, name, bundle in ran.displays}
    assert "".join(last.values()).count("word") == 2000


def test_values_are_shown_as_html_and_markdown(kernel: Kernel) -> None:
    kernel.run(
        "async with loopback() as client:\n"
        "    history = streamlib.History().user('Hi <b>')\n"
        "    response = await client.respond(history, model=MODEL)\n"
        "history.add(response)"
    )
    for value in ("response", "history", "response.usage", "response.rate_limits"):
        result = kernel.run(value).result
        assert result["text/html"].startswith("<")
        assert result["text/markdown"]
        assert "<b>" not in result["text/html"] + result["text/markdown"]


STALLED: Final = """
from streamlib.display import display

async with loopback(fault="stall", at=8) as client:
    stream = client.stream("Hello", model=MODEL)
    try:
        await display(stream)
    finally:
        print("left")
"""


def test_stop_button_closes_the_stream(kernel: Kernel) -> None:
    ran = Ran()
    message_id = kernel.client.execute(STALLED)
    time.sleep(1.0)
    kernel.manager.interrupt_kernel()
    while True:
        message = kernel.client.get_iopub_msg(timeout=SECONDS)
        if message["parent_header"].get("msg_id") != message_id:
            continue
        ran.take(message)
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    assert ran.printed == "left\n"
    assert ran.error.startswith(("KeyboardInterrupt", "CancelledError"))
    assert ran.displays[-1][2]["text/markdown"].startswith("You said")
    after = kernel.run("print(stream.response.status, stream)")
    assert after.printed == "cancelled <ResponseStream messages closed>\n"
