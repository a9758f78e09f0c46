"""The program of the issue form keeps a recording of a request that fails."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest
from anyio.from_thread import start_blocking_portal

from streamlib import StreamError
from streamlib.inspection import inspect
from streamlib.recording import load_all
from streamlib.testing import Behaviour, running
from tests.support.shared import ROOT

FORM = ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml"


def test_issue_form_records_a_request_that_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Client(http=Recorder())`, as it stood there, keeps nothing on the disk."""
    monkeypatch.chdir(tmp_path)
    text = FORM.read_text(encoding="utf-8")
    [code] = re.findall(r"^ +```python\n(.*?)^ +```$", text, re.DOTALL | re.MULTILINE)
    truncated = running(Behaviour(fault="truncate"))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(truncated) as url:
        options = f'Client(http=recorder, base_url="{url}", api_key="sk-hidden-01234")'
        program = dedent(code).replace("Client(http=recorder)", options)
        with pytest.raises(StreamError, match="truncated"):
            exec(compile(program, FORM, "exec", dont_inherit=True), {"__name__": "__example__"})
    [recording] = load_all(tmp_path / "bug.jsonl")
    assert inspect(recording).outcome.text.startswith("failed")
    assert "hidden" not in (tmp_path / "bug.jsonl").read_text(encoding="utf-8")
