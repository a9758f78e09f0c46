"""Writes what is generated from the providers' values: the tables of docs/providers.md, and the
snapshots of their requests.

python -m lab.provider_pages
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from streamlib.client.auth import variables_of
from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape, Thinking
from streamlib.providers.wire_specs import WIRE_SPECS
from tests.support.provider_cases import SNAPSHOTS, formatted, path_of, providers, snapshot
from tests.support.quirks import QUIRKS
from tests.support.shared import ROOT

PAGE: Final = ROOT / "docs" / "providers.md"
TEST: Final = "tests/streamlib/providers/test_providers.py"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    titles = list(header)
    lines: list[str] = []
    for row in (titles, ["---"] * len(titles), *rows):
        cells = [cell.replace("|", "\\|") for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def code(*texts: str) -> str:
    """The texts as code, without empty ones."""
    return " ".join(f"`{text}`" for text in texts if text)


# --- names, addresses, keys ---


def addresses() -> str:
    """Names, wires, addresses, keys of each provider."""
    header = (
        "provider",
        "also called",
        "wires, the default first",
        "address",
        "key from",
        "key sent as",
        "list of models",
    )
    rows: list[list[str]] = []
    for provider in providers():
        row = [
            code(provider.name),
            code(*provider.aliases),
            code(*provider.wires),
            _urls(provider),
            _keys(provider),
            code(provider.auth),
            _models(provider),
        ]
        rows.append(row)
    return table(header, rows)


def _urls(provider: Provider) -> str:
    urls = dict.fromkeys((provider.base_url, *provider.wire_urls.values(), *provider.other_urls))
    return "<br>".join(code(url) for url in urls if url) or "`base_url=`"


def _keys(provider: Provider) -> str:
    sources: list[str] = []
    variables = variables_of(provider)
    if variables:
        sources.append(code(*variables))
    if provider.key_optional or provider.auth == "none":
        sources.append("none")
    return " or ".join(sources)


def _models(provider: Provider) -> str:
    path = provider.models_path
    if path is None:
        path = WIRE_SPECS[provider.wires[0]].models_path
    return code(path) or "no"


# --- values ---


def values() -> str:
    """Thinking, echo, and every value that changes a request."""
    header = ("provider", "for models", "thinking", "reasoning is sent back as", "other values")
    rows: list[list[str]] = []
    for provider in providers():
        rows += _value_rows(provider)
    return table(header, rows)


def _value_rows(provider: Provider) -> Iterator[list[str]]:
    thinking = ""
    echo = ""
    if "chat" in provider.wires:
        thinking = _thinking(provider.chat.thinking)
        echo = code(*provider.chat.reasoning_echo)
    yield [code(provider.name), "", thinking, echo, _other_values(provider)]
    for prefix, changed in provider.model_overrides.items():
        shape = changed.get("chat", provider.chat)
        others = _shape_differences(shape, provider.chat)
        for field, value in changed.items():
            if field != "chat":
                others.append(_field(field, value))
        yield [
            code(provider.name),
            code(f"{prefix}…"),
            _thinking(shape.thinking),
            code(*shape.reasoning_echo),
            ", ".join(others) or "as above",
        ]


def _thinking(style: Thinking | None) -> str:
    if style is None:
        return "no field for it"
    lines: list[str] = []
    for name, value in (("on", style.on or style.plain), ("off", style.off)):
        if value:
            lines.append(f"{name} {code(json.dumps(value))}")
    for name, path in (("level", style.effort), ("tokens", style.budget)):
        if path:
            lines.append(f"{name} {code(path)}")
    return "<br>".join(lines)


FIELDS: Final = (
    "unsupported",
    "unsupported_when_thinking",
    "rename",
    "defaults",
    "overrides",
    "headers",
    "conversation_header",
    "account_header",
    "prepare",
    "roles",
)


def _other_values(provider: Provider) -> str:
    parts: list[str] = []
    for name in FIELDS:
        value = getattr(provider, name)
        if value:
            parts.append(_field(name, value))
    if provider.call_ids:
        pattern = f"[{provider.call_ids.allowed}]{{{provider.call_ids.longest}}}"
        parts.append(f"call ids: {code(pattern)}")
    if "chat" in provider.wires:
        parts += _shape_differences(provider.chat, ChatShape())
    return ", ".join(parts)


def _shape_differences(shape: ChatShape, usual: ChatShape) -> list[str]:
    differences: list[str] = []
    for name in shape.__struct_fields__:
        if name in ("thinking", "reasoning_echo"):  # these have columns of their own
            continue
        value = getattr(shape, name)
        if value != getattr(usual, name):
            differences.append(_field(name, value))
    return differences


def _field(name: str, value: Any) -> str:
    if name.startswith("unsupported"):
        value = list(value)  # without the reasons
    return f"{name} {code(json.dumps(value, ensure_ascii=False))}"


# --- quirks ---


def quirks() -> str:
    """Every difference with the test that shows it."""
    header = (
        "provider",
        "difference",
        "wire API, model",
        "known from",
        f"shown by, in `{TEST}`",
    )
    rows: list[list[str]] = []
    for quirk in QUIRKS:
        row = [
            code(quirk.provider),
            quirk.description,
            code(quirk.wire or "", quirk.model or ""),
            quirk.source,
            code(f"test_quirk[{quirk.id}]"),
        ]
        rows.append(row)
    return table(header, rows)


PARTS: Final = {"addresses": addresses, "values": values, "quirks": quirks}
"""Name in the page's markers -> the table between them."""


def regenerated(page: str) -> str:
    """The page with new tables."""
    for name, part in PARTS.items():
        begin = f"<!-- {name}: generated, see lab/provider_pages -->\n"
        end = f"<!-- {name}: end -->"
        before, rest = page.split(begin)
        after = rest.split(end, 1)[1]
        page = before + begin + part() + "\n" + end + after
    return page


def main() -> None:
    """Writes the snapshots and the page."""
    SNAPSHOTS.mkdir(parents=True, exist_ok=True)
    for provider in providers():
        path_of(provider).write_text(formatted(snapshot(provider)), encoding="utf-8")
    PAGE.write_text(regenerated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
