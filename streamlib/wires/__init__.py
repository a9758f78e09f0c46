"""The wire APIs: one folder each with its request builder, request decoder and response encoder; no I/O."""
