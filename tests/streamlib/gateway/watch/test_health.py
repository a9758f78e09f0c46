"""Probes need no token, and name the reasons against new requests."""

from __future__ import annotations

from pathlib import Path

import httpx

from streamlib.gateway import ExchangeFiles, Gateway, RouteRule, RouteTable, gateway
from tests.support.gateways import Upstream, rule, serving


async def test_probes_are_open_and_nothing_else_is() -> None:
    async with serving(Upstream(), rule("chat"), token="secret-token") as client:
        health = await client.get("/health")
        ready = await client.get("/ready")
        models = await client.get("/v1/models")
        near = await client.get("/health/x")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": []})
    assert (models.status_code, near.status_code) == (401, 401)


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_open_paths_take_no_request_of_a_stranger(tmp_path: Path) -> None:
    """One to a model's path, in all but its path: it would be logged, counted and recorded."""
    paths = ("/", "/health", "/ready", "/live")
    files = ExchangeFiles(tmp_path)
    async with serving(Upstream(), rule("chat"), token="secret-token", record=files) as client:
        statuses = [(await client.post(path, json={})).status_code for path in paths]
        login = await client.post("/login", data={"token": "other"})
    assert statuses == [401] * len(paths)
    assert "That is not the token" in login.text
    assert not files_in(tmp_path)


async def test_ready_names_each_reason() -> None:
    running = Gateway(RouteTable([RouteRule("*", "custom:m", base_url="http://x")]))
    transport = httpx.ASGITransport(gateway(running))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        before = await client.get("/ready")
        async with running:
            during = await client.get("/ready")
            running.readiness.block("draining", "the gateway is stopping")
            draining = await client.get("/ready")
            alive = await client.get("/health")
        after = await client.get("/ready")
    statuses = [response.status_code for response in (before, during, draining, after)]
    assert statuses == [503, 200, 503, 503]
    assert before.json()["reasons"] == ["the gateway has not started"]
    assert draining.json()["reasons"] == ["the gateway is stopping"]
    assert alive.status_code == 200
