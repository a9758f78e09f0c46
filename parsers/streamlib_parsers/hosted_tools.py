"""Tools that the provider runs itself, under names that belong to no wire.

`streamlib/request/hosted_tools.py` has the table of what each API calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

HostedName: TypeAlias = Literal["web_search", "web_fetch", "code_execution", "file_search"]
"""The names of the tools that several APIs have."""

HOSTED_NAMES: Final[tuple[HostedName, ...]] = get_args(HostedName)
LOCATION_KEYS: Final = ("city", "region", "country", "timezone")
_LISTS: Final = ("allowed_domains", "blocked_domains", "stores")


class HostedTool(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """What a hosted tool is and what it may do. Made by `ToolSpec.hosted`.

    Attributes:
        name: one of `web_search`, `web_fetch`, `code_execution`, `file_search`.
        max_uses: how often it may be called in one response.
        allowed_domains: the only domains to search or fetch from; (): any.
        blocked_domains: domains never to search or fetch from.
        location: where the user is: any of ``city``, ``region``, ``country`` (two letters) and
            ``timezone`` (as `Europe/Berlin`).
        stores: ids or names of the file stores to search, as the provider gave them.
    """

    name: HostedName
    max_uses: int | None = None
    allowed_domains: Sequence[str] = ()
    blocked_domains: Sequence[str] = ()
    location: dict[str, str] | None = None
    stores: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.name not in HOSTED_NAMES:
            from difflib import get_close_matches  # for misspelt names alone

            known = ", ".join(HOSTED_NAMES)
            near = get_close_matches(str(self.name), HOSTED_NAMES, 1)
            hint = f": write {near[0]!r}" if near else ""
            raise ValueError(f"a hosted tool is one of {known}, not {self.name!r}{hint}")
        for field in _LISTS:
            values = getattr(self, field)
            # A string would be read as a list of letters.
            if isinstance(values, str):
                raise TypeError(f"{field} is a list of strings, not {values!r}")
            force_setattr(self, field, tuple(values))
        unknown = set(self.location or ()) - set(LOCATION_KEYS)
        if unknown:
            raise ValueError(f"location takes {', '.join(LOCATION_KEYS)}, not {min(unknown)!r}")
