"""The generated tables of docs/providers.md and the snapshots of requests."""
