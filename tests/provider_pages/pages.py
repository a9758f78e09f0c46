"""Writes what is generated from the providers' values: the tables of docs/providers.md, and the snapshots of their requests.

python -m tests.provider_pages
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from streamlib.client.auth import variables_of
from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape, Thinking
from streamlib.providers.wire_specs import WIRE_SPECS
from tests.support.provider_cases import SNAPSHOTS, path_of, providers, snapshot, written
from tests.support.quirks import QUIRKS
from tests.support.shared import ROOT

PAGE: Final = ROOT / "docs" / "providers.md"
TEST: Final = "tests/streamlib/providers/test_providers.py"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    lines = [list(head), ["---"] * len(list(head)), *map(list, rows)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def code(*words: str) -> str:
    """Words as code."""
    return " ".join(f"`{word}`" for word in words if word)


# --- where they are ---


def places() -> str:
    """Names, wires, addresses, keys."""
    head = (
        "provider",
        "also called",
        "wires, the default first",
        "address",
        "key from",
        "key sent as",
        "list of models",
    )
    return table(head, ([code(one.name), code(*one.aliases), code(*one.wires), _address(one), _keys(one), code(one.auth), _models(one)]
                        for one in providers()))  # fmt: skip


def _address(one: Provider) -> str:
    return (
        "<br>".join(
            code(url)
            for url in dict.fromkeys((one.base_url, *one.wire_urls.values(), *one.other_urls))
            if url
        )
        or "`base_url=`"
    )


def _keys(one: Provider) -> str:
    optional = ["none"] if one.key_optional or one.auth == "none" else []
    return " or ".join([*([code(*variables_of(one))] if variables_of(one) else []), *optional])


def _models(one: Provider) -> str:
    path = WIRE_SPECS[one.wires[0]].models_path if one.models_path is None else one.models_path
    return code(path) if path else "no"


# --- what is particular ---


def values() -> str:
    """Thinking, echo, and every value that changes a request."""
    head = ("provider", "for models", "thinking", "reasoning is sent back as", "other values")
    return table(head, (row for one in providers() for row in _rows(one)))


def _rows(one: Provider) -> Iterable[list[str]]:
    chat = "chat" in one.wires
    yield [
        code(one.name),
        "",
        _thinking(one.chat.thinking) if chat else "",
        code(*one.chat.reasoning_echo) if chat else "",
        _others(one),
    ]
    for start, changed in one.model_overrides.items():
        shape = changed.get("chat", one.chat)
        other = ", ".join(
            _said(field, value) for field, value in changed.items() if field != "chat"
        )
        different = ", ".join([*_shape(shape, one.chat), *([other] if other else [])])
        yield [
            code(one.name),
            code(f"{start}…"),
            _thinking(shape.thinking),
            code(*shape.reasoning_echo),
            different or "as above",
        ]


def _thinking(style: Thinking | None) -> str:
    if style is None:
        return "no field for it"
    fields = {"on": style.on or style.plain, "off": style.off}
    said = [f"{name} {code(json.dumps(value))}" for name, value in fields.items() if value]
    return "<br>".join(
        [
            *said,
            *(
                f"{name} {code(path)}"
                for name, path in (("level", style.effort), ("tokens", style.budget))
                if path
            ),
        ]
    )


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


def _others(one: Provider) -> str:
    said = [_said(name, value) for name in FIELDS if (value := getattr(one, name))]
    if one.call_ids:
        said.append(f"call ids: {code(f'[{one.call_ids.allowed}]{{{one.call_ids.longest}}}')}")
    return ", ".join([*said, *(_shape(one.chat, ChatShape()) if "chat" in one.wires else ())])


def _shape(shape: ChatShape, usual: ChatShape) -> list[str]:
    skipped = ("thinking", "reasoning_echo")
    names = [
        name
        for name in shape.__struct_fields__
        if name not in skipped and getattr(shape, name) != getattr(usual, name)
    ]
    return [_said(name, getattr(shape, name)) for name in names]


def _said(name: str, value: Any) -> str:
    short = list(value) if name.startswith("unsupported") else value
    return f"{name} {code(json.dumps(short, ensure_ascii=False))}"


# --- quirks ---


def quirks() -> str:
    """Row by row, with the test that shows each."""
    rows = (
        [
            code(one.provider),
            one.says,
            code(one.wire or "", one.model or ""),
            one.source,
            code(f"test_a_quirk[{one.id}]"),
        ]
        for one in QUIRKS
    )
    return table(
        ("provider", "difference", "wire API, model", "known from", f"shown by, in `{TEST}`"), rows
    )


PARTS: Final = {"places": places, "values": values, "quirks": quirks}


def regenerated(page: str) -> str:
    """The page with its tables made anew."""
    for name, part in PARTS.items():
        begin, end = (
            f"<!-- {name}: generated, see tests/provider_pages -->\n",
            f"<!-- {name}: end -->",
        )
        before, rest = page.split(begin)
        page = before + begin + part() + "\n" + end + rest.split(end, 1)[1]
    return page


def main() -> None:
    """Writes everything."""
    SNAPSHOTS.mkdir(parents=True, exist_ok=True)
    for one in providers():
        path_of(one).write_text(written(snapshot(one)), encoding="utf-8")
    PAGE.write_text(regenerated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
