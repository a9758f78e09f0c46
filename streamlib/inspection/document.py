"""The document that explains one captured response: an inspection.

`streamlib inspect --json --full` prints it as JSON, and the HTML page is made from it. The format
has a version and stays readable: keys may be added, and existing keys keep their meaning. Long
sequences of numbers are stored as columns, so that a response of 20,000 frames stays small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from streamlib.request.report import Change
from streamlib_parsers.items import JsonObject

if TYPE_CHECKING:
    from streamlib.inspection.page import PageEntry

FORMAT: Final = "streamlib.inspection/1"
"""Value of the key `format` of every inspection."""

FRAME_HEIGHT: Final = 720
"""Height of the page in a notebook, in pixels."""

FindingCode: TypeAlias = Literal[
    "complete",
    "incomplete",
    "failed",
    "failed_at",
    "truncated",
    "not_received",
    "incomplete_item",
    "connection",
    "recording_truncated",
    "content_length",
    "file_truncated",
    "wrong_wire",
    "html_page",
    "notice",
    "unknown_event",
    "late_end",
    "unread_bytes",
    "no_bytes",
    "no_frame",
]
"""Kinds of findings. Documents of later versions may contain others."""

STORED: Final[tuple[FindingCode, ...]] = ("content_length", "file_truncated")
"""Codes of what only the file shows from which a response was opened, not its bytes."""

Level: TypeAlias = Literal["ok", "warning", "error"]
SourceKind: TypeAlias = Literal["stream", "body", "error"]


class Source(Struct, frozen=True, kw_only=True):
    """The origin of the bytes.

    Attributes:
        name: name of the file, with `#2` for its second recording; "" if not known.
        wire_api: the wire that it was read as.
        kind: `stream`, `body` (one JSON body), or `error` (a body with an HTTP error status).
        recorded: whether the times and boundaries of chunks are known.
        frames: framing of a stream: `sse`, `ndjson` or `aws`.
        status: HTTP status; 200 if not known; 0 if no response was received.
        method: HTTP method of the request.
        url: URL of the request, without its query.
        headers: response headers that recordings keep.
        end: None if the body ended; else what ended it (`Recording.end`).
        forms: what its file was opened from, the outermost first, such as `HAR`, `compressed`.
        guessed: whether the wire is what the content looks like, and nobody named it.
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
    forms: tuple[str, ...] = ()
    guessed: bool = False


class Outcome(Struct, frozen=True, kw_only=True):
    """How the response ended.

    Attributes:
        level: `ok`; `warning`: complete, but cut short or unusual; `error`: it failed.
        text: the same in words, on one line.
        terminal: kind of the terminal event.
        status: status of the response.
        stop_reason: why the model stopped.
        native_stop_reason: the wire's own value of it.
        response_id: the provider's id of the response.
        model: the model that the provider reports.
        error: error of a failed response (fields of `ErrorInfo`).
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
    """One noteworthy fact about the response.

    Attributes:
        level: `ok`, `warning`, or `error`.
        code: kind of the finding, for programs (`complete`, `truncated`, `notice` …).
        text: the finding in words, on one line, safe for a terminal.
        detail: quotation of the response that follows the text, safe for a terminal.
        byte: offset in the body.
        frame: number of the frame.
        count: number of occurrences.
    """

    level: Level
    code: str
    text: str
    detail: str = ""
    byte: int | None = None
    frame: int | None = None
    count: int = 1


class Silence(Struct, frozen=True, kw_only=True):
    """A time in which there was nothing new to show.

    Attributes:
        start: seconds from the request to its start.
        end: seconds from the request to its end.
        byte: offset of the first byte after it, or of the frame that was not finished.
        frame: number of the next frame that was finished.
        bytes: number of bytes received during it; 0 if there were none.
    """

    start: float
    end: float
    byte: int
    frame: int
    bytes: int = 0


class Silences(Struct, frozen=True, kw_only=True):
    """The two kinds of silence. No moment is in both.

    Attributes:
        threshold: seconds; shorter silences are not listed.
        no_bytes: silences in which no byte was received.
        no_frame: silences in which bytes were received, but no frame was finished.
    """

    threshold: float
    no_bytes: tuple[Silence, ...] = ()
    no_frame: tuple[Silence, ...] = ()


class RateLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rate limit; None where the provider did not report a value.

    Attributes:
        name: `requests`, `tokens`, `input_tokens`, `output_tokens`, or the provider's.
        remaining: requests or tokens that are left.
        limit: requests or tokens that are allowed.
        reset_after: seconds until it resets.
        reset_at: time at which it resets, in UTC.
    """

    name: str
    remaining: float | None = None
    limit: float | None = None
    reset_after: float | None = None
    reset_at: str | None = None


