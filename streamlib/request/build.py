"""Prompt -> request bytes: the same five steps for every wire, with the wire's own builder in the middle.

repair the history · send it down the ladder where it was made elsewhere · fit ids and names · build the body · apply the
provider's values, then `extra`. No key is needed: auth is applied when the request is sent.
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
from streamlib.request.context import BuildContext
from streamlib.request.endpoints import resolve_target
from streamlib.request.history import CALLS, OUTPUTS, IndexedItem, repair
from streamlib.request.json_objects import merged
from streamlib.request.origins import downgrade
from streamlib.request.prompt import Prompt
from streamlib.request.provider_steps import apply_steps
from streamlib.request.report import Change, Report
from streamlib.request.target import BuiltRequest, Target
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import Origin, ResponseItem, WireApi


class Request(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A request, ready but for its key: it can be printed, compared and stored.

    names: sent tool name -> your tool name, for `parser(names=…)`. origin: stamped on the items of the answer.
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


class Builder(Protocol):
    """The module of a wire: `builders/<name>.py`."""

    def build(
        self, prompt: Prompt, items: list[IndexedItem], context: BuildContext
    ) -> BuiltRequest:
        """The body in this wire's own words."""
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
    """The request for `model` (`"provider:model"`, or the two apart).

    strict raises `StreamError` (invalid_history, invalid_request) where the report would not be empty. strict_origin treats
    what is unknown of an item's origin as foreign.
    """
    name = provider.name if isinstance(provider, Provider) else provider
    extra = (*providers, provider) if isinstance(provider, Provider) else providers
    prompt = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
    found, model = find(model, name, extra)
    return build_for(
        prompt,
        resolve_target(found, model, wire_api, base_url, models, account),
        strict=strict,
        strict_origin=strict_origin,
    )


def build_for(
    prompt: Prompt, target: Target, *, strict: bool = False, strict_origin: bool = False
) -> Request:
    """The request for a target that is known already."""
    report = Report()
    context = BuildContext(target, report)
    prompt = _extra_for_wire(prompt, context)
    items = downgrade(repair(prompt.items, report), target.origin, report, strict=strict_origin)
    items = _fit_ids(items, context)
    names = _tool_names(prompt, items, target.wire_api)
    prompt, items = _rename(prompt, items, names, report)
    builder: Builder = cast(
        "Builder", importlib.import_module(f"streamlib.wires.{target.wire_api}.build")
    )
    built = builder.build(prompt, items, context)
    built = apply_steps(prompt, built, context)
    body = merged(_apply_provider_fields(built.body, prompt, context), prompt.extra or {})
    headers = {
        "content-type": "application/json",
        **target.provider.headers,
        **_identity_headers(prompt, context),
        **built.headers,
    }
    if strict and report.changes:
        raise _strict_error(report.changes)
    sent = {short: name for name, short in names.items()}
    return Request(
        "POST",
        target.url,
        headers,
        _encode(body),
        report.changes,
        target.wire_api,
        target.model,
        target.origin,
        sent,
    )


def _extra_for_wire(prompt: Prompt, context: BuildContext) -> Prompt:
    """What another wire's request said in its own words would be nonsense here, or worse: something else."""
    if prompt.extra is None or prompt.extra_wire in (None, context.target.wire_api):
        return prompt
    for key in prompt.extra:
        context.report.dropped(f"/extra/{key}", f"a word of {prompt.extra_wire}")
    return msgspec.structs.replace(prompt, extra=None)


def _encode(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError) as error:
        raise invalid_request(f"the request cannot be written as JSON: {error}") from None


def _fit_ids(items: list[IndexedItem], context: BuildContext) -> list[IndexedItem]:
    ids = [one.item.call_id for one in items if isinstance(one.item, (*CALLS, *OUTPUTS))]
    changed = fit_names(
        ids, context.target.provider.call_ids or WIRE_SPECS[context.target.wire_api].call_ids
    )
    out: list[IndexedItem] = []
    for one in items:
        item = one.item
        if isinstance(item, (*CALLS, *OUTPUTS)) and item.call_id in changed:
            context.report.add(
                "renamed", f"{one.path}/call_id", f"{context.target.wire_api} does not take this id"
            )
            item = msgspec.structs.replace(item, call_id=changed[item.call_id])
        out.append(IndexedItem(one.position, item))
    return out


def _tool_names(prompt: Prompt, items: list[IndexedItem], wire_api: WireApi) -> dict[str, str]:
    names = [tool.name for tool in prompt.tools if tool.native is None]
    return fit_names(
        [*names, *(one.item.name for one in items if isinstance(one.item, CALLS))],
        WIRE_SPECS[wire_api].tool_names,
    )


def _rename(
    prompt: Prompt, items: list[IndexedItem], names: dict[str, str], report: Report
) -> tuple[Prompt, list[IndexedItem]]:
    """The same new name on tools, choice and calls; the answer's calls are mapped back by the parser."""
    if not names:
        return prompt, items
    for at, tool in enumerate(prompt.tools):
        if tool.name in names:
            report.add("renamed", f"/tools/{at}/name", f"sent as {names[tool.name]}")
    tools = [
        msgspec.structs.replace(tool, name=names.get(tool.name, tool.name)) for tool in prompt.tools
    ]
    choice = names.get(prompt.tool_choice or "", prompt.tool_choice or "") or None
    renamed = [
        IndexedItem(one.position, msgspec.structs.replace(one.item, name=names[one.item.name]))
        if isinstance(one.item, CALLS) and one.item.name in names
        else one
        for one in items
    ]
    return msgspec.structs.replace(prompt, tools=tools, tool_choice=choice), renamed


def _identity_headers(prompt: Prompt, context: BuildContext) -> dict[str, str]:
    """Whose account and which conversation it is. A header holds printable ASCII only; any other conversation stays out of it."""
    account, conversation = (
        context.target.provider.account_header,
        context.target.provider.conversation_header,
    )
    headers = {account: context.target.account} if account and context.target.account else {}
    name = prompt.conversation_id
    if conversation and name and name.isascii() and name.isprintable() and name == name.strip():
        headers[conversation] = name
    elif conversation and name:
        context.report.dropped("/conversation_id", f"{conversation} takes printable ASCII only")
    return headers


def _apply_provider_fields(
    body: dict[str, Any], prompt: Prompt, context: BuildContext
) -> dict[str, Any]:
    """The provider's own values: what it refuses, renames, needs and fixes."""
    provider = context.target.provider
    thinks = (
        context.target.traits.thinking_default
        if prompt.thinking is None
        else prompt.thinking.effort != "off"
    )
    refused = {
        **provider.unsupported,
        **(provider.unsupported_when_thinking if thinks and context.target.traits.thinking else {}),
    }
    for field, reason in refused.items():
        if field in body:
            del body[field]
            context.report.dropped(f"/{field}", f"{provider.name}: {reason}")
    renamed = {
        provider.rename.get(field, field): value
        for field, value in body.items()
        if field not in provider.fields_in_url
    }
    return merged(merged(provider.defaults, renamed), provider.overrides)


def _strict_error(changes: list[Change]) -> StreamError:
    about_history = [change for change in changes if change.path.startswith("/input")]
    first = (about_history or changes)[0]
    message = f"{first.action} {first.path}: {first.reason}" + (
        f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
    )
    return StreamError(
        ErrorInfo(
            "invalid_history" if about_history else "invalid_request", message, detail=changes
        )
    )
