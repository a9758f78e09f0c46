"""UI protocols: events to Vercel's UI message stream, AG-UI and JSON lines."""
