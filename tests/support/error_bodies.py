"""Error bodies in the shapes of the large providers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

NOW = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)


def anthropic(kind: str, message: str = "…", **more: Any) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": kind, "message": message, **more},
        "request_id": "req_1",
    }


def openai(
    message: str = "…", kind: str | None = None, code: Any = None, **more: Any
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def google(
    status: str, code: int = 400, message: str = "…", *details: dict[str, Any]
) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def quota(quota_id: str, value: str | None = None) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": quota_id, "quotaValue": value}],
    }


def retry_info(delay: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def reason(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": name}


FREE_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
"""Google's `quotaId` of a daily limit."""
