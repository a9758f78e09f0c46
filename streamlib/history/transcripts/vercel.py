"""UI messages of the AI SDK, 6 and 7: the room of web pages reads and writes them."""

from __future__ import annotations

import importlib
from typing import Any

from streamlib.history.transcripts.draft import TranscriptDraft
from streamlib.history.transcripts.source import JsonSource
from streamlib.request.history import IndexedItem
from streamlib.request.report import Report
from streamlib_parsers.items import JsonObject


def web_transcript() -> Any:
    """The module of the web room that reads and writes UI messages."""
    # by name at run time: the room is above this one, and most transcripts are no pages'
    return importlib.import_module("streamlib.web.vercel.transcript")


def read_vercel(source: JsonSource, draft: TranscriptDraft) -> None:
    """Reads UI messages, of a list or of the body that a page sent."""
    entries = source.entries("messages")
    draft.add(web_transcript().read_transcript([entry.value for entry in entries], draft.report))


def write_vercel(entries: list[IndexedItem], report: Report) -> list[JsonObject]:
    """The UI messages of items."""
    messages: list[JsonObject] = web_transcript().write_transcript(entries, report)
    return messages
