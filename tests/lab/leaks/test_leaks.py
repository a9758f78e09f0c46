"""Two hundred secrets in streams that are split at random: none is left, and all were there."""

from __future__ import annotations

from lab.leaks.__main__ import SECRETS, TEXTS, count_every_split, count_leaks, redact
from lab.leaks.every_split import outputs_of
from lab.leaks.places import ENCODERS
from streamlib.pipeline.stages import chain


def test_replace_leaves_no_secret_in_any_place() -> None:
    counts = count_leaks(redact(), SECRETS * TEXTS, encode=8, seed=7)
    assert counts["leaks"] == {}
    assert counts["encoded"] == SECRETS // 8


def test_every_place_shows_a_secret_that_is_left() -> None:
    counts = count_leaks(chain(), 5 * TEXTS, encode=1, seed=7)
    places = {"deltas", "response", "recording", "log", *ENCODERS}
    places |= {f"{name} body" for name in ENCODERS}
    assert counts["leaks"] == dict.fromkeys(places, 5)


def test_every_split_of_a_text_lets_out_the_same() -> None:
    counts = count_every_split(7, texts=2)
    assert counts["leaks"] == counts["differing"] == 0
    assert counts["fewest_splits"] > 1_000_000


def test_every_split_that_leaks_is_counted() -> None:
    every = outputs_of(OneDeltaAtATime(), "a ab b", None)
    assert every.outputs == {"a - b": 16, "a ab b": 16}


class OneDeltaAtATime:
    """Removes "ab" where one delta has all of it, as a function of a delta would."""

    buffered = 0

    def feed(self, text: str) -> list[str]:
        return [text.replace("ab", "-")]

    def close(self) -> list[str]:
        return []
