"""`stream.partial` of text and of arguments, plain and as a class, while a response streams."""

from __future__ import annotations

from typing import Any

import msgspec
import pydantic
import pytest

from streamlib import (
    UNSET,
    FunctionCall,
    OutputItemDone,
    Prompt,
    Reasoning,
    ResponseItem,
    ResponseStream,
    ToolSpec,
    assistant,
)
from streamlib.testing import MODEL, loopback


class City(msgspec.Struct):
    name: str
    people: int


class Model(pydantic.BaseModel):
    name: str
    people: int


TEXT = '{"name": "Oslo, the capital of Norway", "people": 700000}'
VALUE = {"name": "Oslo, the capital of Norway", "people": 700000}
CALL = FunctionCall("c1", "look", TEXT)


def same(view: Any, plain: dict[str, Any]) -> bool:
    """Whether a typed view shows what a plain one shows."""
    return (view.name, view.people) == (plain.get("name", UNSET), plain.get("people", UNSET))


ITEMS: list[ResponseItem] = [assistant(TEXT), CALL, assistant(f"```json\n{TEXT}\n```")]


async def check_views(stream: ResponseStream) -> None:
    """Reads a stream up to the end of its item, with every view after every event."""
    index = None
    async for event in stream:
        if isinstance(event, OutputItemDone):
            break
        index = getattr(event, "index", index)
        if index is None:
            continue
        plain = stream.partial(index)
        assert plain.items() <= VALUE.items() or TEXT.startswith(f'{{"name": "{plain["name"]}')
        assert stream.partial(index) is plain or not plain
        for kind in (City, Model):
            view: Any = stream.partial(index, kind)
            assert isinstance(view, kind)
            assert stream.partial(index, kind) is view
            assert same(view, plain)
    assert index is not None
    assert stream.partial(index) == VALUE
    assert stream.partial(index, City) == City(**VALUE)
    assert stream.partial(index, Model) == Model(**VALUE)


@pytest.mark.parametrize("wire", ["messages", "chat", "gemini"])
async def test_partial_grows_with_text_and_arguments(wire: Any) -> None:
    prompt = Prompt("A city?", tools=[ToolSpec("look")])
    async with loopback(wire, turns=[(item,) for item in ITEMS], chunk=40) as client:
        for _ in ITEMS:
            async with client.stream(prompt, MODEL) as stream:
                await check_views(stream)


async def test_partial_of_text_that_is_not_an_object_is_empty() -> None:
    turns = ((assistant("Hello!"),), (assistant("[1, 2, 3]"),))
    async with loopback("chat", turns=turns) as client:
        for expected in (UNSET, [1, 2, 3]):
            async with client.stream(Prompt("Hi"), MODEL) as stream:
                async for event in stream:
                    index = getattr(event, "index", None)
                    if index is not None:
                        assert stream.partial(index) == {}
                        assert stream.partial(index, City) == City(UNSET, UNSET)  # type: ignore[arg-type]
                assert stream.partial(0, list[int] | None) == expected


async def test_partial_of_an_item_without_json_is_an_error() -> None:
    turns = ((Reasoning(content="Hm."), assistant("x")),)
    async with (
        loopback("messages", turns=turns) as client,
        client.stream(Prompt("Hi"), MODEL) as stream,
    ):
        async for _ in stream:
            pass
        for index in (0, 7):
            with pytest.raises(LookupError):
                stream.partial(index)
            with pytest.raises(LookupError):
                stream.partial(index, City)


async def test_partial_has_what_came_before_it_was_called() -> None:
    async with (
        loopback("chat", turns=((assistant(TEXT),),), chunk=40) as client,
        client.stream(Prompt("Hi"), MODEL) as stream,
    ):
        async for _ in stream:
            if '"name": "Os' in stream.snapshot.text:
                break
        stream.partial(0)
        async for _ in stream.batches():
            # The second view is asked for later than the first.
            assert same(stream.partial(0, City), stream.partial(0))
        assert stream.partial(0, City) == City(**VALUE)
