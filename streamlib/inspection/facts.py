"""The numbers of an inspection: times, tokens, rate limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from streamlib.inspection.clock import Clock, Waits, longest
from streamlib.inspection.document import Facts, RateLimit
from streamlib.inspection.frames import Step
from streamlib.inspection.positions import Positions
from streamlib_parsers.events import TOKEN_EVENTS, RateLimits, Window
from streamlib_parsers.items import JsonObject
from streamlib_parsers.response import Response
from streamlib_parsers.usage import Usage

SHORTEST_OUTPUT: Final = 0.1
"""Seconds between the first and the last output; below it no speed is computed."""


def facts_of(
    clock: Clock,
    steps: Sequence[Step],
    positions: Positions,
    waits: Waits,
    response: Response,
) -> Facts:
    """The facts of a response.

    Args:
        clock: knows when the bytes were received.
        steps: frames of the response.
        positions: its events, counted.
        waits: its silences.
        response: the accumulated response.
    """
    times = clock.times if clock.is_known else []
    first_token, last_token = _output_times(clock, steps)
    first_byte = duration = None
    if times:
        first_byte, duration = times[0], times[-1]
    limits = response.rate_limits or RateLimits()
    # Before its end a response reports the output tokens of its start.
    final_usage = response.usage if positions.is_completed else None
    return Facts(
        bytes=clock.bytes,
        chunks=len(clock.ends),
        frames=len(steps),
        characters=positions.characters,
        events=positions.event_counts,
        first_byte=first_byte,
        first_token=first_token,
        duration=duration,
        tokens_per_second=_speed(final_usage, first_token, last_token),
        usage=usage_fields(response.usage),
        limits=tuple(_limits(limits)),
        retry_after=limits.retry_after,
        request_id=limits.request_id,
        longest_no_bytes=waits.longest_wait,
        longest_no_frame=longest(waits.no_frame),
    )


def _output_times(clock: Clock, steps: Sequence[Step]) -> tuple[float | None, float | None]:
    """When the first and the last output of the model were received; None without output."""
    if not clock.is_known:
        return None, None
    outputs = [step for step in steps if _has_output(step)]
    if not outputs:
        return None, None
    # A frame is complete when its last byte is received.
    return clock.seconds(outputs[0].end - 1), clock.seconds(outputs[-1].end - 1)


def _has_output(step: Step) -> bool:
    return any(type(event) in TOKEN_EVENTS for event in step.events)


def _speed(usage: Usage | None, first: float | None, last: float | None) -> float | None:
    if usage is None or usage.output_tokens is None or first is None or last is None:
        return None
    if last - first < SHORTEST_OUTPUT:
        return None
    return round(usage.output_tokens / (last - first), 1)


def usage_fields(usage: Usage | None) -> JsonObject | None:
    """Token counts, named as in `Usage`, without the provider's own object."""
    if usage is None:
        return None
    fields: JsonObject = msgspec.to_builtins(usage)
    fields.pop("raw", None)
    return fields


def _limits(limits: RateLimits) -> list[RateLimit]:
    windows: dict[str, Window | None] = {
        "requests": limits.requests,
        "tokens": limits.tokens,
        "input_tokens": limits.input_tokens,
        "output_tokens": limits.output_tokens,
        **limits.windows,
    }
    return [_limit(name, window) for name, window in windows.items() if window is not None]


def _limit(name: str, window: Window) -> RateLimit:
    return msgspec.convert({"name": name, **msgspec.to_builtins(window)}, RateLimit)
