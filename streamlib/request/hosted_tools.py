"""Hosted tools as data: what each API calls the tools that a provider runs itself.

    ToolSpec.hosted("web_search", max_uses=3, allowed_domains=["iana.org"])
        messages   {"type":"web_search_20250305","name":"web_search","max_uses":3,
                    "allowed_domains":["iana.org"]}
        responses  {"type":"web_search","filters":{"allowed_domains":["iana.org"]}}
        gemini     {"googleSearch":{}}

`WIRE_TOOLS` has the declarations of each wire, `PROVIDER_TOOLS` those of providers that differ; a
new version, option or tool is a row here. `hosted_forms.py` reads and writes the declarations,
`fit_tools.py` decides what a request gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from streamlib_parsers.hosted_tools import HostedName
from streamlib_parsers.items import JsonObject, WireApi

Form: TypeAlias = Literal["type", "key", "system_tool"]


class Declaration(Struct, frozen=True, kw_only=True):
    """How one API declares one hosted tool. Paths are dotted; "" where the API lacks the option.

    Attributes:
        types: its type: the first is sent, all are recognised.
        form: where the type stands: in `type`, as the only key of the object (Gemini), or in
            `systemTool.name` (Converse).
        fixed: fields that the API requires besides.
        max_uses: path of the count limit.
        allowed_domains: path of the only domains.
        blocked_domains: path of the excluded domains.
        minus: excluded domains are in the same list as the only ones, each after a minus.
        one_list: only one of the two lists of domains may be given.
        location: path of the user's location.
        stores: path of the file stores, which the API requires.
        restrictions: paths of further options that restrict the tool -> the value that restricts
            nothing; None: any value restricts.
        models: parts of the names of the models that have it; (): all have it.
        source: where this was read, and when.
    """

    types: tuple[str, ...]
    form: Form = "type"
    fixed: JsonObject = {}
    max_uses: str = ""
    allowed_domains: str = ""
    blocked_domains: str = ""
    minus: bool = False
    one_list: bool = False
    location: str = ""
    stores: str = ""
    restrictions: dict[str, Any] = {}
    models: tuple[str, ...] = ()
    source: str


Tools: TypeAlias = dict[HostedName, Declaration]

_ANTHROPIC_SDK: Final = "anthropic 2.12.0, types/tool_union_param.py, November 2026"
_OPENAI_SDK: Final = "openai 3.54.0, types/responses/tool_param.py, November 2026"
_GENAI_SDK: Final = "google-genai 3.4.0, types.py `Tool`, November 2026"

# Of each tool the oldest version in the SDK is sent: every model and Vertex AI take it, and it has
# every option that is portable. Later ones need models that call tools from code.
ANTHROPIC: Final[Tools] = {
    "web_search": Declaration(
        types=("web_search_20250305", "web_search_20260209", "web_search_20260318"),
        fixed={"name": "web_search"},
        max_uses="max_uses",
        allowed_domains="allowed_domains",
        blocked_domains="blocked_domains",
        one_list=True,
        location="user_location",
        source=_ANTHROPIC_SDK,
    ),
    "web_fetch": Declaration(
        types=(
            "web_fetch_20250910",
            "web_fetch_20260209",
            "web_fetch_20260309",
            "web_fetch_20260318",
        ),
        fixed={"name": "web_fetch"},
        max_uses="max_uses",
        allowed_domains="allowed_domains",
        blocked_domains="blocked_domains",
        one_list=True,
        restrictions={"url_sources": None},
        source=_ANTHROPIC_SDK,
    ),
    "code_execution": Declaration(
        types=(
            "code_execution_20250825",
            "code_execution_20250522",
            "code_execution_20260120",
            "code_execution_20260521",
        ),
        fixed={"name": "code_execution"},
        source=_ANTHROPIC_SDK,
    ),
}
"""Anthropic's Messages."""

VERTEX_CLAUDE: Final[Tools] = {
    "web_search": replace(
        ANTHROPIC["web_search"],
        types=("web_search_20250305",),
        source="docs.cloud.google.com, partner-models/claude/web-search, November 2026",
    ),
}
"""Claude on Vertex AI: searching alone, in its first version."""

