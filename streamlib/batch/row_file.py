"""The file of rows of a run: a line of JSON each, whenever the process was killed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path

import msgspec

from streamlib.batch.results import BatchRow


class RowFile:
    """One row for each prompt.

    Args:
        path: where it is, or will be; None: rows are not kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(BatchRow)
        self._file: FileIO | None = None

    def load(self, digests: Mapping[str, str]) -> dict[str, BatchRow]:
        """The rows that are done. The file is written anew without the others.

        Args:
            digests: id -> what tells its request from another one.

        Raises:
            ValueError: a row is of another run, or is none, or an id has two.
            OSError: the file cannot be read or written.
        """
        path = self._path
        if path is None:
            return {}
        lines: dict[str, bytes] = {}
        rows: dict[str, BatchRow] = {}
        data = path.read_bytes() if path.exists() else b""
        # What follows the last end of a line was being written when the process was killed.
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            row_id, row = self._row(line, f"{path.name}, line {number}", digests)
            if row_id in rows:
                raise ValueError(f"{path.name}, line {number}: {row_id!r} has a row already")
            if row.error is None:
                rows[row_id], lines[row_id] = row, line + b"\n"
        content = b"".join(lines.values())
        if content != data:
            temporary = path.with_name(path.name + ".part")
            temporary.write_bytes(content)
            temporary.replace(path)
        self._file = path.open("ab", buffering=0)
        return rows

    def _row(self, line: bytes, line_name: str, digests: Mapping[str, str]) -> tuple[str, BatchRow]:
        try:
            row = self._decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ValueError(f"{line_name}: this is no row: {error}") from None
        if row.id is None or row.id not in digests:
            raise ValueError(f"{line_name}: {row.id!r} is none of the prompts: give another file")
        if row.request != digests[row.id]:
            raise ValueError(
                f"{line_name}: {row.id!r} was asked with another prompt or model: give another file"
            )
        return row.id, row

    def write(self, row: BatchRow) -> None:
        """Appends a row, in one write: a killed process leaves a whole line or a part of one.

        Raises:
            OSError: it cannot be written; the file ends with the row before it.
        """
        if self._file is None:
            return
        end = self._file.seek(0, os.SEEK_END)
        left = msgspec.json.encode(row) + b"\n"
        try:
            while left:  # of a disk that is full, a part is written without an exception
                left = left[self._file.write(left) :]
        except OSError:
            # Else the next row would follow in the middle of its line.
            with suppress(OSError):
                self._file.truncate(end)
            raise

    def close(self, last: Iterable[BatchRow] = ()) -> None:
        """Closes the file, after some last rows.

        Raises:
            OSError: one of them cannot be written.
        """
        if self._file is None:
            return
        with self._file:
            for row in last:
                self.write(row)
