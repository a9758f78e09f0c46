"""Prompts as the requests of a batch file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from streamlib.request.build import Request, build
from streamlib.request.headers import joined_headers
from streamlib.request.prompt import Prompt
from streamlib_parsers.items import JsonObject, ResponseItem, WireApi

# --- how each provider writes a batch ---
#
# Facts about files that are uploaded and downloaded, read in 2026-11: anthropic 2.12 and
# platform.claude.com, openai 3.54, ai.google.dev (batch mode), mistralai 3.7, botocore 1.44 (batch
# inference). None of them streams.


class BatchForm(Struct, frozen=True, kw_only=True):
    """The batch files of one provider.

    Attributes:
        id_key: key of a request's id, in its line and in that of its result.
        body_key: key of the request body in a line.
        ids: what an id may look like, as a regular expression; "": anything.
        id_rule: the same in words.
        has_endpoint: a line names method and path; one file has one path.
        names_model: the body names the model; else the job does.
        most: how many requests one batch may have; None: no limit is known.
        largest: bytes that the file may have; None: no limit is known.
        object_key: key of the one JSON object that holds the lines; "": a line of JSON for each.
    """

    id_key: str
    body_key: str
    ids: str = ""
    id_rule: str = ""
    has_endpoint: bool = False
    names_model: bool = True
    most: int | None = None
    largest: int | None = None
    object_key: str = ""

    def check_id(self, batch_id: str) -> None:
        """Refuses an id that the provider does not take.

        Raises:
            ValueError: the id breaks the provider's rule.
        """
        if not batch_id:
            raise ValueError("an id of a batch is not empty")
        if self.ids and not re.fullmatch(self.ids, batch_id):
            raise ValueError(f"the id {batch_id!r:.100} must be {self.id_rule}")


MB: Final = 1_000_000

FORMS: Final[Mapping[str, BatchForm]] = {
    "anthropic": BatchForm(
        id_key="custom_id",
        body_key="params",
        ids=r"[a-zA-Z0-9_-]{1,64}",
        id_rule="1 to 64 letters, digits, - or _",
        most=100_000,
        largest=256 * MB,
        object_key="requests",
    ),
    "openai": BatchForm(
        id_key="custom_id",
        body_key="body",
        has_endpoint=True,
        most=50_000,
        largest=200 * MB,
    ),
    "google": BatchForm(id_key="key", body_key="request", names_model=False, largest=2_000 * MB),
    "mistral": BatchForm(id_key="custom_id", body_key="body", names_model=False, most=1_000_000),
    "bedrock": BatchForm(id_key="recordId", body_key="modelInput", names_model=False),
}
"""Provider -> its form."""


STREAM_KEYS = ("stream", "stream_options")
"""What no request of a batch has."""


class BatchLines(list[JsonObject]):
    """The requests of a batch, as the provider writes each.

    Attributes:
        requests: id -> the request that was built, with its report. `read_batch(…, sent=…)` reads
            from it what the names of your tools are.
        headers: headers for the call that creates the batch (`anthropic-beta`), without a key.
        provider: the provider's name.
    """

    requests: dict[str, Request]
    headers: dict[str, str]
    provider: str

    def dumps(self) -> bytes:
        """What is uploaded: a line of JSON for each request; Anthropic's is one JSON object.

        Raises:
            ValueError: it is larger than the provider takes.
        """
        form = FORMS[self.provider]
        if form.object_key:
            data = msgspec.json.encode({form.object_key: self})
        else:
            data = b"".join([msgspec.json.encode(line) + b"\n" for line in self])
        if form.largest is not None and len(data) > form.largest:
            raise ValueError(
                f"the batch has {len(data):,} bytes, and {self.provider} takes {form.largest:,}: "
                "split the prompts"
            )
        return data


def batch_lines(
    prompts: Mapping[str, Prompt | str | Sequence[ResponseItem]],
    model: str,
    *,
    wire_api: WireApi | None = None,
) -> BatchLines:
    """The requests of a batch, one for each prompt, in their order.

    Args:
        prompts: id -> prompt. The ids come back with the results, which have an order of their own.
        model: `"provider:model"`: anthropic, openai, google, mistral or bedrock.
        wire_api: the wire API; None takes the provider's first. One for the whole batch.

    Raises:
        TypeError: `prompts` is no dict, or an id is no text.
        ValueError: an id breaks the provider's rule, the provider has no batches, or takes fewer.
        StreamError: a prompt cannot be built.
    """
    check_prompts(prompts)
    if not prompts:
        raise ValueError("a batch has at least one prompt")
    lines = BatchLines()
    lines.requests, lines.headers, lines.provider = {}, {}, ""
    form: BatchForm | None = None
    for batch_id, prompt in prompts.items():
        wanted = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
        wanted = msgspec.structs.replace(wanted, stream=False)
        request = build(wanted, model, wire_api=wire_api)
        if form is None:  # with the first request the provider is known
            lines.provider = request.origin.provider or ""
            form = _form_of(lines.provider, len(prompts))
        form.check_id(batch_id)
        lines.requests[batch_id] = request
        lines.headers = joined_headers(lines.headers, _own_headers(request))
        lines.append(_line(batch_id, request, form))
    return lines


def check_prompts(prompts: Mapping[str, Any]) -> None:
    """Refuses what is no dict of prompts by their ids.

    Raises:
        TypeError: it is no dict, or an id is no text.
        ValueError: an id cannot be written as JSON.
    """
    written: Any = prompts
    if not isinstance(written, Mapping):
        raise TypeError(f"prompts is a dict of ids and prompts, not {written!r:.100}")
    for batch_id in written:
        if not isinstance(batch_id, str):
            raise TypeError(f"the id of a prompt is a text, not {batch_id!r:.100}")
        try:
            batch_id.encode()
        except UnicodeEncodeError:
            raise ValueError(f"the id {batch_id!r:.100} is no valid Unicode") from None


def _form_of(provider: str, count: int) -> BatchForm:
    form = FORMS.get(provider)
    if form is None:
        known = ", ".join(sorted(FORMS))
        raise ValueError(f"no form of batches is known for {provider}, only for {known}")
    if form.most is not None and count > form.most:
        raise ValueError(f"{count:,} prompts, and a batch of {provider} has at most {form.most:,}")
    return form


def _own_headers(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name != "content-type"}


def _line(batch_id: str, request: Request, form: BatchForm) -> JsonObject:
    body: dict[str, Any] = msgspec.json.decode(request.body)
    for key in STREAM_KEYS:
        body.pop(key, None)
    if not form.names_model:
        body.pop("model", None)
    line: JsonObject = {form.id_key: batch_id}
    if form.has_endpoint:
        # wire: the path alone, with its version.
        path = "/v1/" + request.url.partition("?")[0].partition("/v1/")[2]
        line.update(method="POST", url=path)
    line[form.body_key] = body
    return line
