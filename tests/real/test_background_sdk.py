"""The official OpenAI SDK and responses in the background of the gateway."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.test_gateway_sdks import command, route

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The SDK at a gateway with a log, before a slow model on two wires."""
    openai = pytest.importorskip("openai")
    folder = tmp_path_factory.mktemp("background")
    routes = Path(folder) / "routes.toml"
    with command("serve", "--port", "0", "--pace", "0.02") as model:
        text = [route(wire, wire, model) for wire in ("messages", "responses")]
        routes.write_text("\n".join(text), encoding="utf-8")
        options = ("--config", str(routes), "--log", f"sqlite:///{folder}/logs.db")
        with (
            command("gateway", "--port", "0", *options) as url,
            openai.OpenAI(base_url=f"{url}/v1", api_key="dummy", max_retries=0) as client,
        ):
            yield client


@pytest.mark.parametrize("model", ["messages", "responses"])
def test_openai_polls_a_response_in_the_background(sdk: Any, model: str) -> None:
    response = sdk.responses.create(model=model, input="Hello", background=True)
    assert (response.status, response.background) == ("queued", True)
    until = time.monotonic() + 20
    while response.status in ("queued", "in_progress") and time.monotonic() < until:
        time.sleep(0.05)
        response = sdk.responses.retrieve(response.id)
    assert response.status == "completed"
    assert response.output_text.startswith("You said: Hello")


@pytest.mark.parametrize("model", ["messages", "responses"])
def test_openai_resumes_a_stream_in_the_background(sdk: Any, model: str) -> None:
    stream = sdk.responses.create(model=model, input="Hello", background=True, stream=True)
    first = [next(stream) for _ in range(8)]
    stream.close()  # the client goes, the response goes on
    response_id = first[0].response.id
    rest = list(
        sdk.responses.retrieve(response_id, stream=True, starting_after=first[-1].sequence_number)
    )
    events = first + rest
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == events[-1].response.output_text
    whole = list(sdk.responses.retrieve(response_id, stream=True))
    assert [event.model_dump() for event in whole] == [event.model_dump() for event in events]
    # Its helper takes up a stream too, from its events since the start.
    with sdk.responses.stream(
        response_id=response_id, starting_after=first[-1].sequence_number
    ) as helper:
        assert helper.get_final_response().output_text == "".join(deltas)


def test_openai_cancels_and_deletes_a_response(sdk: Any) -> None:
    import openai

    response = sdk.responses.create(model="messages", input="word " * 500, background=True)
    cancelled = sdk.responses.cancel(response.id)
    assert (cancelled.id, cancelled.status) == (response.id, "cancelled")
    assert sdk.responses.cancel(response.id).status == "cancelled"
    with pytest.raises(openai.APIError, match="stopped: user"):
        list(sdk.responses.retrieve(response.id, stream=True))
    sdk.responses.delete(response.id)
    other = sdk.with_options(api_key="another")
    for client in (sdk, other):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(response.id)
    kept = sdk.responses.create(model="messages", input="Hello", background=True)
    with pytest.raises(openai.NotFoundError):
        other.responses.retrieve(kept.id)
    with pytest.raises(openai.BadRequestError, match="background requires store"):
        sdk.responses.create(model="messages", input="Hello", background=True, store=False)
