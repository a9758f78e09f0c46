"""Cohere v2 chat: the wire's usage object as `Usage`.

{"billed_units":{"input_tokens":65,"output_tokens":63},
 "tokens":{"input_tokens":508,"output_tokens":86,"reasoning_tokens":28},"cached_tokens":144}
"""

from __future__ import annotations

from typing import Any

from streamlib_parsers.usage import Usage, count


def usage(raw: dict[str, Any]) -> Usage:
    """The token counts of a usage object (wire: `usage`).

    `tokens` counts what the model read and wrote, with Cohere's own preamble; `billed_units` does
    not count the preamble, and stays in `Usage.raw`. Reasoning is part of the output,
    `cached_tokens` are part of the input. Tokens of images (``tokens.image_tokens``) are counted
    beside the input.
    """
    image_tokens = count(raw, "tokens.image_tokens")
    input_modalities: dict[str, int] = {}
    if image_tokens is not None:
        input_modalities["image"] = image_tokens
    return Usage(
        input_tokens=count(raw, "tokens.input_tokens"),
        output_tokens=count(raw, "tokens.output_tokens"),
        cache_read_input_tokens=count(raw, "cached_tokens"),
        reasoning_output_tokens=count(raw, "tokens.reasoning_tokens"),
        input_modalities=input_modalities,
        raw=raw,
    )
