"""Items as a notebook shows them: texts, folded reasoning, calls and their outputs; no keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from streamlib.display.notebook_text import fence, folded, pre, safe_markdown
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import (
    Compaction,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Media,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.redaction import redact, redact_value
from streamlib_parsers.usage import Usage

OUTPUT_LENGTH: Final = 4000
"""Characters of a call or its output that are shown."""


class Block(NamedTuple):
    """Part of an item.

    Attributes:
        label: who wrote it, or what it is.
        text: keys are masked.
        style: `text` is Markdown, `code` is shown as it is, `folded` is hidden behind its label.
    """

    label: str
    text: str
    style: str


class ShownChoice(Protocol):
    """What is shown of a `Choice`, whose module is above this one."""

    @property
    def items(self) -> tuple[ResponseItem, ...]:
        """Its items, in order."""
        ...


class ShownResponse(Protocol):
    """What is shown of a `Response`, whose module is above this one."""

    @property
    def status(self) -> str:
        """How it ended."""
        ...

    @property
    def error(self) -> ErrorInfo | None:
        """Why it failed."""
        ...

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped."""
        ...

    @property
    def model(self) -> str | None:
        """The model."""
        ...

    @property
    def usage(self) -> Usage | None:
        """Tokens in and out."""
        ...

    @property
    def choices(self) -> Sequence[ShownChoice]:
        """Every choice."""
        ...


def response_html(response: ShownResponse) -> str:
    """HTML of a response: one line about it, then its items."""
    return items_html(_items(response), _headline(response))


def response_markdown(response: ShownResponse) -> str:
    """Markdown of a response: see `response_html`."""
    return items_markdown(_items(response), _headline(response))


def _items(response: ShownResponse) -> list[ResponseItem]:
    items: list[ResponseItem] = []
    for choice in response.choices:
        items += choice.items
    return items


def _headline(response: ShownResponse) -> str:
    """Model, status, tokens in and out, and the failure, whose text comes from a server."""
    details = [response.model, response.status, response.stop_reason]
    if response.usage is not None:
        counts = (response.usage.input_tokens, response.usage.output_tokens)
        details.append(" → ".join([_count(count) for count in counts]) + " tokens")
    if response.error is not None:
        details.append(f"{response.error.kind}: {response.error.message}")
    return redact(" · ".join([detail for detail in details if detail]))


def _count(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def items_html(items: Sequence[ResponseItem], headline: str = "") -> str:
    """HTML of items.

    Args:
        items: in their order.
        headline: one line about them.
    """
    parts: list[str] = []
    if headline:
        parts.append(f'<div style="opacity:0.65">{pre(headline)}</div>')
    for block in blocks(items):
        if block.style == "folded":
            parts.append(folded(block.label, block.text))
        else:
            parts.append(f'<div style="opacity:0.65">{pre(block.label)}</div>{pre(block.text)}')
    return f"<div>{''.join(parts)}</div>"


def items_markdown(items: Sequence[ResponseItem], headline: str = "") -> str:
    """Markdown of items; see `items_html`."""
    parts: list[str] = []
    if headline:
        parts.append(safe_markdown(headline))
    for block in blocks(items):
        if block.style == "folded":
            parts.append(folded(block.label, block.text))
            continue
        parts.append(f"**{safe_markdown(block.label)}**")
        parts.append(block_markdown(block))
    return "\n\n".join(parts)


def block_markdown(block: Block) -> str:
    """Markdown of one block, without its label unless it is folded."""
    if block.style == "folded":
        return folded(block.label, block.text)
    if block.style == "code":
        return fence(block.text)
    return safe_markdown(block.text)


def blocks(items: Sequence[ResponseItem]) -> list[Block]:
    """What is shown of items."""
    shown: list[Block] = []
    for item in items:
        for block in _blocks_of(item):
            shown.append(block._replace(text=redact(block.text)))
    return shown


def _blocks_of(item: ResponseItem) -> list[Block]:
    match item:
        case Message(role=role, content=content):
            return _parts(role, content)
        case Reasoning():
            return [Block("reasoning", item.text or "encrypted", "folded")]
        case FunctionCall(name=name, arguments=arguments):
            return [Block("call", _shortened(f"{name}({arguments})"), "code")]
        case CustomToolCall(name=name, input=text):
            return [Block("call", _shortened(f"{name}\n{text}"), "code")]
        case FunctionCallOutput(output=output) | CustomToolCallOutput(output=output):
            label = "error" if item.is_error else "output"
            return _output(label, output)
        case _:
            return [_folded_block(item)]


def _folded_block(item: ResponseItem) -> Block:
    """What a provider ran or summarized, and calls without a form of their own here."""
    match item:
        case ServerToolCall(name=name, arguments=arguments):
            return Block(f"{name} (run by the provider)", _shortened(arguments), "folded")
        case ServerToolResult(name=name, output=value):
            label = f"result of {name}".removesuffix(" of ")
            return Block(label, _shortened(str(redact_value(value))), "folded")
        case Compaction(content=text):
            return Block("summary of what was before", text or "encrypted", "folded")
        case _:
            return Block(type(item).__name__, _shortened(repr(item)), "folded")


def _parts(label: str, content: Sequence[ContentPart]) -> list[Block]:
    """Texts that follow each other as one block, and what is between them."""
    shown: list[Block] = []
    for part in content:
        if isinstance(part, Text):
            if shown and shown[-1].style == "text":
                shown[-1] = shown[-1]._replace(text=shown[-1].text + part.text)
            else:
                shown.append(Block(label, part.text, "text"))
        elif isinstance(part, Refusal):
            shown.append(Block("refusal", part.refusal, "text"))
        else:
            shown.append(Block(label, _media(part), "code"))
    return shown


def _output(label: str, output: str | Sequence[ContentPart]) -> list[Block]:
    if isinstance(output, str):
        return [Block(label, _shortened(output), "code")]
    return [
        part._replace(text=_shortened(part.text), style="code") for part in _parts(label, output)
    ]


def _media(part: Media) -> str:
    """A line about media: it is not shown itself, and never fetched."""
    details = [type(part).__name__.lower(), part.name, part.media_type, part.file_id, part.url]
    if part.data is not None:
        details.append(f"{len(part.data) * 3 // 4:,} bytes")
    return ", ".join([detail for detail in details if detail])


def _shortened(text: str) -> str:
    if len(text) > OUTPUT_LENGTH:
        return f"{text[:OUTPUT_LENGTH]}… ({len(text):,} characters)"
    return text
