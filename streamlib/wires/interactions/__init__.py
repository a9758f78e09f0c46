"""Gemini Interactions: `build` (prompt to request), `decode` (request to prompt), `encode` (events
to bytes)."""
