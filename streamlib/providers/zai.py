"""Z.ai, the makers of GLM: https://docs.z.ai/api-reference.

The coding plan is `base_url="https://api.z.ai/api/coding/paas/v4"`. Retained reasoning
(`clear_thinking`) must be sent back exactly; calls are streamed only on request.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import THINKING_TYPE, ChatShape

SWITCH = replace(
    THINKING_TYPE,
    on={"thinking": {"type": "enabled", "clear_thinking": False}},
    effort="",
    budget="",
)
SHAPE = ChatShape(
    reasoning_echo=("reasoning_content",),
    thinking=SWITCH,
    assistant_content="empty",
    tool_choices={"required": "auto", "tool": "auto", "none": ""},
    output="json_object",
    defaults={"tool_stream": True},
    custom_tools=False,
)
HIGH_OR_MAX = {"minimal": "high", "low": "high", "medium": "high", "xhigh": "max"}

PROVIDER = Provider(
    name="zai",
    parses_calls=True,
    aliases=("glm", "z-ai", "zhipu"),
    wires=("chat", "messages"),
    base_url="https://api.z.ai/api/paas/v4",
    wire_urls={"messages": "https://api.z.ai/api/anthropic"},
    other_urls=("https://open.bigmodel.cn",),
    unsigned_thinking=True,
    key_env=("ZAI_API_KEY", "GLM_API_KEY", "Z_AI_API_KEY", "ZHIPUAI_API_KEY"),
    headers={"anthropic-version": "2023-06-01"},  # Messages requires it, Chat ignores it
    chat=SHAPE,
    model_overrides={
        "glm-5.2": {
            "chat": replace(
                SHAPE, thinking=replace(SWITCH, effort="reasoning_effort", words=HIGH_OR_MAX)
            )
        },
        "glm-5.3": {
            "chat": replace(
                SHAPE,
                thinking=replace(
                    SWITCH, effort="reasoning_effort", words={"minimal": "low", "xhigh": "max"}
                ),
            )
        },
    },
)
