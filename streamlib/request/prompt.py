"""What a caller wants from a model: one `Prompt`, for any wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib.request.anchors import frozen_items
from streamlib.request.headers import checked_headers
from streamlib.request.mistakes import (
    check_fields,
    check_items,
    check_kind,
    check_tools,
    check_word,
    refuse_unknown,
    tool_of,
)
from streamlib_parsers.item_base import CheckedMeta, NamedFields, restored
from streamlib_parsers.items import CacheMark, JsonObject, ResponseItem, ToolSpec, WireApi, user
from streamlib_parsers.response import Response
from streamlib_parsers.signatures import ShortHelp

Effort: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
EFFORTS_ELSEWHERE: Final = {"none": "off", "disabled": "off", "mid": "medium", "maximum": "max"}
"""Level of a wire or another library -> the one to write."""

Structured: TypeAlias = Literal["native", "tool", "json_mode"]
STRUCTURED: tuple[Structured, ...] = ("native", "tool", "json_mode")

if TYPE_CHECKING:
    SchemaSource: TypeAlias = JsonObject | type[Any] | UnionType
    """What a schema is made from."""
else:
    SchemaSource = JsonObject  # what is stored, and what msgspec reads and writes

if TYPE_CHECKING:
    ToolSource: TypeAlias = ToolSpec | Any
    """A tool, or a function, which becomes one. Any, for those who read the field."""
else:
    ToolSource = ToolSpec


class ReasoningOptions(
    Struct,
    metaclass=NamedFields,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """How much the model may think, in full.

    Attributes:
        effort: a level.
        budget: tokens, for models that take a budget.
        summary: how much of it is summarised (responses: auto, concise, detailed).
        display: what of it is sent (messages: summarized, omitted).
        effort_only: sends the level alone and does not switch thinking on
            (messages: output_config.effort without thinking).
        off_form: how `off` is written, where the model takes it (messages: disabled,
            between_tools).
    """

    _meant: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("level", "reasoning_effort", "thinking_level"), "effort"),
        **dict.fromkeys(("budget_tokens", "thinking_budget", "max_tokens"), "budget"),
        "include_thoughts": "summary",
    }
    """Name in other libraries -> the field."""

    effort: Effort | None = None
    budget: int | None = None
    summary: str | None = None
    display: str | None = None
    effort_only: bool = False
    off_form: str | None = None


class CacheOptions(
    Struct,
    metaclass=NamedFields,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """Prompt caching.

    Without breakpoints, `instructions` and `automatic` the provider or the builder chooses where.
    `ToolSpec.cache` caches up to a tool.

    Attributes:
        ttl: how long, as the wire writes it ("5m", "1h", "24h"); also of marks without one.
        breakpoints: indexes of the input items to cache up to.
        lifetimes: of single breakpoints, by their item: they win over `ttl`; None is the
            provider's default.
        instructions: caches up to the end of `Prompt.instructions`.
        automatic: lets the provider choose one more (messages: cache_control of the body).
        compare: an earlier response, or its id: the provider says in `Response.cache_diagnosis` why
            less of its prompt was read from the cache than could be. "" in the first request of a
            conversation (messages: diagnostics; responses from gpt-5.6 on).
        prewarm: True fills the cache without generating anything (responses from gpt-5.6 on).
    """

    _meant: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("time", "lifetime", "type", "duration", "expires"), "ttl"),
        **dict.fromkeys(("items", "indexes", "messages"), "breakpoints"),
        "system": "instructions",
    }
    """Name in other libraries -> the field."""

    ttl: str | None = None
    breakpoints: Sequence[int] = ()
    lifetimes: dict[int, str | None] = {}
    instructions: CacheMark | None = None
    automatic: CacheMark | None = None
    compare: Response | str | None = None
    prewarm: bool | None = None

    def __post_init__(self) -> None:
        compare: Any = self.compare
        if isinstance(compare, Response):
            force_setattr(self, "compare", compare.response_id or "")
        elif not isinstance(compare, (str, type(None))):
            raise TypeError(f"compare is a Response or its id, not {compare!r:.60}")
        indexes: Any = self.breakpoints
        if not isinstance(indexes, Iterable):
            raise TypeError(
                f"breakpoints is a list of the indexes of items, not {indexes!r}: "
                f"write [{indexes!r}]"
            )
        force_setattr(self, "breakpoints", tuple(indexes))

    @property
    def chooses_itself(self) -> bool:
        """Whether the provider or the builder chooses where to cache."""
        return not (self.breakpoints or self.instructions or self.automatic)

    def lifetime(self, item_index: int) -> str | None:
        """The lifetime of the breakpoint after an item."""
        return self.lifetimes.get(item_index, self.ttl)


class PromptMeta(ShortHelp, CheckedMeta):
    """Checks each prompt that a program makes, with the names of its fields."""

    if not TYPE_CHECKING:  # see `CheckedMeta`

        def __call__(cls, *positional: Any, **named: Any) -> Any:  # noqa: N805  # of classes
            """Makes a prompt, and checks it."""
            refuse_unknown("Prompt", named, cls.__struct_fields__)
            return super().__call__(*positional, **named)


class Prompt(
    Struct,
    metaclass=PromptMeta,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """One request: the history, and everything else that a model can be told.

        prompt = Prompt(
            "What is the weather in Paris?",
            instructions="Answer in one sentence.",
            tools=[weather],
            reasoning="low",
            max_output_tokens=500,
        )
        response = await client.respond(prompt, "anthropic:claude-opus-5")

    Most requests need these: `input`, a text or the history; `instructions`,
    the system prompt; `tools`; `reasoning`, how much to think; and
    `output_schema`, the class or the JSON Schema that the response must follow.

    A field that is None is not sent. Each option names the wires that have it;
    ``converse`` and ``invoke`` are those of Claude. Elsewhere it is left out
    and `Request.report` names it, or with ``strict=True`` the request is
    refused. A provider or a model may lack more, which is reported too.
    docs/prompts.md shows each option in use, and how each wire writes it.

    Args:
        input: the history, oldest first; a str is one user message. Images,
            documents and audio are parts of its messages (`user`, `Image`,
            `Document`, `Audio`). A part that a wire lacks is left out and
            reported; state of another origin is downgraded and reported.
        instructions: the system prompt. A `Message` with the role "system" may
            also be in the history. Wires: all.
        tools: tools that the model may call (functions of yours, `ToolSpec`,
            `ToolSpec.of`), or that the provider runs (`ToolSpec.hosted`).
            Wires: all; a hosted tool that a target lacks is reported.
        tool_choice: "auto", "required", "none", or the name of the tool to
            call. Wires: all but ollama.
        parallel_tools: False: at most one call in a response. Wires: messages,
            responses, chat, converse, invoke.
        reasoning: how much to think: a level ("off", "minimal", "low",
            "medium", "high", "xhigh", "max"), tokens (int), or
            `ReasoningOptions`. Tokens for a model that knows levels become the
            nearest level, and a level for one that takes tokens becomes a
            number; both are reported. Wires: all.
        verbosity: how long the text should be: "low", "medium" or "high".
            Wires: responses, chat.
        output_schema: what the response must follow: a JSON Schema, or a class,
            of which the schema is stored: a pydantic model, a msgspec Struct, a
            dataclass, a TypedDict, an attrs class, or a type made of them. One
            whose JSON is not an object (`list[City]`) is asked for in an object
            with the one key ``value``. `Response.parsed` reads it. Keywords
            that a wire refuses become text of the description, reported. Wires:
            all.
        structured: how `output_schema` is asked for: "native", the default,
            with the wire's structured output; "tool", as the arguments of a
            tool that the model has to call; "json_mode", as JSON of any form,
            with the schema in the instructions. Wires: all.
        max_output_tokens: limit of the output in tokens, reasoning included; a
            response that reaches it has the stop reason "length". Messages
            requires one: without it the model's own is sent, at most 32,000.
            Wires: all.
        temperature: sampling temperature, from 0. Left out and reported for
            models that refuse it, as many do while they think; so are `top_p`
            and `top_k`. Wires: all.
        top_p: nucleus sampling, from 0 to 1: the share of probability to sample
            from. Wires: all.
        top_k: how many of the most likely tokens to sample from. Wires: all but
            responses, interactions.
        presence_penalty: penalty on tokens that occurred, from -2 to 2. Wires:
            chat, gemini, ollama, cohere.
        frequency_penalty: penalty on tokens by how often they occurred, from -2
            to 2. Wires: chat, gemini, ollama, cohere.
        stop: texts that end the output; they are not part of it. A str is one
            text. Wires: all but responses.
        seed: a number for sampling, for output that can be repeated. Wires:
            chat, gemini, interactions, ollama, cohere.
        n: number of choices. Wires: chat, gemini.
        logprobs: number of alternatives for each token; 0: the chosen token
            alone. Wires: responses, chat, gemini, ollama, cohere.
        cache: "auto": the provider or the builder chooses up to where the
            prompt is cached, or `CacheOptions`. Nothing is sent to services
            that cache by themselves. Wires: all.
        metadata: texts by name, stored with the request by the provider. Wires:
            responses, chat, gemini, interactions, converse.
        service_tier: speed and price class, as the wire writes it. Wires: all
            but ollama, cohere.
        conversation_id: your id of the conversation, so that its requests meet
            the same cache. Sent where the provider has a field or a header for
            it. Wires: responses.
        user_id: your end user, without personal data. Wires: messages,
            responses, chat, invoke.
        background: True: the response goes on without its connection, and is
            stored by the provider; its stream can be resumed where it broke
            (docs/resume.md). Wires: responses, interactions.
        thinking_mismatch: "drop_block" lets a model that binds thinking to the
            conversation drop blocks instead of failing. Wires: messages,
            converse, invoke.
        extra: fields of the wire, merged into the body last, as the wire writes
            them.
        extra_wire: the only wire that `extra` is for; None: any. A request to
            another one leaves it out and reports it. Set by `parse_request`;
            a request to the same wire keeps the wire's own default of
            `store`.
        headers: HTTP headers of this request only (`anthropic-beta` …), names
            in lower case; they win over the provider's own. No keys.
        model: the model that a decoded request named (`parse_request`); used
            where the call names none.
        stream: whether a decoded request wanted a stream (`parse_request`).
        name: the name of the prompt, where prompts are kept under names; for
            telemetry, and never sent. Wires: none.
        version: the version of the prompt of that name, likewise.

    Raises:
        TypeError: a name that is no option, or a value of the wrong kind: dicts
            of some wire in `input`, a text for a number.
        ValueError: a value that the field cannot have, or two tools of one
            name.
    """

    input: str | Sequence[ResponseItem] = ()
    instructions: str | None = None
    tools: Sequence[ToolSource] = ()
    tool_choice: str | None = None
    parallel_tools: bool | None = None
    reasoning: Effort | int | ReasoningOptions | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    output_schema: SchemaSource | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: str | Sequence[str] = ()
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
    headers: dict[str, str] = {}
    structured: Structured | None = None
    background: bool | None = None
    name: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.reasoning, str):
            check_word("reasoning", self.reasoning, EFFORTS, EFFORTS_ELSEWHERE)
        check_word("structured", self.structured, STRUCTURED)
        if self.output_schema is not None and not isinstance(self.output_schema, dict):
            force_setattr(self, "output_schema", _schema_of(self.output_schema))
        _check_numbers(self)
        if self.headers:
            force_setattr(self, "headers", checked_headers(self.headers))
        if isinstance(self.input, (Struct, bytes, dict, int, type(None))):
            raise TypeError(f"input is a str or a list of items, not a {type(self.input).__name__}")
        if isinstance(self.input, (set, frozenset)):
            raise TypeError("input is a list of items, not a set: a set has no order")
        force_setattr(self, "stop", _stop_sequences(self.stop))
        if not isinstance(self.input, (str, tuple)):
            force_setattr(self, "input", frozen_items(self.input))
        if self.tools:
            tools: Any = self.tools
            is_list = isinstance(tools, Iterable) and not isinstance(tools, Mapping)
            if not is_list or isinstance(tools, (str, Struct)) or callable(tools):
                raise TypeError(f"tools is a list of tools, not {tools!r:.100}")
            specs = [tool_of(tool, index) for index, tool in enumerate(tools)]
            force_setattr(self, "tools", tuple(specs))

    def __reduce__(self) -> tuple[Any, ...]:
        # One that was decoded may hold what no program may write.
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return restored, (type(self), fields)

    def _check(self) -> None:
        """Raises where a program made a prompt that cannot be meant."""
        check_fields(self)
        _check_reasoning(self.reasoning)
        _check_cache(self.cache)
        check_tools(self.tools)
        if not isinstance(self.input, str):
            check_items(self.input)

    @property
    def items(self) -> tuple[ResponseItem, ...]:
        """The input as items."""
        if isinstance(self.input, str):
            return (user(self.input),)
        return tuple(self.input)

    @property
    def schema(self) -> JsonObject | None:
        """`output_schema` as a JSON Schema."""
        schema: JsonObject | None = self.output_schema  # type: ignore[assignment]
        return schema

    @property
    def thinking(self) -> ReasoningOptions | None:
        """`reasoning` in its full form."""
        if isinstance(self.reasoning, int):
            return ReasoningOptions(budget=self.reasoning)
        if isinstance(self.reasoning, str):
            return ReasoningOptions(effort=self.reasoning)
        return self.reasoning


NUMBERS: Final = (
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "n",
    "logprobs",
)


def _schema_of(kind: Any) -> JsonObject:
    """The schema of a class, with an object at its root, which is what most wires take."""
    # Imported here because few prompts have a class.
    from streamlib.structured.schemas import json_schema, object_schema

    try:
        return object_schema(json_schema(kind))
    except TypeError as error:
        raise TypeError(f"output_schema is a JSON Schema as a dict, or a class: {error}") from error


def _stop_sequences(stop: Any) -> tuple[str, ...]:
    """A list of texts, also of one given alone.

    A str is a sequence of its letters, and bytes are one of numbers: taken for a list, each letter
    would end the output.
    """
    if isinstance(stop, str):
        if not stop:
            raise ValueError("stop is a text that ends the output: leave it out instead of ''")
        return (stop,)
    if isinstance(stop, (Mapping, bytes)) or not isinstance(stop, Iterable):
        raise TypeError(f"stop is a text or a list of texts, not {stop!r:.100}")
    texts = tuple(stop)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"stop is a text or a list of texts, not {stop!r:.100}")
    return texts


def _check_reasoning(reasoning: Any) -> None:
    """Checks what a program wrote; what a client sent is taken as it is."""
    if isinstance(reasoning, ReasoningOptions):
        check_word("effort", reasoning.effort, EFFORTS, EFFORTS_ELSEWHERE)
        check_kind("budget", reasoning.budget, int, "a whole number of tokens")
        check_kind("summary", reasoning.summary, str, 'a text: "auto", "concise", "detailed"')
        check_kind("display", reasoning.display, str, 'a text: "summarized", "omitted"')
        _check_budget("budget", reasoning.budget)
    elif isinstance(reasoning, bool) or not isinstance(reasoning, (str, int, type(None))):
        raise TypeError(
            f"reasoning is a level, tokens or `ReasoningOptions(…)`, not {reasoning!r:.100}: "
            f"write one of {', '.join(EFFORTS)}"
        )
    elif isinstance(reasoning, int):
        _check_budget("reasoning", reasoning)


def _check_budget(name: str, budget: int | None) -> None:
    if budget is not None and budget < -1:
        raise ValueError(f"{name} is tokens from 0, or -1 (the model decides), not {budget}")


def _check_cache(cache: Any) -> None:
    """Checks what a program wrote: it is "auto" or `CacheOptions`."""
    if cache is None or cache == "auto":
        return
    if isinstance(cache, str):
        meant = f"write CacheOptions(ttl={cache!r})"
        raise ValueError(f'cache is "auto", not {cache!r}: {meant}')  # noqa: TRY004  # a word
    if not isinstance(cache, CacheOptions):
        raise TypeError(f'cache is "auto" or `CacheOptions(…)`, not {cache!r:.100}')
    check_kind("ttl", cache.ttl, str, 'a text, as the wire writes it: "5m", "1h"')
    check_kind("instructions", cache.instructions, CacheMark, "`CacheMark()`")
    check_kind("automatic", cache.automatic, CacheMark, "`CacheMark()`")
    for index in cache.breakpoints:
        check_kind("breakpoints", index, int, "a list of the indexes of items")


def _check_numbers(prompt: Prompt) -> None:
    """Checked here, because a wire that lacks the field would hide the mistake."""
    for name in NUMBERS:
        value = getattr(prompt, name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is a number, not {value!r:.100}")
