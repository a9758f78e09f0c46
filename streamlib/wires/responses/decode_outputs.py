"""Decodes a client's outputs of built-in tools: the inverse of `built_in.output_object`.

Objects that do not have the documented form give None; the caller keeps them as `Opaque`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib.request.json_objects import rest_of
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    ApplyPatchCallOutput,
    ApprovalResponse,
    BuiltInCall,
    BuiltInOutput,
    ComputerCallOutput,
    Image,
    JsonObject,
    Origin,
    ShellCall,
    ShellCallOutput,
    ShellResult,
    ToolSearchCall,
    ToolSearchOutput,
    ToolSpec,
)

ORIGIN: Final = Origin("responses")


class BuiltInCalls:
    """The calls of built-in tools read so far, which their outputs name."""

    def __init__(self) -> None:
        self._shells: set[str] = set()
        """Call ids of the shell calls: those of the provider's containers are not among them."""
        self._call_ids: dict[str, str] = {}
        """Id of the item -> call id, of the shell calls."""
        self._searches: set[str] = set()
        """Call ids of the tool searches that the caller runs."""
        self._unnamed_search: str | None = None
        """Id that replaces the `call_id` of the last tool search, if that is null."""

    def add(self, call: BuiltInCall) -> None:
        """Notes a call."""
        if isinstance(call, ShellCall):
            self._shells.add(call.call_id)
            if call.id is not None:
                self._call_ids[call.id] = call.call_id
        elif isinstance(call, ToolSearchCall):
            self._searches.add(call.call_id)
            if not call.call_id or call.call_id == call.id:
                self._unnamed_search = call.call_id

    def output(self, block: JsonObject) -> BuiltInOutput | None:
        """Reads an object of the input; None if it is no output, or has an unknown form."""
        read = READERS.get(str(block.get("type")))
        if read is None:
            return None
        return read(self, block)

    def _computer(self, block: JsonObject) -> ComputerCallOutput | None:
        call_id, screenshot = block.get("call_id"), block.get("output")
        if not isinstance(call_id, str) or not isinstance(screenshot, dict):
            return None
        image = _screenshot(screenshot)
        if image is None:
            return None
        read = ["output"]
        acknowledged = block.get("acknowledged_safety_checks")
        if acknowledged and _are_objects(acknowledged):
            read.append("acknowledged_safety_checks")
        else:
            acknowledged = ()
        return ComputerCallOutput(call_id, image, acknowledged, **_common(block, *read))

    def _shell(self, block: JsonObject) -> ShellCallOutput | None:
        call_id, output = block.get("call_id"), block.get("output")
        if call_id not in self._shells or not _are_objects(output):
            return None
        results: list[ShellResult] = []
        for element in output or ():
            result = _shell_result(element)
            if result is None:
                return None
            results.append(result)
        return ShellCallOutput(call_id, results, **_common(block, "output"))

    def _local_shell(self, block: JsonObject) -> ShellCallOutput | None:
        call_id, output = block.get("id"), block.get("output")
        if not isinstance(call_id, str) or not isinstance(output, str):
            return None
        native = rest_of(block, "output") or {}
        if call_id not in self._shells and call_id in self._call_ids:
            # Some clients name the call by the id of its item, which is sent back as it is.
            call_id = self._call_ids[call_id]
        else:
            del native["id"]
        return ShellCallOutput(call_id, [ShellResult(output)], native=native, origin=ORIGIN)

    def _patch(self, block: JsonObject) -> ApplyPatchCallOutput | None:
        call_id, status, output = block.get("call_id"), block.get("status"), block.get("output")
        if not isinstance(call_id, str) or status not in ("completed", "failed"):
            return None
        read = ["status"]
        text = ""
        if output and isinstance(output, str):
            text = output
            read.append("output")
        return ApplyPatchCallOutput(call_id, text, status == "failed", **_common(block, *read))

    def _approval(self, block: JsonObject) -> ApprovalResponse | None:
        call_id, approve = block.get("approval_request_id"), block.get("approve")
        if not isinstance(call_id, str) or not isinstance(approve, bool):
            return None
        reason = block.get("reason")
        if not isinstance(reason, str):
            reason = None
        read = ("approval_request_id", "approve", "reason")
        return ApprovalResponse(call_id, approve, reason, **_common(block, *read))

    def _tool_search(self, block: JsonObject) -> ToolSearchOutput | None:
        call_id, tools = block.get("call_id"), block.get("tools")
        common = _common(block, "tools", "execution", "status")
        keys = {"execution": block.get("execution"), "status": block.get("status")}
        common["native"] = {**(common["native"] or {}), **keys}
        if call_id is None and self._unnamed_search is not None:
            call_id = self._unnamed_search
            common["native"] = {**(common["native"] or {}), "call_id": None}
        is_callers = block.get("execution") == "client" or call_id in self._searches
        if not is_callers or not isinstance(call_id, str) or not _are_objects(tools):
            return None
        specs = [_tool(tool) for tool in tools or ()]
        return ToolSearchOutput(call_id, specs, **common)


READERS: Final[dict[str, Callable[[BuiltInCalls, JsonObject], BuiltInOutput | None]]] = {
    "computer_call_output": BuiltInCalls._computer,
    "shell_call_output": BuiltInCalls._shell,
    "local_shell_call_output": BuiltInCalls._local_shell,
    "apply_patch_call_output": BuiltInCalls._patch,
    "mcp_approval_response": BuiltInCalls._approval,
    "tool_search_output": BuiltInCalls._tool_search,
}


def _common(block: JsonObject, *read: str) -> dict[str, Any]:
    """The fields that every output has; `read` are the keys that typed fields hold."""
    item_id = block.get("id")
    native = rest_of(block, "type", "id", "call_id", *read)
    return {"id": item_id, "native": native, "origin": ORIGIN}


def _are_objects(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, dict) for value in values)


def _screenshot(block: JsonObject) -> Image | None:
    """The image of a ``computer_screenshot``; None for any other object."""
    url, file_id = block.get("image_url"), block.get("file_id")
    if block.get("type") != "computer_screenshot":
        return None
    if isinstance(file_id, str) and not url:
        return unchecked(Image)(file_id=file_id, native=rest_of(block, "type", "file_id"))
    if not isinstance(url, str):
        return None
    native = rest_of(block, "type", "image_url")
    prefix, _, data = url.partition(";base64,")
    media_type = prefix.removeprefix("data:")
    # A URL of another form is sent back as it is.
    if data and url == f"data:{media_type};base64,{data}":
        return unchecked(Image)(data=data, media_type=media_type, native=native)
    return unchecked(Image)(url=url, native=native)


def _shell_result(block: JsonObject) -> ShellResult | None:
    stdout, stderr, outcome = block.get("stdout"), block.get("stderr"), block.get("outcome")
    if not isinstance(stdout, str) or not isinstance(stderr, str):
        return None
    native = rest_of(block, "stdout", "stderr", "outcome")
    if outcome == {"type": "timeout"}:
        return ShellResult(stdout, stderr, None, native)
    if not isinstance(outcome, dict) or outcome.keys() != {"type", "exit_code"}:
        return None
    if outcome["type"] != "exit" or not isinstance(outcome["exit_code"], int):
        return None
    return ShellResult(stdout, stderr, outcome["exit_code"], native)


def _tool(block: JsonObject) -> ToolSpec:
    """A tool that was found, sent back as it is."""
    name = block.get("name") or block.get("server_label") or block.get("type") or ""
    return ToolSpec(str(name), native=block, native_wire="responses")
