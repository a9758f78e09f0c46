"""The documentation site: the pages of `docs` with the files that they link to, built by Zensical.

python -m lab.site            builds into build/site and checks every link
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from tests.support.shared import ROOT

BUILD: Final = ROOT / "build"
SITE: Final = BUILD / "site"
LINK: Final = re.compile(r"(?<=\]\()(?P<path>\.\./[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
"""A link to a file above the page's folder."""
FOREIGN_SCRIPT: Final = "https://unpkg.com/iframe-worker/shim"
"""What Zensical's plugin `offline` writes into each page."""
PRIVATE: Final = re.compile(r'(id|title)="(streamlib[\w.]*\._(?!_)\w+)[^"]*"')
"""A name of ours, or one that a signature refers to, with a private part at its end."""
LANGUAGES: Final = {".py": "python", ".js": "javascript", ".mjs": "javascript", ".css": "css"}


def stage() -> Path:
    """Copies the pages, and with them the files outside of `docs` that they link to.

    A linked Markdown file becomes a page; any other file becomes a page that shows it.

    Returns:
        The configuration that builds the copies.
    """
    shutil.rmtree(BUILD, ignore_errors=True)
    pages = BUILD / "docs"
    shutil.copytree(ROOT / "docs", pages)
    waiting = sorted((ROOT / "docs").rglob("*.md"))
    for page in waiting:
        target = pages / page.relative_to(ROOT / "docs")
        target.write_text(_with_copies(page, target, pages), encoding="utf-8")
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    text = text.replace("site_dir: build/site", "site_dir: site")
    text = text.replace("paths: [., parsers]", "paths: [.., ../parsers]")
    text = re.sub(r"\blab/site/(?=\w+\.py)", "../lab/site/", text)
    configuration = BUILD / "mkdocs.yml"
    configuration.write_text(text, encoding="utf-8")
    return configuration


def _with_copies(page: Path, target: Path, pages: Path) -> str:
    """The page's text with links to the copies of what it links to outside of `docs`."""

    def replaced(link: re.Match[str]) -> str:
        linked = (page.parent / link["path"]).resolve()
        if linked.is_relative_to(ROOT / "docs") or not linked.is_file():
            return link[0]
        copy = pages / "files" / linked.relative_to(ROOT)
        if copy.suffix != ".md":
            copy = copy.with_name(f"{copy.name}.md")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(_as_page(linked), encoding="utf-8")
        path = Path(os.path.relpath(copy, target.parent)).as_posix()
        return path + (link["anchor"] or "")

    return LINK.sub(replaced, page.read_text(encoding="utf-8"))


def _as_page(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        # Its own links lead to files that are no pages: only their words stay.
        return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", text)
    language = LANGUAGES.get(file.suffix, "text")
    return f"# {file.relative_to(ROOT).as_posix()}\n\n````{language}\n{text}\n````\n"


def build() -> str:
    """Builds the site.

    Returns:
        What Zensical printed.

    Raises:
        SystemExit: it failed, or found a problem.
    """
    configuration = stage()
    command = [sys.executable, "-m", "zensical", "build", "-f", str(configuration), "--clean"]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
    environment = {**os.environ, "PYTHONPATH": paths, "NO_COLOR": "1"}
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode or re.search(r"^\d+ issues? found", ran.stdout, re.MULTILINE):
        raise SystemExit(ran.stdout)
    _ask_no_other_server()
    return ran.stdout


def _ask_no_other_server() -> None:
    """Lets the pages load the script of the search from beside them, not from another server."""
    for page in SITE.rglob("*.html"):
        own = Path(os.path.relpath(SITE / "javascripts" / "iframe-worker.js", page.parent))
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(FOREIGN_SCRIPT, own.as_posix()), encoding="utf-8")


def write_index_for_models() -> int:
    """Writes ``llms.txt``: a line for each page with its first sentence.

    Returns:
        How many pages it names.
    """
    lines = ["# streamlib", "", "> One event stream from every LLM API, in Python.", ""]
    count = 0
    for line in (ROOT / "mkdocs.yml").read_text(encoding="utf-8").splitlines():
        section = re.match(r"  - ([^:]+):$", line)
        if section is not None:
            lines += ["", f"## {section[1]}", ""]
        entry = re.search(r"- (?:([^:]+): )?([\w/-]+)\.md$", line)
        if entry is not None:
            path, count = entry[2], count + 1
            text = (ROOT / "docs" / f"{path}.md").read_text(encoding="utf-8")
            title = entry[1] or path
            lines.append(f"- [{title}]({path}.html): {first_sentence(text)}")
    (SITE / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return count


def first_sentence(text: str) -> str:
    """The first sentence below a page's heading, without links."""
    paragraphs = text.split("\n\n")
    for paragraph in paragraphs[1:]:
        if paragraph[0].isalpha():
            plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", paragraph.replace("\n", " "))
            return re.split(r"(?<=[.:?]) (?=[A-Z])", plain)[0]
    return paragraphs[0].removeprefix("# ")


class _Page(HTMLParser):
    """The anchors of a page, and where it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag
        for name, value in attrs:
            if value is None:
                continue
            if name in {"id", "name"}:
                self.anchors.add(value)
            elif name in {"href", "src"}:
                self.links.append(value)


def broken_links(site: Path = SITE) -> list[str]:
    """Links of the built pages to a page, a file or a heading that is not there."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path] = page
    broken: list[str] = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links begin at the root of a server
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path
            if parts.path:
                target = (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            name = path.relative_to(site).as_posix()
            if not target.exists():
                broken.append(f"{name}: {link}: no such file")
            elif parts.fragment and target in pages and not _has_anchor(pages[target], link):
                broken.append(f"{name}: {link}: no such heading")
    return broken


def private_names(site: Path = SITE) -> list[str]:
    """Names in the reference that begin with an underscore: a signature, a base or a heading.

    Methods of operators (`__or__`) and of calls are public.
    """
    found: list[str] = []
    for path in sorted((site / "reference").glob("*.html")):
        text = path.read_text(encoding="utf-8")
        names = {name for _, name in PRIVATE.findall(text)}
        found += [f"{path.name}: {name}: a private name" for name in sorted(names)]
    return found


def _has_anchor(page: _Page, link: str) -> bool:
    return unquote(urlsplit(link).fragment) in page.anchors
