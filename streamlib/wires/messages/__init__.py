"""Anthropic Messages: request builder, request decoder, response encoder."""
