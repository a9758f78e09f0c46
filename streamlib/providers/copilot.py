"""GitHub Copilot: https://docs.github.com/en/copilot.

No editor's identity is sent, only whether a person or an agent sends the request and whether it has
images. The key is a GitHub token, or `api_key=` a function that exchanges it; a business or an
enterprise has an address of its own (`base_url=`). GPT-5 is served by Responses.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape

PROVIDER = Provider(
    name="copilot",
    parses_calls=True,
    aliases=("github-copilot",),
    wires=("chat", "responses", "messages"),
    base_url="https://api.githubcopilot.com",
    other_urls=(
        "https://api.individual.githubcopilot.com",
        "https://api.business.githubcopilot.com",
        "https://api.enterprise.githubcopilot.com",
    ),
    key_env=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    headers={"anthropic-version": "2023-06-01", "openai-intent": "conversation-edits"},
    prepare=("initiator",),
    chat=ChatShape(reasoning_echo=("reasoning_opaque", "reasoning_text"), custom_tools=False),
    model_overrides={"gpt-5": {"wires": ("responses", "chat")}, "gpt-5-mini": {}},
)
