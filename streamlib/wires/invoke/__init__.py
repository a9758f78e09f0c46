"""Bedrock InvokeModelWithResponseStream: request builder, request decoder, response encoder."""
