"""Differences of each provider, one a row, with the request that shows each.

Sources: `recorded` (a response of the provider in the corpus), `guide` (its own documentation),
`client` (the source of another client that works with it), `issue` (reported by users), `memory`
(nobody verified it).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from streamlib import (
    CacheOptions,
    Document,
    Image,
    Message,
    Prompt,
    Reasoning,
    Request,
    Text,
    ToolSpec,
    user,
)
from tests.support.provider_cases import WEATHER, build_request, history

Source: TypeAlias = Literal["recorded", "guide", "client", "issue", "memory"]

ABSENT: Final = object()
PNG: Final = Image(data="iVBORw0KGgo=", media_type="image/png")
DETAILS: Final = [
    {"type": "reasoning.text", "text": "It is about Paris.", "signature": "sig", "index": 0}
]
ANY_NULL: Final = {
    "type": "object",
    "properties": {
        "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "days": {"minimum": 1},
    },
}
FITTED: Final = {
    "type": "object",
    "properties": {"unit": {"type": "string"}, "days": {"minimum": 1, "type": "number"}},
    "required": [],
}
"""`ANY_NULL` in Moonshot's subset."""


class Quirk(NamedTuple):
    """One difference.

    Attributes:
        provider: its name.
        name: of the row; with the provider's name the id of its test.
        description: one line for docs/providers.md.
        source: how it is known.
        prompt: shows the difference when it is sent to the provider.
        body: JSON pointer -> its value in the request, `ABSENT` if it must not exist.
        headers: the same for headers.
        reported: paths that the request's report must contain.
        model: None: the model of `provider_cases.MODELS`.
        wire: None: the provider's default.
        url: of the request; None: not compared.
    """

    provider: str
    name: str
    description: str
    source: Source
    prompt: Prompt
    body: Mapping[str, Any] = MappingProxyType({})
    headers: Mapping[str, Any] = MappingProxyType({})
    reported: tuple[str, ...] = ()
    model: str | None = None
    wire: str | None = None
    url: str | None = None

    @property
    def id(self) -> str:
        """The name of its test."""
        return f"{self.provider}-{self.name}"

    def request(self) -> Request:
        """The request that shows the difference."""
        return build_request(self.provider, self.prompt, wire=self.wire, model=self.model)


def value_at(request: Request, pointer: str) -> Any:
    """The value at a JSON pointer of the body; `ABSENT` if there is none.

    A negative index counts from the end of a list.
    """
    value = json.loads(request.body)
    for key in pointer.split("/")[1:]:
        try:
            if isinstance(value, list):
                value = value[int(key)]
            else:
                value = value[key]
        except LookupError:
            return ABSENT
    return value


def thinking(level: Any, **settings: Any) -> Prompt:
    """A question at a level of thinking, or with a number of tokens for it."""
    return Prompt("Hello", reasoning=level, **settings)


def tools(choice: str | None = None, **settings: Any) -> Prompt:
    """A question with a tool."""
    return Prompt("Hello", tools=[WEATHER], tool_choice=choice, **settings)


def looped(provider: str, wire: str = "chat", **reasoning: Any) -> Prompt:
    """A conversation with reasoning, a call and its result, to be continued."""
    return Prompt(history(provider, wire, **reasoning), tools=[WEATHER])


MISTRAL_THINKING: Final = {
    "type": "thinking",
    "thinking": [{"type": "text", "text": "It is about Paris."}],
}
WITHOUT_REASONING: Final = [
    item for item in history("deepseek", "chat") if not isinstance(item, Reasoning)
]

