"""The position of a reader in a background response: a value that outlives the process.

text = str(stream.cursor)                   # in one process
stream = client.resume(Cursor.parse(text))  # in another
"""

from __future__ import annotations

import json
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.providers.wire_specs import WIRE_SPECS, ResumeSpec
from streamlib_parsers.items import Origin
from streamlib_parsers.stream_error import invalid_request

MAX_TEXT: Final = 8192
"""Characters of the longest text that is read: cursors may come from browsers."""


class Cursor(Struct, frozen=True):
    """A position in the stream of a response that runs in the background.

    It holds no key and nothing of the response. Its text is one line of JSON in ASCII.

    Attributes:
        origin: where the response is made. `Client.resume` sends a request there only if the client
            itself uses that endpoint.
        response_id: the provider's id (`response.id`, `interaction.id`).
        position: the last event of the wire whose events were all delivered (responses:
            `sequence_number`, interactions: `event_id`); None: before the first.
    """

    origin: Origin
    response_id: str
    position: int | str | None = None

    def __str__(self) -> str:
        return json.dumps(msgspec.to_builtins(self), separators=(",", ":"))

    @staticmethod
    def parse(text: str | bytes) -> Cursor:
        """Reads a cursor from the text that `str(cursor)` returned.

        Raises:
            StreamError: `invalid_request`, code `cursor`: the text is not a cursor.
        """
        problem = "it is longer than a cursor can be"
        if len(text) <= MAX_TEXT:
            try:
                cursor = msgspec.json.decode(text, type=Cursor)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                problem = str(error)
            else:
                resume_spec(cursor)
                return cursor
        raise invalid_request(f"this is not a cursor: {problem}", "cursor")


def resume_spec(cursor: Cursor) -> ResumeSpec:
    """How the wire of a cursor resumes its streams.

    Raises:
        StreamError: `invalid_request`, code `cursor`: no stream has such a position.
    """
    wire_api = cursor.origin.wire_api
    spec = None
    if wire_api is not None:
        spec = WIRE_SPECS[wire_api].resume
    if spec is None:
        raise invalid_request(f"this is not a cursor: {wire_api} cannot be resumed", "cursor")
    kind = int if spec.numbered else str
    is_position = cursor.position is None or type(cursor.position) is kind
    if not is_position or not cursor.response_id:
        raise invalid_request(f"this is not a cursor of a stream of {wire_api}", "cursor")
    return spec
