"""Moonshot's platform in China: other keys and addresses, everything else as `moonshot`."""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers.moonshot import PROVIDER as MOONSHOT

PROVIDER = replace(
    MOONSHOT,
    name="moonshot-cn",
    aliases=("kimi-cn",),
    base_url="https://api.moonshot.cn/v1",
    wire_urls={"messages": "https://api.moonshot.cn/anthropic"},
    key_env=("KIMI_CN_API_KEY",),
)
