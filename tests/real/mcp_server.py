"""A server of the MCP SDK over standard input and output, whose tools return each kind of content.

python tests/real/mcp_server.py
"""

from __future__ import annotations

import base64
from typing import Final

from mcp.server.mcpserver import MCPServer
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

server = MCPServer("things")

PNG: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()
PDF: Final = base64.b64encode(b"%PDF-1.7").decode()
WAV: Final = base64.b64encode(b"RIFF0000WAVE").decode()


class Weather(BaseModel):
    """What `forecast` returns."""

    city: str
    degrees: float


@server.tool()
def forecast(city: str, days: int = 1) -> Weather:
    """The weather in a city."""
    return Weather(city=city, degrees=18.5 + days)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail(city: str) -> str:
    """Always fails."""
    raise ValueError(f"no {city}")


@server.tool()
def show() -> CallToolResult:
    """Every kind of content."""
    page = TextResourceContents(uri="file:///notes/page.md", mime_type="text/markdown", text="# Hi")
    scan = BlobResourceContents(uri="file:///scans/a.pdf", mime_type="application/pdf", blob=PDF)
    return CallToolResult(
        content=[
            TextContent(text="seen"),
            ImageContent(data=PNG, mime_type="image/png"),
            AudioContent(data=WAV, mime_type="audio/wav"),
            EmbeddedResource(resource=page),
            EmbeddedResource(resource=scan),
            ResourceLink(uri="https://example.com/a", name="a", description="more"),
        ],
        structured_content={"count": 6},
    )


if __name__ == "__main__":
    server.run("stdio")
