"""Reads sessions of Claude Code with the reader of Anthropic's SDK, which knows no line of ours.

python claude_code.py HOME      the folder that holds `claude_agent_sdk`
stdin   one session a line: its file as a JSON text
stdout  one JSON list a line: type and message of each message that the reader shows
"""

from __future__ import annotations

import importlib
import json
import sys
import types


def main(home: str) -> None:
    """Answers until the end of the input."""
    for name in ("claude_agent_sdk", "claude_agent_sdk._internal"):
        # The packages themselves need the SDK's other dependencies, its reader does not.
        package = types.ModuleType(name)
        package.__path__ = [f"{home}/{name.replace('.', '/')}"]
        sys.modules[name] = package
    sessions = importlib.import_module("claude_agent_sdk._internal.sessions")
    for line in sys.stdin:
        entries = sessions._parse_transcript_entries(json.loads(line))
        messages = sessions._entries_to_session_messages(entries, None, 0)
        shown = [[message.type, message.message] for message in messages]
        sys.stdout.write(json.dumps(shown) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
