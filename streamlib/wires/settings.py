"""Settings of a request as rows: a field of `Prompt`, and where a wire has it in the body.

Each wire has one table, `SETTINGS` in its `settings.py`, in the order of the fields in the body. It
is read in both directions, to build a request and to decode one:

    SETTINGS = SettingsTable(
        "Cohere",
        Setting("tool_choice", write=_choice, read=_read_choice),    # a rule for each direction
        Setting("top_k", "k"),                                       # the same value, another name
        Setting("temperature", "config.temperature", needs="sampling"),
    )

A setting that has no row is one that the wire lacks: it is left out, and the report names it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from streamlib.request.json_objects import merged, without_none
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuildContext
from streamlib_parsers.items import JsonObject

Write: TypeAlias = Callable[[Prompt, BuildContext], Any]
"""Returns what is sent for a setting that the prompt has; None: nothing."""

Read: TypeAlias = Callable[[JsonObject], Any]
"""Takes a setting out of the body's fields and returns its value in `Prompt`; None: there is none.

What `Prompt` cannot express stays in the fields, which become `Prompt.extra`.
"""

NOT_SETTINGS: Final = frozenset(
    # the conversation, what describes the request itself, what is done before a wire's builder
    {"input", "instructions", "tools", "extra", "extra_wire", "model", "stream", "headers"}
    | {"structured", "name", "version"}
)
"""Fields of `Prompt` that are no settings of a wire."""

FIELDS: Final = tuple(name for name in Prompt.__struct_fields__ if name not in NOT_SETTINGS)
"""Fields of `Prompt` that are settings."""

OPTIONS: Final = {
    "reasoning": ("summary", "display"),
    "cache": ("ttl", "breakpoints", "lifetimes", "instructions", "automatic", "compare", "prewarm"),
}
"""Field -> the parts of the setting that a wire may lack although it has the setting."""

NAMES: Final = (
    *FIELDS,
    *(f"{field}.{option}" for field, options in OPTIONS.items() for option in options),
)
"""Every setting."""

UNSET: Final = Prompt()
"""A prompt without settings."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting on one wire.

    Attributes:
        name: the field of `Prompt`; "" for a field of the body that no setting has: its rule always
            decides.
        path: where the body has it, with a dot between keys. "" where a rule writes several fields,
            or none are needed.
        also: further paths at which it is read (older names, names of other servers), or those that
            its rules know.
        needs: the trait (`Traits`) without which a model takes no such setting.
        longest: the most characters it may have; the hash of a longer one is sent.
        least: the smallest number that the wire takes; it is sent in place of a smaller one.
        most: the largest one.
        fixed: the value that the wire has anyway, without a field for it.
        sent_when_off: an option of reasoning that is sent although reasoning is off.
        write: the rule that makes what is sent, in place of the prompt's value. With no `path` it
            returns fields of the body.
        read: the rule that reads it, in place of `path`.
    """

    name: str
    path: str = ""
    also: tuple[str, ...] = ()
    needs: str = ""
    longest: int | None = None
    least: float | None = None
    most: float | None = None
    fixed: Any = None
    sent_when_off: bool = False
    write: Write | None = None
    read: Read | None = None

    def sent(self, prompt: Prompt, context: BuildContext) -> Any:
        """What is sent for the prompt's value, None if nothing is."""
        provider = context.target.provider
        refused = provider.unsupported.get(_parent(self.path))
        if refused is not None and self.name:
            context.report.dropped(f"/{self.name}", f"{provider.name}: {refused}")
            return None
        if self.write is not None:
            return self.write(prompt, context)
        target, report, path = context.target, context.report, f"/{self.name}"
        value = getattr(prompt, self.name)
        if self.needs and not getattr(target.traits, self.needs):
            report.dropped(path, f"{target.model} takes no {self.name}")
            return None
        if self.longest is not None and len(value) > self.longest:
            reason = f"longer than {self.longest} characters: its hash is sent"
            report.add("changed", path, reason)
            return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        if self.least is not None and value < self.least:
            report.add("changed", path, f"the wire takes {self.least} at least")
            return self.least
        if self.most is not None and value > self.most:
            report.add("changed", path, f"the wire takes {self.most} at most")
            return self.most
        return value

    def taken(self, fields: JsonObject) -> Any:
        """Takes the value out of the body's fields; None if none of the paths has one.

        Another value at a further path stays in the fields.
        """
        if self.read is not None:
            return self.read(fields)
        value = None
        for path in filter(None, (self.path, *self.also)):
            key = _parent(path)
            if key != path and not isinstance(fields.get(key), dict | None):
                raise TypeError(f"{key} is not an object")
            other = take(fields, path)
            if value is None:
                value = other
            elif other is not None and other != value:
                put(fields, path, other)
        return value