OPENAI: Final[Tools] = {
    "web_search": Declaration(
        types=(
            "web_search",
            "web_search_2025_08_26",
            "web_search_preview",
            "web_search_preview_2025_03_11",
        ),
        allowed_domains="filters.allowed_domains",
        # Not in the SDK's types, but documented, and sent by other clients:
        # https://github.com/pydantic/pydantic-ai/pull/8323
        blocked_domains="filters.blocked_domains",
        location="user_location",
        restrictions={"external_web_access": True},
        source=f"{_OPENAI_SDK}; developers.openai.com, tools-web-search#domain-filtering",
    ),
    "code_execution": Declaration(
        types=("code_interpreter",),
        fixed={"container": {"type": "auto"}},
        restrictions={"container.network_policy": None},
        source=_OPENAI_SDK,
    ),
    "file_search": Declaration(
        types=("file_search",),
        stores="vector_store_ids",
        restrictions={"filters": None},
        source=_OPENAI_SDK,
    ),
}
"""OpenAI's Responses. It has no `web_fetch`: its web search opens pages itself."""

_XAI_SOURCE: Final = (
    "docs.x.ai, tools; the types that its server names in "
    "https://github.com/maximhq/bifrost/issues/5428, July 2026"
)

XAI: Final[Tools] = {
    "web_search": Declaration(
        types=("web_search",),
        allowed_domains="filters.allowed_domains",
        blocked_domains="filters.excluded_domains",
        one_list=True,
        location="user_location",
        source=_XAI_SOURCE,
    ),
    "code_execution": Declaration(types=("code_interpreter", "code_execution"), source=_XAI_SOURCE),
    "file_search": Declaration(
        types=("file_search", "collections_search"), stores="vector_store_ids", source=_XAI_SOURCE
    ),
}
"""xAI's Responses."""

_PERPLEXITY_SOURCE: Final = "docs.perplexity.ai, Agent API and search-domain-filters, November 2026"

PERPLEXITY: Final[Tools] = {
    "web_search": Declaration(
        types=("web_search",),
        allowed_domains="filters.search_domain_filter",
        blocked_domains="filters.search_domain_filter",
        minus=True,
        one_list=True,
        location="user_location",
        restrictions={"filters.search_recency_filter": None},
        source=_PERPLEXITY_SOURCE,
    ),
    "web_fetch": Declaration(types=("fetch_url",), source=_PERPLEXITY_SOURCE),
    "code_execution": Declaration(types=("sandbox",), source=_PERPLEXITY_SOURCE),
}
"""Perplexity's Responses."""

_OPENROUTER_SOURCE: Final = "openrouter.ai/docs, features/server-tools, November 2026"

OPENROUTER: Final[Tools] = {
    "web_search": Declaration(
        types=("openrouter:web_search",),
        max_uses="parameters.max_uses",
        allowed_domains="parameters.allowed_domains",
        blocked_domains="parameters.excluded_domains",
        one_list=True,
        location="parameters.user_location",
        source=_OPENROUTER_SOURCE,
    ),
    "web_fetch": Declaration(
        types=("openrouter:web_fetch",),
        max_uses="parameters.max_uses",
        allowed_domains="parameters.allowed_domains",
        blocked_domains="parameters.blocked_domains",
        one_list=True,
        source=_OPENROUTER_SOURCE,
    ),
    "code_execution": Declaration(types=("openrouter:bash",), source=_OPENROUTER_SOURCE),
}
"""OpenRouter runs these for any model, in Chat and in Responses."""

_GROQ_SOURCE: Final = "console.groq.com/docs, browser-search and built-in-tools, November 2026"

GROQ: Final[Tools] = {
    "web_search": Declaration(types=("browser_search",), models=("gpt-oss",), source=_GROQ_SOURCE),
    "code_execution": Declaration(
        types=("code_interpreter",), models=("gpt-oss",), source=_GROQ_SOURCE
    ),
}
"""Groq's Chat. Its compound systems use their tools unasked."""

GOOGLE: Final[Tools] = {
    "web_search": Declaration(
        types=("googleSearch",),
        form="key",
        restrictions={"timeRangeFilter": None, "blockingConfidence": None},
        source=_GENAI_SDK,
    ),
    "web_fetch": Declaration(types=("urlContext",), form="key", source=_GENAI_SDK),
    "code_execution": Declaration(types=("codeExecution",), form="key", source=_GENAI_SDK),
    "file_search": Declaration(
        types=("fileSearch",),
        form="key",
        stores="fileSearchStoreNames",
        restrictions={"metadataFilter": None},
        source=_GENAI_SDK,
    ),
}
"""Gemini's Developer API."""

VERTEX: Final[Tools] = {
    "web_search": replace(GOOGLE["web_search"], blocked_domains="excludeDomains"),
    "web_fetch": GOOGLE["web_fetch"],
    "code_execution": GOOGLE["code_execution"],
}
"""Gemini on Vertex AI: it excludes domains, and has no file stores."""

