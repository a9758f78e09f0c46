"""Figures of Responses over WebSocket: `python -m tests.websocket`."""
