"""Kimi's plan for coding agents: https://www.kimi.com/code/docs.

It reads the `User-Agent` and serves the agents it knows. No other product's name is sent: set your
own with `msgspec.structs.replace(provider, headers={"user-agent": …})`.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers.moonshot import K2, K3
from streamlib.providers.moonshot import PROVIDER as MOONSHOT

PROVIDER = replace(
    MOONSHOT,
    name="kimi-coding",
    aliases=("kimi-for-coding",),
    base_url="https://api.kimi.com/coding/v1",
    wire_urls={"messages": "https://api.kimi.com/coding"},
    key_env=("KIMI_CODING_API_KEY", "KIMI_API_KEY"),
    model_overrides={"kimi-": K2, "kimi-k3": K3, "k3": K3},
)
