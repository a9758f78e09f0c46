"""A history as an object: saved to bytes and files, and loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, SupportsIndex, get_args

import msgspec

from streamlib.request.anchors import Anchor
from streamlib.request.mistakes import item_meant
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import (
    ContentPart,
    Item,
    Opaque,
    ResponseItem,
    tag,
    user,
)
from streamlib_parsers.json_text import DECODE_ERRORS
from streamlib_parsers.upward import upward

SCHEMA: Final = 1
"""Version of the saved form. Kinds that a later version adds load as `Opaque`."""


class History(list[ResponseItem]):
    """A conversation, oldest item first: a list of items that can be saved.

    Whatever takes a history takes a plain list as well. ``history += response.items`` and
    ``history.append(call.output(…))`` work as on any list, with the types that checkers expect.

    Attributes:
        anchor: what the provider counted for the newest response that `add` appended: with it,
            `Client.count` has to estimate only what is new. None without; it is not saved.
    """

    anchor: Anchor | None = None

    def __init__(self, items: Iterable[ResponseItem] = ()) -> None:
        super().__init__(_checked(items))

    def append(self, item: ResponseItem, /) -> None:
        """Appends an item."""
        super().extend(_checked((item,)))

    def extend(self, items: Iterable[ResponseItem], /) -> None:
        """Appends items: ``history.extend(response.items)``."""
        super().extend(_checked(items))

    def insert(self, index: SupportsIndex, item: ResponseItem, /) -> None:
        """Inserts an item before an index."""
        _checked((item,))
        super().insert(index, item)

    if not TYPE_CHECKING:  # whose types are those of a list

        def __setitem__(self, index: Any, value: Any) -> None:
            if isinstance(index, slice):
                super().__setitem__(index, _checked(value))
            else:
                _checked((value,))
                super().__setitem__(index, value)

        def __add__(self, items: Iterable[ResponseItem]) -> list[ResponseItem]:
            return super().__add__(_checked(items))

        def __iadd__(self, items: Iterable[ResponseItem]) -> Self:
            self.extend(items)
            return self

    def _repr_html_(self) -> str:
        shown: str = upward("display.notebook_items", "items_html")(self)
        return shown

    def _repr_markdown_(self) -> str:
        shown: str = upward("display.notebook_items", "items_markdown")(self)
        return shown

    def user(self, text: str | ContentPart = "", *parts: str | ContentPart) -> Self:
        """Appends a user message, and returns the history: ``client.text(history.user("Hi"), …)``.

        Args:
            text: the text, or the first part.
            *parts: images, documents, audio and further texts, in any order.
        """
        self.append(user(text, *parts))
        return self

    def add(self, response: Response) -> Self:
        """Appends the items of a response unchanged, complete or not, and returns the history.

        What is incomplete is left out when the next request is built, and reported.

        Raises:
            TypeError: it is no response.
        """
        if not isinstance(response, Response):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"add() takes a Response, not {response!r:.100}: "
                "write `history.user(…)` for a text, `history.append(…)` for an item, "
                "`stream.response` for a stream"
            )
        self.extend(response.items)
        self.anchor = Anchor.of(response, self) or self.anchor
        return self

    def dumps(self) -> bytes:
        """The history as JSON: `{"streamlib_history": 1, "items": […]}`.

        Raises:
            TypeError: an element is not an item, so it could not be loaded again; or it holds what
                JSON has no form for.
            ValueError: a text is no valid Unicode.
        """
        for index, item in enumerate(self):
            if not isinstance(item, ITEM_TYPES):
                raise TypeError(
                    f"items[{index}] is a {type(item).__name__}, not an item: "
                    "make it with `streamlib.user(…)` and its like"
                )
        try:
            return msgspec.json.encode({"streamlib_history": SCHEMA, "items": self})
        except UnicodeEncodeError as error:
            raise ValueError(f"the history cannot be written as JSON: {error}") from None

    @classmethod
    def loads(cls, data: bytes | str) -> Self:
        """The history that `dumps` wrote. Items of unknown kinds become `Opaque`.

        Raises:
            ValueError: the data is not a saved history.
        """
        try:
            return cls(_history_decoder().decode(data).items)
        except msgspec.ValidationError:
            # It may hold an item of a later version, which the decoder above does not know.
            return cls(_load_each(data))
        except DECODE_ERRORS as error:
            raise ValueError(f"not a saved history: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what `dumps` returns to a file.

        The file is replaced atomically: after a crash it holds the previous history. A new file
        can be read by its owner alone.

        Raises:
            OSError: the file cannot be written.
            TypeError: as in `dumps`.
            ValueError: as in `dumps`.
        """
        # Here, because together they take as long to load as a third of the client.
        import shutil
        import tempfile

        data = self.dumps() + b"\n"
        target = Path(path).resolve()
        # In the same folder, since a rename is atomic only within one file system.
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                # Before the rename: after a power failure the name could point to an empty file.
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Loads a saved history. Items of kinds that this version does not know become `Opaque`.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is not a saved history.
        """
        return cls.loads(Path(path).read_bytes())


def _checked(items: Any) -> list[ResponseItem]:
    """The items; what is none is refused where it is written, not when the history is sent."""
    if isinstance(items, Item):
        raise TypeError(
            f"a list of items is taken here, not one item, {items!r:.100}: "
            "write `history.append(…)`, or `[…]` around it"
        )
    if isinstance(items, (str, Mapping)) or not isinstance(items, Iterable):
        # One thing without a list: a text is also one of its letters, a dict of its keys.
        items = (items,)
    checked: list[Any] = list(items)
    for item in checked:
        if not isinstance(item, Item):
            raise TypeError(f"a history holds items, not {item!r:.100}: {item_meant(item)}")
    return checked


# --- loading ---

ITEM_TYPES: Final = get_args(ResponseItem)
KINDS: Final = frozenset(tag(kind) for kind in ITEM_TYPES)
"""Tags of the item kinds that this version knows."""


class _SavedHistory(msgspec.Struct):
    items: list[ResponseItem]


class _SavedItems(msgspec.Struct):
    items: list[msgspec.Raw]


class _SavedKind(msgspec.Struct):
    type: str


_RAW_HISTORY: Final = msgspec.json.Decoder(_SavedItems)
_KIND: Final = msgspec.json.Decoder(_SavedKind)


# Made by the first history that is loaded: each knows all kinds of items, which takes 1 ms.
@cache
def _history_decoder() -> msgspec.json.Decoder[_SavedHistory]:
    return msgspec.json.Decoder(_SavedHistory)


@cache
def _item_decoder() -> msgspec.json.Decoder[ResponseItem]:
    return msgspec.json.Decoder(ResponseItem)


def _load_each(data: bytes | str) -> list[ResponseItem]:
    items: list[ResponseItem] = []
    try:
        saved_items = _RAW_HISTORY.decode(data).items
    except DECODE_ERRORS as error:
        raise ValueError(f"not a saved history: {error}") from None
    for saved in saved_items:
        try:
            items.append(_load(saved))
        except DECODE_ERRORS as error:
            raise ValueError(f"not a saved history: items[{len(items)}]: {error}") from None
    return items


def _load(saved: msgspec.Raw) -> ResponseItem:
    kind = _KIND.decode(saved).type
    if kind in KINDS:
        return _item_decoder().decode(saved)
    return Opaque(kind, msgspec.json.decode(saved))
