"""The history: saving and loading it, and the repairs that every wire needs before it can be sent.

Repairs, in this order, each one in the report:

1. an incomplete call is left out, and so is its output;
2. a call id used twice is made unique, on the call and on its output;
3. every call gets exactly one output, directly after the turn that made the calls: a missing one is added as an error, a late
   one is moved up, a second one is dropped, and an output without a call becomes user text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, get_args

import msgspec

from streamlib.request.report import Report
from streamlib_parsers.items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Opaque,
    ResponseItem,
    Text,
    tag,
    user,
)

SCHEMA: Final = 1
"""Version of the saved form. Kinds that a later version adds load as `Opaque`."""

INTERRUPTED: Final = "The call was interrupted: it gave no result."

Call: TypeAlias = FunctionCall | CustomToolCall
CallOutput: TypeAlias = FunctionCallOutput | CustomToolCallOutput
CALLS: Final = (FunctionCall, CustomToolCall)
OUTPUTS: Final = (FunctionCallOutput, CustomToolCallOutput)


class IndexedItem(NamedTuple):
    """An item and its place in the prompt's input, for the report."""

    position: int
    item: ResponseItem

    @property
    def path(self) -> str:
        """The JSON pointer of the item."""
        return f"/input/{self.position}"


def dump_history(items: Iterable[ResponseItem]) -> bytes:
    """A history as JSON: `{"streamlib_history": 1, "items": […]}`. TypeError for what could not be loaded again."""
    items = list(items)
    for at, item in enumerate(items):
        if not isinstance(item, get_args(ResponseItem)):
            raise TypeError(
                f"items[{at}] is a {type(item).__name__}, not an item: made by `streamlib.user(…)` and its like"
            )
    return msgspec.json.encode({"streamlib_history": SCHEMA, "items": items})


def load_history(data: bytes | str) -> list[ResponseItem]:
    """The items of a saved history. Raises ValueError on anything else; unknown kinds survive as `Opaque`."""
    try:
        saved = msgspec.json.decode(data, type=dict[str, Any])
        return [_load(item) for item in saved["items"]]
    except KeyError as error:
        raise ValueError(f"not a saved history: it has no {error}") from None
    except (msgspec.DecodeError, TypeError, RecursionError) as error:
        raise ValueError(f"not a saved history: {error}") from None


def _load(saved: JsonObject) -> ResponseItem:
    if saved["type"] in KINDS:
        return msgspec.convert(saved, ResponseItem)  # type: ignore[no-any-return, arg-type, unused-ignore]
    return Opaque(saved["type"], saved)


KINDS: Final = frozenset(tag(kind) for kind in get_args(ResponseItem))


def keep_last_images(items: Sequence[ResponseItem], keep: int) -> list[ResponseItem]:
    """A policy for screenshots: only the last `keep` images stay, the others become a line of text. It rewrites the past."""
    left = sum(_images(item) for item in items) - keep
    pruned: list[ResponseItem] = []
    for item in items:
        drop = min(left, _images(item)) if left > 0 else 0
        left -= drop
        pruned.append(_without_images(item, drop) if drop else item)
    return pruned


def _parts(item: ResponseItem) -> tuple[Any, ...]:
    held = getattr(item, "content", None) or getattr(item, "output", None)
    return held if isinstance(held, tuple) else ()


def _images(item: ResponseItem) -> int:
    return sum(isinstance(part, Image) for part in _parts(item))


def _without_images(item: ResponseItem, drop: int) -> ResponseItem:
    parts: list[Any] = []
    for part in _parts(item):
        gone = isinstance(part, Image) and drop > 0
        drop -= gone
        parts.append(Text("[an earlier image was left out]") if gone else part)
    field = "content" if isinstance(item, Message) else "output"
    return msgspec.structs.replace(item, **{field: tuple(parts)})


# --- repair ---


def repair(items: Iterable[ResponseItem], report: Report) -> list[IndexedItem]:
    """The items as any wire can take them: whole calls, unique ids, one output a call, in its place."""
    placed = [IndexedItem(at, item) for at, item in enumerate(items)]
    return _pair_outputs(_make_ids_unique(_drop_incomplete(placed, report), report), report)


def _drop_incomplete(placed: list[IndexedItem], report: Report) -> list[IndexedItem]:
    """Without the calls that were cut, and without their outputs."""
    cut = {
        one.item.call_id
        for one in placed
        if isinstance(one.item, CALLS) and one.item.status == "incomplete"
    }
    kept: list[IndexedItem] = []
    for one in placed:
        is_call, is_output = isinstance(one.item, CALLS), isinstance(one.item, OUTPUTS)
        if is_call and one.item.status == "incomplete":
            report.dropped(one.path, "the call was cut: its arguments are not whole")
        elif is_output and one.item.call_id in cut and not _answers_whole(one, placed):  # type: ignore[union-attr]
            report.dropped(one.path, "its call was cut and left out")
        else:
            kept.append(one)
    return kept


