"""Base64 in chunks: however a server split it, one text that decodes to all of the data."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.base64_text import joined_base64


@given(st.lists(st.binary(max_size=7)))
def test_joined_base64_decodes_separately_encoded_chunks(chunks: list[bytes]) -> None:
    texts = [base64.b64encode(chunk).decode() for chunk in chunks]
    assert base64.b64decode(joined_base64(texts)) == b"".join(chunks)


@given(st.binary(max_size=40), st.data())
def test_joined_base64_restores_a_text_split_at_fours(content: bytes, data: st.DataObject) -> None:
    text = base64.b64encode(content).decode()
    quartets = data.draw(st.lists(st.integers(0, len(text) // 4)))
    offsets = sorted({0, len(text), *(4 * quartet for quartet in quartets)})
    assert joined_base64([text[start:end] for start, end in pairwise(offsets)]) == text


@pytest.mark.parametrize(
    "chunks",
    [
        ["QUI", "D"],
        ["é", "QQ=="],
        ["QQ==", "\ufdd0", "Qg=="],
        ["QQ==", "Q"],
        ["QQ==", "Q!Q=="],
        # The unused bits of the last letter are not zero: decoded and encoded again, they were.
        ["QUJD", "QR=="],
        [],
    ],
)
def test_joined_base64_keeps_invalid_text(chunks: list[str]) -> None:
    assert joined_base64(chunks) == "".join(chunks)
