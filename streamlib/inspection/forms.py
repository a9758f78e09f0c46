"""The one reader of captures: the forms in which people have responses, and what opens each.

    parts = open_file(data)        # a HAR file, compressed: its responses

A file is opened form by form, until what is left is a response as it is: `session.har.gz` is gzip,
then HAR, then a body in base64. The first form of `FORMS` that recognises the bytes opens them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.inspection import har, http_forms, python_forms, several, text_forms
from streamlib.inspection.file_parts import FILE_BYTES, FilePart, UnreadableFile, part_of
from streamlib.recording.files import (
    is_recording,
    load_events,
    of_another_kind,
    read,
    read_rest,
)

ADVICE_BYTES: Final = 4096
"""Bytes of a file in which `UNOPENED` is looked for."""

DEPTH: Final = 8
"""Maximum of forms inside one another: a JSON string in a log in a HAR file in gzip has four."""

OPENED_PARTS: Final = 20_000
"""Maximum of parts that a file is opened into: an inspection of each response is made."""

OPENED_BYTES: Final = 2 * FILE_BYTES
"""Maximum of bytes of all these parts. A few KiB of compressed data may become any number."""

NOT_CAPTURES: Final = (
    (b"\x0a\x0d\x0d\x0a", "a packet capture: in Wireshark, follow the HTTP stream and save it"),
    (b"\xd4\xc3\xb2\xa1", "a packet capture: in Wireshark, follow the HTTP stream and save it"),
    (b"PK\x03\x04", "a ZIP archive: unpack it, and name the files in it"),
    (b"SQLite format 3", "a SQLite database: streamlib log reads those of streamlib"),
    (b"\x89PNG", "a picture, not text: copy the text of the response"),
    (b"\xff\xd8\xff", "a picture, not text: copy the text of the response"),
    (b"%PDF", "a PDF document: copy the text of the response"),
    (b"\x7fELF", "a program"),
)
"""First bytes of files that people have beside captures, and what to do with them."""

UNOPENED: Final = (
    (
        re.compile(rb"\s*\d+:\d+:[a-z_]{1,30}[;,]"),
        "a flow file of mitmproxy: mitmdump -nr FILE --set hardump=FILE.har makes a HAR file of it",
    ),
    (
        re.compile(rb"(?m)^[0-9a-f]{7,8}:? +(?:[0-9a-f]{2,4} ){4}"),
        "a hex dump: save the bytes themselves (xxd -r makes them of what xxd printed)",
    ),
    (
        re.compile(rb"\b[A-Z]\w{2,60}\((?:id|choices|type|content|text)="),
        "an object of an SDK as Python prints it: save its model_dump_json() instead",
    ),
)
"""Texts that hold a response and are not opened, and what to do: tried where nothing was found."""


class Form(Struct, frozen=True):
    """One form in which a response is stored.

    Attributes:
        name: what it is called in messages, in the document and in the documentation.
        recognises: whether a part has this form. It may be wrong: see `open`.
        open: the parts inside; none where it is not this form after all. None: the part is a
            response, as it is.
        is_named: whether a response is said to be from it. A recording needs no mention.
    """

    name: str
    recognises: Callable[[FilePart], bool]
    open: Callable[[FilePart], list[FilePart]] | None
    is_named: bool = True


def _by_bytes(recognises: Callable[[bytes], bool]) -> Callable[[FilePart], bool]:
    return lambda part: recognises(part.body)


# --- streamlib's own files ---


def _open_recordings(part: FilePart) -> list[FilePart]:
    """The recordings of a file; of a truncated one what can be read."""
    recordings, problem = read(part.body)
    opened = [FilePart(recording, part.forms, is_recorded=True) for recording in recordings]
    rest = None if problem is None else read_rest(part.body, recordings)
    if rest is not None:
        opened.append(FilePart(rest.recording, part.forms, rest.reason, is_recorded=True))
    elif problem is not None:
        reason = f"it starts as a streamlib recording, but {problem}"
        if not opened:
            raise UnreadableFile(reason)
        nothing = FilePart(opened[-1].recording, part.forms, reason, is_recorded=True)
        opened.append(nothing.of_exchange(chunks=()))
    return opened


def _is_event_log(data: bytes) -> bool:
    return data.startswith(b'{"type":') and "event log" in (of_another_kind(data) or "")


def _open_event_log(part: FilePart) -> list[FilePart]:
    """The events as a wire that holds all items has them."""
    # Imported here, because few files are logs of events.
    from streamlib.wires.encoders import encoder

    truncation = None
    try:
        events = load_events(part.body)
    except ValueError:
        complete, _, rest = part.body.rpartition(b"\n")
        truncation = f"the last {len(rest):,} bytes of the event log are no event"
        try:
            events = load_events(complete)
        except ValueError as error:
            raise UnreadableFile(f"it starts as an event log, but it is {error}") from None
    encode = encoder("responses")
    frames = [encode.feed(event) for event in events]
    if truncation is None:
        frames.append(encode.close())
    return [part.holding(b"".join(frames), truncation).of_exchange(wire_api="responses")]


# --- the table ---

FORMS: Final = (
    Form("recording", _by_bytes(is_recording), _open_recordings, is_named=False),
    Form("event log", _by_bytes(_is_event_log), _open_event_log),
    Form("compressed", _by_bytes(http_forms.is_compressed), http_forms.open_compressed),
    Form("encoding", _by_bytes(http_forms.is_encoded), http_forms.open_encoded),
    Form("HAR", _by_bytes(har.is_har), har.open_har),
    Form("HTTP headers", _by_bytes(http_forms.has_status_line), http_forms.open_headers),
    Form("HTML page", _by_bytes(http_forms.is_page), None),
    Form("chunked", _by_bytes(http_forms.is_chunked), http_forms.open_chunked),
    Form("lines of data", _by_bytes(text_forms.lacks_blank_lines), text_forms.open_lines),
    Form("mixed streams", several.is_mixed, several.open_mixed),
    Form("several streams", several.has_several, several.open_several),
    Form("response", _by_bytes(text_forms.is_response), None),
    Form("Brotli", _by_bytes(http_forms.is_binary), http_forms.open_brotli),
    Form("curl -v", _by_bytes(http_forms.is_verbose), http_forms.open_verbose),
    Form("mitmdump", _by_bytes(http_forms.is_dumped), http_forms.open_dumped),
    Form("base64", _by_bytes(text_forms.is_base64), text_forms.open_base64),
    Form("CSV", _by_bytes(text_forms.is_table), text_forms.open_cells),
    Form("Python literal", _by_bytes(python_forms.holds_literal), python_forms.open_literals),
    Form("Python dict", _by_bytes(python_forms.is_printed_dict), python_forms.open_printed_dict),
    Form("Markdown", _by_bytes(text_forms.is_fenced), text_forms.open_fences),
    Form("JSON", _by_bytes(text_forms.holds_json), text_forms.open_json),
    Form("escaped text", _by_bytes(text_forms.is_escaped), text_forms.open_escaped),
)
"""The forms, in the order in which they are tried: those that are certain by their first bytes,
then a response as it is, then what is found by looking inside a text."""


def open_file(data: bytes) -> list[FilePart]:
    """The responses of a file, in its order; none where none was found.

    Args:
        data: the bytes of the file.

    Raises:
        UnreadableFile: it holds no response, or cannot be opened.
    """
    for magic, advice in NOT_CAPTURES:
        if data.startswith(magic):
            raise UnreadableFile(advice)
    if data.strip() and not _is_event_log(data):
        other = of_another_kind(data)
        if other is not None:
            raise UnreadableFile(f"{other}, not a captured response")
    responses = _Opening().responses_in(part_of(data))
    if not responses:
        for pattern, advice in UNOPENED:
            if pattern.search(data[:ADVICE_BYTES]):
                raise UnreadableFile(advice)
    return responses


class _Opening:
    """Opens one file, within limits: a form may be recognised where it is not."""

    def __init__(self) -> None:
        self._left_bytes = OPENED_BYTES
        """How many more bytes forms may be opened into."""
        self._left_parts = OPENED_PARTS
        """How many more parts they may be opened into."""

    def responses_in(self, part: FilePart, depth: int = 0) -> list[FilePart]:
        """The responses of a part."""
        if part.is_recorded:
            return [part]
        if part.is_nothing:
            return []
        for form in FORMS:
            if not form.recognises(part):
                continue
            if form.open is None:
                return [part]
            if depth == DEPTH:
                raise UnreadableFile(f"more than {DEPTH} forms inside one another")
            forms = (*part.forms, form.name) if form.is_named else part.forms
            responses: list[FilePart] = []
            for inner in form.open(part):
                self._count(inner)
                named = msgspec.structs.replace(inner, forms=forms)
                responses += self.responses_in(named, depth + 1)
            if responses:
                return responses
        # Whatever it is, it is what an API sent.
        if part.recording.wire_api is not None or part.recording.status >= 400:
            return [part]
        return []

    def _count(self, part: FilePart) -> None:
        self._left_parts -= 1
        self._left_bytes -= len(part.body)
        if self._left_parts < 0:
            raise UnreadableFile(f"more than {OPENED_PARTS:,} responses and parts of them")
        if self._left_bytes < 0:
            raise UnreadableFile(f"more than {OPENED_BYTES:,} bytes when opened")
