"""The web example's stream module: `answer(url, body, {signal, idle, onEvent})`, in Node.js.

However it ends, the connection is closed: E6 found a page that showed an error while the model went
on writing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.cases import each_case
from tests.support.shared import ROOT

MODULE: Final = ROOT / "examples" / "web" / "page" / "stream.js"
SCRIPT: Final = Path(__file__).with_name("stream.mjs")

FRAMES: Final = ['data: {"n": 1}\n\n: ping\n\nda', 'ta: {"n": 2, "text": "Gr', 'ü\\nß"}\n\n']
MANY: Final = [f'data: {{"n": {n}}}\n\n' for n in range(1, 9)]
LIMIT: Final = (
    '{"error": {"kind": "rate_limited", "retryable": true, "retry_after": 7.5, "message": "Wait."}}'
)

CASES: Final[dict[str, dict[str, Any]]] = {
    "frames": {"chunks": FRAMES, "pace": 5},
    "lines": {"type": "application/x-ndjson", "chunks": ['{"n": 1}\n\n', '{"n"', ": 2}"]},
    "asked": {"chunks": ['data: {"body": "BODY"}\n\n']},
    "refused": {"status": 429, "type": "application/json", "chunks": [LIMIT]},
    "busy": {
        "status": 503,
        "type": "text/html",
        "headers": {"retry-after": "3"},
        "chunks": ["<h1>"],
    },
    "forbidden": {"status": 403, "type": "text/html", "chunks": ["<h1>"]},
    "stopped": {"chunks": MANY, "pace": 5, "end": "open", "stopAt": 2},
    "stopped before": {"chunks": MANY, "end": "open", "aborted": True},
    "thrown": {"chunks": MANY, "pace": 5, "end": "open", "throwAt": 2},
    "silent": {"chunks": FRAMES, "end": "open", "idle": 0.3},
    "silent from the start": {"end": "open", "idle": 0.3},
    "pinged": {"chunks": [": ping\n\n"] * 9, "pace": 120, "idle": 0.9},
    "cut": {"chunks": MANY[:2], "pace": 20, "end": "cut"},
    "cut in a frame": {"chunks": [*FRAMES[:2]]},
    "cut in a line": {"type": "application/x-ndjson", "chunks": ['{"n": 1}\n{"n"']},
    "nonsense": {"chunks": ["data: <html>\n\n"], "end": "open"},
    "nobody": {"nobody": True},
}


@cache
def outcomes() -> dict[str, dict[str, Any]]:
    """What `answer` did in each case; all run at once, in one process."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    command = [node, str(SCRIPT), str(MODULE)]
    given = json.dumps(list(CASES.values()))
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, json.loads(done.stdout), strict=True))


def test_events_are_read_whatever_the_chunks() -> None:
    frames, lines = outcomes()["frames"], outcomes()["lines"]
    assert frames["events"] == [{"n": 1}, {"n": 2, "text": "Grü\nß"}]
    assert lines["events"] == [{"n": 1}, {"n": 2}]
    assert (frames["error"], lines["error"]) == (None, None)
    (asked,) = outcomes()["asked"]["events"]
    assert json.loads(asked["body"]) == {"number": list(CASES).index("asked")}


@each_case(
    "case, kind, retryable, seconds",
    [
        ("refused", "rate_limited", True, 7.5),
        ("busy", "server_error", True, 3),
        ("forbidden", "server_error", False, None),
        ("stopped", "stopped", False, None),
        ("stopped before", "stopped", False, None),
        ("silent", "stalled", True, None),
        ("silent from the start", "stalled", True, None),
        ("cut", "connection", True, None),
        ("cut in a frame", "truncated", True, None),
        ("cut in a line", "truncated", True, None),
        ("nonsense", "malformed", False, None),
        ("nobody", "connection", True, None),
    ],
)
def test_failure_has_a_kind_and_what_helps(
    case: str, kind: str, *, retryable: bool, seconds: float | None
) -> None:
    error = outcomes()[case]["error"]
    assert (error["name"], error["kind"]) == ("AnswerError", kind)
    assert (error["retryable"], error["retryAfter"]) == (retryable, seconds)


def test_error_of_the_page_stays_what_it_is() -> None:
    outcome = outcomes()["thrown"]
    assert (outcome["error"]["name"], len(outcome["events"])) == ("RangeError", 2)


def test_nothing_is_delivered_after_a_stop() -> None:
    assert len(outcomes()["stopped"]["events"]) == 2
    assert outcomes()["stopped before"]["events"] == []


def test_ping_keeps_the_watchdog_quiet() -> None:
    assert outcomes()["pinged"]["error"] is None


def test_connection_is_closed_however_it_ends() -> None:
    """E6: an error in the page's drawing left the model writing."""
    ends = ("stopped", "thrown", "silent", "silent from the start", "nonsense")
    assert {case: outcomes()[case]["closed"] for case in ends} == dict.fromkeys(ends, True)
