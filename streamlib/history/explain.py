"""Why a prompt cache was used or not: `explain_cache` compares two requests as a provider does.

A cache keeps the beginning of a request. So the first part that differs decides, in the provider's
order (tools, system prompt, messages), and then the rules of its family (`cache_rules`): marks,
lifetimes, a minimum, settings that are part of the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from msgspec import Struct

from streamlib.history.differences import CacheDifference, first_difference
from streamlib.history.request_parts import RequestParts, request_parts, value_at
from streamlib.providers.cache_rules import CacheRule, cache_rule, named_cache_rule
from streamlib.request.build import Request
from streamlib.request.token_count import TOOLS
from streamlib_parsers.items import ServerToolCall
from streamlib_parsers.response import Response
from streamlib_parsers.usage import Usage

HIDDEN: Final = 1024
"""Tokens that a provider may add to a request, and that are in none of its parts."""

DENSEST: Final = 1.5
"""Characters of a token where they are fewest: a maximum counts with these."""

AVERAGE: Final = 4
"""Characters of a token, as the estimates of parts count."""

STORED: Final = ("/previous_response_id", "/conversation", "/previous_interaction_id")
"""Fields of a request whose history the provider stores."""

CONTENT: Final = ("/cachedContent", "/cached_content")
"""Fields of a request that begins with content which the provider was told to keep (gemini)."""


class TokenRange(NamedTuple):
    """Tokens from `low` to `high`, both possible."""

    low: int
    high: int

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:,}"
        return f"{self.low:,} to {self.high:,}"


NONE: Final = TokenRange(0, 0)


class CacheExplanation(Struct, frozen=True, kw_only=True):
    """What a cache can do with a request after an earlier one.

    Attributes:
        path: JSON pointer of the first part that differs, in the body of the later request; of the
            earlier one where the part is missing in the later. None: the later request begins with
            all of the earlier.
        cause: why less is read than the earlier request had, in words; None: nothing is lost.
        reason: the same in the provider's word (`tools_changed`), as `Response.cache_diagnosis` has
            it; `expired`, `mark_missing`, `look_back_exceeded`, `below_minimum`, `account_changed`,
            `endpoint_changed` where no provider has one.
        expected_read: tokens read from the cache.
        expected_write: tokens written to it.
        kept_bytes: bytes of the parts of the earlier request up to there.
        lost_bytes: bytes of its other parts.
        rule: what is known of this family of models.
    """

    path: str | None
    cause: str | None
    reason: str | None
    expected_read: TokenRange
    expected_write: TokenRange
    kept_bytes: int
    lost_bytes: int
    rule: CacheRule

    def __str__(self) -> str:
        """Two lines for people."""
        first = "The later request begins with all of the earlier one."
        if self.cause is not None:
            first = f"{self.cause} ({self.reason})"
            if self.path is not None:
                first += f" at {self.path}"
        return (
            f"{first}\nExpected: {self.expected_read} tokens read, {self.expected_write} written; "
            f"{self.kept_bytes:,} bytes are the same, {self.lost_bytes:,} lost "
            f"(rules of {self.rule.read_on})."
        )


def explain_cache(
    before: Request,
    after: Request,
    elapsed: float = 0.0,
    *,
    response: Response | None = None,
    tokens: int | None = None,
    rules: Mapping[str, CacheRule] | None = None,
) -> CacheExplanation:
    """What the cache can do with `after`, which was sent after `before`, and why not more.

    Args:
        before: the earlier request, as `build` or `stream.request` has it.
        after: the later one, to the same provider.
        elapsed: seconds between them. Each read renews an entry, so it is the time since the last
            request that read it.
        response: to `before`. Its usage replaces the estimate of four characters a token, and makes
            the numbers of marked requests exact.
        tokens: input tokens of `after`, where they are known (`Client.count`).
        rules: rules of your own that win over the shipped ones, by the beginnings of models' names;
            dots in versions are hyphens (``"claude-opus-4-5"``).

    Raises:
        ValueError: the requests go to different providers or wires, a body is no JSON object, time
            runs backwards, or what `before` continues is known to its provider only.
        TypeError: one is no `Request`, or `elapsed` no number.
    """
    _check(before, after, elapsed)
    earlier, later = request_parts(before, "before"), request_parts(after, "after")
    provider = after.origin.provider
    rule = cache_rule(after.wire_api, provider, after.model)
    if rules is not None:
        rule = named_cache_rule(provider, after.model, rules) or rule
    if _has(earlier, STORED + CONTENT) and response is None:
        raise ValueError(
            f"before: it begins with what {provider} stores, so its length is unknown: "
            "pass `response=`"
        )
    is_stored = _has(later, STORED)
    difference = first_difference(before, after, earlier, later, rule, is_stored=is_stored)
    counts = _Counts(earlier, later, rule, response, tokens)
    outcome = _Outcome(earlier, later, difference, counts, rule, elapsed)
    return outcome.explained()


def _check(before: Request, after: Request, elapsed: float) -> None:
    for name, request in (("before", before), ("after", after)):
        if not isinstance(request, Request):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(request).__name__
            raise TypeError(f"{name} is a Request, as `build` returns it, not a {kind}")
    first, second = before.origin, after.origin
    if first.provider != second.provider:
        raise ValueError(
            f"after: it goes to {second.provider}, and `before` to {first.provider}: "
            "each provider has a cache of its own"
        )
    if before.wire_api != after.wire_api:
        raise ValueError(
            f"after: it is a request of {after.wire_api}, and `before` one of {before.wire_api}: "
            "they have no common form"
        )
    is_number = isinstance(elapsed, (int, float))  # pyright: ignore[reportUnnecessaryIsInstance]
    if isinstance(elapsed, bool) or not is_number:
        raise TypeError(f"elapsed is a number of seconds, not {elapsed!r:.60}")
    if not math.isfinite(elapsed) or elapsed < 0:
        raise ValueError(f"elapsed is a number of seconds from 0, not {elapsed}")


def _has(parts: RequestParts, fields: Sequence[str]) -> bool:
    return any(value_at(parts.body, path) for path in fields)


class _Counts:
    """Tokens of the beginnings of both requests: estimated, or anchored on the usage of one."""

    def __init__(
        self,
        earlier: RequestParts,
        later: RequestParts,
        rule: CacheRule,
        response: Response | None,
        tokens: int | None,
    ) -> None:
        usage = (response.usage if response is not None else None) or Usage()
        self.read = usage.cache_read_input_tokens or 0
        """Tokens that the earlier request read."""
        self._input = usage.input_tokens
        if self._input is not None and (rule.reads_beside or self.read > self._input):
            self._input += self.read
        self.is_reported = self._input is not None
        self._output = (usage.output_tokens or 0) + rule.turn
        self._marked = self.read + (usage.cache_write_input_tokens or 0)
        counted = (usage.cache_read_input_tokens, usage.cache_write_input_tokens)
        self.wrote_nothing = counted != (None, None) and not self._marked
        """Whether the provider reported that the earlier request read and wrote nothing."""
        items = response.items if response is not None else ()
        self.is_sum = any(isinstance(item, ServerToolCall) for item in items)
        """Whether the usage is the sum of several samplings, between which the provider ran a tool:
        then it is only a maximum."""
        self._estimates = [_sums(earlier), _sums(later)]
        marks = earlier.marks()
        self._last_mark = marks[-1][0] if marks else None
        self._earlier, self._later, self._tokens = earlier, later, tokens

    def earlier(self, index: int) -> int:
        """Tokens of the earlier request up to a part and with it."""
        if self._marked and index == self._last_mark:
            return self._marked
        estimate = self._estimates[0]
        if self._input is None:
            return round(estimate[index + 1])
        if index + 1 == len(self._earlier.parts):
            return self._input
        share = estimate[index + 1] / max(estimate[-1], 1)
        return round(share * self._input)

    def later(self, index: int) -> int:
        """Tokens of the later request up to a part and with it."""
        total = self._tokens
        estimate = self._estimates[1]
        if total is None:
            return self._added(index)
        if index + 1 == len(self._later.parts):
            # What stands behind the last part is in no cache.
            is_last = self._last_mark == len(self._earlier.parts) - 1
            tail = 0
            if is_last and self._input is not None and self._marked:
                tail = self._input - self._marked
            return total - tail
        return round(total * estimate[index + 1] / max(estimate[-1], 1))

    def _added(self, index: int) -> int:
        """The estimate, from where the earlier request ends."""
        estimate, known = self._estimates[1], len(self._earlier.parts)
        if self._input is None or index < known or known >= len(estimate):
            return round(estimate[index + 1])
        return round(self._input + estimate[index + 1] - estimate[known])

    def most(self, parts: int, *, is_all: bool) -> int:
        """The most tokens that an automatic cache can hold of the first parts of both.

        Args:
            parts: how many are the same.
            is_all: whether the later request begins with all of the earlier one; then the output of
                the earlier may be in the cache as well.
        """
        if self._input is not None and is_all:
            return self._input + self._output
        estimate = self._estimates[1]
        known = parts
        if is_all:
            # The turn of the model is in the later request.
            while known < len(self._later.parts) and self._later.parts[known].role in MODELS:
                known += 1
        known = min(known, len(self._later.parts))
        bound = round(estimate[known] * AVERAGE / DENSEST) + HIDDEN
        if self._input is not None:
            return min(bound, self._input + self._output)
        return bound


APART: Final = ("model_changed", "account_changed", "endpoint_changed")
"""Reasons of requests that have no cache in common."""

MODELS: Final = ("assistant", "model", "")
"""Roles of turns of the model; items of calls have none."""


def _sums(parts: RequestParts) -> list[float]:
    """Estimated tokens of the first 0, 1, 2 … parts."""
    tokens = [part.tokens for part in parts.parts]
    if parts.count("tools"):
        tokens[0] += TOOLS  # the first of them is the first of all
    return list(accumulate(tokens, initial=0.0))


class _CacheEntry(NamedTuple):
    """What the earlier request left in the cache: a prefix."""

    last: int
    """Index of its last part."""
    life: float
    """Seconds."""
    is_explicit: bool


class _Outcome:
    """What is read of the entries that the earlier request left, and what is written."""

    def __init__(
        self,
        earlier: RequestParts,
        later: RequestParts,
        difference: CacheDifference | None,
        counts: _Counts,
        rule: CacheRule,
        elapsed: float,
    ) -> None:
        self._earlier, self._later = earlier, later
        self._difference = difference
        self._counts = counts
        self._rule = rule
        self._elapsed = elapsed
        self._intact = len(earlier.parts) if difference is None else difference.intact
        """How many parts of the earlier request the cache can read for the later one."""
        self._cause: tuple[str, str] | None = None
        """Cause and reason, beside the difference."""

    def explained(self) -> CacheExplanation:
        """The explanation."""
        # What a stored history has marked is not in the request.
        if self._rule.how == "automatic" or _has(self._later, STORED + CONTENT):
            read, write = self._automatic()
        else:
            read, write = self._marked()
        difference = self._difference
        path, cause, reason = None, None, None
        if difference is not None:
            path, cause, reason = difference.path, difference.cause, difference.reason
        if self._cause is not None:
            cause, reason = self._cause
        sizes = [len(part.content) for part in self._earlier.parts]
        return CacheExplanation(
            path=path,
            cause=cause,
            reason=reason,
            expected_read=read,
            expected_write=write,
            kept_bytes=sum(sizes[: self._intact]),
            lost_bytes=sum(sizes[self._intact :]),
            rule=self._rule,
        )

    # --- caches that choose themselves ---

    def _automatic(self) -> tuple[TokenRange, TokenRange]:
        rule = self._rule
        if self._intact == 0 and self._difference is not None:
            is_apart = self._difference.reason in APART
            return TokenRange(0, 0 if is_apart else rule.hidden), NONE
        content = self._counts.read if _has(self._later, CONTENT) else 0
        most = self._counts.most(self._intact, is_all=self._difference is None)
        least = most if self._counts.is_reported else most - HIDDEN
        most = max(most - most % rule.step, content)
        if least < rule.minimum and not content:
            self._note(f"under the minimum of {rule.minimum:,} tokens", "below_minimum")
            return NONE, NONE
        retention = value_at(self._earlier.body, "/prompt_cache_retention")
        life = self._life(str(retention or ""))
        if self._elapsed > life:
            self._expired(life)
            if rule.gone is not None and self._elapsed > rule.gone:
                return NONE, NONE
        return TokenRange(content, most), NONE

    # --- caches with marks ---

    def _marked(self) -> tuple[TokenRange, TokenRange]:
        entries, targets = self._entries(), self._targets()
        if self._counts.is_sum and not (entries and targets):
            # The provider caches between its own samplings, whatever is marked.
            return TokenRange(0, self._counts.most(self._intact, is_all=True)), NONE
        if not entries or not targets:
            which = "earlier" if not entries else "later"
            self._note(f"a missing mark: the {which} request asks for no cache", "mark_missing")
            return NONE, self._written(NONE, targets)
        shared = [entry for entry in entries if entry.last < self._intact]
        if not shared:
            return NONE, self._written(NONE, targets)
        read = self._read_of(shared, targets)
        return read, self._written(read, targets)

    def _read_of(self, shared: Sequence[_CacheEntry], targets: Sequence[int]) -> TokenRange:
        """What is read of entries that both requests begin with."""
        rule = self._rule
        large = [entry for entry in shared if self._counts.earlier(entry.last) >= rule.minimum]
        if not large or self._counts.wrote_nothing:
            self._note(f"under the minimum of {rule.minimum:,} tokens", "below_minimum")
            return NONE
        near = [entry for entry in large if self._is_found(entry.last, targets)]
        if not near:
            if all(entry.last > max(targets) for entry in large):
                self._note("a missing mark: the later request asks for less", "mark_missing")
            else:
                limit = rule.look_back or rule.matches
                cause = f"over {limit} blocks since a written mark"
                self._note(cause, "look_back_exceeded")
            return NONE
        alive = [entry for entry in near if self._elapsed <= entry.life]
        if len(alive) < len(near) and (not alive or alive[-1].last < near[-1].last):
            self._expired(near[-1].life)
        most = near if rule.is_least else alive
        if not most:
            return NONE
        high = self._counts.earlier(most[-1].last)
        explicit = [entry for entry in alive if entry.is_explicit]
        low = 0
        if explicit and not self._counts.is_sum:
            low = self._counts.earlier(explicit[-1].last)
        return TokenRange(min(low, high), high)

    def _is_found(self, index: int, targets: Sequence[int]) -> bool:
        """Whether a mark of the later request finds an entry up to this part."""
        look_back = self._rule.look_back
        matches = self._rule.matches
        if matches is not None and sum(target > index for target in targets) >= matches:
            return False
        reach = math.inf if look_back is None else look_back
        return any(0 <= target - index <= reach for target in targets)

    def _entries(self) -> list[_CacheEntry]:
        """What the earlier request left, the shortest first."""
        rule = self._rule
        options = value_at(self._earlier.body, "/prompt_cache_options/ttl")
        own = str(options or "")
        marks = self._earlier.marks()
        implicit = self._implicit(self._earlier)
        writes = rule.writes - 1 if implicit is not None else rule.writes
        written = marks[max(len(marks) - writes, 0) :]
        entries = [
            _CacheEntry(index, self._life(ttl or own), is_explicit=True) for index, ttl in written
        ]
        if implicit is not None and all(entry.last != implicit for entry in entries):
            entries.append(_CacheEntry(implicit, self._life(own), is_explicit=False))
        return entries

    def _targets(self) -> list[int]:
        """Indexes of the parts of the later request up to which the cache is asked."""
        targets = [index for index, _ in self._later.marks()]
        implicit = self._implicit(self._later)
        if implicit is not None:
            targets.append(implicit)
        return targets

    def _implicit(self, parts: RequestParts) -> int | None:
        """Index of the part behind which the provider itself sets a mark, None if it does not."""
        if self._rule.how != "breakpoints" or not parts.parts:
            return None
        if value_at(parts.body, "/prompt_cache_options/mode") == "explicit":
            return None
        return len(parts.parts) - 1

    def _life(self, ttl: str) -> float:
        lives = self._rule.lives
        return lives.get(ttl, lives.get("", math.inf))

    def _written(self, read: TokenRange, targets: Sequence[int]) -> TokenRange:
        rule = self._rule
        if not targets or not rule.counts_writes:
            return NONE
        last = max(targets)
        end = self._counts.later(last)
        if last < self._intact:
            end = self._counts.earlier(last)
        high = max(end - read.low, 0)
        if self._implicit(self._later) is not None:
            return TokenRange(0, high)
        if end < rule.minimum:
            return NONE
        return TokenRange(max(end - read.high, 0), high)

    # --- causes ---

    def _expired(self, life: float) -> None:
        cause = f"an expired mark: it lives {life:g} seconds, and {self._elapsed:g} went by"
        if self._rule.how == "automatic":
            cause = f"expired: the cache lives {life:g} seconds, and {self._elapsed:g} went by"
        self._note(cause, "expired")

    def _note(self, cause: str, reason: str) -> None:
        self._cause = (cause, reason)
