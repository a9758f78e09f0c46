"""Members of the google-genai SDK's response: every kind of part, and every field around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.genai import types
from pydantic import BaseModel

from lab.drift.instances import Instances
from lab.drift.member import Member
from tests.support.gemini_streams import chunk, sse

Json = dict[str, Any]

POSITIONS: Final = {"index"}

SDK_ONLY: Final = ("sdkHttpResponse", "automaticFunctionCallingHistory", "parsed")
"""Fields that the SDK adds; they are not on the wire."""

BESIDE: Final = (
    "mediaResolution",
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "partMetadata",
    "audioTranscription",
    "mediaProcessing",
    "speechMetadata",
    "documentMetadata",
    "spreadsheetMetadata",
    "audioMetadata",
)
"""Fields that stand beside the content of a part."""


def members() -> Iterator[Member]:
    """Each kind of part, each field beside a text, each field of candidate and response."""
    for key, field in _fields(types.Part):
        for value in Instances(by_alias=True).of_type(field.annotation, key, 1):
            part = {key: value}
            if key in BESIDE:
                part["text"] = "Hi"
            body = sse(chunk(part), chunk(finish="STOP"))
            yield Member("google-genai", f"Part.{key}", "gemini", part, body, POSITIONS)
    for key, field in _fields(types.Candidate):
        if key == "content":
            continue
        for value in Instances(by_alias=True).of_type(field.annotation, key, 1):
            last = chunk({"text": "Hi"}, finish="STOP")
            last["candidates"][0][key] = value
            yield _member(f"Candidate.{key}", {key: value}, sse(last))
    for key, field in _fields(types.GenerateContentResponse):
        if key == "candidates" or key in SDK_ONLY:
            continue
        for value in Instances(by_alias=True).of_type(field.annotation, key, 1):
            last = chunk({"text": "Hi"}, finish="STOP") | {key: value}
            yield _member(f"GenerateContentResponse.{key}", {key: value}, sse(last))


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field


def _member(name: str, instance: Json, body: bytes) -> Member:
    return Member("google-genai", name, "gemini", instance, body, POSITIONS)
