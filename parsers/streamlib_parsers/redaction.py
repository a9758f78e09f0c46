"""Keys and tokens out of whatever is shown: messages, error objects, logs.

    Incorrect API key provided: sk-proj-4f9a…      ->  Incorrect API key provided: ***
    Authorization: Bearer eyJhbGciOi…              ->  Authorization: ***

Providers echo the key they refuse, proxies echo whole requests. What looks like a key is masked whatever it is about: a masked
word too many costs a reader a moment, a key in a log costs the key. All patterns are linear in the text.
"""

from __future__ import annotations

import re
from typing import Any, Final

from streamlib_parsers.json_text import scrub

MASK: Final = "***"

_SHAPES: Final = (
    r"[srp]k-[\w-]{4,}",  # OpenAI, Anthropic, OpenRouter, DeepSeek, …
    r"AIza[\w-]{10,}",  # Google API key
    r"AQ\.[\w-]{16,}",  # Vertex express key
    r"ya29\.[\w.-]{8,}",  # Google OAuth
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}",  # AWS
    r"(?:ABSK|bedrock-api-key-)[\w+/=-]{16,}",  # Bedrock
    r"(?:xai|nvapi|csk|pplx)-\w[\w-]{6,}",
    r"(?:gsk|hf|r8|tgp_v1|gh[oprsu]|github_pat)_\w{8,}",
    r"fw_\w{16,}",
    r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",  # JSON web token
)
_LABEL: Final = (
    r"(?P<label>\b(?:x-)?(?:goog-)?(?:api[-_ ]?key|authorization|access[-_ ]token|secret(?:[-_ ]access[-_ ]key)?|password)"
    r"(?: provided)?[\"']?\s{0,4}[:=]\s{0,4}[\"']?)(?:(?:bearer|basic)\s{1,4})?[^\s\"',;&)}\]]*[^\s\"',;&)}\].]"
)
_SECRET: Final = re.compile(
    rf"(?i:{_LABEL})|(?P<scheme>\b(?i:bearer)\s{{1,4}})[\w.~+/=-]{{6,}}"
    rf"|(?P<query>[?&]key=)[^&\s\"']+|(?<![A-Za-z0-9])(?:{'|'.join(_SHAPES)})"
)
_NAMES: Final = re.compile(
    r"(?i)(?:x-)?(?:goog-)?(?:api[-_]?key|(?:access|refresh|id|auth|session)[-_]?token|authorization|cookie|set-cookie|secret|password)"
)

_LONGEST: Final = 1 << 16
_MOST: Final = 256
_DEEPEST: Final = 32


def redact(text: str) -> str:
    """`text` with everything that looks like a key shown as `***`."""
    return _SECRET.sub(_masked, text)


def redact_value(value: Any, depth: int = 0) -> Any:
    """A JSON value fit to be shown: keys masked, valid Unicode, bounded in depth (32), entries (256) and length of a text (64 KiB)."""
    if isinstance(value, str):
        return redact(scrub(value[:_LONGEST])).encode("utf-8", "replace").decode("utf-8")
    if not isinstance(value, (dict, list, tuple)):
        return value
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {
            redact_value(str(name)): _entry(str(name), one, depth)
            for name, one in list(value.items())[:_MOST]
        }
    return [redact_value(one, depth + 1) for one in value[:_MOST]]


def _entry(name: str, value: Any, depth: int) -> Any:
    return (
        MASK
        if isinstance(value, str) and _NAMES.fullmatch(name)
        else redact_value(value, depth + 1)
    )


def _masked(match: re.Match[str]) -> str:
    return (match["label"] or match["scheme"] or match["query"] or "") + MASK
