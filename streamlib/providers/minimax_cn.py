"""MiniMax in China: other keys and addresses, everything else as `minimax`."""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers.minimax import PROVIDER as MINIMAX

PROVIDER = replace(
    MINIMAX,
    name="minimax-cn",
    base_url="https://api.minimaxi.com/v1",
    wire_urls={"messages": "https://api.minimaxi.com/anthropic"},
    key_env=("MINIMAX_CN_API_KEY",),
)
