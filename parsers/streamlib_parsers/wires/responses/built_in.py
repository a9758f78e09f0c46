"""OpenAI Responses: calls that the caller runs, and their outputs, as objects of the wire.

`items.py` reads the calls; the request decoder reads the outputs.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from streamlib_parsers.items import (
    ApplyPatchCall,
    ApplyPatchCallOutput,
    ApprovalRequest,
    ApprovalResponse,
    BuiltInCall,
    BuiltInOutput,
    ComputerCall,
    ComputerCallOutput,
    JsonObject,
    ShellCall,
    ShellCallOutput,
    ShellResult,
    ToolSearchCall,
    ToolSearchOutput,
)

__all__ = ["call_object", "output_object"]


# --- calls ---


def call_object(item: BuiltInCall) -> JsonObject:
    """Converts a call to the wire's object, without `status`."""
    native = item.native or {}
    match item:
        case ComputerCall():
            return _computer_call(item, native)
        case ShellCall():
            kind = native.get("type", "shell_call")
            return {**native, "type": kind, **_call_id(item), **_typed(native, action=item.action)}
        case ApplyPatchCall():
            typed = _typed(native, operation=item.operation)
            return {**native, "type": "apply_patch_call", **_call_id(item), **typed}
        case ApprovalRequest():
            typed = _typed(
                native, server_label=item.server_label, name=item.name, arguments=item.arguments
            )
            return {**native, "type": "mcp_approval_request", "id": item.call_id, **typed}
        case ToolSearchCall():
            body: JsonObject = {"type": "tool_search_call", "execution": "client", **native}
            typed = _typed(native, arguments=_json_value(item.arguments))
            return {**body, **_call_id(item), **typed}


def _computer_call(item: ComputerCall, native: JsonObject) -> JsonObject:
    body: JsonObject = {**native, "type": "computer_call", **_call_id(item)}
    # A single action of a model that has `action`: see the reader.
    if "actions" in native and native["actions"] is None and len(item.actions) == 1:
        del body["actions"]
        body["action"] = item.actions[0]
    elif item.actions:
        body["actions"] = list(item.actions)
    if "action" in body and body["action"] is None:
        # The API sends `action` beside `actions`, but refuses it in a request.
        del body["action"]
    body.update(_typed(native, pending_safety_checks=list(item.pending_safety_checks)))
    return body


def _call_id(item: BuiltInCall) -> JsonObject:
    """`call_id`, unless it is null on the wire and the item's id replaces it."""
    if not item.call_id or item.call_id == item.id:
        return {}
    return {"call_id": item.call_id}


def _typed(native: JsonObject, **values: Any) -> JsonObject:
    """Typed values; an empty one does not replace what `native` has under its key."""
    return {key: value for key, value in values.items() if value or key not in native}


def _json_value(text: str) -> Any:
    """JSON text as a JSON value with its own bytes."""
    if not text:
        return {}
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return Raw(text.encode())


# --- outputs ---


def output_object(item: BuiltInOutput) -> JsonObject:
    """Converts an output to the wire's object.

    For a tool search, the request builder adds the tools.
    """
    native = item.native or {}
    match item:
        case ComputerCallOutput():
            return _computer_output(item, native)
        case ShellCallOutput():
            return _shell_output(item, native)
        case ApplyPatchCallOutput():
            body: JsonObject = {**native, "type": "apply_patch_call_output"}
            body["call_id"] = item.call_id
            body["status"] = "failed" if item.failed else "completed"
            if item.output:
                body["output"] = item.output
            return body
        case ApprovalResponse():
            body = {**native, "type": "mcp_approval_response"}
            body["approval_request_id"] = item.call_id
            body["approve"] = item.approve
            if item.reason is not None:
                body["reason"] = item.reason
            return body
        case ToolSearchOutput():
            body = {"execution": "client", "status": "completed", "call_id": item.call_id}
            body.update(native)
            # None: a client's own output without them.
            for key in ("execution", "status"):
                if body[key] is None:
                    del body[key]
            return {**body, "type": "tool_search_output"}


def _computer_output(item: ComputerCallOutput, native: JsonObject) -> JsonObject:
    image = item.image
    screenshot: JsonObject = {"type": "computer_screenshot", **(image.native or {})}
    if image.data is not None:
        screenshot["image_url"] = f"data:{image.media_type or 'image/png'};base64,{image.data}"
    elif image.url is not None:
        screenshot["image_url"] = image.url
    if image.file_id is not None:
        screenshot["file_id"] = image.file_id
    body: JsonObject = {**native, "type": "computer_call_output", "call_id": item.call_id}
    body["output"] = screenshot
    if item.acknowledged:
        body["acknowledged_safety_checks"] = list(item.acknowledged)
    return body


def _shell_output(item: ShellCallOutput, native: JsonObject) -> JsonObject:
    if native.get("type") == "local_shell_call_output":
        # In this kind `id` is the id of the call; there is no call_id.
        return {"id": item.call_id, **native, "output": item.text}
    body: JsonObject = {**native, "type": "shell_call_output", "call_id": item.call_id}
    body["output"] = [_shell_result(result) for result in item.results]
    return body


def _shell_result(result: ShellResult) -> JsonObject:
    outcome: JsonObject = {"type": "exit", "exit_code": result.exit_code}
    if result.exit_code is None:
        outcome = {"type": "timeout"}
    body: JsonObject = {"stdout": result.stdout, "stderr": result.stderr, "outcome": outcome}
    return {**body, **(result.native or {})}
