"""Shared by the tests of the strict provider: a request as rules read it, and cases of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import pytest
from msgspec import Struct

from streamlib.testing.provider.strict import Ledger, StrictRequest
from streamlib.testing.provider.strict.ledger import Signed
from streamlib.testing.provider.strict.provider import RULES
from streamlib.testing.provider.strict.rules import Rejection, Rule, check
from streamlib_parsers.items import JsonObject, WireApi

LEDGER: Final = Ledger()
"""What has been issued in these tests: it signs with the same key as any other."""


class Case(Struct, frozen=True):
    """A request that a rule refuses, beside one that every rule takes.

    Attributes:
        rule: the rule.
        refused: a body that it refuses.
        accepted: a body like it, which the service takes.
        message: a part of the error's message.
        model: the model of both requests; "" where the body names it.
        headers: of both requests.
        accepted_headers: of the accepted request, where they are the difference.
    """

    rule: Rule
    refused: JsonObject
    accepted: JsonObject
    message: str
    model: str = ""
    headers: dict[str, str] = {}
    accepted_headers: dict[str, str] | None = None


def signature(wire_api: WireApi, content: str, *, index: int = 0, count: int = 1) -> str:
    """A signature that the provider issued."""
    return LEDGER.sign(wire_api, Signed("resp_1", index, count), content)


def strict_request(
    wire_api: WireApi, body: JsonObject, model: str, headers: dict[str, str]
) -> StrictRequest:
    """The request as the rules read it."""
    return StrictRequest(wire_api, body, headers, model or str(body.get("model", "")), LEDGER)


def check_case(wire_api: WireApi, case: Case) -> None:
    """The rule refuses its body, with these words, and all rules take the other one."""
    refused = strict_request(wire_api, case.refused, case.model, case.headers)
    with pytest.raises(Rejection) as caught:
        case.rule(refused)
    assert case.message in caught.value.message
    with pytest.raises(Rejection):
        check(RULES[wire_api], refused)
    headers = case.headers
    if case.accepted_headers is not None:
        headers = case.accepted_headers
    accepted = strict_request(wire_api, case.accepted, case.model, headers)
    check(RULES[wire_api], accepted)


def rule_names(rules: Iterable[Rule]) -> set[str]:
    """The names of rules."""
    return {getattr(rule, "__name__", "") for rule in rules}


def case_ids(cases: Iterable[Case]) -> list[str]:
    """Names of the cases: the rule, and a number from its second case on."""
    counts: Counter[str] = Counter()
    ids: list[str] = []
    for case in cases:
        name = getattr(case.rule, "__name__", "")
        counts[name] += 1
        ids.append(f"{name}-{counts[name]}")
    return ids
