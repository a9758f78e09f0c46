"""`streamlib inspect FILE…`: a captured response as a timeline with findings, JSON or a page."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

import msgspec

from streamlib.cli.arguments import CommandError
from streamlib.cli.captures import add_wire_option, files_of, for_each_capture
from streamlib.cli.exit_codes import EXIT_CODES
from streamlib.cli.inspect_page import print_page, reading_of, summary
from streamlib.cli.numbers import byte_count, seconds
from streamlib.cli.progress import Progress
from streamlib.display.safe_text import printable
from streamlib.inspection.capture import Capture, events_of
from streamlib.inspection.document import encode
from streamlib.inspection.inspector import inspected

if TYPE_CHECKING:
    from streamlib.inspection.difference import Difference
    from streamlib.inspection.document import Inspection

DESCRIPTION: Final = """\
Reads captured responses, in whatever form you have them:
  a stream or a body      also without its blank lines, or without "data:"
  several of them         one after another, or as a JSON list or JSON lines
  what streamlib wrote    recordings (of a truncated one what can be read),
                          event logs, and what --json --full printed
  from a browser          HAR files, the EventStream table, a copied text
  from an HTTP tool       curl -i, -v and --raw, mitmdump, an HTML page
  from a log              lines or JSON lines with a body, a frame or a chunk
                          inside, as JSON, escaped, or as a Python literal
  stored otherwise        gzip, zlib, Brotli, Zstandard, UTF-16, base64,
                          a JSON string, a printed dict, Markdown, CSV
The wire API is guessed where nothing names it, and that is said. Of a
directory every recording is read. A device without an end is refused."""

EXAMPLES: Final = f"""examples:
  # the timeline: offset, frame, events, and what is missing
  streamlib inspect capture.sse
  # every response of an API in what a browser exported
  streamlib inspect session.har --html session.html
  # the responses in a log
  grep response app.log | streamlib inspect -
  # a recording (chat --record) knows its wire, and when each byte was received
  streamlib inspect response.jsonl
  # the same as a page, in one file that needs no network
  streamlib inspect response.jsonl --html response.html
  # to send it to somebody: of every text only its length
  streamlib inspect response.jsonl --html masked.html --redact
  # all that is known of it, for programs
  streamlib inspect response.jsonl --json --full
  # what a gateway recorded (gateway --record exchanges)
  streamlib inspect exchanges
  # two recorded exchanges, and why the second used the prompt cache or not
  streamlib inspect exchanges/1.jsonl exchanges/2.jsonl --elapsed 400
  # two responses, event by event
  streamlib inspect before.jsonl after.jsonl --diff
  # standard input
  curl -siN … | streamlib inspect -
  # one JSON object a line for each response, for programs
  streamlib inspect *.sse --wire-api chat --json

The highest code of all responses counts. With --json and --html it is 1 for a
file that cannot be read, 2 for one that holds no response, else 0; with --diff
1 where the responses differ.

{EXIT_CODES}"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="or a directory; - is standard input"
    )
    add_wire_option(command)
    forms = command.add_mutually_exclusive_group()
    forms.add_argument(
        "--json", action="store_true", help="one JSON object a line for each response"
    )
    forms.add_argument(
        "--html",
        metavar="OUT",
        help="write a page that shows all of them in a browser; - is standard output",
    )
    command.add_argument(
        "--full",
        action="store_true",
        help="with --json: all that is known of it, as a document",
    )
    command.add_argument("--diff", action="store_true", help="compare two responses")
    command.add_argument(
        "--redact",
        action="store_true",
        help="with --html, --full or --diff: of texts only their lengths",
    )
    command.add_argument(
        "--chunk",
        type=byte_count,
        metavar="N",
        help="with --json and --html: feed the parser N bytes at a time, too",
    )
    command.add_argument(
        "--elapsed",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="of two recorded exchanges: the time between them, which prompt caches depend on",
    )
    command.set_defaults(refuse=command.error)


def run(arguments: argparse.Namespace) -> int:
    """Inspects every file; returns the highest exit code of all."""
    _check(arguments)
    if arguments.diff:
        return _compare(arguments)
    if arguments.html is not None:
        return _show(arguments)

    captures: deque[Capture] = deque(maxlen=3)
    """The last that were shown on the terminal: whether they are two."""

    def handle(capture: Capture) -> int:
        if arguments.full:
            return _print(encode(_inspection(capture, arguments)))
        if arguments.json:
            return _print(msgspec.json.encode(_summary(capture, arguments.chunk)))
        captures.append(capture)
        return print_page(capture)

    def show(document: Inspection, name: str) -> int:
        from streamlib.cli.inspect_document import capture_of, document_summary, print_document

        if arguments.full:
            return _print(encode(_document(document, name, arguments)))
        capture = capture_of(document, name)
        if capture is not None:
            return handle(capture)
        if arguments.json:
            return _print(msgspec.json.encode(document_summary(document, name)))
        return print_document(document, name)

    code = _for_each(arguments, handle, show)
    _explain_cache(captures, arguments.elapsed)
    return code


def _explain_cache(captures: Collection[Capture], elapsed: float) -> None:
    """Explains the prompt cache of two exchanges."""
    if len(captures) == 2:
        # Imported here, because most commands show one response.
        from streamlib.cli.inspect_cache import print_cache

        before, after = captures
        print_cache(before, after, elapsed)


