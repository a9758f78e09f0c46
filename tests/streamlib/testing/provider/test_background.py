"""Background responses of the loopback provider: kept, streamed from any position, cancelled."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib.testing import Behaviour, echo_response
from streamlib.testing.provider import background
from streamlib.testing.provider.provider import Loopback
from streamlib.wires.routes import route, stored_route
from streamlib_parsers.accumulate import Response, accumulate
from streamlib_parsers.events import Completed
from streamlib_parsers.protocol import parse_body, parser

PATHS: dict[Any, str] = {
    "responses": "/v1/responses",
    "interactions": "/v1beta/interactions",
}
AFTER = {"responses": "starting_after", "interactions": "last_event_id"}
BODY = {"model": "m", "input": "hello there", "background": True, "stream": True}


class Served:
    """A provider, and the response that it keeps."""

    def __init__(self, wire_api: Any, behaviour: Behaviour | None = None, **fields: Any) -> None:
        self.wire_api = wire_api
        self.loopback = Loopback(behaviour or Behaviour(), echo_response)
        body = msgspec.json.encode({**BODY, **fields})
        path = PATHS[wire_api]
        self.created = self.loopback.response(route(path), body, {}, path)

    def ask(self, id_and_more: str, method: str = "GET") -> tuple[int, bytes]:
        """Status and body of a request for a stored response."""
        path = f"{PATHS[self.wire_api]}/{id_and_more}"
        served = self.loopback.response(route(path), b"", {}, path, method)
        return served.status, b"".join(served.chunks)

    @property
    def id(self) -> str:
        """The id of the kept response."""
        return next(iter(self.loopback._background._stored.values())).id

    def read(self, body: bytes) -> Response:
        """The response in a body."""
        return accumulate(parse_body(self.wire_api, body))


@pytest.mark.parametrize("wire_api", PATHS)
def test_stream_is_sent_again_from_any_position(wire_api: Any) -> None:
    served = Served(wire_api)
    whole = b"".join(served.created.chunks)
    assert served.ask(f"{served.id}?stream=true") == (200, whole)
    stored = served.loopback._background._stored[f"{wire_api} {served.id}"]
    for number, position in enumerate(stored.positions):
        if position is None:  # `[DONE]`
            continue
        _, rest = served.ask(f"{served.id}?stream=true&{AFTER[wire_api]}={position}")
        assert rest == b"".join(stored.frames[number + 1 :])


def test_number_after_the_end_leaves_the_end_mark() -> None:
    served = Served("responses")
    status, body = served.ask(f"{served.id}?stream=true&starting_after=999")
    assert (status, body.strip()) == (200, b"data: [DONE]")


@pytest.mark.parametrize("wire_api", PATHS)
def test_position_that_never_was_is_refused(wire_api: Any) -> None:
    served = Served(wire_api)
    status, _ = served.ask(f"{served.id}?stream=true&{AFTER[wire_api]}=nothing")
    assert status == 400


@pytest.mark.parametrize("wire_api", PATHS)
def test_response_is_as_far_as_it_was_sent(wire_api: Any) -> None:
    served = Served(wire_api)
    chunks = iter(served.created.chunks)
    for status in ("queued", "in_progress"):
        body = msgspec.json.decode(served.ask(served.id)[1])
        assert (body["id"], body["status"]) == (served.id, status)
        for _ in range(5):
            next(chunks)
    assert b"".join(chunks)
    response = served.read(served.ask(served.id)[1])
    assert response.status == "completed"
    assert response.text.startswith("You said: hello there")


@pytest.mark.parametrize("wire_api", PATHS)
def test_cancelled_stream_ends_where_it_was(wire_api: Any) -> None:
    served = Served(wire_api)
    sent = b""
    for number, chunk in enumerate(served.created.chunks):
        sent += chunk
        if number == 4:
            status, body = served.ask(f"{served.id}/cancel", "POST")
            assert (status, msgspec.json.decode(body)["status"]) == (200, "cancelled")
    assert not isinstance(parser(wire_api).feed(sent)[-1], Completed)
    assert served.ask(f"{served.id}?stream=true") == (200, sent)
    assert msgspec.json.decode(served.ask(served.id)[1])["status"] == "cancelled"


@pytest.mark.parametrize("wire_api", PATHS)
def test_response_without_a_stream_is_polled(wire_api: Any) -> None:
    served = Served(wire_api, stream=False)
    created = msgspec.json.decode(b"".join(served.created.chunks))
    assert created["status"] == "queued"
    assert served.read(served.ask(served.id)[1]).status == "completed"
    # Only a stream that was asked for at the start can be taken up.
    assert served.ask(f"{served.id}?stream=true")[0] == 400


@pytest.mark.parametrize("wire_api", PATHS)
def test_deleted_and_unknown_responses_are_not_found(wire_api: Any) -> None:
    served = Served(wire_api)
    kept = served.id
    assert served.ask(kept, "DELETE")[0] == 200
    for id_and_more, method in ((kept, "GET"), ("x", "GET"), ("x/cancel", "POST")):
        assert served.ask(id_and_more, method)[0] == 404
    assert Served(wire_api).ask(f"{kept}/cancel", "DELETE")[0] == 405


def test_request_for_a_stored_response_can_fail_too() -> None:
    """`failing` counts it: a break of the second connection can be tried."""
    served = Served("responses", Behaviour(fault="truncate", at=1, failing=2))
    path = f"{PATHS['responses']}/{served.id}?stream=true"
    faults = [
        served.loopback.response(None, b"", {}, path, "GET").behaviour.fault for _ in range(2)
    ]
    assert faults == ["truncate", None]


def test_recording_without_positions_gets_some() -> None:
    body = (
        b'data: {"type":"response.created","response":{"id":"resp_1"}}\n\n'
        b'data: {"type":"response.completed","response":{"id":"resp_1","output":[]}}\n\n'
    )
    served = Served("responses", Behaviour(recordings=[body]))
    assert b'"sequence_number":1}' in b"".join(served.created.chunks)


def test_oldest_response_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_STORED", 2)
    served = Served("responses")
    oldest = served.id
    for text, status in (("second", 200), ("third", 404)):
        body = msgspec.json.encode({**BODY, "input": text})
        served.loopback.response(route("/v1/responses"), body, {}, "/v1/responses")
        assert served.ask(oldest)[0] == status


def test_path_of_a_stored_response_has_its_id() -> None:
    found = stored_route("/v1beta/interactions/v1%2Fa/cancel?x=1")
    assert found is not None
    assert (found.wire_api, found.response_id, found.action) == ("interactions", "v1/a", "cancel")
    for path in ("/v1/responses", "/v1/responses/a/b", "/v1/messages/a", "/v1/responses/"):
        assert stored_route(path) is None