class SettingsTable:
    """The settings of one wire, in the order of their fields in the body.

    Args:
        wire: name of the wire, for people.
        rows: its settings. One without a `path` and without rules is written by another part of the
            builder, for example to the blocks of messages.
    """

    def __init__(self, wire: str, *rows: Setting) -> None:
        self.wire = wire
        self.rows = rows
        self._written = [row for row in rows if row.path or row.write is not None]
        """Those that have a place in the body, or a rule that gives them one."""
        known = {row.name for row in rows if row.fixed is None}
        # an option of a lost setting is lost with it
        lost = [name for name in NAMES if name not in known]
        self.lost = tuple(name for name in lost if "." not in name or _parent(name) in known)
        """The settings that the wire lacks."""
        self._fixed = {row.name: row.fixed for row in rows if row.fixed is not None}
        self._sent_when_off = {row.name for row in rows if row.sent_when_off}
        self._keys: dict[str, None] = {}
        """The body's fields that `read` reads, at least in part."""
        for row in rows:
            if row.read is not left_in_extra:
                self._keys |= dict.fromkeys(_parent(path) for path in (row.path, *row.also))

    def write(self, prompt: Prompt, context: BuildContext) -> JsonObject:
        """Returns the body's fields of the settings, and reports the settings that are lost."""
        body: JsonObject = {}
        settings = _settings_of(prompt)
        for row in self._written:
            if row.name and row.name not in settings:
                continue
            value = row.sent(prompt, context)
            if value is not None and row.path:
                put(body, row.path, value)
            elif value is not None:
                body = merged(body, value)
        self._report_lost(settings, context)
        self._report_unused(prompt, context.report)
        return body

    def _report_lost(self, settings: JsonObject, context: BuildContext) -> None:
        for name, value in settings.items():
            if name not in self.lost or value == self._fixed.get(name):
                continue
            if name == "conversation_id" and context.target.provider.conversation_header:
                continue
            path = name.replace(".", "/")
            context.report.dropped(f"/{path}", f"{self.wire} has no field for {name}")

    def _report_unused(self, prompt: Prompt, report: Report) -> None:
        """Reports how reasoning should be, where there should be none."""
        options = prompt.thinking
        if options is None or options.effort != "off":
            return
        reported = {change.path for change in report.changes}
        for name, nothing in (("budget", 0), ("summary", "off"), ("display", "omitted")):
            if f"reasoning.{name}" in self._sent_when_off:
                continue
            path = f"/reasoning/{name}"
            is_set = getattr(options, name) not in (None, nothing)
            if is_set and not {path, "/reasoning"} & reported:
                report.dropped(path, "reasoning is off")

    def read(self, fields: JsonObject) -> JsonObject:
        """Takes the settings out of a body's fields.

        Args:
            fields: what no other function has taken: its rest is `extra`.

        Returns:
            The settings and `extra`, by their names in `Prompt`.
        """
        values: JsonObject = {}
        for row in self.rows:
            value = row.taken(fields)
            if value is not None:
                values[row.name] = value
        # unknown fields, then what is left of known ones, without nulls
        rests = {key: fields.pop(key) for key in self._keys if key in fields}
        values["extra"] = {**fields, **without_none(rests)} or None
        return values


def _parent(path: str) -> str:
    """What stands before the first dot."""
    return path.partition(".")[0]


