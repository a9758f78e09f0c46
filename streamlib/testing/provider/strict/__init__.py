"""The strict provider: it refuses what the real service refuses, and signs what it sends.

Each rule is a function that raises what it refuses a request with; its docstring names its number
in docs/wires and its source.
Each wire has a module with a tuple of rules. `Behaviour(strict=True)` turns them on.
"""

from __future__ import annotations

from streamlib.testing.provider.strict.ledger import Ledger
from streamlib.testing.provider.strict.provider import StrictProvider
from streamlib.testing.provider.strict.rules import Rejection, StrictRequest

__all__ = ["Ledger", "Rejection", "StrictProvider", "StrictRequest"]
