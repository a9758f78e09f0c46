"""What is seen of requests: log, metrics, spans, records and the page."""