_INTERACTIONS_SDK: Final = "google-genai 3.4.0, _gaos/types/interactions/tool.py, November 2026"

INTERACTIONS: Final[Tools] = {
    "web_search": Declaration(types=("google_search",), source=_INTERACTIONS_SDK),
    "web_fetch": Declaration(types=("url_context",), source=_INTERACTIONS_SDK),
    "code_execution": Declaration(types=("code_execution",), source=_INTERACTIONS_SDK),
    "file_search": Declaration(
        types=("file_search",),
        stores="file_search_store_names",
        restrictions={"metadata_filter": None},
        source=_INTERACTIONS_SDK,
    ),
}
"""Gemini Interactions on the Developer API."""

VERTEX_INTERACTIONS: Final[Tools] = {
    "web_search": INTERACTIONS["web_search"],
    "web_fetch": INTERACTIONS["web_fetch"],
    "code_execution": INTERACTIONS["code_execution"],
}
"""The same on Vertex AI, which has no file stores."""

_NOVA_SOURCE: Final = "reference.langchain.com, langchain-aws tools/nova_tools, November 2026"

NOVA: Final[Tools] = {
    "web_search": Declaration(
        types=("nova_grounding",), form="system_tool", models=("nova-2",), source=_NOVA_SOURCE
    ),
    "code_execution": Declaration(
        types=("nova_code_interpreter",),
        form="system_tool",
        models=("nova-2",),
        source=_NOVA_SOURCE,
    ),
}
"""Amazon Nova 2 behind Converse. Claude on Bedrock has no hosted tools."""

WIRE_TOOLS: Final[dict[WireApi, Tools]] = {
    "messages": ANTHROPIC,
    "responses": OPENAI,
    "chat": {},
    "gemini": GOOGLE,
    "interactions": INTERACTIONS,
    "converse": NOVA,
    "invoke": {},
    "ollama": {},
    "cohere": {},
}
"""Wire -> its own hosted tools: of the provider that made it, and of servers that are not known.
A wire without a row has none."""

PROVIDER_TOOLS: Final[dict[tuple[WireApi, str], Tools]] = {
    ("messages", "anthropic"): ANTHROPIC,
    ("messages", "bedrock"): {},  # Anthropic's documentation of Claude on Bedrock
    ("messages", "vertex-anthropic"): VERTEX_CLAUDE,
    ("responses", "azure"): OPENAI,
    ("responses", "openai"): OPENAI,
    ("responses", "openai-codex"): OPENAI,
    ("responses", "openrouter"): OPENROUTER,
    ("responses", "perplexity"): PERPLEXITY,
    ("responses", "xai"): XAI,
    ("chat", "groq"): GROQ,
    ("chat", "openrouter"): OPENROUTER,
    ("gemini", "google"): GOOGLE,
    ("gemini", "vertex"): VERTEX,
    ("interactions", "google"): INTERACTIONS,
    ("interactions", "vertex"): VERTEX_INTERACTIONS,
    ("converse", "bedrock"): NOVA,
}
"""(Wire, provider) -> its hosted tools. All of them are known, so no other tool is sent."""

WITHOUT_NAMESPACES: Final = frozenset(
    {"llamacpp", "lmstudio", "ollama", "openrouter", "vllm", "xai"}
)
"""Providers whose Responses refuses or misreads `namespace` tools, so they are flattened:
https://github.com/openai/codex/issues/26234 · https://github.com/maximhq/bifrost/issues/5428 ·
https://github.com/vllm-project/vllm/issues/49493, July 2026."""


@lru_cache(256)  # each request asks for the same few
def tools_of(wire_api: WireApi, provider: str, model: str) -> Tools:
    """The hosted tools that a model of a provider has on a wire."""
    tools = PROVIDER_TOOLS.get((wire_api, provider), WIRE_TOOLS.get(wire_api, {}))
    available: Tools = {}
    for name, declaration in tools.items():
        is_known = any(part in model.lower() for part in declaration.models)
        if is_known or not declaration.models:
            available[name] = declaration
    return available


def declarations(wire_api: WireApi) -> Iterator[tuple[HostedName, Declaration]]:
    """Every declaration of a wire: a decoder does not know the provider."""
    yield from WIRE_TOOLS.get(wire_api, {}).items()
    for (wire, _), tools in PROVIDER_TOOLS.items():
        if wire == wire_api:
            yield from tools.items()
