"""Any client in front of any model: one conversation through every pair of wires, streaming and whole."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest

from streamlib import build
from streamlib_parsers.items import WireApi
from tests.support.gateways import (
    CLIENTS,
    MODELS,
    Upstream,
    answered,
    ask,
    asking,
    plain,
    read,
    rule,
    said,
    serving,
    streaming,
    turn_bytes,
)

PAIRS = list(product(CLIENTS, MODELS))
each_pair = pytest.mark.parametrize(
    ("client_wire", "model_wire"), PAIRS, ids=[f"{c}-{m}" for c, m in PAIRS]
)


@each_pair
@pytest.mark.parametrize("whole", [False, True], ids=["stream", "whole"])
async def test_what_the_model_said_is_what_the_client_reads(
    client_wire: WireApi, model_wire: WireApi, whole: bool
) -> None:
    upstream = Upstream(streaming(model_wire, *turn_bytes(model_wire)))
    async with serving(upstream, rule(model_wire)) as client:
        answer = await ask(client, client_wire, asking(), whole=whole)
    assert answer.status_code == 200, answer.text
    assert plain(read(client_wire, answer, whole=whole)) == plain(
        said(model_wire, *turn_bytes(model_wire))
    )


@each_pair
@pytest.mark.parametrize("whole", [False, True], ids=["stream", "whole"])
async def test_the_next_turn_is_sent_as_if_there_were_no_gateway(
    client_wire: WireApi, model_wire: WireApi, whole: bool
) -> None:
    """Signed thoughts, order, ids of calls and bytes of arguments: all of the second request."""
    upstream = Upstream(streaming(model_wire, *turn_bytes(model_wire)))
    async with serving(upstream, rule(model_wire)) as client:
        first = read(
            client_wire, await ask(client, client_wire, asking(), whole=whole), whole=whole
        )
        await ask(client, client_wire, answered(asking(), first))
    direct = build(
        asking(), "model-1", provider="custom", wire_api=model_wire, base_url="http://upstream"
    )
    response = said(model_wire, *turn_bytes(model_wire), origin=direct.origin)
    wanted = build(
        answered(asking(), response),
        "model-1",
        provider="custom",
        wire_api=model_wire,
        base_url="http://upstream",
    )
    wanted_body = msgspec.json.decode(wanted.body)
    assert said_so_far(upstream.body()) == said_so_far(wanted_body)


@each_pair
async def test_settings_arrive_as_if_there_were_no_gateway(
    client_wire: WireApi, model_wire: WireApi
) -> None:
    """Instructions, tools, the schema of the answer, how much to think and to write. (Responses clients must say `strict: false`.)"""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    prompt = asking(
        instructions="Be brief.",
        output_schema=schema,
        tool_choice="required",
        max_output_tokens=5000,
    )
    upstream = Upstream(streaming(model_wire, *turn_bytes(model_wire)))
    async with serving(upstream, rule(model_wire)) as client:
        await ask(client, client_wire, prompt)
    direct = build(
        prompt, "model-1", provider="custom", wire_api=model_wire, base_url="http://upstream"
    )
    assert alone(upstream.body()) == alone(msgspec.json.decode(direct.body))


def said_so_far(body: dict[str, Any]) -> Any:
    """The conversation in a request. A text that stands alone is the same in a list of one."""
    return alone(next(body[key] for key in ("messages", "input", "contents") if key in body))


def alone(value: Any) -> Any:
    if (
        isinstance(value, list)
        and len(value) == 1
        and isinstance(value[0], dict)
        and value[0].keys() <= {"type", "text"}
    ):
        return value[0].get("text", value)
    if isinstance(value, dict):
        return {key: alone(one) for key, one in value.items() if (key, one) != ("strict", False)}
    return [alone(one) for one in value] if isinstance(value, list) else value
