"""Opens what HTTP tools write: headers in front of a body, its framing and compression, HAR."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from streamlib.inspection.file_parts import FILE_BYTES, FilePart, UnreadableFile, bytes_of, text_of
from streamlib.recording.files import Chunk, kept_headers
from streamlib_parsers.items import WireApi
from streamlib_parsers.redaction import redact

_STATUS_LINE: Final = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})[^\r\n]*(?:\r?\n|\Z)")
_REQUEST_LINE: Final = re.compile(rb"[A-Z]{3,7} (\S{1,2000}) HTTP/\d(?:\.\d)?\r?\n")
_HOST: Final = re.compile(rb"^host: *([^\s/]{1,300})", re.MULTILINE | re.IGNORECASE)
_NEXT_RESPONSE: Final = re.compile(
    rb"(?<=[\s}\]])HTTP/\d(?:\.\d)? \d{3}[^\r\n]{0,200}\r?\n[\w-]{1,100}:"
)
_END_OF_HEADERS: Final = re.compile(rb"\r?\n\r?\n")

_VERBOSE_HEAD: Final = re.compile(rb"^< HTTP/", re.MULTILINE)
_VERBOSE_REQUEST: Final = re.compile(rb"^> [A-Z]+ (\S+) HTTP/", re.MULTILINE)
_VERBOSE_HOST: Final = re.compile(rb"^> host: *(\S+)", re.MULTILINE | re.IGNORECASE)
_VERBOSE_NOISE: Final = re.compile(
    rb"[*>] |[*>]$|[{}] \[\d+ bytes data\]|\s+% Total|\s+Dload"
    rb"|[\s\d.kMG]{1,99}[-\d]{1,9}:[-\d]{2}:[-\d]{2} "
)
"""Lines of `curl -v` that are neither a response header nor its body; `>` has the keys."""

_DUMPED_RESPONSE: Final = re.compile(rb"^ *<< (?:HTTP/\S+ )?(\d{3})\b.*$", re.MULTILINE)
_DUMPED_URL: Final = re.compile(rb"^\S+:? [A-Z]+ (https?://\S+)", re.MULTILINE)

_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]{0,1000})?\r\n")

_COMPRESSED: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))
_ZLIB: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]")

_NO_API: Final = ("image/", "font/", "video/", "audio/", "text/css", "javascript", "text/html")
"""Media types of a page and its files, which are in a HAR too."""


# --- curl -i, curl -v, mitmdump ---


def has_status_line(data: bytes) -> bool:
    """Whether it begins with the headers of a response (`curl -i`), or with the request before it
    (`http -v`, what Wireshark saves)."""
    if _REQUEST_LINE.match(data):
        return _NEXT_RESPONSE.search(data) is not None
    return _STATUS_LINE.match(data) is not None


def open_headers(part: FilePart) -> list[FilePart]:
    """The responses behind their headers; those without a body (1xx, redirects) are left out."""
    data = part.body
    parts: list[FilePart] = []
    last: FilePart | None = None
    offset = 0
    request = _REQUEST_LINE.match(data)
    response = _NEXT_RESPONSE.search(data)
    if request is not None and response is not None:
        offset = response.start()
        host = _HOST.search(data, 0, offset)
        if host is not None:
            part = _at_url(part, _url_of(host[1], request[1]))
    while True:
        status = _STATUS_LINE.match(data, offset)
        if status is None:
            break
        head_end = _END_OF_HEADERS.search(data, max(offset, status.end() - 2))
        start = len(data) if head_end is None else head_end.end()
        headers = _headers_in(data[status.end() : start])
        following = None
        if not _STATUS_LINE.match(data, start):
            following = _NEXT_RESPONSE.search(data, start)
            end = len(data) if following is None else following.start()
        else:
            end = start
        last = _exchange(part, int(status[1]), headers, data[start:end])
        if data[start:end].strip():
            parts.append(last)
        offset = end
        if offset >= len(data):
            break
    if not parts and last is not None:
        return [last]
    return parts


def _headers_in(head: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in head.splitlines():
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return headers


def _exchange(part: FilePart, status: int, headers: dict[str, str], body: bytes) -> FilePart:
    truncation = None
    length = headers.get("content-length", "")
    # curl removes an encoding, and the length is of the encoded body.
    if length.isdecimal() and len(length) < 16 and "content-encoding" not in headers:
        if len(body) < int(length):
            truncation = f"of {int(length):,} bytes of the body the file has {len(body):,}"
        else:
            body = body[: int(length)]
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body, truncation = _without_chunks(body)
    opened = part.holding(body, truncation)
    return opened.of_exchange(status=status, headers=kept_headers(headers))


def is_verbose(data: bytes) -> bool:
    """Whether it is the output of `curl -v`."""
    return _VERBOSE_HEAD.search(data) is not None


def open_verbose(part: FilePart) -> list[FilePart]:
    """The same as `curl -i` writes: its lines without their marks, and without the request."""
    lines: list[bytes] = []
    for line in part.body.splitlines(keepends=True):
        if line.startswith(b"< ") or line.strip() == b"<":
            lines.append(line[2:].strip() + b"\r\n")
        elif not _VERBOSE_NOISE.match(line.rstrip()):
            lines.append(line)
    inner = part.holding(b"".join(lines).lstrip())
    path, host = _VERBOSE_REQUEST.search(part.body), _VERBOSE_HOST.search(part.body)
    if path is None or host is None:
        return [inner]
    return [_at_url(inner, _url_of(host[1], path[1]))]


def _url_of(host: bytes, path: bytes) -> str:
    return f"https://{host.decode('latin-1')}{path.decode('latin-1')}"


def is_dumped(data: bytes) -> bool:
    """Whether it is the text that mitmdump writes."""
    return _DUMPED_RESPONSE.search(data) is not None


def open_dumped(part: FilePart) -> list[FilePart]:
    """The responses, as `curl -i` writes them; mitmdump indents them by four blanks."""
    data = part.body
    parts: list[FilePart] = []
    matches = list(_DUMPED_RESPONSE.finditer(data))
    starts = [match.start() for match in matches]
    previous = 0
    for match, following in zip(matches, [*starts[1:], len(data)], strict=True):
        lines = [b"HTTP/1.1 %s\r\n" % match[1]]
        for line in data[match.end() + 1 : following].splitlines(keepends=True):
            if line.strip() and not line.startswith(b"    "):
                break
            lines.append(line[4:] if line.strip() else b"\n")
        inner = part.holding(b"".join(lines).rstrip() + b"\n\n")
        urls = _DUMPED_URL.findall(data, previous, match.start())
        if urls:
            inner = _at_url(inner, urls[-1].decode("latin-1"))
        parts.append(inner)
        previous = match.end()
    return parts


def _at_url(part: FilePart, url: str) -> FilePart:
    """The part, with the address that it comes from, but no query: that may hold a key."""
    url = redact(url.partition("?")[0])
    return part.of_exchange(url=url, wire_api=_wire_of(url))


def _wire_of(url: str) -> WireApi | None:
    # Imported here, because most captures have no address, and it loads the transports.
    from streamlib.recording.recorder import wire_of_url

    try:
        return wire_of_url(url)
    except ValueError:  # such as http://[
        return None


# --- chunks of HTTP/1.1 ---


def is_chunked(data: bytes) -> bool:
    """Whether the framing of HTTP/1.1 is still there (`curl --raw`)."""
    size = _CHUNK_SIZE.match(data)
    if size is None:
        return False
    end = size.end() + int(size[1], 16)
    if end > len(data):  # its first chunk was cut
        return data.startswith((b"data:", b"event:", b"{"), size.end())
    return data[end : end + 2] == b"\r\n"


def open_chunked(part: FilePart) -> list[FilePart]:
    """The body without its framing."""
    return [part.holding(*_without_chunks(part.body))]


def _without_chunks(data: bytes) -> tuple[bytes, str | None]:
    """A body without the framing of its chunks, and what is missing of it.

    A body whose headers promise chunks and which has none was decoded by who wrote it.
    """
    body = bytearray()
    offset = 0
    while True:
        size = _CHUNK_SIZE.match(data, offset)
        if size is None:
            if offset == 0:
                return data, None
            return bytes(body), f"the framing of the body's chunks ends at byte {offset:,}"
        length = int(size[1], 16)
        if length == 0:
            return bytes(body), None
        chunk = data[size.end() : size.end() + length]
        body += chunk
        if len(chunk) < length:
            return bytes(body), "its last chunk is not complete"
        offset = size.end() + length + 2


# --- compression ---


def compression_of(data: bytes) -> str | None:
    """The content-encoding that the first bytes show; Brotli has no such bytes."""
    for magic, encoding in _COMPRESSED:
        if data.startswith(magic):
            return encoding
    if _ZLIB.match(data) and int.from_bytes(data[:2], "big") % 31 == 0:
        return "deflate"
    return None


def is_compressed(data: bytes) -> bool:
    """Whether it is gzip, zlib or Zstandard."""
    return compression_of(data) is not None


def open_compressed(part: FilePart) -> list[FilePart]:
    """What it was compressed from."""
    body, problem = _decoded(part.body, compression_of(part.body) or "")
    if problem is not None and not body:
        raise UnreadableFile(problem)
    return [part.holding(body, problem)]


def is_binary(data: bytes) -> bool:
    """Whether it is no text: then it may be Brotli, which has no mark at its beginning."""
    try:
        data[:1000].decode()
    except UnicodeDecodeError as error:
        return error.start < 900
    return b"\x00" in data[:1000]


def open_brotli(part: FilePart) -> list[FilePart]:
    """What Brotli compressed; nothing where it did not."""
    body, problem = _decoded(part.body, "br")
    if is_binary(body) or not body:
        return []
    return [part.holding(body, problem)]


def _decoded(data: bytes, encoding: str) -> tuple[bytes, str | None]:
    # Imported here, because most captures are not compressed, and it loads anyio.
    from streamlib.transport.content_encoding import decode_file

    try:
        body, problem = decode_file(data, encoding, FILE_BYTES)
    except (ImportError, AttributeError):
        hint = f"pip install 'streamlib[{encoding}]'"
        if encoding == "br":
            raise UnreadableFile(f"no text; if it is compressed with Brotli: {hint}") from None
        raise UnreadableFile(f"compressed ({encoding}): {hint} opens it") from None
    if problem is not None:
        problem = f"the compressed data ({encoding}) is not whole: {problem}"
    return body, problem


# --- HAR ---


def is_har(data: bytes) -> bool:
    """Whether it is an HTTP archive."""
    return b"".join(data[:200].split()).startswith(b'{"log":{')


def open_har(part: FilePart) -> list[FilePart]:
    """The responses that may be of an API: not those of pages and their files.

    Raises:
        UnreadableFile: it is cut or damaged, or no response in it has a body.
    """
    try:
        archive = msgspec.json.decode(part.body, type=dict[str, Any])
        entries: list[Any] = list(archive["log"]["entries"])
    except (msgspec.DecodeError, UnicodeError, RecursionError, LookupError, TypeError) as error:
        raise UnreadableFile(
            f"a HAR file that is cut or damaged ({error}): export it again"
        ) from None
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
        parts.append(opened)
    if len(parts) == len(empty):
        raise UnreadableFile(_why_no_entry(len(entries), empty))
    return parts


def _why_no_entry(count: int, empty: list[str]) -> str:
    if empty:
        return (
            f"a HAR file without the body of {empty[0]}: export it with content "
            "(in Chrome: Export HAR, with the developer tools open before the request)"
        )
    return f"a HAR file with {count:,} entries, none of which is a response of an API"


def _entry(part: FilePart, entry: Any) -> FilePart | None:
    request, response = entry["request"], entry["response"]
    content: dict[str, Any] = response.get("content") or {}
    media_type = str(content.get("mimeType") or "").lower()
    opened = _at_url(part, str(request["url"]))
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


# --- how text is stored ---


def encoding_of(data: bytes) -> str | None:
    """The character encoding of a text that is not plain UTF-8; None for that."""
    if data.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "utf-32"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    start = data[:200]
    # Without a mark: every other byte of ASCII is zero.
    for encoding, zeros, characters in (
        ("utf-16-le", start[1::2], start[::2]),
        ("utf-16-be", start[::2], start[1::2]),
    ):
        if len(zeros) > 3 and not zeros.strip(b"\0") and 0 not in characters:
            return encoding
    return None


def is_encoded(data: bytes) -> bool:
    """Whether it is UTF-16 or UTF-32, or has a byte order mark."""
    return encoding_of(data) is not None


def open_encoded(part: FilePart) -> list[FilePart]:
    """The same text in UTF-8."""
    encoding = encoding_of(part.body) or "utf-8"
    if encoding == "utf-8-sig":
        return [part.holding(part.body[3:])]
    text = part.body.decode(encoding, "replace")
    return [part.holding(text.encode("utf-8", "replace"))]


# --- pages ---

_TITLE: Final = re.compile(r"<title[^<>]{0,200}>([^<]{0,1000})", re.IGNORECASE)
_ADDRESS: Final = re.compile(
    r"""saved from url=\(\d+\)(?P<saved>[^\s>]{1,1000})"""
    r"""|<link[^<>]{0,200}rel=["']?canonical["']?[^<>]{0,200}href=["'](?P<link>[^"'>]{1,1000})"""
    r"""|<meta[^<>]{0,200}og:url["'][^<>]{0,200}content=["'](?P<meta>[^"'>]{1,1000})"""
    r"""|<base[^<>]{0,200}href=["'](?P<base>[^"'>]{1,1000})"""
    r"""|<form[^<>]{0,200}action=["'](?P<form>https?:[^"'>]{1,1000})""",
    re.IGNORECASE,
)
_PAGE_BYTES: Final = 65_536
"""Bytes of a page in which its title and address are looked for."""


def is_page(data: bytes) -> bool:
    """Whether it is an HTML page."""
    start = data[:1000].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<!-- saved from"))


def page_texts(data: bytes, url: str = "") -> Iterator[str]:
    """The title of an HTML page, in quotes, and its address, as far as it has them.

    Args:
        data: the page.
        url: where it comes from, if that is known.
    """
    text = text_of(data[:_PAGE_BYTES])
    title = _TITLE.search(text)
    if title is not None and title[1].strip():
        yield f'"{" ".join(title[1].split())}"'
    address = _ADDRESS.search(text)
    if url:
        yield url
    elif address is not None:
        yield redact(address[address.lastgroup or 0].partition("?")[0])
