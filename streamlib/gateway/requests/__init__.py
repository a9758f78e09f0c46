"""Requests of clients, from their first byte to the end of their responses."""
