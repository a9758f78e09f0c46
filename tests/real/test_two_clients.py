"""The page 'From nothing to two named clients …', by its own files, with a real Prometheus."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from lab.real.counterparts import PROMETHEUS, absence
from tests.real.conftest import ABSENT
from tests.support.shared import ROOT

pytestmark = [pytest.mark.real]

PAGE: Final = ROOT / "docs" / "gateway" / "clients.md"
FILE: Final = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
QUERY: Final = re.compile(r"^\| [^|]+ \| `(.+)` \|$", re.MULTILINE)
TEN_MINUTES: Final = 600.0
OWN: Final = "a-token-of-the-operator"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def new_token() -> tuple[str, str]:
    """A token and its digest, as the command prints them."""
    command = [sys.executable, "-m", "streamlib", "gateway", "--new-token"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    token, digest = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return token, digest.partition('"')[2].rstrip('"')


@contextmanager
def process(folder: Path, *command: str) -> Iterator[None]:
    """A program that runs while the block does."""
    with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
        environment = {**os.environ, "GATEWAY_TOKEN": OWN}
        with subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env=environment
        ) as started:
            try:
                yield
            finally:
                started.terminate()


def get(url: str) -> Any:
    """A JSON response; it is asked for until its server runs."""
    until = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return json.load(response)
        except (OSError, urllib.error.HTTPError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def ask(url: str, token: str, model: str) -> int:
    """The status that a client gets."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {token}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_page_leads_to_limits_and_metrics(tmp_path: Path) -> None:
    why = absence(PROMETHEUS)
    if why is not None:
        pytest.skip(f"{ABSENT}: {PROMETHEUS}, {why}")
    started = time.monotonic()
    text = PAGE.read_text(encoding="utf-8")
    (alice, alice_digest), (bob, bob_digest) = new_token(), new_token()
    port, metrics_port, prometheus_port = free_port(), free_port(), free_port()
    replaced = {"ALICE": alice_digest, "BOB": bob_digest, "9900": str(metrics_port), "5s": "1s"}
    for name, content in FILE.findall(text):
        for old, new in replaced.items():
            content = content.replace(old, new)  # noqa: PLW2901  # the file of this run
        (tmp_path / name).write_text(content, encoding="utf-8")
    url, prometheus = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{prometheus_port}"
    with ExitStack() as stack:
        gateway = [sys.executable, "-m", "streamlib", "gateway", "--config", "routes.toml"]
        gateway += ["--token-env", "GATEWAY_TOKEN", "--metrics-port", str(metrics_port)]
        stack.enter_context(
            process(tmp_path, *gateway, "--log-format", "json", "--port", str(port))
        )
        assert get(f"{url}/ready") == {"ready": True, "reasons": []}
        options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data"]
        options += [f"--web.listen-address=127.0.0.1:{prometheus_port}"]
        stack.enter_context(process(tmp_path, "prometheus", *options))
        assert [ask(url, alice, "claude-sonnet-4-5"), ask(url, bob, "claude-sonnet-4-5")] == [
            200,
            404,
        ]
        assert ask(url, "nobody", "fast") == 401
        assert 429 in [ask(url, bob, "fast") for _ in range(4)]
        counted = wait_for_counts(prometheus)
        assert (counted["alice", "200"], counted["bob", "404"], counted["bob", "429"]) == (1, 1, 1)
        for query in QUERY.findall(text):
            answer = get(f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
            assert answer["status"] == "success", query
    log = (tmp_path / Path(sys.executable).name).with_suffix(".log").read_text(encoding="utf-8")
    assert '"client":"bob"' in log
    assert alice not in log
    assert bob not in log
    assert time.monotonic() - started < TEN_MINUTES


def wait_for_counts(prometheus: str) -> dict[tuple[str, str], float]:
    """Requests by client and status, as Prometheus has scraped them."""
    query = "sum by (client, status) (streamlib_gateway_requests_total)"
    url = f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    until = time.monotonic() + 60
    counted: dict[tuple[str, str], float] = {}
    while ("bob", "429") not in counted:
        assert time.monotonic() < until, counted
        time.sleep(0.5)
        for row in get(url)["data"]["result"]:
            key = (row["metric"].get("client", ""), row["metric"].get("status", ""))
            counted[key] = float(row["value"][1])
    return counted


def test_queries_of_the_page_name_metrics_that_exist() -> None:
    """Prometheus takes a query for a metric that nobody has."""
    from streamlib.gateway.watch.metrics import Metrics

    rendered = Metrics().render()[0].decode()
    known = set(re.findall(r"^# TYPE (streamlib_gateway_\w+)", rendered, re.MULTILINE))
    queries = QUERY.findall(PAGE.read_text(encoding="utf-8"))
    used = set(re.findall(r"streamlib_gateway_\w+", " ".join(queries)))
    assert len(queries) == 6
    assert {name.removesuffix("_bucket") for name in used} <= known
