"""Prompt to request: the same stages for every wire, around the wire's own builder.

`_write` lists them in their order. No key is needed: the request is signed when it is sent.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Final, Never, Protocol, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.models import Traits
from streamlib.providers.names import fit_names
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.allowed_tools import AllowedTools, choice_of_another_wire, without_choice
from streamlib.request.endpoints import find_service, resolve_target
from streamlib.request.fit_tools import fit_tools
from streamlib.request.headers import BETA_HEADERS, with_headers
from streamlib.request.history import CALLS, OUTPUTS, IndexedItem, repair
from streamlib.request.json_objects import merged, nested, without
from streamlib.request.known_turns import KNOWN_TURNS
from streamlib.request.media import report_corrected_types
from streamlib.request.mistakes import check_switches, check_tool_choice, refuse_unknown
from streamlib.request.origins import downgrade, opaque_state
from streamlib.request.prompt import Prompt
from streamlib.request.provider_steps import apply_steps
from streamlib.request.report import Change, Report
from streamlib.request.structured_modes import with_structured_mode
from streamlib.request.target import BuildContext, BuiltRequest, Target, continues_stored_history
from streamlib.request.tool_options import fit_tool_options
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.items import (
    JsonObject,
    Origin,
    ResponseItem,
    ToolSearchOutput,
    ToolSpec,
    WireApi,
)
from streamlib_parsers.stream_error import StreamError, invalid_request

_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
"""A string in JSON."""


class Request(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A request without its key: it can be printed, compared and stored.

    Attributes:
        method: HTTP method.
        url: with the model's name, where the wire puts it there.
        headers: without authentication.
        body: JSON.
        report: every change that was made to the prompt.
        wire_api: wire of the request and its response.
        model: name as it is sent.
        origin: stamped on the items of the response.
        names: sent tool name -> your tool name, for `parser(names=…)`.
        namespaces: your tool name -> namespace and name there, of functions of a namespace that
            were sent one by one, for `parser(namespaces=…)`.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    report: list[Change]
    wire_api: WireApi
    model: str
    origin: Origin
    names: dict[str, str] = {}
    namespaces: dict[str, tuple[str, str]] = {}


class Builder(Protocol):
    """The module `streamlib.wires.<wire>.build`."""

    def build(
        self, prompt: Prompt, items: list[IndexedItem], context: BuildContext
    ) -> BuiltRequest:
        """The body in the wire's own fields."""
        ...


BUILD_NAMES: Final = (
    "provider",
    "wire_api",
    "base_url",
    "strict",
    "strict_origin",
    "models",
    "providers",
    "account",
)
"""The options of `build`."""


def build(
    prompt: Prompt | str | Sequence[ResponseItem],
    model: str,
    *,
    provider: str | Provider | None = None,
    wire_api: WireApi | None = None,
    base_url: str | None = None,
    strict: bool = False,
    strict_origin: bool = False,
    models: Mapping[str, Traits] | None = None,
    providers: tuple[Provider, ...] = (),
    account: str | None = None,
    **unknown: Never,
) -> Request:
    """Builds the request for a model.

    Args:
        prompt: a prompt, a history, or one user message.
        model: `"provider:model"`, or the model alone with `provider=`.
        provider: a provider's name, or one of your own.
        wire_api: None takes the provider's first wire.
        base_url: None takes the provider's own.
        strict: raise where the report would not be empty.
        strict_origin: what is unknown of an item's origin counts as that of another provider.
        models: traits of models that win over the shipped ones, by name prefix.
        providers: further providers, found by name.
        account: sent in the provider's account header, and part of the origin.

    Raises:
        StreamError: `invalid_request` for an unknown provider or a wire it lacks; with `strict`,
            `invalid_history` or `invalid_request` for the first change of the report.
    """
    refuse_unknown("build", unknown, BUILD_NAMES, Prompt.__struct_fields__)
    check_switches(strict=strict, strict_origin=strict_origin)
    if not isinstance(prompt, Prompt):
        prompt = Prompt(prompt)
    service, model = find_service(model, provider, providers)
    target = resolve_target(service, model, wire_api, base_url, models, account)
    return build_for(prompt, target, strict=strict, strict_origin=strict_origin)


def build_for(
    prompt: Prompt, target: Target, *, strict: bool = False, strict_origin: bool = False
) -> Request:
    """Builds the request for a target that is resolved already; see `build`."""

    def write(part: Prompt) -> _Draft:
        return _write(part, target, strict_origin=strict_origin)

    draft = KNOWN_TURNS.draft(prompt, target, write, strict_origin=strict_origin)
    if strict and draft.report.changes:
        raise _strict_error(draft.report.changes)
    return _request(draft)


