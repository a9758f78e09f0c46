"""Mistakes of a newcomer's first hour are reported in one line.

Unfinished responses stay unfinished on every wire.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

import streamlib
from streamlib.cli import main
from streamlib.testing import MODEL, Behaviour, loopback, strategies
from streamlib.wires.encoders import UI_PROTOCOLS
from streamlib_parsers.items import Message, Text
from tests.support.cases import each_case


def untyped(value: object) -> Any:
    """Hides from the type checkers the mistake that a test makes on purpose."""
    return value


@each_case("wire_api", streamlib.WIRE_APIS)
def test_encode_body_keeps_an_incomplete_response_incomplete(
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
def test_encode_body_keeps_the_stop_reason_of_a_limit(
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
async def test_loopback_raises_exceptions_of_its_block_unchanged() -> None:
    with pytest.raises(KeyError):
        async with loopback():
            raise KeyError("mine")
    with pytest.raises(streamlib.StreamError):
        async with loopback(
            status=529, client={"retry": streamlib.RetryPolicy(retries=0)}
        ) as client:
            await client.respond("hi", model=MODEL)


def test_behaviour_rejects_an_unknown_fault() -> None:
    with pytest.raises(ValueError, match="one of truncate"):
        Behaviour(fault=untyped("explode"))


def test_prompt_rejects_objects_of_a_wire() -> None:
    with pytest.raises(TypeError, match=r"input\[0\] is a dict; made by `streamlib.user"):
        streamlib.Prompt(untyped([{"role": "user", "content": "x"}]))
    with pytest.raises(TypeError, match=r"tools\[0\] is a dict; made by `ToolSpec`"):
        streamlib.Prompt("x", tools=untyped([{"name": "f"}]))
    with pytest.raises(ValueError, match="reasoning is one of off, minimal"):
        streamlib.Prompt("x", reasoning=untyped("extreme"))


def test_unknown_wires_are_errors_that_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match="one of messages, responses"):
        streamlib.parse_request(untyped("chta"), b"{}")
    with pytest.raises(ValueError, match=", ".join(UI_PROTOCOLS)):
        streamlib.encoder("chta")


def test_build_keeps_unknown_request_fields_on_their_wire() -> None:
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
    ("arguments", "message", "code"),
    [
        (["serve", "--port", "99999"], "port 99999: ", 1),
        (
            ["chat", "--model", "custom:x", "--base-url", "127.0.0.1:1", "hi"],
            "a URL must begin with http",
            2,
        ),
    ],
)
def test_main_reports_mistakes_in_one_line(
    arguments: list[str], message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


@pytest.mark.anyio
async def test_client_rejects_an_unknown_error_mode() -> None:
    with pytest.raises(ValueError, match="errors is one of raise, event"):
        streamlib.Client(errors=untyped("evnt"))
    async with streamlib.Client() as client:
        with pytest.raises(ValueError, match="errors is one of raise, event"):
            client.stream("x", MODEL, errors=untyped("evnt"))


def test_dump_history_rejects_what_could_not_be_loaded() -> None:
    for wrong in ("abc", [{"role": "user", "content": "x"}]):
        history = streamlib.History()
        list.extend(history, untyped(wrong))  # a history itself refuses them
        with pytest.raises(TypeError, match=r"items\[0\] is a .*streamlib.user"):
            history.dumps()
    with pytest.raises(ValueError, match="missing required field `items`"):
        streamlib.History.loads(b"{}")
    with pytest.raises(ValueError, match=r"items\[1\]: .*missing required field `role`"):
        streamlib.History.loads(b'{"items": [{"type": "of_2030"}, {"type": "message"}]}')


@pytest.mark.parametrize("wrong", [streamlib.user("x"), None, 3, b"x", {"role": "user"}], ids=repr)
def test_prompt_error_names_the_types_it_accepts(wrong: object) -> None:
    with pytest.raises(TypeError, match="input is a str or a list of items, not"):
        streamlib.Prompt(untyped(wrong))


@pytest.mark.parametrize("name", ["temperature", "max_output_tokens", "seed"])
def test_prompt_rejects_a_value_that_is_not_a_number(name: str) -> None:
    for wrong in ("hot", True):
        with pytest.raises(TypeError, match=f"{name} is a number, not"):
            streamlib.Prompt("x", **untyped({name: wrong}))


def test_build_accepts_the_same_input_as_respond() -> None:
    bodies = [
        streamlib.build(prompt, MODEL, base_url="http://127.0.0.1").body
        for prompt in ("x", [streamlib.user("x")], streamlib.Prompt("x"))
    ]
    assert bodies[0] == bodies[1] == bodies[2]
    with pytest.raises(streamlib.StreamError, match="no model was given"):
        streamlib.build("x", "")


@each_case("wire_api", streamlib.WIRE_APIS)
def test_parser_rejects_text_instead_of_bytes(wire_api: streamlib.WireApi) -> None:
    for wrong in ("abc", None, {}):
        with pytest.raises(TypeError, match="a parser reads bytes, not"):
            streamlib.parse_body(wire_api, untyped(wrong))
    for wrong in ("abc\n\n", None, 3):
        with pytest.raises(TypeError, match="a parser reads bytes, not"):
            streamlib.parser(wire_api).feed(untyped(wrong))


def test_strategies_reject_an_unknown_name_at_once() -> None:
    for strategy in (
        strategies.answers,
        strategies.streams,
        strategies.odd_streams,
        strategies.bad_streams,
        strategies.histories,
    ):
        with pytest.raises(ValueError, match="one of messages, responses"):
            strategy(untyped("chatt"))
    with pytest.raises(ValueError, match="one of truncate, flip"):
        strategies.faults("boom")


def test_missing_extra_is_named_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "streamlib.testing.strategies", raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'streamlib\[fuzz\]'"):
        importlib.import_module("streamlib.testing.strategies")


def test_accumulate_rejects_anything_but_events() -> None:
    with pytest.raises(TypeError, match="a str is not an event"):
        streamlib.accumulate(untyped(["a"]))
    assert streamlib.accumulate([streamlib.Passthrough("comet", {})]) == streamlib.Response()


def test_gateway_names_its_extra_when_it_is_missing() -> None:
    program = (
        "import sys; "
        "sys.modules['starlette'] = sys.modules['starlette.types'] = None; "
        "import streamlib.gateway"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "pip install 'streamlib[gateway]'" in process.stderr
