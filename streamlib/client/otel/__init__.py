"""OpenTelemetry: what `Client(telemetry=…)` records, and a span around one stream.

`Telemetry` and `traced` need the extra `otel`; the attributes are pure functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlib.client.otel.attributes import request_attributes, span_attributes
from streamlib.lazy import lazy

if TYPE_CHECKING:
    from streamlib.client.otel.telemetry import Telemetry
    from streamlib.client.otel.traced import traced

__all__ = ["Telemetry", "request_attributes", "span_attributes", "traced"]

_MODULES = {
    "streamlib.client.otel.telemetry": ("Telemetry",),
    "streamlib.client.otel.traced": ("traced",),
}

__getattr__, __dir__ = lazy(__name__, _MODULES)
