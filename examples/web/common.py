"""What both kinds of chat share: what the page sends and gets, and the tool."""

import msgspec
from starlette.responses import JSONResponse, Response


def get_weather(
    city: str = "Lisbon",
    days: int = 3,
    occasion: str = "a long walk by the river with a stop for coffee",
) -> str:
    """The weather in a city, for some days from today."""
    return f"{city}: 21 °C, a light breeze and sun for the next {days} days. Good for {occasion}."


class Question(msgspec.Struct):
    """What the page asks; `replaces` is the turn, the last one, that is asked again."""

    text: str
    think: bool = False
    tools: bool = False
    replaces: int | None = None


class Place(msgspec.Struct):
    """Which entries a tab has already."""

    after: int = 0


class Stop(msgspec.Struct):
    """The body of a request to stop, which has no fields."""


class EntryEncoder:
    """Entries as server-sent events."""

    media_type = "text/event-stream"

    def feed(self, entry: bytes) -> bytes:
        """Return one frame."""
        return b"data: " + entry + b"\n\n"

    def close(self) -> bytes:
        """Return nothing: a conversation has no end."""
        return b""


def question_event(question: Question, turn: int) -> bytes:
    """The event that tells the tabs of a question."""
    return msgspec.json.encode({"type": "question", "turn": turn, **msgspec.to_builtins(question)})


def refusal(status: int, message: str) -> Response:
    """An error in the form that `streamlib.web` gives its own."""
    error = {"kind": "invalid_request", "retryable": False, "message": message}
    return JSONResponse({"error": error}, status)


BUSY = "An answer is being written. Wait for its end, or stop it."
NOT_LAST = "Only the last question can be asked again."
