"""Running the calls of a response: in parallel, with a limit, and every failure as an output."""

from __future__ import annotations

import inspect
import json
import logging
import math
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from streamlib.client.watch import CallWatcher
from streamlib.pipeline.numbers import check_count, check_seconds
from streamlib.request.built_in_text import error_output
from streamlib.request.mistakes import check_callable, check_kind
from streamlib.request.prompt import Prompt
from streamlib.structured.functions import (
    APPROVAL_MARK,
    asks_approval,
    function_name,
    is_async,
    signature_of,
)
from streamlib_parsers.accumulate import Response
from streamlib_parsers.dialects.cursor import NoMatch
from streamlib_parsers.dialects.grammars.channel_calls import PARALLEL, parallel_calls
from streamlib_parsers.errors import InvalidArguments
from streamlib_parsers.item_base import Part
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    BUILT_IN_OUTPUTS,
    ApprovalRequest,
    CallOutput,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Output,
    PendingCall,
    Text,
    ToolSpec,
    user,
)
from streamlib_parsers.namespaces import flat_call_name, flat_name
from streamlib_parsers.outputs import is_output_call
from streamlib_parsers.redaction import redact

Function: TypeAlias = Callable[..., Any]
"""A function, sync or async. A sync one runs in a worker thread."""

Tool: TypeAlias = Function | tuple[ToolSpec, Function] | ToolSpec
"""A function, which describes itself (`ToolSpec.of`); a function with a description of its own; or
a description alone, whose calls a handler answers, or the caller, or the provider."""

Handlers: TypeAlias = Mapping[type[Any], Callable[[Any], Any]]
"""Kind of call -> a function that gets the call and returns its output, `call.output(…)`."""

Approve: TypeAlias = Callable[[Any], bool | str | Awaitable[bool | str | None] | None]
"""Decides about a call before it runs, sync or async. True: it runs. False, or a text that the
model reads: it does not. None: nobody has decided yet, so it waits."""

FunctionT = TypeVar("FunctionT", bound=Function)

DENIED: Final = "the user did not allow this call"

ASK_AGAIN: Final = user(
    "Your last message held a call of a tool that could not be read, so it was not run. "
    "Write the call again, complete."
)
"""What the model reads after a call that it wrote into its text."""

WRAPPERS: Final = (PARALLEL, "parallel")
"""Names under which OpenAI's models wrap several calls into one."""

_log: Final = logging.getLogger("streamlib")


def needs_approval(function: FunctionT) -> FunctionT:
    """Marks a tool whose calls somebody approves before they run: a decorator.

    ``agent(…, approve=…)`` asks about each of its calls. Without `approve` they wait, as calls of a
    `ToolSpec` alone do, and the encoder of a page's request asks its user.
    """
    vars(function)[APPROVAL_MARK] = True
    return function


