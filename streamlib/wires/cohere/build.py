"""Builds a request to Cohere's v2 chat from a `Prompt`: messages, and the rows of `settings`."""

from __future__ import annotations

from streamlib.request.history import IndexedItem
from streamlib.request.prompt import Prompt
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib.wires.cohere.build_messages import messages
from streamlib.wires.cohere.settings import SETTINGS, tool_fields
from streamlib_parsers.items import JsonObject
from streamlib_parsers.stream_error import invalid_request


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body.

    Args:
        prompt: the settings; its own input is not read.
        items: the repaired and downgraded history, with positions in the prompt's input.
        context: the target, and the report that is filled.

    Returns:
        The body, without headers of its own.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is no message to send.
    """
    # The order of the keys is fixed: the body is a cache prefix.
    body: JsonObject = {"model": context.target.model}
    if prompt.tools:
        body.update(tool_fields(prompt, context.report))
    body["messages"] = messages(prompt, items, context.report)
    if all(message["role"] == "system" for message in body["messages"]):
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    body["stream"] = prompt.stream is not False
    body.update(SETTINGS.write(prompt, context))
    return BuiltRequest(body)
