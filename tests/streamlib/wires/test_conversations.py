"""Recorded conversations: the next request, built from the turns before it, is the one that was really sent.

For each two consecutive turns: the history of the first request, the answer as we parsed it, and what the caller added in the
second request are built anew and read back. The two must agree in structure: roles, kinds, tool names, which output answers
which call, and where signatures and encrypted content stand. Ids are compared by pairing, not by name: Gemini and Ollama name
no calls, clients rename them, and recordings hide them.
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

EXPLAINED: Final[dict[str, str]] = {
    "xai-prompt_caching-streaming_probe.02": "the client left the stored thought out",
    "Mirascope-mirascope__test_web_search_tool_stream-anthropic": "the client left the server tool and its result out",
    "Mirascope-mirascope__web-search-tool-anthropic-streams": "the client left the server tool and its result out",
    "TestAzureResponsesWithSummaryThinking": "the client left the sealed thought out",
    "TestOpenAIResponsesWithSummaryThinking": "the client left the sealed thought out",
    "bedrock_mantle_responses_chat_calls_tools": "the client left the stored thought out",
    "langchain-aws__test_agent_loop_streaming-v0": "the client left the text before the call out",
    "test_provider_google-test_tools_simple": "the client left the signature on the empty text out",
    "test_groq-test_tool_use_failed_error_streaming": "the client sent the thought as text in tags",
    "test_compatible_api_with_tool_calls_without_id": "the client left the empty signed text out",
}
"""Part of a recording's name -> why the recorded client sent something else than what was answered."""


@dataclass(frozen=True, slots=True)
class Step:
    """Two consecutive turns of one conversation."""

    name: str
    wire: Any
    before: Prompt
    answer: tuple[ResponseItem, ...]
    after: Prompt

    @property
    def said(self) -> tuple[ResponseItem, ...]:
        """What the second request holds beyond the first: the answer as the client kept it, then what it added."""
        return self.after.items[len(self.before.items) :]

    @property
    def kept(self) -> int:
        """How many of `said` are the answer."""
        return next((at for at, item in enumerate(self.said) if _is_callers(item)), len(self.said))


def _is_callers(item: ResponseItem) -> bool:
    return isinstance(item, OUTPUTS) or (isinstance(item, Message) and item.role != "assistant")


# --- reading the corpus ---


@cache
def conversations() -> tuple[tuple[Recording, ...], ...]:
    lines = require(CORPUS / "conversations.jsonl").read_bytes().splitlines()
    return tuple(
        tuple(Recording(CORPUS / turn) for turn in json.loads(line)["turns"]) for line in lines
    )


def asked(turn: Recording) -> Prompt | None:
    """The recorded request as a prompt; None where none was kept."""
    request = turn.meta.get("request_json")
    if not request or turn.path.parent.name not in WIRES:
        return None
    said = json.loads(request) if isinstance(request, str) else request
    prompt = parse_request(
        turn.wire, json.dumps(said).encode(), path=urlsplit(turn.meta.get("url") or "").path
    )  # type: ignore[arg-type]
    if turn.wire == "responses":  # theirs are stored unless they say no, ours only when asked to
        prompt = msgspec.structs.replace(
            prompt, extra={**(prompt.extra or {}), "store": said.get("store") is not False}
        )
    return prompt


def answered(turn: Recording) -> Response:
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
    found: list[Step] = []
    left_out: Counter[str] = Counter()
    for turns in conversations():
        for first, second in pairwise(turns):
            step = _step(first, second)
            if isinstance(step, Step):
                found.append(step)
            else:
                left_out[step] += 1
    return tuple(found), left_out


def _step(first: Recording, second: Recording) -> Step | str:
    before, after = asked(first), asked(second)
    if before is None or after is None:
        return "no request was recorded"
    if not _is_callers(after.items[0]):
        before = msgspec.structs.replace(before, input=())  # a client that begins with the answer
    if structure(after.items[: len(before.items)]) != structure(before.items):
        return "the second request does not begin with the first"
    answer = answered(first)
    if answer.error:
        return "the answer failed"
    step = Step(second.path.name, first.wire, before, tuple(answer.items), after)
    if not step.kept:
        return "the client left the answer out"
    return step if _same_answer(step) else "something else stands in the answer's place"


