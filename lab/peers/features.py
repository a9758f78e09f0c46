"""What no case of bytes can show: what peers have and this library does not, as their documentation
says. By hand; not run."""

from __future__ import annotations

from typing import Final

LACKING: Final = (
    (
        "Speech in both directions: OpenAI's Realtime, Gemini Live (openai, google-genai, litellm, "
        "pydantic-ai)."
    ),
    (
        "Everything that is not a conversation: files, batches, embeddings, images, audio, "
        "fine-tuning, model management (the official SDKs; litellm for many providers)."
    ),
    "Mistral's own conversations API; Mistral is reached over Chat.",
    (
        "A second request if a value does not fit its class (pydantic-ai); here you write that "
        "yourself, in ten lines."
    ),
    (
        "Prices and budgets (litellm, pydantic-ai), a proxy with users and spending (litellm), "
        "an agent framework (pydantic-ai)."
    ),
    ("Components for a page (`@ai-sdk/react`). `useChat` can read what `streamlib` sends."),
    (
        "Credential chains: AWS profiles, SSO and instance roles (botocore), Google's application "
        "default credentials (google-genai). Keys and tokens are given to `streamlib`, or a "
        "function that returns them."
    ),
    "Years of use by others. The official SDKs and litellm have met more servers with deviations.",
)
