"""Responses over WebSocket: which response a message belongs to. No I/O.

One JSON object a message, the events of the stream with a `stream_id` where the request named a
lane. The responses of a lane come one after the other, in the order of their requests; those of
several lanes interleave. Each response has its own parser, which reads a message by
`Parser.feed_event`.

    lanes = Lanes()
    turn = lanes.expect("planner")              # before its `response.create` is sent
    for message in received: lanes.receive(message)
    turn.messages                               # those of this response, in order

Wire (event types of OpenAI's Python SDK 3.54; docs/wires/responses.md): ``response.steer.accepted``
announces a response that nobody asked for (`Turn.successor`), ``response.steer.pending`` and
``response.steer.failed`` that there will be none. An `error` ends the response of its lane; without
`stream_id` the one of the lane without a name, else that of every lane.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, limit_exceeded, malformed
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any, mark_surrogates
from streamlib_parsers.wires.responses.events import END_EVENTS

LANE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
"""The form of a `stream_id`."""

NOT_FOUND: Final = "previous_response_not_found"
"""Error code: the response to continue is not in the connection's memory; send all of the input."""

CONNECTION_LIMIT: Final = "websocket_connection_limit_reached"
"""Error code: the connection is too old and takes no more requests; open another one."""

BUFFERED_BYTES: Final = 64 * 2**20
"""Default number of bytes of a response that wait while its reader reads another lane."""

HTTP_ONLY: Final = ("stream", "background")
"""Fields of a request over HTTP that a message cannot have."""

_STEER: Final = "response.steer."
_WAITS: Final = "waiting_for_required_input"


class Turn:
    """One requested response: its messages, until they are read.

    Attributes:
        messages: messages that were received and not read yet.
        ended: its last message was received.
        abandoned: nobody reads it any more; further messages are dropped.
        answered: any message of it was received, an error too.
        refused: the server ended it with an `error` or as failed.
        failure: why there will be no further message, if the server sent no reason itself.
        response_id: known from ``response.created`` on.
        successor: the response that the server starts by itself after this one was steered.
    """

    def __init__(self) -> None:
        self.messages: deque[bytes] = deque()
        self.ended = False
        self.abandoned = False
        self.answered = False
        self.refused = False
        self.failure: ErrorInfo | None = None
        self.response_id: str | None = None
        self.successor: Turn | None = None
        self.size = 0
        """Bytes in `messages`."""

    @property
    def ready(self) -> bool:
        """Whether a reader can go on without waiting."""
        return bool(self.messages) or self.ended or self.abandoned or self.failure is not None

    def next_message(self) -> bytes | None:
        """The next message, None if there is none (yet)."""
        if not self.messages:
            return None
        message = self.messages.popleft()
        self.size -= len(message)
        return message

    def abandon(self) -> None:
        """Called when nobody reads it any more. It occupies its lane until its last message."""
        self.abandoned = True
        self.messages.clear()
        self.size = 0

    def fail(self, failure: ErrorInfo) -> None:
        """Ends it without a last message; the first reason counts."""
        if not self.ended and self.failure is None:
            self.failure = failure


class Steering:
    """A message of steering that was sent, until the server accepted or refused it.

    Attributes:
        response_id: the response that it steers.
        ready: the server answered, or the connection ended.
        failure: why it was not accepted.
    """

    def __init__(self, response_id: str) -> None:
        self.response_id = response_id
        self.ready = False
        self.failure: ErrorInfo | None = None

    def end(self, failure: ErrorInfo | None) -> None:
        """Called when the server has answered, or cannot answer any more."""
        self.ready = True
        self.failure = failure


class _Response(Struct):
    """The fields of `response` that are read here."""

    id: str | None = None


class _Steer(Struct):
    """The fields of `steer` that are read here."""

    id: str | None = None
    previous_response_id: str | None = None


class _Error(Struct):
    """The fields of `error` that are read here."""

    code: str | None = None