class Facts(Struct, frozen=True, kw_only=True):
    """Numbers of a response. Times are seconds since the request was sent; None: not known.

    Attributes:
        bytes: number of bytes of the body.
        chunks: number of chunks that were received.
        frames: number of frames, also of those after the end of the response.
        characters: number of characters of text, reasoning, refusals and arguments.
        events: number of events of each type.
        first_byte: time of the first byte.
        first_token: time of the first output of the model.
        duration: time of the last byte.
        tokens_per_second: speed between the first and the last output; None if less than a tenth
            of a second lies between them, which does not measure the model, or if the final usage
            was not received.
        usage: token counts (fields of `Usage`, without `raw`).
        limits: rate limits.
        retry_after: seconds to wait, as the provider requested.
        request_id: the provider's id of the request.
        longest_no_bytes: longest time without a byte, after the first one.
        longest_no_frame: longest time with bytes, but without a finished frame.
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
    """The chunks as two columns, with a value for each chunk.

    Attributes:
        at: seconds since the request was sent.
        bytes: number of bytes.
    """

    at: list[float]
    bytes: list[int]


class FrameColumns(Struct, frozen=True, kw_only=True):
    """The frames as columns. Frames are contiguous and begin with the first byte of the body.

    Attributes:
        kinds: names of frames on the wire, each once.
        kind: index into `kinds`, for each frame.
        bytes: number of bytes of each frame.
        events: number of events of each frame; 0 for those after the end of the response.
    """

    kinds: list[str]
    kind: list[int]
    bytes: list[int]
    events: list[int]


class InspectedItem(Struct, frozen=True, kw_only=True):
    """One item of the response. Frames and events are given by their numbers.

    Attributes:
        index: index of the item.
        type: kind of the item.
        label: kind of the item, and the name of its tool.
        choice: number of the choice that it belongs to.
        first_frame: frame that opens it.
        last_frame: frame that closes it.
        first_event: its `OutputItemAdded`.
        last_event: its `OutputItemDone`.
        status: `completed` or `incomplete`.
        truncated: whether it was closed only because the input ended or failed.
        characters: number of characters of its text, reasoning or arguments.
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
        count: number of all such boundaries.
        bytes: offsets of the first ones.
    """

    count: int = 0
    bytes: tuple[int, ...] = ()


class UnknownEvent(Struct, frozen=True, kw_only=True):
    """A kind of event or delta that the parser does not know, with its first occurrence."""

    event: str
    byte: int
    frame: int
    count: int = 1


class InspectedNotice(Struct, frozen=True, kw_only=True):
    """A `Notice` with its position. `index` is the index of the item that it concerns."""

    code: str
    detail: str = ""
    index: int | None = None
    byte: int
    frame: int


class InspectedRequest(Struct, frozen=True, kw_only=True):
    """The request, if the recording contains it.

    Attributes:
        bytes: number of bytes of its body.
        headers: request headers that recordings keep.
        wire_api: its wire.
        model: name of the requested model.
        items: number of items of its history.
        tools: number of tools that it offers.
        text: its body, with keys masked.
        changes: changes that a gateway made before sending it to its target.
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
    """The result of parsing the body in other chunks.

    Attributes:
        split: `whole`, `recorded`, or the bytes of a chunk.
        chunks: number of chunks.
        same: whether the events are the same.
        first_difference: number of the first event that differs.
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
    """Whether the boundaries of chunks change the events."""

    results: tuple[SplitResult, ...] = ()
    skipped: tuple[SkippedSplit, ...] = ()


class Inspection(Struct, frozen=True, kw_only=True):
    """What a captured response holds, when it was received, and what is missing.

    Attributes:
        format: name and version of the format.
        made_by: program and version.
        redacted: whether texts were replaced by their lengths.
        source: origin of the bytes.
        outcome: how the response ended.
        findings: whether it is complete, then anything unusual.
        facts: numbers and times.
        silences: times in which there was nothing new to show.
        chunks: the chunks that were received.
        frames: the frames of the wire.
        events: the JSON of each `ResponseEvent`.
        items: items of the response.
        split_characters: chunk boundaries inside a character.
        unknown_events: unknown events, each kind once.
        notices: notices of anomalies and repairs.
        request: the request; None if the recording does not contain it.
        splits: results of parsing the body in other chunks.
        body: all bytes of the body; None if the document is redacted.
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
        """The page for a notebook, in a sandboxed frame that can access nothing outside."""
        from html import escape

        from streamlib.inspection.page import page

        return (
            '<iframe sandbox="allow-scripts" title="inspection" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:0" '
            f'srcdoc="{escape(page([page_entry(self)]))}"></iframe>'
        )

    def __repr__(self) -> str:
        """A summary on one line, because the document is long."""
        return (
            f"Inspection({self.source.name!r}, {self.outcome.text!r}, {self.facts.bytes:,} bytes)"
        )


def page_entry(inspection: Inspection) -> PageEntry:
    """What the page shows of an inspection."""
    from streamlib.inspection.page import PageEntry

    label = f"{inspection.source.name} {inspection.outcome.text}".strip()
    return PageEntry(label, encode(inspection, with_body=False), inspection.body)


def encode(inspection: Inspection, *, with_body: bool = True) -> bytes:
    """An inspection as JSON on one line.

    Args:
        inspection: the inspection to write.
        with_body: whether to write the bytes of the body, in base64.
    """
    if not with_body:
        inspection = msgspec.structs.replace(inspection, body=None)
    return msgspec.json.encode(inspection)


def load(data: bytes | str) -> Inspection:
    """Reads an inspection that `encode` wrote in this or another version of streamlib.

    Unknown keys are ignored.

    Args:
        data: the JSON document.

    Raises:
        ValueError: it is not an inspection, or its version cannot be read.
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
