"""What no case of bytes can show: what peers have and this library does not, as their documentation
says. By hand; not run."""

from __future__ import annotations

from typing import Final

LACKING: Final = (
    (
        "Blocking code. Every library here has a blocking client; `streamlib` parses without a "
        "loop, but its client is asynchronous only."
    ),
    (
        "A WebSocket transport: OpenAI's Realtime and Responses over WebSocket, Gemini Live "
        "(openai, google-genai, litellm, "
        "pydantic-ai). Messages that you have framed yourself go in by `feed_event`."
    ),
    (
        "Everything that is not a conversation: files, batches, embeddings, images, audio, "
        "fine-tuning, model management (the official "
        "SDKs; litellm for many providers)."
    ),
    (
        "Native wires: Gemini Interactions (google-genai), Cohere v2 and Mistral's own "
        "(pydantic-ai, litellm, any-llm). Those "
        "providers are reached over Chat."
    ),
    (
        "Answers validated into classes while they stream, with a second try where they do not "
        "fit (pydantic-ai; `parse()` and its kin "
        "in the official SDKs)."
    ),
    (
        "Prices and budgets (litellm, pydantic-ai), a proxy with users, keys and spending "
        "(litellm), an agent framework (pydantic-ai)."
    ),
    (
        "Credential chains: AWS profiles, SSO and instance roles (botocore), Google's application "
        "default credentials (google-genai). "
        "Keys and tokens are given to `streamlib`, or a function that returns them."
    ),
    ("Years of use by others. The official SDKs and litellm meet every odd server first."),
)
