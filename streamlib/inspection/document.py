"""What an inspection is: a document that explains one captured response.

Its JSON is what `streamlib inspect --json --full` prints and what the HTML page is made from. The
format has a version and stays readable: new keys may come, those that are here keep their meaning.
Sequences of many numbers are columns, so that a response of 20,000 frames stays small.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from streamlib.request.report import Change
from streamlib_parsers.items import JsonObject

FORMAT: Final = "streamlib.inspection/1"
"""Value of the key `format` of every inspection."""

FRAME_HEIGHT: Final = 720
"""Pixels of the page in a notebook."""

FindingCode: TypeAlias = Literal[
    "complete",
    "failed",
    "failed_at",
    "truncated",
    "not_received",
    "incomplete_item",
    "connection",
    "wrong_wire",
    "notice",
    "unknown_event",
    "late_end",
    "unread_bytes",
    "no_bytes",
    "no_frame",
]
"""What findings are about. Documents of later versions may hold others."""

Level: TypeAlias = Literal["ok", "warning", "error"]
SourceKind: TypeAlias = Literal["stream", "body", "error"]


class Source(Struct, frozen=True, kw_only=True):
    """Where the bytes come from.

    Attributes:
        name: the file, with `#2` for its second recording; "" where it is not known.
        wire_api: the wire that it was read as.
        kind: `stream`, `body` (one JSON body), or `error` (a body with an HTTP error status).
        recorded: the times and the boundaries of the chunks are known.
        frames: how the wire frames a stream: `sse`, `ndjson` or `aws`.
        status: HTTP status; 200 where it is not known.
        method: of the request.
        url: of the request, without its query.
        headers: of the response, those that recordings hold.
        end: None if the body ended; else what ended it (`Recording.end`).
    """

    name: str
    wire_api: str
    kind: SourceKind
    recorded: bool
    frames: str = "sse"
    status: int = 200
    method: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    end: str | None = None


class Outcome(Struct, frozen=True, kw_only=True):
    """How the response ended.

    Attributes:
        level: `ok`; `warning`: complete, but cut short or unusual; `error`: it failed.
        text: the same in words, on one line.
        terminal: the kind of its terminal event.
        status: of the response.
        stop_reason: why the model stopped.
        native_stop_reason: the wire's own word for it.
        response_id: the provider's id.
        model: the model as the provider reports it.
        error: of a response that failed (fields of `ErrorInfo`).
    """

    level: Level
    text: str
    terminal: Literal["completed", "failed"]
    status: str
    stop_reason: str | None = None
    native_stop_reason: str | None = None
    response_id: str | None = None
    model: str | None = None
    error: JsonObject | None = None


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is worth knowing about the response.

    Attributes:
        level: `ok`, `warning`, or `error`.
        code: what it is, for programs (`complete`, `truncated`, `notice` …).
        text: the same in words, on one line, safe for a terminal.
        detail: what follows the text: a quotation of the response, as safe.
        byte: offset in the body.
        frame: number of the frame.
        count: how many times it was found.
    """

    level: Level
    code: str
    text: str
    detail: str = ""
    byte: int | None = None
    frame: int | None = None
    count: int = 1


class Silence(Struct, frozen=True, kw_only=True):
    """A time in which nothing was to be shown.

    Attributes:
        start: seconds since the request was sent.
        end: the same.
        byte: offset of the first byte after it, or of the frame that was not finished.
        frame: number of the frame that was finished next.
        bytes: received during it: 0 where no byte was.
    """

    start: float
    end: float
    byte: int
    frame: int
    bytes: int = 0


class Silences(Struct, frozen=True, kw_only=True):
    """The two kinds of silence. No moment is in both.

    Attributes:
        threshold: seconds; shorter ones are not listed.
        no_bytes: no byte was received.
        no_frame: bytes were received, but no frame was finished.
    """

    threshold: float
    no_bytes: tuple[Silence, ...] = ()
    no_frame: tuple[Silence, ...] = ()


class RateLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rate limit; None where the provider did not report a value.

    Attributes:
        name: `requests`, `tokens`, `input_tokens`, `output_tokens`, or the provider's.
        remaining: how many are left.
        limit: how many are allowed.
        reset_after: seconds until it resets.
        reset_at: the time at which it resets, UTC.
    """

    name: str
    remaining: float | None = None
    limit: float | None = None
    reset_after: float | None = None
    reset_at: str | None = None


class Facts(Struct, frozen=True, kw_only=True):
    """Numbers. Times are seconds since the request was sent; None: not known.

    Attributes:
        bytes: of the body.
        chunks: in which it was received.
        frames: that were read.
        characters: of text, reasoning, refusals and arguments.
        events: how many events of each type.
        first_byte: when the first byte was received.
        first_token: when the first output of the model was.
        duration: when the last byte was.
        tokens_per_second: of output, between its first and its last; None for output that was
            received within a tenth of a second, which tells nothing of the model.
        usage: tokens (fields of `Usage`, without `raw`).
        limits: rate limits.
        retry_after: seconds that the provider asked to wait.
        request_id: the provider's id of the request.
        longest_no_bytes: the longest time without a byte, behind the first one.
        longest_no_frame: the longest time with bytes, but without a finished frame.
    """

    bytes: int
    chunks: int
    frames: int
    characters: int
    events: dict[str, int] = {}
    first_byte: float | None = None
    first_token: float | None = None
    duration: float | None = None
    tokens_per_second: float | None = None
    usage: JsonObject | None = None
    limits: tuple[RateLimit, ...] = ()
    retry_after: float | None = None
    request_id: str | None = None
    longest_no_bytes: Silence | None = None
    longest_no_frame: Silence | None = None


class ChunkColumns(Struct, frozen=True, kw_only=True):
    """The chunks, as two columns.

    Attributes:
        at: seconds since the request was sent.
        bytes: of each.
    """

    at: list[float]
    bytes: list[int]


class FrameColumns(Struct, frozen=True, kw_only=True):
    """The frames, as columns: contiguous from the first byte of the body.

    Attributes:
        kinds: the wire's names of frames, each once.
        kind: index into `kinds`.
        bytes: of each frame.
        events: into how many events each became.
    """

    kinds: list[str]
    kind: list[int]
    bytes: list[int]
    events: list[int]


class InspectedItem(Struct, frozen=True, kw_only=True):
    """One item of the response. Frames and events are numbers.

    Attributes:
        index: of the item.
        type: its kind.
        label: its kind, and the name of its tool.
        choice: the choice it belongs to.
        first_frame: in which it starts.
        last_frame: in which it is closed.
        first_event: its `OutputItemAdded`.
        last_event: its `OutputItemDone`.
        status: `completed` or `incomplete`.
        truncated: it is closed only because the input ended or failed.
        characters: of its text, reasoning or arguments.
    """

    index: int
    type: str
    label: str
    choice: int = 0
    first_frame: int
    last_frame: int
    first_event: int
    last_event: int
    status: str
    truncated: bool = False
    characters: int = 0


class SplitCharacters(Struct, frozen=True, kw_only=True):
    """Chunk boundaries inside a character.

    Attributes:
        count: of all.
        bytes: offsets of the first ones.
    """

    count: int = 0
    bytes: tuple[int, ...] = ()


class UnknownEvent(Struct, frozen=True, kw_only=True):
    """A kind of event or delta that the parser does not know, at its first occurrence."""

    event: str
    byte: int
    frame: int
    count: int = 1


class InspectedNotice(Struct, frozen=True, kw_only=True):
    """A `Notice` with its position. `index` is the item it is about."""

    code: str
    detail: str = ""
    index: int | None = None
    byte: int
    frame: int


class InspectedRequest(Struct, frozen=True, kw_only=True):
    """The request, where the recording holds it.

    Attributes:
        bytes: of its body.
        headers: those that recordings hold.
        wire_api: its wire.
        model: that it asks for.
        items: of its history.
        tools: that it offers.
        text: its body, keys masked.
        changes: what a gateway changed on the way to its target.
    """

    bytes: int
    headers: dict[str, str] = {}
    wire_api: str = ""
    model: str | None = None
    items: int | None = None
    tools: int | None = None
    text: str | None = None
    changes: tuple[Change, ...] = ()


class SplitResult(Struct, frozen=True, kw_only=True):
    """The body, parsed in other chunks.

    Attributes:
        split: `whole`, `recorded`, or the bytes of a chunk.
        chunks: how many.
        same: the events are the same.
        first_difference: number of the first event that is not.
    """

    split: int | str
    chunks: int
    same: bool
    first_difference: int | None = None


class SkippedSplit(Struct, frozen=True, kw_only=True):
    """A split that was not tried, and why."""

    split: int | str
    reason: str


class Splits(Struct, frozen=True, kw_only=True):
    """Whether the boundaries of the chunks matter to the parser."""

    results: tuple[SplitResult, ...] = ()
    skipped: tuple[SkippedSplit, ...] = ()


class Inspection(Struct, frozen=True, kw_only=True):
    """What a captured response holds, when it was received, and what is missing.

    Attributes:
        format: name and version of the format.
        made_by: program and version.
        redacted: of texts only their lengths are here.
        source: where the bytes come from.
        outcome: how the response ended.
        findings: whether it is complete, then what is unusual.
        facts: numbers and times.
        silences: times in which nothing was to be shown.
        chunks: as they were received.
        frames: as the wire made them.
        events: what they became: the JSON of each `ResponseEvent`.
        items: of the response.
        split_characters: chunk boundaries inside a character.
        unknown_events: each kind once.
        notices: anomalies and repairs.
        request: None where the recording does not hold it.
        splits: the body parsed in other chunks.
        body: all bytes; None where the document is redacted.
    """

    format: str = FORMAT
    made_by: str = ""
    redacted: bool = False
    source: Source
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    facts: Facts
    silences: Silences
    chunks: ChunkColumns
    frames: FrameColumns
    events: list[JsonObject]
    items: tuple[InspectedItem, ...] = ()
    split_characters: SplitCharacters = SplitCharacters()
    unknown_events: tuple[UnknownEvent, ...] = ()
    notices: tuple[InspectedNotice, ...] = ()
    request: InspectedRequest | None = None
    splits: Splits = Splits()
    body: bytes | None = None

    def _repr_html_(self) -> str:
        """The page for a notebook: in a frame of its own, which reaches nothing outside."""
        from html import escape

        from streamlib.inspection.page import render

        return (
            '<iframe sandbox="allow-scripts" title="inspection" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:0" '
            f'srcdoc="{escape(render([self]))}"></iframe>'
        )

    def __repr__(self) -> str:
        """One line: the page has the rest."""
        return (
            f"Inspection({self.source.name!r}, {self.outcome.text!r}, {self.facts.bytes:,} bytes)"
        )


def encode(inspection: Inspection, *, with_body: bool = True) -> bytes:
    """An inspection as JSON on one line.

    Args:
        inspection: what is written.
        with_body: write the bytes of the body, in base64.
    """
    if not with_body:
        inspection = msgspec.structs.replace(inspection, body=None)
    return msgspec.json.encode(inspection)


def load(data: bytes | str) -> Inspection:
    """Reads an inspection that `encode` wrote, in this version of streamlib or another one.

    Keys that are not known are ignored.

    Args:
        data: the JSON.

    Raises:
        ValueError: it is no inspection, or of a version that cannot be read.
    """
    try:
        head = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"not an inspection: {error}") from None
    if head.get("format") != FORMAT:
        raise ValueError(f"not an inspection of the format {FORMAT}: {head.get('format')!r}")
    try:
        return msgspec.convert(head, Inspection)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(f"not an inspection: {error}") from None
