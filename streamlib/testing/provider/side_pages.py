"""Pages outside of the wires: a page for people, and lists of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.testing.provider.behaviour import Behaviour
from streamlib.testing.provider.served import JSON, ServedResponse
from streamlib_parsers.items import JsonObject

MODEL: Final = "echo"
"""The only model that the lists name; requests may name any other."""

MODEL_LISTS: Final[dict[str, JsonObject]] = {
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model", "type": "model"}]},
    "/v1beta/models": {"models": [{"name": f"models/{MODEL}"}]},
    "/api/tags": {"models": [{"name": MODEL, "model": MODEL}]},
}
"""Path -> list of models in the format of OpenAI and Anthropic, of Gemini, or of Ollama."""

FRONT_PAGE: Final = """\
The loopback provider of streamlib: it needs no key, and repeats what it receives.
Wires: {wires}.
Try it:
  streamlib chat Hello --model loopback:{model} --base-url {url}
  curl {url}/v1/chat/completions -d '{{"messages": [{{"role": "user", "content": "Hello"}}]}}'
"""


def side_page(method: str, path: str, headers: Mapping[str, str]) -> ServedResponse | None:
    """The response to a request outside of the wires; None if no page has this path.

    Args:
        method: HTTP method.
        path: path and query of the request.
        headers: names in lower case; `host` gives the address that the page shows.
    """
    if method not in ("GET", "HEAD"):
        return None
    path = path.partition("?")[0]
    if path == "/":
        url = f"http://{headers.get('host', '127.0.0.1')}"
        text = FRONT_PAGE.format(wires=", ".join(WIRE_SPECS), model=MODEL, url=url)
        return ServedResponse(200, "text/plain; charset=utf-8", [text.encode()], Behaviour())
    if path in MODEL_LISTS:
        return ServedResponse(200, JSON, [msgspec.json.encode(MODEL_LISTS[path])], Behaviour())
    return None
