"""Every union of stream events in the sources of the SDKs, beta ones included, with what reads it.

A union that neither `READ` nor `NOT_READ` names fails the check: somebody has to decide on it.

Two marks show a union: an alias that is named as events are, and a type in ``Stream[…]`` (or
`EventStream`, `Iterator`) of a method. botocore's shapes say it themselves. The sources are read as
text: importing every module of every SDK takes longer than all other checks.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google-genai": "google.genai",
    "mistralai": "mistralai",
    "cohere": "cohere",
}
"""SDK -> its package."""

HELPERS: Final = ("lib", "extra", "tests")
"""Folders of an SDK with what it makes of a stream itself, and its tests: not on the wire."""

_ALIAS: Final = re.compile(
    r"""
    ^ (?P<name> \w*? (?: Events? | StreamFrame | StreamTypes | Stream(?:ed)?\w*Response ) )
    (?: :\s* [\w.]+ )? \s* = \s*
    (?: \( \s* | TypeAliasType \( \s* "\w+" , \s* | (?:\w+\.)? Annotated \[ \s* )*
    (?: (?:\w+\.)? Union \[ | [\w".]+ \s* \| )
    """,
    re.VERBOSE | re.MULTILINE,
)
"""An alias of a union; its form differs from SDK to SDK."""

_YIELDED: Final = re.compile(r"\b\w*(?:Stream|Iterator)\w*\[\s*[\"']?(?:\w+\.)*(?P<name>[A-Z]\w+)")
"""A type that a method yields."""

_EVENT: Final = re.compile(r"Event|Chunk|Frame|Completion|Stream|Live|GenerateContentResponse")
"""What a yielded type is named after, if it is an event of a model's stream."""

_NO_EVENT: Final = re.compile(
    r"Client|Params?$|TypedDict$|Handler|Webhook|^T[A-Z]"
    r"|^(?:ServerSentEvent|EventSource|ChunkType)$"
)
"""What a program sends, type variables, and what the SDK reads the bytes with."""


READ: Final[dict[str, dict[str, str]]] = {
    "openai": {
        "ResponseStreamEvent": "responses",
        "ResponsesServerEvent": "responses",
        "BetaResponseStreamEvent": "responses",
        "BetaResponsesServerEvent": "responses",
        "ChatCompletionChunk": "chat",
    },
    "anthropic": {"RawMessageStreamEvent": "messages", "BetaRawMessageStreamEvent": "messages"},
    "google-genai": {"GenerateContentResponse": "gemini", "InteractionSSEEvent": "interactions"},
    "botocore": {
        "bedrock-runtime.ConverseStreamOutput": "converse",
        "bedrock-runtime.ResponseStream": "invoke",
    },
    "mistralai": {"CompletionEvent": "chat", "ResponsesStreamFrame": "responses"},
    "cohere": {"V2ChatStreamResponse": "cohere"},
}
"""SDK -> union -> the wire API that reads it."""

_SESSION: Final = "a session of several turns, not a response to one request"
_LOG: Final = "entries of a saved log or of a workflow, not what a model says"
_VOICE: Final = "realtime voice, a two-way protocol of its own"
_AUDIO: Final = "speech, transcripts and images of services without a conversation"
_RETIRED: Final = "an older interface that its provider has retired"
_BEDROCK: Final = "an agent or a tool that runs in AWS, behind a service of its own"

NOT_READ: Final[dict[str, dict[str, str]]] = {
    "openai": {
        "AgentSessionEvent": _SESSION,
        "AssistantStreamEvent": _RETIRED,
        "Completion": _RETIRED,
        "ConnectServerEvent": _VOICE,
        "ForkServerEvent": _VOICE,
        "ServerEvent": _VOICE,
        "RealtimeServerEvent": _VOICE,
        "RealtimeTranslationServerEvent": _VOICE,
        "ImageEditStreamEvent": _AUDIO,
        "ImageGenStreamEvent": _AUDIO,
        "TranscriptionStreamEvent": _AUDIO,
    },
    "anthropic": {
        "BetaManagedAgentsStreamSessionEvents": _SESSION,
        "BetaManagedAgentsStreamSessionThreadEvents": _SESSION,
        "BetaManagedAgentsSessionEvent": _LOG,
        "BetaManagedAgentsDeploymentInitialEvent": "what a program sends to begin a session",
        "InitialEvent": "what a program sends to begin a session",
    },
    "google-genai": {
        "LiveServerMessage": _VOICE,
        "LiveMusicServerMessage": _VOICE,
        "ServerEvent": "live interactions over a WebSocket, a two-way protocol of its own",
    },
    "botocore": {
        "bedrock-runtime.InvokeModelWithBidirectionalStreamInput": _VOICE,
        "bedrock-runtime.InvokeModelWithBidirectionalStreamOutput": _VOICE,
        "bedrock-agent-runtime.AgenticRetrieveStreamResponseOutput": _BEDROCK,
        "bedrock-agent-runtime.FlowResponseStream": _BEDROCK,
        "bedrock-agent-runtime.InlineAgentResponseStream": _BEDROCK,
        "bedrock-agent-runtime.OptimizedPromptStream": _BEDROCK,
        "bedrock-agent-runtime.ResponseStream": _BEDROCK,
        "bedrock-agent-runtime.RetrieveAndGenerateStreamResponseOutput": _BEDROCK,
        "bedrock-agentcore.CodeInterpreterStreamOutput": _BEDROCK,
        "bedrock-agentcore.InvokeAgentRuntimeCommandStreamOutput": _BEDROCK,
        "bedrock-agentcore.InvokeHarnessStreamOutput": _BEDROCK,
    },
    "mistralai": {
        "ConversationEvents": "conversations that the provider keeps, a protocol of their own",
        "SpeechStreamEvents": _AUDIO,
        "TranscriptionStreamEvents": _AUDIO,
        "VoiceAgentEvent": _VOICE,
        "SummaryStreamTypes": "summaries of a search index",
        "GetStreamEventsV1WorkflowsEventsStreamGetResponseBody": _LOG,
        "ListWorkflowEventResponseEvent": _LOG,
        "StreamDeploymentLogsEvent": _LOG,
        "StreamDeploymentLogsResponseBody": _LOG,
        "StreamV1WorkflowsExecutionsExecutionIDStreamGetResponseBody": _LOG,
        "StreamWorkflowExecutionLogsEvent": _LOG,
        "StreamWorkflowExecutionLogsResponseBody": _LOG,
        "WorkflowExecutionTraceEventsResponseEvent": _LOG,
    },
    "cohere": {
        "StreamedChatResponse": "version 1 of the chat, which version 2 has replaced",
        "GenerateStreamedResponse": _RETIRED,
        "StreamedEmbedding": "embeddings",
    },
}
"""SDK -> union -> why nothing reads it."""


def found() -> dict[str, set[str]]:
    """SDK -> the unions in its sources; without SDKs that are not installed."""
    by_sdk = {sdk: unions(package) for sdk, package in PACKAGES.items()}
    by_sdk["botocore"] = event_shapes()
    return {sdk: names for sdk, names in by_sdk.items() if names}


def undecided(names_by_sdk: dict[str, set[str]]) -> list[str]:
    """The unions that no row decides on, and the rows whose union is gone; the check fails."""
    wrong: list[str] = []
    for sdk, names in names_by_sdk.items():
        decided = READ.get(sdk, {}).keys() | NOT_READ.get(sdk, {}).keys()
        wrong += [f"{sdk}: {name} is new: read it, or say why not" for name in names - decided]
        wrong += [f"{sdk}: {name} is gone" for name in decided - names]
    return sorted(wrong)


def unions(package: str) -> set[str]:
    """The names of the event unions in a package; empty if it is not installed."""
    names: set[str] = set()
    for source in _sources(package):
        for match in _ALIAS.finditer(source):
            names.add(match["name"])
        for match in _YIELDED.finditer(source):
            if _EVENT.search(match["name"]):
                names.add(match["name"])
    return {name for name in names if not _NO_EVENT.search(name) and not name.startswith("_")}


def _sources(package: str) -> Iterator[str]:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return
    if spec is None:
        return
    for folder in spec.submodule_search_locations or ():
        for path in sorted(Path(folder).rglob("*.py")):
            if not set(HELPERS).intersection(path.relative_to(folder).parts):
                yield path.read_text(encoding="utf-8")


def event_shapes() -> set[str]:
    """The streams of Bedrock's services in botocore, as ``service.Shape``."""
    # Imported here, and without types: it has none, and reading sources needs none of it.
    loader: Any = importlib.import_module("botocore.loaders").Loader()
    names: set[str] = set()
    for service in loader.list_available_services("service-2"):
        if service.startswith("bedrock"):
            shapes: dict[str, Any] = loader.load_service_model(service, "service-2")["shapes"]
            names |= {f"{service}.{name}" for name in shapes if shapes[name].get("eventstream")}
    return names