class _Head(Struct):
    """The fields of a message that decide which response it belongs to; others are skipped."""

    type: str = ""
    stream_id: str | None = None
    response: Raw = Raw(b"{}")
    error: Raw = Raw(b"{}")
    reason: Any = None
    steer: Raw = Raw(b"{}")

    @property
    def steering(self) -> _Steer:
        """`steer`."""
        try:
            return msgspec.json.decode(self.steer, type=_Steer)
        except msgspec.DecodeError:
            return _Steer()

    @property
    def response_id(self) -> str | None:
        """`response.id`."""
        try:
            return msgspec.json.decode(self.response, type=_Response).id
        except msgspec.DecodeError:
            return None

    @property
    def code(self) -> str | None:
        """`error.code`."""
        try:
            return msgspec.json.decode(self.error, type=_Error).code
        except msgspec.DecodeError:
            return None


_NO_ERROR: Final = (b"{}", b"null", b'""', b"[]", b"false", b"0")
"""JSON values of `error` that mean that there is no error."""

_decode: Final = msgspec.json.Decoder(_Head).decode


def _read_head(message: bytes) -> _Head:
    """Reads the fields that decide which response a message belongs to.

    Raises:
        msgspec.DecodeError: it is not an event of Responses.
    """
    try:
        head = _decode(message)
    except (msgspec.DecodeError, UnicodeError):
        # A delta may end with half a surrogate pair, which msgspec refuses.
        head = _decode(mark_surrogates(message) or message)
    # A bare error object, whatever its type; the parser reads it in the same way.
    if not head.type.startswith("response.") and bytes(head.error) not in _NO_ERROR:
        head.type = "error"
    return head


def _refusal(head: _Head) -> ErrorInfo:
    """Why steering had no effect (``response.steer.failed``: `error`)."""
    return classify(400, {"error": decode_any(bytes(head.error))})


class Lane:
    """The responses of one `stream_id`, in the order of their requests."""

    def __init__(self, buffered_bytes: int) -> None:
        self.turns: deque[Turn] = deque()
        """Responses that have not ended, the oldest first."""
        self._buffered_bytes = buffered_bytes
        self._last: Turn | None = None
        """The response that ended last."""
        self._steered: Turn | None = None
        """The response whose steering was accepted and has had no effect yet."""
        self._accepted: set[str | None] = set()
        """The ids of that steering's inputs: each is joined to the successor, or returned."""

    def receive(self, head: _Head, message: bytes) -> Turn | None:
        """Adds a message to its response, and returns that; None if it belongs to none."""
        if head.type.startswith(_STEER):
            return self._steering(head, message)
        response_id = head.response_id
        if head.type != "response.created" and self._is_repeated(response_id):
            return None
        if head.type == "response.created" and self._steered is not None:
            self._begin_successor(self._steered)
        if not self.turns:
            return None
        turn = self.turns[0]
        if response_id is not None:
            turn.response_id = response_id
        self._add(turn, message)
        if head.type == "error" or head.type in END_EVENTS:
            turn.refused = head.type in ("error", "response.failed")
            self._end(turn)
        return turn

    def _is_repeated(self, response_id: str | None) -> bool:
        """Whether a message is about the response that ended already.

        A server that reports a failure twice must not end the next response.
        """
        if self._last is None or response_id is None or response_id != self._last.response_id:
            return False
        return not self.turns or self.turns[0].response_id != response_id

    def add_notice(self, message: bytes) -> Turn | None:
        """Adds a message about the connection to the response that runs."""
        if not self.turns:
            return None
        self._add(self.turns[0], message)
        return self.turns[0]

    def turn_of(self, response_id: str | None) -> Turn | None:
        """The response with this id: the one that runs, or the one that ended last."""
        for turn in (*list(self.turns)[:1], self._last):
            if turn is not None and turn.response_id == response_id:
                return turn
        return None

    def forget(self, turn: Turn) -> None:
        """Removes a response whose request was not sent: nothing will be received for it."""
        if turn in self.turns:
            self.turns.remove(turn)

    def _add(self, turn: Turn, message: bytes) -> None:
        turn.answered = True
        if turn.abandoned or turn.failure is not None:
            return
        turn.size += len(message)
        if turn.size > self._buffered_bytes:
            turn.fail(limit_exceeded("buffered_bytes", self._buffered_bytes).info)
            return
        turn.messages.append(message)

    def _end(self, turn: Turn) -> None:
        turn.ended = True
        self.turns.popleft()
        self._last = turn

    # --- steering ---

    def _steering(self, head: _Head, message: bytes) -> Turn | None:
        steering = head.steering
        target = self.turn_of(steering.previous_response_id)
        if target is None:
            return None
        action = head.type.removeprefix(_STEER)
        if action == "accepted":
            if self._steered is not target:
                self._steered = target
                self._accepted.clear()
                target.successor = Turn()
            self._accepted.add(steering.id)
        elif action in ("pending", "failed"):
            self._end_steering(target, action, head, message)
        if not target.ended:
            self._add(target, message)
        return target

    def _end_steering(self, target: Turn, action: str, head: _Head, message: bytes) -> None:
        """Handles an input that joins no successor; after the last one there will be none."""
        self._accepted.discard(head.steering.id)
        if self._accepted:
            return
        self._steered = None
        successor = target.successor
        if successor is None or successor.failure is not None:
            # Refused before it was accepted: the successor has the reason for its reader.
            successor = target.successor = Turn()
        if action == "failed":
            successor.fail(_refusal(head))
            return
        text = "the steered response waits for outputs of calls: send them, and it is joined"
        code = head.reason if isinstance(head.reason, str) else _WAITS
        detail = decode_any(message)
        successor.fail(ErrorInfo("invalid_request", text, code=code, detail=detail))

    def _begin_successor(self, steered: Turn) -> None:
        successor = steered.successor
        # Only after its end: the parser handles a second `response.created` inside a response.
        if successor is not None and steered.ended:
            self._steered = None
            self._accepted.clear()
            self.turns.appendleft(successor)


