"""The elements of a list in JSON text that grows, each as soon as it is closed.

items = JsonItems("/cities", City)
items.feed('{"cities": [{"name": "Oslo"}, {"na')     [City(name='Oslo')]
items.feed('me": "Rome"}')                           [City(name='Rome')]
items.feed("]}")                                     []
items.close()
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Generic, TypeVar

from streamlib.structured.fence import OpeningFence
from streamlib.structured.libraries import check_readable
from streamlib.structured.pointers import pointer_of, tokens_of
from streamlib.structured.schemas import WRAPPER_KEY
from streamlib.structured.values import FENCE, is_wrapper_of, typed_value
from streamlib_parsers.errors import InvalidOutput
from streamlib_parsers.json_reader import JsonReader, past_space

T = TypeVar("T")

NULL: Final = "null"


class JsonItems(Generic[T]):
    """The values at a place of one growing JSON text, complete and validated."""

    def __init__(self, pointer: str, kind: type[T]) -> None:
        """Args:
            pointer: JSON pointer of the place: of a list, whose elements are taken, or of anything
                else, which is taken itself. "" is the root; for a list that was asked for by
                `Prompt(output_schema=list[City])` both "" and ``/value`` are its place, whether it
                came in an object with the key ``value`` or alone.
            kind: class of one element, or of the value.

        Raises:
            ValueError: that is not a JSON pointer.
            TypeError: the class's library cannot read the class.
        """
        check_readable(kind)
        self._kind = kind
        self._fence = OpeningFence()
        self._reader = _ItemReader(tokens_of(pointer), kind)
        self._closed: deque[tuple[int | None, str]] = deque()
        """Texts of values that are closed and not given yet, with their indexes in the list."""

    @property
    def is_behind(self) -> bool:
        """Whether the next `feed` raises, also without more text: a value before it was wrong."""
        return bool(self._closed)

    def feed(self, text: str) -> list[T]:
        """Reads the next fragment.

        Returns:
            The values that it closes, without nulls.

        Raises:
            InvalidOutput: a value is not of the class; `path` names what failed. Values before it
                are returned first, however the text is split: then the next call raises.
        """
        self._reader.read(self._fence.feed(text))
        self._closed.extend(self._reader.take_closed())
        values: list[T] = []
        while self._closed:
            index, item = self._closed[0]
            try:
                added = self._values(index, item)
            except InvalidOutput:
                if values:
                    break
                self._closed.popleft()
                raise
            self._closed.popleft()
            values += added
        return values

    def close(self) -> list[T]:
        """Ends the text.

        Returns:
            A number that is all of the text, which nothing else ends.

        Raises:
            InvalidOutput: the text is not one JSON value, or nothing is at the pointer.
        """
        values = self.feed(" ")
        if not self._reader.is_complete:
            raise InvalidOutput("not JSON: the text ends before the value, or breaks off")
        if self._reader.text_behind() not in ("", FENCE):
            raise InvalidOutput("not JSON: text follows the value")
        if not self._reader.is_found:
            raise InvalidOutput("the JSON has no value there", self._pointer)
        return values

    @property
    def _pointer(self) -> str:
        return pointer_of(self._reader.tokens)

    def _values(self, index: int | None, text: str) -> list[T]:
        """The value of a text; none for a null where the class takes none and no list stands."""
        try:
            return [typed_value(text, self._kind)]
        except InvalidOutput as error:
            if index is None and text.strip() == NULL:
                return []
            path = self._pointer
            if index is not None:
                path += pointer_of([index])
            raise InvalidOutput(error.problem, path + error.path, text) from error


class _ItemReader(JsonReader):
    """Finds the values at a place, and keeps the text of the one that is open.

    It builds nothing: the values are decoded from their text.
    """

    def __init__(self, tokens: tuple[str, ...], kind: Any) -> None:
        super().__init__()
        self.tokens = tokens
        """The keys and indexes that lead to the values."""
        self.is_found = False
        """Whether anything was at the place."""
        self.is_complete = False
        """Whether the root is closed."""
        self._kind = kind
        self._closed: list[tuple[int | None, str]] = []
        """Texts of closed values, with their indexes in the list; not taken yet."""
        self._on_way = 0
        """How many open containers lead to the values, the list at the place included."""
        self._enters = False
        """Whether the value that begins leads to the values, if it is a container."""
        self._counts: list[int] = []
        """How many values each open container has so far."""
        self._start: int | None = None
        """Where the open value begins in the new text, 0 if it began before; None without one."""
        self._item_index: int | None = None
        """Its index in the list; None if it is not an element of one."""
        self._item_depth = 0
        """How many containers are open around it."""
        self._texts: list[str] = []
        """Its text in earlier fragments."""
        self._behind: list[str] = []
        """The text after the root: a closing fence, or what should not be there."""

    def take_closed(self) -> list[tuple[int | None, str]]:
        """The values that were closed since the last call."""
        closed = self._closed
        if closed:
            self._closed = []
        return closed

    def text_behind(self) -> str:
        """What is after the root, without white space around it."""
        return "".join(self._behind).strip()

    def read(self, text: str) -> None:
        index = 0
        while index < len(text):
            index = self._step(text, index)
            if self._step == self._after_value:
                self._note_end(text, index)
        if self._start is not None:
            self._texts.append(text[self._start :])
            self._start = 0

    def _note_end(self, text: str, index: int) -> None:
        """After a value, a comma is missing or a container ends; perhaps our value has ended."""
        if self._start is not None and len(self._stack) == self._item_depth:
            self._texts.append(text[self._start : index])
            self._closed.append((self._item_index, "".join(self._texts)))
            self._texts = []
            self._start = None
        if not self._stack:
            self.is_complete = True

    def _value(self, text: str, index: int) -> int:
        index = past_space(text, index)
        if index == len(text):
            return index
        self._note_start(text, index)
        return super()._value(text, index)

    def _after_value(self, text: str, index: int) -> int:
        if self._stack:
            return super()._after_value(text, index)
        self._behind.append(text[index:])
        return len(text)

    def _note_start(self, text: str, index: int) -> None:
        depth = len(self._stack)
        self._enters = False
        if depth:
            self._counts[-1] += 1
        self._note_wrapper(text[index], depth)
        if self._start is not None or depth != self._on_way:
            return  # inside a value, or beside the way
        if depth > len(self.tokens):  # an element of the list at the place
            self._start_item(index, self._counts[-1] - 1)
        elif depth == 0 or self._key_here() == self.tokens[depth - 1]:
            is_place = depth == len(self.tokens)
            self._enters = not is_place or text[index] == "["
            if is_place:
                self.is_found = True
            if not self._enters:
                self._start_item(index, None)

    def _note_wrapper(self, first: str, depth: int) -> None:
        """Finds a list at both of its places: at the root, and in an object around it."""
        if depth == 0 and first == "[" and self.tokens == (WRAPPER_KEY,):
            self.tokens = ()
        elif depth == 1 and self.tokens == () and self._start is not None:
            is_first = isinstance(self._stack[0], dict) and self._counts[0] == 1
            if is_first and self._key == WRAPPER_KEY and is_wrapper_of(self._kind):
                self.tokens = (WRAPPER_KEY,)
                self._start, self._texts = None, []
                self._on_way = 1

    def _key_here(self) -> str:
        """Key or index of the value that begins."""
        if isinstance(self._stack[-1], dict):
            return self._key
        return str(self._counts[-1] - 1)

    def _start_item(self, index: int, item_index: int | None) -> None:
        self._start = index
        self._item_index = item_index
        self._item_depth = len(self._stack)

    # --- nothing is built ---

    def _begin_container(self, container: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
        self._counts.append(0)
        if self._enters:
            self._on_way += 1
            self._enters = False
        return container

    def _end_container(self) -> None:
        super()._end_container()
        self._counts.pop()
        self._on_way = min(self._on_way, len(self._stack))

    def _attach(self, value: Any) -> tuple[Any, Any]:
        return None, None

    def _begin_string(self) -> None:
        """Only keys matter."""

    def _end_string(self) -> None:
        """Only keys matter."""
