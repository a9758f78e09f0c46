"""A text stage changes a text wherever it is: in deltas, final items and every copy."""

from __future__ import annotations

import json
from random import Random
from time import process_time
from typing import Any, Literal

import anyio
import pytest
from msgspec.structs import replace as with_fields

from streamlib import accumulate
from streamlib.pipeline import (
    Keep,
    aggregate,
    guard,
    limit,
    map_text,
    pipe,
    replace,
    sentences,
    stop_at,
    through,
    words,
)
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
)
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    Text,
)
from tests.support.cases import each_case
from tests.support.events_source import EventsSource

HIDE = replace("secret", "[x]", of=("text", "reasoning", "refusal", "arguments"))
CALL = FunctionCall("c", "f", status="incomplete")


def response(*events: ResponseEvent, end: ResponseEvent | None = None) -> list[ResponseEvent]:
    whole = [Created(response_id="r"), *events, end or Completed(stop_reason="stop")]
    return [with_fields(event, seq=seq) for seq, event in enumerate(whole)]


def item(index: int, added: ResponseItem, done: ResponseItem, *deltas: Any) -> list[ResponseEvent]:
    return [OutputItemAdded(index=index, item=added), *deltas, OutputItemDone(index, done)]


def message(*texts: str, **fields: Any) -> Message:
    return Message("assistant", tuple([Text(text) for text in texts]), **fields)


def text(delta: str, part: int = 0, **fields: Any) -> OutputTextDelta:
    return OutputTextDelta(index=0, content_index=part, delta=delta, **fields)


def of(kind: type, events: list[Any]) -> list[Any]:
    return [event for event in events if type(event) is kind]


def deltas(events: list[Any], kind: type = OutputTextDelta) -> list[str]:
    return [event.delta for event in of(kind, events)]


def codes(events: list[Any]) -> list[str]:
    return [event.code for event in of(Notice, events)]


def test_text_of_the_final_item_is_that_of_the_deltas() -> None:
    events = response(*item(0, message(), message("a secret b"), text("a sec"), text("ret b")))
    out = through(events, HIDE)
    assert deltas(out) == ["a ", "[x] b"]
    assert accumulate(out).text == "a [x] b"
    assert [event.seq for event in out] == list(range(len(out)))


def test_text_stage_never_joins_two_parts() -> None:
    parts = [text("a sec"), text("ret", 1), text("ret", 0), text(" b", 1)]
    events = response(*item(0, message(), message("a secret", "ret b"), *parts))
    out = through(events, HIDE)
    assert [part.text for part in out[-2].item.content] == ["a [x]", "ret b"]  # type: ignore[union-attr]
    assert [(event.content_index, event.delta) for event in of(OutputTextDelta, out)] == [
        (0, "a "),
        (0, "[x]"),
        (1, "ret"),
        (1, " b"),
    ]


@pytest.mark.parametrize("mode", ["hold", "watch"])
def test_unit_is_checked_whole_where_parts_alternate(mode: Literal["hold", "watch"]) -> None:
    """A unit was cut where another part began: "ba", "one ", "d "."""
    parts = [text("ba"), text("one", 1), text("d "), text(" two", 1)]
    events = response(*item(0, message(), message("bad ", "one two"), *parts))
    units: dict[str, list[str]] = {"guard": [], "async map_text": []}

    async def shout(unit: str) -> str:
        units["async map_text"].append(unit)
        return unit.upper()

    def check_unit(unit: str) -> bool:
        units["guard"].append(unit)
        return True

    async def read(stage: Keep) -> list[ResponseEvent]:
        async with pipe(EventsSource(events), stage) as piped:
            return [event async for event in piped]

    anyio.run(read, guard(check_unit, by="word", mode=mode))
    shouted = anyio.run(read, map_text(shout, by="word"))
    assert units == {name: ["bad ", "one ", "two"] for name in units}
    assert shouted == through(events, map_text(str.upper, by="word"))


