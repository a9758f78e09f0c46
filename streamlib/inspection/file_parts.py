"""What a file is opened into: parts, each of which is a response or holds further ones."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from streamlib.inspection.document import Finding
from streamlib.recording.files import Chunk, Recording, from_body

FILE_BYTES: Final = 512 << 20
"""Maximum of bytes of a file, and of what it is opened into: twice the most that one response may
have (`Limits.response_bytes`). All of it is in memory at once."""


class FilePart(Struct, frozen=True):
    """A response, or bytes that hold some.

    Attributes:
        recording: its bytes, and what is known of their exchange.
        forms: the forms from which it was opened, the outermost first.
        truncation: what is missing of it, in words; None: nothing.
        is_recorded: whether the times of its chunks are known.
        remarks: what else its file shows of it or behind it (findings of `STORED`).
    """

    recording: Recording
    forms: tuple[str, ...] = ()
    truncation: str | None = None
    is_recorded: bool = False
    remarks: tuple[Finding, ...] = ()

    @property
    def body(self) -> bytes:
        """Its bytes."""
        return self.recording.body

    @property
    def is_nothing(self) -> bool:
        """Whether it has no bytes but blank ones, and nothing is known of an exchange."""
        body = self.body
        return not body.strip() and self.recording == from_body(body)

    def holding(self, body: bytes, truncation: str | None = None) -> FilePart:
        """A part inside this one: other bytes of the same exchange.

        Args:
            body: its bytes.
            truncation: what is missing of them.
        """
        chunks = (Chunk(0.0, body),) if body else ()
        inner = msgspec.structs.replace(self.recording, chunks=chunks)
        return FilePart(inner, self.forms, self.truncation or truncation, remarks=self.remarks)

    def of_exchange(self, **facts: Any) -> FilePart:
        """The part with further facts of its exchange: fields of a `Recording`."""
        inner = msgspec.structs.replace(self.recording, **facts)
        return msgspec.structs.replace(self, recording=inner)


class UnreadableFile(ValueError):
    """A file that cannot be opened; the message says what it is, and what to do."""


class NoResponseFound(UnreadableFile):
    """A file that was opened, and holds no response."""


def part_of(data: bytes) -> FilePart:
    """The part that a file is."""
    return FilePart(from_body(data))


def text_of(data: bytes) -> str:
    """Bytes as text from which `bytes_of` makes the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The bytes of a text, which may come from `text_of` or from escapes of JSON."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Half of a pair, written as an escape: the parsers know what to do with it.
        return text.encode("utf-8", "surrogatepass")
