"""What every step of a request build needs: where the request goes, and the report it fills."""

from __future__ import annotations

from dataclasses import dataclass

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import Target
from streamlib_parsers.items import WireApi


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The target of one build and the report of its changes. A wire adds state in a subclass."""

    target: Target
    report: Report
    """Filled while the request is built; read once the body is complete."""


def continues_stored_history(prompt: Prompt, wire_api: WireApi) -> bool:
    """Whether the request continues a history that the provider stores."""
    extra = prompt.extra or {}
    return any(extra.get(name) for name in WIRE_SPECS[wire_api].stored_history)
