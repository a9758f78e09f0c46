"""Names that callers of 0.1.0 write as keywords stay, unless the changelog lists their new name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from streamlib.gateway import Gateway
from streamlib.pipeline import until
from streamlib.providers.shapes import Thinking
from streamlib.recording.files import kept_headers
from streamlib.recording.replay import pieces
from streamlib.testing import Behaviour, serve, strategies
from streamlib_parsers.dialects import Opener
from tests.support.cases import each_case


@each_case(
    "public, parameter",
    [
        (Behaviour, "at"),
        (serve, "answers"),
        (until, "found"),
        (Thinking, "words"),
        (Opener, "where"),
        (pieces, "split"),
        (kept_headers, "headers"),
        (strategies.answers, "failing"),
        (strategies.odd_streams, "wire_api"),
        (Gateway.answer, "scope"),
    ],
)
def test_parameter_keeps_its_public_name(public: Callable[..., Any], parameter: str) -> None:
    assert parameter in inspect.signature(public).parameters
