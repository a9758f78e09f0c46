"""Families of models on Bedrock, as data: what each takes of Converse, and whose body InvokeModel wants for it.

A family is told by the name of the model (`us.anthropic.claude-…`, an ARN that ends in one): the first row with a mark that the name
contains. Names that tell nothing (application inference profiles, imported models) are `ANY`, which takes everything but what only one
family is known to take, and is invoked as most of them are: as Claude. These facts age; what a family refuses is left out or changed,
and stands in the report.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from streamlib_parsers.items import WireApi

Thoughts: TypeAlias = Literal["signed", "text", "none", "any"]
Choice: TypeAlias = Literal["auto", "any", "tool"]
Place: TypeAlias = Literal["tools", "system", "messages"]


class Family(Struct, frozen=True, gc=False, omit_defaults=True):
    """One family.

    marks: what names of its models contain. body: the wire whose body InvokeModel takes, None where we write none.
    system: takes a system prompt (B21). system_inside: takes turns of role `system`. choices: forms of `toolChoice` (B17).
    status: takes `status` in a tool result (B18). mixed: takes tool results and other content in one turn (B7).
    thoughts: what an earlier thought may be (B15): `signed` goes back as it came, else as text; `text` goes as text; `none` not at
    all; `any` as it came where it is sealed or signed. caches: where cache points may stand (B14).
    top_k: its dotted place in `additionalModelRequestFields`. effort: that of a level of thinking, in the words of `efforts`.
    think: sent beside a level. unthink: sent to switch thinking off.
    """

    name: str
    marks: tuple[str, ...] = ()
    body: WireApi | None = None
    system: bool = True
    system_inside: bool = False
    choices: tuple[Choice, ...] = ("auto",)
    status: bool = False
    mixed: bool = True
    thoughts: Thoughts = "none"
    caches: tuple[Place, ...] = ()
    top_k: str = ""
    effort: str = ""
    efforts: tuple[str, ...] = ("low", "medium", "high")
    think: dict[str, object] = {}
    unthink: dict[str, object] = {}


_EVERY: Final[tuple[Choice, ...]] = ("auto", "any", "tool")
_EVERYWHERE: Final[tuple[Place, ...]] = ("tools", "system", "messages")

CLAUDE: Final = Family(
    "claude",
    ("anthropic.", "claude-"),
    "messages",
    system_inside=True,
    choices=_EVERY,
    status=True,
    thoughts="signed",
    caches=_EVERYWHERE,
    top_k="top_k",
)
NOVA: Final = Family(
    "nova",
    ("amazon.nova",),
    "converse",
    choices=_EVERY,
    status=True,
    caches=("system", "messages"),
    top_k="inferenceConfig.topK",
)
NOVA_2: Final = Family(
    "nova-2",
    ("amazon.nova-2",),
    "converse",
    choices=_EVERY,
    status=True,
    caches=("system", "messages"),
    top_k="inferenceConfig.topK",
    effort="reasoningConfig.maxReasoningEffort",
    think={"reasoningConfig": {"type": "enabled"}},
    unthink={"reasoningConfig": {"type": "disabled"}},
)
ANY: Final = Family("any", body="messages", choices=_EVERY, thoughts="any", caches=_EVERYWHERE)
FAMILIES: Final = (
    CLAUDE,
    NOVA_2,
    NOVA,
    Family("titan", ("amazon.titan",), system=False, choices=()),
    Family("llama", ("meta.llama",), mixed=False),
    Family(
        "mistral-large",
        ("mistral.mistral-large", "mistral.pixtral-large"),
        choices=("auto", "any"),
        mixed=False,
    ),
    Family("mistral-first", ("mistral.mistral-7b", "mistral.mixtral"), system=False, mixed=False),
    Family("mistral", ("mistral.",), mixed=False),
    Family("cohere", ("cohere.",), choices=()),
    Family("jamba", ("ai21.",), "chat", choices=()),
    Family("palmyra", ("writer.",)),
    Family("gpt-oss", ("openai.gpt-oss",), "chat", choices=_EVERY, effort="reasoning_effort"),
    Family(
        "gpt",
        ("openai.",),
        choices=_EVERY,
        effort="reasoning.effort",
        efforts=("low", "medium", "high", "xhigh"),
    ),
    Family("qwen", ("qwen.",), choices=_EVERY, effort="reasoning_config"),
    Family("kimi", ("moonshot.", "moonshotai."), choices=_EVERY, status=True, thoughts="text"),
    Family("glm", ("zai.",), choices=_EVERY, thoughts="text"),
    Family("deepseek", ("deepseek.",), choices=_EVERY),
)
"""The first whose mark a name contains; sources: botocore's shapes, recordings, issue threads of LangChain, Strands and LiteLLM."""


def family(model: str) -> Family:
    """The family of a model."""
    return next((one for one in FAMILIES if any(mark in model for mark in one.marks)), ANY)
