"""Encodes events as AG-UI 1.0, the agent-user interaction protocol: server-sent events.

    RUN_STARTED … TEXT_MESSAGE_START/CONTENT/END … TOOL_CALL_START/ARGS/END
    … RUN_FINISHED{outcome, usage} | RUN_ERROR{message, code}

A run of several responses (`run=True`) has a step for each, and the results of its calls:

    … STEP_STARTED … TOOL_CALL_RESULT, STEP_FINISHED, STEP_STARTED …

Other agents than the one that was asked are SUBAGENT_STARTED and SUBAGENT_FINISHED; the first event
of each of their items has their `subagentRunId`.

There is no end mark. Reasoning is REASONING_*; signatures and encrypted state are in
REASONING_ENCRYPTED_VALUE, the protocol's own slot for them. What the protocol has no event for is
CUSTOM (`rate_limits`, `usage`, `metadata`, `annotation`, `media`, `error`); unknown events are RAW.

Message ids must be unique in a conversation, since the client appends to a message whose id it
knows: they are made of `run_id` (take both ids from the request), else of a random id, and never of
the response's id, which a provider may repeat. A text starts with its first delta, so that no
message is empty. Calls belong to the message before them, as providers expect them back. A
truncated call gets a result that says so: otherwise the client would answer it, as it does with
every call without a result.
"""

from __future__ import annotations

from typing import Any, Final, Unpack

import msgspec

