"""Redacts an inspection: of every text only its length remains.

Allowed values are listed here; all others are removed. A text becomes as many `*` as it has
characters, so that its growth remains visible. The name of a kind remains if streamlib knows each
of its words, because a server may send any name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec

from streamlib.inspection.difference import (
    Difference,
    DifferenceRow,
    FirstDifference,
    describe,
)
from streamlib.inspection.document import (
    Facts,
    Finding,
    FrameColumns,
    InspectedItem,
    InspectedNotice,
    InspectedRequest,
    Inspection,
    Outcome,
    RateLimit,
    Source,
    UnknownEvent,
)
from streamlib.request.report import Change
from streamlib_parsers.events import ResponseEvent, StopReason
from streamlib_parsers.items import ContentPart, JsonObject, ResponseItem, Role
from streamlib_parsers.redaction import redact

# --- words of the names that wires give to frames, events, errors and reasons ---
#
# A name is kept if all of its words are listed here. Before adding a word, check that a server
# cannot be made to send it in place of a user's text; a single common word is harmless.

_ENVELOPE: Final = """
    amazon bedrock block body candidate candidates choice choices chunk chunks citation
    citations complete completed completion content created delta deltas done end error event
    failed feedback finish finishreason frame function generate in incomplete index info input
    interaction interactions item keepalive line message messages metadata metrics model no of
    output part parts ping progress prompt queued reason response responses role settings start
    started status step stop stopped stray summary text thinking thought tool tools type unknown
    update usage
"""

_KINDS: Final = """
    action added annotation annotations apply approval arguments array audio blocks bool bytes
    call calls cancelled channel code compaction computer context count custom data details dict
    document edit embedding encrypted executable executed execution fetch fields file files
    float generating generation google grounding id ids image images inline int interpreter
    interpreting invocation json list local log logprobs mcp media name none nothing object
    opaque output outputs partial patch plan plans provider reasoning redacted refusal request
    requests result results safety search searching server shell signature source sources
    specific str string tokens trace transcript transcription url video web
"""

_ENDS: Final = """
    abort agent answer api assistant authentication bad billing blocked blocklist cancel
    commentary conflict connect connection content deadline developer disconnected eof eos
    exceeded exception exhausted expired filter filtered final forbidden gateway guardrail http
    insufficient internal intervened invalid invalidrequest language large length limit limited
    load long malformed many max maximum missing network not other overloaded pause paused
    payment permission policy pool prohibited protocol quota rate read recitation remote
    required reset resource sequence server service spii stall stalled system temporary
    throttling timeout token too total transport truncated turn unauthorized unavailable unload
    unprocessable unread unspecified use used user validation value window write
"""

_POINTERS: Final = """
    cache cached day days effort extra format frequency headers hour hours instructions min
    minute minutes month months number numbers options parallel penalty presence primary raw
    schema secondary seconds seed service store stored strict temperature tier top ttl unified
    verbosity verifier week weekly
