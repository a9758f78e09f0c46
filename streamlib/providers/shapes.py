"""How providers of Chat Completions differ, as values: the field `Provider.chat`.

The defaults send what the caller set and nothing that a strict server refuses. A provider's file
states the differences:

    PROVIDER = Provider(
        name="deepseek",
        base_url="https://api.deepseek.com",
        chat=ChatShape(
            reasoning_echo=("reasoning_content",),
            echo_filler=" ",
            thinking=THINKING_TYPE,
            output="json_object",
        ),
    )
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct


class Thinking(Struct, frozen=True, gc=False, omit_defaults=True):
    """How a request switches thinking on and off and sets its amount.

    Attributes:
        on: merged into the body whenever thinking is requested.
        off: merged when thinking is switched off; None where it cannot be.
        plain: merged where thinking is requested without a level or a number of tokens.
        effort: (dotted) field of the level, "" where there is none.
        budget: (dotted) field of the number of tokens, "" where there is none.
        words: level of this library -> the provider's, for those that differ
            (`{"max": "xhigh"}`).
    """

    on: dict[str, Any] = {}
    off: dict[str, Any] | None = None
    plain: dict[str, Any] = {}
    effort: str = ""
    budget: str = ""
    words: dict[str, str] = {}


# Shapes that several providers share. A provider of its own kind has a `Thinking(…)` in its file,
# or changes one of these: `msgspec.structs.replace(EFFORT, words=…)`.
EFFORT: Final = Thinking(off={"reasoning_effort": "none"}, effort="reasoning_effort")
"""OpenAI, xAI, Groq, Mistral, Ollama's /v1, Fireworks …: `reasoning_effort`."""
THINKING_TYPE: Final = Thinking(
    on={"thinking": {"type": "enabled"}},
    off={"thinking": {"type": "disabled"}},
    effort="reasoning_effort",
    budget="thinking.budget_tokens",
)
"""DeepSeek, Kimi, GLM: `thinking: {"type": …}`, with `reasoning_effort` beside it.

A provider without levels or budgets replaces those fields by "".
"""
ENABLE_THINKING: Final = Thinking(
    on={"enable_thinking": True}, off={"enable_thinking": False}, budget="thinking_budget"
)
"""DashScope: `enable_thinking`."""
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
"""Together: `reasoning: {"enabled"}`, with `reasoning_effort` beside it."""
TEMPLATE_ENABLE_THINKING: Final = Thinking(
    on={"chat_template_kwargs": {"enable_thinking": True}},
    off={"chat_template_kwargs": {"enable_thinking": False}},
    effort="reasoning_effort",
)
"""vLLM, SGLang, llama.cpp, NVIDIA with chat templates of Qwen and GLM; levels are for gpt-oss."""
TEMPLATE_THINKING: Final = Thinking(
    on={"chat_template_kwargs": {"thinking": True}},
    off={"chat_template_kwargs": {"thinking": False}},
    effort="reasoning_effort",
)
"""The same servers with chat templates of DeepSeek and Kimi."""
GOOGLE: Final = Thinking(
    off={"reasoning_effort": "none"},
    effort="reasoning_effort",
    budget="extra_body.google.thinking_config.thinking_budget",
)
"""Gemini's OpenAI-compatible endpoint: a level or a budget, never both."""


CONTINUE_FINAL: Final[dict[str, Any]] = {
    "continue_final_message": True,
    "add_generation_prompt": False,
}
"""vLLM and llama.cpp (since its pull request 23012 of 2026-05): the last message is continued.

Without both, vLLM ends the message and begins another one."""


class ChatShape(Struct, frozen=True, gc=False, omit_defaults=True):
    """One provider's Chat Completions, where providers differ.

    Fields that a provider refuses or renames altogether are in `Provider.unsupported` and
    `Provider.rename`.

    Attributes:
        developer_role: knows the role `developer`; else such messages are sent as `system`.
        inner_system: accepts system messages inside the conversation; else they are user text.
        alternate: user and assistant must alternate, so adjacent messages are joined.
        tool_then_user: a user message may follow a tool message; else a short assistant message
            is put between the two.
        prefill: key set to true on an assistant message that ends the request (`prefix`), "" where
            none is needed; None: such a message is refused, so a user message follows it.
        prefill_body: merged into the body of such a request.
        call_id: form of call ids that the model was trained on (`"functions.{name}:{n}"`, n counts
            the calls of the conversation), "" for none. `Provider.call_ids` has the characters
            that are allowed.
        longest_call_id: characters that a call id may have, where that is less than the wire's.

        content: `auto` (one text is a string, several are parts), `string` (texts are joined) or
            `parts` (always a list).
        assistant_content: the content beside `tool_calls` where there is no text: null, an empty
            text, or no such key.
        tool_parts: accepts images in tool messages; else they move into a user message after them.
        document_urls: takes documents as `document_url` parts, and audio as a text; else they are
            `file` parts, and audio is an object with its format.
        bare_messages: refuses unknown keys in messages and calls (`refusal`, `audio`,
            `extra_content`, keys of its own responses).

        reasoning_echo: keys in which reasoning of the same origin is sent back, () for none (that
            of other origins has become plain text before). Text is sent under the first of
            `reasoning_content`, `reasoning`, `reasoning_text` (keys of the message), `think_tags`
            (`<think>…</think>` before the content) or `thinking_parts` (Mistral's content parts).
            `reasoning_details`, `thinking_blocks` and `reasoning_opaque` are sent back unchanged,
            and replace the text where they contain it.
        echo_turns: `all` assistant messages, or only those with `calls`.
        echo_filler: text sent if the key is required and there is no reasoning; None: nothing.

        max_tokens: name of that field.
        stop_limit: stop sequences that it accepts; None: any number.
        thinking: how thinking is requested; None: it cannot be.
        tool_choices: `auto`, `required`, `none` and `tool` (a tool by name) -> the value here, ""
            where it is not accepted.
        custom_tools: accepts free-form tools; else they become functions with one string.
        strict_schemas: strict mode accepts only OpenAI's subset of JSON Schema, so schemas are
            fitted to it.
        output: structured output that it accepts, "" for none.
        top_k: accepts `top_k`, which OpenAI does not.
        stream_usage: accepts `stream_options.include_usage`.
        cache_control: accepts cache markers on content parts (OpenRouter, DashScope).
        user: field for an end user's id, "" for none.
        conversation: (dotted) field for a conversation's id (`prompt_cache_key`,
            `metadata.sessionId`), "" for none.
        defaults: fields sent unless the caller sets them, in Chat alone (`Provider.defaults`: on
            every wire).
    """

    developer_role: bool = False
    inner_system: bool = True
    alternate: bool = False
    tool_then_user: bool = True
    prefill: str | None = ""
    prefill_body: dict[str, Any] = {}
    call_id: str = ""
    longest_call_id: int | None = None
    content: Literal["auto", "string", "parts"] = "auto"
    assistant_content: Literal["null", "empty", "omit"] = "null"
    tool_parts: bool = False
    document_urls: bool = False
    bare_messages: bool = False
    reasoning_echo: tuple[str, ...] = ()
    echo_turns: Literal["all", "calls"] = "all"
    echo_filler: str | None = None
    max_tokens: str = "max_tokens"
    stop_limit: int | None = None
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
"""For servers of which nothing is known: reasoning is sent back as they sent it."""
