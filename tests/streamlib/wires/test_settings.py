"""The rows of settings: written to a body, read from one, and what has no row is reported."""

from __future__ import annotations

from typing import Any

from streamlib import CacheOptions, Prompt, ReasoningOptions
from streamlib.providers import Provider
from streamlib.providers.models import Traits
from streamlib.request.context import BuildContext
from streamlib.request.report import Report
from streamlib.request.target import Target
from streamlib.wires.settings import Setting, SettingsTable, output_limit, without_settings
from streamlib_parsers.items import JsonObject


def context(traits: Traits | None = None) -> BuildContext:
    provider = Provider("p", ("chat",), "http://p")
    target = Target(provider, "m", "chat", "http://p", traits or Traits())
    return BuildContext(target, Report())


def written(table: SettingsTable, traits: Traits | None = None, **settings: Any) -> Any:
    """The fields, and the report's actions and paths."""
    build = context(traits)
    fields = table.write(Prompt("hi", **settings), build)
    return fields, [(change.action, change.path) for change in build.report.changes]


def test_row_is_written_and_read_at_its_path() -> None:
    table = SettingsTable("W", Setting("top_p", "config.p"), Setting("seed", "config.seed"))
    fields, report = written(table, top_p=0.0, seed=0)
    assert (fields, report) == ({"config": {"p": 0.0, "seed": 0}}, [])
    assert table.read(fields) == {"top_p": 0.0, "seed": 0, "extra": None}


def test_row_reads_an_older_name() -> None:
    table = SettingsTable("W", Setting("user_id", "safety_identifier", also=("user",)))
    assert table.read({"user": "u"}) == {"user_id": "u", "extra": None}


def test_row_leaves_another_value_in_extra() -> None:
    table = SettingsTable("W", Setting("user_id", "safety_identifier", also=("user",)))
    fields: JsonObject = {"user": "u", "safety_identifier": "s"}
    assert table.read(fields) == {"user_id": "s", "extra": {"user": "u"}}


def test_row_needs_a_trait_of_the_model() -> None:
    table = SettingsTable("W", Setting("top_k", "k", needs="sampling"))
    assert written(table, top_k=0) == ({"k": 0}, [])
    without = Traits(sampling=False)
    assert written(table, without, top_k=0) == ({}, [("dropped", "/top_k")])


def test_output_limit_is_that_of_the_model() -> None:
    table = SettingsTable("W", Setting("max_output_tokens", "max", write=output_limit))
    assert written(table, max_output_tokens=9) == ({"max": 9}, [])
    fields, report = written(table, Traits(max_output=5), max_output_tokens=9)
    assert (fields, report) == ({"max": 5}, [("changed", "/max_output_tokens")])


def test_long_text_is_sent_as_its_hash() -> None:
    table = SettingsTable("W", Setting("user_id", "user", longest=64))
    fields, report = written(table, user_id="u" * 65)
    assert len(fields["user"]) == 64
    assert report == [("changed", "/user_id")]


def test_setting_without_a_row_is_reported() -> None:
    table = SettingsTable("W", Setting("reasoning", "think"), Setting("cache"))
    _, report = written(
        table,
        temperature=0,
        metadata={},
        reasoning=ReasoningOptions(summary="auto"),
        cache=CacheOptions("1h"),
    )
    paths = [path for _, path in report]
    assert paths == ["/temperature", "/metadata", "/reasoning/summary", "/cache/ttl"]


def test_option_of_a_lost_setting_is_lost_with_it() -> None:
    _, report = written(SettingsTable("W"), cache=CacheOptions("1h"))
    assert report == [("dropped", "/cache")]


def test_fixed_value_is_neither_sent_nor_reported() -> None:
    table = SettingsTable("W", Setting("n", fixed=1))
    assert written(table, n=1) == ({}, [])
    assert written(table, n=0) == ({}, [("dropped", "/n")])


def test_extra_has_unknown_fields_and_rests() -> None:
    table = SettingsTable("W", Setting("top_p", "config.p"))
    read = table.read({"config": {"p": 1, "other": 2}, "unknown": None})
    assert read == {"top_p": 1, "extra": {"unknown": None, "config": {"other": 2}}}


def test_without_settings_reports_what_was_set() -> None:
    report = Report()
    prompt = without_settings(Prompt(top_p=0, top_k=1), ("top_p", "seed"), "why", report)
    assert prompt == Prompt(top_k=1)
    assert [change.path for change in report.changes] == ["/top_p"]
