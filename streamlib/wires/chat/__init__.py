"""OpenAI Chat Completions: request builder, request decoder, response encoder."""
