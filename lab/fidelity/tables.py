"""The tables of the wires, by name; each imports its SDK at first use."""

from __future__ import annotations

from typing import Final

from lab.fidelity import (
    chat,
    cohere,
    converse,
    gemini,
    interactions,
    invoke,
    messages,
    ollama,
    responses,
)
from lab.fidelity.compare import WireTable
from streamlib import WireApi

TABLES: Final[dict[WireApi, WireTable]] = {
    "messages": messages.TABLE,
    "responses": responses.TABLE,
    "chat": chat.TABLE,
    "gemini": gemini.TABLE,
    "interactions": interactions.TABLE,
    "converse": converse.TABLE,
    "invoke": invoke.TABLE,
    "ollama": ollama.TABLE,
    "cohere": cohere.TABLE,
}
