"""One record for each wire API: what the library knows about it outside of its folders.

To add a wire, add its name to `WireApi`, a folder on each side
(`parsers/streamlib_parsers/wires/<name>`, `streamlib/wires/<name>`) and one `WireSpec` here:
docs/guides/add-a-wire.md.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from streamlib.providers.names import Charset
from streamlib_parsers.items import WireApi


class SchemaRules(Struct, frozen=True):
    """JSON Schema as one wire's strict mode accepts it. Objects are closed on all of them.

    Attributes:
        keywords: keywords the wire knows; any other moves into the description.
        all_required: every property is required; an optional one becomes nullable.
        typed: every schema has a type, is a reference or a choice.
        bare_refs: nothing may be beside a `$ref`.
    """

    keywords: frozenset[str]
    all_required: bool = False
    typed: bool = False
    bare_refs: bool = False


COMMON_KEYWORDS: Final = frozenset(
    {
        "type",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "$ref",
        "$defs",
        "definitions",
        "description",
        "title",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "format",
        "minItems",
    }
)
"""Keywords that every strict mode knows."""

OPENAI_KEYWORDS: Final = (COMMON_KEYWORDS - {"allOf"}) | {
    "default",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "maxItems",
}
"""Keywords of OpenAI's strict mode."""


FrameKind: TypeAlias = Literal["sse", "ndjson", "aws"]
RateLimitHeaders: TypeAlias = Literal["anthropic", "openai"]
EnvelopeSlot: TypeAlias = Literal["signature", "encrypted_content", "reasoning_details"]


class ServedPath(Struct, frozen=True):
    """A request path that a server of the wire answers, as a regular expression.

    Attributes:
        pattern: matches the whole path without its query; its group, if any, is the model.
        stream: whether this path streams; None if the body decides.
    """

    pattern: str
    stream: bool | None = None


class GatewaySpec(Struct, frozen=True, kw_only=True):
    """What the gateway needs to serve clients of a wire.

    Attributes:
        keep_alive: bytes sent while the model is silent.
        stateful_fields: request fields that name a history or a response which only the
            client's own provider stores.
        is_dated: responses carry their creation time.
        repeats_settings: responses repeat the settings of their request.
        reasoning_slot: field of a reasoning item that holds an envelope.
        hidden_reasoning_slot: the same for an item that holds nothing else.
        hides_as_redacted: an item that holds nothing else is marked as redacted.
        has_media: responses can hold images.
        is_sequential: clients read one item after another: deltas of several are mixed up.
    """

    keep_alive: bytes
    stateful_fields: tuple[str, ...] = ()
    is_dated: bool = False
    repeats_settings: bool = False
    reasoning_slot: EnvelopeSlot
    hidden_reasoning_slot: EnvelopeSlot
    hides_as_redacted: bool = False
    has_media: bool = True
    is_sequential: bool = False


class ResumeSpec(Struct, frozen=True, kw_only=True):
    """How a wire resumes the stream of a response that runs in the background.

    Attributes:
        field: request field that makes the response run in the background.
        after: query parameter with the position after which the stream begins.
        numbered: positions are ascending numbers; else they are ids without an order.
    """

    field: str = "background"
    after: str
    numbered: bool


class WireSpec(Struct, frozen=True, kw_only=True):
    """One wire API.

    Attributes:
        path: where requests go, below the provider's base URL; `{model}` is the model's name.
        models_path: where models are listed, below the base URL; "" where there is no list.
        served_paths: paths that a server of this wire answers (loopback provider, gateway).
        root_path: what a base URL of the wire ends with, on a server that has all wires.
        frames: how responses are framed.
        named_events: server-sent events carry an `event:` name.
        event_prefixes: beginnings of event names that no other wire has.
        has_blocks: a text ends before the next one starts, so texts need no reordering.
        types_reasoning: reasoning has a form of its own, so none is in a text. Servers of Chat that
            do not know a model leave it there.
        has_tail: frames may follow the one that completes the response (usage, `[DONE]`, a
            repeated `finishReason`, `metadata`): the reader waits for `Deadlines.tail`.
        json_is_complete_body: `application/json` is a complete body. Gemini streams a JSON array
            under that media type, Ollama JSON lines.
        completed_by: what completes a response, as text for messages.
        stop_frame: name of the frame before it, with the stop reason and the final usage; "" if
            one frame has all.
        stored_history: fields of a request (`Prompt.extra`) that continue a history which the
            provider stores: calls that outputs answer may be there, and not in the prompt.
        call_ids: what call ids may look like.
        tool_names: what tool names may look like.
        request_id_header: response header with the request's id.
        rate_limit_headers: whose names of rate limit headers its clients read.
        overloaded_status: HTTP status of the wire's own servers when they are overloaded.
        beta_header: request header with the list of betas that a request uses; "": none.
        betas_in_body: its builder moves that list into the body.
        schema_rules: strict mode of structured output; None: any JSON Schema is taken.
        names_media_types: images on the wire state their media type.
        tool_cache: a request may be cached up to one of its tools (`ToolSpec.cache`).
        tool_options: fields of `ToolOptions` that its builder writes; others are left out and
            reported.
        repeated: dotted names of fields that a decoded request keeps beside a typed field with the
            same meaning: for this wire alone, so another one loses nothing. `parameters` belongs
            to a tool, the others to `Prompt.extra`.
        gateway: how the gateway serves clients of this wire; None: it does not.
        resume: how a truncated stream is resumed; None: it cannot be.
    """

    path: str
    models_path: str = ""
    served_paths: tuple[ServedPath, ...]
    root_path: str = ""
    frames: FrameKind = "sse"
    named_events: bool = False
    event_prefixes: tuple[str, ...] = ()
    has_blocks: bool = False
    types_reasoning: bool = False
    has_tail: bool = False
    json_is_complete_body: bool = False
    completed_by: str
    stop_frame: str = ""
    stored_history: tuple[str, ...] = ()
    call_ids: Charset
    tool_names: Charset = Charset()
    request_id_header: str = "x-request-id"
    rate_limit_headers: RateLimitHeaders = "openai"
    overloaded_status: int = 503
    beta_header: str = ""
    betas_in_body: bool = False
    schema_rules: SchemaRules | None = None
    names_media_types: bool = True
    tool_cache: bool = False
    tool_options: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    gateway: GatewaySpec | None = None
    resume: ResumeSpec | None = None


