"""Spans, metrics and events of a client, by the GenAI conventions. Needs the extra `otel`.

INTERNAL  invoke_agent planner      a run of `agent`
  CLIENT  chat claude-opus-5        each request of it; one that is retried is one span
  INTERNAL  execute_tool weather    each call that ran
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import msgspec
from opentelemetry import metrics, trace
from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider

from streamlib.client.otel.attributes import (
    operation_name,
    prompt_settings,
    request_attributes,
    span_attributes,
    with_older_names,
)
from streamlib.client.otel.content import CAPTURE_MODES, Content, ContentWriter
from streamlib.client.otel.metrics import Instruments, metric_attributes
from streamlib.client.watch import HasResponse, RunWatch, StreamWatch
from streamlib.pipeline.machine import Stage
from streamlib.request.build import Request
from streamlib.request.json_objects import without_none
from streamlib.request.prompt import Prompt
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import TOKEN_EVENTS, Created, ResponseEvent
from streamlib_parsers.items import CallOutput, CustomToolCall, FunctionCall, PendingCall
from streamlib_parsers.namespaces import flat_call_name
from streamlib_parsers.stream_error import StreamError
from streamlib_parsers.usage import Usage, total

CAPTURE_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
STABILITY_VARIABLE: Final = "OTEL_SEMCONV_STABILITY_OPT_IN"
LATEST: Final = "gen_ai_latest_experimental"
"""Value of `STABILITY_VARIABLE` that asks for the newest names alone."""

DETAILS: Final = "gen_ai.client.inference.operation.details"
EXCEPTION: Final = "gen_ai.client.operation.exception"
"""The events."""

SCOPE: Final = "streamlib"
"""The name of the tracer, the meter and the logger."""

TOOL_ATTRIBUTES: Final = ("gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.agent.name")
"""Attributes of a call that its metric has, too."""

REQUEST_ALONE: Final = ("gen_ai.request.top_k", "gen_ai.request.reasoning.level")
"""Settings that a request has, and no run."""

UNFINISHED: Final = ErrorInfo("cancelled", "the stream was closed before its end")

_log: Final = logging.getLogger("streamlib")


class Telemetry:
    """What a client records: `Client(telemetry=Telemetry())`; `True` is the same.

    A span for each request, run and call of a tool, with their metrics, and an event for each
    failure. No content is recorded unless `content` or the environment asks for it.

    Args:
        tracer_provider: None: the global one, as are the other two.
        meter_provider: records the metrics.
        logger_provider: records the events.
        content: where what was said is recorded: "none", "spans", "events" or "both". None: as
            ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` says, by default nowhere.
        redact: a stage of a pipeline, or several, that each recorded text goes through first:
            ``replace(PHONE, "[phone]")``. Where one fails, nothing of that content is recorded.
        older_names: whether what was renamed is recorded under its older name, too. None: unless
            ``OTEL_SEMCONV_STABILITY_OPT_IN`` has ``gen_ai_latest_experimental``.

    Raises:
        ValueError: `content`, or the environment in its place, is none of these.
        TypeError: `redact` is no stage, or one that needs an event loop.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        content: Content | None = None,
        redact: Stage | Sequence[Stage] = (),
        older_names: bool | None = None,
    ) -> None:
        if older_names is None:
            categories = os.environ.get(STABILITY_VARIABLE, "").replace(" ", "").split(",")
            older_names = LATEST not in categories
        self.content = _capture_mode() if content is None else content
        if self.content not in CAPTURE_MODES.values():
            raise ValueError(f"content is none, spans, events or both, not {self.content!r}")
        self.writer = ContentWriter(redact)
        self.older_names = older_names
        self.tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self.metrics = Instruments(meter, older_names=older_names)
        self.logger = get_logger(SCOPE, logger_provider=logger_provider)

    def of_stream(self, request: Request, prompt: Prompt | None) -> StreamSpan:
        """Watches a stream.

        Args:
            request: what it sends.
            prompt: what that was built from; None where the caller gave a `Request`.
        """
        return StreamSpan(self, request, prompt)

    def of_run(self, prompt: Prompt, name: str | None, model: str) -> RunSpan:
        """Watches a run of an agent.

        Args:
            prompt: the first one.
            name: the agent's name.
            model: the model of all its requests.
        """
        return RunSpan(self, prompt, name, model)

    @contextmanager
    def of_call(
        self, call: PendingCall, description: str | None, **of_run: Any
    ) -> Generator[list[CallOutput]]:
        """Watches a call of a tool.

        Args:
            call: the call; what it gave is to be put into the list.
            description: what the model is told of the tool.
            **of_run: further attributes, of the run that makes the call.
        """
        name = type(call).__name__
        if isinstance(call, (FunctionCall, CustomToolCall)):
            name = flat_call_name(call)
        timed = TimedSpan(self, f"execute_tool {name}", SpanKind.INTERNAL)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.description": description or None,
            **of_run,
        }
        timed.begin(without_none(attributes))
        outputs: list[CallOutput] = []
        error: str | None = None
        try:
            with timed.current():
                yield outputs
            if not outputs:
                error = "timeout"
            elif getattr(outputs[0], "is_error", False):
                error = "tool_error"
        except BaseException as failure:
            error = type(failure).__qualname__
            raise
        finally:
            timed.add_content(lambda: self._content_of_call(call, outputs))
            seconds = timed.end(error)
            measured = {name: attributes.get(name) for name in TOOL_ATTRIBUTES}
            measured["error.type"] = error
            self.metrics.record("gen_ai.execute_tool.duration", seconds, without_none(measured))

    def _content_of_call(self, call: PendingCall, outputs: list[CallOutput]) -> dict[str, Any]:
        [part] = self.writer.parts(call)
        content = {"gen_ai.tool.call.arguments": part.get("arguments", part)}
        for output in outputs:
            [part] = self.writer.parts(output)
            content["gen_ai.tool.call.result"] = part.get("response", part)
        return content


class TimedSpan:
    """A span, whose duration is that of its metric."""

    def __init__(self, telemetry: Telemetry, name: str, kind: SpanKind) -> None:
        self.telemetry = telemetry
        self.span: Span = trace.INVALID_SPAN
        self._name = name
        self._kind = kind
        self._started = 0
        """When it began, in nanoseconds since 1970."""
        self._clock = 0
        """The same, on a clock that nobody sets."""
        self.is_open = False
        """Whether it began, and did not end."""

    def begin(self, attributes: Mapping[str, Any]) -> None:
        """Begins the span, as a child of the current one."""
        self._started, self._clock = time.time_ns(), time.monotonic_ns()
        self.span = self.telemetry.tracer.start_span(
            self._name, kind=self._kind, attributes=dict(attributes), start_time=self._started
        )
        self.is_open = True

    def current(self) -> AbstractContextManager[object]:
        """Makes it the current one."""
        return trace.use_span(
            self.span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        )

    def add_content(self, write: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Adds the content that a function writes; returns it.

        Nothing where nobody asked for content. On spans it is JSON: attributes have no structure.
        """
        if self.telemetry.content == "none":
            return {}
        try:
            content = write()
        except Exception as error:  # noqa: BLE001  # a stage of the user's may raise anything
            # What cannot be redacted is not recorded; the request itself goes on. The log has the
            # kind alone: the message may quote what was to be redacted.
            kind = type(error).__qualname__
            _log.warning("telemetry leaves content out: it cannot be written (%s)", kind)
            return {}
        if self.telemetry.content in ("spans", "both"):
            for name, value in content.items():
                text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
                self.span.set_attribute(name, text)
        return content

    def emit(self, name: str, severity: SeverityNumber, attributes: dict[str, Any]) -> None:
        """Records an event of the span."""
        record = LogRecord(
            timestamp=time.time_ns(),
            context=trace.set_span_in_context(self.span),
            severity_number=severity,
            attributes=attributes,
            event_name=name,
        )
        self.telemetry.logger.emit(record)

    def end(self, error: str | None) -> float:
        """Ends the span; returns the seconds that it took.

        Args:
            error: what went wrong, as a word: a provider's message may quote content.
        """
        self.is_open = False
        if error is not None:
            mark_failed(self.span, error)
        nanoseconds = time.monotonic_ns() - self._clock
        self.span.end(self._started + nanoseconds)
        return nanoseconds / 1e9


class StreamSpan(TimedSpan, StreamWatch):
    """The span of one stream; see `StreamWatch`."""

    def __init__(self, telemetry: Telemetry, request: Request, prompt: Prompt | None) -> None:
        name = f"{operation_name(request.wire_api)} {request.model}"
        super().__init__(telemetry, name, SpanKind.CLIENT)
        self._request = request
        self._prompt = prompt
        self._attributes: dict[str, Any] = {}
        """What the span has."""
        self._last_chunk: float | None = None
        """When the last chunk was received, by the client's clock."""

    @contextmanager
    def opening(self) -> Generator[None]:
        """See `StreamWatch`."""
        self._attributes = request_attributes(self._prompt, self._request)
        self.begin(self._named(self._attributes))
        with self.current():
            yield

    def received(self, events: Sequence[ResponseEvent], now: float) -> None:
        """See `StreamWatch`."""
        for event in events:
            if type(event) is Created and event.model is not None:
                self._attributes["gen_ai.response.model"] = event.model
            if type(event) in TOKEN_EVENTS:
                break
        else:
            return
        if self._last_chunk is not None:
            self.telemetry.metrics.record(
                "gen_ai.client.inference.time_per_output_chunk",
                now - self._last_chunk,
                metric_attributes(self._attributes),
            )
        self._last_chunk = now

    def ended(self, stream: HasResponse) -> None:
        """See `StreamWatch`."""
        if not self.is_open:
            return
        response = stream.response
        if response.error is None and response.stop_reason is None:
            response = msgspec.structs.replace(response, error=UNFINISHED)
        self._attributes |= span_attributes(response)
        self.span.set_attributes(self._named(self._attributes))
        content = self.add_content(lambda: self._content(response))
        if content and self.telemetry.content in ("events", "both"):
            self.emit(DETAILS, SeverityNumber.DEBUG, {**self._attributes, **content})
        error = response.error
        if error is not None and error.kind != "cancelled":  # a reader that leaves is no failure
            message = error.kind if error.status is None else f"{error.kind}, {error.status}"
            failure = {"exception.type": "streamlib.StreamError", "exception.message": message}
            self.emit(EXCEPTION, SeverityNumber.WARN, failure)
        seconds = self.end(None if error is None else error.kind)
        self.telemetry.metrics.record_request(self._attributes, seconds, response.usage)

    def _named(self, attributes: dict[str, Any]) -> dict[str, Any]:
        return with_older_names(attributes) if self.telemetry.older_names else attributes

    def _content(self, response: Response) -> dict[str, Any]:
        writer = self.telemetry.writer
        question = writer.of_request(self._prompt, self._request)
        return {**question, **writer.of_response(response)}


class RunSpan(TimedSpan, RunWatch):
    """The span of a run of several responses; see `RunWatch`."""

    def __init__(self, telemetry: Telemetry, prompt: Prompt, name: str | None, model: str) -> None:
        super().__init__(
            telemetry, "invoke_agent" if name is None else f"invoke_agent {name}", SpanKind.INTERNAL
        )
        self._prompt = prompt
        self._agent = without_none({"gen_ai.agent.name": name})
        self._model = {"gen_ai.request.model": model}
        self._conversation = without_none({"gen_ai.conversation.id": prompt.conversation_id})
        self._requests = 0
        self._calls = 0
        self._usage = Usage()
        """The tokens of all responses so far."""

    def entered(self) -> None:
        """See `RunWatch`."""
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            **self._agent,
            **self._model,
            **self._conversation,
            **prompt_settings(self._prompt),
            "gen_ai.request.stop_sequences": list(self._prompt.stop) or None,
            **dict.fromkeys(REQUEST_ALONE),
        }
        self.begin(without_none(attributes))

    def of_call(
        self, call: PendingCall, description: str | None
    ) -> AbstractContextManager[list[CallOutput]]:
        """See `CallWatcher`."""
        of_run = {**self._agent, **self._conversation}
        return self.telemetry.of_call(call, description, **of_run)

    def requested(self) -> None:
        """See `RunWatch`."""
        self._requests += 1

    def responded(self, response: Response) -> None:
        """See `RunWatch`."""
        usage = response.usage or Usage()
        self._usage = Usage(
            total(self._usage.input_tokens, usage.input_tokens),
            total(self._usage.output_tokens, usage.output_tokens),
        )

    def answered(self) -> None:
        """See `RunWatch`."""
        self._calls += 1

    def ended(self, response: Response, *failure: object) -> None:
        """See `RunWatch`."""
        if not self.is_open:
            return
        self.responded(response)
        reasons = span_attributes(response).get("gen_ai.response.finish_reasons")
        attributes = {"gen_ai.response.finish_reasons": reasons, **self._usage.as_otel()}
        self.span.set_attributes(without_none(attributes))
        self.add_content(lambda: self._content(response))
        kind: str | None = None
        errors = [error for error in failure if isinstance(error, StreamError)]
        if errors:
            kind = errors[0].kind
        elif response.error is not None:
            kind = response.error.kind
        seconds = self.end(kind)
        record = self.telemetry.metrics.record
        measured = {**self._agent, **self._model, "error.type": kind}
        record("gen_ai.invoke_agent.duration", seconds, without_none(measured))
        record("gen_ai.invoke_agent.inference_calls", self._requests, self._agent)
        record("gen_ai.invoke_agent.tool_calls", self._calls, self._agent)

    def _content(self, response: Response) -> dict[str, Any]:
        writer = self.telemetry.writer
        return {**writer.of_prompt(self._prompt), **writer.of_response(response)}


def mark_failed(span: Span, kind: str) -> None:
    """Marks a span as failed. Only the kind: a provider's message may quote content."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR, kind)


def _capture_mode() -> Content:
    """Where the environment wants content.

    Raises:
        ValueError: it names no place.
    """
    mode = os.environ.get(CAPTURE_VARIABLE, "").strip().upper() or "NO_CONTENT"
    if mode not in CAPTURE_MODES:
        raise ValueError(f"{CAPTURE_VARIABLE} is one of {', '.join(CAPTURE_MODES)}, not {mode!r}")
    return CAPTURE_MODES[mode]
