"""Partial JSON as jiter reads it: our view of every beginning of a text is jiter's.

jiter (`from_json(…, partial_mode="trailing-strings")`) is what pydantic reads partial JSON with.
Its public tests (pydantic/jiter, crates/jiter-python/tests/test_jiter.py) cut an array, an object,
an object with a text at its end, and nested ones at every character; these are texts of our own of
the same kinds, and more. One difference is meant: a number at the end of the text, which may
continue, is not shown here, because a view never changes what it showed.
"""

from __future__ import annotations

import re
from typing import Any

import jiter

from streamlib_parsers.json_fragments import IncrementalJson

CASES = [
    '["alpha", false, null, 7, "beta',  # an array
    "[",
    '{"x": 10, "y": 20, "z',  # an object, in a key
    '{"x": 10, "y": 20, "z": "tex',  # and in a text
    '{"book": "Moby Dick", "writer": "Herman Mel',
    '{"x": 1, "y": 2, "z": [3, 4, {"w": 5, ',  # nested
    '{"whole": 1, "large": 987654321098765432109876543210, "real": 3.25, "exp": -1e-5}',
    '["one\\ttab", "quote \\" and \\\\ and \\/", "\\u00e9\\ud83d\\ude00"]',
    '{"\u2603": "\u00a3", "\u4e2d": "\u6587"}',
    "  [ true , [ ] , { } , [ { } ] ]  ",
    '[[[["deep"]]], {"a": {"b": {"c": [null]}}}]',
    '{"a": "", "b": [""], "": {"": ""}}',
    '"a text alone"',
    "[1.5, 2, -3, 0.25]",
    "[true, false, null]",
]

NUMBER_AT_END = re.compile(r"[-+0-9.eE]+$")


def expected_view(text: str) -> Any:
    """jiter's view, without a number that may continue; None where it has nothing to show."""
    number = NUMBER_AT_END.search(text)
    is_number = number is not None and text[: number.start()].rstrip()[-1:] in ("", ",", ":", "[")
    if is_number and number is not None:
        text = text[: number.start()]
    try:
        return jiter.from_json(text.encode(), partial_mode="trailing-strings")
    except ValueError:
        return None


def differences() -> tuple[int, list[str]]:
    """How many beginnings were compared, and those whose views differ."""
    compared = 0
    differing: list[str] = []
    for case in CASES:
        for length in range(1, len(case) + 1):
            text = case[:length]
            view = IncrementalJson()
            view.feed(text)
            compared += 1
            if view.partial() != expected_view(text):
                differing.append(f"{text!r}: {view.partial()!r}, jiter: {expected_view(text)!r}")
    return compared, differing
