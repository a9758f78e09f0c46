"""How each provider writes a batch: facts about files that are uploaded and downloaded.

Read in 2026-11: anthropic 2.12 and platform.claude.com, openai 3.54, ai.google.dev (batch mode),
mistralai 3.7, botocore 1.44 (batch inference). None of them streams.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct


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
