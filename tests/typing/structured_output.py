"""Structured output, as an application type-checks it: classes in, values of these classes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import msgspec

from streamlib import Prompt, Response, ResponseStream
from streamlib.structured import JsonItems, json_items


class City(msgspec.Struct):
    name: str


@dataclass
class Data:
    name: str


class Entry(TypedDict):
    name: str


PROMPTS = [
    Prompt("?", output_schema=City),
    Prompt("?", output_schema=list[City]),
    Prompt("?", output_schema=Data, structured="tool"),
    Prompt("?", output_schema=Entry, structured="json_mode"),
    Prompt("?", output_schema=City | None),
    Prompt("?", output_schema={"type": "object"}),
]


def values(response: Response) -> None:
    assert_type(response.parsed(City), City)
    assert_type(response.parsed(list[City]), list[City])
    assert_type(response.parsed(Data), Data)
    assert_type(response.parsed(Entry), Entry)
    name: str = response.parsed(City | None).name
    del name


async def views(stream: ResponseStream) -> None:
    assert_type(stream.partial(0), dict[str, Any])
    assert_type(stream.partial(0, City), City)
    assert_type(stream.partial(0, list[City]), list[City])
    assert_type(JsonItems("/a", City).feed(""), list[City])
    async for city in json_items(stream, "/cities", City):
        assert_type(city, City)
