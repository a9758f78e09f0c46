"""`streamlib serve FILE`: a client receives what was recorded."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import anyio
import httpx
import pytest

from streamlib import Prompt, encode_all
from streamlib.cli import main
from streamlib.testing import Behaviour, echo_response, running
from streamlib_parsers import WIRE_APIS
from tests.support.terminals import terminal


def chat_output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["chat", *arguments]) == 0
    return capsys.readouterr().out.partition("\n\n")[0]


def test_serve_sends_the_responses_of_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "responses.jsonl"
    recorded = [chat_output(capsys, text, "--record", str(file)) for text in ("one", "two")]
    with terminal(sys.executable, "-m", "streamlib", "serve", str(file), "--port", "0") as server:
        server.wait_for("(")
        url = re.search(r"http://\S+", server.text)
        assert url is not None
        served = [
            chat_output(capsys, "something else", "--base-url", url.group()) for _ in recorded
        ]
    assert served == recorded
    assert recorded[0] != recorded[1]


def test_serve_rejects_a_truncated_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "response.jsonl"
    chat_output(capsys, "one", "--record", str(file))
    file.write_bytes(file.read_bytes()[:-10])
    assert main(["serve", str(file)]) == 1
    assert "starts as a streamlib recording, but" in capsys.readouterr().err


def test_serve_needs_a_fault_for_failing_requests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--failing", "1"]) == 2
    assert "needs --fault or --status" in capsys.readouterr().err


def test_serve_fails_the_first_requests_with_a_status() -> None:
    options = ("--status", "529", "--failing", "2", "--port", "0")
    with terminal(sys.executable, "-m", "streamlib", "serve", *options) as server:
        server.wait_for("(")
        url = re.search(r"http://\S+", server.text)
        assert url is not None
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
        responses = [httpx.post(f"{url.group()}/v1/messages", json=body) for _ in range(3)]
    assert [response.status_code for response in responses] == [529, 529, 200]
    assert responses[0].json()["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize("status", ["200", "600", "x"])
def test_serve_status_is_that_of_an_error(status: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--status", status])
    assert "not the HTTP status of an error: 400 to 599" in capsys.readouterr().err


def test_serve_strict_refuses_what_the_service_refuses() -> None:
    command = (sys.executable, "-m", "streamlib", "serve", "--strict", "--port", "0")
    with terminal(*command) as server:
        server.wait_for("(")
        url = re.search(r"http://\S+", server.text)
        assert url is not None
        body = {"model": "claude-opus-5", "messages": []}
        response = httpx.post(f"{url.group()}/v1/messages", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "anthropic-version: header is required"
    assert f"({', '.join(WIRE_APIS)}; " in server.text  # it named seven of nine


async def chunks_of(behaviour: Behaviour) -> list[bytes]:
    """The chunks of a response as they arrive; what came before the connection was lost."""
    chunks: list[bytes] = []
    async with running(behaviour) as url, httpx.AsyncClient() as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
        async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
            async for chunk in response.aiter_raw():
                chunks.append(chunk)
    return chunks


def test_serve_file_counts_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D2: a capture was one chunk: no fault came, and there was nothing to pause between."""
    body = encode_all("chat", echo_response(Prompt("hello"), "chat"))
    file = tmp_path / "capture.sse"
    file.write_bytes(body)
    served: list[Behaviour] = []

    async def serve(behaviour: Behaviour, port: int) -> None:
        served.append(behaviour)

    monkeypatch.setattr("streamlib.cli.serve._serve", serve)
    assert main(["serve", str(file), "--fault", "truncate@4"]) == 0
    assert main(["serve", str(file), "--pace", "0.003"]) == 0
    truncated, paced = served
    frames = [frame + b"\n\n" for frame in body.split(b"\n\n")[:-1]]
    assert b"".join(anyio.run(chunks_of, truncated)) == b"".join(frames[:4])
    assert len(anyio.run(chunks_of, paced)) > len(frames) / 2  # some may be read together
