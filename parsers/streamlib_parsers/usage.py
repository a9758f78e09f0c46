"""Token counts with one meaning for every wire: that of OpenTelemetry's GenAI conventions.

`Usage.input_tokens` includes cache reads and writes, `Usage.output_tokens` includes reasoning. None
means that the provider did not report the number; unknown is never 0. Each wire's formula is in
that wire's own file, and reads numbers with `count`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import astuple

from streamlib_parsers.upward import upward


class Usage(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Tokens of one response so far.

    Attributes:
        input_tokens: includes cache reads and writes.
        output_tokens: includes reasoning.
        cache_read_input_tokens: read from a prompt cache.
        cache_write_input_tokens: written to a prompt cache.
        reasoning_output_tokens: spent on reasoning.
        cache_write_5m_input_tokens: part of the cache writes that lives five minutes.
        cache_write_1h_input_tokens: part of the cache writes that lives an hour.
        cache_write_24h_input_tokens: part of the cache writes that lives a day.
        input_modalities: parts of the input by modality (text, image, audio, video, document).
        output_modalities: the same for the output.
        cache_modalities: the same for cache reads.
        raw: the provider's own usage object, merged over the stream.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    reasoning_output_tokens: int | None = None
    cache_write_5m_input_tokens: int | None = None
    cache_write_1h_input_tokens: int | None = None
    cache_write_24h_input_tokens: int | None = None
    input_modalities: dict[str, int] = {}
    output_modalities: dict[str, int] = {}
    cache_modalities: dict[str, int] = {}
    raw: dict[str, Any] = {}

    def same_numbers(self, other: Usage | None) -> bool:
        """Whether every count equals the other's; `raw` is ignored."""
        if other is None:
            return False
        # `raw` is the last field.
        return astuple(self)[:-1] == astuple(other)[:-1]

    def plus(self, other: Usage) -> Usage:
        """The sum of two, without `raw`. A count that one of them lacks is the other's."""
        sums: dict[str, Any] = {}
        for name in self.__struct_fields__[:-1]:  # `raw` is the last field
            mine, others = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                sums[name] = _joined(mine, others)
            else:
                sums[name] = total(mine, others)
        return Usage(**sums)

    def _repr_html_(self) -> str:
        shown: str = upward("display.notebook_text", "table_html")(("tokens", ""), self._rows())
        return shown

    def _repr_markdown_(self) -> str:
        shown: str = upward("display.notebook_text", "table_markdown")(("tokens", ""), self._rows())
        return shown

    def _rows(self) -> list[tuple[str, str]]:
        """The known counts with their names."""
        rows: list[tuple[str, str]] = []
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int):
                rows.append((name, f"{value:,}"))
            elif isinstance(value, dict) and name != "raw":
                for modality, number in value.items():
                    rows.append((f"{name}: {modality}", f"{number:,}"))
        return rows

    def as_otel(self) -> dict[str, int]:
        """The known counts under OpenTelemetry's GenAI attribute names (conventions of 2026-11)."""
        attributes: dict[str, int] = {}
        for name, attribute in OTEL_USAGE.items():
            number = getattr(self, name)
            if number is not None:
                attributes[attribute] = number
        for modality, number in self.input_modalities.items():
            attributes[f"gen_ai.usage.{modality}.input_tokens"] = number
        for modality, number in self.output_modalities.items():
            attributes[f"gen_ai.usage.{modality}.output_tokens"] = number
        for modality, number in self.cache_modalities.items():
            attributes[f"gen_ai.usage.{modality}.cache_read.input_tokens"] = number
        return attributes


OTEL_USAGE: Final = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_input_tokens": "gen_ai.usage.cache_write.input_tokens",
    "reasoning_output_tokens": "gen_ai.usage.reasoning.output_tokens",
}


def count(raw: Any, *paths: str) -> int | None:
    """The first non-negative integer at one of the dotted `paths` of a usage object, else None.

    The paths must be constants of the code: they are kept for good, divided into their keys.
    """
    if not isinstance(raw, dict):
        return None
    for first, rest in _keys_of(paths):
        value = raw.get(first)
        # Most paths lead nowhere: a server has one of several names for a count.
        if value is None:
            continue
        for key in rest:
            value = value.get(key) if isinstance(value, dict) else None
        counted = number(value)
        if counted is not None:
            return counted
    return None


def number(value: Any) -> int | None:
    """A count; None for anything else, a bool too."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and value >= 0:
        return value
    return None


Count: TypeAlias = Annotated[int, Meta(ge=0)] | None
Counts = TypeVar("Counts", bound=Struct)


def counts_of(raw: dict[str, Any], kind: type[Counts]) -> Counts:
    """The counts of a usage object.

    Args:
        raw: the object.
        kind: its counts by name, and structs of counts; None stands for what is no count.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        pass
    # Read name by name: what is no count is left out, and 4.0 is one.
    known: dict[str, Any] = {}
    for name in kind.__struct_fields__:
        value = raw.get(name)
        if isinstance(value, dict):
            value = {key: number(inner) for key, inner in value.items()}
        else:
            value = number(value)
        with suppress(msgspec.ValidationError):
            msgspec.convert({name: value}, kind)
            known[name] = value
    return msgspec.convert(known, kind)


@cache
def _keys_of(paths: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """The first key of each path, and the others."""
    divided = [path.split(".") for path in paths]
    return [(keys[0], keys[1:]) for keys in divided]


def total(*counts: int | None) -> int | None:
    """The sum of the known counts, or None where none is known."""
    known = [value for value in counts if value is not None]
    if not known:
        return None
    return sum(known)


def _joined(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    """The sums of two tables of counts."""
    joined = dict(first)
    for name, value in second.items():
        joined[name] = joined.get(name, 0) + value
    return joined


def overlay(raw: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """`newer` over `raw`, key by key.

    Cumulative reports replace, they never add; a null or a missing key keeps the earlier value.
    """
    if None in newer.values():
        newer = {key: value for key, value in newer.items() if value is not None}
    return raw | newer
