"""Somebody's request -> `Prompt`: one file a wire, the inverse of the builder of the same name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from streamlib.errors import invalid_request
from streamlib.request.prompt import Prompt
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import WIRE_APIS


def parse_request(
    wire_api: WireApi,
    body: bytes,
    *,
    headers: Mapping[str, str] | None = None,
    path: str | None = None,
) -> Prompt:
    """The prompt that a request of this wire asks for, with `.model` and `.stream`.

    headers, path: for wires that keep facts there (Gemini and Bedrock name the model in the path). Raises
    `StreamError(invalid_request)` on anything that is not such a request.
    """
    if wire_api not in WIRE_APIS:
        raise ValueError(f"unknown wire API {wire_api!r}; one of {', '.join(WIRE_APIS)}")
    module: Any = importlib.import_module(f"streamlib.wires.{wire_api}.decode")
    try:
        return _checked(module.decode(body, headers or {}, path or ""), wire_api)
    except KeyError as error:
        raise invalid_request(
            f"not a {wire_api} request: {error} is missing, or is no word of this wire"
        ) from None
    except (
        msgspec.DecodeError,
        UnicodeError,
        RecursionError,
        TypeError,
        AttributeError,
        ValueError,
    ) as error:
        raise invalid_request(f"not a {wire_api} request: {error}") from None


WHOLE: Final = ("max_output_tokens", "top_k", "seed", "n", "logprobs")


def _checked(prompt: Prompt, wire_api: WireApi) -> Prompt:
    """A client may write anything into the place of a text or number, and builders rely on the types. Schemas are theirs to judge."""
    numbers = {name: value for name in WHOLE if isinstance(value := getattr(prompt, name), float)}
    prompt = msgspec.structs.replace(
        prompt, **{name: int(value) for name, value in numbers.items() if value.is_integer()}
    )
    if prompt.extra is not None:
        prompt = msgspec.structs.replace(prompt, extra_wire=wire_api)
    tools = [msgspec.structs.replace(tool, schema=None) for tool in prompt.tools]
    msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(prompt, tools=tools)), Prompt)
    return prompt
