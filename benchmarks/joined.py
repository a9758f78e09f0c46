"""Code that an application without an SDK writes: joins text and calls from the wire's fields.

The functions read decoded frames, as dicts. `node/race.mjs` has the same in JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from benchmarks.contestants import Outcome, parsed_arguments

Frames = Iterable[Any]


def _messages(frames: Frames) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for frame in frames:
        if frame["type"] != "content_block_delta":
            continue
        delta = frame["delta"]
        if delta["type"] == "text_delta":
            texts.append(delta["text"])
        elif delta["type"] == "input_json_delta":
            fragments.append((frame["index"], delta["partial_json"]))
    return Outcome("".join(texts), parsed_arguments(fragments))


def _chat(frames: Frames) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for frame in frames:
        for choice in frame["choices"]:
            delta = choice.get("delta") or {}
            if choice.get("index"):
                continue
            texts.append(delta.get("content") or "")
            for call in delta.get("tool_calls") or ():
                fragments.append((call["index"], call["function"].get("arguments") or ""))
    return Outcome("".join(texts), parsed_arguments(fragments))


def _responses(frames: Frames) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for frame in frames:
        if frame["type"] == "response.output_text.delta":
            texts.append(frame["delta"])
        elif frame["type"] == "response.function_call_arguments.delta":
            fragments.append((frame["output_index"], frame["delta"]))
    return Outcome("".join(texts), parsed_arguments(fragments))


def _gemini(frames: Frames) -> Outcome:
    texts: list[str] = []
    arguments: list[Any] = []
    for frame in frames:
        for candidate in frame.get("candidates", ()):
            for part in candidate.get("content", {}).get("parts", ()):
                if "functionCall" in part:
                    arguments.append(part["functionCall"]["args"])
                elif not part.get("thought"):
                    texts.append(part.get("text", ""))
    return Outcome("".join(texts), arguments)


def _interactions(frames: Frames) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for frame in frames:
        if frame["event_type"] != "step.delta":
            continue
        delta = frame["delta"]
        if delta["type"] == "text":
            texts.append(delta["text"])
        elif delta["type"] == "arguments_delta":
            fragments.append((frame["index"], delta["arguments"]))
    return Outcome("".join(texts), parsed_arguments(fragments))


def _cohere(frames: Frames) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for frame in frames:
        if frame["type"] == "content-delta":
            texts.append(frame["delta"]["message"]["content"].get("text", ""))
        elif frame["type"] == "tool-plan-delta":
            texts.append(frame["delta"]["message"]["tool_plan"])
        elif frame["type"] == "tool-call-delta":
            function = frame["delta"]["message"]["tool_calls"]["function"]
            fragments.append((frame["index"], function["arguments"]))
    return Outcome("".join(texts), parsed_arguments(fragments))


def _converse(frames: Frames) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for frame in frames:
        delta = frame.get("delta")
        if delta is None:
            continue
        texts.append(delta.get("text", ""))
        if "toolUse" in delta:
            fragments.append((frame["contentBlockIndex"], delta["toolUse"]["input"]))
    return Outcome("".join(texts), parsed_arguments(fragments))


def _ollama(frames: Frames) -> Outcome:
    texts: list[str] = []
    arguments: list[Any] = []
    for frame in frames:
        texts.append(frame["message"]["content"])
        for call in frame["message"].get("tool_calls", ()):
            arguments.append(call["function"]["arguments"])
    return Outcome("".join(texts), arguments)


JOINED: Final[dict[str, Callable[[Frames], Outcome]]] = {
    "messages": _messages,
    "responses": _responses,
    "chat": _chat,
    "gemini": _gemini,
    "interactions": _interactions,
    "converse": _converse,
    "invoke": _messages,
    "ollama": _ollama,
    "cohere": _cohere,
}
"""Wire -> function that joins its frames."""
