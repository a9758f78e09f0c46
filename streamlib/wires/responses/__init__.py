"""OpenAI Responses: request builder, request decoder, response encoder."""
