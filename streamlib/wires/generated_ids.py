"""Ids that an encoder makes where neither the events nor the caller bring one.

Nothing else in an encoder is random. Clients keep responses, items and messages by their ids:
coding agents merge the turns of a conversation that have the same one. A constant would repeat, so
each id is random; ids of items are made from the id of their response. Given an id by the caller,
an encoder is deterministic.
"""

from __future__ import annotations

from uuid import uuid4


def new_id(prefix: str) -> str:
    """An id that no other response or message has, such as ``msg_3f2c…``."""
    return prefix + uuid4().hex
