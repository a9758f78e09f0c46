"""One instance of one member of a union, inside a whole response."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from streamlib_parsers import ResponseEvent, parse_body, parser
from streamlib_parsers.items import WireApi


@dataclass(frozen=True, slots=True)
class Member:
    """An instance of a union's member, and a response that holds it.

    Attributes:
        instance: its JSON values, which are followed into the events.
        body: the response.
        positions: fields that only say where the member belongs.
        is_stream: whether `body` is a stream.
    """

    sdk: str
    name: str
    wire_api: WireApi
    instance: Any
    body: bytes
    positions: set[str]
    is_stream: bool = True

    def events(self) -> list[ResponseEvent]:
        """What the parser makes of the response."""
        if not self.is_stream:
            return parse_body(self.wire_api, self.body)
        wire_parser = parser(self.wire_api)
        return wire_parser.feed(self.body) + wire_parser.close()


def models_of(union: Any) -> list[type[BaseModel]]:
    """The models of a union, whatever it is wrapped in."""
    if isinstance(union, type) and issubclass(union, BaseModel):
        return [union]
    models: list[type[BaseModel]] = []
    for argument in typing.get_args(union):
        models += models_of(argument)
    return models
