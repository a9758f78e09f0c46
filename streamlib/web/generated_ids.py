"""Ids for messages without an id from the caller: nothing else in an encoder is random.

A page keeps messages by their ids, so they must differ. A constant repeats, and so may the ids of a
provider. Given an id, an encoder is deterministic.
"""

from __future__ import annotations

from uuid import uuid4


def new_id(kind: str) -> str:
    """Returns an id that no other message has, such as ``run-3f2c…``."""
    return f"{kind}-{uuid4().hex}"
