"""The files that a gateway is deployed with name what exists, and options that the command has."""

from __future__ import annotations

import re
import shlex
from typing import Final

import pytest

from streamlib.cli import parse
from tests.support.shared import ROOT

PAGE: Final = (ROOT / "docs" / "gateway" / "deploy.md").read_text(encoding="utf-8")
DOCKERFILE: Final = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def test_image_is_built_from_files_that_it_gets() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert "pyproject.toml" in names
    for name in names:
        assert (ROOT / name).exists(), name
        assert f"!{name}\n" in ignored, name


def test_image_runs_as_nobody_in_particular() -> None:
    last_stage = DOCKERFILE.rpartition("FROM ")[2]
    assert re.search(r"^USER 10001$", last_stage, re.MULTILINE)
    assert 'ENTRYPOINT ["streamlib", "gateway"' in last_stage


COMMANDS: Final = re.findall(r"streamlib gateway ([^`\n]*--[^`\n]*)", PAGE)


@pytest.mark.parametrize("options", COMMANDS)
def test_page_names_options_that_exist(options: str) -> None:
    # An unknown one would end the program.
    assert parse(["gateway", *shlex.split(options)]).run


def test_grace_is_below_every_time_that_the_page_gives() -> None:
    grace = parse(["gateway"]).grace
    (kubernetes,) = re.findall(r"terminationGracePeriodSeconds: (\d+)", PAGE)
    (systemd,) = re.findall(r"TimeoutStopSec=(\d+)", PAGE)
    (docker,) = re.findall(r"--stop-timeout (\d+)", PAGE)
    (pause,) = re.findall(r'\["sleep", "(\d+)"\]', PAGE)
    assert grace + int(pause) < int(kubernetes)
    assert grace < min(int(systemd), int(docker))
