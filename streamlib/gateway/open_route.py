"""Routes to paths that need no token."""

from __future__ import annotations

from starlette.routing import Match, Route

from streamlib.asgi import Scope


class OpenRoute(Route):
    """A route that also handles other methods on its path: they receive 405 with ``Allow``.

    An ordinary route leaves other methods to later routes. The last of these serves requests for
    models, which must not be reachable without a token: it records, logs and counts them.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the path of a request (ASGI scope) is that of the route, whatever the method."""
        match, child_scope = super().matches(scope)
        if match is Match.PARTIAL:
            match = Match.FULL
        return match, child_scope