def _write(prompt: Prompt, target: Target, *, strict_origin: bool) -> _Draft:
    """Writes a prompt as a request, stage by stage."""
    report = Report()
    context = BuildContext(target, report)
    draft = _Draft(prompt, context, target.wire_api, report, strict_origin)
    # what the prompt asks for, in what this wire knows
    _choose_structured_mode(draft)
    _add_headers(draft)
    _read_allowed_tools(draft)
    _drop_extra_of_another_wire(draft)
    _check_tool_choice(draft)
    _fit_tool_options(draft)
    # the history
    _repair_history(draft)
    _downgrade_history(draft)
    _report_media_types(draft)
    _fit_call_ids(draft)
    # the tools, also those of the history
    _fit_tools(draft)
    _rename_tools(draft)
    # the body
    _write_body(draft)
    _apply_provider_steps(draft)
    _apply_provider_fields(draft)
    _merge_extra(draft)
    _report_unsent_state(draft)
    _write_headers(draft)
    return draft


@dataclass(slots=True)
class _Draft:
    """A request while it is built: each stage replaces what it changes."""

    prompt: Prompt
    context: BuildContext
    wire_api: WireApi
    report: Report
    strict_origin: bool
    items: list[IndexedItem] = field(default_factory=list)
    """The history, once it is repaired."""
    allowed_tools: AllowedTools | None = None
    """The tools that may be called, where the request of another wire named some."""
    sent_names: dict[str, str] = field(default_factory=dict)
    """Your tool name -> the name that is sent, for those that the wire does not take."""
    namespaces: dict[str, tuple[str, str]] = field(default_factory=dict)
    built: BuiltRequest = field(default_factory=lambda: BuiltRequest({}))
    """What the wire's builder returned."""
    body: JsonObject = field(default_factory=dict)
    """The complete body."""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        return self.context.target


# --- what the prompt asks for ---


def _choose_structured_mode(draft: _Draft) -> None:
    """Puts a tool, or instructions, in place of a schema that is asked for by these."""
    draft.prompt = with_structured_mode(draft.prompt, draft.report)


def _add_headers(draft: _Draft) -> None:
    """Adds the prompt's headers, but betas of another wire: they name features of one service."""
    headers = dict(draft.prompt.headers)
    for name in BETA_HEADERS:
        if name in headers and name != WIRE_SPECS[draft.wire_api].beta_header:
            draft.report.dropped(f"/headers/{name}", f"{draft.wire_api} has no such betas")
            del headers[name]
    if headers != draft.prompt.headers:
        draft.prompt = replace(draft.prompt, headers=headers)
    draft.context = BuildContext(with_headers(draft.target, headers), draft.report)


def _read_allowed_tools(draft: _Draft) -> None:
    """Reads a restriction of the tools that another wire has a word for."""
    draft.allowed_tools = choice_of_another_wire(draft.prompt, draft.wire_api)
    if draft.allowed_tools is not None:
        draft.prompt = without_choice(draft.prompt, draft.allowed_tools)


def _check_tool_choice(draft: _Draft) -> None:
    """Refuses the name of a tool that is not offered.

    Here and not in `Prompt`: an agent adds its tools. A request that was decoded is sent as it is.
    """
    prompt = draft.prompt
    if prompt.tool_choice is None or prompt.extra_wire is not None or prompt.stream is not None:
        return
    searched = [item.tools for item in prompt.items if isinstance(item, ToolSearchOutput)]
    check_tool_choice(prompt.tool_choice, chain(prompt.tools, *searched))


SAYS_NOTHING: Final[JsonObject] = {
    "store": False,
    "top_logprobs": 0,
    "generationConfig.logprobs": 0,
    "generationConfig.thinkingConfig.includeThoughts": False,
}
"""Fields of `Prompt.extra` -> the value that asks for nothing: nor does another wire's request."""


def _drop_extra_of_another_wire(draft: _Draft) -> None:
    """Drops `Prompt.extra` of another wire: its fields mean nothing here, or something else."""
    extra, extra_wire = draft.prompt.extra, draft.prompt.extra_wire
    if extra is None or extra_wire is None or extra_wire == draft.wire_api:
        return
    for path in WIRE_SPECS[extra_wire].repeated:
        extra = without(extra, path)
    for path, value in SAYS_NOTHING.items():
        if merged(extra, nested(path, value)) == extra:
            extra = without(extra, path)
    for key in extra:
        draft.report.dropped(f"/extra/{key}", f"a field of {extra_wire}")
    draft.prompt = replace(draft.prompt, extra=None)


