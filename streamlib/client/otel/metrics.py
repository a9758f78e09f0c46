"""The metrics of the GenAI conventions, as instruments of one meter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.metrics import Counter, Histogram, Meter

from streamlib.request.json_objects import without_none
from streamlib_parsers.usage import Usage

BOUNDARIES: Final = {
    "s": [0.01 * 2**step for step in range(14)],
    "{token}": [float(4**step) for step in range(14)],
}
"""Unit -> the boundaries of its histograms: 10 ms to 82 s, 1 to 67 million tokens."""

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

HISTOGRAMS: Final = {
    "gen_ai.client.inference.duration": "s",
    "gen_ai.client.inference.time_to_first_chunk": "s",
    "gen_ai.client.inference.time_per_output_chunk": "s",
    **dict.fromkeys(OPERATION_TOKENS.values(), "{token}"),
    "gen_ai.invoke_agent.duration": "s",
    "gen_ai.invoke_agent.inference_calls": "{inference_call}",
    "gen_ai.invoke_agent.tool_calls": "{tool_call}",
    "gen_ai.execute_tool.duration": "s",
    OLDER_DURATION: "s",
    OLDER_TOKENS: "{token}",
}
"""Histogram -> its unit. One without a value is never exported."""

METRIC_ATTRIBUTES: Final = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
    "server.port",
)
"""Attributes of a span that its metrics have, too."""


class Instruments:
    """The instruments.

    Args:
        meter: makes them.
        older_names: whether the two metrics that had other names are recorded under these, too.
    """

    def __init__(self, meter: Meter, *, older_names: bool) -> None:
        self._older_names = older_names
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}
        for name, unit in HISTOGRAMS.items():
            self._histograms[name] = meter.create_histogram(
                name, unit, explicit_bucket_boundaries_advisory=BOUNDARIES.get(unit)
            )
        for name in USAGE.values():
            self._counters[name] = meter.create_counter(name, "{token}")

    def record(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        """Records a value in the histogram of a name."""
        self._histograms[name].record(value, dict(attributes))

    def record_request(self, span: Mapping[str, Any], seconds: float, usage: Usage | None) -> None:
        """Records the metrics of one request.

        Args:
            span: the attributes of its span.
            seconds: how long it took.
            usage: its tokens; None: the provider reported none, which counts as 0.
        """
        attributes = metric_attributes(span)
        failed = without_none({**attributes, "error.type": span.get("error.type")})
        self.record("gen_ai.client.inference.duration", seconds, failed)
        first_chunk = span.get("gen_ai.response.time_to_first_chunk")
        if first_chunk is not None and "gen_ai.request.stream" in span:
            self.record("gen_ai.client.inference.time_to_first_chunk", first_chunk, attributes)
        self._add_usage(attributes, usage or Usage())
        for field, name in OPERATION_TOKENS.items():
            self.record(name, getattr(usage, field, None) or 0, failed)
        if self._older_names:
            self.record(OLDER_DURATION, seconds, failed)
            for kind in ("input", "output"):
                number = getattr(usage, f"{kind}_tokens", None)
                if number is not None:
                    self.record(OLDER_TOKENS, number, {**attributes, "gen_ai.token.type": kind})

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


def metric_attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a span that its metrics have."""
    return {name: span[name] for name in METRIC_ATTRIBUTES if name in span}