QUIRKS: Final[tuple[Quirk, ...]] = (
    # --- the large providers ---
    Quirk("openai", "max-tokens", "Chat: `max_completion_tokens`", "recorded",
          Prompt("x", max_output_tokens=9), {"/max_completion_tokens": 9, "/max_tokens": ABSENT},
          wire="chat"),
    Quirk("openai", "developer", "Chat knows the role `developer`", "recorded",
          Prompt([Message("developer", [Text("x")]), user("y")]), {"/messages/0/role": "developer"},
          wire="chat"),
    Quirk("openai", "stop", "thinking models refuse `stop`", "client", Prompt("x", stop=["."]),
          {"/stop": ABSENT}, reported=("/stop",), wire="chat", model="o4-mini"),
    Quirk("openai", "sampling", "thinking models refuse sampling parameters", "client",
          Prompt("x", temperature=0.1), {"/temperature": ABSENT}, reported=("/temperature",),
          model="gpt-5.5"),
    Quirk("openai-codex", "store", "`store` is always false", "recorded", Prompt("x", extra={}),
          {"/store": False}),
    Quirk("openai-codex", "instructions", "instructions are required; ours unless you set your own",
          "client", Prompt("x"), {"/instructions": "You are a helpful assistant."}),
    Quirk("openai-codex", "refused", "refuses sampling parameters and token limits", "client",
          Prompt("x", temperature=0.1, max_output_tokens=9),
          {"/temperature": ABSENT, "/max_output_tokens": ABSENT},
          reported=("/temperature", "/max_output_tokens"), model="codex-mini"),
    Quirk("azure", "store", "responses are stored, because ids must be sent back", "client",
          Prompt("x"), {"/store": True}),
    Quirk("anthropic", "version", "`anthropic-version` 2023-06-01, the permissive one", "guide",
          Prompt("x"), headers={"anthropic-version": "2023-06-01"}),
    Quirk("vertex-anthropic", "body", "the model is in the URL, the version in the body", "client",
          Prompt("x"), {"/model": ABSENT, "/anthropic_version": "vertex-2023-10-16"}),
    Quirk("bedrock", "url", "Converse, region and model in the URL", "client", Prompt("x"),
          {"/model": ABSENT},
          url=("https://bedrock-runtime.us-east-1.amazonaws.com/model/"
           "anthropic.claude-opus-5-v1%3A0/converse-stream")),
    Quirk("google", "thinking", "Chat: a level, or a budget in `extra_body.google`", "client",
          thinking(2048),
          {"/extra_body/google/thinking_config/thinking_budget": 2048, "/reasoning_effort": ABSENT},
          wire="chat"),
    # --- routers ---
    Quirk("openrouter", "routing", "routing preferences are yours to set", "recorded",
          Prompt("x", extra={"provider": {"only": ["xai"]}}), {"/provider/only/0": "xai"}),
    Quirk("openrouter", "reasoning", "`reasoning` is an object: effort …", "recorded",
          thinking("medium"), {"/reasoning": {"effort": "medium"}}),
    Quirk("openrouter", "budget", "… or tokens …", "client", thinking(2000),
          {"/reasoning": {"max_tokens": 2000}}),
    Quirk("openrouter", "off", "… or off", "client", thinking("off"),
          {"/reasoning": {"enabled": False}}),
    Quirk("openrouter", "max", "`max` is `xhigh` there", "client", thinking("max"),
          {"/reasoning/effort": "xhigh"}, model="any"),
    Quirk("openrouter", "details", "`reasoning_details` are sent back unmodified, once per message",
          "client", looped("openrouter", native={"reasoning_details": DETAILS}),
          {"/messages/1/reasoning_details": DETAILS}),
    Quirk("openrouter", "cache", "accepts cache markers on parts", "client",
          Prompt("x", cache=CacheOptions(breakpoints=[0])),
          {"/messages/0/content/0/cache_control": {"type": "ephemeral"}}),
    Quirk("openrouter", "conversation",
          "`session_id` keeps a conversation at one upstream provider", "client",
          Prompt("x", conversation_id="c"), {"/session_id": "c"}),
    Quirk("openrouter", "grok", "Grok's conversation header is sent", "client",
          Prompt("x", conversation_id="c"), headers={"x-grok-conv-id": "c"}, model="x-ai/grok-4.3"),
    Quirk("nous", "tags", "tags name the product that sends the request: our own name", "client",
          Prompt("x"), {"/tags": ["product=streamlib"]}),
    Quirk("nous", "your-tags", "… or yours", "client",
          Prompt("x", extra={"tags": ["product=mine"]}), {"/tags": ["product=mine"]}),
    Quirk("nous", "off", "thinking cannot be off everywhere: the lowest level instead", "client",
          thinking("off"), {"/reasoning": {"effort": "minimal"}}, reported=("/reasoning",)),
    Quirk("nous", "conversation", "`session_id`", "client", Prompt("x", conversation_id="c"),
          {"/session_id": "c"}),
    Quirk("github", "model", "a model name includes its vendor: `github:openai/gpt-…`", "client",
          Prompt("x"), {"/model": "openai/gpt-5-mini"},
          url="https://models.github.ai/inference/chat/completions"),
    Quirk("github", "max-tokens", "a thinking model accepts only `max_completion_tokens`", "client",
          Prompt("x", max_output_tokens=9), {"/max_completion_tokens": 9}),
    Quirk("copilot", "person", "a header says that a person sent the request …", "client",
          Prompt("x"), headers={"x-initiator": "user"}),
    Quirk("copilot", "agent", "… or an agent …", "client", looped("copilot"),
          headers={"x-initiator": "agent"}),
    Quirk("copilot", "vision", "… and that there are images", "client", Prompt([user("see", PNG)]),
          headers={"copilot-vision-request": "true"}),
    Quirk("copilot", "identity", "no editor's identity is sent", "client", Prompt("x"),
          headers={"editor-version": ABSENT, "copilot-integration-id": ABSENT,
           "user-agent": ABSENT}),
    Quirk("copilot", "responses", "GPT-5 uses Responses", "recorded", Prompt("x"),
          model="gpt-5.3-codex", url="https://api.githubcopilot.com/responses"),
    Quirk("huggingface", "model", "the upstream provider follows a colon", "recorded", Prompt("x"),
          {"/model": "Qwen/Qwen3.5-9B:together"}),
    # --- makers of models ---
    Quirk("xai", "header", "a header keeps the conversation at the server with its cache …",
          "client", Prompt("x", conversation_id="c"), headers={"x-grok-conv-id": "c"}),
    Quirk("xai", "header-responses", "… in Responses too", "client",
          Prompt("x", conversation_id="c"), headers={"x-grok-conv-id": "c"}, wire="responses"),
    Quirk("xai", "encrypted", "Responses: encrypted reasoning is requested", "recorded",
          Prompt("x"),
          {"/include": ["reasoning.encrypted_content"]}, wire="responses"),
    Quirk("xai", "no-level", "Grok 4 accepts no level", "guide", thinking("high"),
          {"/reasoning_effort": ABSENT}, reported=("/reasoning",), model="grok-4"),
    Quirk("xai", "no-level-responses", "… also in Responses", "guide", thinking("high"),
          {"/reasoning": ABSENT}, reported=("/reasoning",), model="grok-4", wire="responses"),
    Quirk("xai", "level", "Grok 4.3 accepts a level", "recorded", thinking("medium"),
          {"/reasoning/effort": "medium"}, wire="responses"),
    Quirk("xai", "off", "… and can be switched off", "client", thinking("off"),
          {"/reasoning_effort": "none"}),
    Quirk("xai", "two-levels", "grok-3-mini accepts low and high", "client", thinking("medium"),
          {"/reasoning_effort": "low"}, reported=("/reasoning",), model="grok-3-mini"),
    Quirk("xai", "refused", "thinking models refuse `stop` and penalties", "client",
          Prompt("x", stop=["."], presence_penalty=0.1),
          {"/stop": ABSENT, "/presence_penalty": ABSENT}, reported=("/stop", "/presence_penalty")),
    Quirk("xai", "plain", "other models take them", "client", Prompt("x", stop=["."]),
          {"/stop": ["."]}, model="grok-4-fast-non-reasoning"),
    Quirk("xai", "tier", "refuses `service_tier`", "client", Prompt("x", service_tier="auto"),
          {"/service_tier": ABSENT}, reported=("/service_tier",)),
    Quirk("deepseek", "on", "`thinking` together with a level", "guide", thinking("high"),
          {"/thinking": {"type": "enabled"}, "/reasoning_effort": "high"}),
    Quirk("deepseek", "off", "… and off", "recorded", thinking("off"),
          {"/thinking": {"type": "disabled"}}),
    Quirk("deepseek", "stripped", "sampling has no effect while it thinks, which is its default",
          "guide", Prompt("x", temperature=0.1, frequency_penalty=0.1),
          {"/temperature": ABSENT, "/frequency_penalty": ABSENT},
          reported=("/temperature", "/frequency_penalty")),
    Quirk("deepseek", "sampling", "… and is accepted when it does not", "guide",
          thinking("off", temperature=0.1), {"/temperature": 0.1}),
    Quirk("deepseek", "logprobs", "`logprobs` are accepted while it thinks", "recorded",
          Prompt("x", logprobs=0), {"/logprobs": True}),
    Quirk("deepseek", "echo", "reasoning must be sent back with calls: else 400", "guide",
          looped("deepseek"), {"/messages/1/reasoning_content": "It is about Paris."}),
    Quirk("deepseek", "filler", "if there was none, a space is sent (an empty text is refused)",
          "issue", Prompt(WITHOUT_REASONING, tools=[WEATHER]),
          {"/messages/1/reasoning_content": " "},
          reported=("/input/1",)),
    Quirk("deepseek", "plain", "`deepseek-chat` needs no such text", "guide",
          Prompt(WITHOUT_REASONING, tools=[WEATHER]), {"/messages/1/reasoning_content": ABSENT},
          model="deepseek-chat"),
    Quirk("deepseek", "schema", "JSON output without a schema", "memory",
          Prompt("x", output_schema=ANY_NULL), {"/response_format": {"type": "json_object"}},
          reported=("/output_schema",)),
    Quirk("deepseek", "responses", "Responses is offered too", "recorded", Prompt("x"),
          wire="responses", url="https://api.deepseek.com/responses"),
    Quirk("qwen", "on", "`enable_thinking` and a budget", "guide", thinking(2048),
          {"/enable_thinking": True, "/thinking_budget": 2048}),
    Quirk("qwen", "level", "a level is sent as a budget", "client", thinking("low"),
          {"/enable_thinking": True, "/thinking_budget": 2048}, reported=("/reasoning",)),
    Quirk("qwen", "off", "… and off", "guide", thinking("off"), {"/enable_thinking": False}),
    Quirk("qwen", "cache", "accepts cache markers on parts", "client",
          Prompt("x", cache=CacheOptions(breakpoints=[0])),
          {"/messages/0/content/0/cache_control": {"type": "ephemeral"}}),
    Quirk("qwen", "no-empty-text", "no empty text with calls", "client", looped("qwen"),
          {"/messages/1/content": ABSENT}),
    Quirk("qwen-portal", "lists", "content is always a list", "client", Prompt("x"),
          {"/messages/0/content/0/text": "x"}),
    Quirk("qwen-portal", "cached-system", "the system message carries a cache marker", "client",
          Prompt("x", instructions="i"),
          {"/messages/0/content/0/cache_control": {"type": "ephemeral"}}),
    Quirk("qwen-portal", "own-markers", "… unless you set your own", "client",
          Prompt("x", instructions="i", cache=CacheOptions(breakpoints=[0])),
          {"/messages/0/content/0/cache_control": ABSENT,
           "/messages/1/content/0/cache_control": {"type": "ephemeral"}}),
    Quirk("qwen-portal", "images", "images are sent in full resolution", "client", Prompt("x"),
          {"/vl_high_resolution_images": True}),
    Quirk("qwen-portal", "session", "`metadata.sessionId`, added to your metadata", "client",
          Prompt("x", conversation_id="c", metadata={"a": "b"}),
          {"/metadata": {"a": "b", "sessionId": "c"}}),
    Quirk("qwen-portal", "default", "65,536 output tokens unless you set a limit", "client",
          Prompt("x"), {"/max_tokens": 65_536}),
    Quirk("qwen-portal", "own-limit", "… your limit is sent", "client",
          Prompt("x", max_output_tokens=9),
          {"/max_tokens": 9}),
    Quirk("minimax", "split", "reasoning is requested apart from the text", "client", Prompt("x"),
          {"/reasoning_split": True}),
    Quirk("minimax", "m3", "M3: adaptive …", "client", thinking("high"),
          {"/thinking": {"type": "adaptive"}}, reported=("/reasoning",)),
    Quirk("minimax", "m3-off", "… or off", "client", thinking("off"),
          {"/thinking": {"type": "disabled"}}),
    Quirk("minimax", "m2", "M2 has no switch for thinking", "client", thinking("off"),
          {"/thinking": ABSENT}, reported=("/reasoning",), model="MiniMax-M2"),
    Quirk("minimax", "m31", "M3.1 accepts a level, and no split", "client", thinking("high"),
          {"/reasoning_effort": "high", "/reasoning_split": ABSENT}, model="MiniMax-M3.1"),
    Quirk("minimax", "details", "`reasoning_details` are sent back unmodified", "client",
          looped("minimax", native={"reasoning_details": DETAILS}),
          {"/messages/1/reasoning_details": DETAILS}),
    Quirk("minimax", "tags", "… other reasoning is sent back in tags", "client", looped("minimax"),
          {"/messages/1/content": "<think>\nIt is about Paris.\n</think>\n\n"}),
    Quirk("minimax", "choice", "no `tool_choice`", "client", tools("required"),
          {"/tool_choice": ABSENT}, reported=("/tool_choice",)),
    Quirk("minimax", "strict", "no `strict` on tools", "client", tools(),
          {"/tools/0/function/strict": ABSENT}, reported=("/tools/0/strict",)),
    Quirk("minimax", "max-tokens", "`max_completion_tokens`", "client",
          Prompt("x", max_output_tokens=9), {"/max_completion_tokens": 9}),
    Quirk("minimax", "messages", "Messages, without Chat's switches", "client", Prompt("x"),
          {"/reasoning_split": ABSENT}, wire="messages",
          url="https://api.minimax.io/anthropic/v1/messages"),
    Quirk("moonshot", "one-value", "Kimi has one temperature and refuses others", "guide",
          Prompt("x", temperature=0.1, top_p=0.5, n=2),
          {"/temperature": ABSENT, "/top_p": ABSENT, "/n": ABSENT},
          reported=("/temperature", "/top_p", "/n")),
    Quirk("moonshot", "v1", "moonshot-v1 accepts it", "guide", Prompt("x", temperature=0.1),
          {"/temperature": 0.1}, model="moonshot-v1-8k"),
    Quirk("moonshot", "k2", "K2: a switch, never with a level", "client", thinking("high"),
          {"/thinking": {"type": "enabled"}, "/reasoning_effort": ABSENT},
          reported=("/reasoning",)),
    Quirk("moonshot", "k3", "K3: a level, never with the switch", "client", thinking("medium"),
          {"/reasoning_effort": "low", "/thinking": ABSENT}, reported=("/reasoning",),
          model="kimi-k3"),
    Quirk("moonshot", "k3-off", "K3 always thinks", "guide", thinking("off"),
          {"/reasoning_effort": "low"}, reported=("/reasoning",), model="kimi-k3"),
    Quirk("moonshot", "echo", "reasoning must be sent back with calls: else 400", "client",
          looped("moonshot"), {"/messages/1/reasoning_content": "It is about Paris."}),
    Quirk("moonshot", "filler", "if there was none, an empty text is sent", "client",
          Prompt(WITHOUT_REASONING, tools=[WEATHER]), {"/messages/1/reasoning_content": ""},
          reported=("/input/1",)),
    Quirk("moonshot", "required", "no `tool_choice` `required`", "client", tools("required"),
          {"/tool_choice": ABSENT}, reported=("/tool_choice",)),
    Quirk("moonshot", "schemas", "its own subset of JSON schema", "client",
          Prompt("x", tools=[ToolSpec("f", schema=ANY_NULL)]),
          {"/tools/0/function/parameters": FITTED}, reported=("/tools/0/schema",)),
    Quirk("kimi-coding", "identity", "our own name, no other product's", "client", Prompt("x"),
          headers={"user-agent": ABSENT}, url="https://api.kimi.com/coding/v1/chat/completions"),
    Quirk("zai", "kept", "reasoning is kept, and sent back unchanged", "recorded",
          Prompt(history("zai", "chat"), tools=[WEATHER], reasoning="high"),
          {"/thinking": {"type": "enabled", "clear_thinking": False},
           "/messages/1/reasoning_content": "It is about Paris."}),
    Quirk("zai", "off", "… or off", "client", thinking("off"), {"/thinking": {"type": "disabled"}}),
    Quirk("zai", "level", "GLM-5.3: levels low to max", "client", thinking("low"),
          {"/reasoning_effort": "low"}),
    Quirk("zai", "high", "GLM-5.2: levels high or max", "client", thinking("low"),
          {"/reasoning_effort": "high"}, reported=("/reasoning",), model="glm-5.2"),
    Quirk("zai", "no-level", "earlier models: no level", "client", thinking("low"),
          {"/reasoning_effort": ABSENT}, reported=("/reasoning",), model="glm-4.7"),
    Quirk("zai", "choice", "`tool_choice` is `auto` only", "client", tools("required"),
          {"/tool_choice": "auto"}, reported=("/tool_choice",)),
    Quirk("zai", "tool-stream", "calls are streamed if the request says so", "client", tools(),
          {"/tool_stream": True}),
    Quirk("zai", "schema", "JSON output without a schema", "memory",
          Prompt("x", output_schema=ANY_NULL), {"/response_format": {"type": "json_object"}},
          reported=("/output_schema",)),
    Quirk("mistral", "seed", "`random_seed`", "recorded", Prompt("x", seed=7),
          {"/random_seed": 7, "/seed": ABSENT}),
    Quirk("mistral", "any", "`tool_choice` `required` is `any`", "client", tools("required"),
          {"/tool_choice": "any"}),
    Quirk("mistral", "ids", "ids of calls are nine letters and digits, the same every time",
          "client", looped("mistral"),
          {"/messages/1/tool_calls/0/id": "74196fe72", "/messages/2/tool_call_id": "74196fe72"}),
    Quirk("mistral", "stream-options", "no `stream_options`: 422", "issue", Prompt("x"),
          {"/stream_options": ABSENT}),
    Quirk("mistral", "strict-keys", "an unknown key is a 422", "client",
          Prompt("x", user_id="u", verbosity="low"),
          {"/user": ABSENT, "/verbosity": ABSENT}, reported=("/user_id", "/verbosity")),
    Quirk("mistral", "own-fields", "`top_k`, `service_tier`, `prompt_cache_key`", "client",
          Prompt("x", top_k=5, service_tier="standard_only", conversation_id="c"),
          {"/top_k": 5, "/service_tier": "standard_only", "/prompt_cache_key": "c"}),
    Quirk("mistral", "guardrails", "`guardrails` and the like through `Prompt.extra`", "client",
          Prompt("x", extra={"guardrails": [{"block_on_error": True}], "safe_prompt": True}),
          {"/guardrails/0/block_on_error": True, "/safe_prompt": True}),
    Quirk("mistral", "documents", "documents are `document_url` parts", "recorded",
          Prompt([user("x", Document(url="https://example.test/a.pdf", name="a.pdf"))]),
          {"/messages/0/content/1": {"type": "document_url", "document_name": "a.pdf",
                                     "document_url": "https://example.test/a.pdf"}}),
    Quirk("mistral", "thinking-parts", "reasoning is sent back as parts of the content", "client",
          looped("mistral"),
          {"/messages/1/content/0": MISTRAL_THINKING}),
    Quirk("mistral", "effort", "levels high or none", "recorded", thinking("low"),
          {"/reasoning_effort": "high"}, reported=("/reasoning",)),
    Quirk("mistral", "prefix", "an assistant message to continue is marked", "client",
          Prompt([user("x"), Message("assistant", [Text("It")])]), {"/messages/1/prefix": True}),
    Quirk("mistral", "user-after-tool", "no user message directly after a tool message", "memory",
          Prompt([*history("mistral", "chat"), user("And Rome?")]),
          {"/messages/3/role": "assistant", "/messages/4/role": "user"}, reported=("/input/4",)),
    Quirk("xiaomi", "text-results", "a tool message is one text", "client", looped("xiaomi"),
          {"/messages/2/content": "18 degrees, clear"}),
    Quirk("xiaomi", "echo", "reasoning is sent back", "client", looped("xiaomi"),
          {"/messages/1/reasoning_content": "It is about Paris."}),
    Quirk("xiaomi", "schema", "JSON output without a schema", "client",
          Prompt("x", output_schema=ANY_NULL), {"/response_format": {"type": "json_object"}},
          reported=("/output_schema",)),
    Quirk("xiaomi", "off", "`thinking` off", "memory", thinking("off"),
          {"/thinking": {"type": "disabled"}}),
    Quirk("stepfun", "level", "levels low, medium, high", "client", thinking("max"),
          {"/reasoning_effort": "high"}, reported=("/reasoning",)),
    # --- hosts of open models ---
    Quirk("nvidia", "default", "16,384 output tokens unless you set a limit", "client", Prompt("x"),
          {"/max_tokens": 16_384}),
    Quirk("nvidia", "template", "thinking is an argument of the chat template", "client",
          thinking("high"),
          {"/chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "high"}}),
    Quirk("nvidia", "template-of-deepseek", "… another one for DeepSeek and Kimi", "client",
          thinking("off"), {"/chat_template_kwargs": {"thinking": False}},
          model="deepseek-ai/deepseek-v3.1"),
    Quirk("groq", "max-tokens", "`max_completion_tokens`", "client",
          Prompt("x", max_output_tokens=9), {"/max_completion_tokens": 9}),
    Quirk("groq", "one-choice", "one choice, no logprobs", "client", Prompt("x", n=2, logprobs=0),
          {"/n": ABSENT, "/logprobs": ABSENT}, reported=("/n", "/logprobs")),
    Quirk("groq", "gpt-oss", "gpt-oss: a level; reasoning is sent back as `reasoning`", "recorded",
          Prompt(history("groq", "chat"), reasoning="low"),
          {"/reasoning_effort": "low", "/messages/1/reasoning": "It is about Paris."}),
    Quirk("groq", "qwen", "Qwen: `default` or `none`; reasoning is requested apart from the text",
          "recorded", thinking("high"),
          {"/reasoning_effort": "default", "/reasoning_format": "parsed"}, reported=("/reasoning",),
          model="qwen/qwen3-32b"),
    Quirk("groq", "others", "other models take no reasoning back", "client", looped("groq"),
          {"/messages/1/reasoning": ABSENT}, reported=("/input/1",),
          model="llama-3.3-70b-versatile"),
    Quirk("cerebras", "penalties", "no penalties", "client", Prompt("x", presence_penalty=0.1),
          {"/presence_penalty": ABSENT}, reported=("/presence_penalty",)),
    Quirk("cerebras", "gpt-oss", "gpt-oss: reasoning is sent back as `reasoning`", "client",
          looped("cerebras"), {"/messages/1/reasoning": "It is about Paris."}),
    Quirk("cerebras", "tags", "other models: reasoning is sent back in tags", "client",
          looped("cerebras"), {"/messages/1/content": "<think>\nIt is about Paris.\n</think>\n\n"},
          model="qwen-3-32b"),
    Quirk("cerebras", "glm", "GLM has its own switch for thinking", "client", thinking("off"),
          {"/disable_reasoning": True}, model="zai-glm-4.7"),
    Quirk("together", "thinking", "`reasoning.enabled` with a level", "client", thinking("low"),
          {"/reasoning": {"enabled": True}, "/reasoning_effort": "low"}),
    Quirk("fireworks", "thinking", "a level or `none`; reasoning is sent back", "client",
          Prompt(history("fireworks", "chat"), reasoning="off"),
          {"/reasoning_effort": "none", "/messages/1/reasoning_content": "It is about Paris."}),
    Quirk("cohere", "compatible", "no `stream_options` in Chat Completions", "issue", Prompt("x"),
          {"/stream_options": ABSENT}, wire="chat"),
    Quirk("cohere", "choices", "Chat Completions has one choice", "memory", Prompt("x", n=2),
          {"/n": ABSENT}, reported=("/n",), wire="chat"),
    Quirk("cohere", "thinking", "levels are numbers of tokens", "client", thinking("low"),
          {"/thinking": {"type": "enabled", "token_budget": 2048}},
          model="command-a-reasoning-08-2025"),
    Quirk("perplexity", "tools", "no tools", "memory", tools("auto"),
          {"/tools": ABSENT, "/tool_choice": ABSENT}, reported=("/tools", "/tool_choice")),
    Quirk("perplexity", "turns", "user and assistant messages must alternate", "memory",
          Prompt([user("a"), user("b")]), {"/messages/1": ABSENT}),
    Quirk("perplexity", "url", "no version in the URL", "recorded", Prompt("x"),
          url="https://api.perplexity.ai/chat/completions"),
    Quirk("sambanova", "strict-keys", "reasoning and unknown keys are refused", "memory",
          looped("sambanova"), {"/messages/1/reasoning_content": ABSENT}, reported=("/input/1",)),
    Quirk("novita", "apart", "reasoning is requested apart from the text", "client", Prompt("x"),
          {"/separate_reasoning": True}),
    Quirk("deepinfra", "url", "OpenAI's API below a path", "client", Prompt("x"),
          url="https://api.deepinfra.com/v1/openai/chat/completions"),
    # --- servers on this machine ---
    Quirk("ollama", "native", "its own API by default, where `num_ctx` can be set", "client",
          Prompt("x", extra={"options": {"num_ctx": 9}}), {"/options/num_ctx": 9},
          url="http://localhost:11434/api/chat"),
    Quirk("ollama", "think-false", "off is `think: false`, not a missing key", "client",
          thinking("off"), {"/think": False}),
    Quirk("lmstudio", "responses", "Responses too", "recorded", Prompt("x"), wire="responses",
          url="http://localhost:1234/v1/responses"),
    Quirk("llamacpp", "template", "thinking is an argument of the chat template", "client",
          thinking("off"), {"/chat_template_kwargs": {"enable_thinking": False}}),
    Quirk("llamacpp", "messages", "Messages too", "recorded", Prompt("x"), wire="messages",
          url="http://127.0.0.1:8080/v1/messages"),
    Quirk("vllm", "template", "the template's argument depends on the model: Qwen, GLM …", "client",
          thinking("off"), {"/chat_template_kwargs": {"enable_thinking": False}}),
    Quirk("vllm", "template-of-deepseek", "… DeepSeek, Kimi", "client", thinking("off"),
          {"/chat_template_kwargs": {"thinking": False}}, model="deepseek-ai/DeepSeek-V3.1"),
    Quirk("vllm", "counted-ids", "Kimi K2 was trained on numbered call ids", "client",
          looped("vllm"),
          {"/messages/1/tool_calls/0/id": "functions.get_weather:0",
           "/messages/2/tool_call_id": "functions.get_weather:0"}, reported=("/input/2/call_id",),
          model="moonshotai/Kimi-K2-Instruct"),
    Quirk("vllm", "echo", "reasoning is sent back as `reasoning`", "client", looped("vllm"),
          {"/messages/1/reasoning": "It is about Paris."}),
    Quirk("sglang", "echo", "… here as `reasoning_content`", "client", looped("sglang"),
          {"/messages/1/reasoning_content": "It is about Paris."}),
    Quirk("custom", "nothing", "adds nothing, forbids nothing", "memory",
          Prompt("x", top_k=3, user_id="u", temperature=0.1),
          {"/top_k": 3, "/user": "u", "/temperature": 0.1}),
)  # fmt: skip
