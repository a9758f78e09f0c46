"""How providers of Chat Completions differ, as values: what `Provider.chat` holds.

The defaults send what was asked and replay nothing that a strict server refuses. A provider file says what is different:

    PROVIDER = Provider(
        name="deepseek",
        base_url="https://api.deepseek.com",
        chat=ChatShape(reasoning_echo=("reasoning_content",), echo_filler=" ", thinking=THINKING_TYPE, output="json_object"),
    )
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct


class Thinking(Struct, frozen=True, gc=False, omit_defaults=True):
    """How a request says how much the model may think.

    on: merged into the body whenever thinking is asked for. off: merged when it is to be off; None: nothing says so.
    plain: merged where thinking is asked for and nothing says how much.
    effort: the (dotted) place of a level, "" where there is none. budget: the place of a number of tokens, "" where there is none.
    words: our level -> the provider's, for those that differ (`{"max": "xhigh"}`); levels that are not here go as they are.
    """

    on: dict[str, Any] = {}
    off: dict[str, Any] | None = None
    plain: dict[str, Any] = {}
    effort: str = ""
    budget: str = ""
    words: dict[str, str] = {}


# The request shapes that several providers share. Make your own with `Thinking(…)`, or `msgspec.structs.replace(EFFORT, words=…)`.
EFFORT: Final = Thinking(off={"reasoning_effort": "none"}, effort="reasoning_effort")
"""OpenAI, xAI, Groq, Mistral, Ollama's /v1, Fireworks …: `reasoning_effort`."""
THINKING_TYPE: Final = Thinking(
    on={"thinking": {"type": "enabled"}},
    off={"thinking": {"type": "disabled"}},
    effort="reasoning_effort",
    budget="thinking.budget_tokens",
)
"""DeepSeek, Kimi, GLM: `thinking: {"type": …}`, with `reasoning_effort` beside it. Without levels or budgets: replace those by ""."""
ENABLE_THINKING: Final = Thinking(
    on={"enable_thinking": True}, off={"enable_thinking": False}, budget="thinking_budget"
)
"""DashScope."""
REASONING_OBJECT: Final = Thinking(
    off={"reasoning": {"enabled": False}},
    plain={"reasoning": {"enabled": True}},
    effort="reasoning.effort",
    budget="reasoning.max_tokens",
    words={"max": "xhigh"},
)
"""OpenRouter: `reasoning: {"effort" | "max_tokens" | "enabled"}`."""
REASONING_ENABLED: Final = Thinking(
    on={"reasoning": {"enabled": True}},
    off={"reasoning": {"enabled": False}},
    effort="reasoning_effort",
)
"""Together."""
TEMPLATE_ENABLE_THINKING: Final = Thinking(
    on={"chat_template_kwargs": {"enable_thinking": True}},
    off={"chat_template_kwargs": {"enable_thinking": False}},
    effort="reasoning_effort",
)
"""vLLM, SGLang, llama.cpp, NVIDIA with templates of Qwen and GLM; levels are for gpt-oss."""
TEMPLATE_THINKING: Final = Thinking(
    on={"chat_template_kwargs": {"thinking": True}},
    off={"chat_template_kwargs": {"thinking": False}},
    effort="reasoning_effort",
)
"""The same servers with templates of DeepSeek and Kimi."""
GOOGLE: Final = Thinking(
    off={"reasoning_effort": "none"},
    effort="reasoning_effort",
    budget="extra_body.google.thinking_config.thinking_budget",
)
"""Gemini's compatible endpoint: a level or a budget, never both."""


class ChatShape(Struct, frozen=True, gc=False, omit_defaults=True):
    """One provider's Chat Completions, where providers differ. Fields it refuses or renames altogether stand in `Provider.drop`, `rename`.

    Messages
        developer_role: knows the role `developer`; else such messages are sent as `system`. inner_system: takes system messages
        amid the conversation; else they are user text. alternate: user and assistant must take turns, so neighbours are joined.
        tool_then_user: a user message may follow a tool message; else a short assistant message stands between.
        prefill: key set to true on an assistant message that ends the request ("prefix"), "" where none is needed.
        call_id: form of call ids the model was trained on (`"functions.{name}:{n}"`, n counts calls of the conversation), "" for none;
        a character set of ids stands in `Provider.call_ids`.
    Content
        content: "auto" (one text is a string, several are parts), "string" (texts are joined), "parts" (always a list).
        assistant_content: what stands beside `tool_calls` where there is no text: null, "" or nothing.
        tool_parts: takes images in tool messages; else they move into a user message after them.
        bare_messages: refuses keys it does not know in messages and calls (`refusal`, `audio`, `extra_content`, keys of its own answers).
    Reasoning in the history (of the same origin; what other origins thought is plain text by then)
        reasoning_echo: the places in which thoughts go back, () for none. Text goes under the first of `reasoning_content`,
        `reasoning`, `reasoning_text` (keys of the message), `think_tags` (`<think>…</think>` before the content) or
        `thinking_parts` (Mistral's content parts). `reasoning_details`, `thinking_blocks` and `reasoning_opaque` go back as they
        came, and stand for the text where they hold it. echo_turns: "all" assistant messages, or those with "calls" only.
        echo_filler: sent where the key is required and nothing was thought; None: nothing is sent then.
    Settings
        max_tokens: the name of that field. thinking: how thinking is asked for; None: it cannot be.
        tool_choices: "auto", "required", "none" and "tool" (one by name) -> the word here, "" where it is not taken.
        custom_tools: takes free-form tools; else they are functions with one string. strict_schemas: strict mode takes OpenAI's
        subset of JSON schema only, so schemas are fitted to it. output: the structured output it takes, "" for none.
        top_k: takes `top_k`, which OpenAI does not. stream_usage: takes `stream_options.include_usage`.
        cache_control: takes cache markers on content parts (OpenRouter, DashScope). user: field for an end user's id, "" for none.
        conversation: the (dotted) field for a conversation's id (`prompt_cache_key`, `metadata.sessionId`), "" for none.
        defaults: fields sent when the caller gave none, in Chat alone (`Provider.defaults`: on every wire).
    """

    developer_role: bool = False
    inner_system: bool = True
    alternate: bool = False
    tool_then_user: bool = True
    prefill: str = ""
    call_id: str = ""
    content: Literal["auto", "string", "parts"] = "auto"
    assistant_content: Literal["null", "empty", "omit"] = "null"
    tool_parts: bool = False
    bare_messages: bool = False
    reasoning_echo: tuple[str, ...] = ()
    echo_turns: Literal["all", "calls"] = "all"
    echo_filler: str | None = None
    max_tokens: str = "max_tokens"
    thinking: Thinking | None = EFFORT
    tool_choices: dict[str, str] = {}
    custom_tools: bool = True
    strict_schemas: bool = False
    output: Literal["json_schema", "json_object", ""] = "json_schema"
    top_k: bool = False
    stream_usage: bool = True
    cache_control: bool = False
    user: str = "user"
    conversation: str = ""
    defaults: dict[str, Any] = {}


ANYTHING: Final = ChatShape(
    reasoning_echo=(
        "reasoning_details",
        "thinking_blocks",
        "reasoning_opaque",
        "reasoning_content",
    ),
    top_k=True,
)
"""For servers of which nothing is known: what they sent goes back as they sent it."""