def _fit_tool_options(draft: _Draft) -> None:
    draft.prompt = fit_tool_options(draft.prompt, draft.wire_api, draft.report)


# --- the history ---


def _repair_history(draft: _Draft) -> None:
    """Repairs what no provider takes. Calls of a history that the provider stores may be there."""
    is_continued = continues_stored_history(draft.prompt.extra, draft.wire_api)
    draft.items = repair(draft.prompt.items, draft.report, is_continued=is_continued)


def _downgrade_history(draft: _Draft) -> None:
    """Removes the state of other origins."""
    draft.items = downgrade(
        draft.items, draft.target.origin, draft.report, strict=draft.strict_origin
    )


def _report_media_types(draft: _Draft) -> None:
    if WIRE_SPECS[draft.wire_api].names_media_types:
        report_corrected_types(draft.items, draft.report)


def _fit_call_ids(draft: _Draft) -> None:
    """Gives calls ids that the wire takes, the same on a call and its output."""
    target = draft.target
    charset = target.provider.call_ids or WIRE_SPECS[draft.wire_api].call_ids
    longest = target.provider.chat.longest_call_id
    if draft.wire_api == "chat" and longest is not None:
        charset = replace(charset, longest=longest)
    call_ids: list[str] = []
    for entry in draft.items:
        if isinstance(entry.item, CALLS + OUTPUTS):
            call_ids.append(entry.item.call_id)
    changed = fit_names(call_ids, charset)
    if not changed:
        return
    fitted: list[IndexedItem] = []
    for entry in draft.items:
        item = entry.item
        if isinstance(item, CALLS + OUTPUTS) and item.call_id in changed:
            reason = f"{draft.wire_api} does not take this id"
            draft.report.add("renamed", f"{entry.path}/call_id", reason)
            item = replace(item, call_id=changed[item.call_id])
        fitted.append(IndexedItem(entry.position, item))
    draft.items = fitted


# --- the tools ---


def _fit_tools(draft: _Draft) -> None:
    """Leaves out tools that the target lacks, and fits the history and the choice to the rest."""
    fitted = fit_tools(draft.prompt, draft.items, draft.context, draft.allowed_tools)
    draft.prompt, draft.items, draft.namespaces = fitted.prompt, fitted.items, fitted.namespaces
    draft.report.tool_paths = fitted.paths


def _rename_tools(draft: _Draft) -> None:
    """Gives tools names that the wire takes; the parser maps the calls of the response back."""
    names = [tool.name for tool in draft.prompt.tools if tool.native is None]
    for entry in draft.items:
        # A call in a namespace has a name that only the namespace knows.
        if isinstance(entry.item, CALLS) and entry.item.namespace is None:
            names.append(entry.item.name)
    sent_names = fit_names(names, WIRE_SPECS[draft.wire_api].tool_names)
    if not sent_names:
        return
    draft.sent_names = sent_names
    tools: list[ToolSpec] = []
    offered = {tool.name for tool in draft.prompt.tools}
    for index, tool in enumerate(draft.prompt.tools):
        if tool.name in sent_names:
            sent = sent_names[tool.name]
            draft.report.add("renamed", f"/tools/{index}/name", f"sent as {sent}")
            tool = replace(tool, name=sent)  # noqa: PLW2901
        tools.append(tool)
    choice = draft.prompt.tool_choice
    if choice is not None:
        choice = sent_names.get(choice, choice) or None
    draft.prompt = replace(draft.prompt, tools=tools, tool_choice=choice)
    renamed: list[IndexedItem] = []
    for entry in draft.items:
        item = entry.item
        if isinstance(item, CALLS) and item.namespace is None and item.name in sent_names:
            # The report names a tool once, not each of its calls.
            if item.name not in offered:
                draft.report.add(
                    "renamed", f"{entry.path}/name", f"sent as {sent_names[item.name]}"
                )
            item = replace(item, name=sent_names[item.name])
        renamed.append(IndexedItem(entry.position, item))
    draft.items = renamed


# --- the body ---


def _write_body(draft: _Draft) -> None:
    """Writes the body in the wire's own fields."""
    builder = _builder(draft.wire_api)
    draft.built = builder.build(draft.prompt, draft.items, draft.context)


@cache
def _builder(wire_api: WireApi) -> Builder:
    """The builder of a wire, by name at run time: those of other wires are not loaded."""
    return cast("Builder", importlib.import_module(f"streamlib.wires.{wire_api}.build"))


