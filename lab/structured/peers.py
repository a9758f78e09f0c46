"""A typed view after every delta, with other libraries, on the same text: microseconds a delta.

    python -m venv peers
    peers/bin/pip install msgspec anyio pydantic-ai-slim instructor baml-py
    PYTHONPATH=.:parsers peers/bin/python -m lab.structured.peers [BYTES…]

Each library is used as its documentation says: pydantic-ai streams the output of an agent over a
model that is a function, instructor makes partial models of chunks, and BAML, whose stream has no
part without HTTP, parses the text so far, as its client does: 40 of these texts, evenly spread,
since each takes so long. What is not installed is named.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import anyio

from lab.structured.cases import Library, deltas, library_text
from lab.structured.growth import ModelLibrary
from streamlib.structured import TypedJson

SIZES = (2_000, 10_000, 40_000)
"""Bytes of JSON."""

SAMPLES = 40
"""Texts that BAML parses."""

BAML = """
generator python {
  output_type "python/pydantic"
  output_dir ".."
  version "VERSION"
  default_client_mode "sync"
}
client<llm> Nowhere {
  provider openai-generic
  options {
    base_url "http://127.0.0.1:9"
    model "m"
  }
}
class Author {
  name string
  born int
}
class Book {
  title string
  pages int
  rating float
  tags string[]
  author Author
  summary string
}
class Library {
  books Book[]
}
function Extract(text: string) -> Library {
  client Nowhere
  prompt #"{{ text }} {{ ctx.output_format }}"#
}
"""


def streamlib_view(kind: Any) -> Callable[[list[str]], Any]:
    def run(fragments: list[str]) -> Any:
        view: TypedJson[Any] = TypedJson(kind)
        for fragment in fragments:
            view.feed(fragment)
            view.partial()
        return view.partial()

    return run


def pydantic_ai() -> Callable[[list[str]], Any]:
    ai = importlib.import_module("pydantic_ai")
    function_model = importlib.import_module("pydantic_ai.models.function").FunctionModel
    profile = importlib.import_module("pydantic_ai.profiles").ModelProfile

    def run(fragments: list[str]) -> Any:
        async def stream(messages: Any, info: Any) -> AsyncIterator[str]:
            del messages, info
            for fragment in fragments:
                yield fragment

        async def outputs() -> Any:
            model = function_model(
                stream_function=stream, profile=profile(supports_json_schema_output=True)
            )
            agent = ai.Agent(model, output_type=ai.NativeOutput(ModelLibrary))
            views: list[Any] = []
            async with agent.run_stream("?") as result:
                async for output in result.stream_output(debounce_by=None):
                    views[:] = [output]
            return views[-1]

        return anyio.run(outputs)

    return run


def instructor() -> Callable[[list[str]], Any]:
    partial = importlib.import_module("instructor.dsl.partial").Partial[ModelLibrary]

    def run(fragments: list[str]) -> Any:
        views: list[Any] = []
        for output in partial.model_from_chunks(iter(fragments)):
            views[:] = [output]
        return views[-1]

    return run


def baml() -> Callable[[list[str]], Any]:
    number = version("baml-py")
    folder = Path(tempfile.mkdtemp(prefix="baml-"))
    (folder / "baml_src").mkdir()
    (folder / "baml_src" / "main.baml").write_text(BAML.replace("VERSION", number))
    command = [str(Path(sys.executable).parent / "baml-cli"), "generate", "--from", "baml_src"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    sys.path.insert(0, str(folder))
    parse = importlib.import_module("baml_client").b.parse_stream.Extract

    def run(fragments: list[str]) -> Any:
        text = "".join(fragments)
        output = None
        for number in range(1, SAMPLES + 1):
            output = parse(text[: len(text) * number // SAMPLES])
        return output

    return run


PEERS: dict[str, tuple[str, Callable[[], Callable[[list[str]], Any]]]] = {
    "streamlib, msgspec": ("msgspec", lambda: streamlib_view(Library)),
    "streamlib, pydantic": ("pydantic", lambda: streamlib_view(ModelLibrary)),
    "pydantic-ai": ("pydantic-ai-slim", pydantic_ai),
    "instructor": ("instructor", instructor),
    "BAML": ("baml-py", baml),
}
"""Name -> the package whose version is shown, and what makes the function to be measured."""


def measured(run: Callable[[list[str]], Any], text: str, *, is_sampled: bool) -> float:
    """Microseconds a delta: the better of two tries."""
    fragments = deltas(text)
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        output = run(fragments)
        best = min(best, time.process_time() - start)
    if len(output.books) != text.count('"title"'):
        raise AssertionError(f"{len(output.books)} books")
    views = SAMPLES if is_sampled else len(fragments)
    return best / views * 1e6


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]] or SIZES
    heads = "".join(f"{size:>12,} B" for size in sizes)
    sys.stdout.write(f"microseconds a delta of 10 characters\n{'':40}{heads}\n")
    for name, (package, make) in PEERS.items():
        try:
            label = f"{name} ({package} {version(package)})"
            run = make()
        except (ImportError, PackageNotFoundError) as error:
            sys.stdout.write(f"{name}: not installed: {error}\n")
            continue
        sys.stdout.write(f"{label:40}")
        for size in sizes:
            figure = measured(run, library_text(size), is_sampled=name == "BAML")
            sys.stdout.write(f"{figure:14,.1f}")
            sys.stdout.flush()
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
