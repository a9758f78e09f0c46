"""The request of a page: its conversation as a history, its tools, its ids.

    asked = parse_ui_request("vercel", await request.body(), tools=TOOLS)
    return StreamResponse(agent(client, asked.history, TOOLS, model), asked.encoder())

The page is not trusted. It may send what its user wrote and what the model said before; it may not
give instructions, nor outputs of tools that nobody offers, and no URL of it is fetched. What was
left out is in `UIRequest.report`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

from streamlib.request.conversation import History
from streamlib.request.mistakes import check_kind, check_switches
from streamlib.request.report import Change, Report
from streamlib.web.agui.request import parse_agui
from streamlib.web.http_errors import kept_text
from streamlib.web.parsed_request import ParsedRequest, RequestContext, ToolApproval
from streamlib.web.request_body import DEFAULT_LIMITS, RequestBody, UIRequestLimits, read_body
from streamlib.web.request_tools import OfferedTool, RequestTools, UICall
from streamlib.web.sealing import Seal
from streamlib.web.vercel.request import parse_vercel
from streamlib.wires.encoders import RunEncoder, encoder
from streamlib_parsers.items import (
    CustomToolCall,
    JsonObject,
    Origin,
    PendingCall,
    ToolSpec,
)

RequestProtocol: TypeAlias = Literal["vercel", "agui"]


class UIRequest(Struct, frozen=True, kw_only=True):
    """The request of a page. Made by `parse_ui_request`.

    Attributes:
        protocol: `vercel` or `agui`.
        history: the conversation. The last items may be calls without an output, which the user
            has not answered or has just approved.
        tools: the tools that the page offers and runs itself (agui: ``tools``).
        chat_id: the conversation (vercel: ``id`` · agui: ``threadId``).
        message_id: the message that is sent or generated again (vercel: ``messageId``).
        run_id: the run (agui: ``runId``).
        parent_run_id: the run that started it (agui: ``parentRunId``).
        trigger: ``submit-message``, ``regenerate-message`` or ``resume-stream`` (vercel:
            ``trigger``); None for agui.
        continues: the id of the page's message that the response continues, after the page ran a
            tool; None: the response is a new message.
        continued_calls: ids of the calls that this message has (vercel), or the thread (agui).
        approvals: what the user decided about calls, in this request or before it.
        state: the page's state, as JSON (agui: ``state``).
        context: descriptions and values for the run (agui: ``context``).
        resume: answers to interrupts (agui: ``resume``).
        extra: further keys of the body (vercel), or ``forwardedProps`` (agui).
        report: what was left out, with JSON pointers into the body.
        offered: names of all tools, the server's and the page's.
        approval_tools: names of the server's tools that are marked with
            `streamlib.tools.needs_approval`.
        seal: the seal that was given; `encoder` uses it too.
    """

    protocol: RequestProtocol
    history: History
    tools: tuple[ToolSpec, ...] = ()
    chat_id: str | None = None
    message_id: str | None = None
    run_id: str | None = None
    parent_run_id: str | None = None
    trigger: str | None = None
    continues: str | None = None
    continued_calls: Sequence[str] = ()
    approvals: tuple[ToolApproval, ...] = ()
    state: Any = None
    context: tuple[JsonObject, ...] = ()
    resume: tuple[JsonObject, ...] = ()
    extra: JsonObject = {}
    report: tuple[Change, ...] = ()
    offered: Sequence[str] = ()
    approval_tools: Sequence[str] = ()
    seal: Seal | None = None

    def approve(self, call: PendingCall) -> bool | None:
        """What the user decided about a call in this request: ``agent(…, approve=asked.approve)``.

        None: nothing yet, so the call waits, and the page is asked. A later call may have the id of
        an approved one: a decision holds for the tool and the arguments that the page has. Keep
        calls on your server, or seal them, where a page must not change their arguments.
        """
        name = getattr(call, "name", None)
        for approval in reversed(self.approvals):
            if (approval.call_id, approval.name) == (call.call_id, name):
                shown = self._shown_call(call.call_id)
                is_same = shown is None or _input(shown) == _input(call)
                return approval.approved if is_same else None
        return None

    def _shown_call(self, call_id: str) -> UICall | None:
        """The newest call with this id that the page has; None for one of a tool nobody offers."""
        for item in reversed(self.history):
            if isinstance(item, UICall) and item.call_id == call_id:
                return item
        return None

    def encoder(self, **options: Any) -> RunEncoder:
        """An encoder of the response, for one stream or a run, with the page's ids.

        A call that nobody has answered when the response ends is left to the page. Error messages
        of providers are left out. Signatures and encrypted state are sealed where a seal was given.
        Without one an AG-UI page gets them as they are, unless `public=True`, and ``useChat`` none.

        Args:
            **options: options of `streamlib.encoder`, which win over the request's.
        """
        values: dict[str, Any] = {**self.encoder_options, "error_text": kept_text}
        values["seal"] = self.seal
        if self.protocol == "vercel":
            values["public"] = True
        values.update(options)
        made: Any = encoder(self.protocol, **values)
        return cast(RunEncoder, made)

    @property
    def encoder_options(self) -> JsonObject:
        """The encoder's options that are JSON: the `meta` of a log that a page resumes.

        ``log.create(id, {**asked.encoder_options, "message_id": …})``
        """
        values: JsonObject = {"run": True, "page_tools": list(self.offered)}
        values["approval_tools"] = list(self.approval_tools)
        if self.protocol == "agui":
            ids = {"thread_id": self.chat_id, "run_id": self.run_id}
            return {**values, **ids, "call_ids": list(self.continued_calls)}
        if self.continues is not None:
            values["call_ids"] = list(self.continued_calls)
        return {**values, "tools": list(self.offered), "message_id": self.continues}


def _input(call: PendingCall | UICall) -> str:
    """The input of a call, with its numbers as JavaScript has them: a page rounds long ones.

    As text, since 1 and true are equal in Python.
    """
    if isinstance(call, CustomToolCall):
        return call.input
    text: str = getattr(call, "arguments", "")
    try:
        value = json.loads(text or "{}", parse_int=_number, parse_float=_number)
        return json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _number(text: str) -> float:
    return float(text) + 0.0  # -0 is written as 0 there


def parse_ui_request(
    protocol: RequestProtocol,
    body: RequestBody,
    *,
    tools: Iterable[OfferedTool] | None = (),
    origin: Origin | None = None,
    urls: bool = True,
    limits: UIRequestLimits = DEFAULT_LIMITS,
    seal: Seal | None = None,
) -> UIRequest:
    """The request of a page: of `useChat` (AI SDK 6 and 7), or of an AG-UI 1.0 client.

    Args:
        protocol: `vercel` or `agui`.
        body: the body, as bytes or as the JSON object in it.
        tools: the tools that the server offers, as `Prompt` and ``agent(…)`` take them, or their
            names. Calls of any other tool are left out, with their outputs, except those of tools
            that the page itself offers. None: calls of every tool are taken.
        origin: where signed reasoning in the conversation was made, if that is not the model that
            gets it (agui). Vercel's parts name their origin themselves.
        urls: whether files by http(s) address are taken. They are never fetched here, but the
            model's provider may: False where that is a server of your own.
        limits: limits of the body.
        seal: opens the signatures and the encrypted state that `UIRequest.encoder` sealed for the
            page; what is sealed otherwise, or changed, is left out and reported.

    Raises:
        UIRequestError: the body is not such a request, exceeds a limit, or has instructions (roles
            `system` and `developer`). Nothing else is raised for any body.
        ValueError: there is no such protocol.
        TypeError: the body is neither bytes nor a dict, or an argument is of the wrong kind.
    """
    if protocol not in ("vercel", "agui"):
        raise ValueError(f"no requests of protocol {protocol!r}; one of vercel, agui")
    check_switches(urls=urls)
    check_kind("origin", origin, Origin, "an `Origin`")
    check_kind("limits", limits, UIRequestLimits, "`UIRequestLimits(…)`")
    check_kind("seal", seal, Seal, "a `Seal`")
    offered = RequestTools(tools)
    context = RequestContext(
        offered=offered,
        limits=limits,
        report=Report(),
        takes_urls=urls,
        origin=origin,
        seal=seal,
    )
    parsed = ParsedRequest(context)
    fields = read_body(body, limits)
    if protocol == "vercel":
        parse_vercel(fields, parsed)
    else:
        parse_agui(fields, parsed)
    return UIRequest(
        protocol=protocol,
        history=parsed.history,
        tools=tuple(parsed.tools),
        chat_id=parsed.chat_id,
        message_id=parsed.message_id,
        run_id=parsed.run_id,
        parent_run_id=parsed.parent_run_id,
        trigger=parsed.trigger,
        continues=parsed.continues,
        continued_calls=tuple(parsed.continued_calls),
        approvals=tuple(parsed.approvals),
        state=parsed.state,
        context=tuple(parsed.context_entries),
        resume=tuple(parsed.resume),
        extra=parsed.extra,
        report=tuple(context.report.changes),
        offered=tuple(offered.names),
        approval_tools=tuple(offered.approval_names),
        seal=seal,
    )
