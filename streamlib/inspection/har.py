"""Opens HTTP archives (HAR), which browsers export, also those that are cut or damaged."""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from datetime import datetime
from typing import Any, Final

import msgspec

from streamlib.inspection.document import Finding
from streamlib.inspection.file_parts import FilePart, NoResponseFound, bytes_of, text_of
from streamlib.inspection.http_forms import at_url
from streamlib.recording.files import Chunk, kept_headers
from streamlib_parsers.json_reader import JsonReader, past_space

_HAR_ENTRIES: Final = re.compile(r'"entries"\s*:\s*\[')
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]*+={0,2}")
_SURELY_BASE64: Final = 24
"""Characters of base64, fewer of which may as well be the beginning of a plain text."""
_DECODE: Final = json.JSONDecoder().raw_decode

_NO_API: Final = ("image/", "font/", "video/", "audio/", "text/css", "javascript", "text/html")
"""Media types of a page and its files, which are in a HAR too."""


def is_har(data: bytes) -> bool:
    """Whether it is an HTTP archive."""
    return b"".join(data[:200].split()).startswith(b'{"log":{')


def open_har(part: FilePart) -> list[FilePart]:
    """The responses that may be of an API: not those of pages and their files.

    Raises:
        NoResponseFound: no response in it has a body, or none before it is cut or damaged.
    """
    entries, partial, problem = _entries_of(part.body)
    problem = part.truncation or problem
    part = msgspec.structs.replace(part, truncation=None)
    parts: list[FilePart] = []
    empty: list[str] = []
    for entry in entries:
        try:
            opened = _entry(part, entry)
        except (LookupError, TypeError, ValueError, AttributeError):
            continue  # not as HAR has it: there is nothing to show of it
        if opened is None:
            continue
        if not opened.body:
            # Browsers ask an API with OPTIONS first, and get nothing.
            if opened.recording.wire_api is None or opened.recording.method == "OPTIONS":
                continue
            empty.append(opened.recording.url)
            opened = msgspec.structs.replace(opened, truncation="the HAR file lacks its body")
        if entry is partial:
            opened = msgspec.structs.replace(opened, truncation=problem)
        parts.append(opened)
    if len(parts) == len(empty):
        if problem is not None:
            raise NoResponseFound(f"{problem}; no response is before that: export it again")
        raise NoResponseFound(_why_no_entry(len(entries), empty))
    if problem is not None and parts[-1].truncation != problem:
        text = f"behind this response {problem}"
        remark = Finding(level="warning", code="file_truncated", text=text)
        parts[-1] = msgspec.structs.replace(parts[-1], remarks=(*part.remarks, remark))
    return parts


def _entries_of(data: bytes) -> tuple[list[Any], Any, str | None]:
    """The entries of a HAR file, the one of them whose response is cut, and why the file cannot be
    read to its end."""
    text = text_of(data)
    try:
        # Reads NaN, and bytes that are not UTF-8, too: nothing is lost with them.
        return _listed_in(json.loads(text)), None, None
    except json.JSONDecodeError as error:
        problem = f"the HAR file is cut or damaged at character {error.pos:,}"
    except (ValueError, RecursionError):  # a number too long, or too deep
        problem = "the HAR file is damaged"
    entries: list[Any] = []
    start = _HAR_ENTRIES.search(text)
    if start is None:
        return entries, None, problem
    offset = start.end()
    while True:
        try:
            entry, offset = _DECODE(text, past_space(text, offset))
        except (ValueError, RecursionError):
            break
        entries.append(entry)
        offset = past_space(text, offset)
        if not text.startswith(",", offset):
            break
        offset += 1
    reader = JsonReader()
    reader.read(text[offset:])
    last = reader.value()
    if not isinstance(last, dict) or not last:
        return entries, None, problem
    entries.append(_cut_entry(last))
    # Behind its response an entry has only what is not shown.
    is_cut = list(last)[-1] in ("response", "_eventSourceMessages")
    return entries, last if is_cut else None, problem


def _listed_in(archive: Any) -> list[Any]:
    log = archive.get("log")
    entries = log.get("entries") if isinstance(log, dict) else None
    return entries if isinstance(entries, list) else []


def _cut_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry that is cut, without what can be read only as a whole: a message, and a group of
    characters in base64."""
    response = entry.get("response")
    content = response.get("content") if isinstance(response, dict) else None
    text = content.get("text") if isinstance(content, dict) else None
    if isinstance(content, dict) and isinstance(text, str):
        is_base64 = content.get("encoding") == "base64"
        # The key that says so often stands behind the text.
        if is_base64 or _BASE64.fullmatch(text):
            groups = "".join(text.split())
            groups = groups[: len(groups) // 4 * 4]
            if not is_base64 and len(groups) < _SURELY_BASE64:
                groups = ""
            content |= {"text": groups, "encoding": "base64"}
    messages = entry.get("_eventSourceMessages")
    if isinstance(messages, list) and list(entry)[-1] == "_eventSourceMessages":
        entry["_eventSourceMessages"] = messages[:-1]
    return entry


def _why_no_entry(count: int, empty: list[str]) -> str:
    if count == 0:
        return "a HAR file without entries"
    if empty:
        return (
            f"a HAR file without the body of {empty[0]}: export it with content "
            "(in Chrome: Export HAR, with the developer tools open before the request)"
        )
    if count == 1:
        return "a HAR file with 1 entry, which is no response of an API"
    return f"a HAR file with {count:,} entries, none of which is a response of an API"


def _entry(part: FilePart, entry: Any) -> FilePart | None:
    request, response = entry["request"], entry["response"]
    content: dict[str, Any] = response.get("content") or {}
    media_type = str(content.get("mimeType") or "").lower()
    opened = at_url(part, str(request["url"]))
    is_named = opened.recording.wire_api is not None
    if not is_named and any(kind in media_type for kind in _NO_API):
        return None
    headers: dict[str, str] = {}
    for header in response.get("headers") or ():
        headers[str(header["name"]).lower()] = str(header["value"])
    body = bytes_of(str(content.get("text") or ""))
    truncation = None
    if content.get("encoding") == "base64":
        try:
            body = b64decode(body)
        except binascii.Error:
            body, truncation = b"", "its body in the HAR file is not base64"
    opened = opened.holding(body, truncation).of_exchange(
        status=int(response.get("status") or 0) or 200,
        headers=kept_headers(headers),
        method=str(request.get("method") or ""),
    )
    messages = entry.get("_eventSourceMessages")
    if not body and messages:
        opened = opened.of_exchange(chunks=_event_source(entry, messages))
        return msgspec.structs.replace(opened, is_recorded=True)
    return opened


def _event_source(entry: dict[str, Any], messages: list[dict[str, Any]]) -> tuple[Chunk, ...]:
    """A stream of which Chrome kept the messages, with their times, and not the body."""
    started = datetime.fromisoformat(str(entry["startedDateTime"])).timestamp()
    chunks: list[Chunk] = []
    for message in messages:
        lines = [f"event: {message['eventName']}"] if message.get("eventName") else []
        lines += [f"data: {line}" for line in str(message["data"]).split("\n")]
        data = bytes_of("\n".join(lines) + "\n\n")
        chunks.append(Chunk(max(0.0, float(message["time"]) - started), data))
    return tuple(chunks)