"""


KNOWN_WORDS: Final = frozenset(" ".join((_ENVELOPE, _KINDS, _ENDS, _POINTERS)).split())
"""The words, in lower case."""


UNKNOWN: Final = "unknown"
"""Replaces a name that was removed."""


def _types_of(classes: object) -> frozenset[str]:
    """The values of `type` of a union of structs."""
    return frozenset(str(each.__struct_config__.tag) for each in get_args(classes))


INNER_TYPES: Final = _types_of(ResponseItem) | _types_of(ContentPart)
"""Values of `type` of items and their parts."""

OWN_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "type": INNER_TYPES | _types_of(ResponseEvent),
    "role": frozenset(get_args(Role)),
    "stop_reason": frozenset(get_args(StopReason)),
}
"""Keys of events and items whose values are set by streamlib on every wire, with those values."""

WORD_KEYS: Final = frozenset({"status", "phase", "native_stop_reason", "kind", "code"})
"""Keys of events and items whose values are names, some of them from the wire."""

TEXT_KEYS: Final = frozenset(
    {
        "arguments",
        "content",
        "delta",
        "detail",
        "input",
        "message",
        "name",
        "output",
        "refusal",
        "summary",
        "text",
        "transcript",
    }
)
"""Keys of events and items whose values are texts, or lists of texts."""

INNER_KEYS: Final = frozenset(
    {"choices", "error", "input_tokens", "output_tokens", "requests", "tokens", "usage"}
)
"""Keys of events and items whose values are objects with the keys listed here, or lists of them."""

PART_KEYS: Final = frozenset({"content", "item", "output", "summary"})
"""Keys of events and items whose values are items, lists of items or parts, or lists of texts."""

NUMBER_KEYS: Final = frozenset(
    {
        "cache_read_input_tokens",
        "cache_write_1h_input_tokens",
        "cache_write_24h_input_tokens",
        "cache_write_5m_input_tokens",
        "cache_write_input_tokens",
        "choice",
        "content_index",
        "index",
        "input_tokens",
        "is_error",
        "limit",
        "output_tokens",
        "reasoning_output_tokens",
        "redacted",
        "remaining",
        "reset_after",
        "retry_after",
        "retryable",
        "seq",
        "status",
        "summary_index",
    }
)
"""Keys of events and items whose values are numbers."""

_MODEL: Final = re.compile(r"[A-Za-z0-9._:/@-]{1,80}")
"""Pattern of a model's name, which an ordinary text does not match."""

_TOKEN: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^A-Za-z]")
"""Matches each word of a name in any style, and each other character between words."""

_SEPARATORS: Final = frozenset("_.-/ ,:()")

DONE: Final = "[DONE]"
"""End mark of a Chat Completions stream."""


def redacted(inspection: Inspection) -> Inspection:
    """A copy of an inspection without texts, arguments, outputs, bytes, addresses, ids, file names.

    The names of wire, model and kinds remain, and so do sizes, numbers and times.

    Args:
        inspection: the inspection; it is not changed.
    """
    return msgspec.structs.replace(
        inspection,
        redacted=True,
        source=_source(inspection.source),
        outcome=_outcome(inspection.outcome),
        findings=tuple(map(_finding, inspection.findings)),
        facts=_facts(inspection.facts),
        frames=_frames(inspection.frames),
        events=list(map(redacted_event, inspection.events)),
        items=tuple(map(_item, inspection.items)),
        unknown_events=tuple(map(_unknown_event, inspection.unknown_events)),
        notices=tuple(map(_notice, inspection.notices)),
        request=_request(inspection.request),
        body=None,
    )


def redacted_difference(difference: Difference) -> Difference:
    """A copy of a difference without texts, ids and file names.

    Args:
        difference: the difference; it is not changed.
    """
    rows = tuple([_row(row) for row in difference.rows])
    first = difference.first
    if first is not None:
        first = FirstDifference(row=first.row, text=describe(rows[first.row]))
    return msgspec.structs.replace(difference, a="", b="", redacted=True, first=first, rows=rows)


def masked(text: str) -> str:
    """As many `*` as the text has characters."""
    return "*" * len(text)


def known_name(name: str) -> str:
    """The name if all of its words are known, else `unknown`."""
    for token in _TOKEN.findall(name.replace(DONE, "")):
        if token not in _SEPARATORS and token.lower() not in KNOWN_WORDS:
            return UNKNOWN
    return name


def redacted_event(event: JsonObject) -> JsonObject:
    """The JSON of an event without texts."""
    shown = _object(event)
    if event.get("type") == "passthrough":
        shown["event"] = known_name(str(event.get("event", "")))
        shown["data"] = None
    if event.get("type") == "notice":
        # A notice's code is set by streamlib, not by the wire.
        shown["code"] = event["code"]
    if event.get("type") in ("created", "completed") and isinstance(event.get("model"), str):
        shown["model"] = model_name(event["model"])
    return shown


def model_name(name: str | None) -> str | None:
    """A model's name; None if the text does not look like one, or looks like a key."""
    if name is not None and _MODEL.fullmatch(name) and redact(name) == name:
        return name
    return None


