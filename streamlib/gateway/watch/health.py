"""Whether the gateway lives, and whether it should be sent requests: for whatever runs it.

`/health` is 200 while the process serves requests at all; `/ready` is 503, with the reasons, while
new requests should go elsewhere. Both are open: what asks has no token.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class Readiness:
    """The reasons for which no new request should be sent here; without any the gateway is
    ready."""

    def __init__(self) -> None:
        self._reasons = {"starting": "the gateway has not started"}
        """Reasons by their names."""

    def block(self, name: str, reason: str) -> None:
        """Adds a reason, or replaces the one of the same name.

        Args:
            name: of the reason (`draining`).
            reason: for a person; it is shown to everybody, so it holds no secret.
        """
        self._reasons[name] = reason

    def unblock(self, name: str) -> None:
        """Removes a reason; there may be none of that name."""
        self._reasons.pop(name, None)

    @property
    def reasons(self) -> list[str]:
        """All reasons, the oldest first."""
        return list(self._reasons.values())


class HealthPages:
    """The two paths."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness

    async def live(self, request: Request) -> Response:
        """`/health`: the process serves requests."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """`/ready`: whether new requests should be sent here, and why not."""
        reasons = self._readiness.reasons
        if reasons:
            return JSONResponse({"ready": False, "reasons": reasons}, 503)
        return JSONResponse({"ready": True, "reasons": []})
