"""OpenTelemetry: what `Client(telemetry=…)` records, and a span around one stream.

`Telemetry` and `traced` need the extra `otel`; the attributes are pure functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlib.lazy import lazy

if TYPE_CHECKING:
    # For type checkers, which do not read the table. `as` makes a name public for them.
    from streamlib.client.otel.attributes import request_attributes as request_attributes
    from streamlib.client.otel.attributes import span_attributes as span_attributes
    from streamlib.client.otel.telemetry import Telemetry as Telemetry
    from streamlib.client.otel.traced import traced as traced

__getattr__, __dir__ = lazy(
    __name__,
    {
        "streamlib.client.otel.attributes": ("request_attributes", "span_attributes"),
        "streamlib.client.otel.telemetry": ("Telemetry",),
        "streamlib.client.otel.traced": ("traced",),
    },
)
