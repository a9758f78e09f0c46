"""AG-UI: its encoder, and the requests of its client."""
