"""What `streamlib inspect A B` says of the prompt cache: why B read what it did after A."""

from __future__ import annotations

from urllib.parse import urlsplit

from streamlib.cli.inspect_page import print_line, reading_of
from streamlib.display.safe_text import one_line
from streamlib.history.explain import explain_cache
from streamlib.inspection.capture import Capture
from streamlib.inspection.request import inspected_request
from streamlib.recording.files import RecordedRequest
from streamlib.request.build import Request
from streamlib_parsers.items import Origin
from streamlib_parsers.response import Response
from streamlib_parsers.usage import Usage


def print_cache(before: Capture, after: Capture, elapsed: float) -> None:
    """Prints the explanation for two captures, if their requests were recorded.

    Args:
        before: the earlier exchange.
        after: the later one.
        elapsed: seconds between them.
    """
    if before.recording.request is None and after.recording.request is None:
        return
    print_line(f"prompt cache: {one_line(after.name)} after {one_line(before.name)}")
    for capture in (before, after):
        if capture.recording.request is None:
            print_line(f"  {one_line(capture.name)} holds no request: it cannot be explained")
            return
    response, last = reading_of(before).response, reading_of(after).response
    usage = last.usage or Usage()
    try:
        explanation = explain_cache(
            _request(before, response),
            _request(after, last),
            elapsed,
            response=response,
            tokens=usage.input_tokens,
        )
    except ValueError as error:
        print_line(f"  not explained: {one_line(str(error))}")
        return
    for line in str(explanation).splitlines():
        print_line(f"  {one_line(line)}")
    read = usage.cache_read_input_tokens
    if read is not None:
        print_line(f"  Reported: {read:,} tokens read.")


def _request(capture: Capture, response: Response) -> Request:
    """The recorded request as one that was built."""
    recording = capture.recording
    recorded = recording.request or RecordedRequest({}, b"")
    inspected = inspected_request(recording, capture.wire_api)
    model = response.model or ""
    if inspected is not None and inspected.model:
        model = inspected.model
    # The host stands for the provider: a recording does not name it.
    origin = Origin(capture.wire_api, urlsplit(recording.url).hostname or "", model=model)
    return Request(
        method=recording.method,
        url=recording.url,
        headers={},
        body=recorded.body,
        report=list(recorded.changes),
        wire_api=capture.wire_api,
        model=model,
        origin=origin,
    )
