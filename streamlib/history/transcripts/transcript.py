"""What `load_transcript` returns, and what `dump_transcript` does."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from streamlib.request.conversation import History
from streamlib.request.report import Change
from streamlib_parsers.items import JsonObject

TranscriptFormat: TypeAlias = Literal[
    "chat",
    "messages",
    "responses",
    "vercel",
    "otel",
    "langchain",
    "claude-code",
    "codex",
    "opencode",
    "gemini-cli",
]
"""The formats of conversations."""

WrittenFormat: TypeAlias = Literal[
    "chat", "messages", "responses", "vercel", "otel", "langchain", "claude-code"
]
"""Those that are written, too."""

FORMATS: Final[tuple[TranscriptFormat, ...]] = get_args(TranscriptFormat)


class Transcript(Struct, frozen=True, kw_only=True):
    """A conversation that something else kept. Made by `load_transcript`.

    Attributes:
        items: the conversation as the next request would send it, oldest first.
        instructions: the system prompt; None where the format has none, or the conversation.
        report: what was left out or changed. A path is a JSON pointer into the value, in files of
            lines ``line 12`` and what follows it.
        format: the format that was read.
    """

    items: History
    instructions: str | None = None
    report: list[Change]
    format: TranscriptFormat


class DumpedTranscript(list[JsonObject]):
    """A conversation as messages, or entries, of another format. Made by `dump_transcript`.

    Attributes:
        report: what the format has no place for, as a `Change` for each: `/input/3` is the item of
            that index.
        instructions: the system prompt where it stands beside the list: ``system=`` of Messages,
            nowhere in Claude Code's files. None where the list holds it.
        format: the format.
    """

    report: list[Change]
    instructions: str | None
    format: WrittenFormat

    def dumps(self) -> bytes:
        """The bytes of a file: JSON, with instructions a body; lines of JSON for Claude Code."""
        if self.format == "claude-code":
            return b"".join([msgspec.json.encode(entry) + b"\n" for entry in self])
        if self.instructions is not None and self.format == "messages":
            return msgspec.json.encode({"system": self.instructions, "messages": self})
        return msgspec.json.encode(self)
