"""What the strict mode of a wire's structured output accepts of JSON Schema."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class SchemaRules(Struct, frozen=True):
    """JSON Schema as one wire's strict mode accepts it. Objects are closed on all of them.

    Attributes:
        keywords: keywords the wire knows; any other moves into the description.
        all_required: every property is required; an optional one becomes nullable.
        bare_refs: nothing may be beside a `$ref`.
    """

    keywords: frozenset[str]
    all_required: bool = False
    bare_refs: bool = False


COMMON_KEYWORDS: Final = frozenset(
    {
        "type",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "$ref",
        "$defs",
        "definitions",
        "description",
        "title",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "format",
        "minItems",
    }
)
"""Keywords that every strict mode knows."""

OPENAI_KEYWORDS: Final = (COMMON_KEYWORDS - {"allOf"}) | {
    "default",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "maxItems",
}
"""Keywords of OpenAI's strict mode."""
