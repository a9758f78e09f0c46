"""Metrics: what is counted, under which labels, and who may read it."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamlib.client.retry import NO_RETRY
from streamlib.gateway import Exchange, RouteRule
from streamlib.gateway.targets.routes import RouteTo
from streamlib.gateway.watch.metrics import MODELS, Metrics
from streamlib.gateway.watch.metrics_page import serving_metrics
from streamlib.gateway.watch.observer import Watch
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import OutputTextDelta
from tests.support.gateways import (
    Upstream,
    error_response,
    rule,
    send,
    serving,
    weather_prompt,
    weather_response,
)

OWN = "streamlib_gateway_"
ORDER = ("route", "model", "client", "status", "error", "kind", "action")


def samples(text: str) -> dict[str, float]:
    """`name{label=value,…}` without the prefix -> value; without buckets and empty labels."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.startswith(OWN) or sample.name.endswith(("_bucket", "_created")):
                continue
            pairs = [(name, sample.labels.get(name)) for name in ORDER]
            labels = ",".join(f"{name}={value}" for name, value in pairs if value)
            found[f"{sample.name.removeprefix(OWN)}{{{labels}}}"] = sample.value
    return found


def rendered(metrics: Metrics) -> dict[str, float]:
    return samples(metrics.render()[0].decode())


async def test_metrics_count_requests_tokens_and_changes() -> None:
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        await send(client, "chat", weather_prompt(seed=3))
        found = samples((await client.get("/metrics")).text)
    where = "route=*,model=custom:model-1"
    assert found[f"requests_total{{{where},status=200}}"] == 1
    assert found[f"tokens_total{{{where},kind=input}}"] == 12
    assert found[f"tokens_total{{{where},kind=output}}"] == 34
    assert found[f"first_token_seconds_count{{{where}}}"] == 1
    assert found[f"gap_seconds_count{{{where}}}"] == 12
    assert found[f"open_streams{{{where}}}"] == 0
    assert found[f"report_changes_total{{{where},action=dropped}}"] == 1
    assert not [name for name in found if "Riga" in name or "weather" in name]


async def test_metrics_count_failures_of_targets_by_kind() -> None:
    busy = error_response("chat", 529, ErrorInfo("overloaded", "busy"))
    targets = (
        RouteTo("custom:a", base_url="http://a", wire_api="chat"),
        RouteTo("custom:b", base_url="http://b", wire_api="chat"),
    )
    upstream = Upstream(busy, weather_response("chat"))
    rules = RouteRule("*", targets)
    async with serving(upstream, rules, client={"retry": NO_RETRY}) as client:
        await send(client, "chat", weather_prompt())
        await client.post("/v1/nothing")
        found = samples((await client.get("/metrics")).text)
    assert found["upstream_errors_total{route=*,model=custom:a,kind=overloaded}"] == 1
    assert found["requests_total{route=*,model=custom:b,status=200}"] == 1
    assert found["requests_total{status=404,error=not_found}"] == 1
    assert found["open_streams{route=*,model=custom:a}"] == 0


def exchange(number: int, *, output: bool, metrics: Metrics) -> None:
    """A request for a model that its client names."""
    one = Exchange(request_id=f"r{number}", wire_api="chat", route="*", requested=f"m{number}")
    watch = Watch(one, [metrics], clock=lambda: 1.0)
    watch.started()
    watch.tried(f"openrouter:m{number}", "chat", None)
    if output:
        watch.received([OutputTextDelta(0, 0, "x")])
        watch.received([OutputTextDelta(0, 0, "x")])
        watch.ended(None, ())
    else:
        error = ErrorInfo("not_found", "no such model")
        watch.failed(error)
        watch.ended(error, ())


def test_request_that_ended_leaves_nothing() -> None:
    """A gateway of weeks would keep something of each."""
    metrics = Metrics()
    exchange(1, output=True, metrics=metrics)
    exchange(2, output=False, metrics=metrics)
    assert (metrics._gaps, metrics._open) == ({}, {})


def test_unknown_models_make_no_labels() -> None:
    metrics = Metrics()
    exchange(0, output=True, metrics=metrics)
    for number in range(1, 500):
        exchange(number, output=False, metrics=metrics)
    found = rendered(metrics)
    assert {name for name in found if name.startswith("requests_total")} == {
        "requests_total{route=*,model=openrouter:m0}",
        "requests_total{route=*,model=other,error=not_found}",
    }
    assert sum(found.values()) > 998


def test_models_that_answer_to_any_name_have_bounded_labels() -> None:
    metrics = Metrics()
    for number in range(3 * MODELS):
        exchange(number, output=True, metrics=metrics)
    found = rendered(metrics)
    requests = [name for name in found if name.startswith("requests_total")]
    assert len(requests) == MODELS + 1
    assert found["requests_total{route=*,model=other}"] == 2 * MODELS
    assert (metrics._open, metrics._gaps) == ({}, {})


async def test_metrics_are_behind_the_token() -> None:
    async with serving(Upstream(), rule("chat"), token="secret-token") as client:
        without = await client.get("/metrics")
        wrong = await client.get("/metrics", headers={"authorization": "Bearer other"})
        right = await client.get("/metrics", headers={"authorization": "Bearer secret-token"})
    assert [response.status_code for response in (without, wrong, right)] == [401, 401, 200]
    assert right.headers["content-type"].startswith("text/plain; version=")


@pytest.fixture
def own_port() -> Iterator[str]:
    with serving_metrics(Metrics(), "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}"


def test_metrics_have_a_port_of_their_own(own_port: str) -> None:
    with urllib.request.urlopen(f"{own_port}/metrics", timeout=5) as response:
        assert b"streamlib_gateway_requests_total" in response.read()


@pytest.mark.parametrize(
    ("path", "host", "status"), [("/metrics", "evil.example", 403), ("/", "localhost", 404)]
)
def test_own_port_serves_this_machine_and_one_path(
    own_port: str, path: str, host: str, status: int
) -> None:
    request = urllib.request.Request(own_port + path, headers={"host": host})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=5)
    refused.value.close()
    assert refused.value.code == status