async def run_calls(
    response: Response,
    tools: Sequence[Tool] = (),
    *,
    limit: int = 8,
    timeout: float | None = None,  # noqa: ASYNC109  # of each call, not of this function
    handlers: Handlers | None = None,
    approve: Approve | None = None,
    telemetry: CallWatcher | None = None,
) -> list[CallOutput]:
    """Runs the calls that wait in a response; returns their outputs, in the order of the calls.

    A call goes to the function of its name in `tools`, else to the handler for its kind. The
    arguments become values of the types of the function's parameters. A result that is a text or
    content parts is sent as it is, any other as JSON. An unknown name, invalid arguments, an
    exception and a timeout become an output with `is_error`, which the model reads. Calls that an
    OpenAI model wraps into one of `multi_tool_use.parallel`, a tool that nobody offered, run one
    after another, and their outputs become the one that it waits for.

    Some calls get no output, because the caller must answer them: calls of a `ToolSpec` without a
    function, approvals and built-in tools without a handler, calls that nobody approved yet, and a
    `ComputerCall` whose handler failed, since only a screenshot can answer that (the failure is
    logged).

    When this is cancelled, in whatever way, running calls are, and no other begins. A sync function
    goes on in its thread, though, and so it does after a timeout; nobody waits for it.

    Args:
        response: the response; its `pending` calls are run.
        tools: functions, sync or async, each alone or in a pair `(ToolSpec, function)`. That of a
            free-form tool gets the text as its only argument.
        limit: calls that run at the same time. With 1 they run one after another, in order.
        timeout: seconds that a call may take; None: any time.
        handlers: functions that get a whole call, by its kind: `{ApprovalRequest: ask}`. They
            return the call's output item. A handler for `FunctionCall` gets the calls that no
            function in `tools` is for; it, and one for `CustomToolCall`, may return any result.
        approve: decides about calls of tools that are marked with `needs_approval`, and about
            approvals that a provider asks for, unless a handler does. If it raises, the call does
            not run.
        telemetry: records each call that runs: `Client.telemetry`.

    Raises:
        ValueError: the limit is less than 1, the timeout not more than 0, or two tools have the
            same name.
        TypeError: it is no response, an element of `tools` is not a tool, a function has no name,
            or another argument is of the wrong kind.
    """
    if not isinstance(response, Response):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"run_calls() takes a Response, not a {type(response).__name__}: "
            "`await client.respond(…)`, or `stream.response`"
        )
    toolbox = Toolbox(
        tools,
        limit=limit,
        timeout=timeout,
        handlers=handlers,
        approve=approve,
        telemetry=telemetry,
    )
    return await toolbox.run(response.pending)


