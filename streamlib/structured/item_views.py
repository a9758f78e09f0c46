"""The views of one item: its JSON, plain and as objects of classes, while it grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlib.structured.fence import OpeningFence
from streamlib.structured.typed_json import TypedJson
from streamlib_parsers.items import FunctionCall, Message, ResponseItem, ServerToolCall
from streamlib_parsers.json_fragments import IncrementalJson


class ItemViews:
    """The views that were asked for, all fed with the same text."""

    def __init__(self, item: Callable[[], ResponseItem]) -> None:
        """Args:
            item: Returns the item as far as it was received, for the text that a new view has
                missed.

        Raises:
            LookupError: it has neither arguments nor text.
        """
        self._item = item
        self._plain: IncrementalJson | None = None
        self._fence = OpeningFence()
        """Removes the Markdown fence around the text that `_plain` reads."""
        self._typed: list[tuple[Any, TypedJson[Any]]] = []
        """Class and view. A list, since not every type can be hashed; few items have two."""
        self._text()

    def feed(self, text: str) -> None:
        """Appends a fragment."""
        if self._plain is not None:
            self._plain.feed(self._fence.feed(text))
        for _, view in self._typed:
            view.feed(text)

    def plain(self) -> dict[str, Any]:
        """The JSON object, as far as it is certain; empty for anything else."""
        if self._plain is None:
            self._plain = IncrementalJson()
            self._plain.feed(self._fence.feed(self._text()))
        value = self._plain.partial()
        if not isinstance(value, dict):
            return {}
        return value

    def typed(self, kind: Any) -> Any:
        """The partial object of a class."""
        for known, view in self._typed:
            if known is kind or known == kind:
                return view.partial()
        added: TypedJson[Any] = TypedJson(kind)
        added.feed(self._text())
        self._typed.append((kind, added))
        return added.partial()

    def _text(self) -> str:
        item = self._item()
        if isinstance(item, (FunctionCall, ServerToolCall)):
            return item.arguments
        if isinstance(item, Message):
            return item.text
        raise LookupError(f"a {type(item).__name__} has neither arguments nor text")