def test_parts_that_wait_are_let_out_in_their_order() -> None:
    random = Random(1)
    for _ in range(300):
        parts = ["".join(random.choices(["secret", "sec", "ret", "a"], k=4)) for _ in range(3)]
        left = dict(enumerate(parts))
        given: list[OutputTextDelta] = []
        while left:
            part = random.choice(sorted(left))
            size = random.randint(1, 5)
            given.append(text(left[part][:size], part))
            left[part] = left[part][size:]
            if not left[part]:
                del left[part]
        machine = HIDE.machine()
        out: list[Any] = []
        for event in response(*item(0, message(), message(*parts), *given)):
            out += machine.feed(event)
        shown = ["", "", ""]
        for event in of(OutputTextDelta, out):
            shown[event.content_index] += event.delta
        assert shown == [part.replace("secret", "[x]") for part in parts]
        assert [part.text for part in out[-2].item.content] == shown


def test_many_parts_that_wait_take_linear_time() -> None:
    given = [text("sec", part) for part in range(20_000)]
    start = process_time()
    out = through(response(*item(0, message(), message(*["sec"] * 20_000), *given)), HIDE)
    assert process_time() - start < 5
    assert len(of(OutputTextDelta, out)) == 20_000


def test_text_without_deltas_is_changed_anew() -> None:
    events = response(*item(0, message(), message("a secret b"), text("a "), text("secret b")))
    out = through(events, aggregate(), HIDE)
    assert of(OutputItemDone, out)[0].item.text == "a [x] b"


def test_text_that_was_replaced_is_changed_anew() -> None:
    parts = [text("a sec"), Notice("text_replaced", index=0)]
    out = through(response(*item(0, message(), message("no secret"), *parts)), HIDE)
    assert deltas(out) == ["a ", "sec"]
    assert accumulate(out).text == "no [x]"


def test_logprobs_stay_on_unchanged_deltas_alone() -> None:
    tokens = ["hello ", "sec", "ret", " end"]
    parts = [text(token, logprobs=[{"token": token}]) for token in tokens]
    out = through(response(*item(0, message(), message("".join(tokens)), *parts)), HIDE)
    kept = [(event.delta, bool(event.logprobs)) for event in of(OutputTextDelta, out)]
    assert kept == [("hello ", True), ("[x]", False), (" end", True)]


@pytest.mark.parametrize(
    ("stage", "tokens"),
    [(limit(characters=1), ["a", "a"]), (replace("ab", "b"), ["a", "b"])],
)
def test_logprobs_leave_a_delta_that_repeats_another(stage: Keep, tokens: list[str]) -> None:
    """The text is that of the last delta, but not the delta itself."""
    parts = [text(token, logprobs=[{"token": token}]) for token in tokens]
    out = through(response(*item(0, message(), message("".join(tokens)), *parts)), stage)
    assert [event.delta for event in of(OutputTextDelta, out)] == [tokens[-1]]
    assert [event.logprobs for event in of(OutputTextDelta, out)] == [None]


@each_case("end", [Completed(stop_reason="stop"), Failed(ErrorInfo("malformed", "x"))])
@each_case(
    "stage",
    [words(), map_text(str.upper), replace("two!", "2"), stop_at("two!"), limit(characters=8)],
)
def test_text_of_an_open_item_precedes_the_end(stage: Keep, end: ResponseEvent) -> None:
    added = OutputItemAdded(index=0, item=message(status="incomplete"))
    out = through(response(added, text("one "), text("two"), end=end), stage)
    assert "".join(deltas(out)).lower() == "one two"
    assert type(out[-1]) is type(end)


def test_metadata_and_passthrough_change_as_the_text() -> None:
    copies: list[ResponseEvent] = [
        ResponseMetadata(values={"segments": [{"text": "a secret"}], "logprobsResult": ["sec"]}),
        Passthrough("new", {"text": "secret"}),
        Notice("unknown_delta", "secret"),
    ]
    failed = Failed(ErrorInfo("malformed", "bad: secret", detail={"near": "secret"}))
    out = through(response(*copies, end=failed), HIDE)
    assert "secret" not in repr(out)
    assert out[1].values == {"segments": [{"text": "a [x]"}]}  # type: ignore[union-attr]


def test_copies_may_be_nested_as_deep_as_a_parser_allows() -> None:
    value: Any = "secret"
    for _ in range(5000):
        value = [value]
    [_, copy, _] = through(response(Passthrough("new", value)), HIDE)
    inner = copy.data  # type: ignore[union-attr]
    while isinstance(inner, list):
        [inner] = inner
    assert inner == "[x]"


