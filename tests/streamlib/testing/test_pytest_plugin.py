"""The pytest plugin, in runs of pytest of their own inside this process."""

from __future__ import annotations

import importlib.metadata
import time
from pathlib import Path

import pytest

# Loaded before: pytester forgets the modules that an inner run loads, and their classes would exist
# twice.
import streamlib.client
import streamlib.testing.event_diff
from streamlib import encode_all
from streamlib.recording import from_body, save
from streamlib.request.prompt import Prompt
from streamlib.testing import echo_response
from tests.house.test_public_names import modules_after
from tests.support.shared import ROOT

FIXTURES = """
import anyio

import pytest
from streamlib import StreamError
from streamlib.testing import MODEL

def test_scripted(streamlib_scripted):
    async def run():
        async with streamlib_scripted(["Hello!"], wire_api="chat") as client:
            assert await client.text("hi", MODEL) == "Hello!"
            assert len(client.requests) == 1
    anyio.run(run)

def test_loopback(streamlib_loopback):
    async def run():
        async with streamlib_loopback("gemini", status=401) as client:
            with pytest.raises(StreamError, match="configured to fail") as caught:
                await client.text("hi", MODEL)
            assert caught.value.kind == "authentication"
    anyio.run(run)

def test_replay(streamlib_replay):
    async def run():
        async with streamlib_replay("recordings/hello.jsonl", "chat", split="random") as client:
            assert (await client.text("hi", MODEL)).startswith("You said: hello")
    anyio.run(run)
"""

DIFFERENCE = """
from streamlib import Completed, Created, OutputTextDelta

EVENTS = [Created("r", "m"), *[OutputTextDelta(0, 0, word) for word in "a b c d".split()]]

def test_events():
    assert [*EVENTS, Completed("r", "m", "stop")] == [*EVENTS, Completed("r", "m", "length")]

def test_others():
    assert [1, 2] == [1, 3]

def test_strings():
    assert "a" == "b"
"""


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """A run with the plugin, whether or not this environment has its entry point."""
    plugins = ("-p", "no:streamlib", "-p", "streamlib_pytest", "-p", "no:cacheprovider")
    return pytester.runpytest_inprocess(*plugins, *options)


def test_fixtures_are_the_clients_of_the_testing_kit(pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("recordings")
    body = encode_all("chat", echo_response(Prompt("hello")))
    save(from_body(body), folder / "hello.jsonl")
    pytester.makepyfile(FIXTURES)
    run(pytester).assert_outcomes(passed=3)


def test_plugin_explains_differences_of_events(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(variable, raising=False)  # there pytest shows all lines
    pytester.makepyfile(DIFFERENCE)
    result = run(pytester)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "E*assert 6 events == 6 events",
            "E*the first difference:",
            "E*left  [[]5] Completed(response_id='r', model='m', stop_reason='stop')",
            "E*right [[]5] Completed(response_id='r', model='m', stop_reason='length')",
            "E*stop_reason: 'stop' != 'length' (character 0)",
            "E*assert [[]1, 2] == [[]1, 3]",
            "E*At index 1 diff: 2 != 3",
        ]
    )


def test_plugin_shows_everything_when_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(DIFFERENCE)
    result = run(pytester, "-vv")
    result.stdout.fnmatch_lines(
        ["E*around it:", "E*[[]0] Created(*", "E*4 x OutputTextDelta(*'abcd')*"]
    )


def test_plugin_loads_neither_streamlib_nor_http() -> None:
    """pytest loads it at its start, in projects that do not use it, too."""
    loaded = modules_after("import streamlib_pytest") - modules_after("import pytest")
    assert loaded - {"streamlib_pytest"} == set()


def test_plugin_costs_nothing_where_there_are_no_events() -> None:
    from streamlib_pytest import pytest_assertrepr_compare

    config = pytest.Config.fromdictargs({}, [])
    start = time.process_time()
    for _ in range(1_000):
        assert pytest_assertrepr_compare(config, "==", [1] * 100, [2] * 100) is None
        assert pytest_assertrepr_compare(config, "==", "a", "b") is None
        assert pytest_assertrepr_compare(config, "in", [], []) is None
    assert time.process_time() - start < 0.5


def test_distribution_registers_the_plugin() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\nstreamlib = "streamlib_pytest"' in settings
    assert '"streamlib_pytest"' in settings.partition("wheel]")[2].partition("]\n")[0]
    registered = importlib.metadata.entry_points(group="pytest11", name="streamlib")
    for entry_point in registered:  # none where streamlib is not installed
        assert entry_point.value == "streamlib_pytest"
    assert Path(streamlib.testing.event_diff.__file__).is_file()
