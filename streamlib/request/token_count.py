"""How many tokens a prompt has: counted by its provider, anchored on a response, or estimated.

An anchored count is what the provider reported for the newest response, and an estimate of the
items that follow it. It is far better than an estimate of the whole: what the provider adds to a
request (instructions for tools, a template) is in the reported number, and often more than a short
prompt. docs/history.md has the errors of each on recorded conversations.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from streamlib.request.anchors import Anchor, AnchoredItems
from streamlib.request.build import Request, build_for
from streamlib.request.endpoints import url_below
from streamlib.request.origins import same_origin
from streamlib.request.prompt import Prompt
from streamlib.request.target import Target
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, ResponseItem, WireApi
from streamlib_parsers.json_text import DECODE_ERRORS
from streamlib_parsers.response import Response
from streamlib_parsers.stream_error import StreamError

CHARACTERS: Final = 4
"""Average number of characters in a token of English."""

MEDIUM: Final = 1600
"""Tokens of an image or a page: the maximum that Anthropic counts for an image."""

TOOLS: Final = 350
"""Tokens that a provider adds to a request with tools, beside the tools: Anthropic states 290 to
800 by model (docs.claude.com, tool use, read in 2026-11)."""

ItemCounter: TypeAlias = Callable[[Sequence[ResponseItem]], int]
"""A function that counts the tokens of items, as `fit` and `Client.count` take one."""


class PromptTokens(Struct, frozen=True):
    """The tokens of a prompt, as a request of it would be billed for its input.

    Attributes:
        tokens: how many.
        source: `counted` by the provider's endpoint; `anchored`: the usage of the newest response
            in the history, and an estimate of what is new; `estimated` from characters, or by the
            function that the caller gave.
    """

    tokens: int
    source: Literal["counted", "anchored", "estimated"]


# --- counted by the provider ---


class TokenEndpoint(Struct, frozen=True):
    """Where a provider counts the tokens of a request, and how it is asked.

    Attributes:
        path: appended to the URL of the request.
        count: key of the number in its response.
        keys: keys of the request body that it accepts; others are omitted. None: all keys.
        ends_at: character of the request's URL whose last place is where it ends here; "": all of
            the URL stays.
        wrap: puts the body for a model into the form that is asked; None: as it is.
    """

    path: str
    count: str
    keys: tuple[str, ...] | None = None
    ends_at: str = ""
    wrap: Callable[[JsonObject, str], JsonObject] | None = None


def _gemini_body(body: JsonObject, model: str) -> JsonObject:
    # wire: the request inside repeats the model, which the URL also names.
    return {"generateContentRequest": {"model": f"models/{model}", **body}}


def _converse_body(body: JsonObject, model: str) -> JsonObject:
    return {"input": {"converse": body}}


def _invoke_body(body: JsonObject, model: str) -> JsonObject:
    # wire: bytes stand as base64 in Bedrock's JSON.
    encoded = base64.b64encode(msgspec.json.encode(body)).decode()
    return {"input": {"invokeModel": {"body": encoded}}}


ENDPOINTS: Final[Mapping[tuple[str, WireApi], TokenEndpoint]] = {
    ("anthropic", "messages"): TokenEndpoint(
        "/count_tokens",
        "input_tokens",
        (
            "model",
            "messages",
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "cache_control",
            "speed",
            # With the betas that a request has them for.
            "mcp_servers",
            "context_management",
            "compaction",
        ),
    ),
    ("openai", "responses"): TokenEndpoint(
        "/input_tokens",
        "input_tokens",
        (
            "model",
            "input",
            "instructions",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "reasoning",
            "text",
            "truncation",
            "previous_response_id",
            "conversation",
            "personality",
        ),
    ),
    ("google", "gemini"): TokenEndpoint(
        ":countTokens", "totalTokens", ends_at=":", wrap=_gemini_body
    ),
    ("vertex", "gemini"): TokenEndpoint(
        ":countTokens",
        "totalTokens",
        ("contents", "systemInstruction", "tools", "generationConfig"),
        ends_at=":",
    ),
    ("bedrock", "converse"): TokenEndpoint(
        "/count-tokens",
        "inputTokens",
        ("messages", "system", "toolConfig", "additionalModelRequestFields"),
        ends_at="/",
        wrap=_converse_body,
    ),
    ("bedrock", "invoke"): TokenEndpoint(
        "/count-tokens", "inputTokens", ends_at="/", wrap=_invoke_body
    ),
}
"""Provider and wire -> its endpoint: anthropic 2.12, openai 3.54, google-genai 3.4, botocore 1.44.
Other servers with the same wire often have none."""

NO_ENDPOINT: Final = (404, 405, 501)
"""Statuses of a server, or for a model, without the endpoint."""


def endpoint_of(target: Target) -> TokenEndpoint | None:
    """Where a target's provider counts; None if it has no endpoint for it."""
    return ENDPOINTS.get((target.provider.name, target.wire_api))


class CountRequest(NamedTuple):
    """The request for a number of tokens, and where its response holds the number."""

    request: Request
    key: str


