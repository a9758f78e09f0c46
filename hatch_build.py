"""Build hook: `STREAMLIB_COMPILE=1 pip install .` compiles the logic modules with mypyc.

Without that variable nothing here runs, and the wheel is pure Python. The source is the same for
both: each compiled module lies in the wheel beside its `.py` file, which tracebacks quote and which
Python imports where there is no compiled one. An editable installation stays pure. See
docs/compiled.md.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SWITCH: Final = "STREAMLIB_COMPILE"
"""Environment variable that turns the compiler on: `1`."""

COMPILER: Final = ("mypy==2.4.1", "setuptools>=77")
"""One release of the compiler: another may compile the same source into something else."""

GROUP: Final = "streamlib"
"""All modules are one library, so that they call each other directly: `streamlib__mypyc`."""

PARSERS: Final = "parsers/streamlib_parsers"

COMPILED: Final[dict[str, tuple[str, ...]]] = {
    PARSERS: (
        "accumulate",
        "assembler",
        "bedrock",
        "envelope",
        "filter_assembler",
        "filter_chain",
        "item_text",
        "json_fragments",
        "json_text",
        "open_items",
        "protocol",
        "stop_reasons",
    ),
    f"{PARSERS}/framing": ("eventstream", "json_array", "ndjson", "sse", "sse_or_json"),
    f"{PARSERS}/wires/chat": (
        "calls",
        "choice",
        "delta",
        "machine",
        "reasoning_details",
        "token_counts",
    ),
    f"{PARSERS}/wires/cohere": ("citations", "machine", "token_counts"),
    f"{PARSERS}/wires/converse": ("blocks", "machine", "states", "token_counts"),
    f"{PARSERS}/wires/gemini": (
        "arguments_by_path",
        "calls",
        "candidate",
        "machine",
        "parts",
        "token_counts",
    ),
    f"{PARSERS}/wires/interactions": (
        "byte_offsets",
        "contents",
        "envelope",
        "machine",
        "steps",
        "token_counts",
    ),
    f"{PARSERS}/wires/messages": ("blocks", "machine", "token_counts"),
    f"{PARSERS}/wires/ollama": ("machine",),
    f"{PARSERS}/wires/responses": (
        "built_in",
        "envelope",
        "items",
        "machine",
        "output",
        "texts",
        "wire_items",
    ),
    "streamlib/client": (
        "attempt",
        "hooked_stream",
        "reconnect",
        "stream",
        "stream_state",
        "stream_text",
        "stream_timing",
    ),
    "streamlib/pipeline": ("reading", "statements"),
    "streamlib/transport": ("deadline_timer",),
}
"""Folder -> the modules that are compiled: those that run once per event, item or response.

A module that defines a Struct is never one of them: msgspec makes those classes itself, from
annotations that a compiled class does not have.
"""


def compiled_files() -> list[str]:
    """The paths of the compiled modules, from the root of the project."""
    return [f"{folder}/{name}.py" for folder, names in COMPILED.items() for name in names]


class CompiledBuild(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs: nothing for a pure wheel."""
        if not _is_wanted():
            return []
        # The compiler reads the types of what the modules import.
        return [*COMPILER, *self.metadata.core.dependencies]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles before the files of the wheel are collected."""
        if version == "editable" or not _is_wanted():
            return
        started = time.perf_counter()
        libraries = compile_modules(Path(self.root), Path(tempfile.mkdtemp(prefix="streamlib-")))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for path, name in libraries.items():
            build_data["force_include"][str(path)] = name
        seconds = time.perf_counter() - started
        self.app.display_info(f"compiled {len(compiled_files())} modules in {seconds:.0f} s")


def _is_wanted() -> bool:
    return os.environ.get(SWITCH) == "1"


def compile_modules(root: Path, folder: Path) -> dict[Path, str]:
    """Compiles the modules.

    Args:
        root: The project.
        folder: For C files and libraries.

    Returns:
        The path of each library to its name in the wheel.
    """
    # setuptools first: mypyc asks whether it is loaded, else it uses a distutils that is gone.
    from setuptools import Distribution  # noqa: I001
    from setuptools.command.build_ext import build_ext
    from mypyc.build import mypycify

    # How mypy finds the modules: two roots, and only those of the wheel are compiled.
    os.environ["MYPYPATH"] = os.pathsep.join([str(root), str(root / "parsers")])
    previous = Path.cwd()
    os.chdir(root)
    try:
        extensions = mypycify(
            [
                "--config-file=",  # types are checked elsewhere, and more strictly
                "--explicit-package-bases",
                "--follow-imports=silent",
                "--ignore-missing-imports",  # extras, which are not installed where this runs
                *compiled_files(),
            ],
            group_name=GROUP,
            multi_file=True,  # one C file a module: a tenth of the memory that one for all takes
            opt_level=os.environ.get("STREAMLIB_OPT", "3"),
            debug_level="0",
            target_dir=str(folder / "c"),
        )
        command = build_ext(Distribution({"name": GROUP, "ext_modules": extensions}))
        command.build_lib = str(folder / "lib")
        command.build_temp = str(folder / "temp")
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(previous)
    libraries = folder / "lib"
    return {Path(path): str(Path(path).relative_to(libraries)) for path in command.get_outputs()}
