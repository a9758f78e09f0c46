"""Redacts keys and tokens in texts that are shown: messages, error objects, logs.

    Incorrect API key provided: sk-proj-4f9a…      ->  Incorrect API key provided: ***
    Authorization: Bearer eyJhbGciOi…              ->  Authorization: ***

Providers echo the key they refuse, proxies echo complete requests. Text that looks like a key is
masked whatever its meaning: one masked word too many costs a reader a moment, a key in a log costs
the key. All patterns are linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
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
    r"(?:gsk|r8|tgp_v1|gh[oprsu]|github_pat)_\w{8,}",
    r"hf_[A-Za-z0-9]{16,}",  # not the function "hf_hub_download"
    r"fw_\w{16,}",
    r"xox[abcdeprs]-[\w%+/=-]{10,}",  # Slack: bots, users, sessions; not "xoxo-"
    r"x(?:app-\d|wfp)-[\w-]{10,}",  # Slack: apps, workflows; not the packages "xapp-…"
    r"hooks\.slack\.com/(?:services|triggers|workflows)/[\w+/]{16,}",  # the address is the key
    r"gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct)-[\w-]{16,}(?:\.\w{2,}){0,2}",  # GitLab
    r"npm_[A-Za-z0-9]{30,}",  # not the variables "npm_config_…"
    r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9+/=]{16,}",  # Stripe; secrets of webhooks
    # JSON web token. Inside a word its first part is short: each "eyJ-" of a long text may begin
    # one, and would be read to the end of the text.
    r"(?:(?<![\w-])eyJ[\w-]{8,}+|eyJ[\w-]{8,1000}+)\.[\w-]{8,}(?:\.[\w-]*)?",
)
_LABEL: Final = (
    r"(?P<label>\b(?:x-)?(?:goog-)?"
    r"(?:api[-_ ]?key|authorization|access[-_ ]token|secret(?:[-_ ]access[-_ ]key)?|password)"
    r"(?: provided)?[\"']?\s{0,4}[:=]\s{0,4}[\"']?)"
    r"(?:(?:bearer|basic)\s{1,4})?[^\s\"',;&)}\]]*[^\s\"',;&)}\].]"
)

_USER: Final = r"(?P<user>://)[^\s/@:\"']{0,200}:[^\s/@\"']{1,200}(?=@)"
"""User and password of a URL."""

_TEXT_LENGTH: Final = 1 << 16
"""Characters of one text that are shown."""
_ENTRIES: Final = 256
"""Entries of one object or list that are shown."""
_DEPTH: Final = 32
"""Levels of nesting that are shown."""


@cache  # compiled by the first failure: `import streamlib` would take 0.7 ms longer
def _secret() -> re.Pattern[str]:
    return re.compile(
        rf"(?i:{_LABEL})|(?P<scheme>\b(?i:bearer)\s{{1,4}})[\w.~+/=-]{{6,}}"
        rf"|(?P<query>[?&]key=)[^&\s\"']+|{_USER}"
        rf"|(?<![A-Za-z0-9])(?:{'|'.join(_SHAPES)})"
    )


@cache
def _names() -> re.Pattern[str]:
    return re.compile(
        r"(?i)(?:x-)?(?:goog-)?(?:api[-_]?key|(?:access|refresh|id|auth|session)[-_]?token"
        r"|x(?:[-_][a-z0-9]{1,40}){1,3}[-_]token|authorization|cookie|set-cookie|secret|password)"
    )


def redact(text: str) -> str:
    """The text with everything that looks like a key replaced by ``***``."""
    return _secret().sub(_masked, text)


def redacted_parts(text: str, window: int = 1 << 16) -> Iterator[str]:
    """`redact(text)` in parts: a long text keeps the interpreter for 0.15 s a megabyte.

    Args:
        text: any text.
        window: characters that are looked at for a part; a key may be as long as that.
    """
    start = 0
    while start < len(text):
        end = start + window
        parts: list[str] = []
        position = start
        # What begins in this window may end in the next one.
        for match in _secret().finditer(text, start, end + window):
            if match.start() >= end:
                break
            parts += (text[position : match.start()], _masked(match))
            position = match.end()
        stop = max(position, min(end, len(text)))
        parts.append(text[position:stop])
        yield "".join(parts)
        start = stop


def is_key_name(name: str) -> bool:
    """Whether a field of this name holds a key: `api_key`, `Authorization`, `password` …."""
    return _names().fullmatch(name) is not None


def redact_value(value: Any, depth: int = 0) -> Any:
    """A JSON value that can be shown: keys masked, valid Unicode, bounded in size and depth."""
    if isinstance(value, str):
        text = redact(scrub(value[:_TEXT_LENGTH]))
        return text.encode("utf-8", "replace").decode("utf-8")
    if not isinstance(value, (dict, list, tuple)):
        return value
    if depth >= _DEPTH:
        return "…"
    if isinstance(value, dict):
        return _redact_object(value, depth)
    return [redact_value(element, depth + 1) for element in value[:_ENTRIES]]


def _redact_object(value: dict[Any, Any], depth: int) -> dict[Any, Any]:
    redacted: dict[Any, Any] = {}
    for key in list(value)[:_ENTRIES]:
        name = str(key)
        inner = value[key]
        if isinstance(inner, str) and is_key_name(name):
            inner = MASK
        else:
            inner = redact_value(inner, depth + 1)
        redacted[redact_value(name)] = inner
    return redacted


def _masked(match: re.Match[str]) -> str:
    return (match["label"] or match["scheme"] or match["query"] or match["user"] or "") + MASK