def count_request(prompt: Prompt, target: Target) -> CountRequest | None:
    """The request for the number of tokens of a prompt; None for a provider that cannot count."""
    endpoint = endpoint_of(target)
    if endpoint is None:
        return None
    # A count is never streamed.
    request = build_for(msgspec.structs.replace(prompt, stream=None), target)
    body: JsonObject = dict(msgspec.json.decode(request.body, type=dict[str, msgspec.Raw]))
    if endpoint.keys is not None:
        body = {key: body[key] for key in endpoint.keys if key in body}
    if endpoint.wrap is not None:
        body = endpoint.wrap(body, target.model)
    url = request.url
    if endpoint.ends_at:
        # The end of the URL and its query are those of a response.
        url = url.partition("?")[0].rpartition(endpoint.ends_at)[0]
    url = url_below(url, endpoint.path)
    request = msgspec.structs.replace(request, url=url, body=msgspec.json.encode(body))
    return CountRequest(request, endpoint.count)


def read_count(response: bytes, key: str) -> int:
    """The number under a key of the response of an endpoint.

    Raises:
        StreamError: `malformed`; there is none.
    """
    try:
        count = msgspec.json.decode(response, type=dict[str, Any])[key]
        return msgspec.convert(count, int)
    except (*DECODE_ERRORS, KeyError) as error:
        message = f"the response is not a token count: {error}"
        raise StreamError(ErrorInfo("malformed", message)) from None


# --- anchored and estimated ---


def count_locally(
    prompt: Prompt, target: Target, last: Response | None, estimate: ItemCounter | None
) -> PromptTokens:
    """The tokens of a prompt without its provider: anchored if it can be, else estimated.

    Args:
        prompt: what would be sent.
        target: where.
        last: the newest response in the history; None: the one that a `History` had added.
        estimate: counts items; None: by their characters.
    """
    items = prompt.items
    anchor = _anchor(prompt, last)
    if anchor is None or not _is_anchored(items, anchor, target):
        if estimate is None:
            return PromptTokens(estimated_tokens(prompt), "estimated")
        return PromptTokens(_checked(estimate(items)), "estimated")
    added = counted_items(estimate, items[anchor.count :])
    return PromptTokens(anchor.tokens + added, "anchored")


def _anchor(prompt: Prompt, last: Response | None) -> Anchor | None:
    if last is not None:
        return Anchor.of(last, prompt.items)
    if isinstance(prompt.input, AnchoredItems):
        return prompt.input.anchor
    return None


def _is_anchored(items: Sequence[ResponseItem], anchor: Anchor, target: Target) -> bool:
    """Whether the items up to the anchor are those of its response, and of the same target.

    Models count differently, and another one gets signed reasoning as text.
    """
    if anchor.count > len(items) or items[anchor.count - 1] != anchor.item:
        return False
    return same_origin(anchor.item.origin, target.origin)


def _checked(tokens: object) -> int:
    """The number that a caller's function returned.

    Raises:
        TypeError: it returned no whole number, such as a coroutine.
        ValueError: the number is negative.
    """
    if isinstance(tokens, bool) or not isinstance(tokens, int):
        close = getattr(tokens, "close", None)
        if close is not None:
            close()  # else a coroutine warns that nobody awaited it
        raise TypeError(f"the function that counts must return an int, not {tokens!r:.60}")
    if tokens < 0:
        raise ValueError(f"the function that counts returned {tokens}: tokens are not negative")
    return tokens


def counted_items(count: ItemCounter | None, items: Sequence[ResponseItem]) -> int:
    """The tokens of items, by a caller's function or by their characters.

    Raises:
        TypeError: the function returned no whole number.
        ValueError: the number is negative.
    """
    if count is None:
        return estimated_item_tokens(items)
    return _checked(count(items))


def estimated_tokens(prompt: Prompt) -> int:
    """The estimated tokens of a prompt: from the characters of texts and names, and its media."""
    size = _Size()
    size.add(prompt.instructions or "")
    for item in prompt.items:
        size.add(msgspec.to_builtins(item))
    media = size.media
    for tool in prompt.tools:
        # An object in a schema may look like media: then only its characters are not counted.
        size.add(msgspec.to_builtins(tool))
    size.add(prompt.schema or "")
    tokens = 1 + size.characters // CHARACTERS + media * MEDIUM
    if prompt.tools:
        tokens += TOOLS
    return tokens


def estimated_item_tokens(items: Sequence[ResponseItem]) -> int:
    """The estimated tokens of items."""
    size = _Size()
    for item in items:
        size.add(msgspec.to_builtins(item))
    return size.characters // CHARACTERS + size.media * MEDIUM


def estimated_value_tokens(value: object) -> float:
    """The estimated tokens of a JSON value, with fractions: many small ones can be added."""
    size = _Size()
    size.add(value)
    return size.characters / CHARACTERS + size.media * MEDIUM


class _Size:
    """The size of JSON values: characters of keys and strings, and the number of media."""

    def __init__(self) -> None:
        self.characters = 0
        self.media = 0

    def add(self, value: object) -> None:
        """Adds a value, with all values inside it."""
        if isinstance(value, str):
            self.characters += len(value)
        elif isinstance(value, dict):
            # The base64 data of an image or a file is not text for the model.
            if "data" in value and "media_type" in value:
                self.media += 1
                return
            for key, element in value.items():
                self.characters += len(str(key))
                self.add(element)
        elif isinstance(value, (list, tuple)):
            for element in value:
                self.add(element)
