"""Metadata hook: README.md with links that also work on a package index.

An index shows the text alone, so a link to a file of the repository would lead nowhere. Where
`[project.urls]` names the repository, such links lead to its files at the tag of the version. While
it does not (the project has no public address yet) they become plain text, and pictures go.
`python -m lab.release` refuses a release without the address.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK: Final = re.compile(
    r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|mailto:)(?P<target>[^)\s]+)\)"
)
"""A Markdown link or picture whose target is a file or a heading."""

ATTRIBUTE: Final = re.compile(r'(?P<name>src|srcset)="(?!https?:)(?P<target>[^"]+)"')
"""A picture in HTML."""

HTML: Final = re.compile(r"^<(?P<tag>details|picture)\b.*?^</(?P=tag)>\n", re.DOTALL | re.MULTILINE)
"""A block of HTML; README has it for pictures alone."""

CODE: Final = re.compile(r"^(?P<fence>```+).*?^(?P=fence)\n", re.DOTALL | re.MULTILINE)
"""A block of code: brackets in it are no links."""


def for_index(text: str, repository: str | None, version: str) -> str:
    """A page of the repository as an index shows it.

    Args:
        text: Markdown whose links are relative to the root of the repository.
        repository: its address, without a slash at the end; None where it has none.
        version: the files are those of the tag `v` and this.
    """

    def link(match: re.Match[str]) -> str:
        target = match["target"]
        if target.startswith("#"):  # a heading of this page
            return match[0]
        if repository is None:
            return "" if match["picture"] else match["text"]
        kind = "raw" if match["picture"] else "blob"
        return f"{match['picture']}[{match['text']}]({repository}/{kind}/v{version}/{target})"

    if repository is None:
        text = HTML.sub("", text)
    text = ATTRIBUTE.sub(rf'\g<name>="{repository}/raw/v{version}/\g<target>"', text)
    parts: list[str] = []
    end = 0
    for block in CODE.finditer(text):
        parts += [LINK.sub(link, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(link, text[end:])])


class IndexReadme(MetadataHookInterface):
    """Sets the field `readme`."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the text to the table `[project]`."""
        repository = metadata.get("urls", {}).get("Repository")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        shown = for_index(text, repository and repository.rstrip("/"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