class Lanes:
    """The lanes of one connection.

    Args:
        buffered_bytes: maximum bytes of one response that wait for their reader.
    """

    def __init__(self, buffered_bytes: int = BUFFERED_BYTES) -> None:
        self.lanes: dict[str | None, Lane] = {}
        """Lanes by `stream_id`; None is the lane without one."""
        self.failure: ErrorInfo | None = None
        """Why the connection cannot be used any more; None while it can."""
        self.retired = False
        """The server takes no further request on this connection."""
        self._buffered_bytes = buffered_bytes
        self._steerings: deque[Steering] = deque()
        """Messages of steering that the server has not answered, the oldest first."""

    def steer(self, response_id: str) -> Steering:
        """Called before a message of steering is sent; returns the object that gets the answer."""
        steering = Steering(response_id)
        self._steerings.append(steering)
        return steering

    def forget_steering(self, steering: Steering) -> None:
        """Called when nobody waits for the server's answer to it any more."""
        if steering in self._steerings:
            self._steerings.remove(steering)

    def expect(self, lane: str | None) -> Turn:
        """Called before a request is sent on a lane; returns its response."""
        if lane not in self.lanes:
            self.lanes[lane] = Lane(self._buffered_bytes)
        turn = Turn()
        self.lanes[lane].turns.append(turn)
        return turn

    def forget(self, lane: str | None, turn: Turn) -> None:
        """Called if the request was not sent after all."""
        self.lanes[lane].forget(turn)

    @property
    def running(self) -> list[Turn]:
        """The responses that have not ended, the first of each lane."""
        return [lane.turns[0] for lane in self.lanes.values() if lane.turns]

    def receive(self, message: bytes) -> list[Turn]:
        """Adds a message to the responses it belongs to, and returns these."""
        if self.failure is not None:
            return []
        try:
            head = _read_head(message)
        except DECODE_ERRORS:
            return self.fail(malformed("a message is not an event of Responses", message).info)
        if head.type == "error" and head.stream_id is None:
            return self._receive_error(head, message)
        if head.stream_id is None and not head.type.startswith("response."):
            return self._notify_all(message)
        lane = self.lanes.get(head.stream_id)
        if head.type.startswith(_STEER):
            self._acknowledge(head, message)
            # The refusal of steering may name no lane.
            lane = self._lane_of(head.steering.previous_response_id) or lane
        turn = lane.receive(head, message) if lane is not None else None
        return [turn] if turn is not None else []

    def fail(self, failure: ErrorInfo) -> list[Turn]:
        """Ends every response: nothing more is received. Returns them."""
        self.failure = self.failure or failure
        while self._steerings:
            self._steerings.popleft().end(failure)
        failed: list[Turn] = []
        for lane in self.lanes.values():
            for turn in self._waiting(lane):
                turn.fail(failure)
                failed.append(turn)
        return failed

    @staticmethod
    def _waiting(lane: Lane) -> list[Turn]:
        """Responses of a lane that wait for messages, among them one that steering announced."""
        steered = lane._steered
        if steered is not None and steered.successor is not None:
            return [*lane.turns, steered.successor]
        return list(lane.turns)

    def _acknowledge(self, head: _Head, message: bytes) -> None:
        """Ends the oldest unanswered steering of the response that the message names."""
        action = head.type.removeprefix(_STEER)
        if action not in ("accepted", "failed"):
            return
        for steering in self._steerings:
            if steering.response_id == head.steering.previous_response_id:
                failure = None
                if action == "failed":
                    failure = _refusal(head)
                steering.end(failure)
                self._steerings.remove(steering)
                return

    def _lane_of(self, response_id: str | None) -> Lane | None:
        """The lane of a response, for the refusal of steering, which may name none."""
        for lane in self.lanes.values():
            if lane.turn_of(response_id) is not None:
                return lane
        return None

    def _receive_error(self, head: _Head, message: bytes) -> list[Turn]:
        """An `error` without a lane's name."""
        unnamed = self.lanes.get(None)
        is_limit = head.code == CONNECTION_LIMIT
        self.retired = self.retired or is_limit
        if unnamed is not None and unnamed.turns and not is_limit:
            turn = unnamed.receive(head, message)
            return [turn] if turn is not None else []
        ended: list[Turn] = []
        for lane in self.lanes.values():
            while lane.turns:
                turn = lane.receive(head, message)
                if turn is None:
                    break
                ended.append(turn)
        return ended

    def _notify_all(self, message: bytes) -> list[Turn]:
        """A message about the connection (``codex.rate_limits``) is shown to every response."""
        notified: list[Turn] = []
        for lane in self.lanes.values():
            turn = lane.add_notice(message)
            if turn is not None:
                notified.append(turn)
        return notified