from streamlib.web.agui.events import (
    FILTERED,
    agui_usage,
    encrypted_value,
    end_reasoning,
    error_body,
    event_frame,
    interrupt,
    messages_of,
    output_fields,
    result_id,
)
from streamlib.web.message_encoder import MessageEncoder, MessageOptions, frames_of
from streamlib.web.public_errors import error_data
from streamlib.web.run_encoder import MessageRunEncoder
from streamlib.web.ui_parts import (
    CALLS,
    TRUNCATED_CALL,
    Call,
    files,
    inline_result,
    why_hidden,
)
from streamlib.wires.encoders import SSE_COMMENT, sse
from streamlib.wires.generated_ids import new_id
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    Passthrough,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import (
    ApprovalRequest,
    CallOutput,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import text_or_json
from streamlib_parsers.response import Response

__all__ = ["AguiEncoder", "encode_body", "error_body", "run_encoder"]

NOT_SENT_BACK: Final = "the page gets it, and messages that it sends back have no place for it"


class AguiEncoder(MessageEncoder):
    """Encodes one run of the protocol: one response, or several with their outputs between them.

    Args:
        response_id: not used: a provider may repeat its ids, and a page keeps messages by theirs.
        thread_id: `threadId` of the front end's request.
        run_id: `runId` of that request; a random one if not given.
        message_id: prefix of all message ids; if not given, the id of the run.
        **options: those of every page's encoder (`MessageOptions`). An approval is an interrupt.
    """

    no_such_event = "the protocol has no such event"

    def __init__(
        self,
        *,
        response_id: str | None = None,
        thread_id: str = "thread_0",
        run_id: str | None = None,
        message_id: str | None = None,
        **options: Unpack[MessageOptions],
    ) -> None:
        super().__init__(message_id or run_id, **options)
        self._thread_id = thread_id
        self._run_id = run_id or new_id("run-")
        self._prefix = message_id or self._run_id
        """Prefix of every message id."""
        self._texts: dict[int, str] = {}
        """Message ids of shown texts, by item index."""
        self._reasonings: dict[int, str] = {}
        """Message ids of reasoning that has not ended, by item index."""
        self._parents: dict[str | None, str] = {}
        """The message to which the next call of an agent belongs; without one, it starts one."""
        self._subagents: dict[str, None] = {}
        """Agents that were announced, in their order."""

    # --- the run ---

    def _start(self) -> bytes:
        out = self._start_run()
        if self._is_run and not self._is_in_step:
            self._is_in_step = True
            self._step += 1
            out += event_frame("STEP_STARTED", stepName=f"step-{self._step}")
        return out

    def _start_run(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        return event_frame(
            "RUN_STARTED", threadId=self._thread_id, runId=self._run_id, protocolVersion="1.0"
        )

    def _end_message(self, event: Completed) -> bytes:
        if event.stop_reason == "content_filter":
            self._report.dropped("/stop_reason", "AG-UI has no outcome for it: RUN_ERROR")
            return self._fail(FILTERED)
        return super()._end_message(event)

    def _finish(self, event: Completed) -> bytes:
        out = b""
        if self._is_run:
            # A pause may have left calls without a result.
            out = self._end_running()
        fields: JsonObject = {}
        interrupts: list[JsonObject] = []
        for waiting in self._pending.approvals:
            interrupts.append(interrupt(waiting))
        if interrupts:
            fields["outcome"] = {"type": "interrupt", "interrupts": interrupts}
        elif self._pending.shown_ids:
            fields["outcome"] = {"type": "success", "pendingToolCallIds": self._pending.shown_ids}
        elif event.stop_reason == "length":
            # The nearest: stopped before it completed, without a failure.
            fields["outcome"] = {"type": "cancelled"}
            self._report.dropped("/stop_reason", "AG-UI has no outcome for length: cancelled")
            out += self._custom("stop_reason", "length")
        return out + self._finish_run(**fields, **self._usage_field())

    def _usage_field(self) -> JsonObject:
        usage = [agui_usage(of_model, model) for model, of_model in self._usage.by_model.items()]
        if not usage:
            return {}
        return {"usage": usage}

    def _empty_result(self, call_id: str) -> bytes:
        return self._inline_result(call_id, "")

    def _no_output(self, call_id: str, error: str) -> bytes:
        return self._inline_result(call_id, error)

    def _on_failed(self, event: Failed) -> bytes:
        out = self._start() + self._end_open_parts()
        if event.error.kind != "cancelled":
            return out + self._fail(event.error)
        usage: JsonObject = {}
        if self._is_run:
            usage = self._usage_field()
            out += self._end_unanswered()
        return out + self._finish_run(outcome={"type": "cancelled"}, **usage)

    def _fail(self, error: ErrorInfo) -> bytes:
        out = b""
        usage: JsonObject = {}
        if self._is_run:
            usage = self._usage_field()
            out = self._end_unanswered()
        self.ended = True
        out += event_frame("CUSTOM", name="error", value=error_data(error))
        return out + self._finish_step() + sse({**error_body(error), **usage})

    def _end_unanswered(self) -> bytes:
        """Ends the calls of a run that nobody answers any more."""
        return self._end_running() + self._end_calls(self._pending.next_response())

    def _finish_run(self, **fields: Any) -> bytes:
        self.ended = True
        return (
            self._finish_step()
            + self._end_agents()
            + event_frame("RUN_FINISHED", threadId=self._thread_id, runId=self._run_id, **fields)
        )

    def _step_end(self) -> bytes:
        return event_frame("STEP_FINISHED", stepName=f"step-{self._step}")

    def _end_open_parts(self) -> bytes:
        out = b""
        for index in sorted(self._open):
            out += event_frame("TEXT_MESSAGE_END", messageId=self._texts[index])
        self._open.clear()
        for message_id in self._reasonings.values():
            out += end_reasoning(message_id)
        self._reasonings.clear()
        for call_id in self._open_calls.values():
            out += event_frame("TOOL_CALL_END", toolCallId=call_id)
            out += self._inline_result(call_id, TRUNCATED_CALL)
        self._open_calls.clear()
        return out

    # --- between two responses of a run ---

    def next_response(self) -> bytes:
        """The end of a step: another response of the run begins."""
        self._texts.clear()
        self._parents.clear()
        return super().next_response()

    def output(self, item: CallOutput) -> bytes:
        """The result of a call."""
        waiting = self._pending.take(item.call_id)
        call_id = self._shown_call(item, waiting, may_be_earlier=True)
        if call_id is None:
            return b""
        self._parents.clear()
        if self._view is not None:
            item = self._view.of(item)
        return self._start_run() + event_frame(
            "TOOL_CALL_RESULT",
            messageId=result_id(self._prefix, call_id),
            toolCallId=call_id,
            **output_fields(item),
        )

    # --- what accompanies the response ---

    def _custom(self, name: str, value: Any) -> bytes:
        return self._start() + event_frame("CUSTOM", name=name, value=value)

    def _on_rate_limits(self, event: RateLimits) -> bytes:
        values = msgspec.to_builtins(msgspec.structs.replace(event, raw={}, seq=0))
        return self._custom("rate_limits", values)

    def _on_usage(self, event: TokenCount) -> bytes:
        self._usage.set(event.usage, self._model)
        of_model = self._usage.by_model[self._model]
        return self._custom("usage", agui_usage(of_model, self._model))

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        return self._custom("metadata", event.values)

    def _on_passthrough(self, event: Passthrough) -> bytes:
        return self._start() + event_frame("RAW", event=event.data, source=event.event)

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        message_id = self._texts.get(event.index)
        if message_id is None:
            return b""
        self._report.dropped("/annotations", NOT_SENT_BACK)
        value = {"messageId": message_id, "annotation": event.annotation}
        return self._custom("annotation", value)

    # --- items ---

    def _message_id(self, index: int) -> str:
        if self._is_run:
            return f"{self._prefix}-{self._step}-{index}"
        return f"{self._prefix}-{index}"

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = event.item
        out = self._start()
        hidden = why_hidden(item)
        if hidden is not None:
            self._report.dropped(hidden.path, hidden.reason)
            return out
        out += self._start_agent(event.index, item)
        if isinstance(item, CALLS):
            out += self._start_call(event.index, item)
        elif isinstance(item, Reasoning):
            message_id = self._message_id(event.index)
            self._reasonings[event.index] = message_id
            self._parents.pop(item.agent, None)
            agent = self._attribution(event.index)
            out += event_frame("REASONING_START", messageId=message_id, **agent)
            out += event_frame(
                "REASONING_MESSAGE_START", messageId=message_id, role="reasoning", **agent
            )
        elif isinstance(item, Message):
            self._texts[event.index] = self._message_id(event.index)
        return out

    def _start_agent(self, index: int, item: ResponseItem) -> bytes:
        """Announces the agent of an item, if it is another than the one that was asked.

        Its name is its id: in a conversation it is the same agent, also in later responses.
        """
        self._begin_agent(index, item)
        agent = item.agent
        if agent is None or agent in self._subagents:
            return b""
        self._subagents[agent] = None
        parent, _, name = agent.rpartition("/")
        fields: JsonObject = {"subagentRunId": agent, "name": name or agent}
        if parent in self._subagents:
            fields["parentSubagentRunId"] = parent
        return event_frame("SUBAGENT_STARTED", **fields)

    def _end_agents(self) -> bytes:
        out = b""
        for agent in self._subagents:
            out += event_frame("SUBAGENT_FINISHED", subagentRunId=agent)
        self._subagents.clear()
        return out

    def _attribution(self, index: int) -> JsonObject:
        """The field by which the first event of an item names its agent; the others follow it."""
        if index not in self._agents:
            return {}
        return {"subagentRunId": self._agents[index]}

    def _start_call(self, index: int, item: Call) -> bytes:
        parent = self._parents.setdefault(item.agent, self._message_id(index))
        call_id = self._call_ids.add(index, item.call_id)
        self._open_calls[index] = call_id
        return event_frame(
            "TOOL_CALL_START",
            toolCallId=call_id,
            toolCallName=item.name,
            parentMessageId=parent,
            **self._attribution(index),
        )

    def _start_text(self, index: int) -> bytes:
        if index in self._open:
            return b""
        self._open.add(index)
        message_id = self._texts[index]
        self._parents[self._agents.get(index)] = message_id
        return event_frame(
            "TEXT_MESSAGE_START",
            messageId=message_id,
            role="assistant",
            **self._attribution(index),
        )

    def _text_delta(self, index: int, delta: str) -> bytes:
        if index not in self._texts or not delta:
            return b""
        start = self._start_text(index)
        return start + event_frame(
            "TEXT_MESSAGE_CONTENT", messageId=self._texts[index], delta=delta
        )

    def _on_reasoning(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> bytes:
        message_id = self._reasonings.get(event.index)
        delta = self._gaps.with_gap(event)
        if message_id is None or not event.delta:
            return b""
        return event_frame("REASONING_MESSAGE_CONTENT", messageId=message_id, delta=delta)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        call_id = self._call_ids.get(event.index)
        if call_id is None or not event.delta:
            return b""
        return event_frame("TOOL_CALL_ARGS", toolCallId=call_id, delta=event.delta)

    # --- ends of items ---

    def _end_item(self, index: int, item: ResponseItem) -> bytes:
        if isinstance(item, CALLS):
            call_id = self._open_calls.pop(index, None)
            if call_id is None:
                return b""
            return self._end_call(call_id, item, gets_output=index in self._broken)
        if isinstance(item, ServerToolResult) and not item.choice:
            return self._result(index, item)
        if index in self._reasonings:
            message_id = self._reasonings.pop(index)
            state = encrypted_value(item, message_id, self._sealed_state)
            return state + end_reasoning(message_id)
        if isinstance(item, Message) and index in self._texts:
            return self._end_text(index, item)
        return b""

    def _end_text(self, index: int, item: Message) -> bytes:
        message_id = self._texts[index]
        out = b""
        if item.signature or self._sealed_state:
            # The encrypted value needs a message, even an empty one.
            out = self._start_text(index)
        out += encrypted_value(item, message_id, self._sealed_state)
        if index in self._open:
            self._open.discard(index)
            out += event_frame("TEXT_MESSAGE_END", messageId=message_id)
        for file in files(item):
            if file is None:
                self._report.dropped("/files", "a file that only its provider can fetch")
            else:
                value = {"messageId": message_id, "mediaType": file.media_type, "url": file.url}
                out += self._custom("media", value)
                self._report.dropped("/media", NOT_SENT_BACK)
        return out

    def _end_call(self, call_id: str, item: Call, *, gets_output: bool) -> bytes:
        out = b""
        if isinstance(item, ApprovalRequest) and item.arguments:
            # These arguments come with the item, not in deltas.
            out = event_frame("TOOL_CALL_ARGS", toolCallId=call_id, delta=item.arguments)
        out += encrypted_value(item, call_id, self._sealed_state)
        out += event_frame("TOOL_CALL_END", toolCallId=call_id)
        result = inline_result(item)
        if gets_output:
            return out
        if item.status == "incomplete":
            if result is not None:
                self._report.dropped("/items/server_tool_result", "the result of a truncated call")
            out += self._inline_result(call_id, TRUNCATED_CALL)
        elif result is not None:
            out += self._inline_result(call_id, text_or_json(result))
        elif isinstance(item, ServerToolCall):
            self._running.append(call_id)
        return out

    def _result(self, index: int, item: ServerToolResult) -> bytes:
        call_id = self._take_answered(item)
        if call_id is None:
            return b""
        return self._result_frame(self._message_id(index), call_id, text_or_json(item.output))

    def _inline_result(self, call_id: str, content: str) -> bytes:
        """A result that has no item of its own."""
        message_id = result_id(self._prefix, call_id)
        return self._result_frame(message_id, call_id, content)

    def _result_frame(self, message_id: str, call_id: str, content: str) -> bytes:
        self._parents.clear()
        return event_frame(
            "TOOL_CALL_RESULT", messageId=message_id, toolCallId=call_id, content=content
        )


def encode_body(
    response: Response, model: str | None = None, message_id: str | None = None
) -> bytes:
    """A response as the AG-UI messages that a reader of its stream has at its end.

    Args:
        response: The response.
        model: Not used: messages do not name it.
        message_id: Prefix of the message ids; random if not given.
    """
    encode = AguiEncoder(model=model, message_id=message_id)
    return msgspec.json.encode(messages_of(frames_of(encode, response)))


def run_encoder(**options: Any) -> MessageRunEncoder:
    """An encoder of a run; options as those of `AguiEncoder`."""
    return MessageRunEncoder(AguiEncoder(run=True, **options), SSE_COMMENT)
