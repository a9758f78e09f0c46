"""Requests with calls of built-in tools and their outputs: built, decoded, repaired, downgraded."""

from __future__ import annotations

from typing import Any, cast, get_args

import msgspec
import pytest

from streamlib import (
    ComputerCall,
    FunctionCall,
    History,
    Image,
    Opaque,
    Origin,
    Prompt,
    Response,
    ResponseItem,
    ShellCall,
    ShellResult,
    ToolOptions,
    ToolSearchCall,
    ToolSpec,
    WireApi,
    accumulate,
    build,
    encode_all,
    encode_body,
    parse_body,
    parse_request,
    parser,
    user,
)
from streamlib.request.report import Change
from streamlib_parsers.items import BUILT_IN_CALLS, BUILT_IN_OUTPUTS
from tests.support.built_in_calls import CALLS, OUTPUTS, SCREENSHOT, answer
from tests.support.cases import each_case
from tests.support.responses_builds import body, built, changes, sent

NAMES = pytest.mark.parametrize("name", CALLS)
HERE = Origin("responses", "openai", "https://api.openai.com/v1", "gpt-5.5")
OTHER_WIRES = [wire for wire in get_args(WireApi) if wire != "responses"]


def response_of(*names: str, origin: Origin | None = None) -> Response:
    output = [CALLS[name] for name in names]
    data = {"id": "resp_1", "model": "gpt-5.5", "status": "completed", "output": output}
    return accumulate(parse_body("responses", msgspec.json.encode(data), origin=origin))


def history_of(*names: str, origin: Origin | None = None) -> list[ResponseItem]:
    """A user message, the calls, an output for each."""
    response = response_of(*names, origin=origin)
    return [user("x"), *response.items, *map(answer, response.pending)]


# --- the wire's own form ---


@NAMES
def test_call_and_output_are_sent_in_the_wires_form(name: str) -> None:
    """B5: what the provider sent goes back as it was, and the answer behind it."""
    request = built(*history_of(name))
    assert body(request)["input"][1:] == [CALLS[name], OUTPUTS[name]]
    assert request.report == []


@NAMES
def test_request_is_decoded_to_the_same_items(name: str) -> None:
    request = built(*history_of(name))
    prompt = parse_request("responses", request.body)
    _, call, output = prompt.items
    assert isinstance(call, BUILT_IN_CALLS)
    assert isinstance(output, BUILT_IN_OUTPUTS)
    again = built(*prompt.items)
    assert (body(again)["input"], again.report) == (body(request)["input"], [])


@NAMES
def test_items_are_saved_and_loaded(name: str) -> None:
    history = history_of(name, origin=HERE)
    assert History.loads(History(history).dumps()) == history


@NAMES
def test_response_encoders_write_the_call(name: str) -> None:
    response = response_of(name)
    stream = parse_body(
        "responses",
        msgspec.json.encode(
            {
                "id": "resp_1",
                "model": "gpt-5.5",
                "status": "completed",
                "output": [CALLS[name]],
            }
        ),
    )
    p = parser("responses")
    again = accumulate([*p.feed(encode_all("responses", stream)), *p.close()])
    assert again.items == response.items
    assert accumulate(parse_body("responses", encode_body("responses", response))) == response


@pytest.mark.parametrize("status", ["in_progress", None])
@pytest.mark.parametrize("name", ["shell_call", "computer_call", "tool_search_call"])
def test_status_of_a_requests_call_is_kept(name: str, status: str | None) -> None:
    call = {**CALLS[name], "status": status}
    if status is None:
        del call["status"]
    data = msgspec.json.encode({"model": "m", "input": [call, OUTPUTS[name]]})
    assert body(built(*parse_request("responses", data).items))["input"] == [call, OUTPUTS[name]]


def test_search_without_call_id_is_answered_without_one() -> None:
    call = {**CALLS["tool_search_call"], "call_id": None}
    output = {**OUTPUTS["tool_search_call"], "call_id": None}
    (item,) = accumulate(
        parse_body("responses", msgspec.json.encode({"status": "completed", "output": [call]}))
    ).pending
    assert sent(item, answer(item)) == [call, output]
    data = msgspec.json.encode({"model": "m", "input": [call, output]})
    assert sent(*parse_request("responses", data).items) == [call, output]


def test_local_shell_output_may_name_the_item() -> None:
    call, output = CALLS["local_shell_call"], {**OUTPUTS["local_shell_call"], "id": "lsh_1"}
    data = msgspec.json.encode({"model": "m", "input": [call, output]})
    assert sent(*parse_request("responses", data).items) == [call, output]


