"""Token counts as all wires read them."""

from __future__ import annotations

from streamlib_parsers import usage
from streamlib_parsers.usage import count
from tests.support.cases import each_case


@each_case(
    "raw, expected",
    [
        ({"a": {"b": 3}, "c": 4}, 3),
        ({"a": {"b": None}, "c": 4}, 4),
        ({"a": 5, "c": 4.0}, 4),
        ({"a": {"b": True}, "c": 0}, 0),
        ({"a": {"b": -1}, "c": 1.5}, None),
        ({"a": [{"b": 1}], "c": "4"}, None),
        ({"a.b": 3}, None),
        ([], None),
    ],
)
def test_count_is_the_first_number_at_a_path(raw: object, expected: int | None) -> None:
    assert count(raw, "a.b", "c") == expected


def test_count_divides_its_paths_once() -> None:
    count({}, "test_usage.path")
    before = usage._keys_of.cache_info()
    for number in range(100):
        count({f"key {number}": {"path": number}}, "test_usage.path")
    after = usage._keys_of.cache_info()
    assert (after.misses, after.currsize) == (before.misses, before.currsize)
