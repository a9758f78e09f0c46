"""Base64 in pieces: however a server cut it, one text that decodes to the whole."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.base64_text import joined_base64


@given(st.lists(st.binary(max_size=7)))
def test_pieces_that_are_each_encoded_by_themselves_join_to_the_whole(pieces: list[bytes]) -> None:
    assert base64.b64decode(
        joined_base64([base64.b64encode(piece).decode() for piece in pieces])
    ) == b"".join(pieces)


@given(st.binary(max_size=40), st.data())
def test_one_text_that_was_cut_into_fours_joins_to_itself(
    whole: bytes, data: st.DataObject
) -> None:
    text = base64.b64encode(whole).decode()
    cuts = sorted(
        {4 * cut for cut in data.draw(st.lists(st.integers(0, len(text) // 4)))} | {0, len(text)}
    )
    assert joined_base64([text[at:to] for at, to in pairwise(cuts)]) == text


@pytest.mark.parametrize(
    "pieces", [["QUI", "D"], ["é", "QQ=="], ["QQ==", "\ufdd0", "Qg=="], ["QQ==", "Q"], []]
)
def test_what_is_no_base64_is_joined_as_it_stands(pieces: list[str]) -> None:
    assert joined_base64(pieces) == "".join(pieces)
