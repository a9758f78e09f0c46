"""Opens what HTTP tools write: headers in front of a body, its framing and compression."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from streamlib.inspection.document import Finding
from streamlib.inspection.file_parts import (
    FILE_BYTES,
    FilePart,
    UnreadableFile,
    text_of,
)
from streamlib.recording.files import kept_headers
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import is_json_bytes
from streamlib_parsers.redaction import redact

_STATUS_LINE: Final = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})[^\r\n]*(?:\r?\n|\Z)")
_REQUEST_LINE: Final = re.compile(rb"[A-Z]{3,7} (\S{1,2000}) HTTP/\d(?:\.\d)?\r?\n")
_HOST: Final = re.compile(rb"^host: *([^\s/]{1,300})", re.MULTILINE | re.IGNORECASE)
_NEXT_RESPONSE: Final = re.compile(
    rb"(?<=[\s}\]])HTTP/\d(?:\.\d)? \d{3}[^\r\n]{0,200}\r?\n[\w-]{1,100}:"
)
_NEXT_REQUEST: Final = re.compile(rb"(?<=[\n}\]])" + _REQUEST_LINE.pattern)
_NEXT_MESSAGE: Final = re.compile(rb"\s*(?=HTTP/\d|[A-Z]{3,7} (?:/|https?://))")
"""What follows a body at its length, where a connection is used again: maybe a cut request."""
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

# --- curl -i, curl -v, mitmdump ---


def has_status_line(data: bytes) -> bool:
    """Whether it begins with the headers of a response (`curl -i`), or with the request before it
    (`http -v`, what Wireshark saves)."""
    if _REQUEST_LINE.match(data):
        return _NEXT_RESPONSE.search(data) is not None
    return _STATUS_LINE.match(data) is not None


def open_headers(part: FilePart) -> list[FilePart]:
    """The responses behind their headers; those without a body (1xx, redirects) are left out, and
    so are requests: they hold keys."""
    data = part.body
    parts: list[FilePart] = []
    last: FilePart | None = None
    exchange = part
    offset = 0
    while offset < len(data):
        request = _REQUEST_LINE.match(data, offset)
        if request is not None:
            response = _NEXT_RESPONSE.search(data, offset)
            if response is None:
                break
            host = _HOST.search(data, offset, response.start())
            exchange = part
            if host is not None:
                exchange = at_url(part, _url_of(host[1], request[1]))
            offset = response.start()
        status = _STATUS_LINE.match(data, offset)
        if status is None:
            break
        head_end = _END_OF_HEADERS.search(data, max(offset, status.end() - 2))
        start = len(data) if head_end is None else head_end.end()
        headers = _headers_in(data[status.end() : start])
        offset = _end_of_body(data, start, headers)
        last = _exchange(exchange, int(status[1]), headers, data[start:offset])
        if data[start:offset].strip():
            parts.append(last)
    if not parts and last is not None:
        return [last]
    return parts


def _end_of_body(data: bytes, start: int, headers: dict[str, str]) -> int:
    """Where a body ends that starts at an offset: there the next message begins, or nothing."""
    if _STATUS_LINE.match(data, start):
        return start
    length = _length_in(headers)
    if length is not None:
        message = _NEXT_MESSAGE.match(data, start + length)
        if message is not None:
            return message.end()
    response = _NEXT_RESPONSE.search(data, start)
    end = len(data) if response is None else response.start()
    request = _NEXT_REQUEST.search(data, start, end)
    return end if request is None else request.start()


def _length_in(headers: dict[str, str]) -> int | None:
    length = headers.get("content-length", "")
    if length.isdecimal() and len(length) < 16:
        return int(length)
    return None


def _headers_in(head: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in head.splitlines():
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return headers


def _exchange(part: FilePart, status: int, headers: dict[str, str], body: bytes) -> FilePart:
    truncation = surplus = None
    length = _length_in(headers)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body, truncation = _without_chunks(body)
    # curl removes an encoding, and the length is of the encoded body.
    elif length is not None and "content-encoding" not in headers:
        if len(body) < length:
            truncation = f"of {length:,} bytes of the body the file has {len(body):,}"
        else:
            body, surplus = _of_length(body, length, headers)
    opened = part.holding(body, truncation)
    if surplus is not None:
        remark = Finding(level="warning", code="content_length", text=surplus)
        opened = msgspec.structs.replace(opened, remarks=(remark,))
    return opened.of_exchange(status=status, headers=kept_headers(headers))


def _of_length(body: bytes, length: int, headers: dict[str, str]) -> tuple[bytes, str | None]:
    """A body with at least the bytes that its headers promise, and a report of further ones."""
    rest = body[length:]
    if not rest.strip():
        # A line end of the tool that wrote the file.
        return body[:length], None
    surplus = f"the body has {len(body):,} bytes, {len(rest):,} more than its content-length says"
    has_lines = "ndjson" in headers.get("content-type", "")
    if is_json_bytes(body[:length]) and not has_lines:
        # What `curl -w` prints, for example: with it the body would be no JSON.
        return body[:length], f"{surplus}, which were not read"
    return body, surplus


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
    return [at_url(inner, _url_of(host[1], path[1]))]


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
            inner = at_url(inner, urls[-1].decode("latin-1"))
        parts.append(inner)
        previous = match.end()
    return parts


def at_url(part: FilePart, url: str) -> FilePart:
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
