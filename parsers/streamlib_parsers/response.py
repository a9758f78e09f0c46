"""What a stream of events adds up to: `Response`, its choices and its times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, overload

from msgspec import Struct

from streamlib_parsers.errors import ErrorInfo, IncompleteOutput
from streamlib_parsers.events import Notice, RateLimits, StopReason
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    PendingCall,
    Reasoning,
    Refusal,
    ResponseItem,
)
from streamlib_parsers.outputs import output_text, waits_for_calls
from streamlib_parsers.upward import upward
from streamlib_parsers.usage import Usage

if TYPE_CHECKING:
    from streamlib_parsers.cache_diagnosis import CacheDiagnosis

REPR_TEXT: Final = 60
"""Characters of a text in `repr` of a response."""

REPR_ITEMS: Final = 8
"""Items whose kind `repr` of a response names."""

NO_OUTPUT: Final = ("length", "content_filter", "refusal", "pause")
"""Stop reasons of a response whose output is not complete."""

T = TypeVar("T")

ResponseStatus: TypeAlias = Literal["completed", "incomplete", "failed", "cancelled"]


class Choice(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """One of the `n` alternatives of a response."""

    index: int
    items: tuple[ResponseItem, ...] = ()
    stop_reason: StopReason | None = None
    native_stop_reason: str | None = None


class Timing(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Times of a response, filled by the client: events hold no timestamps.

    Attributes:
        first_byte: seconds from sending the request to the first byte.
        first_token: seconds to the first delta.
        last: seconds to the last event.
        tokens_per_second: output tokens between the first and the last.
        longest_gap: the longest wait between two events, in seconds.
    """

    first_byte: float | None = None
    first_token: float | None = None
    last: float | None = None
    tokens_per_second: float | None = None
    longest_gap: float | None = None


