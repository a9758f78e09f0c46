"""Notes in `native` never mix with what was received."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.items import JsonObject
from streamlib_parsers.notes import BESIDE, split_note, with_note
from tests.support.cases import each_case

KEYS = st.sampled_from([BESIDE, "a", "b"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_note_and_received_keys_are_both_read_again(native: JsonObject, note: JsonObject) -> None:
    assert split_note(with_note(native, BESIDE, note), BESIDE) == (native, note)


@each_case("value", [5, "", None, [], [1, 2], [{}], [{}, 1, 2]])
def test_other_values_under_the_name_are_received_keys(value: object) -> None:
    """An item that a caller made may have anything there."""
    assert split_note({BESIDE: value}, BESIDE) == ({BESIDE: value}, {})
