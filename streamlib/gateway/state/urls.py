"""Opens a store of client state by its URL."""

from __future__ import annotations

from streamlib.gateway.state.store import STATE_LIMITS, MemoryStateStore, StateLimits, StateStore


def open_state(url: str, limits: StateLimits = STATE_LIMITS) -> StateStore:
    """The store that a URL names.

    Args:
        url: ``memory:``, or a Redis or Valkey server as `open_log` takes it (``redis://host``).
        limits: limits of the store.

    Raises:
        ValueError: the URL names no store, or its client is not installed. The message omits the
            URL, which may contain a password.
    """
    if url == "memory:":
        return MemoryStateStore(limits)
    try:
        from streamlib.gateway.state.redis_store import RedisStateStore
    except ModuleNotFoundError as error:
        message = f"{error.name} is not installed: pip install 'streamlib[redis]'"
        raise ValueError(message) from None
    return RedisStateStore(url, limits)