class Response(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A response, complete or accumulated so far.

    `items`, the texts, `calls` and the stop reasons are those of choice 0; `choices` holds all.
    The texts are those of the agent that was asked, also where it asked others (`by_agent`).

    Attributes:
        response_id: the provider's id.
        model: the model as the provider reports it.
        status: `completed`; `incomplete` (not ended yet, or stopped by length or a filter);
            `failed`; `cancelled`.
        items: in order of start.
        choices: every choice, by index.
        usage: the last snapshot.
        stop_reason: why the model stopped.
        native_stop_reason: the wire's own value of it.
        stop_sequence: the stop sequence that was reached.
        error: of a failed or cancelled response.
        metadata: envelope keys under the wire's own names.
        rate_limits: the newest.
        notices: anomalies and repairs.
        timing: filled by the client.
    """

    response_id: str | None = None
    model: str | None = None
    status: ResponseStatus = "incomplete"
    items: tuple[ResponseItem, ...] = ()
    choices: tuple[Choice, ...] = ()
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    native_stop_reason: str | None = None
    stop_sequence: str | None = None
    error: ErrorInfo | None = None
    metadata: JsonObject = {}
    rate_limits: RateLimits | None = None
    notices: tuple[Notice, ...] = ()
    timing: Timing | None = None

    def __repr__(self) -> str:
        """One short line: how it ended, the beginning of the text, and the kinds of the items.

        ``Response(completed, stop, 'You said: …', [Message], 1→20, 'test')``: the numbers are
        tokens in and out. ``msgspec.structs.asdict(response)`` holds every field.
        """
        shown: list[str] = [self.status]
        if self.error is not None and self.error.kind != self.status:
            shown.append(self.error.kind)
        if self.stop_reason is not None:
            shown.append(self.stop_reason)
        shown.append(repr(_shortened(self.text)))
        shown.append(f"[{_kinds(self.items)}]")
        if self.usage is not None:
            counts = (self.usage.input_tokens, self.usage.output_tokens)
            shown.append("→".join(["?" if count is None else str(count) for count in counts]))
        if self.model is not None:
            shown.append(repr(_shortened(self.model)))
        return f"Response({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What rich prints: as little as `repr`, where a Struct would print every field."""
        return [
            ("status", self.status),
            ("stop_reason", self.stop_reason),
            ("text", _shortened(self.text)),
            ("items", _kinds(self.items)),
            ("model", self.model),
        ]

    def _repr_html_(self) -> str:
        shown: str = upward("display.notebook_items", "response_html")(self)
        return shown

    def _repr_markdown_(self) -> str:
        shown: str = upward("display.notebook_items", "response_markdown")(self)
        return shown

    @property
    def text(self) -> str:
        """Every text part of the assistant's messages, joined without separators.

        Messages that a compaction returns (of other roles) are not part of it, nor those of other
        agents than the one that was asked.
        """
        texts: list[str] = []
        for item in self.items:
            if isinstance(item, Message) and item.role == "assistant" and item.agent is None:
                texts.append(item.text)
        return "".join(texts)

    @property
    def reasoning(self) -> str:
        """Summaries, then content, item by item; of the agent that was asked."""
        texts: list[str] = []
        for item in self.items:
            if isinstance(item, Reasoning) and item.agent is None:
                texts.append(item.text)
        return "".join(texts)

    @property
    def refusal(self) -> str:
        """The text with which the model declined, or ""; of the agent that was asked."""
        refusals: list[str] = []
        for item in self.items:
            if not isinstance(item, Message) or item.agent is not None:
                continue
            for part in item.content:
                if isinstance(part, Refusal):
                    refusals.append(part.refusal)
        return "".join(refusals)

    @property
    def calls(self) -> list[FunctionCall | CustomToolCall]:
        """The calls to run: complete ones only, and none of a generation that failed.

        They are the calls of all agents: each waits for its output, whoever made it
        (`FunctionCall.agent`).
        """
        if self.error is not None and self.error.kind == "generation_failed":
            return []
        calls: list[FunctionCall | CustomToolCall] = []
        for item in self.items:
            if isinstance(item, (FunctionCall, CustomToolCall)) and item.status == "completed":
                calls.append(item)
        return calls

    @property
    def function_calls(self) -> tuple[FunctionCall, ...]:
        """Those of `calls` that have JSON arguments: calls of your functions."""
        return tuple([call for call in self.calls if isinstance(call, FunctionCall)])

    @property
    def pending(self) -> list[PendingCall]:
        """Everything that waits for an output of yours, in order; `calls` are among it.

        Beside those: approvals to give, and calls of tools that the provider defines and you run
        (computer, shell, patches, searches for tools). Complete ones only, as in `calls`.
        """
        if self.error is not None and self.error.kind == "generation_failed":
            return []
        # A call whose output is in the response already was run by the provider.
        answered = {item.answers for item in self.items if isinstance(item, Opaque)}
        pending: list[PendingCall] = []
        for item in self.items:
            if not isinstance(item, (FunctionCall, CustomToolCall, *BUILT_IN_CALLS)):
                continue
            if item.status == "completed" and item.call_id not in answered:
                pending.append(item)
        return pending

    def by_agent(self) -> dict[str | None, tuple[ResponseItem, ...]]:
        """The items of each agent, by its name; those of the one that was asked under None.

        ``response.by_agent()["/root/researcher"]``. Agents are in the order of their first items,
        after the one that was asked, which is always there.
        """
        items: dict[str | None, list[ResponseItem]] = {None: []}
        for item in self.items:
            items.setdefault(item.agent, []).append(item)
        return {agent: tuple(own) for agent, own in items.items()}

    @property
    def unfinished(self) -> bool:
        """Whether the turn goes on: something is `pending`, or the provider paused.

        True only where the next request differs from this one, and False for a response that
        failed or has not ended: a loop over it ends.
        """
        if self.stop_reason == "pause":
            return bool(self.items)
        return self.stop_reason is not None and bool(self.pending)

    @property
    def cache_diagnosis(self) -> CacheDiagnosis | None:
        """Why less was read from the prompt cache than could be, in the provider's own words.

        None unless `CacheOptions.compare` asked for it. Of Anthropic it is None, too, where nothing
        was lost.
        """
        # Imported here, because few responses have one.
        from streamlib_parsers.cache_diagnosis import cache_diagnosis

        return cache_diagnosis(self.metadata)

    @overload
    def parsed(self, kind: type[T]) -> T: ...
    @overload
    def parsed(self, kind: object) -> Any: ...
    def parsed(self, kind: object) -> Any:
        """The structured output as a value of a class, validated by the class's own library.

        It is read from the text, in a Markdown fence or not, or from the arguments of the call
        where a prompt has ``structured="tool"``.

        Args:
            kind: what `Prompt.output_schema` was made from: a pydantic model, a msgspec Struct, a
                dataclass, a TypedDict, an attrs class, or a type made of them (`list[City]`).

        Raises:
            IncompleteOutput: the response ended early, failed, refused, or calls tools first.
            InvalidOutput: the output is no such value; `path` names what failed.
            TypeError: the class's library cannot read the class.
        """
        text = output_text(self.items)
        reason = self._missing_output()
        if reason is not None:
            raise IncompleteOutput(reason, text)
        return upward("structured.values", "typed_value")(text, kind)

    def _missing_output(self) -> str | None:
        """Why there is no complete output; None if there is one."""
        if self.error is not None:
            return self.error.kind
        if self.refusal:
            return "refusal"
        if self.stop_reason in NO_OUTPUT:
            return self.stop_reason
        if self.status != "completed":
            return "not_ended"
        if waits_for_calls(self.pending):
            return "tool_calls"
        return None


def _shortened(text: str) -> str:
    """A text, or its beginning if it is long."""
    if len(text) > REPR_TEXT:
        return text[: REPR_TEXT - 1] + "…"
    return text


def _kinds(items: Sequence[ResponseItem]) -> str:
    """The kinds of items, of the first ones if there are many."""
    kinds = ", ".join([type(item).__name__ for item in items[:REPR_ITEMS]])
    if len(items) > REPR_ITEMS:
        kinds += f", … {len(items)} items"
    return kinds
