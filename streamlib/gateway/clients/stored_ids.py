"""Ids of what a provider stores for its account: responses, conversations, containers, files.

Named clients share the gateway's key, and with it the account: an id that one of them got, or
guessed, would open another's conversation. So each may name those alone that its own responses
have brought, or that the route file lets it name (`ids`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from streamlib.gateway.clients.named_clients import NamedClient
from streamlib_parsers.response import Response

ID_FIELDS: Final = (
    "cachedContent",
    "container",
    "container_id",
    "conversation",
    "file_id",
    "file_ids",
    "previous_interaction_id",
    "previous_response_id",
    "vector_store_ids",
)
"""Fields that hold an id, a list of ids, or an object with an `id`."""

REFERENCE: Final = "item_reference"
"""Type of an input item of Responses that is the id of a stored one."""

NOT_IDS: Final = frozenset({"input_schema", "metadata", "parameters", "schema"})
"""Fields with the caller's own names in them."""

# An escape may hide the name of a field.
_MAY_HAVE_IDS: Final = re.compile(
    b"|".join([rb"\\u", REFERENCE.encode(), *[name.encode() for name in ID_FIELDS]])
)


def named_ids(body: bytes, client: NamedClient) -> list[str]:
    """The ids in the body of a request that its client must have got itself, each once."""
    if _MAY_HAVE_IDS.search(body) is None:
        return []
    ids = dict.fromkeys(_ids_in(msgspec.json.decode(body)))
    return [stored_id for stored_id in ids if not client.may_name(stored_id)]


def brought_ids(response: Response) -> list[str]:
    """The ids that the client of a response gets with it, each once."""
    ids = [item.id for item in response.items]
    ids += [response.response_id, *_ids_in(response.metadata)]
    ids += _ids_in(msgspec.to_builtins(response.items))
    return [stored_id for stored_id in dict.fromkeys(ids) if stored_id]


def _ids_in(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for element in value:
            yield from _ids_in(element)
    if not isinstance(value, dict):
        return
    if value.get("type") == REFERENCE:
        yield from _texts_of(value.get("id"))
    for name, inner in value.items():
        if name in ID_FIELDS:
            yield from _texts_of(inner)
        if name not in NOT_IDS:
            yield from _ids_in(inner)


def _texts_of(value: Any) -> Iterator[str]:
    """An id, those of a list, or that of an object."""
    if isinstance(value, dict):
        value = value.get("id")
    elements = value if isinstance(value, list) else [value]
    for element in elements:
        if isinstance(element, str) and element:
            yield element
