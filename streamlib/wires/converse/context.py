"""What every step of a Converse build needs beyond the target and the report."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamlib.request.target import BuildContext
from streamlib.wires.bedrock import BedrockFamily


@dataclass(frozen=True, slots=True)
class ConverseContext(BuildContext):
    """The context of one build, with the family of its model."""

    family: BedrockFamily
    document_names: dict[str, int] = field(default_factory=dict)
    """Document names in use -> the last number tried for a second document of that name.

    Filled while parts are built: a request may hold a name only once.
    """  # rule B11
