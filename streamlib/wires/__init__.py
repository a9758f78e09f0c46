"""The wire APIs: a folder each with request builder, request decoder and response encoder."""
