"""The site has every page and every public name; its links are checked where it is built."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import msgspec
import pytest

import streamlib
from lab import site
from tests.support.shared import ROOT

DOCS = ROOT / "docs"
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_has_a_place_in_the_navigation() -> None:
    listed = set(re.findall(r"([\w/-]+\.md)$", CONFIGURATION, re.MULTILINE))
    assert listed == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_every_public_name_has_a_place_in_the_reference() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("reference/*.md"))
    found = re.findall(r"(?:^::: |\{ #)streamlib\.(\w+)(?: \})?$", pages, re.MULTILINE)
    assert sorted(found) == sorted(streamlib.__all__)


def test_fields_of_every_struct_have_types_at_runtime() -> None:
    """The reference evaluates them: a type imported for checkers alone would end its build."""
    unreadable: list[str] = []
    for module in pkgutil.walk_packages(streamlib.__path__, "streamlib."):
        if module.name.endswith("__main__"):
            continue
        for name, kind in vars(importlib.import_module(module.name)).items():
            if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
                continue
            try:
                msgspec.structs.fields(kind)
            except NameError as error:
                unreadable.append(f"{module.name}.{name}: {error}")
    assert not unreadable


def test_files_outside_of_the_pages_become_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "BUILD", tmp_path / "build")
    configuration = site.stage()
    pages = configuration.parent / "docs"
    assert "files/examples/web/app.py.md" in (pages / "ui.md").read_text(encoding="utf-8")
    shown = (pages / "files" / "examples" / "web" / "app.py.md").read_text(encoding="utf-8")
    assert shown.startswith("# examples/web/app.py\n\n````python\n")


def test_index_for_models_names_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "SITE", tmp_path)
    count = site.write_index_for_models()
    text = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    assert count == text.count(".html): ") == len(list(DOCS.rglob("*.md")))
    assert "- [Stop a stream, and set timeouts](cancellation.html): How a stream ends early" in text


def test_pages_link_to_files_that_exist() -> None:
    """Without the site: headings and what is generated are checked where it is built."""
    for page in DOCS.rglob("*.md"):
        text = re.sub(
            r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
        )
        for path in re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / path).exists(), f"{page.relative_to(DOCS)}: {path}"


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top"><a href="b.html#here">b</a><a href="b.html#gone">b</a>'
        '<a href="c.html">c</a><a href="#top">up</a><a href="https://example.org/">out</a>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="here">', encoding="utf-8")
    assert site.broken_links(tmp_path) == [
        "a.html: b.html#gone: no such heading",
        "a.html: c.html: no such file",
    ]


def test_private_names_in_the_reference_are_found(tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "a.html").write_text(
        '<h2 id="streamlib.a.Stage.__or__"><h2 id="streamlib.a.Stage"><code>'
        '<span title="streamlib.a.starts._Choice">_Choice</span>'
        '<span title="typing.Any">Any</span></code>',
        encoding="utf-8",
    )
    assert site.private_names(tmp_path) == ["a.html: streamlib.a.starts._Choice: a private name"]


def test_reference_leaves_out_bases_that_no_page_names() -> None:
    griffe = pytest.importorskip("griffe", reason="it builds the site: of the group types")
    from lab.site.internals import Internals

    internals = Internals()

    def bases(path: Path, name: str) -> list[str]:
        module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        text = path.read_text(encoding="utf-8")
        found = griffe.visit(module, path, text).classes[name]
        internals.on_class(cls=found)
        return [str(base) for base in found.bases]

    pipeline = ROOT / "streamlib" / "pipeline"
    assert bases(pipeline / "item_streams.py", "ItemStream") == []
    assert bases(pipeline / "starts.py", "StartedStream") == ["Pipeline[ResponseEvent]"]