_PRINTABLE: Final = r"\x21-\x7e"
"""Printable ASCII without the space."""

_CLAUDE_TOOL_OPTIONS: Final = (
    "defer_loading",
    "eager_input_streaming",
    "input_examples",
    "allowed_callers",
)

_OPENAI_SCHEMAS: Final = SchemaRules(OPENAI_KEYWORDS, all_required=True, typed=True, bare_refs=True)

ANTHROPIC_BETA: Final = "anthropic-beta"
"""Request header with the betas of Claude. Bedrock's own wires have them in the body."""

OPENAI_BETA: Final = "openai-beta"
"""Request header with the betas of OpenAI. Only the first header of this name is read, so all betas
of a request are in one."""

WIRE_SPECS: Final[dict[WireApi, WireSpec]] = {
    "messages": WireSpec(
        types_reasoning=True,
        path="/v1/messages",
        models_path="/v1/models?limit=1000",
        served_paths=(ServedPath(r"(?:/v1)?/messages"),),
        named_events=True,
        event_prefixes=("message_", "content_block_"),
        has_blocks=True,
        json_is_complete_body=True,
        completed_by="message_stop",
        stop_frame="message_delta",
        stored_history=("container",),
        call_ids=Charset(),
        tool_names=Charset(longest=128),
        request_id_header="request-id",
        rate_limit_headers="anthropic",
        overloaded_status=529,
        beta_header=ANTHROPIC_BETA,
        schema_rules=SchemaRules(COMMON_KEYWORDS),
        tool_cache=True,
        tool_options=_CLAUDE_TOOL_OPTIONS,
        gateway=GatewaySpec(
            keep_alive=b'event: ping\ndata: {"type": "ping"}\n\n',
            reasoning_slot="signature",
            hidden_reasoning_slot="encrypted_content",
            hides_as_redacted=True,
            has_media=False,
        ),
    ),
    "responses": WireSpec(
        types_reasoning=True,
        beta_header=OPENAI_BETA,
        tool_options=("defer_loading", "allowed_callers", "output_schema"),
        path="/responses",
        models_path="/models",
        served_paths=(ServedPath(r"(?:/v1)?/responses"),),
        root_path="/v1",
        named_events=True,
        event_prefixes=("response.",),
        has_blocks=True,
        json_is_complete_body=True,
        completed_by="response.completed, or response.incomplete",
        stored_history=("previous_response_id", "conversation"),
        call_ids=Charset(_PRINTABLE),
        schema_rules=_OPENAI_SCHEMAS,
        resume=ResumeSpec(after="starting_after", numbered=True),
        gateway=GatewaySpec(
            keep_alive=b": keep-alive\n\n",
            stateful_fields=("previous_response_id", "conversation", "background"),
            is_dated=True,
            repeats_settings=True,
            is_sequential=True,
            reasoning_slot="encrypted_content",
            hidden_reasoning_slot="encrypted_content",
        ),
    ),
    "chat": WireSpec(
        beta_header=OPENAI_BETA,
        path="/chat/completions",
        models_path="/models",
        served_paths=(ServedPath(r"(?:/v1)?/chat/completions"),),
        root_path="/v1",
        has_tail=True,
        json_is_complete_body=True,
        completed_by="a finish_reason for every choice, or [DONE]",
        call_ids=Charset(_PRINTABLE, 256),
        schema_rules=_OPENAI_SCHEMAS,
        gateway=GatewaySpec(
            keep_alive=b": keep-alive\n\n",
            is_dated=True,
            reasoning_slot="reasoning_details",
            hidden_reasoning_slot="reasoning_details",
        ),
    ),
    "gemini": WireSpec(
        types_reasoning=True,
        tool_options=("output_schema",),
        repeated=("parameters", "generationConfig.responseSchema"),
        path="/models/{model}:streamGenerateContent?alt=sse",
        models_path="/models?pageSize=1000",
        served_paths=(
            ServedPath(r"(?:/v1(?:beta)?)?/models/([^/:]+):streamGenerateContent", stream=True),
            ServedPath(r"(?:/v1(?:beta)?)?/models/([^/:]+):generateContent", stream=False),
        ),
        root_path="/v1beta",
        has_tail=True,
        completed_by="a finishReason",
        stored_history=("cachedContent",),
        call_ids=Charset(_PRINTABLE, 256),
        tool_names=Charset("a-zA-Z0-9_.:-", 128, "a-zA-Z_"),
        gateway=GatewaySpec(
            # An empty line: Google's SDK takes a comment for JSON.
            keep_alive=b"\n",
            stateful_fields=("cachedContent",),
            reasoning_slot="signature",
            hidden_reasoning_slot="signature",
        ),
    ),
    "interactions": WireSpec(
        types_reasoning=True,
        tool_options=("defer_loading",),
        path="/interactions",
        models_path="/models?pageSize=1000",
        served_paths=(
            ServedPath(r"(?:/v1(?:beta1?)?)?(?:/projects/[^/]+/locations/[^/]+)?/interactions"),
        ),
        root_path="/v1beta",
        named_events=True,
        event_prefixes=("interaction.", "step."),
        has_blocks=True,
        json_is_complete_body=True,
        completed_by="interaction.completed",
        stored_history=("previous_interaction_id", "cached_content"),
        resume=ResumeSpec(after="last_event_id", numbered=False),
        call_ids=Charset(_PRINTABLE),
        tool_names=Charset("a-zA-Z0-9_.:-", 128, "a-zA-Z_"),
        gateway=GatewaySpec(
            keep_alive=b": keep-alive\n\n",
            stateful_fields=(
                "previous_interaction_id",
                "background",
                "continuation_token",
                "cached_content",
                "environment",
            ),
            reasoning_slot="signature",
            hidden_reasoning_slot="signature",
        ),
    ),
    "converse": WireSpec(
        types_reasoning=True,
        path="/model/{model}/converse-stream",
        served_paths=(
            ServedPath(r"/model/([^/]+)/converse-stream", stream=True),
            ServedPath(r"/model/([^/]+)/converse", stream=False),
        ),
        frames="aws",
        event_prefixes=("messageSt", "contentBlock"),
        has_blocks=True,
        has_tail=True,
        json_is_complete_body=True,
        completed_by="messageStop",
        call_ids=Charset("a-zA-Z0-9_.:-"),
        beta_header=ANTHROPIC_BETA,
        betas_in_body=True,
        tool_cache=True,
    ),
    "invoke": WireSpec(
        path="/model/{model}/invoke-with-response-stream",
        served_paths=(
            ServedPath(r"/model/([^/]+)/invoke-with-response-stream", stream=True),
            ServedPath(r"/model/([^/]+)/invoke", stream=False),
        ),
        frames="aws",
        json_is_complete_body=True,
        completed_by="the end of the inner wire",
        call_ids=Charset(),
        beta_header=ANTHROPIC_BETA,
        betas_in_body=True,
        tool_cache=True,
        tool_options=_CLAUDE_TOOL_OPTIONS,
    ),
    "ollama": WireSpec(
        types_reasoning=True,
        path="/api/chat",
        models_path="/api/tags",
        served_paths=(ServedPath(r"/api/chat"),),
        frames="ndjson",
        names_media_types=False,
        completed_by="done: true",
        call_ids=Charset(_PRINTABLE, 256),
    ),
    "cohere": WireSpec(
        types_reasoning=True,
        path="/v2/chat",
        models_path="/v1/models?page_size=1000&endpoint=chat",
        served_paths=(ServedPath(r"(?:/cohere)?/v2/chat"),),
        named_events=True,
        event_prefixes=("message-", "content-", "tool-plan-", "tool-call-", "citation-"),
        has_blocks=True,
        json_is_complete_body=True,
        completed_by="message-end",
        call_ids=Charset(_PRINTABLE, 256),
        request_id_header="x-debug-trace-id",
        gateway=GatewaySpec(
            keep_alive=b": keep-alive\n\n",
            reasoning_slot="signature",
            hidden_reasoning_slot="signature",
            has_media=False,
        ),
    ),
}
"""Every wire API by name."""


def gateway_spec(wire_api: WireApi) -> GatewaySpec:
    """How the gateway serves clients of a wire.

    Raises:
        ValueError: the gateway serves no clients of this wire.
    """
    spec = WIRE_SPECS[wire_api].gateway
    if spec is None:
        raise ValueError(f"the gateway serves no {wire_api} clients")
    return spec
