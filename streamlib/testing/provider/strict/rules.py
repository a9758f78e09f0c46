"""The types of a service's rules: functions of a request that raise a rejection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar

import msgspec
from msgspec import Struct

from streamlib.providers.models import CLAUDE, longest_prefix
from streamlib.testing.provider.strict.ledger import Ledger
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.json_text import objects_in

T = TypeVar("T")


class Rejection(Exception):
    """Why the real service refuses a request.

    Attributes:
        message: the error message, in the service's own words if they are known.
        param: the field that caused it, on wires whose errors name it (OpenAI).
        code: the error code, on wires whose errors have one (OpenAI).
        status: the HTTP status.
    """

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status


class StrictRequest(Struct, frozen=True):
    """A request as its rules read it.

    Attributes:
        wire_api: the wire of the request.
        body: the decoded body.
        headers: headers of the request, with names in lower case.
        model: the model's name, from the body or the path.
        ledger: signatures and responses that the provider issued.
    """

    wire_api: WireApi
    body: JsonObject
    headers: Mapping[str, str]
    model: str
    ledger: Ledger


Rule: TypeAlias = Callable[[StrictRequest], None]
"""A rule of a service, which raises the `Rejection` of a request that violates it. Its docstring
names the rule's number in docs/wires, and its source."""

FEWEST_TOKENS: Final = 1024
"""The smallest thinking budget of Claude."""


def check(rules: Iterable[Rule], request: StrictRequest) -> None:
    """Applies rules in their order.

    Raises:
        Rejection: the one of the first rule that the request violates.
    """
    for rule in rules:
        rule(request)


def below(path: str, key: str) -> str:
    """The path of a key of the object at `path`, which is "" for the body."""
    if not path:
        return key
    return f"{path}.{key}"


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def object_of(value: Any) -> JsonObject:
    """The value if it is an object, else an empty object."""
    if isinstance(value, dict):
        return value
    return {}


def string(value: Any) -> str:
    """The value if it is a text, else an empty text."""
    if isinstance(value, str):
        return value
    return ""


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether a JSON value is an integer; `true` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def unknown_key(values: JsonObject, known: Iterable[str]) -> str | None:
    """The first key that is not in `known`; None if all are."""
    allowed = frozenset(known)
    for key in values:
        if key not in allowed:
            return key
    return None


def missing_key(values: JsonObject, required: Iterable[str]) -> str | None:
    """The first required key that an object lacks; None if it has all."""
    for key in required:
        if key not in values:
            return key
    return None


def first_repeated(values: Iterable[T]) -> T | None:
    """The first value that occurs twice; None if no value does."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def check_repeated_calls(call_ids: Iterable[Any]) -> None:
    """No two calls of a conversation have the same id: outputs and clients find calls by it.

    Some services accept it. A model never makes such a conversation: an id was generated twice.
    """
    repeated = first_repeated([call_id for call_id in map(string, call_ids) if call_id])
    if repeated is not None:
        raise Rejection(f"Duplicate tool call found for call id {repeated}.")


def check_call_ids(request: StrictRequest) -> None:
    """No two calls in the messages have the same id, on wires with ``tool_calls``."""
    call_ids: list[Any] = []
    for message in objects_in(request.body.get("messages")):
        call_ids += [call.get("id") for call in objects_in(message.get("tool_calls"))]
    check_repeated_calls(call_ids)


def is_claude(request: StrictRequest) -> bool:
    """Whether the model's name is one of Claude."""
    return longest_prefix(request.model, CLAUDE) is not None


def all_blocks(request: StrictRequest) -> Iterator[tuple[str, JsonObject, JsonObject]]:
    """Each block of the messages, on wires with blocks: its path, its turn, and the block."""
    for n, turn in enumerate(objects_in(request.body.get("messages"))):
        for m, block in enumerate(objects_in(turn.get("content"))):
            yield f"messages.{n}.content.{m}", turn, block


def check_claude_budget(thinking: JsonObject, max_tokens: int | None) -> None:
    """A thinking budget of Claude is 1024 tokens or more, below the output limit."""  # rule T1
    if thinking["budget_tokens"] < FEWEST_TOKENS:
        raise Rejection(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        )
    if max_tokens is not None and thinking["budget_tokens"] >= max_tokens:
        raise Rejection("`max_tokens` must be greater than `thinking.budget_tokens`.")


def canonical(value: Any) -> str:
    """A JSON value as text; equal values have the same text, whatever the order of their keys."""
    return msgspec.json.encode(value, order="sorted").decode()


def schemas_in(schema: Any, path: str = "") -> Iterator[tuple[str, JsonObject]]:
    """A JSON schema and each schema inside it, with its JSON path; ``true`` is an empty one."""
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        return
    yield path, schema
    for keyword in ("properties", "$defs", "definitions"):
        for name, child in object_of(schema.get(keyword)).items():
            yield from schemas_in(child, f"{path}.{keyword}.{name}")
    for keyword in ("items", "additionalProperties"):
        yield from schemas_in(schema.get(keyword), f"{path}.{keyword}")
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for n, child in enumerate(_elements(schema.get(keyword))):
            yield from schemas_in(child, f"{path}.{keyword}.{n}")


def _elements(value: Any) -> Sequence[Any]:
    if isinstance(value, list):
        return value
    return ()
