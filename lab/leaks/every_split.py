"""Every split of a text at once: of a text of 80 characters there are 2 ** 79.

What a machine does next depends on its state alone. So all splits that have led to the same state
behind the same characters, with the same output, go on as one.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from streamlib.pipeline.units import TextMachine


class EverySplit(NamedTuple):
    """What all splits of a text have let out.

    Attributes:
        outputs: each text that came out, and the number of splits that it came out of.
        states: the most states that a machine may be in behind one character.
    """

    outputs: dict[str, int]
    states: int


def outputs_of(machine: TextMachine, text: str, shared: object) -> EverySplit:
    """Feeds a text to a machine in every possible way.

    Args:
        machine: one that was fed nothing.
        text: the text.
        shared: what all copies of the machine may share: its patterns.
    """
    reached: list[dict[Any, tuple[TextMachine, str, int]]] = [{} for _ in range(len(text) + 1)]
    """By position: a state to a machine in it, what it has let out, and in how many ways."""
    reached[0][None] = (machine, "", 1)
    for position, states in enumerate(reached):
        for before, output, ways in states.values():
            for end in range(position + 1, len(text) + 1):
                after = copy.deepcopy(before, {id(shared): shared})
                longer = output + "".join(after.feed(text[position:end]))
                key = (_state_of(after), longer)
                known = reached[end].get(key, (after, longer, 0))
                reached[end][key] = (*known[:2], known[2] + ways)
    outputs: dict[str, int] = {}
    for last, output, ways in reached[-1].values():
        whole = output + "".join(last.close())
        outputs[whole] = outputs.get(whole, 0) + ways
    return EverySplit(outputs, max(map(len, reached)))


def _state_of(machine: object) -> tuple[Any, ...]:
    """Everything that a machine knows."""
    state: list[Any] = []
    for name, value in sorted(vars(machine).items()):
        known: Any = repr(value)
        if hasattr(value, "feed"):
            known = _state_of(value)
        state.append((name, known))
    return tuple(state)
