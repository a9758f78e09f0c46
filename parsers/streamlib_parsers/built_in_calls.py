"""Calls of tools that the provider defines and the caller runs, and their outputs.

A computer, a shell, a patch to files, an approval (searches for tools are in `items`). Only
OpenAI's Responses has them; other wires get them as text. Each call makes its own output item:

    match item:
        case ComputerCall():
            history.append(item.output(screenshot_after(item.actions)))

`call_id` ties the two together, whatever the wire calls it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.item_base import Image, Item, JsonObject, parse_arguments, store_tuple


def repeated_keys(call: Item, *keys: str) -> JsonObject | None:
    """The keys of a call's `native` that the wire wants again in its output."""
    native = call.native or {}
    return {key: native[key] for key in keys if key in native} or None


class ComputerCall(Item, frozen=True):
    """Actions at a screen. responses: computer_call.

    Attributes:
        call_id: the id that its output repeats.
        actions: what to do, in order, as the wire's own objects: `{"type": "click", "x": 10, …}`
            (responses: actions; before 2026 one `action`).
        pending_safety_checks: warnings to show to a person; those that were accepted are passed to
            `output`.
    """

    call_id: str
    actions: Sequence[JsonObject] = ()
    pending_safety_checks: Sequence[JsonObject] = ()

    def __post_init__(self) -> None:
        store_tuple(self, "actions")
        store_tuple(self, "pending_safety_checks")

    def output(self, image: Image, acknowledged: Sequence[JsonObject] = ()) -> ComputerCallOutput:
        """The output item of this call.

        Args:
            image: the screen after the actions.
            acknowledged: those of `pending_safety_checks` that a person accepted.
        """
        return ComputerCallOutput(self.call_id, image, acknowledged)


class ComputerCallOutput(Item, frozen=True):
    """The screen after the actions of a `ComputerCall`. responses: computer_call_output.

    Attributes:
        call_id: id of the call.
        image: the screenshot.
        acknowledged: the safety checks that were accepted (responses: acknowledged_safety_checks).
    """

    call_id: str
    image: Image
    acknowledged: Sequence[JsonObject] = ()

    def __post_init__(self) -> None:
        store_tuple(self, "acknowledged")


class ShellCall(Item, frozen=True):
    """Commands for a shell of the caller's. responses: shell_call, local_shell_call.

    `native["type"]` is `local_shell_call` for the older kind, which is one program with arguments.

    Attributes:
        call_id: the id that its output repeats.
        action: the wire's own object (shell_call: commands, timeout_ms, max_output_length ·
            local_shell_call: command, env, timeout_ms, user, working_directory).
    """

    call_id: str
    action: JsonObject

    @property
    def commands(self) -> list[str]:
        """The commands, each a line for a shell."""
        command = self.action.get("command")
        if isinstance(command, (list, tuple)):
            import shlex  # here, because few programs have a shell

            return [shlex.join(map(str, command))]
        commands = self.action.get("commands")
        if isinstance(commands, (list, tuple)):
            return [str(line) for line in commands]
        return []

    @property
    def timeout(self) -> float | None:
        """Seconds that the commands may take; None if the model named no limit."""
        milliseconds = self.action.get("timeout_ms")
        if isinstance(milliseconds, (int, float)):
            return milliseconds / 1000
        return None

    def output(self, results: Sequence[ShellResult]) -> ShellCallOutput:
        """The output item of this call: one result a command, in their order."""
        keys = repeated_keys(self, "caller") or {}
        if (self.native or {}).get("type") == "local_shell_call":
            keys["type"] = "local_shell_call_output"
        elif self.action.get("max_output_length") is not None:
            keys["max_output_length"] = self.action["max_output_length"]
        return ShellCallOutput(self.call_id, results, native=keys or None)


class ShellResult(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """What one command did.

    Attributes:
        stdout: its standard output.
        stderr: its standard error.
        exit_code: None: it did not end within its time.
        native: other fields of the wire's object.
    """

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = 0
    native: JsonObject | None = None

    @property
    def text(self) -> str:
        """Both outputs, then how it ended unless that is exit code 0."""
        texts = [text for text in (self.stdout, self.stderr) if text]
        if self.exit_code is None:
            texts.append("[timeout]")
        elif self.exit_code:
            texts.append(f"[exit code {self.exit_code}]")
        return "\n".join(texts)


class ShellCallOutput(Item, frozen=True):
    """The results of a `ShellCall`. responses: shell_call_output, local_shell_call_output."""

    call_id: str
    results: Sequence[ShellResult] = ()

    def __post_init__(self) -> None:
        store_tuple(self, "results")

    @property
    def text(self) -> str:
        """The results as one text."""
        return "\n".join(result.text for result in self.results)


class ApplyPatchCall(Item, frozen=True):
    """A change of one file. responses: apply_patch_call.

    Attributes:
        call_id: the id that its output repeats.
        operation: the wire's own object: `type` (``create_file``, ``update_file``,
            ``delete_file``), `path`, and the diff unless it deletes.
    """

    call_id: str
    operation: JsonObject

    def output(self, text: str = "", *, failed: bool = False) -> ApplyPatchCallOutput:
        """The output item of this call.

        Args:
            text: what the model should know, such as why it failed.
            failed: whether the file is unchanged.
        """
        native = repeated_keys(self, "caller")
        return ApplyPatchCallOutput(self.call_id, text, failed, native=native)


class ApplyPatchCallOutput(Item, frozen=True):
    """Whether an `ApplyPatchCall` worked. responses: apply_patch_call_output (status, output)."""

    call_id: str
    output: str = ""
    failed: bool = False


class ApprovalRequest(Item, frozen=True):
    """A call of a tool of an MCP server that needs approval. responses: mcp_approval_request.

    Attributes:
        call_id: id of the request (responses: id).
        server_label: the server, as the request named it.
        name: the tool.
        arguments: the arguments of the call: JSON, exactly as received.
    """

    call_id: str
    server_label: str = ""
    name: str = ""
    arguments: str = ""

    def parsed(self) -> JsonObject:
        """The arguments as a dict, as in `FunctionCall.parsed`."""
        return parse_arguments(self.arguments, self.name)

    def respond(
        self,
        approve: bool,  # noqa: FBT001  # `respond(True)` reads as what it does
        reason: str | None = None,
    ) -> ApprovalResponse:
        """The response to this request: True lets the provider call the tool."""
        return ApprovalResponse(self.call_id, approve, reason)


class ApprovalResponse(Item, frozen=True):
    """The response to an `ApprovalRequest`. responses: mcp_approval_response.

    Attributes:
        call_id: id of the request (responses: approval_request_id).
        approve: whether the provider may call the tool.
        reason: why, for the model.
    """

    call_id: str
    approve: bool
    reason: str | None = None
