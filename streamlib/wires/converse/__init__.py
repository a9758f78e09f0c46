"""Bedrock Converse: request builder, request decoder, response encoder."""
