"""Where requests go: routes, the choice of a target, its streams."""
