"""A history as an object that can be saved to a file; `history` has what needs no files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from streamlib.request.history import dump_history, load_history
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import ContentPart, ResponseItem, user


class History(list[ResponseItem]):
    """A conversation, oldest item first: a list of items that can be saved.

    Whatever takes a history takes a plain list as well. ``history += response.items`` and
    ``history.append(call.output(…))`` work as on any list, with the types that checkers expect.
    """

    def _repr_html_(self) -> str:
        from streamlib_parsers.notebook_items import items_html

        return items_html(self)

    def _repr_markdown_(self) -> str:
        from streamlib_parsers.notebook_items import items_markdown

        return items_markdown(self)

    def user(self, text: str = "", *parts: ContentPart) -> Self:
        """Appends a user message, and returns the history: ``client.text(history.user("Hi"), …)``.

        Args:
            text: the text.
            *parts: images, documents and audio after it.
        """
        self.append(user(text, *parts))
        return self

    def add(self, response: Response) -> Self:
        """Appends the items of a response unchanged, complete or not, and returns the history.

        What is incomplete is left out when the next request is built, and reported.
        """
        self.extend(response.items)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what `dump_history` returns to a file.

        The file is replaced atomically: after a crash it holds the previous history. A new file
        can be read by its owner alone.

        Raises:
            OSError: the file cannot be written.
            TypeError: an element is not an item.
        """
        # Here, because together they take as long to load as a third of the client.
        import shutil
        import tempfile

        data = dump_history(self) + b"\n"
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
        return cls(load_history(Path(path).read_bytes()))
