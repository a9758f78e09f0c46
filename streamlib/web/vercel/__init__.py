"""The AI SDK's UI message stream: its encoder, and the requests of `useChat`."""