def _answers_whole(output: IndexedItem, placed: list[IndexedItem]) -> bool:
    call_id = output.item.call_id  # type: ignore[union-attr]
    return any(
        isinstance(one.item, CALLS)
        and one.item.call_id == call_id
        and one.item.status == "completed"
        for one in placed
    )


def _make_ids_unique(placed: list[IndexedItem], report: Report) -> list[IndexedItem]:
    """The second call with an id gets a new one; outputs follow the call before them."""
    seen: dict[str, int] = {}
    current: dict[str, str] = {}
    out: list[IndexedItem] = []
    for one in placed:
        item = one.item
        if isinstance(item, CALLS):
            count = seen[item.call_id] = seen.get(item.call_id, 0) + 1
            current[item.call_id] = item.call_id if count == 1 else f"{item.call_id}_{count}"
        if (
            isinstance(item, (*CALLS, *OUTPUTS))
            and current.get(item.call_id, item.call_id) != item.call_id
        ):
            report.add("renamed", f"{one.path}/call_id", "the id was used by an earlier call")
            item = msgspec.structs.replace(item, call_id=current[item.call_id])
        out.append(IndexedItem(one.position, item))
    return out


def _pair_outputs(placed: list[IndexedItem], report: Report) -> list[IndexedItem]:
    pairing = _Pairing(placed, report)
    for one in placed:
        pairing.take(one)
    pairing.flush()
    return pairing.out


class _Pairing:
    """Walks the items once; a turn's calls wait for its end, where their outputs are set."""

    def __init__(self, placed: list[IndexedItem], report: Report) -> None:
        self.out: list[IndexedItem] = []
        self._report = report
        self._outputs: defaultdict[str, list[IndexedItem]] = defaultdict(list)
        self._calls: list[IndexedItem] = []
        self._answered = False
        self._response: str | None = None
        first = {
            one.item.call_id: one.position
            for one in reversed(placed)
            if isinstance(one.item, CALLS)
        }
        self._orphans = {
            one.position
            for one in placed
            if isinstance(one.item, OUTPUTS)
            and first.get(one.item.call_id, one.position) >= one.position
        }
        for one in placed:
            if isinstance(one.item, OUTPUTS) and one.position not in self._orphans:
                self._outputs[one.item.call_id].append(one)

    def take(self, one: IndexedItem) -> None:
        """The next item."""
        item = one.item
        if one.position in self._orphans:
            self._report.add(
                "downgraded", one.path, "an output without its call, sent as user text"
            )
            self.flush()
            self.out.append(IndexedItem(one.position, _as_text(item)))
        elif isinstance(item, OUTPUTS):
            self._answered = True
        else:
            if self._ends_turn(item):
                self.flush(one.position)
            if isinstance(item, CALLS):
                self._calls.append(one)
            self._response = item.response_id
            self.out.append(one)

    def _ends_turn(self, item: ResponseItem) -> bool:
        if isinstance(item, Message) and item.role != "assistant":
            return True
        same = self._response is not None and item.response_id == self._response
        return self._answered and not same

    def flush(self, before: int | None = None) -> None:
        """The turn is over: the outputs of its calls, in the order they were given, then those that are missing."""
        outputs = [output for call in self._calls for output in self._output_of(call, before)]
        generated = {call.position for call in self._calls}
        self.out += sorted(outputs, key=lambda one: (one.position in generated, one.position))
        self._calls.clear()
        self._answered = False

    def _output_of(self, call: IndexedItem, before: int | None) -> list[IndexedItem]:
        item: Any = call.item
        outputs = self._outputs.get(item.call_id, [])
        for extra in outputs[1:]:
            self._report.dropped(extra.path, "a second output of the same call")
        if not outputs:
            self._report.add(
                "generated", call.path, "the call had no output; it is answered with an error"
            )
            return [IndexedItem(call.position, item.output(INTERRUPTED, is_error=True))]
        if before is not None and outputs[0].position > before:
            self._report.add(
                "repaired", outputs[0].path, "moved up behind its call", breaks_prefix=True
            )
        return outputs[:1]


def _as_text(item: Any) -> Message:
    parts = (Text(item.output),) if isinstance(item.output, str) else item.output
    said = [part for part in parts if not isinstance(part, Text) or part.text]
    return user(f"[result of the call {item.call_id}, which is not in this conversation]", *said)
