"""The strict provider: it refuses what the real service refuses, and signs what it gives out.

Each rule is a function of a request, with its number in docs/wires and its source; each wire has a
module and a tuple of them. `Behaviour(strict=True)` turns it on.
"""

from __future__ import annotations

from streamlib.loopback.strict.ledger import Ledger
from streamlib.loopback.strict.provider import StrictProvider
from streamlib.loopback.strict.rules import Rejection, StrictRequest

__all__ = ["Ledger", "Rejection", "StrictProvider", "StrictRequest"]
