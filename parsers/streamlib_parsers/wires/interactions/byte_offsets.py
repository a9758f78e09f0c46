"""Offsets into the UTF-8 bytes of a text, as offsets into its characters, and the reverse.

The wire counts `start_index` and `end_index` of annotations in bytes. The text may still grow: it
is kept in blocks, so that no look-up reads more than one of them.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from streamlib_parsers.items import JsonObject

BLOCK: Final = 256
"""Characters of a block."""

INDEX_KEYS: Final = ("start_index", "end_index")
"""Fields of an annotation that are offsets."""


class ByteOffsets:
    """A text that grows, with both kinds of offsets into it."""

    def __init__(self, text: str = "") -> None:
        self._blocks: list[str] = []
        self._byte_starts: list[int] = []
        """Offset in bytes of each block."""
        self._starts: list[int] = []
        """Offset in characters of each block."""
        self.size = 0
        """Bytes of the text so far."""
        self.length = 0
        """Characters of the text so far."""
        self.extend(text)

    def extend(self, text: str) -> None:
        """Appends to the text."""
        for start in range(0, len(text), BLOCK):
            block = text[start : start + BLOCK]
            self._blocks.append(block)
            self._byte_starts.append(self.size)
            self._starts.append(self.length)
            self.size += len(_encoded(block))
            self.length += len(block)

    def to_characters(self, offset: int) -> int:
        """The offset in characters; one beyond the text is its end."""
        if offset >= self.size:
            return self.length
        number = bisect_right(self._byte_starts, offset) - 1
        before = _encoded(self._blocks[number])[: offset - self._byte_starts[number]]
        # An offset inside a character becomes the offset of that character.
        return self._starts[number] + len(before.decode("utf-8", "ignore"))

    def to_bytes(self, offset: int) -> int:
        """The offset in bytes; one beyond the text is its end."""
        if offset >= self.length:
            return self.size
        number = bisect_right(self._starts, offset) - 1
        before = self._blocks[number][: offset - self._starts[number]]
        return self._byte_starts[number] + len(_encoded(before))

    def reaches(self, annotation: JsonObject, *, in_bytes: bool) -> bool:
        """Whether the text so far contains the complete range of an annotation."""
        length = self.size if in_bytes else self.length
        return all(offset <= length for offset in _offsets(annotation).values())

    def in_characters(self, annotation: JsonObject) -> JsonObject:
        """An annotation of the wire with offsets in characters."""
        converted = dict(annotation)
        for key, offset in _offsets(annotation).items():
            converted[key] = self.to_characters(offset)
        return converted

    def in_bytes(self, annotation: JsonObject) -> JsonObject:
        """An annotation with offsets in bytes, as the wire has them."""
        converted = dict(annotation)
        for key, offset in _offsets(annotation).items():
            converted[key] = self.to_bytes(offset)
        return converted


def _offsets(annotation: JsonObject) -> dict[str, int]:
    offsets: dict[str, int] = {}
    for key in INDEX_KEYS:
        value = annotation.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            offsets[key] = value
    return offsets


def _encoded(text: str) -> bytes:
    # A caller's text may hold half a surrogate pair, which counts as three bytes.
    return text.encode("utf-8", "surrogatepass")