def test_native_fields_change_as_the_text() -> None:
    native = {"raw": ["a secret"], "n": 1}
    done = Message("assistant", (Text("a secret", native=native),), native=native)
    out = through(response(*item(0, message(), done, text("a secret"))), HIDE)
    assert "secret" not in repr(out)
    assert of(OutputItemDone, out)[0].item.native == {"raw": ["a [x]"], "n": 1}


@pytest.mark.parametrize(
    ("start", "kept"),
    [(0, True), (9, False)],
)
def test_citation_is_dropped_when_its_offset_moved(start: int, kept: bool) -> None:
    citation = {"type": "url_citation", "start_index": start, "end_index": start + 2, "title": "t"}
    done = Message("assistant", (Text("hi secret ok", (citation,)),))
    annotation = AnnotationAdded(index=0, content_index=0, annotation=citation)
    parts = [text("hi sec"), annotation, text("ret ok")]
    out = through(response(*item(0, message(), done, *parts)), HIDE)
    assert len(of(AnnotationAdded, out)) == int(kept)
    assert len(of(OutputItemDone, out)[0].item.content[0].annotations) == int(kept)
    assert ("annotation_dropped" in codes(out)) is not kept


def test_citation_stays_when_the_text_keeps_its_length() -> None:
    citation = {"url_citation": {"start_index": 9, "end_index": 11}}
    done = Message("assistant", (Text("hi secret ok", (citation,)),))
    parts = [AnnotationAdded(index=0, content_index=0, annotation=citation), text("hi secret ok")]
    mask = replace("secret", lambda match: "*" * len(match[0]))
    out = through(response(*item(0, message(), done, *parts)), mask)
    assert len(of(AnnotationAdded, out)) == 1
    assert not codes(out)


def test_changed_reasoning_loses_its_signature() -> None:
    done = Reasoning("a secret", ("secret", "plain"), signature="s")
    parts: list[ResponseEvent] = [
        ReasoningSummaryDelta(index=0, summary_index=0, delta="sec"),
        ReasoningSummaryDelta(index=0, summary_index=0, delta="ret"),
        ReasoningSummaryDelta(index=0, summary_index=1, delta="plain"),
        ReasoningContentDelta(index=0, content_index=0, delta="a secret"),
    ]
    out = through(response(*item(0, Reasoning(), done, *parts)), HIDE)
    changed = of(OutputItemDone, out)[0].item
    assert (changed.content, changed.summary) == ("a [x]", ("[x]", "plain"))
    assert changed.signature is None
    assert codes(out) == ["signature_dropped"]


def test_unchanged_reasoning_keeps_its_signature() -> None:
    done = Reasoning("plain", signature="s")
    part = ReasoningContentDelta(index=0, content_index=0, delta="plain")
    out = through(response(*item(0, Reasoning(), done, part)), HIDE)
    assert of(OutputItemDone, out)[0].item is done


def test_refusal_changes_as_the_text() -> None:
    done = Message("assistant", (Refusal("no secret"),))
    parts = [
        RefusalDelta(index=0, content_index=0, delta="no sec"),
        RefusalDelta(index=0, content_index=0, delta="ret"),
    ]
    out = through(response(*item(0, message(), done, *parts)), HIDE)
    assert of(OutputItemDone, out)[0].item.content == (Refusal("no [x]"),)
    assert "".join(deltas(out, RefusalDelta)) == "no [x]"


def arguments_of(whole: str, size: int, *, done: bool = True) -> tuple[str, str]:
    """The arguments that come out: those of the deltas, and of the item."""
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    parts = [FunctionCallArgumentsDelta(index=0, delta=piece) for piece in pieces]
    status = "completed" if done else "incomplete"
    final = with_fields(CALL, arguments=whole, status=status)
    out = through(response(*item(0, CALL, final, *parts)), HIDE)
    last = of(OutputItemDone, out)[0].item
    assert last.status == status
    return "".join(deltas(out, FunctionCallArgumentsDelta)), last.arguments


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_arguments_change_in_string_values_alone(size: int) -> None:
    whole = json.dumps(
        {"secret": "a secret", "n": [1, "secret", {"k": 'x"\\\n\u00e9\U0001f600 secret'}]}
    )
    of_deltas, of_item = arguments_of(whole, size)
    assert of_deltas == of_item
    assert json.loads(of_item) == {
        "secret": "a [x]",
        "n": [1, "[x]", {"k": 'x"\\\n\u00e9\U0001f600 [x]'}],
    }


