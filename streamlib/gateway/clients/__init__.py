"""Who uses the gateway: access, names, limits."""
