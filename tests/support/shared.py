"""What the tests read from outside the repository: recorded bodies and vectors, never committed.

    STREAMLIB_SHARED   the folder that holds `vectors/` and `corpus/`; else `../shared` beside the
    repository STREAMLIB_CORPUS   the folder that holds `data/`; else `corpus` in the folder above

Without them the tests that need them are skipped with that reason, and the last lines of the run
count them. A path in one of the variables must exist: a misspelt path must not turn the suite
green.

    @each_recording("anthropic-messages")
    def test_parser(recording: Recording) -> None: ...

    @each_vector("sse_vectors")
    def test_framing(vector: dict[str, Any]) -> None: ...
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.cases import Case, Test, in_one_test

ROOT: Final = Path(__file__).resolve().parent.parent.parent

WIRES: Final[Mapping[str, str]] = {
    "anthropic-messages": "messages",
    "openai-responses": "responses",
    "openai-chat": "chat",
    "gemini-generatecontent": "gemini",
    "gemini-interactions": "interactions",
    "bedrock-converse": "converse",
    "bedrock-invoke": "invoke",
    "ollama-native": "ollama",
    "cohere-chat": "cohere",
}
"""Folder of the corpus -> our name of the wire."""

STREAMS: Final = (".sse", ".eventstream", ".ndjson")
"""Bodies as received."""
BODIES: Final = (".json",)
"""Complete, non-streaming bodies."""
PAYLOADS: Final = (".jsonl",)
"""Recordings of the decoded `data:` payloads alone, one a line: they bypass the framing."""

MISSING: Final = "shared test data is absent"
"""How every such skip begins; `conftest.py` counts them by it."""


def _folder(variable: str, fallback: Path) -> Path:
    named = os.environ.get(variable)
    if named and not Path(named).is_dir():
        raise pytest.UsageError(f"{variable}={named} is not a folder")
    return Path(named) if named else fallback


SHARED: Final = _folder("STREAMLIB_SHARED", ROOT.parent / "shared")
CORPUS: Final = _folder("STREAMLIB_CORPUS", SHARED / "corpus")


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded body with what is known about it."""

    path: Path

    @property
    def wire(self) -> str:
        """Our name of the wire, else the folder's name (conformance vectors)."""
        return WIRES.get(self.path.parent.name, self.path.parent.name)

    @property
    def body(self) -> bytes:
        """The bytes as recorded."""
        return self.path.read_bytes()

    @property
    def payloads(self) -> list[bytes]:
        """The lines of a `.jsonl` recording: one `data:` payload each."""
        return [line for line in self.body.splitlines() if line]

    @property
    def meta(self) -> dict[str, Any]:
        """provider, model, status, url, request_json, response_headers, features, notes."""
        return self._beside(".meta.json")

    @property
    def expected(self) -> dict[str, Any]:
        """`facts`, `agree`, `framing`; `{}` where nothing was agreed about this body."""
        return self._beside(".expected.json")

    def _beside(self, ending: str) -> dict[str, Any]:
        path = self.path.with_name(self.path.name.removesuffix(self.path.suffix) + ending)
        return json.loads(path.read_bytes()) if path.exists() else {}


def require(path: Path) -> Path:
    """`path`, or a skip that names it; the whole module is skipped when called at import time."""
    if not path.exists():
        pytest.skip(_reason(path), allow_module_level=True)
    return path


@cache
def vectors(name: str) -> dict[str, Any]:
    """The document `vectors/<name>.json`: `about`, `vectors` and more. Skips if it is absent."""
    document: dict[str, Any] = json.loads(require(SHARED / "vectors" / f"{name}.json").read_bytes())
    return document


def recordings(folder: str, suffixes: Iterable[str] = STREAMS) -> list[Recording]:
    """The recordings of one folder of the corpus by name; `[]` without a corpus.

    An empty folder is an error.
    """
    wanted = tuple(suffixes)
    home = CORPUS / "data" / folder
    if not CORPUS.is_dir():
        return []
    entries = [
        Recording(path)
        for path in sorted(home.glob("*"))
        if path.suffix in wanted and not _is_note(path)
    ]
    assert entries, f"no {'/'.join(wanted)} in {home}"
    return entries


def each_recording(folder: str, suffixes: Iterable[str] = STREAMS) -> Callable[[Test], Test]:
    """Runs the test for every recording of a folder, as `recording`; a skip without a corpus."""
    wanted = tuple(suffixes)

    def cases() -> list[Case]:
        require(CORPUS)
        return [(entry.path.name, {"recording": entry}) for entry in recordings(folder, wanted)]

    return in_one_test(["recording"], cases)


def each_vector(name: str) -> Callable[[Test], Test]:
    """Runs the test for every vector of `vectors/<name>.json`, as `vector`; a skip without it."""

    def cases() -> list[Case]:
        entries = enumerate(vectors(name)["vectors"])
        return [(str(vector.get("id", n)), {"vector": vector}) for n, vector in entries]

    return in_one_test(["vector"], cases)


def _is_note(path: Path) -> bool:
    return path.name.endswith((".meta.json", ".expected.json"))


def _reason(path: Path) -> str:
    hint = "set STREAMLIB_SHARED or STREAMLIB_CORPUS"
    return f"{MISSING}: {path.name} (looked in {path.parent}; {hint})"
