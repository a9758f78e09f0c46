"""Ollama `/api/chat`: request builder, request decoder, response encoder."""
