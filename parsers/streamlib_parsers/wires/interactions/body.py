"""Gemini Interactions: a complete body as the events of an equivalent stream."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from streamlib_parsers.errors import malformed
from streamlib_parsers.json_text import DECODE_ERRORS, mark_surrogates
from streamlib_parsers.wires.interactions.events import LEGACY


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """The events of an interaction (or error) body; every step is complete in its start.

    Raises:
        ParseFailure: `malformed`, if the body is neither.
    """
    try:
        interaction = msgspec.json.decode(mark_surrogates(body) or body, type=dict[str, Raw])
        steps = msgspec.json.decode(interaction.pop("steps", Raw(b"null")), type=list[Raw] | None)
    except DECODE_ERRORS:
        raise malformed("the body is not an interaction", body) from None
    if steps is None and "outputs" in interaction:
        raise malformed(LEGACY, body, "legacy_schema")
    # A background interaction has no steps yet, but a status: as events of a stream may have.
    has_neither = steps is None and "status" not in interaction
    kind = bytes(interaction.get("event_type", b""))
    if has_neither or kind.startswith(b'"interaction.'):
        raise malformed("the body is not an interaction", body)
    return _frames(interaction, steps or [])


def _frames(interaction: dict[str, Raw], steps: list[Raw]) -> Iterator[tuple[None, bytes]]:
    encode = msgspec.json.encode
    # In a stream, all keys but these follow the steps.
    created = {key: interaction[key] for key in ("id", "model", "agent") if key in interaction}
    yield None, encode({"event_type": "interaction.created", "interaction": created})
    for index, step in enumerate(steps):
        yield None, encode({"event_type": "step.start", "index": index, "step": step})
        yield None, encode({"event_type": "step.stop", "index": index})
    yield None, encode({"event_type": "interaction.completed", "interaction": interaction})