@each_case("size", [1, 4, 100])
@each_case(
    "whole",
    [
        '{"a": "secr',
        '{"a": "x\\',
        '{"a": "x\\u00',
        '{"a": "\\ud83d',
        '{"a": "\\q"}',
        '{"a": "secr\\qet"}',
        '{"a": "secr\net"}',
    ],
)
def test_arguments_that_are_no_json_stay_none(whole: str, size: int) -> None:
    of_deltas, of_item = arguments_of(whole, size, done=False)
    assert of_deltas == of_item == whole


def test_arguments_do_not_depend_on_splits() -> None:
    random = Random(5)
    pieces = ['"', "\\\\", '\\"', "\\", "\\u", "d83d", "\\ude42", "0041", "a", "sec", "ret"]
    pieces += ["{", "}", "[", "]", ",", ":", "\n"]
    for _ in range(500):
        whole = "".join(random.choices(pieces, k=random.randrange(18)))
        expected = arguments_of(whole, 1_000)
        for size in (1, 2, 3):
            assert arguments_of(whole, size) == expected, whole


@pytest.mark.parametrize("size", range(1, 8))
def test_arguments_may_end_with_a_backslash(size: int) -> None:
    of_deltas, of_item = arguments_of('{"a": "c:\\\\", "secret": "secret"}', size)
    assert of_deltas == of_item == '{"a": "c:\\\\", "secret": "[x]"}'


@pytest.mark.parametrize("stage", [HIDE, words(), map_text(str.upper)])
def test_deltas_name_their_agent(stage: Any) -> None:
    added = message(agent="sub", status="incomplete")
    parts = [text("my sec", agent="sub"), text("ret is. Known", agent="sub")]
    events = item(0, added, message("my secret is. Known", agent="sub"), *parts)
    out = through(response(*events), stage)
    assert {event.agent for event in of(OutputTextDelta, out)} == {"sub"}


def test_input_of_a_custom_call_is_one_text() -> None:
    call = CustomToolCall("c", "f", status="incomplete")
    parts = [FunctionCallArgumentsDelta(index=0, delta=piece) for piece in ('{"sec', 'ret": 1}')]
    final = with_fields(call, input='{"secret": 1}', status="completed")
    out = through(response(*item(0, call, final, *parts)), HIDE)
    assert of(OutputItemDone, out)[0].item.input == '{"[x]": 1}'


def test_match_that_is_too_long_is_reported_once() -> None:
    whole = "a" * 50
    out = through(
        response(*item(0, message(), message(whole), text(whole))), replace("a+b?", "", longest=8)
    )
    assert codes(out) == ["match_too_long"]
    assert accumulate(out).text == ""


@pytest.mark.parametrize("stage", [words(), sentences()])
def test_cutting_keeps_the_item_and_its_parts(stage: Any) -> None:
    done = message("One. Two three", "four. Five")
    parts = [text("One. Tw"), text("o three"), text("four. F", 1), text("ive", 1)]
    out = through(response(*item(0, message(), done, *parts)), stage)
    assert of(OutputItemDone, out)[0].item is done
    joined = ["", ""]
    for event in of(OutputTextDelta, out):
        joined[event.content_index] += event.delta
    assert joined == ["One. Two three", "four. Five"]


def test_map_text_calls_its_function_once_a_unit() -> None:
    seen: list[str] = []

    def number(unit: str) -> str:
        seen.append(unit)
        return f"{len(seen)}:{unit}"

    parts = [text("One. Tw"), text("o. "), text("Three")]
    out = through(
        response(*item(0, message(), message("One. Two. Three"), *parts)), map_text(number)
    )
    assert seen == ["One. ", "Two. ", "Three"]
    assert accumulate(out).text == "".join(deltas(out)) == "1:One. 2:Two. 3:Three"
