"""What may be imported, from where, and what the import loads.

The names are the contract; the parsers load neither HTTP nor the upper package.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from types import ModuleType

import pytest

import streamlib
import streamlib_parsers
from tests.support.cases import each_case
from tests.support.shared import ROOT

CONTRACT = re.findall(
    r"\w+",
    """
    parser parse_body accumulate Accumulator Response Choice Timing Parser LIMITS Limits user
    Message Reasoning FunctionCall FunctionCallOutput CustomToolCall CustomToolCallOutput
    ServerToolCall ServerToolResult Compaction Opaque Text Image Document Audio Refusal Origin
    ToolSpec ToolOptions CacheMark WireApi ResponseItem RateLimits Created OutputItemAdded
    OutputTextDelta
    ReasoningContentDelta ReasoningSummaryDelta FunctionCallArgumentsDelta RefusalDelta MediaDelta
    AnnotationAdded ItemProgress OutputItemDone TokenCount ResponseMetadata Passthrough Notice
    Completed Failed ResponseEvent Usage ErrorInfo InvalidArguments InvalidOutput
    IncompleteOutput HostedTool
    ComputerCall ComputerCallOutput ShellCall ShellCallOutput ShellResult ApplyPatchCall
    ApplyPatchCallOutput ApprovalRequest ApprovalResponse ToolSearchCall ToolSearchOutput
    PendingCall CallOutput RunEvent assistant
    """,
)

CONTRACT_ABOVE = re.findall(
    r"\w+",
    "Prompt ReasoningOptions CacheOptions build Request Change StreamError History"
    " UNSET agent AgentRun run_calls",
)

HTTP = ("aiohttp", "httpcore", "httpx", "httpx2", "httpx_sse")
NOT_FOR_PARSERS = (*HTTP, "anyio", "streamlib", "trio")


def modules_after(statement: str) -> set[str]:
    """Top-level names in `sys.modules` of a fresh interpreter that ran `statement`."""
    paths = [str(ROOT), str(ROOT / "parsers")]
    code = f"import sys; sys.path[:0] = {paths!r}\n{statement}\nprint(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in process.stdout.split()}


@pytest.mark.parametrize(
    "package", [streamlib_parsers, streamlib], ids=lambda package: package.__name__
)
def test_public_names_are_there_once_each(package: ModuleType) -> None:
    names = package.__all__
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(package, name)] == []


@each_case("name", CONTRACT)
def test_a_name_of_the_vocabulary_is_one_object_in_both_packages(name: str) -> None:
    assert name in streamlib_parsers.__all__
    assert name in streamlib.__all__
    assert getattr(streamlib, name) is getattr(streamlib_parsers, name)


@each_case("name", CONTRACT_ABOVE)
def test_a_name_of_the_upper_contract_can_be_imported(name: str) -> None:
    assert name in streamlib.__all__
    assert hasattr(streamlib, name)


def all_modules_after(statement: str) -> set[str]:
    """Names in `sys.modules` of a fresh interpreter that ran `statement`, with their packages."""
    paths = [str(ROOT), str(ROOT / "parsers")]
    code = f"import sys; sys.path[:0] = {paths!r}\n{statement}\nprint(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    return set(process.stdout.split())


def test_importing_streamlib_loads_two_modules() -> None:
    """The names are loaded at their first use: the import takes 0.2 ms."""
    before = all_modules_after("import msgspec")
    assert all_modules_after("import msgspec, streamlib") - before == {
        "streamlib",
        "streamlib.lazy",
    }


def test_importing_the_parsers_loads_what_every_parser_needs() -> None:
    """No tables of errors and no headers; 26 modules of ours, 5 ms."""
    extra = all_modules_after("import streamlib_parsers") - all_modules_after("import msgspec")
    unneeded = {"error_body", "error_kinds", "error_tables", "rate_limits", "redaction"}
    assert extra.isdisjoint(f"streamlib_parsers.{name}" for name in unneeded)
    assert extra.isdisjoint({"base64", "shlex", "hashlib", "tempfile", "urllib"})
    assert len(extra) <= 30


def test_loading_the_client_loads_no_grammars() -> None:
    """They are for models without a parser of their own; httpx is for the first request."""
    loaded = all_modules_after("from streamlib import Client; Client()")
    assert not {name for name in loaded if name.startswith("streamlib_parsers.dialects.grammars")}
    assert loaded.isdisjoint(HTTP)


def test_public_names_are_listed_for_type_checkers_too() -> None:
    """Checkers read the imports with `as`, everybody else the table."""
    tree = ast.parse((ROOT / "streamlib" / "__init__.py").read_text(encoding="utf-8"))
    written: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            written += [alias.name for alias in node.names if alias.asname == alias.name]
    assert sorted([*written, *streamlib_parsers.__all__]) == sorted(dir(streamlib))


def test_streamlib_shows_at_most_108_names_and_no_others() -> None:
    """More is in rooms. `AiohttpTransport` is not starred: it needs an extra."""
    assert len(dir(streamlib)) <= 108
    assert set(dir(streamlib)) == {*streamlib.__all__, "AiohttpTransport"}


def test_streamlib_lists_its_names_before_their_first_use() -> None:
    code = "import streamlib; print(*dir(streamlib)); from streamlib import *; Message, Client"
    paths = [str(ROOT), str(ROOT / "parsers")]
    code = f"import sys; sys.path[:0] = {paths!r}\n{code}"
    process = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert set(process.stdout.split()) >= set(streamlib.__all__)


def test_importing_streamlib_loads_no_http_library() -> None:
    assert modules_after("import streamlib").isdisjoint(HTTP)


def test_importing_streamlib_loads_no_log() -> None:
    """The room `durable`, its clients and the gateway are loaded by those who use them."""
    code = (
        "import streamlib; "
        "sys.modules = [name.removeprefix('streamlib.') for name in sys.modules "
        "if name.startswith(('streamlib.durable', 'streamlib.gateway'))] + list(sys.modules)"
    )
    assert modules_after(code).isdisjoint({"durable", "gateway", "coredis", "sqlite3"})


def test_importing_the_parsers_loads_no_http_and_no_streamlib() -> None:
    assert modules_after("import streamlib_parsers").isdisjoint(NOT_FOR_PARSERS)


def test_importing_the_parsers_loads_no_event_loop() -> None:
    extra = modules_after("import streamlib_parsers") - modules_after("import msgspec")
    assert extra.isdisjoint(
        {"asyncio", "concurrent", "multiprocessing", "socket", "ssl", "subprocess", "random"}
    )


def test_no_file_imports_through_the_folder() -> None:
    through = re.compile(r"^\s*(?:from|import)\s+parsers\b", re.MULTILINE)
    sources = [
        path
        for part in ("streamlib", "parsers", "tests", "lab", "benchmarks")
        for path in ROOT.glob(f"{part}/**/*.py")
    ]
    assert [str(path) for path in sources if through.search(path.read_text(encoding="utf-8"))] == []