def _apply_provider_steps(draft: _Draft) -> None:
    draft.built = apply_steps(draft.prompt, draft.built, draft.context)


def _apply_provider_fields(draft: _Draft) -> None:
    """The body as the provider takes it: without unsupported fields, renamed, with its own."""
    provider = draft.target.provider
    unsupported = dict(provider.unsupported)
    if _is_thinking(draft.prompt, draft.target):
        unsupported |= provider.unsupported_when_thinking
    for name, reason in unsupported.items():
        if name in draft.built.body:
            draft.report.dropped(f"/{name}", f"{provider.name}: {reason}")
    fields: JsonObject = {}
    for name, value in draft.built.body.items():
        if name not in unsupported and name not in provider.fields_in_url:
            fields[provider.rename.get(name, name)] = value
    draft.body = merged(merged(provider.defaults, fields), provider.overrides)


def _is_thinking(prompt: Prompt, target: Target) -> bool:
    """Whether the model will think at this request."""
    if not target.traits.thinking:
        return False
    if prompt.thinking is None:
        return target.traits.thinking_default
    return prompt.thinking.effort != "off"


def _merge_extra(draft: _Draft) -> None:
    """Merges `Prompt.extra` over the body, but what the builder has merged already."""
    extra: JsonObject = {}
    for key, value in (draft.prompt.extra or {}).items():
        if key not in draft.built.merged_extra:
            extra[key] = value
    draft.body = merged(draft.body, extra)


def _report_unsent_state(draft: _Draft) -> None:
    """Reports signatures of items of unknown origin that the wire has no place for.

    Such items match every target, so no downgrade names them; those of a wire's own fit its fields.
    """
    states: list[tuple[str, bytes]] = []
    """Path of an item, and its state as JSON."""
    reported = {change.path for change in draft.report.changes}
    for entry in draft.items:
        state = opaque_state(entry.item)
        if entry.item.origin is None and state and entry.path not in reported:
            states.append((entry.path, _encode(state)))
    if not states:
        return
    # Once for all of them: a long history may have thousands.
    unsent = {written for _, written in states}.difference(_STRING.findall(_encode(draft.body)))
    for path, written in states:
        if written in unsent:
            reason = f"{draft.wire_api} has no place for its signature"
            draft.report.add("downgraded", path, reason)


def _write_headers(draft: _Draft) -> None:
    draft.headers = {
        "content-type": "application/json",
        **draft.target.provider.headers,
        **_identity_headers(draft.prompt, draft.context),
        **draft.built.headers,
    }
    # Betas of Claude on Bedrock: its wires read them from the body.
    for name in draft.built.headers_in_body:
        draft.headers.pop(name, None)


def _identity_headers(prompt: Prompt, context: BuildContext) -> dict[str, str]:
    """Headers that name the account and the conversation, where the provider has them."""
    provider = context.target.provider
    headers: dict[str, str] = {}
    if provider.account_header and context.target.account:
        headers[provider.account_header] = context.target.account
    conversation = prompt.conversation_id
    if provider.conversation_header and conversation:
        # A header holds printable ASCII only.
        is_plain = conversation.isascii() and conversation.isprintable()
        if is_plain and conversation == conversation.strip():
            headers[provider.conversation_header] = conversation
        else:
            reason = f"{provider.conversation_header} takes printable ASCII only"
            context.report.dropped("/conversation_id", reason)
    return headers


# --- the request ---


def _request(draft: _Draft) -> Request:
    target = draft.target
    url = target.url
    if draft.built.query:
        url = f"{url}?{draft.built.query}"
    return Request(
        method="POST",
        url=url,
        headers=draft.headers,
        body=_encode(draft.body),
        report=draft.report.changes,
        wire_api=target.wire_api,
        model=target.model,
        origin=target.origin,
        names={sent: name for name, sent in draft.sent_names.items()},
        namespaces=draft.namespaces,
    )


def _encode(body: JsonObject | str) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError) as error:
        raise invalid_request(f"the request cannot be written as JSON: {error}") from None


def _strict_error(changes: list[Change]) -> StreamError:
    """The error of `strict=True`: a change of the history before any other."""
    history = [change for change in changes if change.path.startswith("/input")]
    first = (history or changes)[0]
    message = f"{first.action} {first.path}: {first.reason}"
    if len(changes) > 1:
        message += f" (and {len(changes) - 1} more)"
    kind: ErrorKind = "invalid_history" if history else "invalid_request"
    return StreamError(ErrorInfo(kind, message, detail=changes))
