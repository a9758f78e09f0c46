"""A call of each built-in tool that the caller runs, on the wire, and an output for any call."""

from __future__ import annotations

from typing import Any

from streamlib import Image, PendingCall, ResponseItem, ShellResult, ToolSpec
from streamlib_parsers.items import (
    ApplyPatchCall,
    ApprovalRequest,
    ComputerCall,
    CustomToolCall,
    FunctionCall,
    ShellCall,
    ToolSearchCall,
)

CHECK = {"id": "sc_1", "code": "malicious_instructions", "message": "Careful."}
SCREENSHOT = Image(data="aGk=", media_type="image/png")

CALLS: dict[str, dict[str, Any]] = {
    "computer_call": {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_cu",
        "status": "completed",
        "actions": [{"type": "click", "button": "left", "x": 10, "y": 20}, {"type": "screenshot"}],
        "pending_safety_checks": [CHECK],
    },
    "computer_call-of-one-action": {
        "type": "computer_call",
        "id": "cu_2",
        "call_id": "call_cu2",
        "status": "completed",
        "action": {"type": "type", "text": "hi"},
        "pending_safety_checks": [],
    },
    "shell_call": {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "call_sh",
        "status": "completed",
        "action": {"commands": ["ls -l", "pwd"], "timeout_ms": 1500, "max_output_length": 4096},
        "environment": {"type": "local"},
        "caller": {"type": "direct"},
    },
    "local_shell_call": {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "call_lsh",
        "status": "completed",
        "action": {"type": "exec", "command": ["echo", "a b"], "env": {"A": "1"}},
    },
    "apply_patch_call": {
        "type": "apply_patch_call",
        "id": "ap_1",
        "call_id": "call_ap",
        "status": "completed",
        "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-1\n+2\n"},
        "created_by": "user_1",
    },
    "mcp_approval_request": {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "files",
        "name": "read",
        "arguments": '{"path": "a.txt", "n": 1.0}',
    },
    "tool_search_call": {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": "call_ts",
        "status": "completed",
        "execution": "client",
        "arguments": {"goal": "weather"},
    },
}
"""Objects of the wire; `call_id` is what `PendingCall.call_id` must be, but for the approval."""

OUTPUTS: dict[str, dict[str, Any]] = {
    "computer_call": {
        "type": "computer_call_output",
        "call_id": "call_cu",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
        "acknowledged_safety_checks": [CHECK],
    },
    "computer_call-of-one-action": {
        "type": "computer_call_output",
        "call_id": "call_cu2",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
    },
    "shell_call": {
        "type": "shell_call_output",
        "call_id": "call_sh",
        "caller": {"type": "direct"},
        "max_output_length": 4096,
        "output": [
            {"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            {"stdout": "", "stderr": "slow", "outcome": {"type": "timeout"}},
        ],
    },
    "local_shell_call": {
        "type": "local_shell_call_output",
        "id": "call_lsh",
        "output": "a.txt\nslow\n[timeout]",
    },
    "apply_patch_call": {
        "type": "apply_patch_call_output",
        "call_id": "call_ap",
        "status": "failed",
        "output": "no such file",
    },
    "mcp_approval_request": {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": True,
        "reason": "fine",
    },
    "tool_search_call": {
        "type": "tool_search_output",
        "call_id": "call_ts",
        "execution": "client",
        "status": "completed",
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "description": "The weather.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
    },
}
"""What `answer` sends for each of `CALLS`."""


def answer(call: PendingCall) -> ResponseItem:
    """An output of the call."""
    match call:
        case FunctionCall() | CustomToolCall():
            return call.output("y")
        case ComputerCall():
            return call.output(SCREENSHOT, call.pending_safety_checks)
        case ShellCall():
            return call.output([ShellResult("a.txt"), ShellResult(stderr="slow", exit_code=None)])
        case ApplyPatchCall():
            return call.output("no such file", failed=True)
        case ApprovalRequest():
            return call.respond(True, "fine")
        case ToolSearchCall():
            schema = {"type": "object", "properties": {}}
            return call.output([ToolSpec("get_weather", "The weather.", schema)])
