"""What a long conversation needs: counting, shortening, explaining its cache, recovering it; and
the formats in which others keep conversations."""

from __future__ import annotations

from streamlib.history.explain import CacheExplanation, TokenRange, explain_cache
from streamlib.history.fit import FittedHistory, fit
from streamlib.history.recover import RecoveredHistory, recover
from streamlib.history.transcripts import (
    DumpedTranscript,
    Transcript,
    dump_transcript,
    load_transcript,
)
from streamlib.request.token_count import PromptTokens
from streamlib_parsers.cache_diagnosis import CacheDiagnosis

__all__ = [
    "CacheDiagnosis",
    "CacheExplanation",
    "DumpedTranscript",
    "FittedHistory",
    "PromptTokens",
    "RecoveredHistory",
    "TokenRange",
    "Transcript",
    "dump_transcript",
    "explain_cache",
    "fit",
    "load_transcript",
    "recover",
]
