"""Arguments of a call for wires that want a JSON object: in their own bytes wherever they are one."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from streamlib.request.report import Report
from streamlib_parsers.items import FunctionCall, ServerToolCall


def as_object(call: FunctionCall | ServerToolCall, path: str, report: Report) -> Raw:
    """The bytes as they came, `{}` for nothing; what is no object is wrapped, and the report says so (A11)."""
    try:
        call.parsed()
        return Raw(
            (call.arguments.removeprefix("\ufeff") or "{}").encode("utf-8")
        )  # our reader forgives a BOM, a server does not
    except ValueError:
        report.add("changed", f"{path}/arguments", "not a JSON object: wrapped (A11)")
    return Raw(
        msgspec.json.encode({"_raw": call.arguments.encode("utf-8", "replace").decode("utf-8")})
    )
