"""The file of rows of a run: a line of JSON each, whenever the process was killed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from streamlib.batch.results import BatchRow


class RowFile:
    """One row for each prompt.

    Args:
        path: where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(BatchRow)
        self._file: BinaryIO | None = None

    def load(self, digests: Mapping[str, str]) -> dict[str, BatchRow]:
        """The rows that are done. The file is written anew without the others.

        Args:
            digests: id -> what tells its request from another one.

        Raises:
            ValueError: a row is of another run, or is none, or an id has two.
            OSError: the file cannot be read or written.
        """
        lines: dict[str, bytes] = {}
        rows: dict[str, BatchRow] = {}
        data = self._path.read_bytes() if self._path.exists() else b""
        # What follows the last end of a line was being written when the process was killed.
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            row_id, row = self._row(line, f"{self._path.name}, line {number}", digests)
            if row_id in rows:
                raise ValueError(f"{self._path.name}, line {number}: {row_id!r} has a row already")
            if row.error is None:
                rows[row_id], lines[row_id] = row, line + b"\n"
        content = b"".join(lines.values())
        if content != data:
            temporary = self._path.with_name(self._path.name + ".part")
            temporary.write_bytes(content)
            temporary.replace(self._path)
        self._file = self._path.open("ab", buffering=0)
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
        """Appends a row, in one write: a killed process leaves a whole line or a part of one."""
        if self._file is not None:
            self._file.write(msgspec.json.encode(row) + b"\n")

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
