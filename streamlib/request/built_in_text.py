"""Calls of built-in tools that the caller runs, and their outputs, as text.

A wire without the tool gets a call as text of the assistant and its output as text of the user, a
screenshot as an image. Not as a pair of function call and output: Anthropic, Bedrock and Gemini
refuse those for a tool that the request does not offer.
"""

from __future__ import annotations

import msgspec

from streamlib_parsers.items import (
    ApplyPatchCall,
    ApplyPatchCallOutput,
    ApprovalRequest,
    ApprovalResponse,
    BuiltInCall,
    BuiltInOutput,
    ComputerCall,
    ComputerCallOutput,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Message,
    PendingCall,
    ShellCall,
    ShellCallOutput,
    ShellResult,
    Text,
    ToolSearchCall,
    ToolSearchOutput,
    user,
)


def error_output(
    call: PendingCall, message: str
) -> FunctionCallOutput | CustomToolCallOutput | BuiltInOutput | None:
    """The output of a call that gave no result; None where the wire has no form for an error."""
    match call:
        case FunctionCall() | CustomToolCall():
            return call.output(message, is_error=True)
        case ComputerCall():
            # Only a screenshot answers it.
            return None
        case ShellCall():
            return call.output([ShellResult("", message, 1)])
        case ApplyPatchCall():
            return call.output(message, failed=True)
        case ApprovalRequest():
            # Nothing runs that nobody approved.
            return call.respond(approve=False, reason=message)
        case ToolSearchCall():
            return call.output(())


def call_as_text(call: BuiltInCall) -> Message:
    """The call as text of the assistant."""
    text = Text(f"[{describe_call(call)}]")
    return Message("assistant", (text,), choice=call.choice, response_id=call.response_id)


def output_as_text(output: BuiltInOutput) -> Message:
    """The output as text of the user."""
    match output:
        case ComputerCallOutput():
            image = msgspec.structs.replace(output.image, native=None)
            if image.file_id is not None:
                # Another provider's file.
                return user("[result of computer: a screenshot]")
            return user("[result of computer:]", image)
        case ShellCallOutput():
            return user(f"[result of shell: {output.text}]")
        case ApplyPatchCallOutput():
            status = "failed" if output.failed else "completed"
            return user(f"[result of apply_patch: {status} {output.output}".rstrip() + "]")
        case ApprovalResponse():
            status = "approved" if output.approve else "not approved"
            return user(f"[{status} {output.reason or ''}".rstrip() + "]")
        case ToolSearchOutput():
            names = ", ".join(tool.name for tool in output.tools)
            return user(f"[result of tool_search: {names or 'no tools'}]")


def describe_call(call: BuiltInCall) -> str:
    """The name of the tool, and what it is called with."""
    match call:
        case ComputerCall():
            return f"computer {msgspec.json.encode(call.actions).decode()}"
        case ShellCall():
            return "shell " + "; ".join(call.commands)
        case ApplyPatchCall():
            return f"apply_patch {msgspec.json.encode(call.operation).decode()}"
        case ApprovalRequest():
            return f"approval of {call.server_label} {call.name} {call.arguments}"
        case ToolSearchCall():
            return f"tool_search {call.arguments}"
