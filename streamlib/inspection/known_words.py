"""Words of the names that wires give to frames, events, errors and reasons.

A redacted inspection keeps a name if all of its words are listed here. Before adding a word, check
that a server cannot be made to send it in place of a user's text; a single common word is harmless.
"""

from __future__ import annotations

from typing import Final

_ENVELOPE: Final = """
    amazon bedrock block body candidate candidates choice choices chunk chunks citation
    citations complete completed completion content created delta deltas done end error event
    failed feedback finish finishreason frame function generate in incomplete index info input
    interaction interactions item keepalive line message messages metadata metrics model no of
    output part parts ping progress prompt queued reason response responses role settings start
    started status step stop stopped stray summary text thinking thought tool tools type unknown
    update usage
"""

_KINDS: Final = """
    action added annotation annotations apply approval arguments array audio blocks bool bytes
    call calls cancelled channel code compaction computer context count custom data details dict
    document edit embedding encrypted executable executed execution fetch fields file files
    float generating generation google grounding id ids image images inline int interpreter
    interpreting invocation json list local log logprobs mcp media name none nothing object
    opaque output outputs partial patch plan plans provider reasoning redacted refusal request
    requests result results safety search searching server shell signature source sources
    specific str string tokens trace transcript transcription url video web
"""

_ENDS: Final = """
    abort agent answer api assistant authentication bad billing blocked blocklist cancel
    commentary conflict connect connection content deadline developer disconnected eof eos
    exceeded exception exhausted expired filter filtered final forbidden gateway guardrail http
    insufficient internal intervened invalid invalidrequest language large length limit limited
    load long malformed many max maximum missing network not other overloaded pause paused
    payment permission policy pool prohibited protocol quota rate read recitation remote
    required reset resource sequence server service spii stall stalled system temporary
    throttling timeout token too total transport truncated turn unauthorized unavailable unload
    unprocessable unread unspecified use used user validation value window write
"""

_POINTERS: Final = """
    cache cached day days effort extra format frequency headers hour hours instructions min
    minute minutes month months number numbers options parallel penalty presence primary raw
    schema secondary seconds seed service store stored strict temperature tier top ttl unified
    verbosity verifier week weekly
"""


KNOWN_WORDS: Final = frozenset(" ".join((_ENVELOPE, _KINDS, _ENDS, _POINTERS)).split())
"""The words, in lower case."""