def _for_each(
    arguments: argparse.Namespace,
    handle: Callable[[Capture], int],
    show: Callable[[Inspection, str], int],
) -> int:
    """Handles every response of every file, and shows every saved inspection."""

    def open_document(file: str, data: bytes) -> int:
        # Most files hold captures.
        from streamlib.cli.inspect_document import documents_in

        documents = documents_in(file, data)
        code = 0
        for number, document in enumerate(documents, 1):
            label = f"{file}#{number}" if len(documents) > 1 else file
            code = max(code, show(document, label))
        return code

    code = 0
    for name in arguments.files:
        for file in files_of(name):
            code = max(code, for_each_capture(file, arguments.wire_api, handle, open_document))
    return code


def _check(arguments: argparse.Namespace) -> None:
    """Refuses options that have no effect in this combination."""
    if arguments.full and not arguments.json:
        arguments.refuse("--full needs --json")
    if arguments.full and arguments.diff:
        arguments.refuse("--full has no effect with --diff")
    if arguments.chunk is not None and arguments.diff:
        arguments.refuse("--chunk has no effect with --diff")
    if arguments.chunk is not None and not arguments.json and arguments.html is None:
        arguments.refuse("--chunk needs --json or --html")
    is_document = arguments.full or arguments.html is not None
    if arguments.redact and not (is_document or arguments.diff):
        arguments.refuse("--redact needs --html, --json --full or --diff")
    if arguments.html is not None:
        _check_html(arguments)


def _check_html(arguments: argparse.Namespace) -> None:
    """Refuses to write the page over a capture or another file."""
    # Imported here, because other outputs need no page.
    from streamlib.cli.inspect_html import why_not_written

    files = [file for name in arguments.files for file in files_of(name)]
    reason = why_not_written(arguments.html, files)
    if reason is not None:
        arguments.refuse(printable(reason))


def _summary(capture: Capture, chunk_bytes: int | None) -> dict[str, Any]:
    reading = reading_of(capture)
    events = reading.positions.events
    if chunk_bytes is not None:
        with Progress(f"reading {capture.name}", len(capture.recording.body)) as progress:
            events = events_of(capture, chunk_bytes, progress.update)
    return summary(capture.name, events, reading.findings)


def _print(data: bytes) -> int:
    sys.stdout.write(data.decode() + "\n")
    return 0


# --- documents ---


def _inspection(capture: Capture, arguments: argparse.Namespace) -> Inspection:
    splits = [arguments.chunk] if arguments.chunk else []
    return _shown(inspected(reading_of(capture), splits), arguments)


def _document(document: Inspection, name: str, arguments: argparse.Namespace) -> Inspection:
    """A saved inspection as it is; parsed again where other chunks were asked for."""
    from streamlib.cli.inspect_document import NO_BYTES, capture_of

    if arguments.chunk is not None:
        capture = capture_of(document, name)
        if capture is None:
            raise CommandError(f"{name}: {NO_BYTES}, so --chunk cannot divide them")
        return _inspection(capture, arguments)
    return _shown(document, arguments)


def _shown(inspection: Inspection, arguments: argparse.Namespace) -> Inspection:
    if inspection.redacted or not arguments.redact:
        return inspection
    # Imported here, because most inspections are not redacted.
    from streamlib.inspection.redaction import redacted

    return redacted(inspection)


def _show(arguments: argparse.Namespace) -> int:
    """Writes the page of all responses."""
    inspections: list[Inspection] = []

    def handle(capture: Capture) -> int:
        inspections.append(_inspection(capture, arguments))
        return 0

    def show(document: Inspection, name: str) -> int:
        inspections.append(_document(document, name, arguments))
        return 0

    code = _for_each(arguments, handle, show)
    if inspections:
        code = max(code, _write_html(arguments, inspections))
    return code


def _write_html(
    arguments: argparse.Namespace,
    inspections: list[Inspection],
    difference: Difference | None = None,
) -> int:
    # Imported here, because other outputs need no page.
    from streamlib.cli.inspect_html import write_html

    try:
        write_html(arguments.html, inspections, difference)
    except CommandError as error:
        print(printable(str(error)), file=sys.stderr)
        return error.code
    return 0


# --- comparing ---


def _compare(arguments: argparse.Namespace) -> int:
    # Imported here, because only comparisons need these modules.
    from streamlib.cli.difference_page import print_difference
    from streamlib.inspection.difference import compare
    from streamlib.inspection.redaction import redacted_difference

    inspections = _both(arguments)
    if inspections is None:
        return 1
    difference = compare(*inspections)
    if arguments.redact:
        difference = redacted_difference(difference)
    if arguments.html is not None:
        shown = [_shown(inspection, arguments) for inspection in inspections]
        if _write_html(arguments, shown, difference):
            return 1
    elif arguments.json:
        _print(msgspec.json.encode(difference))
    else:
        print_difference(difference)
    return 0 if difference.equal else 1


def _both(arguments: argparse.Namespace) -> tuple[Inspection, Inspection] | None:
    """The two inspections that are compared; None where a file cannot be read."""
    inspections: list[Inspection] = []

    def handle(capture: Capture) -> int:
        if len(inspections) < 3:
            # Other splits are shown on a page only.
            splits = None if arguments.html is None else ()
            inspections.append(inspected(reading_of(capture), splits))
        return 0

    def show(document: Inspection, name: str) -> int:
        if document.redacted:
            raise CommandError(f"{name}: a redacted document has no texts to compare")
        inspections.append(document)
        return 0

    if _for_each(arguments, handle, show):
        return None
    if len(inspections) != 2:
        count = "more" if len(inspections) > 2 else str(len(inspections))
        arguments.refuse(f"--diff compares two responses, and these files hold {count}")
    first, second = inspections
    return first, second
