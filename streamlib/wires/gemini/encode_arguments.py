"""Arguments of a call while they are buffered."""

from __future__ import annotations

from streamlib_parsers.json_text import is_json


class ArgumentBuffer:
    """The arguments of a call so far.

    The test for completeness reads all of them. It is repeated only when they have doubled since
    the last test, so that all tests together cost no more than twice the arguments.
    """

    __slots__ = ("fragments", "next_test", "size")

    def __init__(self) -> None:
        self.fragments: list[str] = []
        # Characters of all fragments.
        self.size = 0
        # The size, in characters, from which the next test is worth its cost.
        self.next_test = 1

    def add(self, fragment: str) -> None:
        """Appends a fragment."""
        self.fragments.append(fragment)
        self.size += len(fragment)

    def is_complete(self, *, settled: bool) -> bool:
        """Whether the arguments are one JSON value.

        Args:
            settled: also test arguments that came in several fragments.
        """
        if self.size < self.next_test:
            return False
        if len(self.fragments) > 1 and not settled:
            return False
        self.next_test = 2 * self.size
        return is_json("".join(self.fragments))