# --- messages to send ---


def create_message(
    body: bytes,
    lane: str | None = None,
    previous_response_id: str | None = None,
    new_input: bytes | None = None,
) -> bytes:
    """A request over HTTP as the message ``response.create``.

    Args:
        body: the JSON body of the request over HTTP.
        lane: `stream_id`.
        previous_response_id: the response that it continues; None leaves the body's own.
        new_input: JSON of the input after that response, which replaces the body's.
    """
    fields: dict[str, Any] = {"type": "response.create"}
    if lane is not None:
        fields["stream_id"] = lane
    fields.update(request_fields(body))
    for name in HTTP_ONLY:
        fields.pop(name, None)
    if previous_response_id is not None:
        fields["previous_response_id"] = previous_response_id
        fields["input"] = Raw(new_input or b"[]")
    return msgspec.json.encode(fields)


def request_fields(body: bytes) -> dict[str, Raw]:
    """The fields of a request, each as its own bytes of JSON."""
    return msgspec.json.decode(body, type=dict[str, Raw])


def steer_message(response_id: str, body: bytes) -> bytes:
    """The message ``response.steer``: the input of a request, for a response that runs."""
    fields = {
        "type": "response.steer",
        "previous_response_id": response_id,
        "input": request_fields(body)["input"],
    }
    return msgspec.json.encode(fields)


def input_objects(fields: dict[str, Raw]) -> list[bytes]:
    """The elements of `input`, each as its own bytes of JSON."""
    try:
        elements = msgspec.json.decode(fields.get("input", b"[]"), type=list[Raw])
    except msgspec.DecodeError:  # a text
        return []
    return [bytes(element) for element in elements]
