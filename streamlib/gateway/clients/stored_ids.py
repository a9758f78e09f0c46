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

_IDS: Final = (
    "cached_content",
    "container",
    "container_id",
    "conversation",
    "file_id",
    "file_ids",
    "file_search_store_names",
    "previous_interaction_id",
    "previous_response_id",
    "vector_store_ids",
)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


ID_FIELDS: Final = frozenset([*_IDS, *map(_camel, _IDS)])
"""Fields that hold an id, a list of ids, or an object with an `id`. Google's services read both
forms of a name."""

OBJECT_FIELDS: Final = frozenset({"audio", "prompt", "voice"})
"""Fields that hold an id if they are an object; as a text they are something else."""

REFERENCE: Final = "item_reference"
"""Type of an input item of Responses that is the id of a stored one; it may be left out."""

IMAGE: Final = "image_generation_call"
"""Type of an input item of Responses that is the id of a stored image, where the image itself
(``result``) is not in it."""

OWN_SKILL: Final = "skill_"
"""How the id of an account's skill begins; the provider's own ones have names (``pptx``)."""

NOT_IDS: Final = frozenset(
    {"args", "arguments", "input_schema", "metadata", "parameters", "response", "schema"}
)
"""Fields with the caller's own names in them: schemas, arguments of calls, their outputs."""

_STORED_FILE: Final = re.compile(
    r"(?:gs|s3)://|https?://generativelanguage\.googleapis\.com/|files/", re.IGNORECASE
)
"""How the address of a file begins that a provider reads with the gateway's key; it reads any other
address as anybody may."""


def named_ids(body: bytes, client: NamedClient) -> list[str]:
    """The ids in the body of a request that its client must have got itself, each once."""
    request = msgspec.json.decode(body)
    ids = dict.fromkeys([*_bare_references(request), *_ids_in(request)])
    return [stored_id for stored_id in ids if not client.may_name(stored_id)]


def brought_ids(response: Response) -> list[str]:
    """The ids that the client of a response gets with it, each once."""
    ids = [item.id for item in response.items]
    ids += [response.response_id, *_ids_in(response.metadata)]
    ids += _ids_in(msgspec.to_builtins(response.items))
    return [stored_id for stored_id in dict.fromkeys(ids) if stored_id]


def _bare_references(request: Any) -> Iterator[str]:
    """The ids of input items of Responses whose content is at the provider alone."""
    items = request.get("input") if isinstance(request, dict) else None
    for item in items if isinstance(items, list) else []:
        if not isinstance(item, dict):
            continue
        is_bare = item.get("type") is None and item.keys() <= {"id", "type"}
        is_stored_image = item.get("type") == IMAGE and not item.get("result")
        if is_bare or is_stored_image:
            yield from _texts_of(item.get("id"))


def _ids_in(value: Any, *, is_block: bool = False) -> Iterator[str]:
    """The ids in a value.

    Args:
        value: any JSON value.
        is_block: whether it is an element of a list, as a block of content is.
    """
    if isinstance(value, list | tuple):
        for element in value:
            yield from _ids_in(element, is_block=True)
    if not isinstance(value, dict):
        return
    if value.get("type") == REFERENCE:
        yield from _texts_of(value.get("id"))
    is_call = is_block and str(value.get("type")).endswith("tool_use")
    for name, inner in value.items():
        if _holds_id(name, inner):
            yield from _texts_of(inner)
        elif isinstance(inner, str) and name.lower().endswith(("uri", "url")):
            if _STORED_FILE.match(inner):
                yield inner
        # The input of a call of Messages is its arguments.
        if name not in NOT_IDS and not (is_call and name == "input"):
            yield from _ids_in(inner)


def _holds_id(name: str, value: Any) -> bool:
    if name == "skill_id":
        return str(value).startswith(OWN_SKILL)
    return name in ID_FIELDS or (name in OBJECT_FIELDS and isinstance(value, dict))


def _texts_of(value: Any) -> Iterator[str]:
    """An id, those of a list, or that of an object."""
    if isinstance(value, dict):
        value = value.get("id")
    elements = value if isinstance(value, list) else [value]
    for element in elements:
        if isinstance(element, str) and element:
            yield element
