"""The request of a recording, and what a gateway changed in it."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from streamlib.inspection.document import InspectedRequest
from streamlib.recording.files import RecordedRequest, Recording
from streamlib.request.prompt import Prompt
from streamlib_parsers.items import WireApi
from streamlib_parsers.stream_error import StreamError


def inspected_request(recording: Recording, wire_api: WireApi) -> InspectedRequest | None:
    """The request of a recording; None if the recording does not contain it.

    Args:
        recording: the recording.
        wire_api: wire of the response, which is also that of the request.
    """
    request = recording.request
    if request is None:
        return None
    inspected = InspectedRequest(
        bytes=len(request.body),
        headers=request.headers,
        wire_api=wire_api,
        text=request.body.decode("utf-8", "replace"),
        changes=request.changes,
    )
    prompt = _prompt(request, wire_api, recording.url)
    if prompt is None:
        return inspected
    return msgspec.structs.replace(
        inspected,
        model=prompt.model,
        items=len(prompt.input),
        tools=len(prompt.tools or ()),
    )


def _prompt(request: RecordedRequest, wire_api: WireApi, url: str) -> Prompt | None:
    """The request as a prompt; None if it cannot be read."""
    # Imported here, because decoders are many modules, and most recordings have no request.
    from streamlib.wires.decoders import parse_request

    try:
        path = urlsplit(url).path
        return parse_request(wire_api, request.body, headers=request.headers, path=path)
    except (StreamError, ValueError):
        return None