def _settings_of(prompt: Prompt) -> JsonObject:
    """The settings that a prompt has, in the order of `NAMES`."""
    settings: JsonObject = {}
    for name in FIELDS:
        value = getattr(prompt, name)
        if value not in (None, ()):  # no stop sequences
            settings[name] = value
    for field, options in OPTIONS.items():
        if field not in settings:
            continue
        for option in options:
            value = getattr(settings[field], option, None)
            if value not in (None, (), {}):  # no breakpoints, no lifetimes
                settings[f"{field}.{option}"] = value
    return settings


# --- for rules ---


def put(fields: JsonObject, path: str, value: Any) -> None:
    """Sets the field at a dotted path, in objects that are made where they are missing."""
    *parents, last = path.split(".")
    for key in parents:
        fields = fields.setdefault(key, {})
    fields[last] = value


def take(fields: JsonObject, path: str) -> Any:
    """Removes the field at a dotted path, and objects that are empty then.

    Returns:
        The value; None where the path has none.
    """
    key, _, rest = path.partition(".")
    if not rest:
        return fields.pop(key, None)
    inner = fields.get(key)
    if not isinstance(inner, dict):
        return None
    value = take(inner, rest)
    if not inner:
        del fields[key]
    return value


def take_object(fields: JsonObject, path: str) -> JsonObject:
    """Removes the object at a dotted path; an absent one is empty.

    Raises:
        TypeError: it is something else.
    """
    value = take(fields, path)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"{path} is not an object")
    return value


def without_settings(prompt: Prompt, names: Iterable[str], reason: str, report: Report) -> Prompt:
    """The prompt without these settings; those that it had are reported."""
    removed: JsonObject = {}
    for name in names:
        unset = getattr(UNSET, name)
        if getattr(prompt, name) != unset:
            report.dropped(f"/{name}", reason)
            removed[name] = unset
    if not removed:
        return prompt
    return msgspec.structs.replace(prompt, **removed)


def output_limit(prompt: Prompt, context: BuildContext) -> int | None:
    """`Prompt.max_output_tokens`, at most the limit of the model."""
    target, requested = context.target, prompt.max_output_tokens
    limit = target.traits.max_output
    if requested is None or not limit or requested <= limit:
        return requested
    reason = f"{target.model} generates at most {limit} tokens"
    context.report.add("changed", "/max_output_tokens", reason)
    return limit


def stop_sequences(prompt: Prompt, context: BuildContext) -> list[str] | None:
    """The stop sequences without blank ones, which are refused (messages, converse)."""
    stop: list[str] = []
    for index, text in enumerate(prompt.stop):
        if text.strip():
            stop.append(text)
        else:
            context.report.dropped(f"/stop/{index}", "a blank stop sequence is refused")
    return stop or None


def left_in_extra(fields: JsonObject) -> None:
    """Reads nothing: a decoded request keeps the field in `extra`, for its own wire alone."""


def read_stop(path: str) -> Read:
    """Reads a list of stop sequences, which may be one text."""

    def read(fields: JsonObject) -> Any:
        stop = take(fields, path)
        if isinstance(stop, str):
            return [stop]
        return stop

    return read


def switched_logprobs(switch: str, count: str) -> Setting:
    """`Prompt.logprobs` as a switch, and the number of alternatives in another field.

    0 is the chosen token alone: the switch without a number. A number 0 beside it stays in `extra`.
    """

    def write(prompt: Prompt, context: BuildContext) -> JsonObject:
        fields: JsonObject = {}
        put(fields, switch, value=True)
        if prompt.logprobs:
            put(fields, count, prompt.logprobs)
        return fields

    def read(fields: JsonObject) -> Any:
        is_on = take(fields, switch)
        if is_on:
            number = take(fields, count)
            if number == 0:
                put(fields, count, number)
            return number or 0
        # off is the default; any other value, such as 0, is no switch and stays
        if is_on is not None and is_on is not False:
            put(fields, switch, is_on)
        return None

    return Setting("logprobs", also=(switch, count), write=write, read=read)
