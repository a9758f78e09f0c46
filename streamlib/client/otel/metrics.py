"""The metrics of the GenAI conventions, as instruments of one meter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.metrics import Counter, Histogram, Meter

from streamlib_parsers.usage import Usage

SECONDS: Final = tuple(0.01 * 2**step for step in range(14))
"""Boundaries of durations: 10 ms to 82 s, as the conventions have them."""

TOKENS: Final = tuple(float(4**step) for step in range(14))
"""Boundaries of numbers of tokens: 1 to 67 million, as the conventions have them."""

DURATIONS: Final = (
    "gen_ai.client.inference.duration",
    "gen_ai.client.inference.time_to_first_chunk",
    "gen_ai.client.inference.time_per_output_chunk",
    "gen_ai.invoke_agent.duration",
    "gen_ai.execute_tool.duration",
)
"""Histograms of seconds."""

COUNTS: Final = {
    "gen_ai.invoke_agent.inference_calls": "{inference_call}",
    "gen_ai.invoke_agent.tool_calls": "{tool_call}",
}
"""Histograms of numbers -> their unit."""

USAGE: Final = {
    "input_tokens": "gen_ai.client.inference.usage.input_tokens",
    "output_tokens": "gen_ai.client.inference.usage.output_tokens",
    "cache_read_input_tokens": "gen_ai.client.inference.usage.cache_read.input_tokens",
    "cache_write_input_tokens": "gen_ai.client.inference.usage.cache_write.input_tokens",
    "reasoning_output_tokens": "gen_ai.client.inference.usage.reasoning.output_tokens",
}
"""Field of `Usage` -> the counter of its tokens."""

MODALITIES: Final = {
    "input_tokens": "input_modalities",
    "output_tokens": "output_modalities",
    "cache_read_input_tokens": "cache_modalities",
}
"""Field of `Usage` -> the field that divides it by modality."""

OPERATION_TOKENS: Final = {
    "input_tokens": "gen_ai.client.inference.operation.input_tokens",
    "output_tokens": "gen_ai.client.inference.operation.output_tokens",
}
"""Field of `Usage` -> the histogram of its tokens."""

OLDER_DURATION: Final = "gen_ai.client.operation.duration"
OLDER_TOKENS: Final = "gen_ai.client.token.usage"

METRIC_ATTRIBUTES: Final = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
    "server.port",
)
"""Attributes of a span that its metrics have, too."""


class Metrics:
    """The instruments.

    Args:
        meter: makes them.
        older_names: whether the two metrics that had other names are recorded under these, too.
    """

    def __init__(self, meter: Meter, *, older_names: bool) -> None:
        self._older_names = older_names
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}
        seconds = [*DURATIONS, OLDER_DURATION] if older_names else DURATIONS
        tokens = list(OPERATION_TOKENS.values())
        if older_names:
            tokens.append(OLDER_TOKENS)
        for name in seconds:
            self._add_histogram(meter, name, "s", SECONDS)
        for name in tokens:
            self._add_histogram(meter, name, "{token}", TOKENS)
        for name, unit in COUNTS.items():
            self._add_histogram(meter, name, unit, None)
        for name in USAGE.values():
            self._counters[name] = meter.create_counter(name, "{token}")

    def _add_histogram(
        self, meter: Meter, name: str, unit: str, boundaries: tuple[float, ...] | None
    ) -> None:
        self._histograms[name] = meter.create_histogram(
            name, unit, explicit_bucket_boundaries_advisory=boundaries
        )

    def record(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        """Records a value in the histogram of a name."""
        self._histograms[name].record(value, dict(attributes))

    def record_request(
        self, span: Mapping[str, Any], seconds: float, usage: Usage | None, *, is_stream: bool
    ) -> None:
        """Records the metrics of one request.

        Args:
            span: the attributes of its span.
            seconds: how long it took.
            usage: its tokens; None: the provider reported none, which counts as 0.
            is_stream: whether there was a first chunk to wait for.
        """
        attributes = metric_attributes(span)
        failed = dict(attributes)
        if "error.type" in span:
            failed["error.type"] = span["error.type"]
        self.record("gen_ai.client.inference.duration", seconds, failed)
        first_chunk = span.get("gen_ai.response.time_to_first_chunk")
        if is_stream and first_chunk is not None:
            self.record("gen_ai.client.inference.time_to_first_chunk", first_chunk, attributes)
        self._add_usage(attributes, usage or Usage())
        for field, name in OPERATION_TOKENS.items():
            self.record(name, getattr(usage, field, None) or 0, failed)
        if self._older_names:
            self._record_older(attributes, failed, seconds, usage or Usage())

    def _add_usage(self, attributes: Mapping[str, Any], usage: Usage) -> None:
        for field, name in USAGE.items():
            total = getattr(usage, field) or 0
            by_modality: dict[str, int] = {}
            if field in MODALITIES:
                by_modality = getattr(usage, MODALITIES[field])
            rest = total - sum(by_modality.values())
            if rest > 0 or not by_modality:
                by_modality = {**by_modality, "unknown": max(rest, 0)}
            for modality, number in by_modality.items():
                self._counters[name].add(number, {**attributes, "gen_ai.token.modality": modality})

    def _record_older(
        self,
        attributes: Mapping[str, Any],
        failed: Mapping[str, Any],
        seconds: float,
        usage: Usage,
    ) -> None:
        self.record(OLDER_DURATION, seconds, failed)
        for kind in ("input", "output"):
            number = getattr(usage, f"{kind}_tokens")
            if number is not None:
                self.record(OLDER_TOKENS, number, {**attributes, "gen_ai.token.type": kind})


def metric_attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a span that its metrics have."""
    return {name: span[name] for name in METRIC_ATTRIBUTES if name in span}
