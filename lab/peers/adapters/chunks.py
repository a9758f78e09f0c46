"""What the SDK, litellm and any-llm give alike: chunks of the Chat shape, added up by their index,
and events of Responses."""

from __future__ import annotations

from typing import Any

from lab.peers.peer import ReportedError, attr
from lab.peers.told import Told


class Chunks:
    """Fills in what a user has who adds deltas up."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._calls: dict[int, list[str]] = {}

    def feed(self, chunk: Any) -> None:
        """One chunk. One without choices carries usage."""
        told = self._told
        if attr(chunk, "usage") is not None:
            told.input_tokens, told.output_tokens = (
                attr(chunk, "usage", "prompt_tokens"),
                attr(chunk, "usage", "completion_tokens"),
            )
        for choice in attr(chunk, "choices", default=()):
            delta = attr(choice, "delta")
            told.stop = attr(choice, "finish_reason") or told.stop
            told.text += attr(delta, "content", default="")
            reasoning = (
                attr(delta, "reasoning_content")
                or attr(delta, "reasoning", "content")
                or attr(delta, "reasoning")
                or ""
            )
            told.reasoning += reasoning if isinstance(reasoning, str) else ""
            told.signatures += [
                found
                for block in attr(delta, "thinking_blocks", default=())
                if (found := attr(block, "signature"))
            ]
            for call in attr(delta, "tool_calls", default=()):
                self._call(call)

    def _call(self, call: Any) -> None:
        place = self._calls.setdefault(attr(call, "index", default=0), ["", ""])
        signed = attr(call, "provider_specific_fields", "thought_signature") or attr(
            call, "extra_content", "google", "thought_signature"
        )
        self._told.signatures += [signed] if signed else []
        place[0] = place[0] or attr(call, "function", "name", default="")
        arguments = attr(call, "function", "arguments", default="")
        place[1] = arguments if isinstance(arguments, dict) else place[1] + arguments

    def close(self) -> None:
        """The calls, by index."""
        self._told.calls = [(name, arguments) for name, arguments in self._calls.values()]


def response_event(event: Any, told: Told) -> None:
    """One event of Responses. A failure is an event there, and whoever reads the documentation
    looks for it."""
    kind = attr(event, "type", default="")
    if kind == "response.output_text.delta":
        told.text += event.delta
    elif kind == "response.output_item.done" and attr(event, "item", "type") == "function_call":
        told.calls.append((event.item.name, event.item.arguments))
    elif kind in {"response.failed", "error"}:
        raise ReportedError(
            attr(event, "response", "error", "message") or attr(event, "message") or kind
        )
    elif kind in {"response.completed", "response.incomplete"}:
        told.stop = attr(event, "response", "incomplete_details", "reason") or attr(
            event, "response", "status"
        )
        told.input_tokens, told.output_tokens = (
            attr(event, "response", "usage", "input_tokens"),
            attr(event, "response", "usage", "output_tokens"),
        )
