"""What a caller asks for: one `Prompt`, whatever the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib_parsers.items import JsonObject, ResponseItem, ToolSpec, WireApi, user

Effort: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")


class ReasoningOptions(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """How much the model may think, in full.

    effort: a level. budget: tokens, for models that take a budget. summary: how much of it is summarised (responses: auto,
    concise, detailed). display: what of it is sent (messages: summarized, omitted).
    """

    effort: Effort | None = None
    budget: int | None = None
    summary: str | None = None
    display: str | None = None


class CacheOptions(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Prompt caching: `ttl` as the wire writes it ("5m", "1h", "24h"); `breakpoints` are indexes of input items to cache up to."""

    ttl: str | None = None
    breakpoints: Sequence[int] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "breakpoints", tuple(self.breakpoints))


class Prompt(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """One request. Everything left at None is not sent.

    input: the history, oldest first; a str is one user message.
    instructions: the system prompt. tools, tool_choice ("auto" | "required" | "none" | a tool's name), parallel_tools.
    reasoning: None (send nothing) | a level | tokens to think with (int) | `ReasoningOptions`. verbosity: "low" | "medium" | "high".
    output_schema: a JSON schema the answer must follow. max_output_tokens includes thinking.
    stop: stop sequences. logprobs: how many alternatives for each token (0: only the chosen one).
    cache: None | "auto" | `CacheOptions`. conversation_id feeds cache keys and the providers' conversation headers.
    thinking_mismatch: "drop_block" lets a provider that binds thinking to the conversation drop blocks instead of failing.
    extra: merged last into the request body, as the wire writes it.
    extra_wire: the only wire that `extra` is for; None: any. A request to another one leaves it out, and reports it.
    model, stream, extra_wire: filled by `parse_request`, what the decoded request asked for.
    """

    input: str | Sequence[ResponseItem] = ()
    instructions: str | None = None
    tools: Sequence[ToolSpec] = ()
    tool_choice: str | None = None
    parallel_tools: bool | None = None
    reasoning: Effort | int | ReasoningOptions | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    output_schema: JsonObject | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: Sequence[str] = ()
    seed: int | None = None
    n: int | None = None
    logprobs: int | None = None
    cache: Literal["auto"] | CacheOptions | None = None
    metadata: dict[str, str] | None = None
    service_tier: str | None = None
    conversation_id: str | None = None
    user_id: str | None = None
    thinking_mismatch: Literal["error", "drop_block"] | None = None
    extra: dict[str, Any] | None = None
    model: str | None = None
    stream: bool | None = None
    extra_wire: WireApi | None = None

    def __post_init__(self) -> None:
        if isinstance(self.reasoning, str) and self.reasoning not in EFFORTS:
            raise ValueError(f"reasoning is one of {', '.join(EFFORTS)}, not {self.reasoning!r}")
        _numbers(self)
        if isinstance(self.input, (Struct, bytes, dict, int, type(None))):
            raise TypeError(f"input is a str or a list of items, not a {type(self.input).__name__}")
        for name in ("input", "tools", "stop"):
            value = getattr(self, name)
            if not isinstance(value, (str, tuple)):
                force_setattr(self, name, tuple(value))
        for name in ("input", "tools"):
            _structs(name, getattr(self, name))

    @property
    def items(self) -> tuple[ResponseItem, ...]:
        """The input as items."""
        return (user(self.input),) if isinstance(self.input, str) else tuple(self.input)

    @property
    def thinking(self) -> ReasoningOptions | None:
        """`reasoning` in its full form."""
        asked = self.reasoning
        if isinstance(asked, int):
            return ReasoningOptions(budget=asked)
        return ReasoningOptions(effort=asked) if isinstance(asked, str) else asked


NUMBERS: Final = (
    *(
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_k",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "n",
        "logprobs",
    ),
)


def _numbers(prompt: Prompt) -> None:
    """A provider would refuse them, or a wire that has no place for them would hide the mistake."""
    for name in NUMBERS:
        value = getattr(prompt, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise TypeError(f"{name} is a number, not {value!r}")


def _structs(name: str, values: str | Sequence[Any]) -> None:
    """The usual first mistake is a dict in some wire's own words."""
    for at, value in enumerate(() if isinstance(values, str) else values):
        if not isinstance(value, Struct):
            made = (
                "`streamlib.user(…)` and its like, or `parse_request` for a wire's own"
                if name == "input"
                else "`ToolSpec`"
            )
            raise TypeError(f"{name}[{at}] is a {type(value).__name__}; made by {made}")
