"""The official SDKs at the gateway's edges: models, counts, compaction, the key in a query."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.test_gateway_sdks import command

pytestmark = pytest.mark.real
NAMES = {"fast", "slow", "x-ai/grok"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway before the loopback provider, with three names."""
    file: Path = tmp_path_factory.mktemp("edges") / "routes.toml"
    routes = [f'[[route]]\nmodel = "{name}"\nto = "loopback:m"\n' for name in sorted(NAMES)]
    file.write_text("\n".join(routes), encoding="utf-8")
    with command("gateway", "--port", "0", "--config", str(file)) as address:
        yield address


def test_openai_lists_and_retrieves_models(url: str) -> None:
    sdk = pytest.importorskip("openai")
    with sdk.OpenAI(base_url=f"{url}/v1", api_key="dummy", max_retries=0) as client:
        listed = {model.id: model for model in client.models.list()}
        assert set(listed) == NAMES
        for name in NAMES:
            model = client.models.retrieve(name)
            assert model == listed[name]
            assert (model.object, type(model.created)) == ("model", int)
            assert model.created > 1_700_000_000
        with pytest.raises(sdk.NotFoundError) as raised:
            client.models.retrieve("other")
    assert raised.value.code == "model_not_found"


def test_anthropic_lists_and_retrieves_models(url: str) -> None:
    sdk = pytest.importorskip("anthropic")
    with sdk.Anthropic(base_url=url, api_key="dummy", max_retries=0) as client:
        # One a page: the SDK follows the pages.
        listed = {model.id: model for model in client.models.list(limit=1)}
        assert set(listed) == NAMES
        assert client.models.retrieve("fast") == listed["fast"]
        assert listed["fast"].created_at.year > 2023
        with pytest.raises(sdk.NotFoundError):
            client.models.retrieve("other")


def test_google_lists_and_retrieves_models(url: str) -> None:
    sdk = pytest.importorskip("google.genai")
    client = sdk.Client(api_key="dummy", http_options={"base_url": url})
    listed = {model.name: model for model in client.models.list(config={"page_size": 2})}
    assert set(listed) == {f"models/{name}" for name in NAMES}
    one = client.models.get(model="fast")
    assert one.name == "models/fast"
    assert "countTokens" in one.supported_actions
    with pytest.raises(sdk.errors.ClientError) as raised:
        client.models.get(model="other")
    assert raised.value.code == 404
    client.close()


def test_cohere_lists_and_retrieves_models(url: str) -> None:
    sdk = pytest.importorskip("cohere")
    with sdk.ClientV2(base_url=url, api_key="dummy") as client:
        listed = {model.name for model in client.models.list(page_size=2).models}
        assert listed < NAMES
        assert len(listed) == 2
        assert client.models.get("fast").endpoints == ["chat"]
        with pytest.raises(sdk.NotFoundError):
            client.models.get("other")


def test_sdks_count_tokens(url: str) -> None:
    question = "How many tokens has this question?"
    openai: Any = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="dummy") as client:
        counted = client.responses.input_tokens.count(model="fast", input=question)
        assert counted.object == "response.input_tokens"
        counts = [counted.input_tokens]
    anthropic: Any = pytest.importorskip("anthropic")
    with anthropic.Anthropic(base_url=url, api_key="dummy") as client:
        messages = [{"role": "user", "content": question}]
        counts.append(client.messages.count_tokens(model="fast", messages=messages).input_tokens)
    google: Any = pytest.importorskip("google.genai")
    client = google.Client(api_key="dummy", http_options={"base_url": url})
    counts.append(client.models.count_tokens(model="fast", contents=question).total_tokens)
    client.close()
    assert all(5 < count < 40 for count in counts), counts


def test_openai_compacts_and_continues(url: str) -> None:
    openai: Any = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="dummy") as client:
        history: list[Any] = [
            {"role": "user", "content": "Remember the number 4711."},
            {"role": "assistant", "content": "I do."},
        ]
        compacted = client.responses.compact(model="fast", input=history)
        assert [item.type for item in compacted.output] == ["message", "compaction"]
        assert compacted.usage.total_tokens > 0
        # The SDK's type of messages is that of the model's; these are the user's.
        items = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
        follow = [*items, {"role": "user", "content": "Which number?"}]
        response = client.responses.create(model="fast", input=follow)
        assert response.status == "completed"


def test_key_in_the_query_serves_rest_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `curl …:generateContent?key=…` in Google's documentation."""
    monkeypatch.setenv("GATEWAY_TOKEN", "the-token-of-this-test")
    body = json.dumps({"contents": [{"parts": [{"text": "Hello"}]}]}).encode()
    path = "/v1beta/models/m:generateContent?key="
    with command("gateway", "--port", "0", "--token-env", "GATEWAY_TOKEN") as address:
        served = f"{address}{path}the-token-of-this-test"
        request = urllib.request.Request(served, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            assert json.load(response)["candidates"]
        refused = urllib.request.Request(f"{address}{path}other", body)
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(refused)
    with raised.value:  # it holds the connection
        assert raised.value.code == 401
