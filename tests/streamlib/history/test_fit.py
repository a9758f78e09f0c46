"""A history that is too long loses its oldest turns: whole, rarely, and with a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    ComputerCall,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    Text,
    user,
)
from streamlib.history import FittedHistory, fit, recover
from streamlib.testing.provider.strict import StrictProvider
from streamlib.testing.strategies import histories
from streamlib_parsers.items import WireApi
from tests.streamlib.testing.provider.strict.test_builders import (
    CALLING,
    FINAL,
    MODELS,
    refusal,
    request_of,
    response,
)

SYSTEM = Message("system", (Text("Be brief."),))
PNG = Image("iVBORw0KGgo=", media_type="image/png")


def each_ten(items: Sequence[ResponseItem]) -> int:
    """Ten tokens an item: limits are easy to read."""
    return 10 * len(items)


def said(text: str) -> Message:
    return Message("assistant", (Text(text),))


def talk(turns: int) -> list[ResponseItem]:
    items: list[ResponseItem] = []
    for number in range(turns):
        items += [user(f"question {number}"), said(f"response {number}")]
    return items


def steps(number: int, *, ids: str = "own") -> list[ResponseItem]:
    """One question and many calls, as an agent works; `ids` "same": each call has the same id."""
    items: list[ResponseItem] = [user("do it")]
    for step in range(number):
        call_id = "call_0" if ids == "same" else f"call_{step}"
        items += [FunctionCall(call_id, "f", "{}"), FunctionCallOutput(call_id, str(step))]
    return items


# --- what leaves ---


def test_history_that_fits_is_unchanged() -> None:
    history = talk(3)
    assert fit(history, 60, count=each_ten) == history
    assert fit(history, 60, count=each_ten).report == []


def test_oldest_turns_leave_down_to_the_second_limit() -> None:
    history = [SYSTEM, *talk(6)]
    fitted = fit(history, 100, to=55, count=each_ten)
    assert fitted == [SYSTEM, *history[-4:]]
    assert (fitted.tokens, fitted.left) == (50, history[1:9])
    assert [change.path for change in fitted.report] == [f"/input/{n}" for n in range(1, 9)]
    assert {(change.action, change.breaks_prefix) for change in fitted.report} == {
        ("dropped", True)
    }


def test_responses_leave_where_the_newest_turn_is_too_long() -> None:
    history = steps(10)
    fitted = fit(history, 100, to=50, count=each_ten)
    assert fitted == [history[0], *history[-4:]]


def test_calls_that_share_an_id_are_pairs_of_their_own() -> None:
    history = steps(10, ids="same")
    assert fit(history, 100, to=50, count=each_ten) == [history[0], *history[-4:]]


def test_items_of_one_response_stay_together() -> None:
    made: dict[str, Any] = {"origin": Origin("messages"), "response_id": "r0"}
    first: list[ResponseItem] = [
        Reasoning("Two calls.", signature="s", **made),
        FunctionCall("a", "f", "{}", **made),
        FunctionCall("b", "f", "{}", **made),
        FunctionCallOutput("a", "1"),
        FunctionCallOutput("b", "2"),
    ]
    history = [user("go"), *first, *steps(3)[1:]]
    assert fit(history, 110, to=100, count=each_ten) == [user("go"), *steps(3)[1:]]


def test_output_behind_the_next_question_keeps_its_turn() -> None:
    late: list[ResponseItem] = [
        user("one"),
        FunctionCall("a", "f", "{}"),
        user("two"),
        FunctionCallOutput("a", "1"),
        said("done"),
    ]
    assert fit([*talk(1), *late], 60, to=50, count=each_ten) == late


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_calls_before_the_first_question_leave_first(keep: int) -> None:
    """Else what stays would begin with a call, though a message comes first."""
    history = [*steps(3)[1:], *talk(3)]
    fitted = fit(history, 110, to=100, keep=keep, count=each_ten)
    assert fitted == history[6:]


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_newest_turns_stay(keep: int) -> None:
    history = talk(6)
    fitted = fit(history, 100, to=1, keep=keep, count=each_ten)
    # Of the turns that stay, only the newest response has to.
    questions = [item for item in fitted if isinstance(item, Message) and item.role == "user"]
    assert questions == history[-2 * keep :: 2]
    assert fitted[-1] == history[-1]


# --- images ---


def test_old_images_leave_before_turns() -> None:
    history: list[ResponseItem] = [user("see", PNG), said("a"), user(PNG), said("b"), user("and?")]
    weights = {True: 100, False: 10}

    def count(items: Sequence[ResponseItem]) -> int:
        return sum(weights[isinstance(item, Message) and PNG in item.content] for item in items)

    fitted = fit(history, 200, to=150, keep_images=1, count=count)
    assert fitted[0] == user("see", "[an earlier image was left out]")
    assert fitted[1:] == history[1:]
    assert [(change.action, change.path) for change in fitted.report] == [("changed", "/input/0")]
    assert fit(history, 300, keep_images=1, count=count) == history


def test_old_screenshot_leaves_with_its_call_and_reasoning() -> None:
    history: list[ResponseItem] = [user("click")]
    for number in range(3):
        made: dict[str, Any] = {"origin": Origin("responses"), "response_id": f"r{number}"}
        call = ComputerCall(f"c{number}", [{"type": "wait"}], **made)
        history += [Reasoning("Hm.", **made), call, call.output(PNG)]
    fitted = fit(history, 2000, to=1999, keep_images=1)
    kinds = [type(item).__name__ for item in fitted]
    assert kinds == ["Message"] * 5 + ["Reasoning", "ComputerCall", "ComputerCallOutput"]
    request = request_of("responses", "openai:gpt-5.5", fitted, {})
    assert refusal(StrictProvider(), request) is None


# --- summaries ---


def test_summary_stands_behind_the_instructions() -> None:
    history = [SYSTEM, *talk(6)]
    asked: list[int] = []

    def summary(left: list[ResponseItem]) -> str:
        asked.append(len(left))
        return f"{len(left)} items were left out"

    fitted = fit(history, 100, to=50, count=each_ten, summary=summary)
    assert fitted == [SYSTEM, user("8 items were left out"), *history[-4:]]
    assert asked == [8]
    assert fit(history, 100, to=50, count=each_ten, summary="before") == [
        SYSTEM,
        user("before"),
        *history[-2:],
    ]


def test_long_summary_takes_the_room_of_another_turn() -> None:
    def count(items: Sequence[ResponseItem]) -> int:
        return sum(60 if "long" in str(item) else 10 for item in items)

    fitted = fit(talk(6), 100, to=50, count=count, summary=lambda left: f"long {len(left)}")
    assert (fitted[0], fitted.tokens) == (user("long 8"), 100)
    with pytest.raises(ValueError, match="always stay"):
        fit(talk(6), 70, count=count, summary=lambda left: "long")


# --- wrong input ---


def test_what_cannot_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="have 20 tokens, more than 15"):
        fit([SYSTEM, *talk(2), user("x")], 15, count=each_ten)


def test_call_that_waits_for_its_output_is_an_error() -> None:
    history = [*talk(6), user("go"), FunctionCall("c9", "f", "{}")]
    assert fit(history, 1000, count=each_ten) == history
    with pytest.raises(ValueError, match=r"items\[13\]: the call 'c9' has no output yet"):
        fit(history, 100, count=each_ten)


def test_interrupted_call_of_an_earlier_turn_is_none() -> None:
    history = [user("go"), FunctionCall("c9", "f", "{}"), *talk(6)]
    assert fit(history, 130, to=120, count=each_ten) == history[2:]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": 0}, "tokens is a whole number from 1, not 0"),
        ({"tokens": 10, "to": 11}, "`to` is from 1 to 10"),
        ({"tokens": 10, "to": 0}, "`to` is from 1 to 10"),
        ({"tokens": 10, "keep": 0}, "keep is a whole number from 1, not 0"),
        ({"tokens": 10, "keep_images": -1}, "keep_images is a number from 0"),
    ],
)
def test_limit_that_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(talk(1), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": None}, "tokens is a whole number from 1, not None"),
        ({"tokens": 10, "keep": 1.5}, "keep is a whole number from 1, not 1.5"),
        ({"tokens": 10, "to": "5"}, "`to` is a whole number, not '5'"),
        ({"tokens": 10, "keep_images": "2"}, "keep_images is a whole number, not '2'"),
        ({"tokens": 10, "count": 3}, "count is a function of items, not 3"),
        ({"tokens": 10, "summary": 3}, "summary is a text, or a function of the items that"),
    ],
)
def test_argument_of_the_wrong_kind_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        fit(talk(1), **options)
    assert str(raised.value).startswith(message)


def test_iterator_of_items_loses_none() -> None:
    """Checking the items read it to its end, and the history was empty."""
    items: Any = iter(talk(2))
    assert fit(items, 1000) == talk(2)
    items = iter(talk(2))
    assert fit(items, 20, count=each_ten) == talk(2)[2:]
    items = iter(talk(2))
    assert recover(items) == talk(2)


async def _later(items: Sequence[ResponseItem]) -> int:
    return 1


@pytest.mark.parametrize(
    ("count", "error"),
    [
        (lambda items: -1, ValueError),
        (lambda items: None, TypeError),
        (lambda items: 1.5, TypeError),
        (_later, TypeError),
        (lambda items: 1 // 0, ZeroDivisionError),
    ],
    ids=["negative", "none", "fraction", "coroutine", "raises"],
)
def test_counter_that_fails_is_an_error(count: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        fit(talk(2), 5, count=count)


def test_counter_that_lies_shortens_nothing_beyond_its_word() -> None:
    """It says that less has more: what fits by its word is found, or it is an error."""
    with pytest.raises(ValueError, match="always stay"):
        fit(talk(6), 100, count=lambda items: 1000 - len(items))


# --- properties ---


def sizes(items: Sequence[ResponseItem]) -> int:
    return 4 * len(items) + sum(len(str(item)) % 7 for item in items)


CONVERSATIONS = st.sampled_from(("messages", "responses", "chat")).flatmap(
    lambda wire: histories(wire, turns=9, images=True)  # type: ignore[arg-type]
)


def cut(history: list[ResponseItem], tokens: int, limit: int) -> FittedHistory | None:
    """The history that fits; None where it cannot."""
    try:
        return fit(history, tokens, to=limit, count=sizes)
    except ValueError as error:
        if "always stay" in str(error) or "has no output yet" in str(error):
            return None
        raise


@given(CONVERSATIONS, st.booleans(), st.integers(5, 250), st.floats(0.2, 1), st.integers(0, 60))
def test_fitting(
    items: list[ResponseItem], begins: bool, tokens: int, share: float, more: int
) -> None:
    history = [SYSTEM, *items] if begins else items
    before = list(history)
    limit = max(int(tokens * share), 1)
    fitted = cut(history, tokens, limit)
    assert history == before
    if fitted is None:
        assert sizes(history) > tokens
        return
    assert sizes(fitted) == fitted.tokens <= tokens
    assert fit(fitted, tokens, to=limit, count=sizes) == fitted
    if sizes(history) <= tokens:
        assert fitted == history
        return
    # Each item stays or is reported.
    assert [item for item in history if item not in fitted] == [
        item for item in fitted.left if item not in fitted
    ]
    assert len(fitted) + len(fitted.left) == len(history)
    assert len(fitted.report) == len(fitted.left)
    # A message comes first, and it is the user's.
    rest = list(fitted[1:] if begins else fitted)
    assert isinstance(rest[0], Message)
    assert rest[0].role == "user"
    # No output without its call.
    called = {item.call_id for item in fitted if hasattr(item, "call_id")}
    left = {item.call_id for item in fitted.left if hasattr(item, "call_id")}
    assert not called & left
    # With a larger limit no less stays.
    larger = cut(history, tokens + more, limit + more)
    assert larger is not None
    assert len(larger) >= len(fitted)


@given(CONVERSATIONS, st.integers(20, 120), st.floats(0.3, 1))
def test_next_turn_would_exceed_the_limit(
    items: list[ResponseItem], tokens: int, share: float
) -> None:
    limit = max(int(tokens * share), 1)
    fitted = cut(items, tokens, limit)
    if fitted is None or not fitted.left:
        return
    place = next(index for index, item in enumerate(items) if item is fitted[0])
    questions = [
        index
        for index in range(1, place)
        if isinstance(items[index], Message) and items[index].role == "user"  # type: ignore[union-attr]
    ]
    if place:
        assert sizes(items[(questions or [0])[-1] :]) > limit


@given(CONVERSATIONS, st.integers(60, 200), st.floats(0.2, 0.8), st.sampled_from([None, 0, 1]))
def test_growing_history_breaks_its_cache_rarely(
    items: list[ResponseItem], tokens: int, share: float, images: int | None
) -> None:
    """Whatever it holds, and however its turns are cut."""
    limit = int(tokens * share)
    history: list[ResponseItem] = []
    breaks = grown = 0
    for item in items:
        history.append(item)
        grown += sizes([item])
        try:
            fitted = fit(history, tokens, to=limit, keep_images=images, count=sizes)
        except ValueError as error:
            assert "always stay" in str(error) or "has no output yet" in str(error)  # noqa: PT017
            continue
        breaks += bool(fitted.report)
        if fitted.report and fitted.tokens > limit:
            return  # what must stay leaves no room
        history = list(fitted)
    assert breaks <= grown / (tokens - limit)


@pytest.mark.parametrize(("tokens", "limit"), [(400, 200), (300, 100)])
def test_growing_conversation_is_cut_rarely(tokens: int, limit: int) -> None:
    history: list[ResponseItem] = []
    cuts = 0
    grown = 0
    for item in talk(200):
        history.append(item)
        grown += 10
        fitted = fit(history, tokens, to=limit, count=each_ten)
        cuts += bool(fitted.left)
        history = list(fitted)
    assert 0 < cuts <= grown / (tokens - limit)


@pytest.mark.parametrize("made", ["messages", "responses", "gemini", "converse", "invoke", "chat"])
def test_fitted_history_is_accepted_on_every_wire(made: WireApi) -> None:
    provider = StrictProvider()
    model = MODELS[made][0]
    history: list[ResponseItem] = []
    for number in range(3):
        history.append(user(f"And {number}?"))
        called = response(provider, request_of(made, model, history, {}), CALLING)
        history += called.items
        history += [call.output(f"result {number}") for call in called.calls]
        finished = response(provider, request_of(made, model, history, {}), FINAL)
        history += finished.items
    refused: list[str | None] = []
    lengths: set[int] = set()
    for tokens in range(50, 10 * len(history), 20):
        fitted = fit(history, tokens, to=tokens, count=each_ten)
        lengths.add(len(fitted))
        for wire_api, models in MODELS.items():
            request = request_of(wire_api, models[0], fitted, {})
            reason = refusal(provider, request)
            if reason is not None:
                refused.append(f"{wire_api} {len(fitted)}: {reason}")
    assert refused == []
    assert len(lengths) > 2