def _same_answer(step: Step) -> bool:
    """Whether the client kept a call of the answer, or words of it."""
    mine, kept = (
        Counter(type(one) for one in items) for items in (step.answer, step.said[: step.kept])
    )
    names = _names(step.answer) & _names(step.said[: step.kept])
    words = [
        part
        for part in _words(step.said[: step.kept])
        if any(part in other or other in part for other in _words(step.answer))
    ]
    return bool(names or words or mine == kept)


def _names(items: tuple[ResponseItem, ...]) -> set[str]:
    return {item.name for item in items if isinstance(item, CALLS)}


def _words(items: tuple[ResponseItem, ...]) -> list[str]:
    return [item.text.strip() for item in items if isinstance(item, Message) and item.text.strip()]


# --- comparing ---


def structure(items: Any) -> list[tuple[Any, ...]]:
    """What must agree. Neighbouring user messages are one: a turn's parts may be one item or several."""
    numbers: dict[str, int] = {}
    kinds: list[tuple[Any, ...]] = []
    for item in map(_signed, items):
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


def _signed(item: ResponseItem) -> ResponseItem:
    """Gemini's signature in a part of its own: some clients write the empty text beside it, others leave it out."""
    alone = isinstance(item, Opaque) and item.kind == "thoughtSignature"
    return Message("assistant", signature="alone") if alone else item


def _who(item: ResponseItem, numbers: dict[str, int]) -> Any:
    """The role; of a call its name and number in the conversation; of an output the number of its call."""
    if isinstance(item, Message):
        return "assistant" if item.role == "assistant" else "user"
    if isinstance(item, CALLS):
        return item.name, numbers.setdefault(item.call_id, len(numbers))
    return numbers.setdefault(item.call_id, len(numbers)) if isinstance(item, OUTPUTS) else None


def named_as_sent(step: Step) -> tuple[ResponseItem, ...]:
    """The answer with its calls under the names that the client gave them: the same id, else the same place."""
    sent = [item for item in step.said[: step.kept] if isinstance(item, CALLS)]
    mine = [item for item in step.answer if isinstance(item, CALLS)]
    if {call.call_id for call in sent} == {call.call_id for call in mine} or len(sent) != len(mine):
        return step.answer
    assert [call.name for call in sent] == [call.name for call in mine], step.name
    names = iter(sent)
    return tuple(
        msgspec.structs.replace(one, call_id=next(names).call_id) if isinstance(one, CALLS) else one
        for one in step.answer
    )


def built(prompt: Prompt, wire: Any) -> Request:
    return build(
        prompt, prompt.model or "model", provider="custom", wire_api=wire, base_url="http://x/v1"
    )


def continued(step: Step) -> list[tuple[Any, ...]]:
    """The structure of our own second request."""
    history = (*step.before.items, *named_as_sent(step), *step.said[step.kept :])
    return structure(
        read_back(built(msgspec.structs.replace(step.after, input=history), step.wire)).items
    )


def test_case_51_recorded_conversations_go_on_as_they_did(
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    found, left_out = steps()
    differ = [step for step in found if continued(step) != structure(step.after.items)]
    unexplained = [step.name for step in differ if not any(part in step.name for part in EXPLAINED)]
    stale = [part for part in EXPLAINED if not any(part in step.name for step in differ)]
    for name, value in {
        "conversations": len(conversations()),
        "steps": len(found),
        "differ": len(differ),
        **left_out,
    }.items():
        record_testsuite_property(f"conversations: {name}", value)  # shown by --junit-xml
    assert len(found) >= 250
    assert unexplained == []
    assert stale == []
    assert len(found) - len(differ) >= 0.95 * len(found)


# --- the prefix law ---


def test_law_5_prefix_law_on_recorded_conversations() -> None:
    found, _ = steps()
    for step in found:
        history = [*step.before.items, *named_as_sent(step), *step.said[step.kept :]]
        ends = [len(step.before.items), len(history), len(history) + 1]
        history.append(user("and then?"))
        sent = [
            elements(built(msgspec.structs.replace(step.before, input=history[:end]), step.wire))
            for end in ends
            if end
        ]
        for shorter, longer in pairwise(sent):
            assert longer[: len(shorter)] == shorter, step.name
