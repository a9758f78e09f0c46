"""What a long conversation needs: counting, shortening, explaining its cache, recovering it."""

from __future__ import annotations

from streamlib.history.explain import CacheExplanation, TokenRange, explain_cache
from streamlib.history.fit import FittedHistory, fit
from streamlib.history.recover import RecoveredHistory, recover
from streamlib.request.token_count import PromptTokens
from streamlib_parsers.cache_diagnosis import CacheDiagnosis

__all__ = [
    "CacheDiagnosis",
    "CacheExplanation",
    "FittedHistory",
    "PromptTokens",
    "RecoveredHistory",
    "TokenRange",
    "explain_cache",
    "fit",
    "recover",
]
