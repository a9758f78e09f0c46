"""Promises of logs in small: `python -m lab.durable.promises`; the page's compose file."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

from lab.durable.figures import reloads
from lab.durable.promises import clocks, lost_answers, two_writers
from streamlib.durable import open_log
from tests.support.durable_engines import memory_engine
from tests.support.redis_servers import running_server, valkey_binary
from tests.support.shared import ROOT
from tests.support.virtual_time import anyio_backend  # noqa: F401  # a fixture


async def test_appends_whose_results_are_lost_land_once() -> None:
    found = await lost_answers(memory_engine(), 300)
    assert found["appends"] > 300
    assert (found["duplicates"], found["missing"]) == (0, 0)


async def test_two_frozen_writers_leave_events_of_one() -> None:
    found = await two_writers(memory_engine(), 30, 0, None)
    assert found["logs of one writer"] == 30
    assert found["writer: held"]
    assert found["writer: fenced"]
    assert "WRONG" not in found


async def test_clocks_an_hour_off_change_nothing() -> None:
    found = await clocks(memory_engine(), 20, 0, None)
    assert (found["logs"], found["wrong"]) == (20, [])


async def test_reloads_at_random_moments_are_equal() -> None:
    found = await reloads("memory:", 3, 0)
    assert found["readers"] == {"equal": 15}


def test_server_of_the_compose_file_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "durable.md").read_text(encoding="utf-8")
    found = re.search(r"command:\n((?: +- .*\n)+)", page)
    assert found is not None
    words = [line.strip().removeprefix("- ") for line in found.group(1).splitlines()]
    name, *options = [word.strip('"') for word in words]
    assert name == "valkey-server"

    pytest.importorskip("coredis", reason="no client for Redis: the extra `redis` is missing")

    async def durability(url: str) -> str:
        async with open_log(url) as log:
            return log.durability

    with running_server(valkey_binary(), tmp_path, *options) as server:
        # Not on virtual time: there is a socket.
        assert "second" in anyio.run(durability, server.url)
