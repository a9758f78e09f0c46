"""A `Prompt` as a Bedrock InvokeModel request: the body of the model's own API, by the family its name tells (bedrock.py).

Claude's is a Messages body, Nova's one of Converse, Jamba's and gpt-oss's one of Chat Completions; each is made by the builder of that
wire and loses what the path or a header says here. Families that want a prompt as one text are refused: Converse knows their templates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.errors import invalid_request
from streamlib.providers.shapes import ChatShape
from streamlib.request.context import BuildContext
from streamlib.request.history import OUTPUTS, IndexedItem
from streamlib.request.json_objects import merged
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuiltRequest
from streamlib.wires.chat import build as chat
from streamlib.wires.converse import build as converse
from streamlib.wires.converse.build import EXTRA, TIERS, family_of
from streamlib.wires.messages import build as messages
from streamlib_parsers.items import JsonObject, Message, WireApi

VERSION: Final = "bedrock-2023-05-31"
TIER_HEADER: Final = "x-amzn-bedrock-service-tier"
METADATA_HEADER: Final = "x-amzn-bedrock-request-metadata"
CHAT: Final = ChatShape(stream_usage=False, custom_tools=False, content="string", user="")
"""Chat bodies as models behind InvokeModel take them."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body, and headers for what Bedrock wants there."""
    write = BODIES.get(family_of(context.target).body)
    if write is None:
        raise invalid_request(
            f"{context.target.model} has a body of its own with InvokeModel: ask it with wire_api='converse'",
            "wire_api",
        )
    return write(prompt, items, context)


def _claude(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    built = messages.build(prompt, [_with_bytes(one, context.report) for one in items], context)
    body = {key: value for key, value in built.body.items() if key not in ("model", "stream")}
    given = built.headers.get("anthropic-beta") or context.target.provider.headers.get(
        "anthropic-beta", ""
    )
    betas = [beta.strip() for beta in given.split(",") if beta.strip()]
    _mark(body, body.pop("cache_control", None))
    headers = _tier(body.pop("service_tier", None), context.report)
    return BuiltRequest(
        {"anthropic_version": VERSION, **({"anthropic_beta": betas} if betas else {}), **body},
        headers,
    )


def _nova(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    body = converse.build(prompt, items, context).body
    headers = _tier(body.pop("serviceTier", {}).get("type"), context.report)
    if metadata := body.pop("requestMetadata", None):
        headers[METADATA_HEADER] = msgspec.json.encode(metadata).decode("utf-8")
    if body.pop("outputConfig", None):
        context.report.dropped("/output_schema", "Nova takes a schema through Converse only")
    return BuiltRequest(
        {"schemaVersion": "messages-v1", **merged(body, body.pop(EXTRA, {}))}, headers
    )


def _chat(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    shaped = msgspec.structs.replace(
        context.target, provider=msgspec.structs.replace(context.target.provider, chat=CHAT)
    )
    body = chat.build(prompt, items, BuildContext(shaped, context.report)).body
    return BuiltRequest(
        {key: value for key, value in body.items() if key not in ("model", "stream")}
    )


BODIES: Final[
    dict[WireApi | None, Callable[[Prompt, list[IndexedItem], BuildContext], BuiltRequest]]
] = {
    "messages": _claude,
    "converse": _nova,
    "chat": _chat,
}


def _with_bytes(one: IndexedItem, report: Report) -> IndexedItem:
    """Bedrock fetches nothing: images and documents are sent in bytes (A21)."""
    item: Any = one.item
    field = (
        "output" if isinstance(item, OUTPUTS) else "content" if isinstance(item, Message) else ""
    )
    parts = getattr(item, field) if field else ()
    if isinstance(parts, str):
        return one
    kept = tuple(
        part for part in parts if not (getattr(part, "url", None) or getattr(part, "file_id", None))
    )
    if len(kept) == len(parts):
        return one
    report.dropped(one.path, "InvokeModel takes images and documents in bytes only (A21)")
    return IndexedItem(one.position, msgspec.structs.replace(item, **{field: kept}))


def _tier(tier: str | None, report: Report) -> dict[str, str]:
    if tier is None:
        return {}
    if tier in TIERS:
        return {TIER_HEADER: TIERS[tier]}
    report.dropped("/service_tier", f"one of {', '.join(TIERS)}")
    return {}


def _mark(body: JsonObject, marker: JsonObject | None) -> None:
    """Bedrock does not choose by itself what to cache: the ends of tools, system prompt and conversation are marked."""
    if marker is None:
        return
    last = body["messages"][-1]["content"]
    for blocks in (body.get("tools"), body.get("system"), last):
        if blocks and blocks[-1].get("type") not in ("thinking", "redacted_thinking"):
            blocks[-1] = {**blocks[-1], "cache_control": marker}
