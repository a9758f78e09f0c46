"""Prompt to request: the same five steps for every wire, around the wire's own builder.

1. repair the history;
2. downgrade what another origin made;
3. fit ids, tools and their names to the wire;
4. build the body;
5. apply the provider's fields, then `Prompt.extra`.

No key is needed: the request is signed when it is sent.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from streamlib.errors import StreamError, invalid_request
from streamlib.providers import Provider, find
from streamlib.providers.models import Traits
from streamlib.providers.names import fit_names
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.allowed_tools import choice_of_another_wire, without_choice
from streamlib.request.context import BuildContext
from streamlib.request.endpoints import resolve_target
from streamlib.request.fit_tools import fit_tools
from streamlib.request.headers import with_headers
from streamlib.request.history import CALLS, OUTPUTS, IndexedItem, repair
from streamlib.request.json_objects import merged, without
from streamlib.request.media import report_corrected_types
from streamlib.request.origins import downgrade
from streamlib.request.prompt import Prompt
from streamlib.request.provider_steps import apply_steps
from streamlib.request.report import Change, Report
from streamlib.request.structured_modes import with_structured_mode
from streamlib.request.target import BuiltRequest, Target
from streamlib.request.tool_options import fit_tool_options
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import Origin, ResponseItem, ToolSpec, WireApi


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
    name: str | None
    if isinstance(provider, Provider):
        providers = (*providers, provider)
        name = provider.name
    else:
        name = provider
    if not isinstance(prompt, Prompt):
        prompt = Prompt(prompt)
    match, model = find(model, name, providers)
    target = resolve_target(match, model, wire_api, base_url, models, account)
    return build_for(prompt, target, strict=strict, strict_origin=strict_origin)


def build_for(
    prompt: Prompt, target: Target, *, strict: bool = False, strict_origin: bool = False
) -> Request:
    """Builds the request for a target that is resolved already; see `build`."""
    report = Report()
    prompt = with_structured_mode(prompt, report)
    prompt = _headers_for_wire(prompt, target.wire_api, report)
    context = BuildContext(with_headers(target, prompt.headers), report)
    allowed = choice_of_another_wire(prompt, target.wire_api)
    if allowed is not None:
        prompt = without_choice(prompt, allowed)
    prompt = _extra_for_wire(prompt, context)
    prompt = fit_tool_options(prompt, target.wire_api, report)
    stored_history = WIRE_SPECS[target.wire_api].stored_history
    is_continued = any((prompt.extra or {}).get(name) for name in stored_history)
    items = repair(prompt.items, report, is_continued=is_continued)
    items = downgrade(items, target.origin, report, strict=strict_origin)
    if WIRE_SPECS[target.wire_api].names_media_types:
        report_corrected_types(items, report)
    items = _fit_ids(items, context)
    fitted = fit_tools(prompt, items, context, allowed)
    prompt, items = fitted.prompt, fitted.items
    report.tool_paths = fitted.paths
    sent_names = _tool_names(prompt, items, target.wire_api)
    if sent_names:
        prompt = _rename_tools(prompt, sent_names, report)
        items = _rename_calls(items, sent_names)

    module = importlib.import_module(f"streamlib.wires.{target.wire_api}.build")
    builder = cast("Builder", module)
    built = builder.build(prompt, items, context)
    built = apply_steps(prompt, built, context)
    body = _apply_provider_fields(built.body, prompt, context)
    extra = prompt.extra or {}
    body = merged(body, {key: extra[key] for key in extra if key not in built.merged_extra})
    headers = {
        "content-type": "application/json",
        **context.target.provider.headers,
        **_identity_headers(prompt, context),
        **built.headers,
    }
    # Betas of Claude on Bedrock: its wires read them from the body.
    for name in built.headers_in_body:
        headers.pop(name, None)
    if strict and report.changes:
        raise _strict_error(report.changes)
    return Request(
        method="POST",
        url=target.url,
        headers=headers,
        body=_encode(body),
        report=report.changes,
        wire_api=target.wire_api,
        model=target.model,
        origin=target.origin,
        names={sent: name for name, sent in sent_names.items()},
        namespaces=fitted.namespaces,
    )


def _extra_for_wire(prompt: Prompt, context: BuildContext) -> Prompt:
    """Drops `Prompt.extra` of another wire: its fields mean nothing here, or something else."""
    extra, extra_wire = prompt.extra, prompt.extra_wire
    if extra is None or extra_wire is None or extra_wire == context.target.wire_api:
        return prompt
    for path in WIRE_SPECS[extra_wire].repeated:
        extra = without(extra, path)
    for key in extra:
        context.report.dropped(f"/extra/{key}", f"a field of {extra_wire}")
    return msgspec.structs.replace(prompt, extra=None)


def _headers_for_wire(prompt: Prompt, wire_api: WireApi, report: Report) -> Prompt:
    """Drops betas of another wire: what names features of one service is nothing for another."""
    if not prompt.headers:
        return prompt
    headers = dict(prompt.headers)
    for name in {spec.beta_header for spec in WIRE_SPECS.values()}:
        if name in headers and name != WIRE_SPECS[wire_api].beta_header:
            report.dropped(f"/headers/{name}", f"{wire_api} has no such betas")
            del headers[name]
    return msgspec.structs.replace(prompt, headers=headers)


def _encode(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError) as error:
        raise invalid_request(f"the request cannot be written as JSON: {error}") from None


def _fit_ids(entries: list[IndexedItem], context: BuildContext) -> list[IndexedItem]:
    """Call ids that the wire takes, the same on a call and its output."""
    target = context.target
    charset = target.provider.call_ids or WIRE_SPECS[target.wire_api].call_ids
    longest = target.provider.chat.longest_call_id
    if target.wire_api == "chat" and longest is not None:
        charset = msgspec.structs.replace(charset, longest=longest)
    call_ids = [entry.item.call_id for entry in entries if isinstance(entry.item, CALLS + OUTPUTS)]
    changed = fit_names(call_ids, charset)
    if not changed:
        return entries
    fitted: list[IndexedItem] = []
    for entry in entries:
        item = entry.item
        if isinstance(item, CALLS + OUTPUTS) and item.call_id in changed:
            reason = f"{target.wire_api} does not take this id"
            context.report.add("renamed", f"{entry.path}/call_id", reason)
            item = msgspec.structs.replace(item, call_id=changed[item.call_id])
        fitted.append(IndexedItem(entry.position, item))
    return fitted


def _tool_names(prompt: Prompt, entries: list[IndexedItem], wire_api: WireApi) -> dict[str, str]:
    """Your tool name -> the name that is sent, for those that the wire does not take."""
    names = [tool.name for tool in prompt.tools if tool.native is None]
    for entry in entries:
        # A call in a namespace has a name that only the namespace knows.
        if isinstance(entry.item, CALLS) and entry.item.namespace is None:
            names.append(entry.item.name)
    return fit_names(names, WIRE_SPECS[wire_api].tool_names)


def _rename_tools(prompt: Prompt, names: dict[str, str], report: Report) -> Prompt:
    """Tools and tool choice under their sent names; the parser maps the response's calls back."""
    tools: list[ToolSpec] = []
    for index, tool in enumerate(prompt.tools):
        if tool.name in names:
            sent = names[tool.name]
            report.add("renamed", f"/tools/{index}/name", f"sent as {sent}")
            tool = msgspec.structs.replace(tool, name=sent)  # noqa: PLW2901
        tools.append(tool)
    choice = prompt.tool_choice
    if choice is not None:
        choice = names.get(choice, choice) or None
    return msgspec.structs.replace(prompt, tools=tools, tool_choice=choice)