@pytest.mark.parametrize(
    "screenshot",
    [
        {"type": "computer_screenshot", "image_url": "https://example.org/a.png"},
        {"type": "computer_screenshot", "file_id": "file_1", "detail": "original"},
    ],
    ids=["url", "file"],
)
def test_screenshot_of_any_source_is_kept(screenshot: dict[str, Any]) -> None:
    output = {**OUTPUTS["computer_call"], "output": screenshot}
    data = msgspec.json.encode({"model": "m", "input": [CALLS["computer_call"], output]})
    assert sent(*parse_request("responses", data).items) == [CALLS["computer_call"], output]


@pytest.mark.parametrize(
    "output",
    [
        {"type": "computer_call_output", "call_id": "call_cu", "output": "x"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": "yes"},
        {"type": "shell_call_output", "call_id": "call_sh", "output": [{"stdout": 1}]},
        {"type": "apply_patch_call_output", "call_id": "call_ap", "status": "odd"},
    ],
    ids=lambda output: str(output["type"]),
)
def test_output_of_unknown_form_is_sent_as_it_is(output: dict[str, Any]) -> None:
    calls = [CALLS["computer_call"], CALLS["mcp_approval_request"]]
    calls += [CALLS["shell_call"], CALLS["apply_patch_call"]]
    items = parse_request(
        "responses", msgspec.json.encode({"model": "m", "input": [*calls, output]})
    ).items
    assert isinstance(items[-1], Opaque)
    assert output in sent(*items)


@pytest.mark.parametrize("unset", ["action", "actions"])
def test_null_beside_the_actions_is_not_sent(unset: str) -> None:
    """The SDK's input types allow neither to be null."""
    call = CALLS["computer_call" if unset == "action" else "computer_call-of-one-action"]
    output = msgspec.json.encode({"status": "completed", "output": [{**call, unset: None}]})
    (item,) = accumulate(parse_body("responses", output)).pending
    assert sent(item, answer(item))[0] == call


def test_hand_made_calls_have_what_the_wire_requires() -> None:
    call = ComputerCall("c", [{"type": "wait"}])
    search = ToolSearchCall("t", "{}")
    found = search.output([ToolSpec("f", native={"type": "mcp", "server_label": "f"})])
    objects = sent(call, search, call.output(SCREENSHOT), found)
    assert objects[0] == {
        "type": "computer_call",
        "call_id": "c",
        "status": "completed",
        "actions": [{"type": "wait"}],
        "pending_safety_checks": [],
    }
    assert objects[1]["arguments"] == {}
    assert objects[3]["tools"] == [{"type": "mcp", "server_label": "f"}]


def found_tools(*tools: ToolSpec, target: str = "openai:gpt-5.5") -> tuple[Any, list[Change]]:
    """What a request says that a search found, and its report."""
    search = ToolSearchCall("t", "{}")
    request = build(Prompt([user("x"), search, search.output(tools)]), target, wire_api="responses")
    return body(request)["input"][2]["tools"], request.report


def test_found_tools_are_written_as_those_of_the_request() -> None:
    function = ToolSpec("f", "does f", {"type": "object", "properties": {}})
    tools = [
        function,
        msgspec.structs.replace(function, name="strict", strict=True),
        ToolSpec("c", format={"type": "text"}),
        ToolSpec("space", "of f", tools=[function]),
        ToolSpec.hosted("web_search", allowed_domains=["example.org"]),
        ToolSpec("g", options=ToolOptions(defer_loading=True)),
    ]
    request = build(Prompt("x", tools=tools), "openai:gpt-5.5", wire_api="responses")
    assert found_tools(*tools) == (body(request)["tools"], [])


def test_found_tool_that_the_target_lacks_is_reported() -> None:
    tools, report = found_tools(ToolSpec.hosted("web_fetch"), ToolSpec.hosted("web_search"))
    assert tools == [{"type": "web_search"}]
    assert [(change.action, change.path) for change in report] == [("dropped", "/input/2/tools/0")]


def test_found_tools_of_another_wire_are_left_out() -> None:
    tools, report = found_tools(ToolSpec("b", native={"type": "bash_20250124", "name": "bash"}))
    assert tools == []
    assert [(change.action, change.path) for change in report] == [("dropped", "/input/2/tools/0")]


# --- repairs ---


@NAMES
def test_unanswered_call_gets_an_error_of_its_kind(name: str) -> None:
    (call,) = response_of(name).pending
    request = built(user("x"), call)
    assert changes(request) == [("generated", "/input/1")]
    _, first, second = body(request)["input"]
    assert "interrupted" in msgspec.json.encode(second).decode() or second["tools"] == []
    if isinstance(call, ComputerCall):
        # Only a screenshot answers it, so both are text.
        assert (first["role"], second["role"]) == ("assistant", "user")
    else:
        assert second["type"] == OUTPUTS[name]["type"]
        assert second.get("approve", False) is False


def test_request_after_an_unanswered_call_differs() -> None:
    """B5: the request was the same again, for ever."""
    first = [user("x")]
    response = response_of("computer_call")
    assert sent(*first) != sent(*first, *response.items)


@NAMES
def test_output_without_its_call_is_user_text(name: str) -> None:
    (call,) = response_of(name).pending
    request = built(user("x"), answer(call))
    assert changes(request) == [("downgraded", "/input/1")]
    assert [block["role"] for block in body(request)["input"]] == ["user", "user"]


@NAMES
def test_incomplete_call_is_dropped_with_its_output(name: str) -> None:
    (call,) = response_of(name).pending
    cut = msgspec.structs.replace(call, status="incomplete")
    request = built(user("x"), cut, answer(call))
    assert changes(request) == [("dropped", "/input/1"), ("dropped", "/input/2")]


@NAMES
def test_second_output_is_dropped_and_a_late_one_moved(name: str) -> None:
    (call,) = response_of(name).pending
    request = built(user("x"), call, user("y"), answer(call), answer(call))
    assert changes(request) == [("dropped", "/input/4"), ("repaired", "/input/3")]
    assert body(request)["input"][1:3] == [CALLS[name], OUTPUTS[name]]


def test_shell_and_function_of_one_id_keep_their_outputs() -> None:
    shell, function = ShellCall("c", {"commands": ["ls"]}), FunctionCall("c", "f")
    outputs = [shell.output([ShellResult("a")]), function.output("b")]
    types = [block["type"] for block in sent(shell, function, *outputs)]
    assert types == ["shell_call", "function_call", "shell_call_output", "function_call_output"]


# --- other origins ---


def wire_body(wire_api: str, *items: ResponseItem) -> tuple[str, list[Change]]:
    request = build(
        Prompt(items, max_output_tokens=99),
        "custom:any",
        wire_api=cast("Any", wire_api),
        base_url="https://example.org/v1",
    )
    return request.body.decode(), request.report


@pytest.mark.parametrize("wire_api", OTHER_WIRES)
@NAMES
def test_other_wires_get_text_and_report_it(name: str, wire_api: str) -> None:
    text, report = wire_body(wire_api, *history_of(name, origin=HERE), user("y"))
    reported = {(change.action, change.path) for change in report}
    assert {("downgraded", "/input/1"), ("downgraded", "/input/2")} <= reported
    assert CALLS[name]["id"] not in text
    assert "call_" not in text.replace("computer_call", "")


@each_case("wire_api", [*OTHER_WIRES, "responses"])
def test_items_without_origin_go_to_every_wire(wire_api: str) -> None:
    _, report = wire_body(wire_api, *history_of("shell_call"))
    assert len(report) == (0 if wire_api == "responses" else 2)


def test_screenshot_is_an_image_elsewhere() -> None:
    text, _ = wire_body("messages", *history_of("computer_call", origin=HERE))
    assert '"data":"aGk="' in text
    shot = ComputerCall("c").output(Image(file_id="file_1"))
    text, _ = wire_body("messages", user("x"), ComputerCall("c"), shot)
    assert "file_1" not in text


def test_text_of_outputs_follows_the_outputs_of_functions() -> None:
    """Chat refuses anything between a call and its output."""
    shell, function = ShellCall("s", {"commands": ["ls"]}), FunctionCall("f", "f", "{}")
    history = [user("x"), shell, function, shell.output([ShellResult("a")]), function.output("b")]
    text, _ = wire_body("chat", *history)
    roles = [message["role"] for message in msgspec.json.decode(text)["messages"]]
    assert roles == ["user", "assistant", "tool", "user"]


def test_unanswered_screen_follows_the_outputs_of_functions() -> None:
    function = FunctionCall("f", "f", "{}")
    text, _ = wire_body("chat", user("x"), ComputerCall("c"), function, function.output("b"))
    roles = [message["role"] for message in msgspec.json.decode(text)["messages"]]
    assert roles == ["user", "assistant", "tool", "user"]


def test_another_model_gets_the_calls_as_they_are() -> None:
    request = build(Prompt(history_of("shell_call", origin=HERE)), "openai:gpt-5.6")
    assert (body(request)["input"][1], request.report) == (CALLS["shell_call"], [])


def test_another_provider_of_the_wire_gets_text() -> None:
    history = history_of("shell_call", origin=HERE)
    request = build(Prompt(history), "xai:grok-5", wire_api="responses")
    assert [block["type"] for block in body(request)["input"]] == ["message"] * 3
    assert [change.action for change in request.report] == ["downgraded"] * 2
