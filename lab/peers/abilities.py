"""What each library has, each shown by a name of its package that must exist."""

from __future__ import annotations

import importlib
from typing import Final, NamedTuple

NODE: Final = "ai"
"""The distribution whose names are looked up by Node."""


TRIO: Final = "runs on trio"
"""The row that is measured: an ordinary response on that event loop."""

PACKAGES: Final = "packages that it installs"
"""The row that pip and npm count."""


class Ability(NamedTuple):
    """A row of the page."""

    title: str
    names: dict[str, str]
    """Distribution -> `module:name`. A library that is not here has nothing of that kind in its own
    package, as far as its documentation says."""


ABILITIES: Final = (
    Ability(
        "parses a response without an HTTP client",
        {"streamlib": "streamlib:parser"},
    ),
    Ability(
        "a gateway that other clients can point at",
        {"streamlib": "streamlib.gateway:Gateway", "litellm": "litellm.proxy.proxy_cli:run_server"},
    ),
    Ability(
        "responses for `useChat`",
        {
            "streamlib": "streamlib.web:StreamResponse",
            "pydantic-ai-slim": "pydantic_ai.ui.vercel_ai:VercelAIAdapter",
            "ai": "createUIMessageStreamResponse",
        },
    ),
    Ability(
        "runs your functions until the model has finished",
        {
            "streamlib": "streamlib:agent",
            "openai": "openai.lib.responses_tool_runner:AsyncResponsesToolRunner",
            "google-genai": "google.genai.types:AutomaticFunctionCallingConfig",
            "litellm": "litellm.tool_loop:arun_tool_loop",
            "anthropic": "anthropic.resources.beta.messages:AsyncMessages.tool_runner",
            "pydantic-ai-slim": "pydantic_ai:Agent",
            "ai": "isStepCount",
        },
    ),
    Ability(
        "a model for tests, without a network",
        {
            "streamlib": "streamlib.testing:scripted",
            "litellm": "litellm.main:mock_completion",
            "pydantic-ai-slim": "pydantic_ai.models.test:TestModel",
            "ai": "ai/test:MockLanguageModelV4",
        },
    ),
    Ability(
        "code without `async`",
        {
            "streamlib": "streamlib:SyncClient",
            "openai": "openai:OpenAI",
            "anthropic": "anthropic:Anthropic",
            "google-genai": "google.genai:Client",
            "boto3": "boto3:client",
            "litellm": "litellm:completion",
            "any-llm-sdk": "any_llm:completion",
            "pydantic-ai-slim": "pydantic_ai:Agent.run_sync",
        },
    ),
    Ability(
        "embeddings",
        {
            "openai": "openai.resources:AsyncEmbeddings",
            "google-genai": "google.genai.models:AsyncModels.embed_content",
            "litellm": "litellm:aembedding",
            "any-llm-sdk": "any_llm:aembedding",
            "pydantic-ai-slim": "pydantic_ai:Embedder",
            "ai": "embed",
        },
    ),
    Ability(
        "the price of a response",
        {
            "litellm": "litellm:completion_cost",
            "pydantic-ai-slim": "pydantic_ai.messages:ModelResponse.cost",
        },
    ),
)


def exists(name: str) -> bool:
    """Whether `module:attribute` can be imported here."""
    module, _, path = name.partition(":")
    try:
        value = importlib.import_module(module)
        for attribute in path.split("."):
            value = getattr(value, attribute)
    except (ImportError, AttributeError):
        return False
    return True


def found(distribution: str) -> dict[str, str]:
    """Title of an ability -> the name that shows it, of one library that is installed here.

    Raises:
        LookupError: a name that no longer exists.
    """
    names: dict[str, str] = {}
    for ability in ABILITIES:
        name = ability.names.get(distribution)
        if name is None:
            continue
        if distribution != NODE and not exists(name):
            raise LookupError(f"{distribution}: {name} does not exist")
        names[ability.title] = name
    return names
