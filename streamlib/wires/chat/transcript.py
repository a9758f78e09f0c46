"""Items as a list of Chat messages to keep, not to send: without what servers want of a list.

`decode.py` reads it. What a server would refuse is mended by `build.py` when the items are sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamlib.request.history import IndexedItem
from streamlib.request.target import BuildContext
from streamlib.wires.chat.build_message_rules import shape_content
from streamlib.wires.chat.build_messages import Conversation
from streamlib_parsers.items import JsonObject


def transcript_list(items: Iterable[IndexedItem], context: BuildContext) -> list[JsonObject]:
    """The messages, in the order of the items."""
    conversation = Conversation(context, is_sent=False)
    for entry in items:
        conversation.take(entry)
    conversation.flush()
    shape_content(conversation.messages, context.target)
    return [message.body for message in conversation.messages]
