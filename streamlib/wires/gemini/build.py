"""A `Prompt` as a Gemini generateContent request.

Items become parts (`gemini_parts`), parts become turns: runs of one role, in which results of calls stand apart from what the user
says. The rules that make the API answer 400 are met here and in `gemini_settings`, each by one small function; what had to change is in
the report. Numbers such as G3 are the rows of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from streamlib.errors import invalid_request
from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuiltRequest
from streamlib.wires.gemini.build_parts import Part, parts
from streamlib.wires.gemini.build_settings import (
    generation_config,
    plain,
    tool_config,
    tools,
    without_cached,
)
from streamlib_parsers.items import JsonObject, Message

NO_SIGNATURE: Final = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""The documented stand-in for a thought that Gemini never had: base64 of `skip_thought_signature_validator`."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body. The model stands in the URL."""
    system, items = _leading_system(prompt, items)
    turns = _turns(parts(items, context), context)
    offered = tools(prompt, context)
    replayed = any(
        "toolCall" in part or "toolResponse" in part for turn in turns for part in turn["parts"]
    )
    config = tool_config(prompt, offered, replayed, context)
    body: JsonObject = {
        "systemInstruction": {"parts": [{"text": text} for text in system]} if system else None,
        "tools": offered.sent,
        "toolConfig": config,
        "contents": turns,
        "generationConfig": generation_config(prompt, offered, context),
        **plain(prompt, context),
    }
    return BuiltRequest(
        without_cached({key: value for key, value in body.items() if value}, prompt, context.report)
    )


def _leading_system(
    prompt: Prompt, items: list[IndexedItem]
) -> tuple[list[str], list[IndexedItem]]:
    """System and developer messages before the first other item belong to `systemInstruction`."""
    texts = [prompt.instructions or ""]
    count = 0
    for one in items:
        if not (isinstance(one.item, Message) and one.item.role in ("system", "developer")):
            break
        texts.append(one.item.text)
        count += 1
    return [text for text in texts if text], items[count:]


# --- turns ---


def _turns(said: Iterable[Part], context: BuildContext) -> list[JsonObject]:
    """Runs of one role (G1), results of calls by themselves (G4)."""
    turns: list[JsonObject] = []
    for role, run in groupby(
        _arranged(list(_unbroken(said, context.report)), context.report), _turn_of
    ):
        made = list(run)
        if role == "model":
            _signed(made, context)
        turns.append(
            {"role": "model" if role == "model" else "user", "parts": [part.body for part in made]}
        )
    if not turns:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    if turns[0]["role"] == "model" and any("functionCall" in part for part in turns[0]["parts"]):
        context.report.add(
            "generated", "/input", "a call follows a user turn: 'Continue.' added before it (G1)"
        )
        turns.insert(0, {"role": "user", "parts": [{"text": "Continue."}]})
    return turns


def _turn_of(part: Part) -> str:
    return "user" if part.said == "attachment" else part.said


def _unbroken(said: Iterable[Part], report: Report) -> Iterator[Part]:
    """Nothing of the user's stands between calls and their results (G2): a compaction of another wire would, once it is text."""
    open_calls: set[str | None] = set()
    held: list[Part] = []
    for part in said:
        if part.said == "user" and open_calls:
            report.add(
                "repaired",
                f"/input/{part.at}",
                "moved behind the results of the calls before it (G2)",
            )
            held.append(part)
            continue
        if held and not open_calls and part.said != "attachment":
            yield from held
            held.clear()
        if part.call_id is not None and part.said != "attachment":
            open_calls ^= {part.call_id}
        yield part
    yield from held


def _arranged(said: list[Part], report: Report) -> Iterator[Part]:
    """The results after a turn stand in the order of its calls (G3), and what is attached to them after the last."""
    order = {
        part.call_id: n
        for n, part in enumerate(said)
        if part.said == "model" and part.call_id is not None
    }
    for answers, run in groupby(said, lambda part: part.said in ("result", "attachment")):
        made = list(run)
        if answers:
            ranked = sorted(
                made, key=lambda part: (part.said == "attachment", order[part.call_id or ""])
            )
            given = [part for part in made if part.said == "result"]
            if ranked[: len(given)] != given:
                report.add(
                    "repaired",
                    f"/input/{given[0].at}",
                    "results stand in the order of their calls (G3)",
                )
            made = ranked
        yield from made


def _signed(step: list[Part], context: BuildContext) -> None:
    """G5: the first call of a step carries its thought, or the stand-in for one. Of every step, not of the last turn alone: one that
    went away with the next user message would rewrite the past."""
    first = next((n for n, part in enumerate(step) if "functionCall" in part.body), None)
    if (
        first is None
        or not context.target.traits.signed_calls
        or "thoughtSignature" in step[first].body
    ):
        return
    context.report.add(
        "generated",
        f"/input/{step[first].at}/signature",
        "no thought of this model's: sent with the stand-in (G5, G6)",
    )
    step[first] = step[first]._replace(body={**step[first].body, "thoughtSignature": NO_SIGNATURE})
