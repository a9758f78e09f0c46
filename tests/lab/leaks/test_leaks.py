"""Two hundred secrets in streams that are split at random: none is left, and all were there."""

from __future__ import annotations

from lab.leaks.__main__ import SECRETS, TEXTS, count_leaks, redact
from lab.leaks.places import ENCODERS
from streamlib.pipeline.stages import chain


def test_replace_leaves_no_secret_in_any_place() -> None:
    counts = count_leaks(redact(), SECRETS * TEXTS, encode=8, seed=7)
    assert counts["leaks"] == {}
    assert counts["encoded"] == SECRETS // 8


def test_every_place_shows_a_secret_that_is_left() -> None:
    counts = count_leaks(chain(), 5 * TEXTS, encode=1, seed=7)
    places = {"deltas", "response", "recording", *ENCODERS, *[f"{name} body" for name in ENCODERS]}
    assert counts["leaks"] == dict.fromkeys(places, 5)
