"""Where forms were read is data, and comparing it with a server's table needs no import of it."""

from __future__ import annotations

import datetime as dt
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from lab.dialect_sources.__main__ import main
from lab.dialect_sources.compare import NOT_READ, compare, sources_of
from lab.dialect_sources.registered import TABLES, Registered, registered_in
from lab.dialect_sources.sources import (
    DIALECT_SOURCES,
    MODEL_SOURCES,
    SGLANG,
    VLLM,
    DialectSource,
)
from streamlib_parsers.dialects import DIALECTS, DIALECTS_BY_MODEL
from tests.support.cases import each_case


def check_source(source: DialectSource) -> None:
    assert source.title
    assert dt.date.fromisoformat(source.date) > dt.date(2026, 1, 1)
    assert source.title in (VLLM, SGLANG) or not (source.parsers or source.reasoning)


@each_case("name", sorted(DIALECTS))
def test_every_dialect_has_a_source_with_a_date(name: str) -> None:
    sources = DIALECT_SOURCES[name]
    assert sources
    for source in sources:
        check_source(source)


def test_every_model_row_has_a_source_with_a_date() -> None:
    assert list(MODEL_SOURCES) == [substring for substring, _ in DIALECTS_BY_MODEL]
    for source in MODEL_SOURCES.values():
        check_source(source)


def test_sources_name_no_dialect_that_is_gone() -> None:
    assert set(DIALECT_SOURCES) == set(DIALECTS)


@pytest.mark.parametrize("server", sorted(TABLES))
def test_parser_is_read_by_one_dialect_or_on_purpose_by_none(server: str) -> None:
    names = [name for source in sources_of(server) for name in source.parsers]
    assert len(names) == len(set(names))
    assert not NOT_READ.keys() & set(names)
    assert all(NOT_READ.values())


def test_new_and_vanished_parsers_are_listed() -> None:
    registered = Registered("9.0", ("hermes", "brand_new", "muse"), ("qwen3", "other"))
    comparison = compare("vLLM", registered)
    assert comparison.known == ("hermes (calls)", "qwen3 (reasoning)")
    assert comparison.new == ("brand_new (calls)", "other (reasoning)")
    assert "kimi_k2 (calls)" in comparison.gone
    assert "hermes (calls)" not in comparison.gone


def write_source(path: Path, files: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{path.name.removesuffix('.tar.gz')}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def test_tables_are_read_from_sources_without_running_them(tmp_path: Path) -> None:
    archive = tmp_path / "vllm-1.2.3.tar.gz"
    calls = 'raise SystemExit\n_TOOL_PARSERS_TO_REGISTER = {"a": (1, 2), "b": x}\n'
    reasoning = '_REASONING_PARSERS_TO_REGISTER: dict = {"c": 1}\n'
    write_source(
        archive,
        {"vllm/tool_parsers/__init__.py": calls, "vllm/reasoning/__init__.py": reasoning},
    )
    assert registered_in(archive, "vLLM") == Registered("1.2.3", ("a", "b"), ("c",))


def test_tables_are_read_from_a_wheel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "sglang-0.9-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr(TABLES["SGLang"][0].module, 'TOOL_CALL_PARSER_NAMES = ["qwen", "new"]')
        wheel.writestr(TABLES["SGLang"][1].module, 'REASONING_PARSER_NAMES = ["kimi"]')
    assert main([f"SGLang={archive}"]) == 1
    printed = capsys.readouterr().out
    assert "SGLang 0.9: 2 parsers read\n  new: new (calls)\n  gone: " in printed


@pytest.mark.parametrize("text", ["", "OTHER = [1]"])
def test_table_that_moved_is_an_error_not_an_empty_list(tmp_path: Path, text: str) -> None:
    archive = tmp_path / "vllm-1.2.3.tar.gz"
    files = {"vllm/tool_parsers/__init__.py": text} if text else {"other.py": "1"}
    write_source(archive, files)
    with pytest.raises(LookupError, match="has no"):
        registered_in(archive, "vLLM")