class Toolbox:
    """Tools, and how their calls are run: the arguments of `run_calls`, for several responses."""

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        limit: int = 8,
        timeout: float | None = None,
        handlers: Handlers | None = None,
        approve: Approve | None = None,
        telemetry: CallWatcher | None = None,
    ) -> None:
        self.telemetry = telemetry
        """Records each call that runs; None: nothing does."""
        check_count("limit", limit)
        if timeout is not None:
            check_seconds("timeout", timeout)
        check_callable("approve", approve, "a function that decides about a call")
        self._tools = _checked_tools(tools)
        self._limit = limit
        self._timeout = timeout
        self._handlers = _checked_handlers(handlers)
        self._approve = approve
        self._functions: dict[str, Function | None] = {}
        """Functions by the name of their tool; None where a tool has none."""
        for tool in self._tools:
            if isinstance(tool, ToolSpec):
                self._add(tool.name, None)
                for member in tool.tools:
                    self._add(flat_name(tool.name, member.name), None)
            elif isinstance(tool, tuple):
                self._add(tool[0].name, tool[1])
            else:
                self._add(function_name(tool), tool)

    def _add(self, name: str, function: Function | None) -> None:
        if name in self._functions:
            raise ValueError(f"two tools have the name {name!r}")
        self._functions[name] = function

    def specs(self) -> list[ToolSpec]:
        """What the model is told of the tools.

        Raises:
            TypeError: no JSON schema can describe a function.
        """
        specs: list[ToolSpec] = []
        for tool in self._tools:
            if isinstance(tool, ToolSpec):
                specs.append(tool)
            elif isinstance(tool, tuple):
                specs.append(tool[0])
            else:
                specs.append(ToolSpec.of(tool))
        return specs

    async def run(
        self,
        pending: Sequence[PendingCall],
        on_output: Callable[[int, CallOutput], None] | None = None,
    ) -> list[CallOutput]:
        """Runs calls, as `run_calls` does.

        Args:
            pending: the calls.
            on_output: called with each output when it is there, and the index of its call.
        """
        caller = anyio.get_current_task()
        waiting = iter(enumerate(pending))
        free = anyio.Semaphore(self._limit, fast_acquire=True)
        outputs: dict[int, CallOutput] = {}

        async def work() -> None:
            # Taken here, because trio begins tasks in any order, and calls begin in theirs.
            index, call = next(waiting)
            try:
                output = await self._output(call, caller)
            finally:
                free.release()
            if output is None:
                return
            outputs[index] = output
            if on_output is not None:
                on_output(index, output)

        async with anyio.create_task_group() as group:
            for _ in pending:
                # The caller's own task waits for a free place: however it is cancelled, it begins
                # no other call.
                await free.acquire()
                group.start_soon(work)
        return [outputs[index] for index in sorted(outputs)]

    async def _output(self, call: PendingCall, caller: anyio.TaskInfo) -> CallOutput | None:
        """The output of a call, whatever happens; None: the caller answers it, or is cancelled."""
        # A task of a group that was cancelled begins, and runs to where it first waits.
        if await _is_cancelled(caller):
            return None
        try:
            run = self._runner(call)
            if run is None:
                return None
            decision = await self._decision(call)
            # Whoever decides may do so after the cancellation, or be who stopped the run.
            if decision is None or await _is_cancelled(caller):
                return None
            if decision is not True:
                return error_output(call, scrub_text(decision or DENIED))
            # Calls that are wrapped into one have a timeout each.
            seconds = None if self._wrapped_calls(call) else self._timeout
            with self._watch(call) as outputs, anyio.move_on_after(seconds):
                outputs.append(as_output(call, await run()))
                return outputs[0]
            message = f"the call gave no result within {self._timeout:g} seconds"
        except (InvalidArguments, _UnknownToolError) as error:
            message = str(error)
        except Exception as error:  # noqa: BLE001  # a function may raise anything
            _log_failure(call, error)
            message = f"{type(error).__name__}: {_text_of(error)}"
        except anyio.get_cancelled_exc_class():
            # asyncio's own cancellation knows no scopes, and the end of `asyncio.run` cancels every
            # task: it may reach this one before the caller, whose scope then follows.
            if anyio.current_effective_deadline() == -math.inf or caller.has_pending_cancellation():
                raise
            # asyncio alone: the function awaited a task that was cancelled, and the caller was not.
            message = "the call was cancelled"
        # An exception may quote the URL or the header that it failed with.
        return error_output(call, redact(scrub_text(message)))

    def _watch(self, call: PendingCall) -> AbstractContextManager[list[CallOutput]]:
        """Where the output of a call that runs is put."""
        if self.telemetry is None:
            return nullcontext([])
        return self.telemetry.of_call(call, self._description(call))

    def _description(self, call: PendingCall) -> str | None:
        """What the model is told of the tool that a call is for."""
        if not isinstance(call, (FunctionCall, CustomToolCall)):
            return None
        name = flat_call_name(call)
        for tool in self._tools:
            spec = tool[0] if isinstance(tool, tuple) else tool
            if isinstance(spec, ToolSpec) and spec.name == name:
                return spec.description
        function = self._functions.get(name)
        return None if function is None else signature_of(function).description

    async def _decision(self, call: PendingCall) -> bool | str | None:
        """What somebody decided about a call; True where nobody has to."""
        if isinstance(call, (FunctionCall, CustomToolCall)):
            function = self._functions.get(flat_call_name(call))
            needs_decision = asks_approval(function)
        else:
            needs_decision = type(call) not in self._handlers
        if not needs_decision:
            return True
        if self._approve is None:
            return None
        decision: bool | str | None = await _run(self._approve, call)
        return decision

    def _runner(self, call: PendingCall) -> Callable[[], Awaitable[Any]] | None:
        """What runs a call; None: the caller answers it.

        Raises:
            _UnknownToolError: there is no tool of this name.
            InvalidArguments: the arguments do not fit the function's parameters.
        """
        handler = self._handlers.get(type(call))
        if isinstance(call, ApprovalRequest) and handler is None:
            return partial(_approved, call)
        if not isinstance(call, (FunctionCall, CustomToolCall)):
            return partial(_run, handler, call) if handler else None
        name = flat_call_name(call)
        function = self._functions.get(name)
        if function is not None:
            return _bound(function, call)
        wrapped = self._wrapped_calls(call)
        if wrapped:
            return partial(self._run_together, wrapped)
        if handler is not None:
            return partial(_run, handler, call)
        if name not in self._functions and not is_output_call(call):
            known = ", ".join(self._functions) or "none"
            raise _UnknownToolError(f"there is no tool {name!r}; the tools are: {known}")
        return None

    def _wrapped_calls(self, call: PendingCall) -> list[FunctionCall]:
        """The calls in one of a tool that OpenAI's models know, though nobody offered it."""
        if not isinstance(call, FunctionCall) or call.name not in WRAPPERS:
            return []
        if call.name in self._functions:
            return []
        try:
            calls = parallel_calls(call.arguments)
        except NoMatch:
            return []
        return [
            FunctionCall(f"{call.call_id}_{number}", name, arguments)
            for number, (name, arguments) in enumerate(calls)
            if name not in WRAPPERS
        ]

    async def _run_together(self, calls: Sequence[FunctionCall]) -> str | list[ContentPart]:
        """The outputs of wrapped calls, one after another: the wrapper has one output for all."""
        content: list[ContentPart] = []
        for call in calls:
            output = None
            if not asks_approval(self._functions.get(call.name)):
                output = await self._output(call, anyio.get_current_task())
            if not isinstance(output, FunctionCallOutput):
                content.append(Text(f"{call.name}: it was not run; call it by itself"))
            elif isinstance(output.output, str):
                content.append(Text(f"{call.name}: {output.output}"))
            else:
                content += (Text(f"{call.name}:"), *output.output)
        texts = [part.text for part in content if isinstance(part, Text)]
        return content if len(texts) < len(content) else "\n".join(texts)


