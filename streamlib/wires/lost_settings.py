"""Settings that a wire does not have: left out, and reported."""

from __future__ import annotations

from collections.abc import Iterable

from streamlib.request.context import BuildContext
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report


def report_unsupported(prompt: Prompt, names: Iterable[str], wire: str, report: Report) -> None:
    """Reports each of these fields of the prompt that is set.

    Args:
        wire: Name of the wire, for people.
    """
    for name in names:
        if getattr(prompt, name) not in (None, {}):
            report.dropped(f"/{name}", f"{wire} has no {name}")


def report_conversation(prompt: Prompt, wire: str, context: BuildContext) -> None:
    """Reports an id of the conversation that neither the wire nor the provider takes."""
    if prompt.conversation_id and not context.target.provider.conversation_header:
        context.report.dropped("/conversation_id", f"{wire} has no id of a conversation")


def stop_sequences(prompt: Prompt, report: Report) -> list[str]:
    """The stop sequences without blank ones, which are refused (messages, converse)."""
    stop: list[str] = []
    for index, text in enumerate(prompt.stop):
        if text.strip():
            stop.append(text)
        else:
            report.dropped(f"/stop/{index}", "a blank stop sequence is refused")
    return stop
