"""Reads messages with langchain-core, and writes them in both of its forms.

stdin   one JSON list a line, of the form of `messages_to_dict`
stdout  one JSON object a line: the same messages in each of LangChain's forms, and the types of
        the blocks that it makes of their content
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


def main() -> None:
    """Answers until the end of the input."""
    messages: Any = importlib.import_module("langchain_core.messages")
    load: Any = importlib.import_module("langchain_core.load")
    for line in sys.stdin:
        read = messages.messages_from_dict(json.loads(line))
        written = {
            "to_dict": messages.messages_to_dict(read),
            "dumpd": [load.dumpd(message) for message in read],
            "plain": [message.model_dump() for message in read],
            "blocks": [[block["type"] for block in message.content_blocks] for message in read],
        }
        sys.stdout.write(json.dumps(written) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
