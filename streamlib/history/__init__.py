"""What a long conversation needs: how many tokens it has, and how it is made shorter."""

from __future__ import annotations

from streamlib.history.fit import FittedHistory, fit
from streamlib.request.token_count import PromptTokens

__all__ = ["FittedHistory", "PromptTokens", "fit"]
