"""Figures of Responses over WebSocket: `python -m lab.websocket`."""
