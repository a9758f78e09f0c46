"""Families of models on Bedrock: the parts of Converse each takes, and its InvokeModel body.

A family is recognized by the name of the model (`us.anthropic.claude-…`, an ARN that ends in one):
the first row of `FAMILIES` with a mark that the name contains. Names that show no family
(application inference profiles, imported models) are `ANY`: it takes everything that more than one
family takes, and its InvokeModel body is Claude's, the most frequent one. What a family refuses is
left out or changed, and reported. These facts age.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from streamlib.request.target import Target
from streamlib_parsers.items import WireApi

ReasoningReplay: TypeAlias = Literal["signed", "text", "none", "any"]
Choice: TypeAlias = Literal["auto", "any", "tool"]
CachePosition: TypeAlias = Literal["tools", "system", "messages"]


class BedrockFamily(Struct, frozen=True, gc=False, omit_defaults=True):
    """One family. Numbers such as B17 are the rows of the rule table in docs/wires/converse.md."""

    name: str
    marks: tuple[str, ...] = ()
    """Parts of model names: a name that contains one of them belongs to the family."""
    body: WireApi | None = None
    """The wire whose body InvokeModel takes; None: this library builds none."""
    system: bool = True
    """Takes a system prompt."""  # rule B21
    system_turns: bool = False
    """Takes turns of role `system` inside the conversation."""
    choices: tuple[Choice, ...] = ("auto",)
    """Forms of `toolChoice`."""  # rule B17
    status: bool = False
    """Takes `status` in a tool result."""  # rule B18
    mixed_turns: bool = True
    """Takes tool results and other content in one turn."""  # rule B7
    reasoning: ReasoningReplay = "none"
    """How earlier reasoning is sent.

    `signed`: as received if it is encrypted or signed, else as text. `text`: as text. `none`: not
    at all. `any`: as received if it is encrypted or signed, else not at all.
    """  # rule B15
    caches: tuple[CachePosition, ...] = ()
    """Where cache points may be."""  # rule B14
    top_k: str = ""
    """Dotted path of `top_k` in `additionalModelRequestFields`; "": it takes none."""
    effort: str = ""
    """Dotted path of the level of thinking in those fields; "": it takes none."""
    efforts: tuple[str, ...] = ("low", "medium", "high")
    """The levels of thinking it takes."""
    thinking_on: dict[str, object] = {}
    """Fields of `additionalModelRequestFields` that are sent beside a level."""
    thinking_off: dict[str, object] = {}
    """Fields of `additionalModelRequestFields` that switch thinking off."""


_ALL_CHOICES: Final[tuple[Choice, ...]] = ("auto", "any", "tool")
_ALL_POSITIONS: Final[tuple[CachePosition, ...]] = ("tools", "system", "messages")

CLAUDE: Final = BedrockFamily(
    "claude",
    ("anthropic.", "claude-"),
    "messages",
    system_turns=True,
    choices=_ALL_CHOICES,
    status=True,
    reasoning="signed",
    caches=_ALL_POSITIONS,
    top_k="top_k",
)
NOVA: Final = BedrockFamily(
    "nova",
    ("amazon.nova",),
    "converse",
    choices=_ALL_CHOICES,
    status=True,
    caches=("system", "messages"),
    top_k="inferenceConfig.topK",
)
NOVA_2: Final = BedrockFamily(
    "nova-2",
    ("amazon.nova-2",),
    "converse",
    choices=_ALL_CHOICES,
    status=True,
    caches=("system", "messages"),
    top_k="inferenceConfig.topK",
    effort="reasoningConfig.maxReasoningEffort",
    thinking_on={"reasoningConfig": {"type": "enabled"}},
    thinking_off={"reasoningConfig": {"type": "disabled"}},
)
ANY: Final = BedrockFamily(
    "any", body="messages", choices=_ALL_CHOICES, reasoning="any", caches=_ALL_POSITIONS
)
FAMILIES: Final = (
    CLAUDE,
    NOVA_2,  # before NOVA, whose mark is in these names too
    NOVA,
    BedrockFamily("titan", ("amazon.titan",), system=False, choices=()),
    BedrockFamily("llama", ("meta.llama",), mixed_turns=False),
    BedrockFamily(
        "mistral-large",
        ("mistral.mistral-large", "mistral.pixtral-large"),
        choices=("auto", "any"),
        mixed_turns=False,
    ),
    BedrockFamily(
        "mistral-first",
        ("mistral.mistral-7b", "mistral.mixtral"),
        system=False,
        mixed_turns=False,
    ),
    BedrockFamily("mistral", ("mistral.",), mixed_turns=False),
    BedrockFamily("cohere", ("cohere.",), choices=()),
    BedrockFamily("jamba", ("ai21.",), "chat", choices=()),
    BedrockFamily("palmyra", ("writer.",)),
    BedrockFamily(
        "gpt-oss", ("openai.gpt-oss",), "chat", choices=_ALL_CHOICES, effort="reasoning_effort"
    ),
    BedrockFamily(
        "gpt",
        ("openai.",),
        choices=_ALL_CHOICES,
        effort="reasoning.effort",
        efforts=("low", "medium", "high", "xhigh"),
    ),
    BedrockFamily("qwen", ("qwen.",), choices=_ALL_CHOICES, effort="reasoning_config"),
    BedrockFamily(
        "kimi", ("moonshot.", "moonshotai."), choices=_ALL_CHOICES, status=True, reasoning="text"
    ),
    BedrockFamily("glm", ("zai.",), choices=_ALL_CHOICES, reasoning="text"),
    BedrockFamily("deepseek", ("deepseek.",), choices=_ALL_CHOICES),
)
"""All families. A model belongs to the first one with a mark that its name contains.

Sources: botocore's shapes, recordings, issue threads of LangChain, Strands and LiteLLM.
"""


def family(model: str) -> BedrockFamily:
    """The family of a model, by its name."""
    for row in FAMILIES:
        if any(mark in model for mark in row.marks):
            return row
    return ANY


def family_of(target: Target) -> BedrockFamily:
    """The family of a target's model.

    Where its name shows none, traits with Claude's forms of thinking (`Client(models=…)`) make it
    Claude.
    """
    match = family(target.model)
    if match is not ANY:
        return match
    forms = target.traits.thinking
    # "level" is a form of other models: traits that have it are not Claude's
    if forms and "level" not in forms:
        return CLAUDE
    return ANY
