"""Ollama /api/chat: one line, as a struct."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from streamlib_parsers.items import JsonObject


class LineMessage(Struct, gc=False):
    """`message`. Some servers of this API name `thinking` `reasoning_content`."""

    content: str | None = None
    thinking: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[dict[str, Raw]] | None = None
    images: list[str] | None = None


class ChatLine(Struct, gc=False):
    """One line. `response` and `thinking` are on this level in /api/generate."""

    model: str | None = None
    message: LineMessage | None = None
    response: str | None = None
    thinking: str | None = None
    done: bool | None = None
    error: Any = None
    logprobs: list[JsonObject] | None = None


decode: Final = msgspec.json.Decoder(ChatLine).decode
decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
NO_MESSAGE: Final = LineMessage()
