"""Gemini generateContent: request builder, request decoder, response encoder."""