def _log_failure(call: PendingCall, error: Exception) -> None:
    """Logs the exception with its traceback, without the keys that it may quote."""
    if _log.isEnabledFor(logging.INFO):
        lines = traceback.format_exception(error)
        _log.info("a %s failed: %s", type(call).__name__, redact("".join(lines)))


def _text_of(error: Exception) -> str:
    """The message of an exception, whose `__str__` may raise too, or give no text."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # a class may raise anything
        return "its message cannot be read"


async def _is_cancelled(caller: anyio.TaskInfo) -> bool:
    """Whether the caller was cancelled; raises where that reached this task."""
    await anyio.lowlevel.checkpoint_if_cancelled()
    return caller.has_pending_cancellation()


def _checked_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Raises:
    TypeError: they are no list, or one of them is a pair of something else.
    """
    written: Any = tools
    is_list = isinstance(written, Iterable) and not isinstance(written, (str, Mapping, ToolSpec))
    if not is_list or callable(written):
        raise TypeError(f"tools is a list of functions and `ToolSpec`, not {written!r:.100}")
    checked = tuple(tools)
    for tool in checked:
        if isinstance(tool, tuple) and not _is_pair(tool):
            raise TypeError(f"a pair among tools is (ToolSpec, function), not {tool!r:.100}")
    return checked


def _is_pair(tool: tuple[Any, ...]) -> bool:
    return len(tool) == 2 and isinstance(tool[0], ToolSpec) and callable(tool[1])


def _checked_handlers(handlers: Handlers | None) -> Handlers:
    """Raises:
    TypeError: they are no dict of kinds of calls, or one of them is no function.
    """
    check_kind("handlers", handlers, Mapping, "a dict of a kind of call and its function")
    for kind, function in (handlers or {}).items():
        if kind not in OUTPUT_KINDS:
            known = ", ".join([known.__name__ for known in OUTPUT_KINDS])
            raise TypeError(f"handlers has {kind!r:.100}, which is none of {known}")
        check_callable(f"handlers[{kind.__name__}]", function, "a function that gets the call")
    return handlers or {}


class _UnknownToolError(Exception):
    """The model called a tool that does not exist; the text is for the model."""


