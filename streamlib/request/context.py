"""What every step of a request build needs: where the request goes, and the report it fills."""

from __future__ import annotations

from dataclasses import dataclass

from streamlib.request.report import Report
from streamlib.request.target import Target


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The target of one build and the report of its changes. A wire adds state in a subclass."""

    target: Target
    report: Report
    """Filled while the request is built; read once the body is complete."""
