"""Cohere v2 chat: `build` (prompt to request), `decode` (request to prompt), `encode` (events to
bytes)."""
