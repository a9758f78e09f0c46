"""Cohere v2 chat: the events that nearly all of a stream consists of, decoded by their `type`.

`machine.py` applies them, and reads all other events as dicts. A key that holds a list in a message
holds a single object in these events: `delta.message.content` is one content.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

Index: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]


class Content(Struct, gc=False):
    """A fragment of a content. It has no type: the key shows the kind."""

    text: str | None = None
    thinking: str | None = None


class ContentMessage(Struct, gc=False):
    """`delta.message` of a `content-delta`."""

    content: Content


class ContentMessageDelta(Struct, gc=False):
    """`delta` of a `content-delta`."""

    message: ContentMessage


class PlanMessage(Struct, gc=False):
    """`delta.message` of a `tool-plan-delta`."""

    tool_plan: str


class PlanMessageDelta(Struct, gc=False):
    """`delta` of a `tool-plan-delta`."""

    message: PlanMessage


class Function(Struct, gc=False):
    """A fragment of a call's arguments."""

    arguments: str


class Call(Struct, gc=False):
    """`delta.message.tool_calls` of a `tool-call-delta`."""

    function: Function


class CallMessage(Struct, gc=False):
    """`delta.message` of a `tool-call-delta`."""

    tool_calls: Call


class CallMessageDelta(Struct, gc=False):
    """`delta` of a `tool-call-delta`."""

    message: CallMessage


class Event(Struct, gc=False, tag_field="type"):
    """Base of the frequent events."""


class ContentDelta(Event, tag="content-delta"):
    """Text of a content."""

    index: Index
    delta: ContentMessageDelta
    logprobs: dict[str, Any] | None = None


class ToolPlanDelta(Event, tag="tool-plan-delta"):
    """Text of the tool plan, of which a message has one."""

    delta: PlanMessageDelta


class ToolCallDelta(Event, tag="tool-call-delta"):
    """A fragment of a call's arguments. Calls have indexes of their own."""

    index: Index
    delta: CallMessageDelta


FrequentEvent: TypeAlias = ContentDelta | ToolCallDelta | ToolPlanDelta

decode_frequent: Final = msgspec.json.Decoder(FrequentEvent).decode

V1: Final = "this is Cohere's v1 chat API (event_type, text-generation): only v2 is read"