def _rename_calls(entries: list[IndexedItem], names: dict[str, str]) -> list[IndexedItem]:
    """Calls of the history under the sent names of their tools."""
    renamed: list[IndexedItem] = []
    for entry in entries:
        item = entry.item
        if isinstance(item, CALLS) and item.namespace is None and item.name in names:
            item = msgspec.structs.replace(item, name=names[item.name])
        renamed.append(IndexedItem(entry.position, item))
    return renamed


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


def _apply_provider_fields(
    body: dict[str, Any], prompt: Prompt, context: BuildContext
) -> dict[str, Any]:
    """The body as the provider takes it: without unsupported fields, renamed, with its own."""
    provider = context.target.provider
    unsupported = dict(provider.unsupported)
    if _is_thinking(prompt, context.target):
        unsupported |= provider.unsupported_when_thinking
    for name, reason in unsupported.items():
        if name in body:
            context.report.dropped(f"/{name}", f"{provider.name}: {reason}")
    fields: dict[str, Any] = {}
    for name, value in body.items():
        if name not in unsupported and name not in provider.fields_in_url:
            fields[provider.rename.get(name, name)] = value
    return merged(merged(provider.defaults, fields), provider.overrides)


def _is_thinking(prompt: Prompt, target: Target) -> bool:
    """Whether the model will think at this request."""
    if not target.traits.thinking:
        return False
    if prompt.thinking is None:
        return target.traits.thinking_default
    return prompt.thinking.effort != "off"


def _strict_error(changes: list[Change]) -> StreamError:
    """The error of `strict=True`: a change of the history before any other."""
    history = [change for change in changes if change.path.startswith("/input")]
    first = changes[0]
    if history:
        first = history[0]
    message = f"{first.action} {first.path}: {first.reason}"
    if len(changes) > 1:
        message += f" (and {len(changes) - 1} more)"
    if history:
        return StreamError(ErrorInfo("invalid_history", message, detail=changes))
    return StreamError(ErrorInfo("invalid_request", message, detail=changes))