def _bound(function: Function, call: FunctionCall | CustomToolCall) -> Callable[[], Awaitable[Any]]:
    """The function with the arguments of the call."""
    if isinstance(call, CustomToolCall):
        return partial(_run, function, call.input)
    positional, named = signature_of(function).arguments(call.arguments, call.name)
    return partial(_run, function, *positional, **named)


async def _run(function: Function, /, *positional: Any, **named: Any) -> Any:
    """The function's result: awaited, or from a worker thread."""
    if is_async(function):
        return await function(*positional, **named)

    def call() -> list[Any]:
        # In a list: trio refuses a coroutine as what a thread returns.
        return [function(*positional, **named)]

    # Abandoned: a thread cannot be ended, and neither a timeout nor a Stop button waits for one.
    (result,) = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    if inspect.isawaitable(result):  # `lambda call: session.call_tool(…)`
        return await result
    return result


async def _approved(call: ApprovalRequest) -> Any:
    return call.respond(approve=True)


def question_after(response: Response, prompt: Prompt) -> tuple[Message, ...]:
    """The question for a call that leaked into the text and cannot be read; () for none.

    Its item is incomplete, though its response is complete; the notice is about that item, or about
    the text behind it, which has the call again. It is asked once in a history: a model may leak
    every call.
    """
    if response.status != "completed" or ASK_AGAIN in prompt.items:
        return ()
    is_leaked = any(notice.code == "leaked_tool_call" for notice in response.notices)
    if is_leaked and any(item.status == "incomplete" for item in response.items):
        return (ASK_AGAIN,)
    return ()


# --- outputs ---


OUTPUT_KINDS: Final[dict[type, type]] = {
    FunctionCall: FunctionCallOutput,
    CustomToolCall: CustomToolCallOutput,
    **dict(zip(BUILT_IN_CALLS, BUILT_IN_OUTPUTS, strict=True)),
}
"""Kind of call -> the kind of its output."""

CALLS: Final = (FunctionCall, CustomToolCall, *BUILT_IN_CALLS)
"""The classes of calls, for `isinstance`."""


def as_output(call: PendingCall, result: Any) -> CallOutput:
    """The output item of a call.

    Args:
        call: the call.
        result: an output item of the call; for calls of functions also a text, content parts, or
            any value that is written as JSON.

    Raises:
        TypeError: the result is none of these.
    """
    kind = OUTPUT_KINDS[type(call)]
    if isinstance(result, kind):
        output = cast(CallOutput, result)
        if output.call_id != call.call_id:
            raise TypeError(f"the output is that of another call, {output.call_id!r}")
        return output
    if isinstance(call, (FunctionCall, CustomToolCall)):
        return call.output(as_content(result))
    raise TypeError(f"a {type(call).__name__} is answered by its own output, not {result!r:.100}")


def as_content(result: Any) -> Output:
    """A value as text or content parts, of valid Unicode: names of files need not be.

    Raises:
        TypeError: it cannot be written as JSON.
    """
    if isinstance(result, str):
        return scrub_text(result)
    if isinstance(result, Part):
        return (_valid_part(cast(ContentPart, result)),)
    if _are_parts(result):
        return [_valid_part(part) for part in result]
    try:
        return msgspec.json.encode(result, enc_hook=_dumped).decode()
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(result, enc_hook=_dumped)
        return scrub_text(json.dumps(plain, ensure_ascii=False))


def scrub_text(text: str) -> str:
    """A text with U+FFFD for halves of surrogate pairs, which no request can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _valid_part(part: ContentPart) -> ContentPart:
    if isinstance(part, Text):
        return replace(part, text=scrub_text(part.text))
    return part


def _are_parts(result: Any) -> TypeGuard[Sequence[ContentPart]]:
    if not isinstance(result, (list, tuple)) or not result:
        return False
    return all(isinstance(element, Part) for element in result)


def _dumped(value: Any) -> Any:
    """What msgspec does not know: models of pydantic."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
    return dump(mode="json")
