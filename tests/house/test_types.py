"""The type checkers see mistakes where people edit: handlers, registrations, state.

Each mistake is planted in a copy of the packages, to which the wire of docs/guides/add-a-wire.md is
added; mypy must report the mistakes and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.docs.test_add_a_wire import copy_with_the_guides_wire

pytestmark = pytest.mark.checkers  # fifteen seconds of mypy: `nox -s mypy` runs it


class Mistake(NamedTuple):
    """A text of a file, what a person might have written in its place, and mypy's message."""

    name: str
    path: str
    right: str
    wrong: str
    message: str


MISTAKES = (
    Mistake(
        "misspelt_attribute_in_an_encoder",
        "streamlib/wires/chat/encode.py",
        "def _on_failed(self, event: Failed) -> bytes:\n",
        "def _on_failed(self, event: Failed) -> bytes:\n        event.eror\n",
        '"Failed" has no attribute "eror"',
    ),
    Mistake(
        "encoder_handler_of_another_event",
        "streamlib/wires/chat/encode.py",
        "def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:",
        "def _on_arguments(self, event: OutputTextDelta) -> bytes:",
        'Argument 1 of "_on_arguments" is incompatible with supertype',
    ),
    Mistake(
        "accumulator_handler_of_another_event",
        "parsers/streamlib_parsers/accumulate.py",
        "_on(TokenCount, Accumulator._usage)",
        "_on(TokenCount, Accumulator._failed)",
        'Argument 2 to "_on" has incompatible type',
    ),
    Mistake(
        "misspelt_attribute_in_a_downgrade",
        "streamlib/request/origins.py",
        "def _compaction(item: Compaction) -> Downgrade:\n",
        "def _compaction(item: Compaction) -> Downgrade:\n    item.contents\n",
        '"Compaction" has no attribute "contents"',
    ),
)


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy reports on a copy with every mistake and the guide's wire."""
    root = tmp_path_factory.mktemp("planted")
    copy_with_the_guides_wire(root)
    for mistake in MISTAKES:
        path = root / mistake.path
        text = path.read_text(encoding="utf-8")
        assert text.count(mistake.right) == 1, mistake.name
        path.write_text(text.replace(mistake.right, mistake.wrong), encoding="utf-8")
    environment = {**os.environ, "MYPYPATH": f"{root}{os.pathsep}{root / 'parsers'}"}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-I", "-m", "mypy", "--strict", "--config-file="]
    command += ["-p", "streamlib", "-p", "streamlib_parsers"]
    result = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    return [line for line in result.stdout.splitlines() if ": error:" in line]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_a_type_error(mistake: Mistake, errors: list[str]) -> None:
    in_file = [line for line in errors if line.startswith(f"{mistake.path}:")]
    assert any(mistake.message in line for line in in_file), errors


def test_only_planted_mistakes_are_reported(errors: list[str]) -> None:
    assert len(errors) == len(MISTAKES), errors