def _object(value: JsonObject) -> JsonObject:
    """The object, reduced to the keys that may remain for their type of value."""
    shown: JsonObject = {}
    # The output of a tool that the provider ran is JSON of any kind, with any keys.
    is_result = value.get("type") == "server_tool_result"
    for key, inner in value.items():
        if is_result and key == "output":
            continue
        if isinstance(inner, str):
            text = _string(key, inner)
            if text is not None:
                shown[key] = text
        elif inner is None or isinstance(inner, (bool, int, float)):
            if key in NUMBER_KEYS:
                shown[key] = inner
        elif key in INNER_KEYS:
            shown[key] = _inner(inner)
        elif key in PART_KEYS:
            shown[key] = _inner(inner, INNER_TYPES)
    return shown


def _string(key: str, value: str) -> str | None:
    """What is shown of a string; None: nothing."""
    if key in OWN_KEYS:
        return value if value in OWN_KEYS[key] else None
    if key in WORD_KEYS:
        return known_name(value)
    return masked(value) if key in TEXT_KEYS else None


def _inner(value: Any, types: frozenset[str] | None = None) -> Any:
    """An object or a list, of whose objects only those of these types remain; None: all."""
    if isinstance(value, dict):
        return _object(value) if _is_one_of(value, types) else {}
    shown: list[Any] = []
    for element in value:
        if isinstance(element, dict):
            if _is_one_of(element, types):
                shown.append(_object(element))
        elif isinstance(element, str):
            shown.append(masked(element))
    return shown


def _is_one_of(value: JsonObject, types: frozenset[str] | None) -> bool:
    if types is None:
        return True
    kind = value.get("type")
    return isinstance(kind, str) and kind in types


# --- what is beside the events ---


def _source(source: Source) -> Source:
    end = source.end
    if end is not None:
        end = known_name(end)
    return msgspec.structs.replace(source, name="", url="", method="", headers={}, end=end)


def _outcome(outcome: Outcome) -> Outcome:
    native, error = outcome.native_stop_reason, outcome.error
    if native is not None:
        native = known_name(native)
    if error is not None:
        error = _object(error)
    return msgspec.structs.replace(
        outcome,
        native_stop_reason=native,
        response_id=None,
        model=model_name(outcome.model),
        error=error,
    )


def _finding(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, detail="")


def _facts(facts: Facts) -> Facts:
    usage = facts.usage
    if usage is not None:
        usage = _object(usage)
    limits = tuple(map(_limit, facts.limits))
    return msgspec.structs.replace(facts, request_id=None, limits=limits, usage=usage)


def _frames(frames: FrameColumns) -> FrameColumns:
    return msgspec.structs.replace(frames, kinds=list(map(known_name, frames.kinds)))


def _limit(limit: RateLimit) -> RateLimit:
    return msgspec.structs.replace(limit, name=known_name(limit.name))


def _item(item: InspectedItem) -> InspectedItem:
    return msgspec.structs.replace(item, label=item.type)


def _unknown_event(event: UnknownEvent) -> UnknownEvent:
    return msgspec.structs.replace(event, event=known_name(event.event))


def _notice(notice: InspectedNotice) -> InspectedNotice:
    return msgspec.structs.replace(notice, detail=masked(notice.detail))


def _request(request: InspectedRequest | None) -> InspectedRequest | None:
    if request is None:
        return None
    return msgspec.structs.replace(
        request,
        headers={},
        model=model_name(request.model),
        text=None,
        changes=tuple([_change(change) for change in request.changes]),
    )


def _change(change: Change) -> Change:
    segments: list[str] = []
    for segment in change.path.split("/"):
        is_index = segment.isascii() and segment.isdigit()
        segments.append(segment if is_index else known_name(segment))
    return msgspec.structs.replace(change, path="/".join(segments), reason="")


def _row(row: DifferenceRow) -> DifferenceRow:
    return msgspec.structs.replace(
        row,
        label=row.type,
        fields=tuple([known_name(name) for name in row.fields]),
        a_text=masked(row.a_text),
        b_text=masked(row.b_text),
    )
