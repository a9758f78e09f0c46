"""A history as an object: saved to bytes and files, loaded, and pruned of old screenshots."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final, Self, get_args

import msgspec

from streamlib.request.history import content_parts
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import (
    ContentPart,
    Image,
    Message,
    Opaque,
    ResponseItem,
    Text,
    tag,
    user,
)
from streamlib_parsers.upward import upward

SCHEMA: Final = 1
"""Version of the saved form. Kinds that a later version adds load as `Opaque`."""

IMAGE_LEFT_OUT: Final = "[an earlier image was left out]"


class History(list[ResponseItem]):
    """A conversation, oldest item first: a list of items that can be saved.

    Whatever takes a history takes a plain list as well. ``history += response.items`` and
    ``history.append(call.output(…))`` work as on any list, with the types that checkers expect.
    """

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
        return self

    def keep_last_images(self, keep: int) -> Self:
        """The history with its last `keep` images; a line of text stands for each other.

        For agents that look at screenshots. It rewrites earlier items, so prompt caches miss.
        """
        surplus = sum(_image_count(item) for item in self) - keep
        pruned = type(self)()
        for item in self:
            drop = max(min(surplus, _image_count(item)), 0)
            surplus -= drop
            pruned.append(_without_images(item, drop) if drop else item)
        return pruned

    def dumps(self) -> bytes:
        """The history as JSON: `{"streamlib_history": 1, "items": […]}`.

        Raises:
            TypeError: an element is not an item, so it could not be loaded again.
        """
        for index, item in enumerate(self):
            if not isinstance(item, ITEM_TYPES):
                raise TypeError(
                    f"items[{index}] is a {type(item).__name__}, not an item: "
                    "make it with `streamlib.user(…)` and its like"
                )
        return msgspec.json.encode({"streamlib_history": SCHEMA, "items": self})

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
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"not a saved history: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what `dumps` returns to a file.

        The file is replaced atomically: after a crash it holds the previous history. A new file
        can be read by its owner alone.

        Raises:
            OSError: the file cannot be written.
            TypeError: an element is not an item.
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
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not a saved history: {error}") from None
    for saved in saved_items:
        try:
            items.append(_load(saved))
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"not a saved history: items[{len(items)}]: {error}") from None
    return items


def _load(saved: msgspec.Raw) -> ResponseItem:
    kind = _KIND.decode(saved).type
    if kind in KINDS:
        return _item_decoder().decode(saved)
    return Opaque(kind, msgspec.json.decode(saved))


# --- screenshots ---


def _image_count(item: ResponseItem) -> int:
    return sum(isinstance(part, Image) for part in content_parts(item))


def _without_images(item: ResponseItem, count: int) -> ResponseItem:
    """The item with its first `count` images replaced by text."""
    parts: list[ContentPart] = []
    for part in content_parts(item):
        if isinstance(part, Image) and count > 0:
            count -= 1
            parts.append(Text(IMAGE_LEFT_OUT))
        else:
            parts.append(part)
    if isinstance(item, Message):
        return msgspec.structs.replace(item, content=tuple(parts))
    return msgspec.structs.replace(item, output=tuple(parts))
