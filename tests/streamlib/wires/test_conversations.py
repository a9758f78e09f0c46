"""Recorded conversations: the next request, built from the turns before it, is the one really sent.

For each two consecutive turns: the history of the first request, the response as we parsed it, and
what the caller added in the second request are built anew and read back. The two must agree in
structure: roles, kinds, tool names, which output belongs to which call, and where signatures and
encrypted content stand. Ids are compared by pairing, not by name: Gemini and Ollama name no calls,
clients rename them, and recordings hide them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from streamlib import (
    Message,
    Opaque,
    Prompt,
    Request,
    Response,
    ResponseItem,
    accumulate,
    build,
    parse_body,
    parse_request,
    parser,
)
from streamlib_parsers.items import tag, user
from streamlib_parsers.json_text import is_json_bytes
from tests.support.shared import CORPUS, WIRES, Recording, require
from tests.support.wire_rules import CALLS, OUTPUTS, elements, read_back

NO_SERVER_TOOL: Final = "the client left the server tool and its result out"

EXPLAINED: Final[dict[str, str]] = {
    "xai-prompt_caching-streaming_probe.02": "the client left the stored reasoning out",
    "Mirascope-mirascope__test_web_search_tool_stream-anthropic": NO_SERVER_TOOL,
    "Mirascope-mirascope__web-search-tool-anthropic-streams": NO_SERVER_TOOL,
    "TestAzureResponsesWithSummaryThinking": "the client left the encrypted reasoning out",
    "TestOpenAIResponsesWithSummaryThinking": "the client left the encrypted reasoning out",
    "bedrock_mantle_responses_chat_calls_tools": "the client left the stored reasoning out",
    "langchain-aws__test_agent_loop_streaming-v0": "the client left out text before the call",
    "test_provider_google-test_tools_simple": "the client left the signature on the empty text out",
    "test_groq-test_tool_use_failed_error_streaming": "the client sent reasoning as text in tags",
    "test_compatible_api_with_tool_calls_without_id": "the client left the empty signed text out",
}
"""Part of a recording's name -> why the recorded client sent something else than the response."""


@dataclass(frozen=True, slots=True)
class Step:
    """Two consecutive turns of one conversation."""

    name: str
    wire: Any
    before: Prompt
    response: tuple[ResponseItem, ...]
    after: Prompt

    @property
    def added(self) -> tuple[ResponseItem, ...]:
        """The second request without the first: the response as the client stored it, new items."""
        return self.after.items[len(self.before.items) :]

    @property
    def response_length(self) -> int:
        """How many items of `added` are the response."""
        for index, item in enumerate(self.added):
            if _is_callers(item):
                return index
        return len(self.added)


def _is_callers(item: ResponseItem) -> bool:
    return isinstance(item, OUTPUTS) or (isinstance(item, Message) and item.role != "assistant")


# --- reading the corpus ---


@cache
def conversations() -> tuple[tuple[Recording, ...], ...]:
    lines = require(CORPUS / "conversations.jsonl").read_bytes().splitlines()
    return tuple(
        tuple(Recording(CORPUS / turn) for turn in json.loads(line)["turns"]) for line in lines
    )


def prompt_of(turn: Recording) -> Prompt | None:
    """The recorded request as a prompt; None where none was kept."""
    request = turn.meta.get("request_json")
    if not request or turn.path.parent.name not in WIRES:
        return None
    body = json.loads(request) if isinstance(request, str) else request
    prompt = parse_request(
        turn.wire, json.dumps(body).encode(), path=urlsplit(turn.meta.get("url") or "").path
    )  # type: ignore[arg-type]
    if turn.wire == "responses":  # theirs are stored unless they say no, ours only when asked to
        prompt = msgspec.structs.replace(
            prompt, extra={**(prompt.extra or {}), "store": body.get("store") is not False}
        )
    return prompt


def response_of(turn: Recording) -> Response:
    wire: Any = turn.wire
    if turn.path.suffix != ".jsonl" and is_json_bytes(turn.body):
        return accumulate(parse_body(wire, turn.body))
    parse = parser(wire)
    fed = (
        [parse.feed_event(line) for line in turn.payloads]
        if turn.path.suffix == ".jsonl"
        else [parse.feed(turn.body)]
    )
    return accumulate([event for events in fed for event in events] + parse.close())


@cache
def steps() -> tuple[tuple[Step, ...], Counter[str]]:
    """Every step that can be compared, and how many cannot, by reason."""
    all_steps: list[Step] = []
    left_out: Counter[str] = Counter()
    for turns in conversations():
        for first, second in pairwise(turns):
            step = _step(first, second)
            if isinstance(step, Step):
                all_steps.append(step)
            else:
                left_out[step] += 1
    return tuple(all_steps), left_out


def _step(first: Recording, second: Recording) -> Step | str:
    before, after = prompt_of(first), prompt_of(second)
    if before is None or after is None:
        return "no request was recorded"
    if not _is_callers(after.items[0]):
        before = msgspec.structs.replace(before, input=())  # a client that begins with the response
    if structure(after.items[: len(before.items)]) != structure(before.items):
        return "the second request does not begin with the first"
    response = response_of(first)
    if response.error:
        return "the response failed"
    step = Step(second.path.name, first.wire, before, tuple(response.items), after)
    if not step.response_length:
        return "the client left the response out"
    return step if _is_same_response(step) else "something else stands in place of the response"


