"""What a library told its user about one answer, what should have been told, and the verdict."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass
class Told:
    """Filled while a library streams, so that it holds what the user had when it ended."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    """(name, arguments as text or as a value)."""
    order: list[str] = field(default_factory=list)
    """Kinds of the parts in order, where the library keeps parts: reasoning, text, call."""
    signatures: list[str] = field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None
    stop: str | None = None
    ended: str = "whole"
    """whole, error, hang."""
    error: str = ""
    own: bool = True
    """Whether the error is of the library's own family."""
    sent: list[str] = field(default_factory=list)
    """The assistant's turn as the next request sent it back, block by block."""
    requests: int = 0
    open: int = 0
    """Connections on which the server still sends after the stream was left."""


@dataclass(frozen=True)
class Want:
    """What a user must be told. None: not asked. error: words that must stand in the error, "" for
    any of the library's own."""

    text: str | None = None
    reasoning: str | None = None
    calls: tuple[tuple[str, Any], ...] | None = None
    order: tuple[str, ...] | None = None
    signatures: tuple[str, ...] | None = None
    tokens: tuple[int, int] | None = None
    sent: tuple[str, ...] | None = None
    stop: tuple[str, ...] | None = None
    error: str | None = None
    requests: int | None = None
    closed: bool = False
    may_fail: bool = False
    """An error of the library's own is right, too."""
    cut: bool = False
    """A call may be there if its text is no JSON and the stop reason says why: then nobody runs
    it."""


class Verdict(NamedTuple):
    """One cell of the table."""

    word: str
    """ok, silent loss, wrong error, crash, hang, resent."""
    why: str = ""


CUT = ("max_tokens", "length")
"""How a stop reason says that the model was cut off."""


def verdict(told: Told, want: Want) -> Verdict:
    """What a user would say."""
    if told.ended == "hang":
        return Verdict("hang")
    if want.requests is not None and told.requests != want.requests:
        return Verdict(
            "resent" if told.requests > want.requests else "wrong error",
            f"{told.requests} requests",
        )
    if told.ended == "error":
        return _error(told, want)
    if want.error is not None:
        return Verdict(
            "silent loss", f"no error, {told.text[:20]!r}" if told.text else "no error, nothing"
        )
    missing = [
        *_missing(told, want),
        *(["connection left open"] if want.closed and told.open else []),
    ]
    if want.cut and any(
        not str(value(arguments)).startswith("no JSON") or told.stop not in CUT
        for _, arguments in told.calls
    ):
        missing.append(f"calls {_short(told.calls)}, stop {told.stop}")
    return Verdict("silent loss", ", ".join(missing)) if missing else Verdict("ok")


def _error(told: Told, want: Want) -> Verdict:
    if not told.own:
        return Verdict("crash", told.error[:90])
    if want.error is None:
        return Verdict("ok") if want.may_fail else Verdict("wrong error", told.error[:90])
    return (
        Verdict("ok")
        if want.error.lower() in told.error.lower()
        else Verdict("wrong error", told.error[:90])
    )


def _missing(told: Told, want: Want) -> list[str]:
    """The facts that differ, in a few words each."""
    pairs: list[tuple[str, Any, Any]] = [
        ("text", want.text, told.text),
        ("reasoning", want.reasoning, told.reasoning),
        ("calls", want.calls, None if want.calls is None else tuple(told.calls)),
        ("order", want.order, tuple(told.order)),
        ("signatures", want.signatures, tuple(told.signatures)),
        ("sent", want.sent, tuple(told.sent)),
        ("tokens", want.tokens, (told.input_tokens, told.output_tokens)),
    ]
    missing = [
        f"{name} {_short(have)}"
        for name, wanted, have in pairs
        if wanted is not None and not _same(name, wanted, have)
    ]
    if want.stop is not None and (told.stop or "").lower() not in want.stop:
        missing.append(f"stop {told.stop}")
    return missing


def _same(name: str, wanted: Any, have: Any) -> bool:
    if name != "calls":
        return bool(wanted == have)
    return len(wanted) == len(have) and all(
        one[0] == other[0] and value(one[1]) == value(other[1])
        for one, other in zip(wanted, have, strict=True)
    )


def value(arguments: Any) -> Any:
    """Arguments as a value: text is read, "" and None are no arguments."""
    if isinstance(arguments, str):
        try:
            return json.loads(arguments or "{}")
        except ValueError:
            return f"no JSON: {arguments}"
    return arguments or {}


def brief(text: str) -> str:
    """A text, or what tells a very long one from another."""
    return (
        text
        if len(text) < 100_000
        else f"{len(text)} characters {zlib.crc32(text.encode('utf-8', 'replace'))}"
    )


def _short(have: Any) -> str:
    return (repr(have) if have else "nothing")[:110]
