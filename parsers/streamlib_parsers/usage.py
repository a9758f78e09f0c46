"""Token counts in one meaning for every wire: inclusive, as in OpenTelemetry's GenAI conventions.

`input_tokens` includes cache reads and writes, `output_tokens` includes reasoning. `None` means the provider did not say; it
is never 0 for unknown. Each wire's formula stands in that wire's own file and uses `count` to look numbers up.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import astuple


class Usage(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Tokens of one response so far.

    cache_write_5m / 1h / 24h: parts of `cache_write_input_tokens` by lifetime, where the provider tells them apart.
    input_modalities, output_modalities, cache_modalities: parts of the totals by `text`, `image`, `audio`, `video`, `document`.
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
        """Whether every count equals the other's; `raw` is not looked at."""
        if (
            other is None or self.output_tokens != other.output_tokens
        ):  # what differs nearly always: some wires count in every chunk
            return False
        return astuple(self)[:-1] == astuple(other)[:-1]  # `raw` is the last field

    def as_otel(self) -> dict[str, int]:
        """The counts under OpenTelemetry's GenAI attribute names (conventions of 2026-10); unknown ones are left out."""
        named = {attribute: getattr(self, field) for field, attribute in OTEL_USAGE.items()}
        for direction, parts in (
            ("input", self.input_modalities),
            ("output", self.output_modalities),
        ):
            named.update(
                {
                    f"gen_ai.usage.{modality}.{direction}_tokens": number
                    for modality, number in parts.items()
                }
            )
        return {attribute: number for attribute, number in named.items() if number is not None}


OTEL_USAGE: Final = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_input_tokens": "gen_ai.usage.cache_write.input_tokens",
    "reasoning_output_tokens": "gen_ai.usage.reasoning.output_tokens",
}


def count(raw: Any, *paths: str) -> int | None:
    """The first whole, non-negative number at one of the dotted `paths` of a usage object, else None."""
    for path in paths:
        value = raw
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def total(*counts: int | None) -> int | None:
    """The sum of the counts that are known, or None where none is."""
    known = [value for value in counts if value is not None]
    return sum(known) if known else None


def overlay(raw: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """`newer` over `raw`, key by key: cumulative reports replace, they never add; a null or a missing key keeps what was said."""
    return {**raw, **{key: value for key, value in newer.items() if value is not None}}
