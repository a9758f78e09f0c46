"""What a newcomer gets wrong in the first hour is said in one line, and unfinished things stay unfinished on every wire."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import streamlib
from streamlib.cli import main
from streamlib.testing import MODEL, Behaviour, loopback, strategies
from streamlib.wires.encoders import UI_PROTOCOLS
from streamlib_parsers.items import Message, Text


@pytest.mark.parametrize("wire_api", streamlib.WIRE_APIS)
def test_a_response_that_has_not_ended_is_not_encoded_as_a_whole_one(
    wire_api: streamlib.WireApi,
) -> None:
    unfinished = streamlib.accumulate(
        [streamlib.OutputItemDone(0, Message("assistant", (Text("Hel"),)))]
    )
    assert unfinished.status == "incomplete"
    last = streamlib.parse_body(wire_api, streamlib.encode_body(wire_api, unfinished, model="m"))[
        -1
    ]
    assert isinstance(last, streamlib.Failed)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_response_stopped_by_a_limit_is_still_encoded_as_its_end(
    reason: streamlib.StopReason,
) -> None:
    events = [
        streamlib.OutputItemDone(0, Message("assistant", (Text("Hel"),))),
        streamlib.Completed(stop_reason=reason),
    ]
    stopped = streamlib.accumulate(events)
    assert stopped.status == "incomplete"
    last = streamlib.parse_body("chat", streamlib.encode_body("chat", stopped, model="m"))[-1]
    assert isinstance(last, streamlib.Completed)
    assert last.stop_reason == reason


@pytest.mark.anyio
async def test_the_own_exceptions_of_a_loopback_block_come_out_plain() -> None:
    with pytest.raises(KeyError):
        async with loopback():
            raise KeyError("mine")
    with pytest.raises(streamlib.StreamError):
        async with loopback(
            status=529, client={"retry": streamlib.RetryPolicy(retries=0)}
        ) as client:
            await client.respond("hi", model=MODEL)


def test_a_fault_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="one of truncate"):
        Behaviour(fault="explode")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_another_wires_words_in_a_prompt_are_one_clear_line() -> None:
    with pytest.raises(TypeError, match=r"input\[0\] is a dict; made by `streamlib.user"):
        streamlib.Prompt([{"role": "user", "content": "x"}])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"tools\[0\] is a dict; made by `ToolSpec`"):
        streamlib.Prompt("x", tools=[{"name": "f"}])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="reasoning is one of off, minimal"):
        streamlib.Prompt("x", reasoning="extreme")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_unknown_wires_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="one of messages, responses"):
        streamlib.parse_request("chta", b"{}")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=", ".join(UI_PROTOCOLS)):
        streamlib.encoder("chta")


def test_a_foreign_requests_own_words_stay_on_their_wire() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"x"}],"logit_bias":{"1":1}}'
    prompt = streamlib.parse_request("chat", body)
    foreign = streamlib.build(prompt, "anthropic:m")
    assert b"logit_bias" not in foreign.body
    assert "/extra/logit_bias" in [change.path for change in foreign.report]
    assert b"logit_bias" in streamlib.build(prompt, "openai:m", wire_api="chat").body
    own = streamlib.Prompt("x", extra={"logit_bias": {"1": 1}})
    assert b"logit_bias" in streamlib.build(own, "anthropic:m").body, (
        "the caller's own extra goes wherever the caller sends it"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--port", "99999"], "port 99999: "),
        (
            ["chat", "--model", "custom:x", "--base-url", "127.0.0.1:1", "hi"],
            "a URL begins with http",
        ),
    ],
)
def test_the_command_line_says_mistakes_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1


@pytest.mark.anyio
async def test_a_misspelt_errors_does_not_turn_exceptions_off() -> None:
    with pytest.raises(ValueError, match="errors is one of raise, event"):
        streamlib.Client(errors="evnt")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async with streamlib.Client() as client:
        with pytest.raises(ValueError, match="errors is one of raise, event"):
            client.stream("x", MODEL, errors="evnt")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_what_could_not_be_loaded_again_is_not_saved_as_a_history() -> None:
    for wrong in ("abc", [{"role": "user", "content": "x"}]):
        with pytest.raises(TypeError, match=r"items\[0\] is a .*streamlib.user"):
            streamlib.dump_history(wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="it has no 'items'"):
        streamlib.load_history(b"{}")


@pytest.mark.parametrize("wrong", [streamlib.user("x"), None, 3, b"x", {"role": "user"}], ids=repr)
def test_a_prompt_of_the_wrong_kind_says_what_it_takes(wrong: object) -> None:
    with pytest.raises(TypeError, match="input is a str or a list of items, not"):
        streamlib.Prompt(wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["temperature", "max_output_tokens", "seed"])
def test_a_number_that_is_none_is_not_sent(name: str) -> None:
    for wrong in ("hot", True):
        with pytest.raises(TypeError, match=f"{name} is a number, not"):
            streamlib.Prompt("x", **{name: wrong})  # type: ignore[arg-type]


def test_build_takes_what_respond_takes() -> None:
    made = [
        streamlib.build(given, MODEL, base_url="http://127.0.0.1").body
        for given in ("x", [streamlib.user("x")], streamlib.Prompt("x"))
    ]
    assert made[0] == made[1] == made[2]
    with pytest.raises(streamlib.StreamError, match="no model was given"):
        streamlib.build("x", "")


@pytest.mark.parametrize("wire_api", streamlib.WIRE_APIS)
def test_text_where_bytes_are_meant_is_one_clear_line(wire_api: streamlib.WireApi) -> None:
    for wrong in ("abc", None, {}):
        with pytest.raises(TypeError, match="a parser reads bytes, not"):
            streamlib.parse_body(wire_api, wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    for wrong in ("abc\n\n", None, 3):
        with pytest.raises(TypeError, match="a parser reads bytes, not"):
            streamlib.parser(wire_api).feed(wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_strategies_refuse_a_name_that_is_none_at_once_with_the_known_ones() -> None:
    for make in (
        strategies.responses,
        strategies.streams,
        strategies.malformed_streams,
        strategies.bad_streams,
        strategies.histories,
    ):
        with pytest.raises(ValueError, match="one of messages, responses"):
            make("chatt")  # type: ignore[operator]
    with pytest.raises(ValueError, match="one of truncate, flip"):
        strategies.faults("boom")


def test_a_missing_extra_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "streamlib.testing.strategies", raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'streamlib\[fuzz\]'"):
        importlib.import_module("streamlib.testing.strategies")


def test_what_is_no_event_is_not_accumulated() -> None:
    with pytest.raises(TypeError, match="a str is not an event"):
        streamlib.accumulate(["a"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    assert streamlib.accumulate([streamlib.Passthrough("comet", {})]) == streamlib.Response()


def test_the_gateway_without_its_extra_says_what_to_install() -> None:
    without = "import sys; sys.modules['starlette'] = sys.modules['starlette.types'] = None; import streamlib.gateway"
    ran = subprocess.run(
        [sys.executable, "-c", without], capture_output=True, text=True, check=False
    )
    assert "pip install 'streamlib[cli,gateway]'" in ran.stderr
