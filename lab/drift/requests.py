"""Feeds every parameter of the SDKs' requests to the decoders, and builds the request again."""

from __future__ import annotations

from lab.drift.judge import Judgement, Verdict
from lab.fidelity.compare import WireTable, compare
from lab.fidelity.shapes import covering
from lab.fidelity.tables import TABLES


def judgements() -> list[Judgement]:
    """One judgement a parameter, in the order of the wires."""
    judged: list[Judgement] = []
    for table in TABLES.values():
        judged += _of_wire(table)
    return judged


def _of_wire(table: WireTable) -> list[Judgement]:
    parameters = {name: Judgement(table.wire_api, name) for name in table.request().fields}
    for body in covering(table.request()):
        outcome = compare(table, body)
        verdicts: dict[str, Verdict] = {}
        for loss, _ in outcome.reported:
            verdicts[_parameter(loss.pointer)] = "reported"
        lost: dict[str, set[str]] = {}
        for loss in outcome.silent:
            name = _parameter(loss.pointer)
            verdicts[name] = "lost"
            lost.setdefault(name, set()).add(loss.pattern)
        for name in body:
            parameters[name].add(verdicts.get(name, "kept"), lost.get(name, ()))
    return list(parameters.values())


def _parameter(pointer: str) -> str:
    return pointer.split("/")[1]