def _is_same_response(step: Step) -> bool:
    """Whether the client sent back a call of the response, or text of it."""
    mine, replayed = (
        Counter(type(item) for item in items)
        for items in (step.response, step.added[: step.response_length])
    )
    names = _names(step.response) & _names(step.added[: step.response_length])
    texts = [
        part
        for part in _texts(step.added[: step.response_length])
        if any(part in other or other in part for other in _texts(step.response))
    ]
    return bool(names or texts or mine == replayed)


def _names(items: tuple[ResponseItem, ...]) -> set[str]:
    return {item.name for item in items if isinstance(item, CALLS)}


def _texts(items: tuple[ResponseItem, ...]) -> list[str]:
    return [item.text.strip() for item in items if isinstance(item, Message) and item.text.strip()]


# --- comparing ---


def structure(items: Any) -> list[tuple[Any, ...]]:
    """What must agree. Adjacent user messages are one: parts may be one item or several."""
    numbers: dict[str, int] = {}
    kinds: list[tuple[Any, ...]] = []
    for item in map(_signed, items):
        if _holds_keys_only(item) or _is_plan(item):
            continue
        kind = (
            tag(type(item)),
            _who(item, numbers),
            bool(item.signature),
            bool(getattr(item, "encrypted_content", None)),
        )
        if not (
            kinds and kinds[-1] == kind and isinstance(item, Message) and item.role != "assistant"
        ):
            kinds.append(kind)
    return kinds


def _holds_keys_only(item: ResponseItem) -> bool:
    """Whether a message holds only further keys of a turn that has calls (Mistral: `prefix`)."""
    return isinstance(item, Message) and not item.content and not item.signature


def _is_plan(item: ResponseItem) -> bool:
    """Whether this is Cohere's plan before its calls, which most clients do not send back."""
    return isinstance(item, Message) and (item.native or {}).get("type") == "tool_plan"


def _signed(item: ResponseItem) -> ResponseItem:
    """Whether this is Gemini's signature alone: some clients write the empty text beside it."""
    alone = isinstance(item, Opaque) and item.kind == "thoughtSignature"
    return Message("assistant", signature="alone") if alone else item


def _who(item: ResponseItem, numbers: dict[str, int]) -> Any:
    """The role; a call's name and number in the conversation; the number of an output's call."""
    if isinstance(item, Message):
        return "assistant" if item.role == "assistant" else "user"
    if isinstance(item, CALLS):
        return item.name, numbers.setdefault(item.call_id, len(numbers))
    return numbers.setdefault(item.call_id, len(numbers)) if isinstance(item, OUTPUTS) else None


def named_as_sent(step: Step) -> tuple[ResponseItem, ...]:
    """The response with its calls under the client's ids, matched by id, else by order."""
    sent = [item for item in step.added[: step.response_length] if isinstance(item, CALLS)]
    mine = [item for item in step.response if isinstance(item, CALLS)]
    if {call.call_id for call in sent} == {call.call_id for call in mine} or len(sent) != len(mine):
        return step.response
    assert [call.name for call in sent] == [call.name for call in mine], step.name
    names = iter(sent)
    return tuple(
        msgspec.structs.replace(item, call_id=next(names).call_id)
        if isinstance(item, CALLS)
        else item
        for item in step.response
    )


def built(prompt: Prompt, wire: Any) -> Request:
    return build(
        prompt, prompt.model or "model", provider="custom", wire_api=wire, base_url="http://x/v1"
    )


def continued(step: Step) -> list[tuple[Any, ...]]:
    """The structure of our own second request."""
    history = (*step.before.items, *named_as_sent(step), *step.added[step.response_length :])
    return structure(
        read_back(built(msgspec.structs.replace(step.after, input=history), step.wire)).items
    )


def test_recorded_conversations_continue_as_they_did(
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    all_steps, left_out = steps()
    differ = [step for step in all_steps if continued(step) != structure(step.after.items)]
    unexplained = [step.name for step in differ if not any(part in step.name for part in EXPLAINED)]
    stale = [part for part in EXPLAINED if not any(part in step.name for step in differ)]
    for name, value in {
        "conversations": len(conversations()),
        "steps": len(all_steps),
        "differ": len(differ),
        **left_out,
    }.items():
        record_testsuite_property(f"conversations: {name}", value)  # shown by --junit-xml
    assert len(all_steps) >= 250
    assert unexplained == []
    assert stale == []
    assert len(all_steps) - len(differ) >= 0.95 * len(all_steps)


# --- prefixes ---


def test_recorded_requests_begin_with_the_previous_one() -> None:
    all_steps, _ = steps()
    for step in all_steps:
        history = [*step.before.items, *named_as_sent(step), *step.added[step.response_length :]]
        ends = [len(step.before.items), len(history), len(history) + 1]
        history.append(user("and then?"))
        sent = [
            elements(built(msgspec.structs.replace(step.before, input=history[:end]), step.wire))
            for end in ends
            if end
        ]
        for shorter, longer in pairwise(sent):
            assert longer[: len(shorter)] == shorter, step.name
