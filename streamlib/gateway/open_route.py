"""Routes of paths that need no token."""

from __future__ import annotations

from starlette.routing import Match, Route
from starlette.types import Scope


class OpenRoute(Route):
    """A route that has its path to itself: another method gets 405, with ``Allow``.

    A usual route leaves other methods to the routes after it. The last of those serves requests for
    models, which whoever has no token must not reach: they are recorded, logged and counted.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the request is for this route, whatever its method (ASGI scope)."""
        match, child_scope = super().matches(scope)
        if match is Match.PARTIAL:
            match = Match.FULL
        return match, child_scope
