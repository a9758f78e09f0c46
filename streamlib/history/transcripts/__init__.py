"""Conversations of other libraries, pages, traces and coding agents: read, and written.

    transcript = load_transcript("session.jsonl")
    response = await client.respond(Prompt(transcript.items, …), model)
    dump_transcript(transcript, "chat")

Each format is rewritten as messages of a wire, or of a page, and their decoders read it: there is
no second reader of any message.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from streamlib.history.transcripts.draft import (
    Reader,
    TranscriptDraft,
    finish,
    leading_instructions,
)
from streamlib.history.transcripts.guess import is_of_any_wire, plain_format
from streamlib.history.transcripts.source import TranscriptSource, read_source
from streamlib.history.transcripts.transcript import (
    FORMATS,
    DumpedTranscript,
    Transcript,
    TranscriptFormat,
    WrittenFormat,
)
from streamlib.request.conversation import History
from streamlib.request.history import IndexedItem
from streamlib.request.report import Report
from streamlib_parsers.items import JsonObject, Message, Origin, ResponseItem, Text
from streamlib_parsers.stream_error import StreamError

__all__ = ["DumpedTranscript", "Transcript", "dump_transcript", "load_transcript"]

PACKAGE: Final = "streamlib.history.transcripts"

READERS: Final[dict[TranscriptFormat, tuple[str, str]]] = {
    "chat": ("wire_lists", "read_chat"),
    "messages": ("wire_lists", "read_messages"),
    "responses": ("wire_lists", "read_responses"),
    "vercel": ("vercel", "read_vercel"),
    "otel": ("otel", "read_otel"),
    "langchain": ("langchain", "read_langchain"),
    "claude-code": ("claude_code", "read_claude_code"),
    "codex": ("codex", "read_codex"),
    "opencode": ("opencode", "read_opencode"),
    "gemini-cli": ("gemini_cli", "read_gemini_cli"),
}
"""Format -> module and function that read it; a module is loaded when its format is met."""

WRITERS: Final[dict[WrittenFormat, tuple[str, str]]] = {
    "chat": ("wire_lists", "write_chat"),
    "messages": ("wire_lists", "write_messages"),
    "responses": ("wire_lists", "write_responses"),
    "vercel": ("vercel", "write_vercel"),
    "otel": ("otel", "write_otel"),
    "langchain": ("langchain_write", "write_langchain"),
    "claude-code": ("claude_code_write", "write_claude_code"),
}
"""Format -> module and function that write it."""

Writer = Callable[[list[IndexedItem], Report], list[JsonObject]]

BESIDE: Final = ("messages", "claude-code")
"""Formats whose list has no place for instructions; in others they are its first message."""


def load_transcript(
    value: TranscriptSource,
    format: TranscriptFormat | None = None,  # noqa: A002  # the word that callers use
    *,
    origin: Origin | None = None,
) -> Transcript:
    """The conversation in a file, in bytes, or in the objects of another library.

    Branches, rewinds, rollbacks and compactions are replayed: the items are what the next request
    would send. What was left out is in `Transcript.report`.

    Args:
        value: a path, the bytes of a file, or Python objects: lists, dicts, pydantic models.
        format: None: recognized, where it is plain.
        origin: where signed and encrypted state was made, which goes back only there. The default
            is the provider that the transcript names, else Anthropic, OpenAI or Google, whose
            formats these are.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not of this format, ends in the middle, has an id twice or holds two
            sessions; the error names the place. Or no format is plain.
        TypeError: `value` is none of these.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"no format {format!r}: one of {', '.join(FORMATS)}")
    source = read_source(value)
    plain = plain_format(source)
    known = format or plain
    if isinstance(value, DumpedTranscript):
        known = format or value.format
    if known is None:
        if not is_of_any_wire(source):
            raise ValueError(f"the format is not plain: name it, one of {', '.join(FORMATS)}")
        known = "chat"
    if plain is not None and plain != known:
        raise ValueError(f"this is {plain}, not {known}")
    draft = TranscriptDraft(origin)
    read: Reader = _loaded(*READERS[known])
    try:
        read(source, draft)
        finish(draft)
    except StreamError as error:
        raise ValueError(f"not {known}: {error.message}") from None
    except ValueError as error:
        raise ValueError(f"not {known}: {error}") from None
    except RecursionError:
        raise ValueError(f"not {known}: nested too deeply") from None
    instructions = draft.instructions
    if isinstance(value, DumpedTranscript) and instructions is None:
        instructions = value.instructions
    return Transcript(
        items=History(draft.items),
        instructions=instructions,
        report=draft.report.changes,
        format=known,
    )


def dump_transcript(
    transcript: Transcript | Sequence[ResponseItem],
    format: WrittenFormat,  # noqa: A002  # the word that callers use
    *,
    instructions: str | None = None,
) -> DumpedTranscript:
    """A conversation in another format, as plain JSON objects.

    Nothing is repaired, which happens when items are sent. Incomplete calls are left out, except
    for `vercel`.

    Args:
        transcript: what `load_transcript` returned, or items.
        format: what is written.
        instructions: the system prompt; None: that of the transcript.

    Raises:
        TypeError: the items hold what is none.
        ValueError: the format is not written, or an item cannot be written as JSON.
    """
    if format not in WRITERS:
        raise ValueError(f"the format {format!r} is not written: one of {', '.join(WRITERS)}")
    items: Sequence[ResponseItem]
    if isinstance(transcript, Transcript):
        items = transcript.items
        if instructions is None:
            instructions = transcript.instructions
    else:
        items = History(transcript)
    entries = [IndexedItem(index, item) for index, item in enumerate(items)]
    if instructions is None:
        instructions = leading_instructions(items)
        if instructions is not None:
            entries.pop(0)
    report = Report()
    if instructions is not None and format not in BESIDE:
        entries.insert(0, IndexedItem(-1, Message("system", (Text(instructions),))))
    elif instructions is not None and format == "claude-code":
        report.dropped("/instructions", "sessions of Claude Code hold no system prompt")
    write: Writer = _loaded(*WRITERS[format])
    try:
        dumped = DumpedTranscript(write(entries, report))
    except (UnicodeError, RecursionError, TypeError) as error:
        # TypeError: a part of an unknown kind goes back as it came, whatever is in it.
        raise ValueError(f"an item cannot be written as JSON: {error}") from None
    dumped.report, dumped.format, dumped.instructions = report.changes, format, None
    if format in BESIDE:
        dumped.instructions = instructions
    return dumped


def _loaded(module: str, function: str) -> Any:
    return getattr(importlib.import_module(f"{PACKAGE}.{module}"), function)
