"""A `Prompt` as a Bedrock InvokeModel request: the body of the model's own API.

The family of the model (`streamlib/wires/bedrock.py`) decides: Claude takes a Messages body, Nova
one of Converse, Jamba and gpt-oss one of Chat Completions. The builder of that wire makes the body;
fields that Invoke has in the path or in a header are removed. Families that take a prompt as one
text are refused: Converse knows their templates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from streamlib.providers.shapes import ChatShape
from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.fit_tools import without_natives_of_others
from streamlib.request.headers import joined_lists
from streamlib.request.history import OUTPUTS, IndexedItem
from streamlib.request.json_objects import merged
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib.wires.bedrock import family_of
from streamlib.wires.chat import build as chat
from streamlib.wires.claude_betas import report_lost_betas
from streamlib.wires.converse import build as converse
from streamlib.wires.converse.settings import MODEL_FIELDS, SERVICE_TIERS
from streamlib.wires.messages import build as messages
from streamlib.wires.messages.build_content import REASONING_BLOCKS
from streamlib_parsers.items import ContentPart, JsonObject, Media, Message, ResponseItem
from streamlib_parsers.stream_error import invalid_request

ANTHROPIC_VERSION: Final = "bedrock-2023-05-31"
TIER_HEADER: Final = "x-amzn-bedrock-service-tier"
METADATA_HEADER: Final = "x-amzn-bedrock-request-metadata"
CHAT: Final = ChatShape(stream_usage=False, custom_tools=False, content="string", user="")
"""Chat bodies as models behind InvokeModel take them."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body, and headers for what Bedrock wants there."""
    built = _build(prompt, items, context)
    return BuiltRequest(built.body, built.headers, headers_in_body=(ANTHROPIC_BETA,))


def _build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    match family_of(context.target).body:
        case "messages":
            return _claude(prompt, items, context)
        case "converse":
            return _nova(prompt, items, context)
        case "chat":
            return _chat(prompt, items, context)
        case _:
            raise invalid_request(
                f"{context.target.model} has a body of its own with InvokeModel: "
                "use it with wire_api='converse'",
                "wire_api",
            )


# --- one function per body ---


def _claude(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    report = context.report
    sendable = [_without_addresses(entry, report) for entry in items]
    prompt = without_natives_of_others(prompt, "messages", report)
    built = messages.build(prompt, sendable, context)
    body: JsonObject = {"anthropic_version": ANTHROPIC_VERSION}
    betas = joined_lists(built.headers.get(ANTHROPIC_BETA, ""))
    if betas:
        body["anthropic_beta"] = betas
    body.update(built.body)
    # the path names the model, and whether a stream is wanted
    del body["model"], body["stream"]
    marker = body.pop("cache_control", None)
    if marker is not None:
        _mark_cache(body, marker)
    return BuiltRequest(body, _tier_header(body.pop("service_tier", None), report))


def _nova(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    report = context.report
    body = converse.build(prompt, items, context).body
    service_tier = body.pop("serviceTier", {})
    headers = _tier_header(service_tier.get("type"), report)
    metadata = body.pop("requestMetadata", None)
    if metadata:
        headers[METADATA_HEADER] = msgspec.json.encode(metadata).decode("utf-8")
    # a restriction that is lost is reported
    if body.pop("outputConfig", None):
        report.dropped("/output_schema", "Nova takes a schema through Converse only")
    # what Converse passes on to the model is beside Converse's own keys here
    model_fields = body.pop(MODEL_FIELDS, {})
    return BuiltRequest({"schemaVersion": "messages-v1", **merged(body, model_fields)}, headers)


def _chat(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    report_lost_betas(prompt, context)
    # the Chat builder reads its dialect of Chat from the provider
    provider = msgspec.structs.replace(context.target.provider, chat=CHAT)
    target = msgspec.structs.replace(context.target, provider=provider)
    prompt = without_natives_of_others(prompt, "chat", context.report)
    body = chat.build(prompt, items, BuildContext(target, context.report)).body
    # the path names the model, and whether a stream is wanted
    for key in ("model", "stream"):
        body.pop(key, None)
    return BuiltRequest(body)


# --- what differs from the wire of the body ---


def _without_addresses(entry: IndexedItem, report: Report) -> IndexedItem:
    """The item with media in bytes only: Bedrock fetches nothing."""  # rule A21
    item = entry.item
    replaced: ResponseItem
    if isinstance(item, Message):
        parts = _parts_with_bytes(item.content)
        if len(parts) == len(item.content):
            return entry
        replaced = msgspec.structs.replace(item, content=parts)
    elif isinstance(item, OUTPUTS) and not isinstance(item.output, str):
        parts = _parts_with_bytes(item.output)
        if len(parts) == len(item.output):
            return entry
        replaced = msgspec.structs.replace(item, output=parts)
    else:
        return entry
    report.dropped(entry.path, "InvokeModel takes images and documents in bytes only")
    return IndexedItem(entry.position, replaced)


def _parts_with_bytes(parts: Iterable[ContentPart]) -> tuple[ContentPart, ...]:
    retained: list[ContentPart] = []
    for part in parts:
        if not isinstance(part, Media) or not (part.url or part.file_id):
            retained.append(part)
    return tuple(retained)


def _tier_header(tier: str | None, report: Report) -> dict[str, str]:
    if tier is None:
        return {}
    if tier in SERVICE_TIERS:
        return {TIER_HEADER: SERVICE_TIERS[tier]}
    report.dropped("/service_tier", f"one of {', '.join(SERVICE_TIERS)}")
    return {}


def _mark_cache(body: JsonObject, marker: JsonObject) -> None:
    """Marks the ends of tools, system prompt and conversation.

    Unlike Anthropic's API, Bedrock does not choose by itself what to cache.
    """
    last_turn = body["messages"][-1]["content"]
    for blocks in (body.get("tools"), body.get("system"), last_turn):
        # a marker on reasoning is refused (A23)
        if blocks and blocks[-1].get("type") not in REASONING_BLOCKS:
            # a copy: a hosted tool or a block may be an object of the caller's
            blocks[-1] = {**blocks[-1], "cache_control": marker}
